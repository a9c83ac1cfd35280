"""A recommendation: one insight that the steward harvested, with its evidence and its status.

It is a structured claim of one of a closed set of kinds, in one line of 8 to 280 characters. Its `id` depends on its
claim (kind, scope, slot, wording of its first evidence) and never on the time of the harvest, so that a repeated run on
the same input makes the same record. Evidence points to byte ranges of UTF-8 text; `span_address` is the HMAC of those
bytes, so that each span can be verified again. Another place counts how often a record was shown, used and obeyed.

Times are ISO 8601 as in the transcripts. Scores lie in 0..1.

Source: the layered-envelope design (meta recommendations); the state design (trust, gates by kind and scope);
Snodgrass 1999 for the two time lines.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, model_validator

from .frozen import FrozenModel
from .profile import EntryId, Hex, Modality, OneLine, Polarity, RecordText, Scalar, Timestamp
from .summary import TRUST, Trust

RecommendationKind = Literal[
    "correction",
    "preference",
    "fact",
    "decision",
    "tool_fix",
    "eval_failure",
    "policy",
    "persona",
    "environment",
    "practice",
]
Status = Literal["candidate", "vetted", "active", "superseded", "expired", "quarantined", "rejected"]
Relation = Literal["supports", "contradicts", "corrects", "answers", "recovers", "confirms"]
Cardinality = Literal["one", "many"]
Sensitivity = Literal["none", "personal", "sensitive"]
ReviewState = Literal["awaiting", "approved", "rejected"]

MAX_EVIDENCE = 8
Name = Annotated[StrictStr, Field(min_length=1, max_length=200), OneLine]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[StrictInt, Field(ge=0)]
ReasonCode = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class Scope(FrozenModel):
    """The audience of a recommendation; the narrowest field that is set decides.

    With only tenant and agent, it is everybody who talks to this agent. A record with `user`, `project` or `session`
    is shown only in sessions of that user or project, or in that session.
    """

    tenant: Name
    agent: EntryId
    """Name of the profile."""
    user: Name | None = None
    project: Name | None = None
    session: Name | None = None
    tool: Name | None = None
    """Tool that the record is about; it narrows the subject, not the audience."""

    @property
    def is_shared(self) -> bool:
        """Whether the audience may have more than one person."""
        return self.user is None and self.project is None and self.session is None


class Slot(FrozenModel):
    """The topic of a claim; two claims of one slot with cardinality one cannot both be true."""

    subject: Name
    """Subject in lower case: user, agent, or the name of a person, tool or thing."""
    attribute: Name
    """Attribute such as ``language``, ``home``, ``answer_length``, ``error:not_found``."""
    cardinality: Cardinality = "many"


def _forward(span: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= span[0] < span[1]:
        raise ValueError(f"the empty or backward span {span}")
    return span


Span = Annotated[tuple[StrictInt, StrictInt], AfterValidator(_forward)]
"""Start and end (exclusive) in bytes of the UTF-8 text of one message."""


class Evidence(FrozenModel):
    """One span of one message that supports or contradicts a record."""

    source: Name
    """Source of the transcript: a file's name in its folder, an object's key, or ``store``."""
    session: Name
    ref: Annotated[StrictStr, Field(pattern=r"^§[1-9][0-9]{0,11}(\.[1-9][0-9]{0,3})?$")]
    span: Span
    """Byte range in the harvested text of the message, after redaction."""
    span_address: Hex
    """HMAC of the bytes of the span under the tenant's key."""
    role: Literal["user", "assistant", "tool", "system"]
    trust: Trust
    principal: Name | None
    """Author of the text, a user or a task; None if unknown (earlier versions wrote the session's name)."""
    ts: Timestamp | None = None
    relation: Relation = "supports"


class Support(FrozenModel):
    """The support of a record, counted over all evidence and not only the eight stored spans."""

    events: Count
    sessions: Count
    principals: Count
    """Number of independent principals; within the scope of one user, sessions count instead."""
    contradicts: Count = 0
    first: Timestamp | None = None
    last: Timestamp | None = None


class Confidence(FrozenModel):
    """The confidence in a record."""

    score: Share
    lower95: Share
    """Lower end of the 95 % interval of Wilson's score over confirming and contradicting events."""
    method: Name


class Validity(FrozenModel):
    """Two time lines of a record: the time for which it is true, and the time at which it was recorded."""

    valid_from: Timestamp | None = None
    valid_to: Timestamp | None = None
    """End of its validity, or None if it is still valid."""
    recorded_at: Timestamp | None = None
    half_life_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Days in which its value halves without new evidence; None if it does not decay."""


class Extractor(FrozenModel):
    """Name and version of the code that found a record."""

    name: Name
    version: Name


class Review(FrozenModel):
    """The review of a record by people."""

    state: ReviewState
    who: tuple[Name, ...] = ()
    when: Timestamp | None = None
    note: Annotated[StrictStr, Field(max_length=500), OneLine] | None = None
    text: RecordText | None = None
    """New text of the record by a person, or None if it keeps its own."""


class MetaRecommendation(FrozenModel):
    """One record of the steward.

    >>> MetaRecommendation.model_fields["status"].annotation == Status
    True
    """

    schema_version: Literal[1] = 1
    id: EntryId
    revision: Annotated[StrictInt, Field(ge=1)] = 1
    """Number that grows by one with every change of the record."""
    kind: RecommendationKind
    scope: Scope
    slot: Slot
    text: RecordText
    value: Scalar | None = None
    unit: Annotated[StrictStr, Field(min_length=1, max_length=40), OneLine] | None = None
    polarity: Polarity | None = None
    modality: Modality | None = None
    trigger: Annotated[StrictStr, Field(min_length=1, max_length=280), OneLine] | None = None
    """Condition of the record, in words or as ``tool:NAME error:CODE``; None if it always applies."""
    action: Annotated[StrictStr, Field(min_length=1, max_length=280), OneLine] | None = None
    """Action to take if the trigger applies."""
    evidence: Annotated[tuple[Evidence, ...], Field(min_length=1, max_length=MAX_EVIDENCE)]
    support: Support
    confidence: Confidence
    trust: Trust
    """The least trusted label of its evidence."""
    validity: Validity = Validity()
    status: Status = "candidate"
    reasons: tuple[ReasonCode, ...] = ()
    """Reasons for its status."""
    supersedes: tuple[EntryId, ...] = ()
    superseded_by: EntryId | None = None
    conflicts: tuple[EntryId, ...] = ()
    """Records of the same slot that contradict it; each stays a candidate unless a person approved it."""
    extractor: Extractor
    run: EntryId
    """Id of the night that made this revision, derived from the night's input."""
    tokens: Count
    """Length of its rendered line in tokens of the steward's tokenizer."""
    sensitivity: Sensitivity = "none"
    locked: StrictBool = False
    """Whether only people can change it."""
    review: Review | None = None

    @model_validator(mode="after")
    def _least_trust(self) -> Self:
        least = max((TRUST.index(evidence.trust) for evidence in self.evidence), default=0)
        if TRUST.index(self.trust) < least:
            raise ValueError(f"trust {self.trust!r} above that of its evidence, {TRUST[least]!r}")
        return self
