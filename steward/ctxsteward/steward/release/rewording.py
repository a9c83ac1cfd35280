# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""Text that a model writes for one group of claims: a better wording, never a new claim.

A writer gets a group (one kind, one slot, the words that people said) and gives one line or nothing. The line is taken
only if it is still that claim: one sentence of 8 to 280 characters, about the same slot, with the same value and
polarity, with no number, name or address that the evidence does not hold, and mostly in its words. Whatever else comes
(prose, mark-up, another slot, an exception) is refused with a reason, and the extractive text stays. Evidence and trust
are the group's: a wording raises nothing. A night asks a writer only for records that came out of reconciling and are
about to be placed (`reword_record`), never for the words of a tool or an assistant; without a writer all of this is off.

Source: the state design (derived text has the least trust of its sources; records are claims of closed kinds).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import ValidationError

from ctxsteward.language.numbers import NUMBER_WORDS
from ctxsteward.language.sentences import sentences
from ctxsteward.language.values import normalize, typed_values
from ctxsteward.language.words import STOP, bigrams, stem
from ctxsteward.schemas.profile import Polarity
from ctxsteward.schemas.recommendation import TRUST, MetaRecommendation, RecommendationKind, Slot, Trust

from ..harvest.people.claims import MAX_TEXT_CHARS, MIN_TEXT_CHARS
from ..harvest.people.facts import facts
from ..harvest.people.preferences import preferences
from ..harvest.people.utterances import listed, listen
from ..observation import Observation
from ..transcript import ReplayedTranscript, ReplayedUtterance

Refusal = Literal[
    "nothing", "failed", "length", "lines", "markup", "prose", "number", "name", "slot", "polarity", "words"
]
SPOKEN: frozenset[Trust] = frozenset(("operator", "user"))
"""What a writer may read: the words of people."""
WORDED: frozenset[RecommendationKind] = frozenset(("preference", "correction", "fact", "decision"))
"""Kinds in people's words; the others are templates of ours."""
MAX_NEW_FRACTION = 0.4
"""Of the line's content words, the share that the evidence need not hold."""

_MARKUP = re.compile(r"[<>`{}\[\]|\\]|\b(?:system|assistant|user|human)\s*:|^\s*[-*#>]|https?://|www\.", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]+")
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w'-]+")
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
_CHINESE_DIGITS = re.compile(
    r"(?<![零一二三四五六七八九十百千万两])[零一二三四五六七八九十百千万两]++(?=[个元块年月日天点分次岁号人%页字])"
)
_NEGATIVE = re.compile(
    r"\b(?:not|never|no|don't|doesn't|do not|does not|won't|can't|cannot|avoids?|dislikes?|hates?|without|stop|refuses?|against|isn't|aren't)\b"
    r"|不|别|讨厌|从不|禁止|避免|反感|没有|拒绝|勿"
)
_MANNER = listed(
    """
    user users person speaker customer client prefer prefers preferred preference want wants like likes love
    loves ask asks always never should must please call called name named live lives living address addressed
    avoid avoids dislike dislikes hate hates
    """
)
_TOLD = (
    (re.compile(r"^(?:the |this )?(?:user|speaker|person|customer|client)'s\b", re.IGNORECASE), "My"),
    (re.compile(r"^(?:the |this )?(?:user|speaker|person|customer|client) (?:is|are)\b", re.IGNORECASE), "I am"),
    (re.compile(r"^(?:the |this )?(?:user|speaker|person|customer|client) (?:does not|doesn't)\b", re.IGNORECASE), "I don't"),
    (re.compile(r"^(?:the |this )?(?:user|speaker|person|customer|client) has\b", re.IGNORECASE), "I have"),
    (re.compile(r"^(?:the |this )?(?:user|speaker|person|customer|client) (\w+?)s\b", re.IGNORECASE), r"I \1"),
    (re.compile(r"^(?:the |this )?(?:user|speaker|person|customer|client)\b", re.IGNORECASE), "I"),
    (re.compile(r"^(?:该|这位)?(?:用户|客户|说话人)"), "我"),
)  # fmt: skip
"""A claim about the speaker, told by the speaker, so that the same tables read both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimGroup:
    """Claims of one slot, and what people said for them."""

    kind: RecommendationKind
    slot: Slot
    text: str
    """The extractive line."""
    quotes: tuple[str, ...]
    """The words of the cited spans."""
    trust: Trust
    value: str | int | float | None = None
    polarity: Polarity | None = None


Writer = Callable[[ClaimGroup], str | None]
"""One line for a group, or None; may be a model."""


class WrittenLine(NamedTuple):
    """The line that a group has in the end."""

    text: str
    trust: Trust
    """The group's, whoever wrote."""
    by_writer: bool
    refused: Refusal | None = None
    """Why the writer's line was not taken."""


class ScriptedWriter:
    """A writer for tests: its lines by attribute; nothing where it has none."""

    def __init__(self, lines: Mapping[str, str]) -> None:
        self._lines = dict(lines)
        self.asked: list[ClaimGroup] = []

    def __call__(self, group: ClaimGroup) -> str | None:
        self.asked.append(group)
        return self._lines.get(group.slot.attribute)


