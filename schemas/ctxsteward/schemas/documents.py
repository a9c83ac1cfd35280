"""Published documents: the JSON forms of an envelope, its seal, a selection, a handoff and an outcome.

`Envelope.document()` returns an `EnvelopeDocument`, which stores, the command line and the HTTP service show. A
`SelectionLog` lists the originals that were recalled for a user turn, those that were not, and the reasons. Both refuse
unknown fields. Tokens are the builder's own estimates.

A seal is a code over an envelope's address and its place, made with a tenant's seal key. It has the fields needed to
check a request that it travels with: tenant, session, log position and profile version of the envelope. It has no
digest of content, because a digest would reveal short texts. It binds the content through the address, an HMAC under
the tenant's key. Seal keys rotate; `key_id` names the one that was used.

A handoff has the state of a session's work for the session that continues it. An outcome is the application's report
how a session ended. It is read from a transcript's metadata or appended to a session's log (`Session.outcome`). It has
closed values and no text, so it reveals no words of the session. The steward learns from failures and successes by
`verdict`.

Source: the layered-envelope design (sections, reports), the auto-context design (selection log) and the continuity
design (handoff summaries)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, StrictBool, WithJsonSchema, model_validator

from .findings import Finding
from .frozen import FrozenModel
from .profile import Hex, Timestamp
from .summary import CompressionReport, HandoffSection, SummaryOrigin

REF_PATTERN = r"^§[1-9][0-9]{0,11}(\.[1-9][0-9]{0,3})?$"
RefText = Annotated[str, Field(pattern=REF_PATTERN)]
"""A reference as text: ``§128`` or ``§128.2``."""
Tokens = Annotated[int, Field(ge=0)]
Figure = Annotated[float, Field(allow_inf_nan=False)]
Metric = Annotated[
    int | Annotated[float, Field(allow_inf_nan=False)],
    WithJsonSchema({"type": "number"}, mode="serialization"),
]

FragmentKind = Literal["text", "tools", "observations", "bullets", "group", "context", "notes"]
SelectionType = Literal["recall", "intra_phase", "inter_phase"]


class _Document(FrozenModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(validate_by_name=True, serialize_by_alias=True)


class SealDocument(FrozenModel):
    """The seal of an envelope: its code, the key, and the place of the envelope."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    alg: Literal["HMAC-SHA-256"]
    key_id: Annotated[str, Field(min_length=1, max_length=64)]
    """Id of the tenant's seal key."""
    mac: Hex
    """HMAC over all other fields except `alg`, each length-prefixed."""
    schema_version: Annotated[int, Field(ge=1)]
    renderer_version: Annotated[int, Field(ge=1)]
    tenant: str
    session: str
    profile_version: str | None
    """Address of the profile in force; null without a profile."""
    position: Annotated[int, Field(ge=0)]
    """Log position at which the envelope was built."""
    address: Hex
    """The envelope's address, which covers its sections, their order, tokens, budgets and tools."""


class FragmentDocument(_Document):
    """One fragment of a section, in the order in which the model sees it."""

    kind: FragmentKind
    name: str | None
    """Name of its block or note; null if it has none."""
    refs: tuple[RefText, ...]
    """Originals that it shows or cites, in ordinal order."""
    tokens: Tokens
    text: str
    """Labels and texts for people; rendering makes the provider's bytes."""


class SectionDocument(_Document):
    """One section with its budget."""

    tokens: Tokens
    budget_tokens: Tokens
    overflow_tokens: Tokens
    """Tokens of verbatim text beyond the budget; 0 if the section fits."""
    epoch: Tokens
    """Number of changes of the section's bytes in this session."""
    content: tuple[FragmentDocument, ...]


class SectionsDocument(_Document):
    """The four sections in the order of the prompt."""

    system: SectionDocument
    static: SectionDocument
    meta: SectionDocument
    dynamic: SectionDocument


class RulePlaceDocument(_Document):
    """A place of a request where a rule stands."""

    section: str
    block: str
    path: str
    """Path in the provider's arguments, such as ``messages[0].content``."""


class RuleDocument(_Document):
    """A standing rule of a call, without its words: the sections have them."""

    id: str
    kind: Literal["policy", "rail", "pin", "user"]
    ref: str
    """The message that states it, or block, entry and version of the profile."""
    lifted_by: str | None
    """The message that lifts the rule; the call need not show a lifted rule."""
    places: tuple[RulePlaceDocument, ...]
    """Places that show the rule; empty if the request does not show it."""


class RulesDocument(_Document):
    """The standing rules of a call, with their places in the request for one provider."""

    provider: str
    rules: tuple[RuleDocument, ...]


class EnvelopeDocument(_Document):
    """The input of one model call by section, with reports and findings of its build."""

    LATER: ClassVar[frozenset[str]] = frozenset(("rules",))

    schema_version: Literal[1]
    address: str
    """Address of version, tenant, session, profile version and sections, without reports, findings, metrics, seal."""
    tenant: str
    session: str
    profile_version: str | None
    """Address of the profile in force; null without a profile."""
    sections: SectionsDocument
    reports: tuple[CompressionReport, ...]
    """Compactions that this build made."""
    findings: tuple[Finding, ...]
    metrics: dict[str, Metric]
    """Figures by name: tokens, counts, and milliseconds if the name ends in `_ms`."""
    seal: SealDocument | None
    """Seal over the address; null if the store does not seal."""
    rules: RulesDocument | None = None
    """Standing rules in the request for OpenAI's chat endpoint; null in a document of an earlier version."""


