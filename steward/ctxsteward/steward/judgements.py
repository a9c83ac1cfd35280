"""Whether a record that a session was shown was obeyed there, as far as calls and words tell.

A fix is judged by what calls of its tool came back with. Any other record is judged by what the assistant said from
when it was shown until a person spoke of its slot themselves: what comes after is no merit of the record.

    contradicted   the assistant spoke, did otherwise, and a person had to repeat what the record says
    complied       the assistant said its value; where the record asks to avoid it: kept from it
    unjudged       words cannot tell

A person who states a wish anew has not been disobeyed: nobody may have spoken since the record was shown, the assistant
may have done as it says, or they may have changed their mind. *Did otherwise*: between the two the assistant said what
the record asks to avoid; or it did not say the record's value, and either spoke of the matter, or the person corrects
it, or says that this is said again ("as I said", 我说过了).

Pure. Source: the layered-envelope design (records shown, fired, obeyed).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ctxsteward.schemas.profile import Polarity
from ctxsteward.schemas.recommendation import MetaRecommendation, RecommendationKind, Slot

from .harvest.tool_calls import Step, name_words
from .harvest.tool_templates import Trigger, parse_trigger
from .observation import Observation
from .replayed import Replayed, Utterance

Judgement = Literal["complied", "contradicted", "unjudged"]

_ABOUT = frozenset(("user", "agent", "assistant", "the", "for", "and", "when"))
_WORD = re.compile(r"[^\W\d_]{3,}|\d[\w.-]*|[\u3400-\u9fff]{1,}")
_AGAIN = re.compile(
    r"\bagain\b|\bonce more\b|\bhow (?:many times|often)\b|\bi(?:'ve| have)? (?:already |just )?(?:said|told you|asked"
    r"|mentioned|wrote)\b|\balready (?:said|told|asked|mentioned)\b|\b(?:like|as) i said\b|\bremember\b|\bdidn't i\b"
    r"|\bstill (?:not|in|using|writing|answering|giving|showing)\b"
    r"|我(?:都|已经|早就|刚才|刚刚|之前|前面|上次|明明)*(?:说|讲|提|告诉|要求|强调)(?:你|您)?过"
    r"|再说一(?:遍|次)|又(?:用|是|在|给|错|忘)|不是(?:说|告诉)[^，,。]{0,6}(?:吗|过|了)|怎么(?:还|又)|还是(?:在)?用|多少(?:遍|次)|几(?:遍|次)了|记得吗"
)
"""Said by whoever has to repeat themselves."""
_NO = re.compile(r"(?:no|nope|wrong)\b|不(?:对|是|行)?[，,。！!]|错了")
"""Opens an objection, where nothing was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What of a record decides whether it foresaw, fired and was obeyed."""

    id: str
    kind: RecommendationKind
    slot: Slot
    trigger: str | None = None
    value: str | int | float | None = None
    polarity: Polarity | None = None
    names: frozenset[str] = frozenset()
    """Ids under which it may have been shown, its own included."""

    @classmethod
    def of(cls, record: MetaRecommendation | Watched) -> Watched:
        """Of a record; what is watched already stays."""
        if isinstance(record, Watched):
            return record
        return cls(
            id=record.id, kind=record.kind, slot=record.slot, trigger=record.trigger, value=record.value,
            polarity=record.polarity, names=frozenset((record.id,)),
        )  # fmt: skip

    @property
    def tool_trigger(self) -> Trigger | None:
        """When a tool-fix record applies; None for other records."""
        return parse_trigger(self.trigger) if self.kind == "tool_fix" and self.trigger else None

    @property
    def said_value(self) -> str | None:
        """Its value as it would be said."""
        return None if self.value is None else str(self.value).casefold()

    def topic(self) -> frozenset[str]:
        """Words by which its slot or trigger would come up."""
        words = {*name_words(self.slot.attribute), *_words(self.trigger or ""), *_words(self.slot.attribute)}
        words |= set(_words(self.slot.subject))
        return frozenset(word for word in words if word not in _ABOUT and (len(word) > 2 or not word.isascii()))

    def words(self) -> frozenset[str]:
        """The same, and the words of its value."""
        return self.topic() | frozenset(word for word in _words(str(self.value or "")) if word not in _ABOUT)

    def is_of(self, observation: Observation) -> bool:
        """Whether an observation is about its slot; or is a correction of something unnamed, in this record's words."""
        if slot_of(self.slot) == slot_of(observation.slot):
            return True
        if observation.kind != "correction" or self.slot.subject != observation.slot.subject:
            return False
        text, value = observation.text.casefold(), self.said_value
        return says(text, value) if value is not None else any(says(text, word) for word in self.topic())


