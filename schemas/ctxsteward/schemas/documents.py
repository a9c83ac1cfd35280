"""Published documents: what an envelope, its seal, a selection, a handoff and an outcome look like outside the process.

`EnvelopeDocument` is the form that `Envelope.document()` gives and that stores, the command line and the HTTP service
show; `SelectionLog` says which originals were recalled for a user turn, which were not, and why. Both refuse fields
they do not know. Tokens are the builder's own estimates: the builder fills in the numbers.

A seal is a code over an envelope's address and where it belongs, made with a tenant's seal key. It carries what is
needed to judge a payload that it travels with: whose envelope it was, of which session, at which log position, under
which profile version. It holds no digest, which would answer questions about short texts: content is bound through the
address, an HMAC of the tenant's. Keys rotate; `key_id` names the one that was used.

A handoff is what somebody needs who goes on with a session's work in a new one. An outcome is how a session ended, as
its application says: it is read from a transcript's metadata and appended to a session's log (`Session.outcome`). It
holds closed values and no text, so it tells nothing of what was said. The steward learns from what failed and what
succeeded by `verdict`.

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
"""A reference as it is written: ``§128`` or ``§128.2``."""
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
    """Who sealed which envelope with which key."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    alg: Literal["HMAC-SHA-256"]
    key_id: Annotated[str, Field(min_length=1, max_length=64)]
    """Which of the tenant's seal keys."""
    mac: Hex
    """Over all other fields but `alg`, each length-prefixed."""
    schema_version: Annotated[int, Field(ge=1)]
    renderer_version: Annotated[int, Field(ge=1)]
    tenant: str
    session: str
    profile_version: str | None
    """Address of the profile in force; null without a profile."""
    position: Annotated[int, Field(ge=0)]
    """Log position the envelope was built at."""
    address: Hex
    """The envelope's address: covers its sections, their order, tokens, budgets and tools."""


class FragmentDocument(_Document):
    """One piece of a section, in the order in which the model sees it."""

    kind: FragmentKind
    name: str | None
    """Block or note it holds; null where it has no name."""
    refs: tuple[RefText, ...]
    """Originals it shows or cites, in ordinal order."""
    tokens: Tokens
    text: str
    """For people: labels and texts; the provider's bytes come from rendering."""


class SectionDocument(_Document):
    """One section with its budget."""

    tokens: Tokens
    budget_tokens: Tokens
    overflow_tokens: Tokens
    """What must stay verbatim beyond the budget; 0 where it fits."""
    epoch: Tokens
    """How often the section's bytes have changed in this session."""
    content: tuple[FragmentDocument, ...]


class SectionsDocument(_Document):
    """The four sections in the order of the prompt."""

    system: SectionDocument
    static: SectionDocument
    meta: SectionDocument
    dynamic: SectionDocument


class EnvelopeDocument(_Document):
    """What one model call was shown, section by section, and what happened on the way."""

    schema_version: Literal[1]
    address: str
    """Covers version, tenant, session, profile version and sections; not reports, findings, metrics, seal."""
    tenant: str
    session: str
    profile_version: str | None
    """Address of the profile in force; null without a profile."""
    sections: SectionsDocument
    reports: tuple[CompressionReport, ...]
    """Compactions that this build made."""
    findings: tuple[Finding, ...]
    metrics: dict[str, Metric]
    """Figures by name: tokens, counts, and milliseconds where a name ends in `_ms`."""
    seal: SealDocument | None
    """Signature over the address; null where the store does not seal."""


class SelectionCandidate(_Document):
    """An original that was considered."""

    ref: RefText
    score: Figure
    """Comparable within one selection only; higher is better."""
    signals: dict[str, Figure]
    """What the score was made of, by name."""
    in_: bool = Field(validation_alias="in", serialization_alias="in")
    """Whether it was selected."""
    why: str


