"""What is worth remembering of chats: what of it does the steward learn, and what do readers say of what it keeps?

A folder holds a JSON file a person: ``dialogues`` with ``current_time``, ``dialogue_turns`` (``speaker`` User or
Assistant, ``content``) and ``extracted_memory`` (``content``: a note of that session). The files, in the order of their
names, are two halves: the first three fifths to develop on, the rest *held out*.

A *record* is what one session gives its user alone. *Ours, at once* are those in force from the first mention on: a
strict claim, or what is surely a fact; *ours, with what waits* has facts that are candidates, too. A note is *found*
where a record of the same session says it: both share three index terms, and half of those of the shorter one. A record
is *noted* where it says some note. Not all that is worth keeping is among the notes, so *noted* is a lower bound; a
record of a session without notes is never noted.

Beside ours stand as many sentences of what users said: any, the longest, any with "I" or "my"; and every sentence,
which is the most that can be found. Source: AvatarMemory/RealMemBench (MIT).

`measure_worth` asks what readers said of the records that a night makes active. Two readers who did not see each other
judged lines by one rubric (`docs/steward.md` prints it), each alone with its date and the speaker's name, as a prompt
would show it. Of the lines the labels are kept, by a hash, and no text: they are found again where the data lie. A
record that nobody judged counts nowhere, and the table says how many were. *Any sentence* are sentences drawn blindly
from the same talk. `LINE_CHECKS` need no reader: what they notice may be harmless, and is counted on all records.

Raises `InvalidTranscript`, `InputError`.
"""

from __future__ import annotations

import csv
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ctxsteward.envelope.transcripts.strict_json import decode
from ctxsteward.evals.asked_chats import AskedChat, is_chat_folder, read_chats
from ctxsteward.evals.documents import table
from ctxsteward.evals.intervals import wilson
from ctxsteward.language.words import sentences, terms
from ctxsteward.schemas import InputError, Message, MetaRecommendation
from ctxsteward.schemas.errors import InvalidTranscript
from ctxsteward.steward.artifacts.artifact import build_artifact
from ctxsteward.steward.harvest.harvester import EXTRACTOR, harvest, lasting
from ctxsteward.steward.harvest.people.utterances import Sentence, listen
from ctxsteward.steward.harvest.people.worth import needs_another
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.pipeline import IngestSettings, ingest
from ctxsteward.steward.observations.observation import Observation
from ctxsteward.steward.observations.transcript import ReplayedTranscript, ReplayedUtterance

from .advice import KEYS, TENANT, records_made_of
from .report import progress, publish, script

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
            source=f"{path.stem}/{number}",
            session=f"{path.stem}-{number}",
            principal=path.stem,
            format="openai",
            digest="",
            utterances=tuple(said),
        )
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
    )


def measure_noted(
    sessions: Mapping[Place, NotedSession], half: str, tell: Callable[[str], None] = lambda text: None
) -> list[NotedRow]:
    """Ours and the baselines."""
    records = []
    for (person, number), session in sessions.items():
        tell(f"{person}, session {number + 1}")
        records += [
            (((person, number), one.text), is_kept_at_once(one)) for one in harvest(session.replayed) if _is_kept(one)
        ]
    said = [
        (place, said.text[piece.start : piece.stop])
        for place, session in sessions.items()
        for said in session.replayed.users()
        for piece in sentences(said.text)
    ]
    rng, count = random.Random(half), len(records)
    own = [one for one in said if not _FIRST_PERSON.isdisjoint(one[1].lower().replace("’", "'").split())]
    chosen = {
        "ours, at once": [place_text for place_text, is_sure in records if is_sure],
        "ours, with what waits": [place_text for place_text, _ in records],
        "any sentence": rng.sample(said, min(count, len(said))),
        "the longest sentences": sorted(said, key=lambda one: -len(one[1]))[:count],
        "any sentence with I or my": rng.sample(own, min(count, len(own))),
        "every sentence": said,
    }
    notes = {place: [set(terms(note)) for note in session.notes] for place, session in sessions.items()}
    return [_row(half, strategy, texts, notes) for strategy, texts in chosen.items()]


def is_kept_at_once(one: Observation) -> bool:
    """Whether a first mention makes it a record of its author's own."""
    strong = one.strength == "strict" or (one.kind == "fact" and one.strength == "scored")
    return strong and one.reach == "user"


def _is_kept(one: Observation) -> bool:
    return one.reach == "user" and (one.kind == "fact" or is_kept_at_once(one))


def _row(
    half: str, strategy: str, texts: Sequence[tuple[Place, str]], notes: Mapping[Place, Sequence[set[str]]]
) -> NotedRow:
    records: dict[Place, list[set[str]]] = {}
    for place, text in texts:
        records.setdefault(place, []).append(set(terms(text)))
    said = {
        place: [[says(record, note) for note in of] for record in records.get(place, ())] for place, of in notes.items()
    }
    return NotedRow(
        half,
        strategy,
        len(texts),
        sum(any(row) for rows in said.values() for row in rows),
        sum(map(len, notes.values())),
        sum(any(column) for rows in said.values() for column in zip(*rows, strict=True)),
    )


