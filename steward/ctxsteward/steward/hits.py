"""How much use active records were: counted over a replayed session and the records that were in force.

    anticipated / events    later events that an active record foresaw
    fired / shown           records shown whose trigger came up (*used*)
    obeyed / judged         of those that fired, where it can be told, those complied with

An event is a tool error, or something a person had to say again or anew: an observation of a correction, preference or
fact. A tool-fix record foresees an error of the same tool, the same code and, where it names one, the same parameter;
it fires on a call of that tool with that parameter. Another record foresees an observation of its slot; it fires when
words of its slot, trigger or value are said after it was shown. Whether it was obeyed then: `judgements`. What words
cannot tell is counted as unjudged, and a rate of nothing is `Unscored`, never 0.

Records count that a session was shown in its head, and those that its turns were shown as facts; of these only what
comes from that turn on. `meta.hit_rate` is `Tally.hit_rate`: fired / shown, of records whose firing can be told.
Tallies add up in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxsteward.schemas.recommendation import MetaRecommendation

from .harvest.tool_calls import Step, steps
from .harvest.tool_episodes import Episode, episodes
from .harvest.tool_templates import Trigger
from .judgements import Judgement, Talk, Watched, by_calls, by_words, slot_of
from .observation import Observation
from .replayed import Replayed

SAID_KINDS = frozenset(("correction", "preference", "fact"))


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


FATES: Mapping[str, Hit] = {
    "untold": Hit(shown=1),
    "quiet": Hit(shown=1, judged=1),
    "unjudged": Hit(shown=1, judged=1, fired=1, unjudged=1),
    "complied": Hit(shown=1, judged=1, fired=1, complied=1),
    "contradicted": Hit(shown=1, judged=1, fired=1, contradicted=1),
}
"""What became of a record in one session: nothing can be told; its trigger did not come up; it did, and this is how."""
_FATES_OF: Mapping[Hit, str] = {hit: fate for fate, hit in FATES.items()}


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
        return added(self.hits.values())

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
    def fates(self) -> Mapping[str, tuple[str, ...]]:
        """Of one session: the records that it was shown, by what became of them."""
        found: dict[str, tuple[str, ...]] = {}
        for id_, hit in sorted(self.hits.items()):
            found[_FATES_OF[hit]] = (*found.get(_FATES_OF[hit], ()), id_)
        return found

    @property
    def counts(self) -> Mapping[str, int]:
        """The figures of a night's report."""
        total = self.total
        return {
            "events": self.events, "anticipated": self.anticipated, "shown": total.shown, "fired": total.fired,
            "obeyed": total.complied,
        }  # fmt: skip


class InForce:
    """Records in force, made ready once so that a session costs what it was shown and what happened in it.

    Of two with one id the later one counts.
    """

    def __init__(self, records: Iterable[MetaRecommendation | Watched] = (), under: InForce | None = None) -> None:
        """`under`: others, which count where these have not their ids."""
        self._records = {record.id: Watched.of(record) for record in records}
        self._under = under
        self._named: dict[str, list[str]] = {}
        self._slots: dict[tuple[str, str], list[str]] = {}
        self._triggers: dict[tuple[str, str], list[tuple[Trigger, str]]] = {}
        for id_, record in self._records.items():
            for name in record.names:
                self._named.setdefault(name, []).append(id_)
            if (trigger := record.tool_trigger) is not None:
                self._triggers.setdefault((trigger.tool, trigger.code), []).append((trigger, id_))
            if record.kind in SAID_KINDS:
                self._slots.setdefault(slot_of(record.slot), []).append(id_)

    def beside(self, records: Collection[MetaRecommendation | Watched]) -> InForce:
        """With these, too."""
        return InForce(records, self) if records else self

    def shown(self, names: Collection[str], but: Collection[str] = ()) -> list[Watched]:
        """Those that go by one of these names, by id; `but` those of these ids."""
        ids = {id_ for name in names for id_ in self._named.get(name, ()) if id_ not in but}
        found = [self._records[id_] for id_ in ids]
        if self._under is not None:
            found += self._under.shown(names, {*but, *self._records})
        return sorted(found, key=lambda record: record.id)

    def foresaw(self, error: Episode, but: Collection[str] = ()) -> bool:
        """Whether one of them is about this error; `but` those of these ids."""
        triggers = self._triggers.get((error.failed.tool, error.code), ())
        if any(foresees(trigger, error) for trigger, id_ in triggers if id_ not in but):
            return True
        return self._under is not None and self._under.foresaw(error, {*but, *self._records})

    def foresaw_slot(self, slot: tuple[str, str], but: Collection[str] = ()) -> bool:
        """Whether one of them is of this slot; `but` those of these ids."""
        if any(id_ not in but for id_ in self._slots.get(slot, ())):
            return True
        return self._under is not None and self._under.foresaw_slot(slot, {*but, *self._records})


def tally(
    replayed: Replayed, active: InForce | Iterable[MetaRecommendation | Watched], observed: Iterable[Observation] = ()
) -> Tally:
    """Count one session; `active`: records in force when it began, `observed`: what was harvested from it.

    Records are shown if `Replayed.shown` has one of their ids.
    """
    records = active if isinstance(active, InForce) else InForce(active)
    said = [one for one in observed if one.kind in SAID_KINDS]
    errors, calls = episodes(replayed), steps(replayed)
    foreseen = sum(records.foresaw(error) for error in errors)
    foreseen += sum(records.foresaw_slot(slot_of(one.slot)) for one in said)
    hits = {
        record.id: _hit(record, calls, said, _since(replayed, record.names & replayed.shown))
        for record in records.shown(replayed.shown)
    }
    return Tally(hits=hits, events=len(errors) + len(said), anticipated=foreseen)


def merged(tallies: Iterable[Tally]) -> Tally:
    """The sum of tallies, in any order."""
    rows: dict[str, list[Hit]] = {}
    events = anticipated = 0
    for one in tallies:
        events, anticipated = events + one.events, anticipated + one.anticipated
        for id_, hit in one.hits.items():
            rows.setdefault(id_, []).append(hit)
    return Tally(hits={id_: added(hits) for id_, hits in sorted(rows.items())}, events=events, anticipated=anticipated)


def tool_trigger(record: MetaRecommendation) -> Trigger | None:
    """When a tool-fix record applies; None for other records."""
    return Watched.of(record).tool_trigger


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


def added(hits: Iterable[Hit]) -> Hit:
    """Rows of one record together, or of many."""
    return Hit(*map(sum, zip(Hit(), *hits, strict=True)))


def _since(replayed: Replayed, names: Collection[str]) -> Talk:
    """What was said once a record was shown under one of its ids."""
    turns = dict(replayed.shown_from)
    return Talk(replayed, min(turns.get(name, 0) for name in names))


def _hit(record: Watched, calls: Sequence[Step], said: Sequence[Observation], talk: Talk) -> Hit:
    trigger = record.tool_trigger
    if trigger is not None:
        fired = [call for call in calls if fires(trigger, call)]
        return _judged(bool(fired), by_calls(trigger, fired))
    if record.kind not in SAID_KINDS:
        return FATES["untold"]
    spoken_of = [one for one in said if record.is_of(one) and talk.has(one)]
    words = record.words()
    if not words and not spoken_of:
        return FATES["untold"]
    return _judged(bool(spoken_of) or talk.is_about(words), by_words(record, spoken_of, talk))


def _judged(fired: bool, judgement: Judgement) -> Hit:
    return FATES[judgement if fired else "quiet"]


def _rate(part: int, whole: int, reason: str) -> float | Unscored:
    return part / whole if whole else Unscored(reason)