class SelectionFact(_Document):
    """A fact about the user, the project or the session that was considered."""

    id: str
    audience: Literal["user", "project", "session"]
    score: Figure
    """Comparable within one selection only; higher is better."""
    signals: dict[str, Figure]
    """What the score was made of, by name."""
    in_: bool = Field(validation_alias="in", serialization_alias="in")
    """Whether it was shown."""
    why: str


class SelectionLog(_Document):
    """Which originals were chosen for a model call, and what was passed over.

    >>> candidate = SelectionCandidate(ref="§4", score=0.5, signals={"recency": 0.5}, in_=True, why="ranked")
    >>> candidate.model_dump()["in"]
    True
    """

    selection_type: SelectionType
    """recall: for a user turn; intra_phase: inside a phase; inter_phase: from earlier phases."""
    strategy: str
    """The one that ranked; another than was asked for where that one stood aside."""
    full_history_size: Annotated[int, Field(ge=0)]
    """Messages there were."""
    context_size: Annotated[int, Field(ge=0)]
    """Messages that were chosen."""
    masked_count: Annotated[int, Field(ge=0)]
    """Messages whose tool results are shown as one line."""
    anchor_refs: tuple[RefText, ...]
    """Chosen because they must be there, not by their score."""
    selected_refs: tuple[RefText, ...]
    tokens_saved: int
    """Tokens of the full history less tokens of what was chosen."""
    candidates: tuple[SelectionCandidate, ...]
    """Best first."""
    reasoning: str | None = None
    """Of the strategy, in a model's words; null where none was asked."""
    facts: tuple[SelectionFact, ...] = ()
    """Best first; facts of the session's own user, project and self alone."""


class HandoffLine(FrozenModel):
    """One line that a model wrote, and that holds against the messages it rests on."""

    section: HandoffSection
    text: Annotated[str, Field(min_length=1, max_length=600)]
    refs: Annotated[tuple[str, ...], Field(min_length=1)]


class HandoffSummary(FrozenModel):
    """Where a piece of work stands."""

    LATER: ClassVar[frozenset[str]] = frozenset(("lines", "origin"))

    schema_version: Literal[1] = 1
    generated_at: Timestamp | None = None
    session: str
    """Whose log holds all of it; references lead there."""
    task_title: str
    goal: str
    """The task as it was set."""
    current_hat: str | None = None
    """The role, or the cascade's phase; null: there is none."""
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
    """By a model, section by section; empty: none was asked, or none of its lines holds."""
    origin: SummaryOrigin | None = None
    """What a model had to do with them; null: none was asked."""


FULL_REWARD = 1.0
"""A task's whole reward; less is no success."""


class Outcome(FrozenModel):
    """What is known of how a session ended; None: not told."""

    succeeded: StrictBool | None = None
    """Whether its task was solved, as somebody has judged; it outweighs all other signs."""
    reward: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    """Of an environment or a scorer; `FULL_REWARD` or more is success."""
    thumbs: Literal["up", "down"] | None = None
    """What its user pressed; no success by itself, for anybody can press it."""
    resolved: StrictBool | None = None
    """Whether its matter was settled."""
    escalated: StrictBool | None = None
    """Whether it went on to a person or a higher desk; that it did not says nothing."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("an outcome that says nothing; give succeeded, reward, thumbs, resolved or escalated")
        return self

    @property
    def verdict(self) -> bool | None:
        """Whether it succeeded; None where nothing says so, or signs contradict each other.

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
            told.discard(True)  # thumbs alone
        return told.pop() if len(told) == 1 else None

    def then(self, later: Outcome) -> Outcome:
        """Both; of what both tell, the later one counts.

        >>> Outcome(reward=0.0).then(Outcome(thumbs="up", reward=1.0)) == Outcome(thumbs="up", reward=1.0)
        True
        """
        return Outcome(**self.model_dump(exclude_none=True) | later.model_dump(exclude_none=True))
