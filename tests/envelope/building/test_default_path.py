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
        (3, "openai", 2_500, (32, "98fbc2f1171c85ef4ae8ac59ed81abd8")),
        (3, "openai", 9_000, (15, "a1b50fa4ac0afee0bbf51e7a9bf20d39")),
        (3, "anthropic", 2_500, (26, "34f47c0b5a49b4f57e8a9ce11a92938f")),
        (3, "anthropic", 9_000, (14, "c736b58f1e9ee28e197da7046d93e527")),
        (4, "openai", 2_500, (32, "ddb09af1dbb27ebff8111d2248730574")),
        (4, "openai", 9_000, (15, "67c6d934980bcfbb6d833f5a326c43a7")),
        (4, "anthropic", 2_500, (26, "3f51995ea76878d8303ed8902eff5967")),
        (4, "anthropic", 9_000, (14, "bc8134c8bf6baa02c3b9722d5a4cb631")),
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
        (3, "openai", (32, "146f1264672e0079675f4245496a4a4a")),
        (3, "anthropic", (28, "7c1557db40f45be5e15b3eff7c0fafb6")),
        (4, "openai", (32, "ec694f4407fecf38c0b5e549f488d3fa")),
        (4, "anthropic", (28, "7f9a387d1402e9feaf6a6160c07f9f86")),
    ],
)
def test_default_builds_for_a_model_give_the_bytes_they_gave(renderer: int, dialect: str, expected: Any) -> None:
    assert digest(dialect, under(renderer, EnvelopeBuilder("gpt-4o"))) == expected
