"""A cascade's configuration: phases, and what each of them is shown of the ones before it.

A phase without `context` goes on in everything so far (snowball); `context` shows it what is named and nothing else;
`inject_from` adds to the snowball. A source may be written as a phase's name alone. Two keys have a second name:
`filter` for `messages_filter`, `if` for `condition`; giving both is an error, as is any key that is not listed.
`previous` and patterns with ``*`` name phases too. A phase inherits each field that it does not set from the cascade's
defaults: `model_fields_set` says which it set. Numbers count what their names say.

Code that reads a cascade file maps pydantic's `ValidationError` to the place in it. What one phase may name depends on
the others; the reader checks that.

Source: the context-injection design (sources, labels) and the auto-context design (anchors, selection, intra-phase).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator as check,
)
from pydantic_core import PydanticCustomError

from .frozen import FrozenModel

Include = Literal["images", "output", "messages", "state"]
ImagesFilter = Literal["all", "last", "last_n"]
MessagesFilter = Literal["all", "assistant_only", "last_turn"]
AnchorKind = Literal["output", "callouts", "input", "errors"]
Strategy = Literal["heuristic", "semantic", "llm", "hybrid"]
PolicyName = Literal["threshold", "middle_out", "importance"]
TtlKind = Literal["tool_results", "images", "assistant", "user"]

PREVIOUS = "previous"
"""As a source: the phase that ran last before this one."""
MANIFEST = "manifest"
"""As a phase's tackle: tools are chosen when it runs."""
MAX_PHASES = 500
MAX_SOURCES = 200
MAX_CONDITION_CHARS = 2_000
MAX_INSTRUCTIONS_CHARS = 100_000

Count = Annotated[StrictInt, Field(ge=1, le=10**9)]
Amount = Annotated[StrictInt, Field(ge=0, le=10**9)]
Share = Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)]
Word = Annotated[StrictStr, Field(min_length=1, max_length=200)]
PhaseName = Annotated[StrictStr, Field(pattern=r"^[\w-]{1,57}$")]
"""Letters, digits, ``_`` and ``-``."""
PhaseRef = Annotated[StrictStr, Field(pattern=r"^[\w*-]{1,57}$")]
"""A phase's name, ``previous``, or a pattern in which ``*`` stands for anything."""
Condition = Annotated[StrictStr, Field(min_length=1, max_length=MAX_CONDITION_CHARS)]
Instructions = Annotated[StrictStr, Field(max_length=MAX_INSTRUCTIONS_CHARS)]


