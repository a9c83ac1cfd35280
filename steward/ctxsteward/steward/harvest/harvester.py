"""The harvest of one transcript: run all harvesters, and return their observations.

`night.batch_harvest` calls `harvest` in its worker processes. It reads people's sentences once for all harvesters, then
the tool calls. It is pure, uses no model, and takes time linear in the text. `EXTRACTOR` names the rules: a changed
rule raises its harvester's version, and transcripts are read again. Three rules are here because they apply to all
harvesters:

    borrowed words   Text of a tool or the assistant that a person pastes is not the person's claim. A claim is borrowed
                     if most of its runs of three words (characters, in Chinese and Japanese), or of the runs after a
                     colon, were said earlier by somebody who is no person. A changed value breaks the runs.
    one claim        A sentence gives each claim once, the strict one before the broad one.
    confirmed        A person's claim about the world is confirmed if a tool with declared fields (`confirming_fields`)
                     answered the same in the same transcript: one JSON object with the thing, most of the claim's
                     words, and the claim's value in a declared field. Nobody may have said that value before the
                     answer, not even in a call's arguments, because many tools repeat their input. The answer is cited
                     (`confirms`). If an internal tool's answer has another figure for the same thing, it denies the
                     claim (`contradicts`).

An eval failure is a record about the agent: a template over a failed scorer's name and reason
(`ReplayedTranscript.eval_failures`: ``SCORER: REASON`` or ``SCORER``), with the user's last request as its evidence.

Claims for the session, the project or the speaker alone only measure how the session went (`usage`), and are not stored
(`lasting`).

Source: the state design (derived text has the least trust of its sources; origin is bound where text is written).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from ctxsteward.language.clauses import clauses
from ctxsteward.language.figures import figures
from ctxsteward.language.operators import sentences_of
from ctxsteward.language.statement import is_kin_of, read_statement
from ctxsteward.schemas.recommendation import Relation, Slot

from ..artifacts.artifact import cut
from ..observations.observation import KINDS, Harvester, MessageSpan, Observation
from ..observations.transcript import ReplayedTranscript, ReplayedUtterance
from .people.claims import MAX_TEXT_CHARS
from .people.corrections import CORRECTIONS_EXTRACTOR, corrections
from .people.own_words import OWN_WORDS, OWN_WORDS_EXTRACTOR, sentences_of_people
from .people.preferences import PREFERENCES_EXTRACTOR, preferences
from .people.utterances import Sentence, listen
from .tools.calls import values_in
from .tools.errors import TOOL_ERRORS_EXTRACTOR, tool_errors
from .tools.statements import STATEMENTS_EXTRACTOR, statements

BORROWED_EXTRACTOR = "borrowed/1"
RUN = 3
BORROWED_FRACTION = 0.7
_INTRODUCED = re.compile(r"[:：]\s")
_PEOPLE = ("operator", "user")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")

Run = tuple[str, ...]
"""`RUN` words in a row."""


def own_words(observations: Sequence[Observation], replayed: ReplayedTranscript) -> list[Observation]:
    """Return the observations whose claims are in the person's own words."""
    if not observations or all(said.trust in _PEOPLE for said in replayed.utterances):
        return list(observations)
    places = {said.ref: at for at, said in enumerate(replayed.utterances)}
    claims = []
    for observation in observations:
        ref, start, stop, _ = observation.places[0]
        claims.append((observation, _parts(cut(replayed.utterances[places[ref]].text, start, stop) or "")))
    first = _first({run for _, parts in claims for runs in parts for run in runs}, replayed.utterances)
    return [
        observation
        for observation, parts in claims
        if KINDS[observation.kind].is_template
        or not any(_is_borrowed(runs, places[observation.places[0].ref], first, replayed) for runs in parts)
    ]


def _parts(text: str) -> list[list[Run]]:
    """Return the runs of words of a claim, and of its text after a colon."""
    introduced = _INTRODUCED.split(text, maxsplit=1)[1:]
    return [list(_runs(part)) for part in (text, *introduced)]


def _is_borrowed(runs: Sequence[Run], at: int, first: dict[Run, int], replayed: ReplayedTranscript) -> bool:
    if replayed.utterances[at].trust not in _PEOPLE:
        return False  # the claim has no person's trust anyway
    others = sum(replayed.utterances[first[run]].trust not in _PEOPLE for run in runs)
    return bool(runs) and others >= BORROWED_FRACTION * len(runs)


