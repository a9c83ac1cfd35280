"""Dated chats beside which people wrote down what is worth remembering: how much of that does the steward learn?

A folder holds a JSON file a person: ``dialogues`` with ``current_time``, ``dialogue_turns`` (``speaker`` User or
Assistant, ``content``) and ``extracted_memory`` (``content``: a note of that session). The files, in the order of their
names, are two halves: the first three fifths to develop on, the rest *held out*.

A *record* is what one session gives its user alone: a strict claim, or a fact by its score; of other kinds a first
mention does not suffice. A note is *found* where a record of the same session says it: both share three index terms,
and half of those of the shorter one. A record is *noted* where it says some note. Not all that is worth keeping is
among the notes, so *noted* is a lower bound; a record of a session without notes is never noted.

Beside ours stand as many sentences of what users said: any, the longest, any with "I" or "my"; and every sentence,
which is the most that can be found. Source: AvatarMemory/RealMemBench (MIT). Raises `InvalidTranscript`, `InputError`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ctxsteward.envelope.transcripts import decode
from ctxsteward.language import sentences, terms
from ctxsteward.schemas import InputError, InvalidTranscript
from ctxsteward.steward.harvest import harvest
from ctxsteward.steward.observations import Observation, ReplayedTranscript, ReplayedUtterance

from ..intervals import wilson

NOTED = "noted"
"""Of the block in a document."""
NOTED_HEAD = ("half", "records", "number", "a note", "notes found, %", "95 %", "noted, %", "95 %")
SHARED_TERMS, SHARED_FRACTION = 3, 0.5
_FIRST_PERSON = frozenset("i i'm i've i'd i'll my mine we we're we've our".split())  # noqa: SIM905

Place = tuple[str, int]
"""Person and number of the session."""


class NotedSession(NamedTuple):
    """What was said in one session, and the notes on it."""

    replayed: ReplayedTranscript
    notes: tuple[str, ...]


class NotedRow(NamedTuple):
    """One strategy on one half; counts."""

    half: str
    strategy: str
    records: int
    noted: int
    notes: int
    found: int


def read_noted(folder: Path, half: str = "development") -> dict[Place, NotedSession]:
    """One half of a folder's sessions."""
    files = sorted(folder.glob("*.json"))
    if len(files) < 2:
        raise InputError(f"{folder}: {len(files)} JSON files; two halves take the chats of two people at least")
    middle = -(-3 * len(files) // 5)
    chosen = files[:middle] if half == "development" else files[middle:]
    return {place: session for path in chosen for place, session in _sessions(path)}


def _sessions(path: Path) -> Iterator[tuple[Place, NotedSession]]:
    document = decode(path.read_bytes(), str(path), "")
    dialogues = document.get("dialogues") if isinstance(document, dict) else None
    if not isinstance(dialogues, list):
        raise InvalidTranscript(str(path), "dialogues", "is missing", "expected a list of dated sessions")
    for number, row in enumerate(dialogues):
        turns = _texts(row, "dialogue_turns", f"{path}", f"dialogues[{number}]")
        notes = _texts(row, "extracted_memory", f"{path}", f"dialogues[{number}]")
        said = (_utterance(at, turn, path.stem) for at, turn in enumerate(turns, 1))
        replayed = ReplayedTranscript(
            source=f"{path.stem}/{number}", session=str(number), principal=path.stem, format="openai", digest="",
            utterances=tuple(said),
        )  # fmt: skip
        yield (path.stem, number), NotedSession(replayed, tuple(note["content"] for note in notes))


def _texts(row: Any, name: str, source: str, where: str) -> list[dict[str, Any]]:
    rows = row.get(name) if isinstance(row, dict) else None
    if not isinstance(rows, list):
        raise InvalidTranscript(source, f"{where}.{name}", "is missing", "expected a list")
    for at, one in enumerate(rows):
        if not isinstance(one, dict) or not isinstance(one.get("content"), str):
            raise InvalidTranscript(source, f"{where}.{name}[{at}]", "has no `content`", "expected a text")
    return rows


def _utterance(ordinal: int, turn: Mapping[str, Any], principal: str) -> ReplayedUtterance:
    role: Literal["user", "assistant"] = "user" if turn.get("speaker") == "User" else "assistant"
    return ReplayedUtterance(
        ordinal=ordinal, ref=f"§{ordinal}", role=role, text=turn["content"], trust=role, principal=principal
    )  # fmt: skip


def measure_noted(
    sessions: Mapping[Place, NotedSession], half: str, tell: Callable[[str], None] = lambda text: None
) -> list[NotedRow]:
    """Ours and the baselines."""
    records = []
    for (person, number), session in sessions.items():
        tell(f"{person}, session {number + 1}")
        records += [
            ((person, number), one.text) for one in harvest(session.replayed) if _is_kept_at_once(one)
        ]  # fmt: skip
    said = [
        (place, said.text[piece.start : piece.stop])
        for place, session in sessions.items()
        for said in session.replayed.users()
        for piece in sentences(said.text)
    ]
    rng, count = random.Random(half), len(records)
    own = [one for one in said if not _FIRST_PERSON.isdisjoint(one[1].lower().replace("’", "'").split())]
    chosen = {
        "ours": records,
        "any sentence": rng.sample(said, min(count, len(said))),
        "the longest sentences": sorted(said, key=lambda one: -len(one[1]))[:count],
        "any sentence with I or my": rng.sample(own, min(count, len(own))),
        "every sentence": said,
    }
    notes = {place: [set(terms(note)) for note in session.notes] for place, session in sessions.items()}
    return [_row(half, strategy, texts, notes) for strategy, texts in chosen.items()]


def _is_kept_at_once(one: Observation) -> bool:
    """Whether a first mention makes it a record of its author's own."""
    strong = one.strength == "strict" or (one.kind == "fact" and one.strength == "scored")
    return strong and one.reach == "user"


def _row(
    half: str, strategy: str, texts: Sequence[tuple[Place, str]], notes: Mapping[Place, Sequence[set[str]]]
) -> NotedRow:
    records: dict[Place, list[set[str]]] = {}
    for place, text in texts:
        records.setdefault(place, []).append(set(terms(text)))
    said = {
        place: [[_says(record, note) for note in of] for record in records.get(place, ())]
        for place, of in notes.items()
    }
    return NotedRow(
        half, strategy, len(texts), sum(any(row) for rows in said.values() for row in rows),
        sum(map(len, notes.values())), sum(any(column) for rows in said.values() for column in zip(*rows, strict=True)),
    )  # fmt: skip


def _says(record: set[str], note: set[str]) -> bool:
    shared = len(record & note)
    return shared >= max(SHARED_TERMS, SHARED_FRACTION * min(len(record), len(note)))


def noted_cells(rows: Sequence[NotedRow]) -> list[list[str]]:
    """A line of the table each, under `NOTED_HEAD`."""
    return [
        [
            row.half, row.strategy, f"{row.records:,}", f"{row.records / max(1, row.notes):.2f}",
            *_percent(row.found, row.notes), *_percent(row.noted, row.records),
        ]
        for row in rows
    ]  # fmt: skip


def _percent(part: int, whole: int) -> tuple[str, str]:
    if not whole:
        return "", ""
    low, high = wilson(part, whole)[:2]
    return f"{100 * part / whole:.1f}", f"{100 * low:.0f} to {100 * high:.0f}"
