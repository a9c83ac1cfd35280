"""A cascade's configuration: its phases, and the context of each phase from earlier ones.

A phase without `context` sees everything so far (snowball). `context` shows it only the named sources; `inject_from`
adds sources to the snowball. A source may be only a phase's name. Two keys have a second name: `filter` for
`messages_filter`, `if` for `condition`. Both names at once are an error, like an unknown key. `previous` and patterns
with ``*`` name phases, too. A phase inherits each field that it does not set from the cascade's defaults:
`model_fields_set` has the fields that it set. Numbers have the unit in their name.

Code that reads a cascade file maps pydantic's `ValidationError` to the place in it. That code also checks the names of
other phases in a phase.

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
SelectorName = Literal["heuristic", "semantic", "hybrid"]
TtlKind = Literal["tool_results", "images", "assistant", "user"]

PREVIOUS = "previous"
"""Name of the source that is the last phase before this one."""
MANIFEST = "manifest"
"""Value of a phase's tackle whose tools are chosen when it runs."""
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
"""A phase's name, ``previous``, or a pattern in which ``*`` matches any text."""
Condition = Annotated[StrictStr, Field(min_length=1, max_length=MAX_CONDITION_CHARS)]
Instructions = Annotated[StrictStr, Field(max_length=MAX_INSTRUCTIONS_CHARS)]


class _Settings(FrozenModel):
    """A block of settings that refuses an unknown key and lists the allowed ones."""

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
    """Accept only lists and tuples: a text is not a sequence of letters here."""
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
    """The parts to take of one earlier phase, or of all phases that match a pattern."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra=_describe_second_names)
    second_names: ClassVar[dict[str, str]] = _SECOND_NAMES

    phase: PhaseRef
    include: Annotated[tuple[Include, ...], BeforeValidator(_list), AfterValidator(_distinct), Field(min_length=1)] = (
        "images",
        "output",
    )
    images_filter: ImagesFilter = "all"
    images_count: Count = 1
    """Number of images for last_n."""
    messages_filter: MessagesFilter = "all"
    as_role: Literal["user", "system"] = "user"
    """Role of the shown text; only sources that the operator trusts get system."""
    condition: Condition | None = None
    """Jinja2 expression over `input` and `state`; the source is taken only if it is true."""


def _source(value: Any) -> Any:
    return {"phase": value} if isinstance(value, str) else value


SourceEntry = Annotated[Source, BeforeValidator(_source, json_schema_input_type=PhaseRef | Source)]
Sources = Annotated[tuple[SourceEntry, ...], BeforeValidator(_list), Field(max_length=MAX_SOURCES)]


class Anchors(_Settings):
    """The messages that `mode: auto` always shows."""

    window: Amount = 3
    """Number of the phase's own steps, if it ran before and is opened again."""
    from_phases: Refs = (PREVIOUS,)
    """Phases whose outputs are shown."""
    include: Annotated[tuple[AnchorKind, ...], BeforeValidator(_list), AfterValidator(_distinct)] = (
        "output",
        "callouts",
        "input",
    )


class Selection(_Settings):
    """The choice of further messages by `mode: auto`."""

    strategy: Strategy = "heuristic"
    max_tokens: Count = 30_000
    """Most tokens, including anchors."""
    max_messages: Count = 50
    """Most selected messages, without anchors."""
    selector_model: Word | None = None
    """Name of the caller's model that chooses (llm, hybrid); null means the first model."""
    recency_weight: Share = 0.3
    """Weight of a candidate's rank by time (heuristic)."""
    keyword_weight: Share = 0.4
    """Weight of a candidate's rank by words in common with the task (heuristic)."""
    callout_weight: Share = 0.3
    """Weight of a pin (heuristic)."""
    similarity_threshold: Share = 0.7
    """Least cosine of a selected message (semantic). A good value depends on the embedder. If this is not set, an
    embedder with a threshold of its own (`near`) uses that, such as 0.3 for the encoder in the extra `dense`."""


class Context(_Settings):
    """The context of a phase; if it is given, the snowball is off."""

    from_: Annotated[Sources, Field(alias="from")] = ()
    """Sources in this order; with `mode: auto` the phases to select from, or all phases if empty."""
    exclude: Refs = ()
    """Phases to exclude from those that patterns match."""
    include_input: StrictBool = True
    mode: Literal["explicit", "auto"] = "explicit"
    anchors: Anchors | None = None
    selection: Selection | None = None


