"""Without a chosen policy a build gives the bytes it gave before there were any: digests of whole requests.

A row that changes is a change of every user's envelopes: it needs a new renderer version, not a new digest here. Rows
of a new renderer are added; those of the ones before stay while `FORMS` keeps them. Only a change of what is recalled
or kept gives new digests: the log holds each selection and compaction, so older envelopes are rebuilt as they were.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.layout.rows import FORMS, RENDERER_VERSION
from ctxsteward.envelope.testing import memory_store

from ..agent_histories import agent_history
from ..messages import CHARS, char_builder

TOLD_SINCE = ("dynamic_over_budget", "message_shortened")
"""Kinds of findings that were added after these digests were taken: they change nothing of what is sent."""


def digest(dialect: str, builder: EnvelopeBuilder, **opened: Any) -> tuple[int, str]:
    """Compactions of a session, and a digest over the requests, reports and findings of all its calls."""
    hashed, compactions = hashlib.sha256(), 0
    with memory_store() as store:
        session = store.session("s", **opened)
        for seed in range(3):
            for wire in agent_history(seed, steps=16, dialect=dialect):
                if wire["role"] == "assistant":
                    envelope = builder.build(session)
                    compactions += len(envelope.reports)
                    request = envelope.render("openai-chat" if dialect == "openai" else "anthropic")
                    reports = [report.model_dump(mode="json") for report in envelope.reports]
                    findings = [one.model_dump(mode="json") for one in envelope.findings if one.kind not in TOLD_SINCE]
                    told = [request, envelope.address, reports, findings]
                    hashed.update(json.dumps(told, sort_keys=True, ensure_ascii=False).encode())
                session.append({**wire})
    return compactions, hashed.hexdigest()[:32]


def under(renderer: int, builder: EnvelopeBuilder) -> EnvelopeBuilder:
    """The builder as it is today, or with the form of a renderer before."""
    if renderer != RENDERER_VERSION:
        builder._decider = replace(builder._decider, form=FORMS[renderer])
    return builder


@pytest.mark.parametrize(
    ("renderer", "dialect", "dynamic_tokens", "expected"),
    [
        (3, "openai", 2_500, (34, "40cb4c7ecc637b727c743686cfa030ec")),
        (3, "openai", 9_000, (16, "ec35380ec7d89ebd7d3f8738270f5f96")),
        (3, "anthropic", 2_500, (25, "09c769aec7b949b569201272c475e489")),
        (3, "anthropic", 9_000, (15, "1b3537d54f459ed446e1c03fb5ac7db8")),
        (4, "openai", 2_500, (34, "323eec7048357ecc90a699854abbbd54")),
        (4, "openai", 9_000, (16, "f6b9674093d48ee8ef2c8b48b07c4326")),
        (4, "anthropic", 2_500, (25, "bdb1a2aeb624b24ee9366fb297bd741d")),
        (4, "anthropic", 9_000, (15, "71b3ad281519dd4b6e99926f67d2d39b")),
    ],
)
def test_default_builds_give_the_bytes_they_gave(
    renderer: int, dialect: str, dynamic_tokens: int, expected: Any
) -> None:
    builder = under(renderer, char_builder(Budgets(dynamic_tokens=dynamic_tokens)))
    assert digest(dialect, builder, counter=CHARS) == expected


@pytest.mark.parametrize(
    ("renderer", "dialect", "expected"),
    [
        (3, "openai", (31, "1cd1da7a905e6ccf662aa3e5fe40db7d")),
        (3, "anthropic", (28, "178b3c9938a806b1f3d4f7ffc5273e5a")),
        (4, "openai", (31, "6c05f5b1dd72fac7467db1f13c10fa17")),
        (4, "anthropic", (28, "33531d0feb1f84e0ffe93953456c055c")),
    ],
)
def test_default_builds_for_a_model_give_the_bytes_they_gave(renderer: int, dialect: str, expected: Any) -> None:
    assert digest(dialect, under(renderer, EnvelopeBuilder("gpt-4o"))) == expected
