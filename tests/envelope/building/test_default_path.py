"""Without a chosen policy a build gives the bytes it gave before there were any: digests of whole requests.

A row that changes is a change of every user's envelopes: it needs a new renderer version, not a new digest here.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.testing import memory_store

from ..agent_histories import agent_history
from ..messages import CHARS, char_builder


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
                    findings = [finding.model_dump(mode="json") for finding in envelope.findings]
                    told = [request, envelope.address, reports, findings]
                    hashed.update(json.dumps(told, sort_keys=True, ensure_ascii=False).encode())
                session.append({**wire})
    return compactions, hashed.hexdigest()[:32]


@pytest.mark.parametrize(
    ("dialect", "dynamic_tokens", "expected"),
    [
        ("openai", 2_500, (35, "238e99eb7947e73d5d14b4d10ca1cdc8")),
        ("openai", 9_000, (16, "a52fcdfd71bf1821584608c801d2a3d7")),
        ("anthropic", 2_500, (27, "f6920e4008a12c8bb70a51e31093ea2e")),
        ("anthropic", 9_000, (15, "0f0ace10490d4fd9db01f5794218016e")),
    ],
)
def test_default_builds_give_the_bytes_they_gave(dialect: str, dynamic_tokens: int, expected: Any) -> None:
    builder = char_builder(Budgets(dynamic_tokens=dynamic_tokens))
    assert digest(dialect, builder, counter=CHARS) == expected


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("openai", (31, "71fae0efb0264b097ee7bf67e9a2a267")),
        ("anthropic", (29, "585662983c4725af91dc549e3e471b6d")),
    ],
)
def test_default_builds_for_a_model_give_the_bytes_they_gave(dialect: str, expected: Any) -> None:
    assert digest(dialect, EnvelopeBuilder("gpt-4o")) == expected
