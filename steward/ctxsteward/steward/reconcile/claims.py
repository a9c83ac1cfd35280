"""Claims: the content of observations, under an id that depends only on the content; and the order of observations.

An observation makes one claim, which is for everybody who talks to the agent and waits for others to say the same.
Equal claims of many transcripts have one id: an HMAC of kind, slot, polarity, and the value (of a slot with one value)
or the words.

Correction and preference are one family: "never use emojis" and "no, never use emojis" are the same claim. Claims in
different words are merged if they give one slot the same value (`Claim.thing`). Templates (`eval_failure`) are equal or
different. Two `tool_fix` claims are compared by cause, the words of their error without values: different wordings of
one cause are merged, and two causes of one error code stay apart (`is_same_cause`).

An `IndexedObservation` is an observation in the ledger: the claim, its principal, its session and its spans.
Observations are sorted by time, then by message, then by words; those without a time come first. Names of files and
sessions do not tell the time, so they are no sort key: the newest value does not depend on them, nor on the order of
reading. The order of two observations with equal times in two sessions is arbitrary, but always the same.

Source: the state design (gates by kind and scope); Tarjan 1975 (union by size, path halving).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

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
"""Share of common words from which two errors have the same cause."""
SAME_CAUSE_AND_FIX = 0.25
"""The same for two errors with the same fix."""
_VAGUE = frozenset(("note", "preference", "other", "likes", OWN_WORDS))
"""Attributes so vague that two claims with one of them may be about different things."""
_LEAD = re.compile(r"[^:：]{1,80}(?:: |：)")
"""A speaker's name before a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim in comparable parts."""

    id: str
    family: str
    tool: str | None
    subject: str
    attribute: str
    is_single: bool
    """Whether the slot has a single value."""
    polarity: Polarity
    value: str | None
    """The normalized value."""
    wording: ClaimFeatures | None
    """None for a template, which is equal or different."""

    @property
    def thing(self) -> tuple[str | None, str, str, str | None] | None:
        """Slot and value of the claim, or None if only the words distinguish it."""
        is_comparable = self.value is not None or self.attribute in FORM
        if self.wording is None or self.family == "tool_fix" or self.attribute in _VAGUE or not is_comparable:
            return None
        return (self.tool, self.subject, self.attribute, self.value)

    @property
    def group(self) -> str:
        """Key of claims that exclude each other; empty if the slot has several values."""
        return canonical([self.tool, self.subject, self.attribute]).decode() if self.is_single else ""


def claim_of(observation: Observation, key: AddressKey, agent: str) -> Claim:
    """Return the claim of an observation."""
    if KINDS[observation.kind].is_template:
        about = f"{observation.slot.subject} {observation.slot.attribute}"
        compares = KINDS[observation.kind].gate == "fix" and observation.cause
        wording = cause_features(observation.cause or "", about) if compares else None
    else:
        wording = claim_features(_without_speaker(observation))
    return _claim(observation, wording, key, agent)


def _without_speaker(observation: Observation) -> str:
    """Return the text without a speaker's name before it; with such a name, the text is longer than its span."""
    lead = _LEAD.match(observation.text)
    place = observation.places[0]
    if lead is None or len(observation.text.encode()) <= place.stop - place.start:
        return observation.text
    return observation.text[lead.end() :] or observation.text


def _claim(observation: Observation, wording: ClaimFeatures | None, key: AddressKey, agent: str) -> Claim:
    slot = observation.slot
    single = slot.cardinality == "one"
    value = None if observation.value is None else value_norm(observation.value, observation.unit)
    family = "said" if KINDS[observation.kind].is_said_anew else observation.kind
    is_template = KINDS[observation.kind].is_template
    polarity = polarity_of(observation, None if is_template else wording)
    if KINDS[observation.kind].gate == "fix":  # equal tool, code, parameter and cause make one claim for any advice
        value = observation.action if observation.strength in ("recovered", "accepted") else None
        statement: list[object] = [slot.attribute, *(["cause", *wording.tokens, value] if wording else [])]
    elif is_template and observation.cause is not None:  # a sentence of a tool without its values
        statement = [slot.attribute, observation.cause]
    elif is_template or wording is None:
        statement = [slot.attribute, observation.text, observation.trigger, observation.action]
    elif single and value is not None:
        statement = [slot.attribute, "value", value]
    else:
        statement = [slot.attribute if single else "", "words", *wording.tokens]
    # Ids have always had a scope, which is the same for all claims now.
    data = canonical([agent, family, "shared", None, None, None, observation.tool, slot.subject, polarity, statement])
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
    """Return the harvester's polarity, or else that of modality or wording."""
    if observation.polarity is not None:
        return observation.polarity
    if observation.modality is not None:
        return "negative" if observation.modality == "must_not" else "positive"
    return "negative" if wording is not None and wording.negative else "positive"


