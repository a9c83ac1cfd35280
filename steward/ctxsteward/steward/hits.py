"""How much use active records were: counted over a replayed session and the records that were in force.

    anticipated / events    later events that an active record foresaw
    fired / shown           records shown whose trigger came up (*used*)
    obeyed / judged         of those that fired, where it can be told, those complied with

An event is a tool error, or something a person had to say again or anew: an observation of a correction, preference or
fact. A tool-fix record foresees an error of the same tool, the same code and, where it names one, the same parameter;
it fires on a call of that tool with that parameter; it is contradicted if such a call came back with that code, and
complied with if one came back without. Another record foresees an observation of its slot; it fires when words of its
slot, trigger or value are said; it is contradicted when a person had to speak of its slot again, or the assistant says
what it asks to avoid; it is complied with when the assistant says its value, or keeps from it. What words cannot tell
is counted as unjudged, and a rate of nothing is `Unscored`, never 0.

`meta.hit_rate` is `Tally.hit_rate`: fired / shown, of records whose firing can be told. Tallies add up in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ctxsteward.schemas.recommendation import MetaRecommendation

from .harvest.tool_calls import Step, name_words, steps
from .harvest.tool_episodes import Episode, episodes
from .harvest.tool_templates import Trigger, parse_trigger
from .observation import Observation
from .replayed import Replayed

SAID_KINDS = frozenset(("correction", "preference", "fact"))
_ABOUT = frozenset(("user", "agent", "assistant", "the", "for", "and", "when"))
_WORD = re.compile(r"[^\W\d_]{3,}|\d[\w.-]*|[\u3400-\u9fff]{1,}")

Judgement = Literal["complied", "contradicted", "unjudged"]


@dataclass(frozen=True, slots=True)
class Unscored:
    """No figure, and why."""

    reason: str


class Hit(NamedTuple):
    """One record's row; each session counts once."""

    shown: int = 0
    judged: int = 0
    """Sessions it was shown in where its firing can be told."""
    fired: int = 0
    complied: int = 0
    contradicted: int = 0
    unjudged: int = 0
    """Fired, and words cannot tell whether it was obeyed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of sessions; `a + b` is the tally of both."""

    hits: Mapping[str, Hit] = field(default_factory=dict)
    """By id of the record, of records shown."""
    events: int = 0
    anticipated: int = 0

    def __add__(self, other: Tally) -> Tally:
        return merged((self, other))

    @property
    def total(self) -> Hit:
        """All records together."""
        return _sum(self.hits.values())

    @property
    def anticipated_rate(self) -> float | Unscored:
        """Events that an active record foresaw / events."""
        return _rate(self.anticipated, self.events, "no events")

    @property
    def hit_rate(self) -> float | Unscored:
        """Records that fired / records shown whose firing can be told: `meta.hit_rate`."""
        return _rate(self.total.fired, self.total.judged, "no record shown whose firing can be told")

    @property
    def obeyed_rate(self) -> float | Unscored:
        """Records complied with / records that fired and can be judged."""
        total = self.total
        return _rate(total.complied, total.complied + total.contradicted, "no record fired that can be judged")

    @property
    def counts(self) -> Mapping[str, int]:
        """The figures of a night's report."""
        total = self.total
        return {
            "events": self.events, "anticipated": self.anticipated, "shown": total.shown, "fired": total.fired,
            "obeyed": total.complied,
        }  # fmt: skip


def tally(replayed: Replayed, active: Iterable[MetaRecommendation], observed: Iterable[Observation] = ()) -> Tally:
    """Count one session; `active`: records in force when it began, `observed`: what was harvested from it.

    Records are shown if `Replayed.shown` has their ids.
    """
    records = {record.id: record for record in active}
    said = [one for one in observed if one.kind in SAID_KINDS]
    errors, calls = episodes(replayed), steps(replayed)
    triggers = [t for record in records.values() if (t := tool_trigger(record)) is not None]
    slots = {_slot(r.slot.subject, r.slot.attribute) for r in records.values() if r.kind in SAID_KINDS}
    foreseen = sum(any(foresees(trigger, error) for trigger in triggers) for error in errors)
    foreseen += sum(_slot(one.slot.subject, one.slot.attribute) in slots for one in said)
    voices = _Voices(replayed)
    hits = {id: _hit(record, calls, said, voices) for id, record in sorted(records.items()) if id in replayed.shown}
    return Tally(hits=hits, events=len(errors) + len(said), anticipated=foreseen)