class _Settings(FrozenModel):
    """Closed: a key that is not known is refused together with the ones that are."""

    second_names: ClassVar[dict[str, str]] = {}

    @check(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        allowed = [field.alias or name for name, field in cls.model_fields.items()]
        read: dict[str, Any] = {}
        for key, item in value.items():
            name = cls.second_names.get(key, key)
            if name not in allowed:
                listed = ", ".join([*allowed, *cls.second_names])
                raise PydanticCustomError("unknown_key", "allowed: {allowed}", {"key": str(key), "allowed": listed})
            if name in read:
                second = next(second for second, first in cls.second_names.items() if first == name)
                both = {"key": str(key), "other": name if key != name else second}
                raise PydanticCustomError("key_clash", "keep one of `{key}` and `{other}`", both)
            read[name] = item
        return read


def _list(value: Any) -> Any:
    """Lists and tuples alone: a text is no sequence of its letters."""
    if isinstance(value, (list, tuple)):
        return tuple(value)
    raise PydanticCustomError("no_list", "write a list")


def _distinct(names: tuple[Any, ...]) -> tuple[Any, ...]:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise PydanticCustomError("repeated", "keep it once", {"item": str(name)})
    return names


Refs = Annotated[tuple[PhaseRef, ...], BeforeValidator(_list), Field(max_length=MAX_SOURCES)]


_SECOND_NAMES = {"filter": "messages_filter", "if": "condition"}


def _describe_second_names(schema: dict[str, Any]) -> None:
    for second, name in _SECOND_NAMES.items():
        schema["properties"][second] = {**schema["properties"][name], "description": f"The same as `{name}`."}


class Source(_Settings):
    """What is taken of one earlier phase, or of all that a pattern names."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra=_describe_second_names)
    second_names: ClassVar[dict[str, str]] = _SECOND_NAMES

    phase: PhaseRef
    include: Annotated[tuple[Include, ...], BeforeValidator(_list), AfterValidator(_distinct), Field(min_length=1)] = (
        "images",
        "output",
    )
    images_filter: ImagesFilter = "all"
    images_count: Count = 1
    """For last_n."""
    messages_filter: MessagesFilter = "all"
    as_role: Literal["user", "system"] = "user"
    """system is given to sources that the operator trusts, and to no others."""
    condition: Condition | None = None
    """Jinja2 over `input` and `state`; the source is taken where it is true."""


def _source(value: Any) -> Any:
    return {"phase": value} if isinstance(value, str) else value


SourceEntry = Annotated[Source, BeforeValidator(_source, json_schema_input_type=PhaseRef | Source)]
Sources = Annotated[tuple[SourceEntry, ...], BeforeValidator(_list), Field(max_length=MAX_SOURCES)]


class Anchors(_Settings):
    """What `mode: auto` always shows."""

    window: Amount = 3
    """Steps of the phase itself, where it ran before and is opened again."""
    from_phases: Refs = (PREVIOUS,)
    """Whose outputs."""
    include: Annotated[tuple[AnchorKind, ...], BeforeValidator(_list), AfterValidator(_distinct)] = (
        "output",
        "callouts",
        "input",
    )


class Selection(_Settings):
    """How `mode: auto` chooses what else it shows."""

    strategy: Strategy = "heuristic"
    max_tokens: Count = 30_000
    """Anchors included."""
    max_messages: Count = 50
    """Selected ones; anchors do not count."""
    selector_model: Word | None = None
    """For llm and hybrid: which of the caller's models chooses; null: the first."""
    recency_weight: Share = 0.3
    """For heuristic: of the candidate's place in time, by rank."""
    keyword_weight: Share = 0.4
    """For heuristic: of what its words say of the task, by rank."""
    callout_weight: Share = 0.3
    """For heuristic: of its being pinned."""
    similarity_threshold: Share = 0.7
    """For semantic: least cosine. What is near depends on the embedder: unless it is set, one that says so (`near`) is
    gone by, as the encoder of the extra `dense` does with 0.3."""


class Context(_Settings):
    """What a phase is shown: its presence turns the snowball off."""

    from_: Annotated[Sources, Field(alias="from")] = ()
    """In this order. With `mode: auto`: the phases to select from; empty: all of them."""
    exclude: Refs = ()
    """Taken out of what patterns name."""
    include_input: StrictBool = True
    mode: Literal["explicit", "auto"] = "explicit"
    anchors: Anchors | None = None
    selection: Selection | None = None


class IntraContext(_Settings):
    """How a phase's own history is kept short; off where no such block is given."""

    enabled: StrictBool = True
    policy: PolicyName = "threshold"
    """What leaves when the phase nears its budget: by the fields below (`threshold`), tool results from the middle
    outward (`middle_out`), or the groups of least worth (`importance`)."""
    window: Amount = 5
    """Newest steps kept whole."""
    mask_observations_after: Amount = 3
    """Tool results older than so many steps are masked, at a compaction; repeated ones whatever their age."""
    compress_loops: StrictBool = True
    """A retry sees the task, the newest attempts and why they failed; older attempts are the first to leave."""
    loop_history_limit: Amount = 3
    """Attempts that a retry sees."""
    preserve_reasoning: StrictBool = True
    """What the model said without calling a tool leaves last; past the window, over 2,000 characters are shown as
    beginning and end."""
    preserve_errors: StrictBool = True
    """What tells of an error is not masked, and leaves last."""


class InterPhase(_Settings):
    """Defaults for phases with `mode: auto`."""

    enabled: StrictBool = True
    strategy: Strategy | None = None
    """The one inside `selection` wins."""
    selector_model: Word | None = None
    """The one inside `selection` wins."""
    anchors: Anchors | None = None
    selection: Selection | None = None


class AutoContext(_Settings):
    """Defaults for a cascade's phases."""

    intra_phase: IntraContext | None = None
    inter_phase: InterPhase | None = None
    cards: StrictBool = True
    """Whether a model's menu shows the summaries of context cards, where there is an index of them."""
    llm_selection: StrictBool = True
    """Whether a model may choose; without it `llm` and `hybrid` rank by what is left of them."""


class Rules(_Settings):
    """When a phase is over."""

    max_turns: Count | None = None
    loop_until: Word | None = None
    """Name of the validator that must pass."""
    max_attempts: Count | None = None


class OutputExtraction(_Settings):
    """What of a phase's output becomes state: the first group of a regular expression, or all that it matched."""

    pattern: Annotated[StrictStr, Field(min_length=1, max_length=500)]
    store_as: Annotated[StrictStr, Field(pattern=r"^[^\W\d]\w{0,63}$")]
    """State key."""
    required: StrictBool = False
    format: Literal["text", "json"] = "text"


class SubCascade(_Settings):
    """Another cascade that runs inside a phase; it has a context of its own."""

    ref: Word
    """Its `cascade_id`."""
    input_map: dict[Word, StrictStr] = Field(default_factory=dict)
    """Its input by key, each a Jinja2 template over `input` and `state`."""
    context_in: StrictBool | Annotated[tuple[Word, ...], BeforeValidator(_list)] = True
    """Which state keys flow in: all, none, or these."""
    context_out: StrictBool | Annotated[tuple[Word, ...], BeforeValidator(_list)] = True
    """Which state keys flow back."""


class Soundings(_Settings):
    """Several attempts at a phase from the same context; one of them is chosen."""

    factor: Annotated[StrictInt, Field(ge=1, le=100)]
    """How many."""
    evaluator_instructions: Instructions | None = None


class Phase(_Settings):
    """One step of a cascade."""

    name: PhaseName
    instructions: Instructions = ""
    """Jinja2 over `input` and `state`, rendered when the phase is opened."""
    context: Context | None = None
    inject_from: Sources | None = None
    intra_context: IntraContext | None = None
    tackle: Annotated[tuple[Word, ...], BeforeValidator(_list)] | Literal["manifest"] = ()
    """Names of tools."""
    rules: Rules = Rules.model_construct()
    context_retention: Literal["full", "output_only"] = "full"
    """What later phases can see of this one."""
    context_ttl: dict[TtlKind, Amount | None] | None = None
    """Steps of this phase after which a kind of message is no longer shown to other phases; null: never."""
    output_extraction: OutputExtraction | None = None
    sub_cascades: Annotated[tuple[SubCascade, ...], BeforeValidator(_list)] = ()
    soundings: Soundings | None = None

    @check(mode="after")
    def _one_way_in(self) -> Phase:
        if self.context is not None and self.inject_from is not None:
            raise PydanticCustomError(
                "two_ways",
                "`context` replaces the snowball, `inject_from` adds to it: keep one; sources go into `context.from`",
            )
        return self


class Cascade(_Settings):
    """Phases that run in this order.

    >>> cascade = Cascade.model_validate(
    ...     {
    ...         "cascade_id": "charts",
    ...         "phases": [{"name": "draw"}, {"name": "check", "context": {"from": ["draw"]}}],
    ...     }
    ... )
    >>> cascade.phases[1].context.from_[0].include
    ('images', 'output')
    """

    schema_version: Literal[1] = 1
    cascade_id: Annotated[StrictStr, Field(pattern=r"^[\w.:@/-]{1,120}$")]
    description: StrictStr | None = None
    inputs: dict[Word, StrictStr] = Field(default_factory=dict)
    """What each key of the input is, for people."""
    auto_context: AutoContext | None = None
    phases: Annotated[tuple[Phase, ...], BeforeValidator(_list), Field(min_length=1, max_length=MAX_PHASES)]
    cascades: Annotated[tuple[Cascade, ...], BeforeValidator(_list), Field(max_length=MAX_PHASES)] = ()
    """Further cascades that `sub_cascades` may name."""

    def phase(self, name: str) -> Phase | None:
        """The phase of this name."""
        return next((phase for phase in self.phases if phase.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the phases, in order."""
        return tuple(phase.name for phase in self.phases)
