"""What the HTTP API takes and gives, as models: the OpenAPI document is made from them, and clients from that.

A field of a published kind (`envelope`, `compression_report`, …) is that document, as its JSON Schema says; the OpenAPI
document refers to the schema by its name. Tokens are the builder's estimates.

Every list, object and text that is sent has a bound, which the OpenAPI document states. A list that does not fit is
left at its first fault: a body of two million numbers is refused as quickly as one of a single number.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Prices
from ctxsteward.envelope.envelope import Provider
from ctxsteward.envelope.telemetry.spans import prefix_tokens
from ctxsteward.schemas.cascade import PolicyName
from ctxsteward.schemas.frozen import FrozenModel

MAX_NAME = 200
MAX_MESSAGES = 1_000
"""That one request appends."""
MAX_HISTORY = 10_000
"""Messages of a history that a build is given."""
MAX_PARTS = 256
"""Of one message: blocks of its content, blocks inside those, and tool calls. A real one has a few dozen at most."""
MAX_TEXT_CHARS = 2_000_000
"""Of one text of a message; images and documents are no text. No model's window takes so much."""
MAX_FIELDS = 64
"""Of one message, or of one tool's schema at its top."""
MAX_TOOLS = 512
MAX_SYSTEM_CHARS = 1_000_000
_SPARE_FIELDS = 20
"""Unknown fields that a refusal names one by one."""


def _within_bounds(wire: dict[str, Any]) -> dict[str, Any]:
    """Refuse a message with more fields or parts than a real one has: what builds cost grows with its parts."""
    if len(wire) > MAX_FIELDS:
        raise PydanticCustomError("too_long", f"{len(wire):,} fields; a message may have {MAX_FIELDS}")
    for name in ("content", "tool_calls"):
        parts = wire.get(name)
        if isinstance(parts, list) and (count := _parts_in(parts)) > MAX_PARTS:
            raise PydanticCustomError("too_long", f"`{name}` has {count:,} parts; a message may have {MAX_PARTS}")
        for text in _texts_in(parts):
            if len(text) > MAX_TEXT_CHARS:
                raise PydanticCustomError(
                    "too_long", f"`{name}` has a text of {len(text):,} characters; one may have {MAX_TEXT_CHARS:,}"
                )
    return wire


