"""The use of active records in one session: events they anticipated, and whether they fired and were obeyed.

`night.batch_harvest` calls `tally` for each session. The sums go to the night's report, the ledger's table of uses (and
so into a record's value in the slice), and the canary.

    anticipated / events    later events that an active record foresaw
    fired / shown           records shown whose trigger came up (*used*)
    obeyed / judged         fired records that the assistant complied with, of those that can be judged

An event is a tool error, or something a person says anew (`KindSpec.is_said_anew`). A tool fix foresees an error of the
same tool, code and, where it names one, parameter; it fires on a call with that parameter and is judged by the answers.
Another record foresees an observation of its slot, fires when words of its slot, trigger or value come up, and is
judged by the assistant's words until a person speaks of the slot:

    complied       the assistant said the record's value, or did not say it where the record asks to avoid it
    contradicted   the assistant disobeyed, and a person had to repeat the record's claim
    unjudged       words cannot tell

A person who only repeats a wish was not disobeyed. The assistant disobeyed if it said the value that the record asks to
avoid; or if it did not say the record's value, and either it spoke of the topic, or the person corrects it or complains
about repeating themselves ("as I said", 我说过). Tallies add up in any order.

Source: the layered-envelope design (records shown, fired, obeyed).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.schemas.profile import Polarity
from ctxsteward.schemas.recommendation import RecommendationKind, Slot

from ..observations.observation import KINDS, Observation
from ..observations.transcript import ReplayedTranscript, ReplayedUtterance
from .tools.calls import ToolStep, name_words, steps
from .tools.episodes import ErrorEpisode, episodes
from .tools.templates import FixTrigger, parse_trigger

Judgement = Literal["complied", "contradicted", "unjudged"]

_COMMON_WORDS = frozenset(("user", "agent", "assistant", "the", "for", "and", "when"))
_WORD = re.compile(r"[^\W\d_]{3,}|\d[\w.-]*|[\u3400-\u9fff]{1,}")
_AGAIN = re.compile(
    r"\bagain\b|\bonce more\b|\bhow (?:many times|often)\b|\bi(?:'ve| have)? (?:already |just )?(?:said|told you|asked"
    r"|mentioned|wrote)\b|\balready (?:said|told|asked|mentioned)\b|\b(?:like|as) i said\b|\bremember\b|\bdidn't i\b"
    r"|\bstill (?:not|in|using|writing|answering|giving|showing)\b"
    r"|我(?:都|已经|早就|刚才|刚刚|之前|前面|上次|明明)*(?:说|讲|提|告诉|要求|强调)(?:你|您)?过"
    r"|再说一(?:遍|次)|又(?:用|是|在|给|错|忘)|不是(?:说|告诉)[^，,。]{0,6}(?:吗|过|了)|怎么(?:还|又)|还是(?:在)?用|多少(?:遍|次)|几(?:遍|次)了|记得吗"
)
"""Words of people who have to repeat themselves."""
_NO = re.compile(r"(?:no|nope|wrong)\b|不(?:对|是|行)?[，,。！!]|错了")
"""Opening of an objection, unless it answers a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRecord:
    """The fields of a record that decide whether it anticipated an event, fired and was obeyed."""

    id: str
    kind: RecommendationKind
    slot: Slot
    trigger: str | None = None
    value: str | int | float | None = None
    polarity: Polarity | None = None
    names: frozenset[str] = frozenset()
    """Ids under which it may have been shown, its own included."""

    @classmethod
    def of(cls, record: MetaRecommendation) -> WatchedRecord:
        """Return the watched fields of a record."""
        return cls(
            id=record.id,
            kind=record.kind,
            slot=record.slot,
            trigger=record.trigger,
            value=record.value,
            polarity=record.polarity,
            names=frozenset((record.id,)),
        )

    @property
    def tool_trigger(self) -> FixTrigger | None:
        """When a tool-fix record applies; None for other records."""
        return parse_trigger(self.trigger) if KINDS[self.kind].gate == "fix" and self.trigger else None

    @property
    def said_value(self) -> str | None:
        """The value as people would say it."""
        return None if self.value is None else str(self.value).casefold()

    def topic(self) -> frozenset[str]:
        """Return the words of the slot and the trigger."""
        texts = (self.slot.subject, self.slot.attribute, self.trigger or "")
        words = name_words(self.slot.attribute).union(*map(_words, texts)) - _COMMON_WORDS
        return frozenset(word for word in words if len(word) > 2 or not word.isascii())

    def words(self) -> frozenset[str]:
        """Return the words of the topic and of the value."""
        return self.topic() | (frozenset(_words(str(self.value or ""))) - _COMMON_WORDS)

    def is_of(self, observation: Observation) -> bool:
        """Whether an observation is about the record's slot, or is a correction in the record's words."""
        if slot_of(self.slot) == slot_of(observation.slot):
            return True
        if observation.kind != "correction" or self.slot.subject != observation.slot.subject:
            return False
        text, value = observation.text.casefold(), self.said_value
        return says(text, value) if value is not None else any(says(text, word) for word in self.topic())