def says(record: set[str], note: set[str]) -> bool:
    shared = len(record & note)
    return shared >= max(SHARED_TERMS, SHARED_FRACTION * min(len(record), len(note)))


def noted_cells(rows: Sequence[NotedRow]) -> list[list[str]]:
    """A line of the table each, under `NOTED_HEAD`."""
    return [
        [
            row.half,
            row.strategy,
            f"{row.records:,}",
            f"{row.records / max(1, row.notes):.2f}",
            *_percent(row.found, row.notes),
            *_percent(row.noted, row.records),
        ]
        for row in rows
    ]


def _percent(part: int, whole: int) -> tuple[str, str]:
    if not whole:
        return "", ""
    low, high = wilson(part, whole)[:2]
    return f"{100 * part / whole:.1f}", f"{100 * low:.0f} to {100 * high:.0f}"


# -- what readers say ----------------------------------------------------------------------------------------

WORTH = "worth"
"""Of the block in a document."""
WORTH_HEAD = (
    "talk",
    "half",
    "lines",
    "number",
    "judged",
    "useful, %",
    "95 %",
    "useless, %",
    "junk or wrong, %",
    "95 %",
    "harmful, %",
    "same label, %",
    "kappa",
)
Label = Literal["useful", "useless", "junk", "wrong", "harmful"]
_JUDGED = Path(__file__).with_name("judged_lines.csv")


class JudgedLine(NamedTuple):
    """What two readers said of a line."""

    talk: str
    half: str
    taken: str
    """record | sentence"""
    labels: tuple[Label, Label]


class WorthRow(NamedTuple):
    """Records, or sentences, of one talk and half; counts, of both readings together."""

    talk: str
    half: str
    lines: str
    number: int
    judged: int
    useful: int
    useless: int
    bad: int
    harmful: int
    same: int
    kappa: float | None
    checks: Mapping[str, int]


def line_key(kind: str, text: str) -> str:
    """What a line is found again by."""
    return hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest()[:16]


def judged_lines() -> dict[str, JudgedLine]:
    """All lines that were judged, by key."""
    with _JUDGED.open(encoding="utf-8", newline="") as stream:
        return {
            row["key"]: JudgedLine(row["talk"], row["half"], row["taken"], (row["first"], row["second"]))  # type: ignore[arg-type]
            for row in csv.DictReader(stream)
        }


def read_talk(path: Path, half: str) -> tuple[str, list[ReplayedTranscript]]:
    """The name of a talk and one half of its transcripts: a folder of RealMem or BEAM, or a file of any format."""
    if is_chat_folder(path):
        return "BEAM", [
            _replayed(chat) for chat in read_chats(path, "held-out" if half == "held out" else "development")
        ]
    if path.is_dir():
        return "RealMem", [session.replayed for session in read_noted(path, half).values()]
    loaded = LoadedItem(source=path.name, name=path.name, data=path.read_bytes())
    read = [one for one in ingest(loaded, IngestSettings()) if isinstance(one, ReplayedTranscript)]
    if not read:
        raise InvalidTranscript(
            str(path), "", "no transcript in it", "pass a file of chats or runs, or a folder of RealMem or BEAM"
        )
    return TALKS.get(read[0].format, read[0].format), read


TALKS = {"locomo": "LoCoMo", "tau-bench": "tau-bench"}


def _replayed(chat: AskedChat) -> ReplayedTranscript:
    said = (Message.from_wire(new.message) for new in chat.messages)
    utterances = (
        ReplayedUtterance(
            ordinal=at,
            ref=f"§{at}",
            role="user" if one.role == "user" else "assistant",
            text=one.text,
            trust="user" if one.role == "user" else "assistant",
            principal=f"user of {chat.name}",
        )
        for at, one in enumerate(said, 1)
    )
    return ReplayedTranscript(
        source=chat.name,
        session=chat.name,
        principal=f"user of {chat.name}",
        format="openai",
        digest="",
        utterances=tuple(utterances),
    )


def active_records(transcripts: Iterable[ReplayedTranscript]) -> list[MetaRecommendation]:
    """What a night over transcripts makes active for people: of tools, `advice` judges."""
    key = KEYS.address_key(TENANT)
    artifacts = (
        artifact
        for one in transcripts
        for artifact in build_artifact(one, lasting(harvest(one)), extractor=EXTRACTOR, key=key)
    )
    return [one for one in records_made_of(artifacts) if one.status == "active" and one.scope.tool is None]


