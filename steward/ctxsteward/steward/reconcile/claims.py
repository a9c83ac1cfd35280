"""Claims: what observations say, under an id that the saying alone decides; and the order of observations.

An observation makes one claim, which is for everybody who talks to the agent and waits for others to say the same.
Equal claims of many transcripts have one id: HMAC of kind, slot, polarity and the value (of a slot that holds one) or
the words.

Correction and preference are one family: "never use emojis" and "no, never use emojis" claim the same. Claims in other
words are one where they say the same value of one slot (`Claim.thing`). Templates (`eval_failure`) are equal or
different; of a `tool_fix` the causes are compared, which are what its error says without values: several wordings of
one cause are one claim, and two causes of one error code are two (`is_same_cause`).

An `IndexedObservation` is one observation as the ledger holds it: what was claimed, by whom, in which session, with its
spans. The order of observations is that of their times, then of their messages, then of their words; one without a time
comes before all that have one. Names of files and sessions say nothing about time, so they decide nothing: with other
names, or read in another order, the same value is the newest. Of two that tell the same time in two sessions neither is
known to be newer; the order between them is arbitrary and always the same.

Source: the state design (gates by kind and scope); Tarjan 1975 (union by size, path halving).
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

from ctxsteward.schemas.profile import CLAIM_ID_DIGITS, Polarity, instant
from ctxsteward.schemas.recommendation import RecommendationKind
from ctxsteward.schemas.summary import Trust
from ctxsteward.store.crypto.keyring import AddressKey, address_of, subject_of
from ctxsteward.store.names import skeleton
from ctxsteward.store.profiles.version_codec import canonical

from ..artifacts.artifact import Artifact, EvidenceSpan, evidence_spans, observation_fields
from ..harvest.people.claims import FORM
from ..harvest.people.own_words import OWN_WORDS
from ..observations.observation import KINDS, Observation, Strength
from .features import ClaimFeatures, cause_features, claim_features, shares_telling_word, value_norm

SAME_CAUSE = 0.5
"""Of the words of two errors, those that both have."""
SAME_CAUSE_AND_FIX = 0.25
"""The same where one thing helped against both."""
_VAGUE = frozenset(("note", "preference", "other", "likes", OWN_WORDS))
"""Attributes that say little: two claims of one may be about different things."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim, taken apart so that it can be compared."""

    id: str
    family: str
    tool: str | None
    subject: str
    attribute: str
    is_single: bool
    """Its slot holds one value."""
    polarity: Polarity
    value: str | None
    """Norm of its value."""
    wording: ClaimFeatures | None
    """None: of a template, which is equal or different."""

    @property
    def thing(self) -> tuple[str | None, str, str, str | None] | None:
        """What it speaks of: slot and value; None where its words alone tell."""
        is_told = self.value is not None or self.attribute in FORM
        if self.wording is None or self.family == "tool_fix" or self.attribute in _VAGUE or not is_told:
            return None
        return (self.tool, self.subject, self.attribute, self.value)

    @property
    def group(self) -> str:
        """Claims of one group cannot all hold; empty where they can."""
        return canonical([self.tool, self.subject, self.attribute]).decode() if self.is_single else ""


def claim_of(observation: Observation, key: AddressKey, agent: str) -> Claim:
    """The claim that an observation makes."""
    if KINDS[observation.kind].is_template:
        about = f"{observation.slot.subject} {observation.slot.attribute}"
        compares = KINDS[observation.kind].gate == "fix" and observation.cause
        wording = cause_features(observation.cause or "", about) if compares else None
    else:
        wording = claim_features(own_words(observation))
    return _claim(observation, wording, key, agent)


def own_words(observation: Observation) -> str:
    """What was said, without the name that a harvester puts before it: then the line is longer than its span."""
    lead = _LEAD.match(observation.text)
    place = observation.places[0]
    if lead is None or len(observation.text.encode()) <= place.stop - place.start:
        return observation.text
    return observation.text[lead.end() :] or observation.text


_FOR_EVERYBODY = ("shared", None, None, None)
"""Whom a claim is for, as ids have it."""


