"""Without a chosen policy a build gives the bytes it gave before there were any: digests of whole requests.

A row that changes is a change of every user's envelopes: it needs a new renderer version, not a new digest here. Rows
of a new renderer are added; those of the ones before stay while `FORMS` keeps them.
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
        (3, "openai", 2_500, (35, "238e99eb7947e73d5d14b4d10ca1cdc8")),
        (3, "openai", 9_000, (16, "a52fcdfd71bf1821584608c801d2a3d7")),
        (3, "anthropic", 2_500, (27, "f6920e4008a12c8bb70a51e31093ea2e")),
        (3, "anthropic", 9_000, (15, "0f0ace10490d4fd9db01f5794218016e")),
        (4, "openai", 2_500, (35, "7900090b04f00c195d3369da92451b36")),
        (4, "openai", 9_000, (16, "f00c93708f3eebba8e1bdcc0ad9a4e6c")),
        (4, "anthropic", 2_500, (27, "a43bf9f27a9188d98bc7a428260fb803")),
        (4, "anthropic", 9_000, (15, "4ca2cacb8a5a63a98cd8a22b36fb0d82")),
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
        (3, "openai", (31, "71fae0efb0264b097ee7bf67e9a2a267")),
        (3, "anthropic", (29, "585662983c4725af91dc549e3e471b6d")),
        (4, "openai", (31, "1246c7430077c6f89fc08eff03efa449")),
        (4, "anthropic", (29, "e70c7eb1f98049e50e0e162c03b17c23")),
    ],
)
def test_default_builds_for_a_model_give_the_bytes_they_gave(renderer: int, dialect: str, expected: Any) -> None:
    assert digest(dialect, under(renderer, EnvelopeBuilder("gpt-4o"))) == expected