class SelectionCandidate(_Document):
    """An original that was considered."""

    ref: RefText
    score: Figure
    """Score, comparable only within one selection; higher is better."""
    signals: dict[str, Figure]
    """Parts of the score, by name."""
    in_: bool = Field(validation_alias="in", serialization_alias="in")
    """Whether it was selected."""
    why: str


class SelectionFact(_Document):
    """A fact about the user, the project or the session that was considered."""

    id: str
    audience: Literal["user", "project", "session"]
    score: Figure
    """Score, comparable only within one selection; higher is better."""
    signals: dict[str, Figure]
    """Parts of the score, by name."""
    in_: bool = Field(validation_alias="in", serialization_alias="in")
    """Whether it was shown."""
    why: str


class SelectionLog(_Document):
    """The originals that were chosen for a model call, and those that were not.

    >>> candidate = SelectionCandidate(ref="§4", score=0.5, signals={"recency": 0.5}, in_=True, why="ranked")
    >>> candidate.model_dump()["in"]
    True
    """

    selection_type: SelectionType
    """recall: for a user turn; intra_phase: inside a phase; inter_phase: from earlier phases."""
    strategy: str
    """Strategy that ranked the originals; differs from the requested strategy if that one could not rank."""
    full_history_size: Annotated[int, Field(ge=0)]
    """Number of all messages."""
    context_size: Annotated[int, Field(ge=0)]
    """Number of chosen messages."""
    masked_count: Annotated[int, Field(ge=0)]
    """Number of messages whose tool results are shown as one line."""
    anchor_refs: tuple[RefText, ...]
    """Originals chosen because they must be there, not by their score."""
    selected_refs: tuple[RefText, ...]
    tokens_saved: int
    """Tokens of the full history minus tokens of the chosen messages."""
    candidates: tuple[SelectionCandidate, ...]
    """Candidates, best first."""
    reasoning: str | None = None
    """A model's reasons for its choice; null if no model chose."""
    facts: tuple[SelectionFact, ...] = ()
    """Facts about the session's own user, about its project and about itself, best first."""


class HandoffLine(FrozenModel):
    """A sentence of the cited messages, or a line that a model wrote and that was checked against them."""

    section: HandoffSection
    text: Annotated[str, Field(min_length=1, max_length=600)]
    refs: Annotated[tuple[str, ...], Field(min_length=1)]


class HandoffSummary(FrozenModel):
    """The state of a session's work, for the session that continues it."""

    LATER: ClassVar[frozenset[str]] = frozenset(("lines", "origin"))

    schema_version: Literal[1] = 1
    generated_at: Timestamp | None = None
    session: str
    """Session with the whole log, in which references resolve."""
    task_title: str
    goal: str
    """The task as the user gave it."""
    current_hat: str | None = None
    """Current role, or the cascade's phase; null without one."""
    branch: str | None = None
    head_commit: str | None = None
    plan: str = ""
    completed_items: tuple[str, ...] = ()
    remaining_items: tuple[str, ...] = ()
    blocking_issues: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    created_files: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    """References of the newest tool results in the window."""
    key_decisions: tuple[str, ...] = ()
    understanding: str = ""
    last_action: str = ""
    continuation_prompt: str
    lines: tuple[HandoffLine, ...] = ()
    """Lines by section: a model's, or sentences of the messages if the session has no scratchpad."""
    origin: SummaryOrigin | None = None
    """The model's part in the lines; null if no model was called."""


FULL_REWARD = 1.0
"""The full reward of a task; less is not a success."""


class Outcome(FrozenModel):
    """The reported end of a session; a field is None if it was not reported."""

    succeeded: StrictBool | None = None
    """Whether a person or a program judged the task as solved; overrides all other fields."""
    reward: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    """Reward of an environment or a scorer; `FULL_REWARD` or more is success."""
    thumbs: Literal["up", "down"] | None = None
    """The user's rating; "up" alone is not a success, because anybody can press it."""
    resolved: StrictBool | None = None
    """Whether the user's matter was settled."""
    escalated: StrictBool | None = None
    """Whether the session was passed on to a person or a higher desk; False does not mean success."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("an outcome that says nothing; give succeeded, reward, thumbs, resolved or escalated")
        return self

    @property
    def verdict(self) -> bool | None:
        """Whether the session succeeded; None if the fields do not say so or contradict each other.

        >>> Outcome(reward=1.0).verdict, Outcome(resolved=True, thumbs="down").verdict, Outcome(escalated=False).verdict
        (True, None, None)
        >>> Outcome(thumbs="up").verdict, Outcome(thumbs="down").verdict
        (None, False)
        """
        if self.succeeded is not None:
            return self.succeeded
        signs = [
            None if self.reward is None else self.reward >= FULL_REWARD,
            self.resolved,
            None if self.thumbs is None else self.thumbs == "up",
            False if self.escalated else None,
        ]
        told = {sign for sign in signs if sign is not None}
        if self.reward is None and self.resolved is None:
            told.discard(True)  # thumbs up alone is not a success
        return told.pop() if len(told) == 1 else None

    def then(self, later: Outcome) -> Outcome:
        """Combine two outcomes; a field of the later one takes precedence.

        >>> Outcome(reward=0.0).then(Outcome(thumbs="up", reward=1.0)) == Outcome(thumbs="up", reward=1.0)
        True
        """
        return Outcome(**self.model_dump(exclude_none=True) | later.model_dump(exclude_none=True))