def _claim(observation: Observation, wording: ClaimFeatures | None, key: AddressKey, agent: str) -> Claim:
    slot = observation.slot
    single = slot.cardinality == "one"
    value = None if observation.value is None else value_norm(observation.value, observation.unit)
    family = "said" if KINDS[observation.kind].is_said_anew else observation.kind
    is_template = KINDS[observation.kind].is_template
    polarity = polarity_of(observation, None if is_template else wording)
    if KINDS[observation.kind].gate == "fix":  # tool, code, parameter and cause are one claim, whatever the advice
        value = observation.action if observation.strength in ("recovered", "accepted") else None
        statement: list[object] = [slot.attribute, *(["cause", *wording.tokens, value] if wording else [])]
    elif is_template and observation.cause is not None:  # a sentence of a tool, whatever its values
        statement = [slot.attribute, observation.cause]
    elif is_template or wording is None:
        statement = [slot.attribute, observation.text, observation.trigger, observation.action]
    elif single and value is not None:
        statement = [slot.attribute, "value", value]
    else:
        statement = [slot.attribute if single else "", "words", *wording.tokens]
    data = canonical([agent, family, *_FOR_EVERYBODY, observation.tool, slot.subject, polarity, statement])
    return Claim(
        id=address_of(key, "", "claim", data)[:CLAIM_ID_DIGITS],
        family=family,
        tool=observation.tool,
        subject=slot.subject,
        attribute=slot.attribute,
        is_single=single,
        polarity=polarity,
        value=value,
        wording=wording,
    )


def polarity_of(observation: Observation, wording: ClaimFeatures | None) -> Polarity:
    """What the harvester says; else what modality or wording say."""
    if observation.polarity is not None:
        return observation.polarity
    if observation.modality is not None:
        return "negative" if observation.modality == "must_not" else "positive"
    return "negative" if wording is not None and wording.negative else "positive"


_LEAD = re.compile(r"[^:：]{1,80}(?:: |：)")


def is_paraphrase(shown: Claim, said: Claim) -> bool:
    """Whether what was said may repeat what had been shown, in other words: they share a slot or a telling word.

    Far less than saying the same: whoever was shown a thing is no independent voice for anything like it.
    """
    if shown.wording is None or said.wording is None or (shown.tool or said.tool) is not None:
        return False
    if shown.attribute == said.attribute and said.attribute not in _VAGUE:
        return True
    return shares_telling_word(shown.wording, said.wording)


def is_same_cause(one: Claim, other: Claim) -> bool:
    """Whether two wordings share most of their words, or some where the same helped; one without words is of none."""
    if one.wording is None or other.wording is None:
        return False
    shared, every = one.wording.content & other.wording.content, one.wording.content | other.wording.content
    same_fix = one.value is not None and one.value == other.value
    return len(shared) >= (SAME_CAUSE_AND_FIX if same_fix and shared else SAME_CAUSE) * len(every)


T = TypeVar("T", bound=Hashable)


