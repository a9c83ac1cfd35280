"""Real agent runs and conversations, call by call, and planted canaries: every call valid, bounded, cited, cheap.

A sample of the public transcripts in the folder `shared` beside the repository; skipped where it is not. The whole set
is `python -m benchmarks.bench transcripts`. `CTXSTEWARD_SOAK=1` replays without recall and under
a second budget, too, and a whole conversation where the everyday run takes its beginning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.canary_chats import scenario, stale_in
from benchmarks.transcripts import TranscriptTotals
from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.render.text import spans
from ctxsteward.envelope.testing import FirstLine, memory_store
from ctxsteward.envelope.transcripts.files import parse_transcripts, read_transcripts
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.evals.canaries import Half
from ctxsteward.evals.phrasings import Language
from ctxsteward.evals.replay import ModelCall, Prefix, check, open_session, replay
from ctxsteward.schemas import InputError, Message
from ctxsteward.schemas.message import Wire

from ..needs import PUBLIC_DATA

DATA = Path(__file__).parents[2] / "../shared/data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=PUBLIC_DATA)

SOAK = os.environ.get("CTXSTEWARD_SOAK") == "1"
BUDGETS_TOKENS = (900, 2_000) if SOAK else (900,)
MOST_COMPACTIONS = 1.15
"""Of the fewest on the same arrivals, at the same trigger and depth."""


@cache
def sample(name: str) -> tuple[Transcript, ...]:
    match name:
        case "tau-bench":
            return tuple(read_transcripts(DATA / "tau_bench_airline/runs_even_tasks.jsonl"))[::10]
        case "SWE-agent":
            paths = sorted((DATA / "swe_agent").glob("*.traj"))[::4]
            return tuple(transcript for path in paths for transcript in read_transcripts(path))
        case _:
            (first, *_) = read_transcripts(DATA / "locomo/locomo_dev.json")
            entries = tuple(islice(first.entries(), None if SOAK else 240))
            return (replace(first, open_entries=lambda: iter(entries)),)


@cache
def result(name: str, dynamic_tokens: int, recalls: bool) -> TranscriptTotals:
    """Every call of a sample, checked."""
    budgets = Budgets(dynamic_tokens=dynamic_tokens)
    builder = EnvelopeBuilder(model="gpt-4o", budgets=budgets, selector="heuristic" if recalls else None)
    totals = TranscriptTotals()
    for transcript in sample(name):
        totals.play(transcript, builder)
    return totals


SAMPLES = ("tau-bench", "SWE-agent", "LoCoMo")
CALLS = {"tau-bench": 100, "SWE-agent": 40, "LoCoMo": 100}
"""At least: a sample that was not read would have no faults either."""


@needs_data
@pytest.mark.parametrize("recalls", [True, False] if SOAK else [True])
@pytest.mark.parametrize("dynamic_tokens", BUDGETS_TOKENS)
@pytest.mark.parametrize("name", SAMPLES)
def test_no_call_of_a_real_transcript_has_a_fault(name: str, dynamic_tokens: int, recalls: bool) -> None:
    """Validity for two providers, budget, task, newest message, last raw turn, references, citations."""
    found = result(name, dynamic_tokens, recalls)
    assert found.faults == []
    assert found.calls >= CALLS[name]
    assert found.refs > found.calls


@needs_data
@pytest.mark.parametrize("recalls", [True, False] if SOAK else [True])
@pytest.mark.parametrize("dynamic_tokens", BUDGETS_TOKENS)
@pytest.mark.parametrize("name", SAMPLES)
def test_calls_only_append_between_compactions(name: str, dynamic_tokens: int, recalls: bool) -> None:
    """But for turn context that a live turn had no room for, which a finding announces: few calls have that."""
    found = result(name, dynamic_tokens, recalls)
    assert found.prefix_faults == 0
    assert found.dropped <= (found.calls / 8 if recalls else 0)
    assert found.compared >= found.calls / 8


@needs_data
@pytest.mark.parametrize("dynamic_tokens", BUDGETS_TOKENS)
def test_compactions_are_deep_and_close_to_the_fewest_possible(dynamic_tokens: int) -> None:
    found = [result(name, dynamic_tokens, not SOAK) for name in SAMPLES]
    made, fewest = sum(one.compactions for one in found), sum(one.latest for one in found)
    assert sum(one.shallow for one in found) == 0
    assert 0 < made <= MOST_COMPACTIONS * fewest, f"{made} compactions where {fewest} would do"


# -- the checks see what is wrong --------------------------------------------------------------------------


def transcript(messages: Sequence[Wire]) -> Transcript:
    (read,) = parse_transcripts(
        "\n".join(Message.from_wire(message).model_dump_json(include={"wire"})[8:-1] for message in messages)
    )
    return read


def conversation(turns: int) -> list[Wire]:
    return [
        {"role": role, "content": f"{role} {n}: " + "word " * 30}
        for n in range(turns)
        for role in ("user", "assistant")
    ]


def calls(turns: int = 30) -> Iterator[ModelCall]:
    read = transcript(conversation(turns))
    budgets = Budgets(dynamic_tokens=400)
    builder = EnvelopeBuilder(model="gpt-4o", budgets=budgets, summarizer=FirstLine(), selector=None)
    return replay(read, builder, open_session(open_store("memory:"), read))


def test_a_replay_makes_one_call_before_each_assistant_message() -> None:
    seen = [(call.number, len(call.session), len(call.wires)) for call in calls(5)]
    assert seen == [(1, 1, 1), (2, 3, 3), (3, 5, 5), (4, 7, 7), (5, 9, 9)]


def test_other_bytes_behind_a_reference_are_a_fault() -> None:
    faults = []
    for call in calls():
        wires = [{**wire, "content": "forged"} if n == 0 else wire for n, wire in enumerate(call.wires)]
        faults += check(replace(call, wires=wires))
    assert any("§1 resolves to other bytes" in fault for fault in faults)


def test_an_envelope_of_an_earlier_call_is_a_fault() -> None:
    faults, earlier = [], None
    for call in calls(4):
        if earlier is not None:
            faults += check(replace(call, envelope=earlier))
        earlier = call.envelope
    assert any("the newest message is not shown" in fault for fault in faults)


def test_a_prefix_that_changed_is_a_fault() -> None:
    prefix = Prefix()
    rows = [call for call in calls(3) if not call.envelope.reports]
    assert [prefix.check(call) for call in rows] == [True, True, True]
    assert not prefix.check(rows[0])
    assert (prefix.faults, prefix.compared) == (1, 3)


def test_a_call_that_cannot_be_built_names_its_session_and_its_number() -> None:
    read = transcript(
        [*conversation(2), {"role": "user", "content": "word " * 900}, {"role": "assistant", "content": "x"}]
    )
    builder = EnvelopeBuilder(tokenizer="o200k_base", window_tokens=500, budgets=Budgets(dynamic_tokens=200))
    with pytest.raises(InputError, match=r"stdin: call 3: the request needs \d+ tokens"):
        list(replay(read, builder, open_session(open_store("memory:"), read)))


# -- canaries through recall --------------------------------------------------------------------------------

LANGUAGES = (("en", "held_out"), ("zh", "dev"), ("en", "dev"), ("zh", "held_out"))


@pytest.mark.parametrize(("language", "split"), LANGUAGES if SOAK else LANGUAGES[:2])
def test_recall_never_shows_an_old_value_without_the_new_one(language: Language, split: Half) -> None:
    """Every statement of a canary, old ones too, is asked about in its own words."""
    case = scenario(3, language, split=split)
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=900))
    session = memory_store().session(case.name)
    for wire in case.messages:
        session.append(wire)
        if wire["role"] != "assistant":
            builder.build(session)
    recalled = 0
    for ordinal in sorted({ordinal for canary in case.canaries for ordinal in canary.ordinals}):
        envelope = builder.preview(session, f"What about {session.entry(ordinal).message.text}")
        recalled += envelope.dynamic.context is not None
        text = "\n".join(span.text for span in spans(envelope))
        assert stale_in(case, text[: text.rindex("What about ")]) == []
    assert recalled >= len(case.canaries) / 2
