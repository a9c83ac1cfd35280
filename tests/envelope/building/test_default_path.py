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
        (3, "openai", 2_500, (34, "efe6fffb815179dca8b660ab11e1bdc2")),
        (3, "openai", 9_000, (14, "96259c6b5959154537985ef0012c7c6c")),
        (3, "anthropic", 2_500, (26, "78c75acf9c903c75c76739f4425c6323")),
        (3, "anthropic", 9_000, (14, "f2ab0996d8c7b21f28a0c41462568744")),
        (4, "openai", 2_500, (34, "4db095b838d6fd161554bfc9118a897a")),
        (4, "openai", 9_000, (14, "e213c49da0670b0e0f05eb67d2127519")),
        (4, "anthropic", 2_500, (26, "0d7426b747fcf1696c5c2a4d71a01651")),
        (4, "anthropic", 9_000, (14, "df82fc7b8ef948b18f2bf9b5bffa961d")),
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
        (3, "openai", (31, "166bc1d716573cd28831bc285611bbad")),
        (3, "anthropic", (30, "ad313882eb20fa5e91405b3e8c44ceab")),
        (4, "openai", (31, "f1b785425c348279761ad2a2078c1fd0")),
        (4, "anthropic", (30, "f506edf40c7cc40efab26d9a8bdc6c39")),
    ],
)
def test_default_builds_for_a_model_give_the_bytes_they_gave(renderer: int, dialect: str, expected: Any) -> None:
    assert digest(dialect, under(renderer, EnvelopeBuilder("gpt-4o"))) == expected