class DisjointSets:
    """Disjoint sets of claim ids; the label of a set is its least id."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    @property
    def members(self) -> frozenset[str]:
        """All that were named."""
        return frozenset(self._parents)

    def find(self, member: str) -> str:
        """The label of the set it is in; a set of its own where it is new."""
        parents = self._parents
        parents.setdefault(member, member)
        while parents[member] != member:
            parents[member] = parents[parents[member]]
            member = parents[member]
        return member

    def join(self, one: str, other: str) -> bool:
        """Make one set of both; whether they were two."""
        one, other = self.find(one), self.find(other)
        if one == other:
            return False
        low, high = sorted((one, other))
        self._parents[high] = low
        return True


class ObservationTime(NamedTuple):
    """When an observation was made; comparable."""

    seconds: float
    """Unix time; -inf: not told."""
    ordinal: tuple[int, ...]
    text: str
    source: str
    """Where all before is equal, two say the same: names decide nothing then, and keys do not either."""
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedObservation:
    """One observation in its session."""

    id: str
    """HMAC of what it says and where: the same however often a transcript is harvested."""
    observation: Observation
    source: str
    session: str
    project: str | None
    spans: tuple[EvidenceSpan, ...]
    shown: frozenset[str] = frozenset()
    """Records that its session was shown."""

    @property
    def is_said(self) -> bool:
        """Whether a person, or the operator, said it: the claim itself, not what stands around it."""
        return self.spans[0].trust in ("operator", "user")

    @property
    def brief(self) -> ObservationBrief:
        """All of it that a draft weighs."""
        observation, span = self.observation, self.spans[0]
        ts = observation.ts or span.ts
        return ObservationBrief(
            id=self.id,
            seconds=instant(ts),
            source=self.source,
            session=self.session,
            ref=span.ref,
            start=span.start,
            stop=span.stop,
            trust=span.trust,
            principal=observation.principal,
            voice=voice_of(observation.principal),
            kind=observation.kind,
            strength=observation.strength,
            extractor=observation.extractor,
            text=observation.text,
            score=observation.score,
            ts=ts,
            sensitivity=observation.sensitivity,
            is_single=observation.slot.cardinality == "one",
            is_confirmed=any(place.relation == "confirms" for place in observation.places),
            is_denied=not KINDS[observation.kind].is_template
            and any(place.relation == "contradicts" for place in observation.places),
            run=observation.run or "",
            shown="\n".join(sorted(self.shown)),
        )


class ObservationBrief(NamedTuple):
    """What a draft weighs of an observation; the few that it quotes are read whole."""

    id: str
    seconds: float
    """Unix time; -inf: not told."""
    source: str
    session: str
    ref: str
    """Of its first span; so are the next three."""
    start: int
    stop: int
    trust: Trust
    principal: str | None
    voice: str
    """What the principal counts as among many (`voice_of`)."""
    kind: RecommendationKind
    strength: Strength
    extractor: str
    text: str
    score: float
    ts: str | None
    sensitivity: str
    is_single: bool
    """Its slot holds one value."""
    is_confirmed: bool
    """Whether an internal tool's answer in its session says the same."""
    is_denied: bool
    """Whether one says otherwise."""
    run: str = ""
    """The task of its run, and what the run had done by then (`Observation.run`); empty: not told."""
    shown: str = ""
    """Ids of the records that its session was shown, a line each."""

    @property
    def shown_ids(self) -> frozenset[str]:
        return frozenset(self.shown.split("\n")) if self.shown else frozenset()

    @property
    def is_said(self) -> bool:
        """Whether a person, or the operator, said it: the claim itself, not what stands around it."""
        return self.trust in ("operator", "user")

    @property
    def is_own_words(self) -> bool:
        """Whether no cue found it."""
        return self.extractor.startswith(f"{OWN_WORDS}/")

    @property
    def is_told_by_tool(self) -> bool:
        return self.trust in ("tool_internal", "tool_external")

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Where the claim stands: what several harvesters find in one place was said once."""
        return (self.session, self.ref, self.start, self.stop)

    @property
    def moment(self) -> ObservationTime:
        return ObservationTime(self.seconds, _ordinal(self.ref), self.text, self.source, self.id)


def seen_in(artifact: Artifact, key: AddressKey) -> tuple[IndexedObservation, ...]:
    """The observations of an artifact."""
    shown = frozenset(artifact.shown)
    lead = canonical([artifact.source, artifact.session, artifact.project])[:-1]
    found = []
    for observation, spans in zip(artifact.observations, evidence_spans(artifact, key), strict=True):
        told = canonical(observation_fields(observation) | _speaker_in_id(observation, artifact.session))
        id_ = address_of(key, "", "observation", b"%b,%b]" % (lead, told))[:32]
        found.append(
            IndexedObservation(
                id=id_,
                observation=observation,
                source=artifact.source,
                session=artifact.session,
                project=artifact.project,
                spans=spans,
                shown=shown,
            )
        )
    return tuple(found)


def _speaker_in_id(observation: Observation, session: str) -> dict[str, str | None]:
    """The principal as the id of an observation has it.

    Ids were always made with the session's name for an unknown speaker, and stay as they were; a person of that name is
    told apart by the subject of their words.
    """
    principal = observation.principal
    return {"principal": subject_of(session, principal) if principal in (None, session) else principal}


def voice_of(principal: str | None) -> str:
    """What a principal counts as among many: names that look alike are one, and so are all that nobody knows."""
    return "" if principal is None else skeleton(principal)


@lru_cache(maxsize=4096)
def _ordinal(ref: str) -> tuple[int, ...]:
    return tuple(int(number) for number in ref.removeprefix("§").split(".") if number.isdecimal())