class IntraContext(_Settings):
    """Compaction of a phase's own history; off without this block."""

    enabled: StrictBool = True
    policy: PolicyName = "threshold"
    """Messages that leave when the phase nears its budget: by the fields below (`threshold`), tool results from the
    middle outward (`middle_out`), or the groups of least worth (`importance`)."""
    window: Amount = 5
    """Number of newest steps kept whole."""
    mask_observations_after: Amount = 3
    """A compaction masks tool results older than this number of steps, and repeated ones of any age."""
    compress_loops: StrictBool = True
    """Whether a retry sees only the task, the newest attempts and why they failed; older attempts leave first."""
    loop_history_limit: Amount = 3
    """Number of attempts that a retry sees."""
    preserve_reasoning: StrictBool = True
    """Whether the model's messages without a tool call leave last; outside the window, one of over 2,000 characters is
    shown only by its beginning and end."""
    preserve_errors: StrictBool = True
    """Whether error messages are never masked, and leave last."""


class InterPhase(_Settings):
    """Defaults for phases with `mode: auto`."""

    enabled: StrictBool = True
    strategy: Strategy | None = None
    """Default strategy; the one in `selection` takes precedence."""
    selector_model: Word | None = None
    """Default model; the one in `selection` takes precedence."""
    anchors: Anchors | None = None
    selection: Selection | None = None


class AutoContext(_Settings):
    """Defaults for a cascade's phases."""

    intra_phase: IntraContext | None = None
    inter_phase: InterPhase | None = None
    cards: StrictBool = True
    """Whether a model's menu shows the summaries of context cards; else it shows beginnings."""
    llm_selection: StrictBool = True
    """Whether a model may choose; if not, `llm` and `hybrid` rank without one."""


class Rules(_Settings):
    """The end conditions of a phase."""

    max_turns: Count | None = None
    loop_until: Word | None = None
    """Name of the validator that must pass."""
    max_attempts: Count | None = None


class OutputExtraction(_Settings):
    """The part of a phase's output that becomes state: the first group of a regular expression, or its whole match."""

    pattern: Annotated[StrictStr, Field(min_length=1, max_length=500)]
    store_as: Annotated[StrictStr, Field(pattern=r"^[^\W\d]\w{0,63}$")]
    """Key in the state."""
    required: StrictBool = False
    format: Literal["text", "json"] = "text"


class SubCascade(_Settings):
    """Another cascade that runs inside a phase with a context of its own."""

    ref: Word
    """The `cascade_id` of the other cascade."""
    input_map: dict[Word, StrictStr] = Field(default_factory=dict)
    """Input of the other cascade by key, each a Jinja2 template over `input` and `state`."""
    context_in: StrictBool | Annotated[tuple[Word, ...], BeforeValidator(_list)] = True
    """State keys to pass in: all (true), none (false), or these."""
    context_out: StrictBool | Annotated[tuple[Word, ...], BeforeValidator(_list)] = True
    """State keys to pass back: all (true), none (false), or these."""


class Soundings(_Settings):
    """Several attempts at a phase from the same context, of which one is chosen."""

    factor: Annotated[StrictInt, Field(ge=1, le=100)]
    """Number of attempts."""
    evaluator_instructions: Instructions | None = None


class Phase(_Settings):
    """One step of a cascade."""

    name: PhaseName
    instructions: Instructions = ""
    """Jinja2 template over `input` and `state`, rendered when the phase is opened."""
    context: Context | None = None
    inject_from: Sources | None = None
    intra_context: IntraContext | None = None
    tackle: Annotated[tuple[Word, ...], BeforeValidator(_list)] | Literal["manifest"] = ()
    """Names of tools."""
    rules: Rules = Rules.model_construct()
    context_retention: Literal["full", "output_only"] = "full"
    """The part of this phase that later phases can see."""
    context_ttl: dict[TtlKind, Amount | None] | None = None
    """Steps of this phase, by kind of message, after which other phases no longer see the message; null means never."""
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
    """Description of each key of the input, for people."""
    auto_context: AutoContext | None = None
    phases: Annotated[tuple[Phase, ...], BeforeValidator(_list), Field(min_length=1, max_length=MAX_PHASES)]
    cascades: Annotated[tuple[Cascade, ...], BeforeValidator(_list), Field(max_length=MAX_PHASES)] = ()
    """Further cascades that `sub_cascades` may name."""

    def phase(self, name: str) -> Phase | None:
        """Return the phase with this name, or None."""
        return next((phase for phase in self.phases if phase.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the phases, in order."""
        return tuple(phase.name for phase in self.phases)