def _first(wanted: set[Run], utterances: Iterable[ReplayedUtterance]) -> dict[Run, int]:
    """Return the first utterance of each of these runs."""
    first: dict[Run, int] = {}
    lengths = sorted({len(run) for run in wanted})
    for at, said in enumerate(utterances):
        words = _WORD.findall(said.text.casefold())
        for length in lengths:
            for run in wanted.intersection(_in_a_row(words, length)):
                first.setdefault(run, at)
    return first


def _runs(text: str) -> Iterator[Run]:
    """Yield all runs of words; a text shorter than a run is one run of at least two words."""
    words = _WORD.findall(text.casefold())
    return _in_a_row(words, min(RUN, max(2, len(words))))


def _in_a_row(words: Sequence[str], length: int) -> Iterator[Run]:
    return zip(*(words[at:] for at in range(length)), strict=False)


CONFIRMED_EXTRACTOR = "confirmed/3"
CONFIRMED_FRACTION = 0.5
MAX_ANSWERS = 200
"""Answers of internal tools that are searched, the last ones."""
MAX_ANSWER_CHARS = 20_000


def confirmed(observations: Sequence[Observation], replayed: ReplayedTranscript) -> list[Observation]:
    """Add a citation to observations that an internal tool's answer confirms or denies."""
    claims = [_claim_of(one) for one in observations]
    if not any(claims):
        return list(observations)
    answers = [said for said in replayed.utterances if said.role == "tool" and said.trust == "tool_internal"]
    lines = [(said, line) for said in answers[-MAX_ANSWERS:] for line in _stated(said.text[:MAX_ANSWER_CHARS])]
    read = [answer for said in answers[-MAX_ANSWERS:] for answer in _fields_read(said)]
    return [
        one if claim is None else _checked(one, claim, lines, read, replayed)
        for one, claim in zip(observations, claims, strict=True)
    ]


class _FieldRead(NamedTuple):
    """A declared field of one object of a tool's answer."""

    said: ReplayedUtterance
    value: str
    """Name and value of the field."""
    line: str
    """All names and values of its object."""


def _fields_read(said: ReplayedUtterance) -> Iterator[_FieldRead]:
    """The declared fields in an answer; none where it is no JSON."""
    if not said.confirming_fields or len(said.text) > MAX_ANSWER_CHARS:
        return
    for value in values_in(said.text):
        if isinstance(value, dict):
            plain = _plain_fields(value)
            line = _in_a_line(plain)
            named = ((name, plain[name]) for name in said.confirming_fields if name in plain)
            yield from (_FieldRead(said, _in_a_line({name: told}), line) for name, told in named)


def _plain_fields(value: Mapping[str, object]) -> dict[str, object]:
    return {name: told for name, told in value.items() if isinstance(told, str | int | float)}


def _in_a_line(plain: Mapping[str, object]) -> str:
    return " ".join(f"{name} {told}" for name, told in plain.items()).replace("_", " ")


class _ToolClaim(NamedTuple):
    """The parts of a claim that a tool's answer may confirm or deny."""

    figures: frozenset[tuple[str, str]]
    """Numbers with their units."""
    value: frozenset[str]
    """Keys of the value's words."""
    thing: frozenset[str]
    """Keys of the words for the thing with the value."""
    about: frozenset[str]
    """Keys of the claim's other words."""
    is_of_world: bool
    """Whether votes do not suffice, so that an answer must confirm it."""
    has_figure: bool
    """Whether it gives a thing a figure, so that another figure denies it."""


def _claim_of(one: Observation) -> _ToolClaim | None:
    """Return the claim of an observation, or None if no answer can confirm or deny it."""
    spec = KINDS[one.kind]
    if one.reach != "shared" or one.value is None or spec.is_template:
        return None
    value = f"{one.value} {one.unit}" if one.unit else str(one.value)
    amounts = _figures_in(value)
    is_of_world = not spec.votes_suffice
    has_figure = bool(amounts) and ":" in one.slot.attribute
    if not (is_of_world or has_figure):
        return None
    keys = read_statement(value).keys
    return _ToolClaim(
        amounts,
        keys,
        read_statement(one.slot.attribute.partition(":")[2].replace("_", " ")).keys,
        read_statement(one.text).keys - keys,
        is_of_world,
        has_figure,
    )


