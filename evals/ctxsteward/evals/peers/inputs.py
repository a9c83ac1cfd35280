"""What every sender is measured on: agent runs, planted canaries, dated conversations with questions, long small talk.

Messages are in one canonical form (role, text, calls, call id), so that every sender starts from the same bytes.
`FULL` is what the table is measured on; tests take less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.envelope.readers import TranscriptEntry, read_transcripts
from ctxsteward.schemas import Message, Wire

from ..bench.conversation import conversation
from ..canaries import Scenario, scenario
from ..canary_stories import stories
from ..cost_prompts import Piece, Sizer
from ..cost_runs import read_runs
from ..recall import Question, read_questions

RUNS = ("tau_bench_airline", "swe_agent")
QUESTIONS = "locomo/locomo_dev.json"


class Sample(NamedTuple):
    """How much of everything."""

    every_run: int = 1
    """Each so-manieth agent run."""
    seeds: int = 2
    """Canary scenarios of each language and half."""
    every_question: int = 3
    sizes: tuple[int, ...] = (50, 5_000)
    """Messages before the timed calls."""
    timed_calls: int = 20


FULL = Sample()


class Run(NamedTuple):
    """An agent run: what each call adds to the history."""

    system: tuple[Piece, ...]
    tools_tokens: int
    calls: tuple[tuple[TranscriptEntry, ...], ...]
    task: str


class Talk(NamedTuple):
    """A conversation and what is asked about it."""

    said: tuple[TranscriptEntry, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """All of it."""

    runs: tuple[Run, ...]
    scenarios: tuple[Scenario, ...]
    talks: tuple[Talk, ...]
    timed: tuple[tuple[TranscriptEntry, ...], ...]
    timed_calls: int


def read_inputs(data: Path, sizer: Sizer, sample: Sample = FULL) -> Inputs:
    """Read the public transcripts of a folder and make the rest."""
    return Inputs(
        runs=_runs(data, sizer)[:: sample.every_run],
        scenarios=tuple(_scenarios(sample.seeds)),
        talks=_talks(data / QUESTIONS, sample.every_question),
        timed=tuple(_entries(conversation(size + 2 * sample.timed_calls)) for size in sample.sizes),
        timed_calls=sample.timed_calls,
    )


def canonical(wire: Wire) -> Wire:
    """A message with what all providers have and nothing else."""
    content = wire.get("content")
    text = content if isinstance(content, str) or content is None else Message.from_wire(wire).text
    made: Wire = {"role": wire["role"], "content": text}
    if wire.get("tool_calls"):
        made["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {k: call["function"][k] for k in ("name", "arguments")}}
            for call in wire["tool_calls"]
        ]
    if "tool_call_id" in wire:
        made["tool_call_id"] = wire["tool_call_id"]
    return made


def _runs(data: Path, sizer: Sizer) -> tuple[Run, ...]:
    no_builders: dict[str, EnvelopeBuilder] = {}
    found = []
    for run in read_runs([data / name for name in RUNS], no_builders, sizer):
        entries = _entries([canonical(piece.wire) for piece in run.messages])
        stops = (0, *run.seen)
        calls = tuple(entries[start:stop] for start, stop in zip(stops, run.seen, strict=False))
        found.append(Run(run.system, run.tools_tokens, calls, run.task))
    return tuple(found)


def _entries(wires: Sequence[Wire]) -> tuple[TranscriptEntry, ...]:
    return tuple(TranscriptEntry(wire=wire) for wire in wires)


def _scenarios(seeds: int) -> list[Scenario]:
    made = [
        scenario(seed, language, split=split)
        for split in ("dev", "held_out")
        for language in ("en", "zh")
        for seed in range(seeds)
    ]
    return [*made, *stories()] if seeds else []


def _talks(path: Path, every: int) -> tuple[Talk, ...]:
    talks = []
    for questions, transcript in zip(read_questions(path), read_transcripts(path, format="locomo"), strict=True):
        said = tuple(
            TranscriptEntry(wire=canonical(row.wire), id=row.id, ts=row.ts) for row in transcript.open_entries()
        )
        talks.append(Talk(said, tuple(questions[::every])))
    return tuple(talks)