class FoldedTalk:
    """The messages of a transcript, case-folded for searching."""

    def __init__(self, replayed: ReplayedTranscript) -> None:
        self._messages: dict[str, ReplayedUtterance] = {
            utterance.ref: utterance for utterance in replayed.utterances if utterance.role in ("user", "assistant")
        }

    def text(self, ref: str) -> str:
        """Return the text of a message, or an empty text."""
        return self._messages[ref].text.casefold() if ref in self._messages else ""

    def assistant(self, after: int = 0, before: float = float("inf")) -> str:
        """Return the assistant's text between two messages."""
        return _folded(
            message
            for message in self._messages.values()
            if message.role == "assistant" and after < message.ordinal < before
        )

    def is_about(self, words: Iterable[str]) -> bool:
        """Whether anybody said one of these words."""
        whole = _folded(self._messages.values())
        return any(says(whole, word) for word in words)


def by_calls(trigger: FixTrigger, fired: Sequence[ToolStep]) -> Judgement:
    """Judge a tool fix by the answers to the calls that fired it."""
    answered = [call for call in fired if call.answer is not None]
    if any(call.failure is not None and call.failure.code == trigger.code for call in answered):
        return "contradicted"
    return "complied" if answered else "unjudged"


def by_words(record: WatchedRecord, spoken_of: Sequence[Observation], talk: FoldedTalk) -> Judgement:
    """Judge any other record; `spoken_of` are people's observations about its slot, in any order."""
    statements = sorted(spoken_of, key=ordinal_of)
    after = 0
    for statement in statements:
        if _is_disobeyed(record, statement, talk, talk.assistant(after, ordinal_of(statement))):
            return "contradicted"
        after = ordinal_of(statement)
    own = talk.assistant(before=ordinal_of(statements[0])) if statements else talk.assistant()
    value = record.said_value
    if value is None or not own:
        return "unjudged"
    if record.polarity == "negative":
        return "contradicted" if says(own, value) else "complied"
    return "complied" if says(own, value) else "unjudged"


def _is_disobeyed(record: WatchedRecord, repeated: Observation, talk: FoldedTalk, between: str) -> bool:
    """Whether `between`, the assistant's text before a person's statement, disobeys the record."""
    if not between:
        return False
    if record.polarity != repeated.polarity and "negative" in (record.polarity, repeated.polarity):
        return False  # the person wants the opposite now
    text, value = talk.text(repeated.places[0].ref), record.said_value
    objects = _NO.match(text) is not None and not between.rstrip().endswith(("?", "？"))
    must_repeat = objects or repeated.kind == "correction" or _AGAIN.search(text) is not None
    if value is None:
        return must_repeat
    if record.polarity == "negative":
        return says(between, value)
    is_same = says(text, value) or str(repeated.value).casefold() == value
    if says(between, value) or not is_same:
        return False  # the assistant complied, or the person wants something else now
    return must_repeat or any(says(between, word) for word in record.topic())


def ordinal_of(observation: Observation) -> int:
    """Return the ordinal of the claim's message."""
    return int(observation.places[0].ref.lstrip("§").partition(".")[0])


def slot_of(slot: Slot) -> tuple[str, str]:
    """Return a slot in comparable form."""
    return slot.subject.casefold(), slot.attribute.casefold()


def says(text: str, word: str) -> bool:
    """Whether a case-folded text has a word, or the characters of a word in a script without blanks."""
    if not word.isascii():
        return word in text
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text) is not None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("_", " "))


def _folded(messages: Iterable[ReplayedUtterance]) -> str:
    return "\n".join(message.text for message in messages).casefold()