def merged(tallies: Iterable[Tally]) -> Tally:
    """The sum of tallies, in any order."""
    rows: dict[str, list[Hit]] = {}
    events = anticipated = 0
    for one in tallies:
        events, anticipated = events + one.events, anticipated + one.anticipated
        for id_, hit in one.hits.items():
            rows.setdefault(id_, []).append(hit)
    return Tally(hits={id_: _sum(hits) for id_, hits in sorted(rows.items())}, events=events, anticipated=anticipated)


def tool_trigger(record: MetaRecommendation) -> Trigger | None:
    """When a tool-fix record applies; None for other records."""
    return parse_trigger(record.trigger) if record.kind == "tool_fix" and record.trigger else None


def foresees(trigger: Trigger, error: Episode) -> bool:
    """Whether a record is about this error: same tool, same code, same parameter where it names one."""
    return (
        trigger.tool == error.failed.tool
        and trigger.code == error.code
        and (trigger.parameter is None or trigger.parameter in error.parameters)
    )


def fires(trigger: Trigger, call: Step) -> bool:
    """Whether a record applies to this call: its tool, with the parameter where the record names one."""
    return trigger.tool == call.tool and (trigger.parameter is None or trigger.parameter in (call.arguments or {}))


class _Voices:
    """What was said, folded for searching."""

    def __init__(self, replayed: Replayed) -> None:
        self.assistant = _folded(said.text for said in replayed.utterances if said.role == "assistant")
        self.user = _folded(said.text for said in replayed.users())


def _hit(record: MetaRecommendation, calls: Sequence[Step], said: Sequence[Observation], voices: _Voices) -> Hit:
    trigger = tool_trigger(record)
    if trigger is not None:
        fired = [call for call in calls if fires(trigger, call)]
        return _judged(bool(fired), _by_calls(trigger, fired))
    if record.kind not in SAID_KINDS:
        return Hit(shown=1)
    again = any(
        _slot(o.slot.subject, o.slot.attribute) == _slot(record.slot.subject, record.slot.attribute) for o in said
    )
    topic = _topic(record)
    if not topic and not again:
        return Hit(shown=1)
    came_up = again or any(_says(text, word) for word in topic for text in (voices.user, voices.assistant))
    return _judged(came_up, "contradicted" if again else _by_words(record, voices.assistant))


def _judged(fired: bool, judgement: Judgement) -> Hit:
    if not fired:
        return Hit(shown=1, judged=1)
    return Hit(shown=1, judged=1, fired=1)._replace(**{judgement: 1})


def _by_calls(trigger: Trigger, fired: Sequence[Step]) -> Judgement:
    answered = [call for call in fired if call.answer is not None]
    if any(call.failure is not None and call.failure.code == trigger.code for call in answered):
        return "contradicted"
    return "complied" if answered else "unjudged"


def _by_words(record: MetaRecommendation, assistant: str) -> Judgement:
    if record.value is None or not assistant:
        return "unjudged"
    says = _says(assistant, str(record.value).casefold())
    if record.polarity == "negative":
        return "contradicted" if says else "complied"
    return "complied" if says else "unjudged"


def _topic(record: MetaRecommendation) -> frozenset[str]:
    """Words by which a record's slot, trigger or value would come up."""
    words = {*name_words(record.slot.attribute), *_words(record.trigger or ""), *_words(str(record.value or ""))}
    words |= set(_words(record.slot.attribute)) | set(_words(record.slot.subject))
    return frozenset(word for word in words if word not in _ABOUT and (len(word) > 2 or not word.isascii()))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("_", " "))


def _says(text: str, word: str) -> bool:
    if not word.isascii():
        return word in text
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text) is not None


def _folded(texts: Iterable[str]) -> str:
    return "\n".join(texts).casefold()


def _slot(subject: str, attribute: str) -> tuple[str, str]:
    return subject.casefold(), attribute.casefold()


def _sum(hits: Iterable[Hit]) -> Hit:
    return Hit(*map(sum, zip(Hit(), *hits, strict=True)))


def _rate(part: int, whole: int, reason: str) -> float | Unscored:
    return part / whole if whole else Unscored(reason)
