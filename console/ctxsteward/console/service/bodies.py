"""Models of the HTTP API's request and answer bodies. The OpenAPI document is made from them, and clients from that.

A field of a published kind (`envelope`, `compression_report`, …) contains that document, as its JSON Schema says; the
OpenAPI document refers to the schema by its name. Tokens are the builder's estimates.

Every list, object and text of a request has a bound, which the OpenAPI document states. Checking a list stops at its
first fault: a body of two million numbers is refused as quickly as a body of one number.
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
from ctxsteward.schemas.cascade import PolicyName, SelectorName
from ctxsteward.schemas.frozen import FrozenModel

MAX_NAME = 200
MAX_MESSAGES = 1_000
"""Most messages that one request appends."""
MAX_HISTORY = 10_000
"""Most messages in the history of a build."""
MAX_PARTS = 256
"""Most parts of a message: blocks of content, blocks inside those, tool calls. Real ones have a few dozen at most."""
MAX_TEXT_CHARS = 2_000_000
"""Most characters of one text of a message, not counting images and documents. No model's window takes so many."""
MAX_FIELDS = 64
"""Most fields of a message, or of a tool's schema at its top level."""
MAX_TOOLS = 512
MAX_SYSTEM_CHARS = 1_000_000
_SPARE_FIELDS = 20
"""Most unknown fields that a refusal names one by one."""


def _within_bounds(wire: dict[str, Any]) -> dict[str, Any]:
    """Refuse a message with more fields or parts than real ones have, because a build's cost grows with the parts."""
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
    """Yield the texts of a message's content or calls, however the provider nests them."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, list) else ():
        if isinstance(part, dict):
            call = part.get("function")
            within = (part.get("text"), part.get("content"), part.get("arguments"))
            for inner in (*within, call.get("arguments") if isinstance(call, dict) else None):
                yield from _texts_in(inner)


def _parts_in(parts: list[Any]) -> int:
    """Count the parts and the parts inside them, such as those of a tool result."""
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
    """Convert a float such as 1.0, which is a whole number to JSON Schema; leave "1" and true, which are none."""
    return int(value) if type(value) is float and value.is_integer() else value


Tokens = Annotated[int, Field(ge=1, le=100_000_000), BeforeValidator(_whole)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Meta = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


class _Body(FrozenModel):
    model_config = ConfigDict(strict=True, defer_build=False)  # FastAPI warns about a body with a deferred schema

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        """Refuse many unknown fields at once: each would be a fault of its own, and a body has room for 100,000."""
        known = len(cls.model_fields)
        if isinstance(value, dict) and len(value) > known + _SPARE_FIELDS:
            raise PydanticCustomError("too_long", f"{len(value):,} fields; there are {known}")
        return value


# -- what is sent ---------------------------------------------------------------------------------------------------


class MessageInput(_Body):
    """A message to append, and what stands beside it."""

    message: SentMessage
    id: Meta | None = None
    """Id of the message. A message with a known id is not appended again, so send it again if an answer was lost."""
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
    """Name of a committed profile of the tenant; a session keeps the profile with which it was created."""


class AppendInput(_Body):
    """Messages of one session, which is made where there is none."""

    messages: Annotated[list[MessageInput], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)]
    head: HeadInput | None = None
    follow: bool = False
    """Whether the messages are the whole history: new ones are appended, and a changed past is kept in a fork."""


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
    """Provider whose request to render; null for the envelope alone."""
    model: Name | None = None
    """Model whose tokens and window count; null for the service's model."""
    budgets: BudgetsInput | None = None
    policy: PolicyName | None = None
    selector: SelectorName | None = None
    """What ranks the messages that may be recalled; null for `heuristic`."""
    summarizer: Name | None = None
    """Installed summarizer of history; null for `extractive`."""
    history: Annotated[list[SentMessage], Field(max_length=MAX_HISTORY, fail_fast=True)] | None = None
    """The whole history of the conversation; the session follows it before the build."""
    principal: Meta | None = None
    """Author of the user messages of `history`, so that `store forget --principal` finds them."""
    cache: bool = True
    """Whether the request marks the places where the provider may cache."""
    envelope: bool = True
    """Whether the answer contains the envelope; false saves its rendering."""


class CompactInput(_Body):
    """How far to compact."""

    keep_tokens: Annotated[int, Field(ge=0, le=100_000_000), BeforeValidator(_whole)] | None = None
    """Tokens of removable messages to keep verbatim; null compacts as if the present messages filled their budget."""
    model: Name | None = None
    budgets: BudgetsInput | None = None


class BeginInput(_Body):
    """A session that continues another one."""

    session: Name
    """Id of the new session."""


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
    """False if the session had the message already."""


class AppendResult(FrozenModel):
    """What became of the messages."""

    session: str
    """Session that has the messages; with `follow`, a fork if the history differs from the known one."""
    length: int
    """Number of messages in that session."""
    messages: tuple[AppendedMessage, ...]
    """One entry for each message sent; empty with `follow`."""
    findings: tuple[FindingBody, ...]


class BuildResult(FrozenModel):
    """An envelope, and the provider's request that it becomes."""

    session: str
    address: str
    tokens: int
    """Estimated tokens of the whole prompt."""
    provider: Provider | None
    request: dict[str, Any] | None
    """Arguments of the provider's client, without the model."""
    envelope: EnvelopeBody | None


class CompactionPrice(FrozenModel):
    """What a compaction costs and saves, in tokens at the price of one that no cache serves."""

    prompt_tokens_before: int
    prompt_tokens_after: int
    shared_prefix_tokens: int
    """Tokens of the unchanged beginning, which the cache still serves."""
    next_call_before: float
    next_call_after: float
    later_call_before: float
    later_call_after: float
    break_even_calls: int | None
    """Number of calls after which it has paid for itself; null if it saves nothing."""

    @classmethod
    def of(cls, before: Envelope, after: Envelope, builder: EnvelopeBuilder) -> Self:
        """Compare the price of calls with and without the compaction, given that the cache has the last prompt."""
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
    """False if nothing was or would be compacted; `reason` says why."""
    reason: str | None
    report: ReportBody | None
    price: CompactionPrice
    address: str | None
    """Address of the envelope that was built with it; null if nothing was written."""


class ResolvedOriginal(FrozenModel):
    """What a reference names, word for word."""

    ref: str
    role: str
    message: WireMessage


class SessionListing(FrozenModel):
    """A session in a list."""

    id: str
    records: int | None
    """Records of its log on this machine; 0 if only the object store has it; null if it cannot be read: a finding says
    why."""


class SessionPage(FrozenModel):
    """Sessions by name."""

    items: tuple[SessionListing, ...]
    next: str | None
    findings: tuple[FindingBody, ...]
    """Findings about unreadable parts of the object store and unreadable sessions of this page."""


class BegunSession(FrozenModel):
    """A new session, and the handoff that it opens with."""

    session: str
    length: int
    handoff: HandoffBody


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
