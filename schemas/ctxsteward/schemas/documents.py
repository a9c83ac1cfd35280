"""Published documents: what an envelope and a selection look like outside the process.

`EnvelopeDocument` is the form that `Envelope.document()` gives and that stores, the command line and the
HTTP service show; `SelectionLog` says which originals were recalled for a user turn, which were not, and
why. Both refuse fields they do not know. Tokens are the builder's own estimates. Nothing here computes:
the builder fills in the numbers.

Source: the layered-envelope design (sections, reports) and the auto-context design (selection log).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from .findings import Finding
from .seal import SealDocument
from .summary import CompressionReport

REF_PATTERN = r"^§[1-9][0-9]{0,11}(\.[1-9][0-9]{0,3})?$"
RefText = Annotated[str, Field(pattern=REF_PATTERN)]
"""A reference as it is written: ``§128`` or ``§128.2``."""
Tokens = Annotated[int, Field(ge=0)]
Figure = Annotated[float, Field(allow_inf_nan=False)]
Metric = Annotated[
    int | Annotated[float, Field(allow_inf_nan=False)],
    WithJsonSchema({"type": "number"}, mode="serialization"),
]

FragmentKind = Literal["text", "tools", "bullets", "group", "context", "notes"]
SelectionType = Literal["recall", "intra_phase", "inter_phase"]


class _Document(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", validate_by_name=True, serialize_by_alias=True
    )


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