def is_paraphrase(shown: Claim, said: Claim) -> bool:
    """Whether a claim may repeat a shown one in other words: they share a slot or a content word.

    This is far less than an equal claim, because a person who was shown a record is no independent voice for it.
    """
    if shown.wording is None or said.wording is None or (shown.tool or said.tool) is not None:
        return False
    if shown.attribute == said.attribute and said.attribute not in _VAGUE:
        return True
    return shares_telling_word(shown.wording, said.wording)


def is_same_cause(one: Claim, other: Claim) -> bool:
    """Whether two errors share half of their words, or a quarter if the same fix helped; False without words."""
    if one.wording is None or other.wording is None:
        return False
    shared, union = one.wording.content & other.wording.content, one.wording.content | other.wording.content
    same_fix = one.value is not None and one.value == other.value
    return len(shared) >= (SAME_CAUSE_AND_FIX if same_fix and shared else SAME_CAUSE) * len(union)


class DisjointSets:
    """Disjoint sets of claim ids; the label of a set is its least id."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    @property
    def members(self) -> frozenset[str]:
        """All ids that `find` or `join` has seen."""
        return frozenset(self._parents)

    def find(self, member: str) -> str:
        """Return the label of the member's set; a new member is a set of its own."""
        parents = self._parents
        parents.setdefault(member, member)
        while parents[member] != member:
            parents[member] = parents[parents[member]]
            member = parents[member]
        return member

    def join(self, one: str, other: str) -> None:
        """Merge the sets of two members."""
        low, high = sorted((self.find(one), self.find(other)))
        self._parents[high] = low


class ObservationTime(NamedTuple):
    """Sort key of an observation."""

    seconds: float
    """Unix time; -inf if unknown."""
    ordinal: tuple[int, ...]
    text: str
    source: str
    """Decides only between observations with the same text."""
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedObservation:
    """One observation in its session."""

    id: str
    """HMAC of content and place, the same however often a transcript is harvested."""
    observation: Observation
    source: str
    session: str
    project: str | None
    spans: tuple[EvidenceSpan, ...]
    shown: frozenset[str] = frozenset()
    """Records that the session was shown."""

    @property
    def is_said(self) -> bool:
        """Whether a person or the operator made the claim itself."""
        return self.spans[0].trust in ("operator", "user")

    @property
    def brief(self) -> ObservationBrief:
        """The fields that a draft weighs."""
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
    """The fields of an observation that a draft weighs; only quoted observations are read whole."""

    id: str
    seconds: float
    """Unix time; -inf if unknown."""
    source: str
    session: str
    ref: str
    """Reference of the first span; the next three fields are also of this span."""
    start: int
    stop: int
    trust: Trust
    principal: str | None
    voice: str
    """The principal as a voice (`voice_of`)."""
    kind: RecommendationKind
    strength: Strength
    extractor: str
    text: str
    score: float
    ts: str | None
    sensitivity: str
    is_single: bool
    """Whether the slot has a single value."""
    is_confirmed: bool
    """Whether an internal tool's answer in the session says the same."""
    is_denied: bool
    """Whether an internal tool's answer in the session contradicts it."""
    run: str = ""
    """Key of the run's task (`Observation.run`); empty if unknown."""
    shown: str = ""
    """Ids of the records that the session was shown, a line each."""

    @property
    def shown_ids(self) -> frozenset[str]:
        return frozenset(self.shown.split("\n")) if self.shown else frozenset()

    @property
    def is_said(self) -> bool:
        """Whether a person or the operator made the claim itself."""
        return self.trust in ("operator", "user")

    @property
    def is_own_words(self) -> bool:
        """Whether no cue found the observation."""
        return self.extractor.startswith(f"{OWN_WORDS}/")

    @property
    def is_told_by_tool(self) -> bool:
        return self.trust in ("tool_internal", "tool_external")

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Place of the claim; claims of several harvesters in one place count once."""
        return (self.session, self.ref, self.start, self.stop)

    @property
    def moment(self) -> ObservationTime:
        return ObservationTime(self.seconds, _ordinal(self.ref), self.text, self.source, self.id)


def seen_in(artifact: Artifact, key: AddressKey) -> tuple[IndexedObservation, ...]:
    """Return the observations of an artifact."""
    shown = frozenset(artifact.shown)
    lead = canonical([artifact.source, artifact.session, artifact.project])[:-1]
    indexed = []
    for observation, spans in zip(artifact.observations, evidence_spans(artifact, key), strict=True):
        fields = observation_fields(observation)
        if observation.principal in (None, artifact.session):
            # Ids always had the session's name for an unknown speaker; a person with that name gets another value.
            fields["principal"] = subject_of(artifact.session, observation.principal)
        id_ = address_of(key, "", "observation", b"%b,%b]" % (lead, canonical(fields)))[:32]
        indexed.append(
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
    return tuple(indexed)


def voice_of(principal: str | None) -> str:
    """Return the voice of a principal: look-alike names are one voice, and so are all unknown speakers."""
    return "" if principal is None else skeleton(principal)


@lru_cache(maxsize=4096)
def _ordinal(ref: str) -> tuple[int, ...]:
    return tuple(int(number) for number in ref.removeprefix("§").split(".") if number.isdecimal())