def measure_worth(path: Path, half: str) -> list[WorthRow]:
    """What readers said of the records of one half of a talk, and of its sentences."""
    talk, transcripts = read_talk(path, half)
    judged = judged_lines()
    records = active_records(transcripts)
    known = [judged[key] for one in records if (key := line_key(one.kind, one.text)) in judged]
    blind = [one for one in judged.values() if (one.talk, one.half, one.taken) == (talk, half, "sentence")]
    checks = {name: sum(check(one) for one in records) for name, check in LINE_CHECKS.items()}
    return [
        _worth(talk, half, "ours", len(records), known, checks),
        _worth(talk, half, "any sentence", len(blind), blind, {}),
    ]


def _worth(
    talk: str, half: str, lines: str, number: int, judged: Sequence[JudgedLine], checks: Mapping[str, int]
) -> WorthRow:
    labels = Counter(label for one in judged for label in one.labels)
    return WorthRow(
        talk,
        half,
        lines,
        number,
        len(judged),
        labels["useful"],
        labels["useless"],
        labels["junk"] + labels["wrong"],
        labels["harmful"],
        sum(one.labels[0] == one.labels[1] for one in judged),
        kappa(judged),
        checks,
    )


def kappa(judged: Sequence[JudgedLine]) -> float | None:
    """Agreement of two readings beyond chance; None where there is nothing to agree on.

    Source: Cohen 1960, "A coefficient of agreement for nominal scales".
    """
    if not judged:
        return None
    first, second = (Counter(one.labels[reader] for one in judged) for reader in (0, 1))
    chance = sum(first[label] * second[label] for label in first) / len(judged) ** 2
    same = sum(one.labels[0] == one.labels[1] for one in judged) / len(judged)
    return None if chance == 1 else (same - chance) / (1 - chance)


def _points_elsewhere(record: MetaRecommendation) -> bool:
    lead, colon, rest = record.text.partition(": ")
    return any(needs_another(one) for one in _heard(rest if colon and record.scope.user else lead + colon + rest)[:1])


def _asks(record: MetaRecommendation) -> bool:
    return any(one.is_question for one in _heard(record.text))


def _heard(text: str) -> tuple[Sentence, ...]:
    said = ReplayedUtterance(ordinal=1, ref="§1", role="user", text=text, trust="user", principal="p")
    return listen(
        ReplayedTranscript(source="line", session="line", principal="p", format="openai", digest="", utterances=(said,))
    )


LINE_CHECKS: Mapping[str, Callable[[MetaRecommendation], bool]] = {
    "points elsewhere": _points_elsewhere,
    "asks": _asks,
    "denied by a tool": lambda one: any(each.relation == "contradicts" for each in one.evidence),
}
"""What can be seen without a reader: a pronoun that nothing in the line answers, a question, a claim that a tool
denied."""


def worth_cells(rows: Iterable[WorthRow]) -> list[list[str]]:
    """A line of the table each, under `WORTH_HEAD`."""
    return [
        [
            row.talk,
            row.half,
            row.lines,
            f"{row.number:,}",
            f"{row.judged:,}",
            *_percent(row.useful, 2 * row.judged),
            _percent(row.useless, 2 * row.judged)[0],
            *_percent(row.bad, 2 * row.judged),
            _percent(row.harmful, 2 * row.judged)[0],
            _percent(row.same, row.judged)[0],
            "" if row.kappa is None else f"{row.kappa:.2f}",
        ]
        for row in rows
    ]


HALVES = ("development", "held out")


def noted_block(folder: Path, halves: Sequence[str] = HALVES) -> Iterator[str]:
    """The table of a folder's notes."""
    rows = [row for half in halves for row in measure_noted(read_noted(folder, half), half, progress)]
    yield from table(NOTED_HEAD, noted_cells(rows), texts=2)


def worth_block(talks: Sequence[Path], halves: Sequence[str] = HALVES) -> Iterator[str]:
    """The table of what readers said; a file has one half."""
    rows: list[WorthRow] = []
    for half in halves:
        for talk in talks:
            if half == "development" or talk.is_dir():
                progress(f"{talk.name}, {half}")
                rows += measure_worth(talk, half)
    yield from table(WORTH_HEAD, worth_cells(rows), texts=3)
    for row in rows:
        if row.checks:
            noticed = ", ".join(f"{count} {name}" for name, count in row.checks.items() if count)
            progress(f"{row.talk}, without a reader: {noticed or 'nothing'}")


def main(argv: Sequence[str] | None = None) -> int:
    """Print one half of a table, or write both halves into the page."""
    parser = script(__doc__)
    parser.add_argument("figure", choices=("notes", "worth"))
    parser.add_argument("talks", type=Path, nargs="+", help="notes: a folder (RealMem); worth: folders or files")
    parser.add_argument("--held-out", action="store_true", help="the half to look at once, when all is done")
    options = parser.parse_args(argv)
    halves = HALVES if options.write else HALVES[1:] if options.held_out else HALVES[:1]
    if options.figure == "notes":
        return publish(parser, options, {NOTED: lambda: noted_block(options.talks[0], halves)})
    return publish(parser, options, {WORTH: lambda: worth_block(options.talks, halves)})


if __name__ == "__main__":
    raise SystemExit(main())
