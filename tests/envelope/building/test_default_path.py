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

TOLD_SINCE = ("dynamic_over_budget", "message_shortened", "rule_not_visible")
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
        (3, "openai", 2_500, (31, "376b84f386b99c349f0a1e2b7b553d3f")),
        (3, "openai", 9_000, (12, "fd27668d0f575a6cd5c6efbf8f97e27e")),
        (3, "anthropic", 2_500, (25, "d27d171073d82af4b1f4792f53eb9f40")),
        (3, "anthropic", 9_000, (9, "656bdb4122f1f6a89dac2ec101f97dcc")),
        (4, "openai", 2_500, (31, "c652286892544867068bf1703009eaff")),
        (4, "openai", 9_000, (12, "526b393076d2af774fb5b8c0088e3b86")),
        (4, "anthropic", 2_500, (25, "971810760f3bb43f7f4dba43270e3515")),
        (4, "anthropic", 9_000, (9, "11c6497b581d74245026d302d7da9f33")),
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
        (3, "openai", (31, "a247e72dbb95c4bc746e37bf5dd54b0b")),
        (3, "anthropic", (26, "875e9d9a6f913e95ba2a541fd3093fef")),
        (4, "openai", (31, "00db02fa6568aa26cb3b6c321672fd72")),
        (4, "anthropic", (26, "301dc224aa9988daaa9e6b935931fcf8")),
    ],
)
def test_builds_for_a_model_give_the_bytes_they_gave(renderer: int, dialect: str, expected: Any) -> None:
    assert digest(dialect, under(renderer, EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=900)))) == expected