class Talk:
    """What was said from an ordinal on, folded for searching."""

    def __init__(self, replayed: Replayed, since: int = 0) -> None:
        said = [one for one in replayed.utterances if one.ordinal >= since]
        self._said: dict[str, Utterance] = {one.ref: one for one in said if one.role in ("user", "assistant")}

    def text(self, ref: str) -> str:
        """What stands there; nothing where that is not in it."""
        return self._said[ref].text.casefold() if ref in self._said else ""

    def assistant(self, after: int = 0, before: float = float("inf")) -> str:
        """What the assistant said between two messages."""
        return _folded(one for one in self._said.values() if one.role == "assistant" and after < one.ordinal < before)

    def is_about(self, words: Iterable[str]) -> bool:
        """Whether anybody said one of these words."""
        whole = _folded(self._said.values())
        return any(says(whole, word) for word in words)

    def has(self, observation: Observation) -> bool:
        return observation.places[0].ref in self._said


def by_calls(trigger: Trigger, fired: Sequence[Step]) -> Judgement:
    """A fix, by the answers to the calls that it applied to."""
    answered = [call for call in fired if call.answer is not None]
    if any(call.failure is not None and call.failure.code == trigger.code for call in answered):
        return "contradicted"
    return "complied" if answered else "unjudged"


def by_words(record: Watched, spoken_of: Sequence[Observation], talk: Talk) -> Judgement:
    """Another record; `spoken_of`: what people said of its slot in this talk, in any order."""
    stated = sorted(spoken_of, key=ordinal_of)
    after = 0
    for one in stated:
        if _did_otherwise(record, one, talk, talk.assistant(after, ordinal_of(one))):
            return "contradicted"
        after = ordinal_of(one)
    own = talk.assistant(before=ordinal_of(stated[0])) if stated else talk.assistant()
    value = record.said_value
    if value is None or not own:
        return "unjudged"
    if record.polarity == "negative":
        return "contradicted" if says(own, value) else "complied"
    return "complied" if says(own, value) else "unjudged"


def _did_otherwise(record: Watched, repeated: Observation, talk: Talk, between: str) -> bool:
    """Whether the assistant, before somebody said this, did otherwise than the record asks."""
    if not between:
        return False
    if record.polarity != repeated.polarity and "negative" in (record.polarity, repeated.polarity):
        return False  # they want the opposite now
    text, value = talk.text(repeated.places[0].ref), record.said_value
    objects = _NO.match(text) is not None and not between.rstrip().endswith(("?", "？"))
    must_repeat = objects or repeated.kind == "correction" or _AGAIN.search(text) is not None
    if value is None:
        return must_repeat
    if record.polarity == "negative":
        return says(between, value)
    is_same = says(text, value) or str(repeated.value).casefold() == value
    if says(between, value) or not is_same:
        return False  # it did as the record says, or they want something else now
    return must_repeat or any(says(between, word) for word in record.topic())


def ordinal_of(observation: Observation) -> int:
    """The message that holds the claim."""
    return int(observation.places[0].ref.lstrip("§").partition(".")[0])


def slot_of(slot: Slot) -> tuple[str, str]:
    """A slot, for comparing."""
    return slot.subject.casefold(), slot.attribute.casefold()


def says(text: str, word: str) -> bool:
    """Whether a folded text has a word; in scripts without blanks: its characters."""
    if not word.isascii():
        return word in text
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text) is not None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("_", " "))


def _folded(said: Iterable[Utterance]) -> str:
    return "\n".join(one.text for one in said).casefold()
