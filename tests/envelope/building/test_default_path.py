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
                    provider: Any = "openai-chat" if dialect == "openai" else "anthropic"
                    request = envelope.render(provider, cache=False)  # the model does not read where cache marks stand
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
        (3, "openai", 2_500, (33, "9ac296d1c6543dec05a1ce194eaa9aa9")),
        (3, "openai", 9_000, (12, "1f2ef7f313849c2d07822745b69bf8fa")),
        (3, "anthropic", 2_500, (26, "c3c1951243c61af0d286618326ca2c16")),
        (3, "anthropic", 9_000, (9, "c893825071a12748860ab5b090ceee64")),
        (4, "openai", 2_500, (33, "56b7a0ecb8748c36dcb0b797d647ac95")),
        (4, "openai", 9_000, (12, "6248aa1d22c25db0dc47634da2c9a82d")),
        (4, "anthropic", 2_500, (26, "b24c4518295972977ec085031e469a05")),
        (4, "anthropic", 9_000, (9, "2f19d35bb8c5a1b67e56cb46fda63977")),
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
        (3, "openai", (31, "e8007ebebb62f4d7db5db3b0180eec1b")),
        (3, "anthropic", (26, "9a753fe90c66fa9796a1843e38bf5e29")),
        (4, "openai", (31, "9de43f1ebe6778f6f17cdfc2ece9b31b")),
        (4, "anthropic", (26, "3377af266119126219d8c2b93359e805")),
    ],
)
def test_builds_for_a_model_give_the_bytes_they_gave(renderer: int, dialect: str, expected: Any) -> None:
    assert digest(dialect, under(renderer, EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=900)))) == expected
