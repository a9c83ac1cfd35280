"""What a person said in earlier sessions: is it shown when it is asked for, beside rankings that take no judgement?

Each person of the data has dated sessions. A question is asked as the next user message of that person, and what they
said in the sessions before it may be shown, in 120 tokens: rows as the product shows them, each with its session,
message and day, a row for each message.

    shown    mean share of a question's evidence that is there
    tokens   mean tokens of the rows
    ms       median time of choosing

RealMem: a question is a message of a user that needs notes of earlier sessions; a note is shown where a sentence that
is shown says it (`says`). The first three fifths of the files are to develop on, the rest *held
out*. LoCoMo: a question has evidence in turns of one speaker alone, and is asked as that speaker behind the last
session; a turn is shown where a sentence of it is. Three conversations are to develop on, the others held out.

*Any sentences*, the *newest* and *BM25*, with and without discount for length, take all sentences of the person, with
nothing left out. Run: ``python -m benchmarks.earlier_sessions FOLDER_OR_FILE [--held-out]``. Weights were set on the
development halves.

Data: AvatarMemory/RealMemBench (MIT); LoCoMo (Maharana et al. 2024, snap-research/LoCoMo).
"""

from __future__ import annotations

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from ctxsteward.envelope import Counter, load_tokenizer, open_store
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.envelope.transcripts.strict_json import decode
from ctxsteward.evals.documents import table
from ctxsteward.evals.recall import read_questions
from ctxsteward.language.words import sentences, terms

from .report import progress, publish, script

ROOM_TOKENS = 120
SHARED_TERMS, SHARED_FRACTION = 2, 0.5
"""A sentence says a note if it has this many of its terms, and this share of the shorter of the two."""
HEAD = ("data", "half", "lines", "questions", "shown", "tokens", "ms")


class Turn(NamedTuple):
    """One message of a session."""

    is_own: bool
    text: str


class Asked(NamedTuple):
    """A question, its place, and its evidence."""

    session: int
    """Index of the first session that is not earlier."""
    turn: int
    text: str
    notes: tuple[frozenset[str], ...] = ()
    """Terms of notes of earlier sessions."""
    turns: tuple[tuple[int, int], ...] = ()
    """Session and turn of each piece of evidence, from 0."""


class Person(NamedTuple):
    """One person's sessions, and the questions."""

    name: str
    sessions: tuple[tuple[str, tuple[Turn, ...]], ...]
    """Day and turns of each session."""
    questions: tuple[Asked, ...]


class Sentence(NamedTuple):
    """A candidate of the baselines."""

    session: int
    turn: int
    start: int
    stop: int
    text: str
    ts: str
    answers: str | None = None


