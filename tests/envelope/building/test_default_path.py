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
        (3, "openai", 2_500, (34, "798be2e4e61cca6f17a67c64dd7eab72")),
        (3, "openai", 9_000, (14, "d1f3305076baee5b9fc60e5487cdbe2b")),
        (3, "anthropic", 2_500, (26, "1297aae4afa8093b2bf513775dc16ef3")),
        (3, "anthropic", 9_000, (14, "2379053cfd7622e44953e06a6ff4aabc")),
        (4, "openai", 2_500, (34, "1a0056c6a05ab8d1714894a541587818")),
        (4, "openai", 9_000, (14, "276db7d7d40625e8959cc5bf121d324a")),
        (4, "anthropic", 2_500, (26, "e120d2f97865efcd9754d4ef838d64d0")),
        (4, "anthropic", 9_000, (14, "fbefdf08025f326f517507014f03ad39")),
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
        (3, "openai", (31, "3a635191f68c95065cce27d43c1adb25")),
        (3, "anthropic", (30, "ef87595525750d15b8b8e0989f991778")),
        (4, "openai", (31, "2d1527cf960b19d06dbb7f4f19770a9c")),
        (4, "anthropic", (30, "db14849c3e5b6893bb94bd427e88da36")),
    ],
)
def test_default_builds_for_a_model_give_the_bytes_they_gave(renderer: int, dialect: str, expected: Any) -> None:
    assert digest(dialect, under(renderer, EnvelopeBuilder("gpt-4o"))) == expected
