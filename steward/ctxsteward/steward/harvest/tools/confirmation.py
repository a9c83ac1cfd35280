"""Check what people claim about the world against the answers of internal tools.

An answer with declared fields (`confirming_fields`) confirms a claim if one JSON object has the thing, most of the
claim's words, and the claim's value in a declared field. Nobody may have given that value before the answer, not even
in a call's arguments, because many tools repeat their input. An answer with another figure for the same thing denies
the claim. The answer is cited (`confirms`, `contradicts`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from ctxsteward.language.clauses import clauses
from ctxsteward.language.figures import figures
from ctxsteward.language.operators import sentences_of
from ctxsteward.language.statement import is_kin_of, read_statement
from ctxsteward.schemas.recommendation import Relation

from ...observations.observation import KINDS, MessageSpan, Observation
from ...observations.transcript import ReplayedTranscript, ReplayedUtterance
from .calls import values_in

CONFIRMED_EXTRACTOR = "confirmed/3"
CONFIRMED_FRACTION = 0.5
MAX_ANSWERS = 200
"""Answers of internal tools that are searched, the last ones."""
MAX_ANSWER_CHARS = 20_000
_AGO = re.compile(r"\bago\b|前")
"""Words of past time: a line with them does not say how things are."""


class _DeclaredField(NamedTuple):
    """A declared field of one object of a tool's answer."""

    answer: ReplayedUtterance
    text: str
    """Name and value of the field."""
    line: str
    """All names and values of its object."""


class _Claim(NamedTuple):
    """The parts of an observation that a tool's answer may confirm or deny."""

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


def confirmed(observations: Sequence[Observation], replayed: ReplayedTranscript) -> list[Observation]:
    """Add a citation to observations that an internal tool's answer confirms or denies."""
    claims = [_claim_of(observation) for observation in observations]
    if not any(claims):
        return list(observations)
    answers = [each for each in replayed.utterances if each.role == "tool" and each.trust == "tool_internal"]
    answers = answers[-MAX_ANSWERS:]
    lines = [(answer, line) for answer in answers for line in _lines_of(answer.text[:MAX_ANSWER_CHARS])]
    fields = [field for answer in answers for field in _declared_fields(answer)]
    return [
        observation if claim is None else _checked(observation, claim, lines, fields, replayed)
        for observation, claim in zip(observations, claims, strict=True)
    ]


def _claim_of(observation: Observation) -> _Claim | None:
    """Return the claim of an observation, or None if no answer can confirm or deny it."""
    spec = KINDS[observation.kind]
    if observation.reach != "shared" or observation.value is None or spec.is_template:
        return None
    value = f"{observation.value} {observation.unit}" if observation.unit else str(observation.value)
    amounts = _figures_in(value)
    is_of_world = not spec.votes_suffice
    has_figure = bool(amounts) and ":" in observation.slot.attribute
    if not (is_of_world or has_figure):
        return None
    keys = read_statement(value).keys
    return _Claim(
        amounts,
        keys,
        read_statement(observation.slot.attribute.partition(":")[2].replace("_", " ")).keys,
        read_statement(observation.text).keys - keys,
        is_of_world,
        has_figure,
    )


def _lines_of(text: str) -> list[str]:
    """Return the sentences of an answer, and a line of names and values for each object of its JSON."""
    values = list(values_in(text)) or [text]
    lines = [_in_a_line(_plain_fields(value)) for value in values if isinstance(value, dict)]
    return lines + [line for value in values if isinstance(value, str) for line in sentences_of(value)]


def _declared_fields(answer: ReplayedUtterance) -> Iterator[_DeclaredField]:
    """Yield the declared fields of an answer's JSON objects."""
    if not answer.confirming_fields or len(answer.text) > MAX_ANSWER_CHARS:
        return
    for value in values_in(answer.text):
        if isinstance(value, dict):
            plain = _plain_fields(value)
            line = _in_a_line(plain)
            for name in answer.confirming_fields:
                if name in plain:
                    yield _DeclaredField(answer, _in_a_line({name: plain[name]}), line)


def _plain_fields(value: Mapping[str, object]) -> dict[str, object]:
    return {name: item for name, item in value.items() if isinstance(item, str | int | float)}


def _in_a_line(fields: Mapping[str, object]) -> str:
    return " ".join(f"{name} {value}" for name, value in fields.items()).replace("_", " ")


def _checked(
    observation: Observation,
    claim: _Claim,
    lines: Sequence[tuple[ReplayedUtterance, str]],
    fields: Sequence[_DeclaredField],
    replayed: ReplayedTranscript,
) -> Observation:
    """Cite the first answer that confirms an observation, or else the last that denies it."""
    if claim.is_of_world:
        answer = next((field.answer for field in fields if _confirms(field, claim)), None)
        if answer is not None and not _is_said_before(answer, claim, replayed):
            return _citing(observation, answer, "confirms")
    if claim.has_figure:
        answer = next((answer for answer, line in reversed(lines) if _denies(line, claim)), None)
        if answer is not None:
            return _citing(observation, answer, "contradicts")
    return observation


def _citing(observation: Observation, answer: ReplayedUtterance, relation: Relation) -> Observation:
    start = len(answer.text) - len(answer.text.lstrip())
    span = MessageSpan(answer.ref, len(answer.text[:start].encode()), len(answer.text.rstrip().encode()), relation)
    return replace(observation, places=(*observation.places, span))


def _confirms(field: _DeclaredField, claim: _Claim) -> bool:
    """Whether a field has the claim's value, and its object is about the claim's thing and denies nothing."""
    if not (claim.figures or claim.value) or any(clause.sign < 0 for clause in clauses(field.line)):
        return False
    keys = read_statement(field.text).keys
    has_value = claim.figures <= _figures_in(field.text) and all(is_kin_of(key, keys) for key in claim.value)
    return has_value and _is_about(field.line, claim, claim.value | claim.thing)


def _denies(line: str, claim: _Claim) -> bool:
    """Whether a line is about the claim's thing, and has only other figures of the same unit."""
    found, units = _figures_in(line), {unit for _, unit in claim.figures}
    if not claim.thing or "" in units or claim.figures & found or _AGO.search(line):
        return False
    return any(unit in units for _, unit in found) and _is_about(line, claim, claim.thing)


def _is_said_before(answer: ReplayedUtterance, claim: _Claim, replayed: ReplayedTranscript) -> bool:
    """Whether the claim's value occurs in a message or in a call's arguments before an answer."""
    numbers = {number for number, _ in claim.figures}
    for utterance in replayed.utterances:
        if utterance is answer:
            return False
        for text in (utterance.text, *(call.arguments for call in utterance.calls)):
            if numbers and numbers <= {number for number, _ in _figures_in(text)}:
                return True
            if not numbers and all(is_kin_of(key, read_statement(text).keys) for key in claim.value):
                return True
    return False


def _is_about(line: str, claim: _Claim, needed: Set[str]) -> bool:
    """Whether a line has all needed words, and most of the claim's other words."""
    keys = read_statement(line).keys
    if not claim.about or not all(is_kin_of(key, keys) for key in needed):
        return False
    return sum(is_kin_of(key, keys) for key in claim.about) > CONFIRMED_FRACTION * len(claim.about)


def _figures_in(line: str) -> frozenset[tuple[str, str]]:
    return frozenset((figure.number, figure.unit) for figure in figures(line))