def _checked(
    one: Observation,
    claim: _ToolClaim,
    lines: Sequence[tuple[ReplayedUtterance, str]],
    read: Sequence[_FieldRead],
    replayed: ReplayedTranscript,
) -> Observation:
    """Cite the first answer that confirms an observation, or else the last that denies it."""
    if claim.is_of_world:
        said = next((field.said for field in read if _says_the_same(field, claim)), None)
        if said is not None and not _is_said_before(said, claim, replayed):
            return _citing(one, said, "confirms")
    if claim.has_figure:
        said = next((said for said, line in reversed(lines) if _says_otherwise(line, claim)), None)
        if said is not None:
            return _citing(one, said, "contradicts")
    return one


def _citing(one: Observation, said: ReplayedUtterance, relation: Relation) -> Observation:
    start = len(said.text) - len(said.text.lstrip())
    span = MessageSpan(said.ref, len(said.text[:start].encode()), len(said.text.rstrip().encode()), relation)
    return replace(one, places=(*one.places, span))


def _stated(text: str) -> list[str]:
    """Return the sentences of an answer, or a line of names and values for each object of its JSON."""
    values = list(values_in(text)) or [text]
    lines = [_in_a_line(_plain_fields(value)) for value in values if isinstance(value, dict)]
    return lines + [line for value in values if isinstance(value, str) for line in sentences_of(value)]


def _says_the_same(field: _FieldRead, claim: _ToolClaim) -> bool:
    if not (claim.figures or claim.value) or any(clause.sign < 0 for clause in clauses(field.line)):
        return False
    told = read_statement(field.value).keys
    has_value = claim.figures <= _figures_in(field.value) and all(is_kin_of(key, told) for key in claim.value)
    return has_value and _is_about(field.line, claim, claim.value | claim.thing)


def _is_said_before(answer: ReplayedUtterance, claim: _ToolClaim, replayed: ReplayedTranscript) -> bool:
    """Whether the claim's value occurs in a message or in a call's arguments before an answer."""
    numbers = {number for number, _ in claim.figures}
    for said in replayed.utterances:
        if said is answer:
            return False
        for text in (said.text, *(call.arguments for call in said.calls)):
            if numbers and numbers <= {number for number, _ in _figures_in(text)}:
                return True
            if not numbers and all(is_kin_of(key, read_statement(text).keys) for key in claim.value):
                return True
    return False


_AGO = re.compile(r"\bago\b|前")
"""Words of past time: such a line does not say how things are."""


def _says_otherwise(line: str, claim: _ToolClaim) -> bool:
    """Whether a line is about the claim's thing, and has only other figures of the same unit."""
    found, units = _figures_in(line), {unit for _, unit in claim.figures}
    if not claim.thing or "" in units or claim.figures & found or _AGO.search(line):
        return False
    return any(unit in units for _, unit in found) and _is_about(line, claim, claim.thing)


def _figures_in(line: str) -> frozenset[tuple[str, str]]:
    return frozenset((figure.number, figure.unit) for figure in figures(line))


def _is_about(line: str, claim: _ToolClaim, needed: Set[str]) -> bool:
    """Whether a line has all needed words, and most of the claim's other words."""
    told = read_statement(line).keys
    if not claim.about or not all(is_kin_of(key, told) for key in needed):
        return False
    return sum(is_kin_of(key, told) for key in claim.about) > CONFIRMED_FRACTION * len(claim.about)


