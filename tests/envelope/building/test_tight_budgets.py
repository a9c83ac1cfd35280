"""A budget that is too small says so: which message is shown shortened, and which budget would do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Session
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.transcripts.files import read_transcripts

from ..agent_histories import agent_history

DATA = Path(__file__).parents[3] / "../shared/data"
LONG = "The ledger of the harbour says what came and what went. " * 60


def builder(dynamic_tokens: int = 900) -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=dynamic_tokens))


def played(wires: Sequence[dict[str, Any]], dynamic_tokens: int) -> Iterator[tuple[Session, Envelope]]:
    """One build a model call, as an agent's loop makes them."""
    session, maker = memory_store().session("s"), builder(dynamic_tokens)
    for at, wire in enumerate(wires):
        session.append(wire)
        if wire["role"] != "assistant" and (at + 1 == len(wires) or wires[at + 1]["role"] == "assistant"):
            yield session, maker.build(session)


def over_budget(envelope: Envelope) -> list[str]:
    return [one.text for one in envelope.findings if one.kind == "dynamic_over_budget"]


def named_tokens(text: str) -> int:
    found = re.search(r"set dynamic_tokens=(\d+)", text)
    assert found is not None, text
    return int(found[1])


def checked(wires: Sequence[dict[str, Any]], dynamic_tokens: int, most: int = 3) -> int:
    """How many builds were over budget: each says so, and the named budget holds it, also where all is played anew."""
    count = 0
    for call, (session, envelope) in enumerate(played(wires, dynamic_tokens)):
        overflow = envelope.section("dynamic").overflow_tokens
        assert len(over_budget(envelope)) == (overflow > 0)
        if not overflow:
            continue
        count += 1
        if count > most:
            continue
        enough = named_tokens(over_budget(envelope)[0])
        assert over_budget(builder(enough).preview(session)) == []
        _, again = next(one for at, one in enumerate(played(wires, enough)) if at == call)
        assert over_budget(again) == [], (call, enough)
    return count


def test_an_envelope_over_its_budget_names_one_that_holds_it() -> None:
    counts = [checked(agent_history(seed, steps=16), tokens) for seed in range(3) for tokens in (300, 900)]
    assert sum(counts) > 10


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data (../shared/data) is not here")
def test_real_runs_over_their_budget_name_one_that_holds_them() -> None:
    files = sorted((DATA / "swe_agent").glob("*.traj"))[:5]
    runs = [[entry.wire for entry in one.entries()][:40] for path in files for one in read_transcripts(path)]
    assert sum(checked(wires, 900, most=2) for wires in runs) > 5


def test_a_window_that_leaves_no_more_is_named_in_place_of_a_budget() -> None:
    session = memory_store().session("s")
    session.append({"role": "user", "content": LONG * 2})
    small = EnvelopeBuilder(tokenizer="o200k_base", window_tokens=2_000, budgets=Budgets(dynamic_tokens=900))
    (text,) = over_budget(small.build(session))
    assert "the model's window of 2000 leaves no more" in text


def test_the_newest_reply_that_is_shortened_is_named_with_its_original() -> None:
    session, maker = memory_store().session("s"), builder()
    for turn in range(8):
        session.append({"role": "user", "content": f"What of day {turn}? Say it at length."})
        maker.build(session)
        session.append({"role": "assistant", "content": f"Day {turn}. {LONG}"})
    session.append({"role": "user", "content": "And now?"})
    envelope = maker.build(session)
    (finding,) = [one for one in envelope.findings if one.kind == "message_shortened"]
    assert finding.ref == "§16"
    assert re.fullmatch(
        r"§16 \(assistant\) is shown shortened to \d+ of its \d+ tokens; the original is §16", finding.text
    )
    assert session.resolve("§16").text == f"Day 7. {LONG}"


def test_what_is_shown_whole_is_no_finding() -> None:
    session, maker = memory_store().session("s"), builder()
    for turn in range(30):
        session.append({"role": "user", "content": f"What of day {turn}?"})
        envelope = maker.build(session)
        session.append({"role": "assistant", "content": f"Day {turn} was dry. " * 8})
    assert envelope.reports or session.reports()
    assert {one.kind for one in envelope.findings}.isdisjoint(("message_shortened", "dynamic_over_budget"))
