"""Facts for this request: the slice of what is known that says most about a question, within a budget of tokens.

The ranker is that of recall (`envelope.ranking`), over facts instead of turns: neighbours in time, the words of the
day, the speaker whom the question names. A fact is indexed under the question it answers, too, which is never shown.
Facts are taken best first while they fit, and shown in the order in which they were said, under the day of each:

    8 May 2023:
    §3 Caroline: I went to a support group yesterday.

What was said in one message stands on one line behind one pointer. The text is reference data: whoever places it
fences it. The same facts, question and budget give the same bytes.

Source: measured on dated conversations with questions (`evals.facts`): packing by score beats score per token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.envelope.recall.heuristic import UtteranceIndex, date_words, speaker_of, utterance_turn
from ctxsteward.envelope.recall.selection import Weights
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas.profile import instant
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward.artifacts import Artifact
from ctxsteward.steward.observation import Observation

MAX_TRIED = 80
"""Facts of a ranking that are tried, best first."""
MIN_ROOM_TOKENS = 6
"""With less room nothing more is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFact:
    """Something known, as it is shown and as it is found."""

    id: str
    """Whatever its owner knows it by."""
    text: str
    """One line, the speaker's name before it where there is one."""
    pointer: str = ""
    """Where it was said, as it is shown (``§12``, ``s-42§128``); nothing: none is shown."""
    ts: str | None = None
    answers: str | None = None
    """The question it answers: an index key, never shown."""
    order: tuple[int, int] = (0, 0)
    """Among facts of one time: message, and place in it."""

    @property
    def day(self) -> str | None:
        return self.ts[:10] if self.ts else None

    @property
    def speaker(self) -> str | None:
        """The name before its text."""
        return speaker_of(self.text)


class FactSlice(NamedTuple):
    """A slice for one request."""

    text: str
    """Ends in a line break; empty where nothing fits or nothing says anything about the question."""
    facts: tuple[RequestFact, ...]
    """In the order of the text."""
    tokens: int


class ClaimPlace(NamedTuple):
    """Where a claim stands."""

    source: str
    session: str
    ref: str
    start: int
    """First byte."""
    stop: int


def index_keys(artifacts: Iterable[Artifact]) -> dict[ClaimPlace, str]:
    """The questions that claims answer, by where the claims stand: what records do not hold, for they show it."""
    return {
        ClaimPlace(artifact.source, artifact.session, *observation.places[0][:3]): observation.answers
        for artifact in artifacts
        for observation in artifact.observations
        if observation.answers
    }


def place_of(record: MetaRecommendation) -> ClaimPlace:
    """Where the words of a record stand; its key among `index_keys`."""
    first = record.evidence[0]
    return ClaimPlace(first.source, first.session, first.ref, *first.span)


def of_observation(observation: Observation, *, id: str, pointer: str | None = None) -> RequestFact:
    """A fact out of an observation; its pointer is that of its first place unless told."""
    place = observation.places[0]
    return RequestFact(
        id=id,
        text=observation.text,
        pointer=place.ref if pointer is None else pointer,
        ts=observation.ts,
        answers=observation.answers,
        order=(_ordinal(place.ref), place.start),
    )


def of_record(record: MetaRecommendation, *, answers: str | None = None, pointer: str | None = None) -> RequestFact:
    """A fact out of a record; `answers` is the index key that its observation had."""
    first = record.evidence[0]
    return RequestFact(
        id=record.id,
        text=record.text,
        pointer=first.ref if pointer is None else pointer,
        ts=first.ts or record.support.last,
        answers=answers,
        order=(_ordinal(first.ref), first.span[0]),
    )


def _ordinal(ref: str) -> int:
    return int(ref.lstrip("§").partition(".")[0])


class FactPicker:
    """Facts indexed once, for many questions."""

    def __init__(self, facts: Iterable[RequestFact], counter: Counter, *, weights: Weights | None = None) -> None:
        self._facts = sorted(facts, key=lambda fact: (instant(fact.ts), *fact.order, fact.id))
        self._counter = counter
        self._weights = weights or Weights()
        self._costs: dict[int, int] = {}
        self._index = UtteranceIndex(self._facts)

    def pick(self, query: str, budget_tokens: int) -> FactSlice:
        """The slice for one question."""
        ranked = self._index.rank(query, self._weights, limit=MAX_TRIED)
        chosen: list[int] = []
        text, used = "", 0
        for scored in ranked:
            room = budget_tokens - used
            if room < MIN_ROOM_TOKENS:
                break
            if self._cost(scored.ordinal) > room:
                continue
            tried = sorted([*chosen, scored.ordinal])
            rendered = shown([self._facts[number] for number in tried])
            tokens = self._counter.text(rendered)
            if tokens <= budget_tokens:
                chosen, text, used = tried, rendered, tokens
        return FactSlice(text, tuple(self._facts[number] for number in chosen), used)

    def _cost(self, number: int) -> int:
        """Tokens of its text without the speaker: the least it can add."""
        if number not in self._costs:
            self._costs[number] = max(1, self._counter.text(utterance_turn(self._facts[number].text)) - 1)
        return self._costs[number]


def pick(
    facts: Iterable[RequestFact], query: str, budget_tokens: int, counter: Counter, *, weights: Weights | None = None
) -> FactSlice:
    """The slice for one question out of facts that are asked once."""
    return FactPicker(facts, counter, weights=weights).pick(query, budget_tokens)


def shown(facts: Sequence[RequestFact]) -> str:
    """Facts as text, in the order given: a line a message, under its day.

    >>> moved = RequestFact(id="a", text="Ann: I moved.", pointer="§1", ts="2023-05-08")
    >>> shown([moved, RequestFact(id="b", text="Tea it is.")])
    '8 May 2023:\\n§1 Ann: I moved.\\nundated:\\nTea it is.\\n'
    """
    lines: list[str] = []
    before: RequestFact | None = None
    for fact in facts:
        if fact.day != (before.day if before else None):
            lines.append(f"{date_words(fact.ts) if fact.ts else 'undated'}:")
        if (
            before is not None
            and fact.pointer
            and (before.pointer, before.ts, before.speaker) == (fact.pointer, fact.ts, fact.speaker)
        ):
            lines[-1] += f" {utterance_turn(fact.text)}"
        else:
            lines.append(f"{fact.pointer} {fact.text}" if fact.pointer else fact.text)
        before = fact
    return "".join(f"{line}\n" for line in lines)