def read_people(path: Path, *, held_out: bool) -> list[Person]:
    """Read one half of a folder of RealMem, or of a LoCoMo file."""
    if path.is_dir():
        files = sorted(path.glob("*.json"))
        middle = -(-3 * len(files) // 5)
        return [_noted(file) for file in (files[middle:] if held_out else files[:middle])]
    talks = zip(read_transcripts(path, format="locomo"), read_questions(path), strict=True)
    return [person for number, talk in enumerate(talks) if (number >= 3) is held_out for person in _speakers(*talk)]


def _noted(path: Path) -> Person:
    document: Any = decode(path.read_bytes(), str(path), "")
    rows = document["dialogues"]
    sessions = tuple(
        (
            row["current_time"][:10],
            tuple(Turn(one["speaker"] == "User", one["content"]) for one in row["dialogue_turns"]),
        )
        for row in rows
    )
    numbers = {row["session_uuid"]: number for number, row in enumerate(rows)}
    questions: list[Asked] = []
    for number, row in enumerate(rows):
        asked: Asked | None = None
        for place, turn in enumerate(row["dialogue_turns"]):
            if turn.get("is_query"):
                asked = Asked(number, place, turn["content"])
            used = [one for one in turn.get("memory_used", ()) if numbers.get(one["session_uuid"], number) < number]
            if asked is not None and "memory_used" in turn:
                notes = tuple(frozenset(terms(note["content"])) for note in used)
                questions += [asked._replace(notes=notes)] if notes else []
                asked = None
    return Person(path.stem, sessions, tuple(questions))


def _speakers(transcript: Any, questions: Sequence[Any]) -> Iterator[Person]:
    entries = [
        (entry, entry.wire.get("name") or entry.wire["content"].partition(":")[0]) for entry in transcript.entries()
    ]
    days = [(day, list(rows)) for day, rows in groupby(entries, key=lambda row: (row[0].ts or "")[:10])]
    for name in dict.fromkeys(speaker for _, speaker in entries):
        places = {
            entry.id: (number, place)
            for number, (_, rows) in enumerate(days)
            for place, (entry, speaker) in enumerate(rows)
            if speaker == name
        }
        sessions = tuple(
            (day, tuple(Turn(speaker == name, _said(entry, speaker)) for entry, speaker in rows)) for day, rows in days
        )
        answered = [one for one in questions if one.evidence and all(id in places for id in one.evidence)]
        asked = [Asked(len(days), 0, one.text, turns=tuple(places[id] for id in one.evidence)) for one in answered]
        yield Person(f"{transcript.session} {name}", sessions, tuple(asked))


def _said(entry: Any, speaker: str) -> str:
    """Return the text without the speaker's name before it, because a chat has none."""
    return str(entry.wire["content"]).removeprefix(f"{speaker}: ")


# -- rows ----------------------------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """The rows shown for one question."""

    texts: tuple[str, ...]
    """Sentences shown."""
    turns: frozenset[tuple[int, int]]
    tokens: int


def fit(ranked: Sequence[Sentence], counter: Counter) -> Shown:
    """Return the sentences that fit into the room, laid out as the product does: best first, each text once."""
    taken: list[Sentence] = []
    used, misses = 0, 0
    for one in ranked:
        begun = any((one.session, one.turn) == (other.session, other.turn) for other in taken)
        day = "" if any(one.ts == other.ts for other in taken) else f" {one.ts}"
        opening = "…" if begun else f"s-{one.session}§{one.turn + 1}{day}:"
        tokens = counter.text(f"{opening} {one.text}\n")
        if used + tokens > ROOM_TOKENS or any(one.text == other.text for other in taken):
            misses += 1
            if misses > 60:
                break
            continue
        taken.append(one)
        used += tokens
    return Shown(tuple(one.text for one in taken), frozenset((one.session, one.turn) for one in taken), used)


def share_shown(asked: Asked, shown: Shown) -> float:
    """Return the share of a question's evidence that is shown."""
    if asked.turns:
        return fmean(turn in shown.turns for turn in asked.turns)
    said = [set(terms(text)) for text in shown.texts]
    return fmean(any(says(one, set(note)) for one in said) for note in asked.notes)


def says(sentence: set[str], note: set[str]) -> bool:
    """Return whether a sentence says a note, by their terms."""
    return len(sentence & note) >= max(SHARED_TERMS, SHARED_FRACTION * min(len(sentence), len(note)))


def _sentences(number: int, day: str, turns: Sequence[Turn]) -> list[Sentence]:
    return [
        Sentence(number, place, start, stop, turn.text[start:stop], day)
        for place, turn in enumerate(turns)
        if turn.is_own
        for start, stop in sentences(turn.text)
    ]


Rank = Callable[[list[Sentence], str], Sequence[Sentence]]


def _bm25(b: float) -> Rank:
    """Return a ranking by BM25 (k1 1.2) with this discount for length; among equals the newer one is first."""
    postings: dict[str, dict[int, int]] = defaultdict(dict)
    lengths: list[int] = []

    def rank(said: list[Sentence], question: str) -> Sequence[Sentence]:
        for number in range(len(lengths), len(said)):
            found = terms(said[number].text)
            lengths.append(len(found))
            for term in found:
                postings[term][number] = postings[term].get(number, 0) + 1
        scores: dict[int, float] = defaultdict(float)
        mean_length = sum(lengths) / max(1, len(lengths))
        for term in set(terms(question)):
            held = postings.get(term, {})
            rarity = math.log(1 + (len(said) - len(held) + 0.5) / (len(held) + 0.5))
            for number, times in held.items():
                long = 1 - b + b * lengths[number] / mean_length
                scores[number] += rarity * times * 2.2 / (times + 1.2 * long)
        return [said[number] for number in sorted(scores, key=lambda number: (-scores[number], -number))]

    return rank


def _any(said: list[Sentence], question: str) -> Sequence[Sentence]:
    return random.Random(question).sample(said, len(said))


BASELINES: Mapping[str, Callable[[], Rank]] = {
    "any sentences": lambda: _any,
    "the newest": lambda: lambda said, question: said[::-1],
    "BM25": lambda: _bm25(0.75),
    "BM25, no discount for length": lambda: _bm25(0.0),
}


Answers = Iterator[tuple[Asked, Shown, float]]


def measure(people: Sequence[Person], tokenizer: str = "o200k_base") -> Iterator[tuple[str, int, float, float, float]]:
    """Yield for each ranking its name, questions, share shown, tokens, milliseconds."""
    counter = Counter(load_tokenizer(tokenizer))
    for name, make in BASELINES.items():
        yield name, *_measured(people, partial(_baseline, make, counter))
    yield "ours", *_measured(people, lambda person: _ours(person, counter))


def _baseline(make: Callable[[], Rank], counter: Counter, person: Person) -> Answers:
    return _ranked(person, make(), _sentences, counter)


def _measured(people: Sequence[Person], answers: Callable[[Person], Answers]) -> tuple[int, float, float, float]:
    rows = [
        (share_shown(asked, shown), shown.tokens, 1000 * seconds)
        for person in people
        for asked, shown, seconds in answers(person)
    ]
    return len(rows), fmean(row[0] for row in rows), fmean(row[1] for row in rows), median(row[2] for row in rows)


def _by_session(person: Person) -> Iterator[tuple[int, str, tuple[Turn, ...], list[Asked]]]:
    asked: dict[int, list[Asked]] = defaultdict(list)
    for question in person.questions:
        asked[question.session].append(question)
    for number, (day, turns) in enumerate((*person.sessions, ("", ()))):
        yield number, day, turns, asked[number]


def _ranked(
    person: Person, rank: Rank, read: Callable[[int, str, Sequence[Turn]], list[Sentence]], counter: Counter
) -> Answers:
    said: list[Sentence] = []
    for number, day, turns, questions in _by_session(person):
        for asked in questions:
            started = time.perf_counter()
            shown = fit(rank(said, asked.text), counter)
            yield asked, shown, time.perf_counter() - started
        said += read(number, day, turns)


def _ours(person: Person, counter: Counter) -> Answers:
    with open_store("memory:") as store:
        for number, day, turns, questions in _by_session(person):
            session = store.session(f"s-{number}", counter=counter)
            messages = [
                NewMessage(
                    message={"role": "user" if turn.is_own else "assistant", "content": turn.text},
                    principal=person.name if turn.is_own else None,
                    ts=day,
                )
                for turn in turns
            ]
            for asked in questions:
                session.extend(messages[len(session) : asked.turn])
                draft = session.draft()
                draft.append({"role": "user", "content": asked.text}, principal=person.name, ts=day or None)
                started = time.perf_counter()
                lines, _, _ = store.earlier_sessions().choose(draft, draft.state, ROOM_TOKENS, counter)
                seconds = time.perf_counter() - started
                said = [line.sealed.partition(": ")[2] for line in lines]
                parts = [part for text in said for part in text.split(" … ")]
                shown = Shown(
                    tuple(part[start:stop] for part in parts for start, stop in sentences(part)),
                    frozenset((int(line.session[2:]), line.ordinal - 1) for line in lines),
                    sum(counter.text(line.sealed + "\n") for line in lines),
                )
                yield asked, shown, seconds
            session.extend(messages[len(session) :])


def lines(paths: Sequence[Path], halves: Sequence[bool]) -> Iterator[str]:
    """Yield the table, as Markdown."""
    rows: list[list[str]] = []
    for path in paths:
        for held_out in halves:
            people = read_people(path, held_out=held_out)
            for name, questions, shown, tokens, milliseconds in measure(people):
                progress(path.name, name)
                half = "held out" if held_out else "development"
                figures = [f"{questions}", f"{shown:.3f}", f"{tokens:.0f}", f"{milliseconds:.1f}"]
                rows.append(["RealMem" if path.is_dir() else "LoCoMo", half, name, *figures])
    yield from table(HEAD, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table of these data."""
    parser = script(__doc__)
    parser.add_argument("data", type=Path, nargs="+", help="a folder of RealMem, or a LoCoMo file")
    parser.add_argument("--held-out", action="store_true", help="the half that nothing was set on, too")
    options = parser.parse_args(argv)
    halves = (False, True) if options.held_out else (False,)
    return publish(parser, options, {"earlier sessions": lambda: lines(options.data, halves)})


if __name__ == "__main__":
    raise SystemExit(main())