EVAL_FAILURES_EXTRACTOR = "eval_failures/1"
MAX_NAME_CHARS = 80
_NOT_NAME = re.compile(r"[^\w.@/-]+")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff<>`\[\]{}]+")


def eval_failures(every: Sequence[Sentence]) -> list[Observation]:
    """Return an observation for each failed scorer, if there are user's words to cite."""
    sentences = [sentence for sentence in every if sentence.said.role == "user"]
    if not sentences:
        return []
    seen: dict[str, Observation] = {}
    for failure in sentences[-1].talk.eval_failures:
        name, _, reason = failure.partition(":")
        scorer = _NOT_NAME.sub("-", name.strip()).strip("-")[:MAX_NAME_CHARS].lower()
        if scorer and scorer not in seen:
            seen[scorer] = _observation(scorer, " ".join(_UNSAFE.sub(" ", reason).split()), sentences[-1])
    return list(seen.values())


def _observation(scorer: str, reason: str, cited: Sentence) -> Observation:
    text = f"The eval {scorer} failed" + (f": {reason}" if reason else ".")
    return Observation(
        kind="eval_failure",
        text=text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1].rstrip() + "…",
        slot=Slot(subject="agent", attribute=f"eval:{scorer}", cardinality="many"),
        places=(cited.place(),),
        strength="strict",
        score=1.0,
        reach="shared",
        principal=cited.talk.principal,
        polarity="negative",
        trigger=f"eval:{scorer}",
        ts=cited.said.ts or cited.talk.started,
        extractor=EVAL_FAILURES_EXTRACTOR,
    )


Hearing = Callable[[Sequence[Sentence]], list[Observation]]
"""A harvester of what people say."""

HEARD: Mapping[str, tuple[str, Hearing]] = MappingProxyType(
    {
        "corrections": (CORRECTIONS_EXTRACTOR, corrections),
        "preferences": (PREFERENCES_EXTRACTOR, preferences),
        "eval_failures": (EVAL_FAILURES_EXTRACTOR, eval_failures),
        "own_words": (OWN_WORDS_EXTRACTOR, sentences_of_people),
    }
)
"""Harvesters of people's sentences, with the versions of their rules; a new version reads old transcripts again."""
STRUCTURAL: Mapping[str, tuple[str, Harvester]] = MappingProxyType(
    {
        "tool_errors": (TOOL_ERRORS_EXTRACTOR, tool_errors),
        "statements": (STATEMENTS_EXTRACTOR, statements),
    }
)


EXTRACTOR_VERSION = ",".join(version for version, _ in (*HEARD.values(), *STRUCTURAL.values()))
"""Changes with the rules of harvesters."""
EXTRACTOR = f"{EXTRACTOR_VERSION},{BORROWED_EXTRACTOR},{CONFIRMED_EXTRACTOR}"
"""Changes with any rule."""


def harvest(replayed: ReplayedTranscript) -> tuple[Observation, ...]:
    """Return all observations of a transcript, each claim of a sentence once."""
    sentences = listen(replayed)
    heard = [observation for _, hearing in HEARD.values() for observation in hearing(sentences)]
    structural = [observation for _, harvester in STRUCTURAL.values() for observation in harvester(replayed)]
    kept = confirmed(own_words(_once(heard), replayed), replayed)
    told = {one.places[0].ref: one.places[0] for one in kept if one.reach == "shared" and not is_own_words(one)}
    remaining = []
    for one in kept:
        place, other = one.places[0], told.get(one.places[0].ref)
        is_covered = other is not None and place.start < other.stop and other.start < place.stop
        if not (is_covered and is_own_words(one)):  # a cue found the same words
            remaining.append(one)
    return (*remaining, *structural)


def is_own_words(one: Observation) -> bool:
    """Whether no cue found an observation, so that it counts only if several people say alike."""
    return one.slot.attribute == OWN_WORDS


def lasting(observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations that may hold for everybody."""
    return [one for one in observations if one.reach == "shared"]


def _once(observations: Iterable[Observation]) -> list[Observation]:
    """Keep each claim of a sentence once, strict ones before broad ones."""
    given = list(observations)
    kept: dict[str, list[Observation]] = {}
    dropped = set()
    # Templates and strict claims come first, because a claim is dropped for one before it.
    ranked = sorted(
        enumerate(given), key=lambda each: not KINDS[each[1].kind].is_template and each[1].strength != "strict"
    )
    for number, seen in ranked:
        beside = kept.setdefault(seen.places[0].ref, [])
        if any(_says_it(other, seen) for other in beside):
            dropped.add(number)
        elif not KINDS[seen.kind].is_template:
            beside.append(seen)
    return [seen for number, seen in enumerate(given) if number not in dropped]


def _says_it(other: Observation, seen: Observation) -> bool:
    """Whether an observation makes another one of the same sentence redundant."""
    one, two = other.places[0], seen.places[0]
    if KINDS[seen.kind].is_template or one.stop <= two.start or two.stop <= one.start:
        return False
    if two.start <= one.start and two.stop > one.stop + 1:  # it goes on where the other ends
        return False
    return other.slot.attribute == seen.slot.attribute