def _texts_in(value: Any) -> Iterator[str]:
    """The texts of a message's content or calls, however the provider nests them."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, list) else ():
        if isinstance(part, dict):
            call = part.get("function")
            within = (part.get("text"), part.get("content"), part.get("arguments"))
            for inner in (*within, call.get("arguments") if isinstance(call, dict) else None):
                yield from _texts_in(inner)


def _parts_in(parts: list[Any]) -> int:
    """Parts, and those inside them: the result of a tool has parts of its own."""
    inner = (part.get("content") for part in parts if isinstance(part, dict))
    return len(parts) + sum(len(one) for one in inner if isinstance(one, list))


_MESSAGE_BOUNDS = {
    "maxProperties": MAX_FIELDS,
    "properties": {
        "content": {"maxItems": MAX_PARTS, "maxLength": MAX_TEXT_CHARS},
        "tool_calls": {"maxItems": MAX_PARTS},
    },
}
SentMessage = Annotated[
    dict[str, Any], AfterValidator(_within_bounds), WithJsonSchema({"x-published": "message", **_MESSAGE_BOUNDS})
]
"""A message that a client sends, within bounds."""
SentTool = Annotated[
    dict[str, Any],
    Field(max_length=MAX_FIELDS),
    WithJsonSchema({"type": "object", "additionalProperties": True, "maxProperties": MAX_FIELDS}),
]
WireMessage = Annotated[dict[str, Any], WithJsonSchema({"x-published": "message"})]
EnvelopeBody = Annotated[dict[str, Any], WithJsonSchema({"x-published": "envelope"})]
ReportBody = Annotated[dict[str, Any], WithJsonSchema({"x-published": "compression_report"})]
FindingBody = Annotated[dict[str, Any], WithJsonSchema({"x-published": "finding"})]
HandoffBody = Annotated[dict[str, Any], WithJsonSchema({"x-published": "handoff"})]
EntryBody = Annotated[dict[str, Any], WithJsonSchema({"x-published": "changelog_entry"})]
RecordBody = Annotated[dict[str, Any], WithJsonSchema({"x-published": "meta_recommendation"})]
ResultBody = Annotated[dict[str, Any], WithJsonSchema({"x-published": "eval_result"})]


def _whole(value: Any) -> Any:
    """1.0 is a whole number to JSON Schema; "1" and true are none."""
    return int(value) if type(value) is float and value.is_integer() else value


Tokens = Annotated[int, Field(ge=1, le=100_000_000), BeforeValidator(_whole)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Meta = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


class _Body(FrozenModel):
    model_config = ConfigDict(strict=True, defer_build=False)  # FastAPI warns of a body whose schema is not built

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        """Each unknown field is a fault of its own, and a body has room for a hundred thousand of them."""
        known = len(cls.model_fields)
        if isinstance(value, dict) and len(value) > known + _SPARE_FIELDS:
            raise PydanticCustomError("too_long", f"{len(value):,} fields; there are {known}")
        return value


# -- what is sent ---------------------------------------------------------------------------------------------------


class MessageInput(_Body):
    """A message to append, and what stands beside it."""

    message: SentMessage
    id: Meta | None = None
    """The same id twice is the same message: send it again after an answer that was lost."""
    phase: Meta | None = None
    pin: Literal["keep", "soft"] | None = None
    ts: Meta | None = None
    principal: Meta | None = None
    origin: Meta | None = None


class HeadInput(_Body):
    """The application's own head of a session; what is named takes the place of what was."""

    system: Annotated[str, Field(max_length=MAX_SYSTEM_CHARS)] | None = None
    tools: Annotated[list[SentTool], Field(max_length=MAX_TOOLS, fail_fast=True)] | None = None
    profile: Name | None = None
    """A committed profile of the tenant; a session keeps the one it was created with."""


class AppendInput(_Body):
    """Messages of one session, which is made where there is none."""

    messages: Annotated[list[MessageInput], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)]
    head: HeadInput | None = None
    follow: bool = False
    """The messages are the whole history: what is new is appended, and a changed past is kept in a fork."""


class BudgetsInput(_Body):
    """Budgets of a build, in tokens of the model; what is left out keeps the service's value."""

    system_tokens: Tokens | None = None
    static_tokens: Tokens | None = None
    meta_tokens: Tokens | None = None
    dynamic_tokens: Tokens | None = None
    tools_tokens: Tokens | None = None
    compact_at_fraction: Fraction | None = None
    compact_to_fraction: Fraction | None = None
    recall_fraction: Fraction | None = None
    arrival_cap_tokens: Tokens | None = None
    facts_fraction: Fraction | None = None


class BuildInput(_Body):
    """What the envelope is built for."""

    provider: Provider | None = None
    """Whose request it becomes; null: the envelope alone."""
    model: Name | None = None
    """Whose tokens and window count; null: the service's."""
    budgets: BudgetsInput | None = None
    policy: PolicyName | None = None
    history: Annotated[list[SentMessage], Field(max_length=MAX_HISTORY, fail_fast=True)] | None = None
    """The whole history: it is followed first, and built on where it stands."""
    principal: Meta | None = None
    """Who the user messages of `history` are by, so that `store forget --principal` finds them."""
    cache: bool = True
    """Mark where the provider may cache."""
    envelope: bool = True
    """Send the envelope along; false saves its rendering."""


class CompactInput(_Body):
    """How far to compact."""

    keep_tokens: Annotated[int, Field(ge=0, le=100_000_000), BeforeValidator(_whole)] | None = None
    """Of messages that may leave, keep so many tokens verbatim; null: as if what stands there filled its budget."""
    model: Name | None = None
    budgets: BudgetsInput | None = None


