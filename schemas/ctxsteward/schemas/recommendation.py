"""A recommendation: one insight that the steward harvested, with the spans it rests on and how far it has come.

It is a structured claim of a closed set of kinds, in one line of 8 to 280 characters. Its `id` depends on what it
claims (kind, scope, slot, wording of its first evidence), never on when it was found, so that a run repeated on the
same input makes the same record. Evidence points to byte ranges of UTF-8 text; `span_address` is the HMAC of those
bytes, so that each span can be verified again. How often a record was shown, fired and obeyed is counted elsewhere.

Times are ISO 8601, as the transcripts tell them. Scores lie in 0..1.

Source: the layered-envelope design (meta recommendations); the state design (trust, gates by kind and scope);
Snodgrass 1999 for the two time lines.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, model_validator

from .frozen import FrozenModel
from .profile import EntryId, Hex, Modality, OneLine, Polarity, RecordText, Scalar, Timestamp

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
Trust = Literal["operator", "user", "assistant", "tool_internal", "tool_external"]
Relation = Literal["supports", "contradicts", "corrects", "answers", "recovers", "confirms"]
Cardinality = Literal["one", "many"]
Sensitivity = Literal["none", "personal", "sensitive"]
ReviewState = Literal["awaiting", "approved", "rejected"]

TRUST: tuple[Trust, ...] = get_args(Trust)
"""From the most trusted to the least; derived text has the last of its sources' labels."""

MAX_EVIDENCE = 8
Name = Annotated[StrictStr, Field(min_length=1, max_length=200), OneLine]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[StrictInt, Field(ge=0)]
ReasonCode = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class Scope(FrozenModel):
    """Whom a recommendation is for: the narrowest field that is set decides.

    Only tenant and agent: everybody who talks to this agent. A record with `user`, `project` or `session` is shown
    in sessions of that user, project or session alone.
    """

    tenant: Name
    agent: EntryId
    """Name of the profile."""
    user: Name | None = None
    project: Name | None = None
    session: Name | None = None
    tool: Name | None = None
    """The tool it is about; narrows the subject, not the audience."""

    @property
    def is_shared(self) -> bool:
        """Whether it reaches more than one person."""
        return self.user is None and self.project is None and self.session is None


class Slot(FrozenModel):
    """What a claim is about: two claims of one slot with cardinality one cannot both hold."""

    subject: Name
    """user, agent, or the name of a person, tool or thing, lower case."""
    attribute: Name
    """Such as ``language``, ``home``, ``answer_length``, ``error:not_found``."""
    cardinality: Cardinality = "many"


def _forward(span: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= span[0] < span[1]:
        raise ValueError(f"the empty or backward span {span}")
    return span


Span = Annotated[tuple[StrictInt, StrictInt], AfterValidator(_forward)]
"""First byte and the byte behind the last, in the UTF-8 text of one message."""


class Evidence(FrozenModel):
    """One span of one message."""

    source: Name
    """Where the transcript was read: a file's name in its source, an object's key, or ``store``."""
    session: Name
    ref: Annotated[StrictStr, Field(pattern=r"^§[1-9][0-9]{0,11}(\.[1-9][0-9]{0,3})?$")]
    span: Span
    """Byte range in the text of that message as it was harvested: after redaction."""
    span_address: Hex
    """HMAC of the bytes of the span under the tenant's key."""
    role: Literal["user", "assistant", "tool", "system"]
    trust: Trust
    principal: Name | None
    """Who stands behind it: a user or a task; None where nobody knows (earlier versions wrote the session's name)."""
    ts: Timestamp | None = None
    relation: Relation = "supports"


class Support(FrozenModel):
    """How much there is, counted over all evidence, also that beyond the eight kept."""

    events: Count
    sessions: Count
    principals: Count
    """Independent ones: within one user's own scope, sessions count instead."""
    contradicts: Count = 0
    first: Timestamp | None = None
    last: Timestamp | None = None


class Confidence(FrozenModel):
    """How sure we are."""

    score: Share
    lower95: Share
    """Lower end of the 95 % interval of Wilson's score over confirming and contradicting events."""
    method: Name


class Validity(FrozenModel):
    """Two time lines: when it is true, and when we knew."""

    valid_from: Timestamp | None = None
    valid_to: Timestamp | None = None
    """None: still."""
    recorded_at: Timestamp | None = None
    half_life_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Its worth halves in this time without new evidence; None: it does not fade."""


class Extractor(FrozenModel):
    """The code that found it."""

    name: Name
    version: Name


class Review(FrozenModel):
    """What people said of it."""

    state: ReviewState
    who: tuple[Name, ...] = ()
    when: Timestamp | None = None
    note: Annotated[StrictStr, Field(max_length=500), OneLine] | None = None
    text: RecordText | None = None
    """The words that a person gave the record; None: it has its own."""


class MetaRecommendation(FrozenModel):
    """One record of the steward.

    >>> MetaRecommendation.model_fields["status"].annotation == Status
    True
    """

    schema_version: Literal[1] = 1
    id: EntryId
    revision: Annotated[StrictInt, Field(ge=1)] = 1
    """Grows by one whenever anything in the record changes."""
    kind: RecommendationKind
    scope: Scope
    slot: Slot
    text: RecordText
    value: Scalar | None = None
    unit: Annotated[StrictStr, Field(min_length=1, max_length=40), OneLine] | None = None
    polarity: Polarity | None = None
    modality: Modality | None = None
    trigger: Annotated[StrictStr, Field(min_length=1, max_length=280), OneLine] | None = None
    """When it applies, in words or as ``tool:NAME error:CODE``; None: always."""
    action: Annotated[StrictStr, Field(min_length=1, max_length=280), OneLine] | None = None
    """What to do then."""
    evidence: Annotated[tuple[Evidence, ...], Field(min_length=1, max_length=MAX_EVIDENCE)]
    support: Support
    confidence: Confidence
    trust: Trust
    """The least trusted of its evidence."""
    validity: Validity = Validity()
    status: Status = "candidate"
    reasons: tuple[ReasonCode, ...] = ()
    """Why it has this status."""
    supersedes: tuple[EntryId, ...] = ()
    superseded_by: EntryId | None = None
    conflicts: tuple[EntryId, ...] = ()
    """Records of the same slot that say the opposite; all of them are held."""
    extractor: Extractor
    run: EntryId
    """The night that made this revision: an id that its input decides."""
    tokens: Count
    """Cost of its rendered line, in the tokens of the steward's tokenizer."""
    sensitivity: Sensitivity = "none"
    locked: StrictBool = False
    """Only people change it."""
    review: Review | None = None

    @model_validator(mode="after")
    def _least_trust(self) -> Self:
        least = max((TRUST.index(evidence.trust) for evidence in self.evidence), default=0)
        if TRUST.index(self.trust) < least:
            raise ValueError(f"trust {self.trust!r} above that of its evidence, {TRUST[least]!r}")
        return self