def group_of(observations: Sequence[Observation], quotes: Sequence[str], trusts: Sequence[Trust]) -> ClaimGroup:
    """A group out of observations of one kind and slot, the words they cite, and the trust of those.

    Raises `ValueError` where they differ in kind or slot, or cite nothing.
    """
    claims = {(seen.kind, seen.slot.subject, seen.slot.attribute) for seen in observations}
    if len(claims) != 1 or not quotes or not trusts:
        raise ValueError(f"{len(claims)} claims with {len(quotes)} quotes; a group is one claim with its evidence")
    first = observations[0]
    return ClaimGroup(
        kind=first.kind,
        slot=first.slot,
        text=first.text,
        quotes=tuple(quotes),
        trust=max(trusts, key=TRUST.index),
        value=first.value,
        polarity=first.polarity,
    )


def written_line(group: ClaimGroup, writer: Writer) -> WrittenLine:
    """The writer's line where it is still the group's claim, else the extractive one and why."""
    try:
        line = writer(group)
    except Exception:
        return WrittenLine(group.text, group.trust, by_writer=False, refused="failed")
    if line is None or not line.strip():
        return WrittenLine(group.text, group.trust, by_writer=False, refused="nothing")
    reason = refusal(line, group)
    if reason is not None:
        return WrittenLine(group.text, group.trust, by_writer=False, refused=reason)
    return WrittenLine(line, group.trust, by_writer=True)


def reword_record(record: MetaRecommendation, quotes: Sequence[str], writer: Writer) -> MetaRecommendation:
    """The record in the writer's words, where they are still its claim; evidence, support and trust stay its own.

    `quotes` are the words of its evidence. A record that rests on anything but a person's words is left as it is.
    """
    if record.trust not in SPOKEN or record.kind not in WORDED or not quotes:
        return record
    group = ClaimGroup(
        kind=record.kind, slot=record.slot, text=record.text, quotes=tuple(quotes), trust=record.trust,
        value=record.value, polarity=record.polarity,
    )  # fmt: skip
    line = written_line(group, writer)
    if not line.by_writer:
        return record
    try:
        return MetaRecommendation.model_validate(record.model_dump() | {"text": line.text})
    except ValidationError:
        return record


def refusal(line: str, group: ClaimGroup) -> Refusal | None:
    """Why a line is not the group's claim; None where it is."""
    if not MIN_TEXT_CHARS <= len(line) <= MAX_TEXT_CHARS:
        return "length"
    if line.splitlines() != [line] or not line.isprintable():
        return "lines"
    if _MARKUP.search(line):
        return "markup"
    if len(list(sentences(line))) != 1 or line.rstrip().endswith(("?", "？")):
        return "prose"
    said = " ".join((group.text, *group.quotes))
    if _new_numbers(line, said):
        return "number"
    if any(name.lower() not in said.lower() for name in _NAME.findall(line)):
        return "name"
    return _other_claim(line, said, group)


def _other_claim(line: str, said: str, group: ClaimGroup) -> Refusal | None:
    if bool(_NEGATIVE.search(line.lower())) != bool(_NEGATIVE.search(said.lower())):
        return "polarity"
    if isinstance(group.value, str) and not _holds(line, group.value) and _holds(said, group.value):
        return "slot"
    read = _claims(line)
    if read and not _is_same(read, group):
        return "slot"
    ours, theirs = _content(line), _content(said)
    if not ours & theirs and group.value is None:
        return "slot"
    return "words" if ours and len(ours - theirs) > MAX_NEW_FRACTION * len(ours) else None


def _new_numbers(line: str, said: str) -> bool:
    return not _numbers(line) <= _numbers(said)


def _numbers(text: str) -> set[str]:
    low = text.lower()
    found = {normalize(digits) for digits in _DIGITS.findall(text)} | set(_CHINESE_DIGITS.findall(text))
    found |= {str(NUMBER_WORDS[word]) for word in re.findall(r"[a-z]+", low) if word in NUMBER_WORDS and word != "one"}
    return found | {
        value.norm for value in typed_values(text) if value.kind in ("url", "email", "path", "address", "phone")
    }


def _holds(text: str, value: str) -> bool:
    return normalize(value) in normalize(text)


def _content(text: str) -> set[str]:
    words = {stem(word.lower()) for word in _WORD.findall(text) if word.lower() not in STOP | _MANNER}
    return words | (set() if text.isascii() else bigrams(text.replace("用户", "").replace("喜欢", "")))


def _is_same(read: Mapping[str, object], group: ClaimGroup) -> bool:
    """Whether what is read in a line is the group's slot, with the group's value where both are stated."""
    value = read.get(group.slot.attribute, group)
    if value is group:
        return group.slot.attribute.startswith(("about:", "likes", "correction:", "decision:"))
    return value is None or group.value is None or value == group.value


def _claims(line: str) -> dict[str, object]:
    """Attribute → value of the strict claims that our own harvesters read in the line, said by the speaker."""
    for pattern, first in _TOLD:
        line, count = pattern.subn(first, line, count=1)
        if count:
            break
    utterance = ReplayedUtterance(ordinal=1, ref="§1", role="user", text=line, trust="user", principal="speaker")
    heard = listen(
        ReplayedTranscript(
            source="line", session="line", principal="speaker", format="openai", digest="", utterances=(utterance,)
        )
    )
    return {
        seen.slot.attribute: seen.value for seen in (*preferences(heard), *facts(heard)) if seen.strength == "strict"
    }