class ErasureInput(_Body):
    """Whom to forget: a session with its forks, a principal in all sessions, or a principal in one."""

    session: Name | None = None
    principal: Name | None = None
    why: Name
    """Such as the number of the request; kept in plain."""


# -- what is given --------------------------------------------------------------------------------------------------


class Health(FrozenModel):
    """The service answers, and so does its store."""

    status: Literal["ok"]


class AppendedMessage(FrozenModel):
    """Where a message stands."""

    ref: str
    ordinal: int
    is_new: bool
    """False: it was there already."""


class AppendResult(FrozenModel):
    """What became of the messages."""

    session: str
    """Where they stand: with `follow` a fork, if the history goes another way than what was known."""
    length: int
    """Messages up to there."""
    messages: tuple[AppendedMessage, ...]
    """Each that was sent; with `follow` none."""
    findings: tuple[FindingBody, ...]


class BuildResult(FrozenModel):
    """An envelope, and the provider's request that it becomes."""

    session: str
    address: str
    tokens: int
    """Of the whole prompt, as estimated."""
    provider: Provider | None
    request: dict[str, Any] | None
    """Arguments of the provider's client, without the model."""
    envelope: EnvelopeBody | None


class CompactionPrice(FrozenModel):
    """What a compaction costs and saves, in tokens at the price of one that no cache serves."""

    prompt_tokens_before: int
    prompt_tokens_after: int
    shared_prefix_tokens: int
    """Unchanged beginning, which the cache goes on serving."""
    next_call_before: float
    next_call_after: float
    later_call_before: float
    later_call_after: float
    break_even_calls: int | None
    """Calls after which it has paid; null: it saves nothing."""

    @classmethod
    def of(cls, before: Envelope, after: Envelope, builder: EnvelopeBuilder) -> Self:
        """With and without the compaction, where the provider's cache holds what was sent."""
        prices, old, new = builder.prices or Prices(), before.tokens, after.tokens
        shared = min(prefix_tokens(before, after, builder.counter.text), new)
        now, then, later = prices.of(old, old), prices.of(new, shared), prices.of(new, new)
        calls = max(0, ceil((then - now) / (now - later))) if now > later else None
        return cls(
            prompt_tokens_before=old,
            prompt_tokens_after=new,
            shared_prefix_tokens=shared,
            next_call_before=round(now, 1),
            next_call_after=round(then, 1),
            later_call_before=round(now, 1),
            later_call_after=round(later, 1),
            break_even_calls=calls,
        )


class Compaction(FrozenModel):
    """What a compaction did, or would do."""

    session: str
    dry_run: bool
    is_compacted: bool
    """False: nothing was or would be compacted, and `reason` says why."""
    reason: str | None
    report: ReportBody | None
    price: CompactionPrice
    address: str | None
    """Of the envelope that was built with it; null: nothing was written."""


class ResolvedOriginal(FrozenModel):
    """What a reference names, word for word."""

    ref: str
    role: str
    message: WireMessage


class SessionListing(FrozenModel):
    """A session in a list."""

    id: str
    records: int | None
    """In its log on this machine; 0: it lies in the object store alone; null: it cannot be read, and a finding says
    why."""


class SessionPage(FrozenModel):
    """Sessions by name."""

    items: tuple[SessionListing, ...]
    next: str | None
    findings: tuple[FindingBody, ...]
    """Parts of the object store, and sessions of this page, that could not be read."""


class ReportPage(FrozenModel):
    """Compactions of a session, newest first."""

    items: tuple[ReportBody, ...]
    next: str | None


class ProfileVersionRow(FrozenModel):
    """A version of a profile."""

    profile: str
    entry: EntryBody
    is_head: bool


class ProfileVersionPage(FrozenModel):
    """Versions, newest first, of one profile after another."""

    items: tuple[ProfileVersionRow, ...]
    next: str | None


class RecordPage(FrozenModel):
    """Records of the steward, by id."""

    items: tuple[RecordBody, ...]
    next: str | None


class ResultPage(FrozenModel):
    """Results of eval suites, newest first."""

    items: tuple[ResultBody, ...]
    next: str | None