class RecordUse(NamedTuple):
    """Numbers of sessions in which a record was shown, fired and was obeyed."""

    shown: int = 0
    judged: int = 0
    """Sessions in which it can be judged whether the record fired."""
    fired: int = 0
    complied: int = 0
    contradicted: int = 0
    unjudged: int = 0
    """Sessions in which the record fired, but obeying it cannot be judged."""


FATES: Mapping[str, RecordUse] = {
    "untold": RecordUse(shown=1),
    "quiet": RecordUse(shown=1, judged=1),
    "unjudged": RecordUse(shown=1, judged=1, fired=1, unjudged=1),
    "complied": RecordUse(shown=1, judged=1, fired=1, complied=1),
    "contradicted": RecordUse(shown=1, judged=1, fired=1, contradicted=1),
}
"""What became of a shown record in one session, with the counts. untold: whether it fired cannot be judged. quiet: it
did not fire. The others: it fired, with this `Judgement`."""
_FATE_OF: Mapping[RecordUse, str] = {use: fate for fate, use in FATES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class UseTally:
    """Uses of records and numbers of events, in one session or several."""

    uses: Mapping[str, RecordUse] = field(default_factory=dict)
    """Uses of the records that were shown, by id."""
    events: int = 0
    anticipated: int = 0

    @property
    def total(self) -> RecordUse:
        """Sum over all records."""
        return sum_uses(self.uses.values())

    @property
    def fates(self) -> Mapping[str, tuple[str, ...]]:
        """Ids of the records that one session was shown, by fate."""
        ids: dict[str, tuple[str, ...]] = {}
        for id_, use in sorted(self.uses.items()):
            ids[_FATE_OF[use]] = (*ids.get(_FATE_OF[use], ()), id_)
        return ids


def tally(
    replayed: ReplayedTranscript,
    active: Sequence[WatchedRecord],
    observed: Iterable[Observation] = (),
    watched: Iterable[WatchedRecord] = (),
) -> UseTally:
    """Count one session.

    Args:
        active: records in force, which may have anticipated events of the session.
        observed: observations of the session.
        watched: further records, in force or not, that the session may have been shown (`ReplayedTranscript.shown`).
    """
    wishes = [observation for observation in observed if KINDS[observation.kind].is_said_anew]
    errors, calls, talk = episodes(replayed), steps(replayed), FoldedTalk(replayed)
    triggers = [record.tool_trigger for record in active]
    slots = {slot_of(record.slot) for record in active if KINDS[record.kind].is_said_anew}
    foreseen = sum(any(trigger is not None and foresees(trigger, error) for trigger in triggers) for error in errors)
    foreseen += sum(slot_of(wish.slot) in slots for wish in wishes)
    shown = {record.id: record for record in (*active, *watched) if record.names & replayed.shown}
    uses = {id_: _use(record, calls, wishes, talk) for id_, record in sorted(shown.items())}
    return UseTally(uses=uses, events=len(errors) + len(wishes), anticipated=foreseen)


def foresees(trigger: FixTrigger, error: ErrorEpisode) -> bool:
    """Whether a record is about an error: same tool, same code, and same parameter if it names one."""
    return (
        trigger.tool == error.failed.tool
        and trigger.code == error.code
        and (trigger.parameter is None or trigger.parameter in error.parameters)
    )


def fires(trigger: FixTrigger, call: ToolStep) -> bool:
    """Whether a record applies to a call: same tool, with the parameter that the record names."""
    return trigger.tool == call.tool and (trigger.parameter is None or trigger.parameter in (call.arguments or {}))


def sum_uses(uses: Iterable[RecordUse]) -> RecordUse:
    """Add up uses."""
    return RecordUse(*map(sum, zip(RecordUse(), *uses, strict=True)))


def _use(
    record: WatchedRecord, calls: Sequence[ToolStep], wishes: Sequence[Observation], talk: FoldedTalk
) -> RecordUse:
    trigger = record.tool_trigger
    if trigger is not None:
        fired = [call for call in calls if fires(trigger, call)]
        return _judged(bool(fired), by_calls(trigger, fired))
    if not KINDS[record.kind].is_said_anew:
        return FATES["untold"]
    spoken_of = [wish for wish in wishes if record.is_of(wish)]
    words = record.words()
    if not words and not spoken_of:
        return FATES["untold"]
    return _judged(bool(spoken_of) or talk.is_about(words), by_words(record, spoken_of, talk))


def _judged(fired: bool, judgement: Judgement) -> RecordUse:
    return FATES[judgement if fired else "quiet"]
