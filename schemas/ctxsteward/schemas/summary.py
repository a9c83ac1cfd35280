"""The input and output of a summarizer, and the losses of a compaction.

A summarizer is a callable ``(source, *, budget_tokens) -> Summary``. It shortens only originals and never summarizes
bullets again; it gets the standing bullets so that it can report which of them a newer message supersedes.

`LossKind` has the closed set of kinds of losses. Source: the layered-envelope design (structured compression pipeline).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from pydantic import BeforeValidator, Field

from .chat_model import TokenUsage
from .frozen import FrozenModel
from .message import Message

Trust = Literal["operator", "user", "assistant", "tool_internal", "tool_external"]
TRUST: tuple[Trust, ...] = get_args(Trust)
"""All labels, from the most trusted to the least; derived text has the least trusted label of its sources."""
LossKind = Literal[
    "constraint",
    "decision",
    "number",
    "identifier",
    "path",
    "url",
    "error",
    "open_item",
    "preference",
    "fact",
]

HandoffSection = Literal["intent", "technical", "files", "errors", "decisions", "pending", "state"]
"""The user's intent; tools and limits; files; errors and fixes; decisions; open items; current state of the work."""
SECTION_OF_KIND: dict[LossKind, HandoffSection] = {
    "constraint": "intent",
    "decision": "decisions",
    "number": "technical",
    "identifier": "technical",
    "path": "files",
    "url": "files",
    "error": "errors",
    "open_item": "pending",
    "preference": "intent",
    "fact": "technical",
}
"""Section of a line without an explicit one, by its kind."""


class Bullet(FrozenModel):
    """One frozen line of a compacted section, with at least one citation."""

    LATER: ClassVar[frozenset[str]] = frozenset(("section",))

    text: str
    """One line without marker or reference; quotes of the originals are unchanged."""
    citations: Annotated[tuple[str, ...], Field(min_length=1)]
    """References (``§12``) in ordinal order."""
    kind: LossKind = "fact"
    value: float = 0.0
    """Value of keeping the bullet; when bullets must go, those with higher values stay. Comparable within a session."""
    section: HandoffSection | None = Field(default=None, exclude_if=lambda section: section is None)
    """Section in a structured compaction; left out in others."""
    trust: Trust | None = Field(default=None, exclude_if=lambda trust: trust is None)
    """The least trust of the cited messages, in an observation; left out in others."""

    @property
    def place(self) -> HandoffSection:
        """The bullet's section, or else that of its kind."""
        return self.section or SECTION_OF_KIND[self.kind]


class Utterance(FrozenModel):
    """One side of the last raw turn."""

    ref: str
    text: str


class LastRawTurn(FrozenModel):
    """The newest user text and the newest assistant text, verbatim."""

    user: Utterance | None = None
    assistant: Utterance | None = None


FALL_BACKS = (
    "no answer of the model",
    "spending stopped",
    "answer not usable",
    "error in the model or its adapter",
    "parts left out",
    "not reflected",
    "nothing to hand over",
    "[erased]",
    "another fault",
)
"""Kinds of failure; an HTTP status may follow one."""
_KINDS = "|".join(FALL_BACKS).replace("[", r"\[").replace("]", r"\]")
_FALL_BACK = re.compile(rf"({_KINDS})( \(HTTP [1-5][0-9]{{2}}\))?")


def _known_fall_back(value: object) -> object:
    """Return the kind of the closed set; earlier versions wrote further text after it, and another text about parts.

    >>> _known_fall_back("no answer of the model (HTTP 503): upstream down")
    'no answer of the model (HTTP 503)'
    """
    if not isinstance(value, str):
        return value
    if match := _FALL_BACK.match(value):
        return match[0]
    return "parts left out" if value.endswith("parts were not asked for: too long") else FALL_BACKS[-1]


FallBack = Annotated[str, BeforeValidator(_known_fall_back), Field(pattern=rf"^{_FALL_BACK.pattern}$")]


class SummaryOrigin(FrozenModel):
    """A model's part in a summary: the accepted bullets, and why others were refused."""

    LATER: ClassVar[frozenset[str]] = frozenset(("pointed",))

    model: str
    template: str
    """Name, version and the first digits of the template's SHA-256: ``history_bullets 1 4f0c2a91``."""
    grounded: int
    """Number of bullets that the model wrote."""
    pointed: int = 0
    """Number of those in the words of their sources."""
    refused: dict[str, int] = Field(default_factory=dict)
    """Number of the model's invalid lines, by fault; words of sources or lines made by rules replace them."""
    fell_back: tuple[FallBack, ...] = ()
    """Reasons (closed set, some with an HTTP status, no words of the model) why a part has no bullets of the model."""
    calls: int = 0
    usage: TokenUsage = TokenUsage.model_construct()


class Summary(FrozenModel):
    """The output of a summarizer."""

    LATER: ClassVar[frozenset[str]] = frozenset(("origin",))

    bullets: tuple[Bullet, ...]
    """New bullets, in ordinal order of their first citation."""
    superseded: tuple[int, ...] = ()
    """Positions in `SummarizerInput.standing` whose value a newer message replaces."""
    last_raw_turn: LastRawTurn = LastRawTurn.model_construct()
    origin: SummaryOrigin | None = None
    """The model's part, or None if no model was called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMessage:
    """An original with its reference for citations."""

    ref: str
    message: Message
    ts: str | None = None
    """Time of the message in ISO 8601, or None if the log has none."""


class WordUse(NamedTuple):
    """The use of a word, or of two words in a row, by the users of a session."""

    messages: int
    """Number of users' messages that contain the word."""
    first: int
    """Ordinal of the first such message; 0 if there is none, and for two words in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizerInput:
    """The whole input of a summarizer."""

    messages: tuple[SourceMessage, ...]
    """Messages to shorten, in ordinal order."""
    standing: tuple[Bullet, ...] = ()
    """Bullets of earlier compactions, which must not be rewritten."""
    visible: tuple[SourceMessage, ...] = ()
    """Messages that stay verbatim in the window, in ordinal order; they may supersede others and need no bullet."""
    count_tokens: Callable[[str], int] = len
    """Count the tokens of a text; the default counts characters, so that a reader can check the arithmetic."""
    uses: Callable[[str], WordUse] | None = None
    """Lookup of users' use of a word (lower case), or of two words with a blank between, in the whole session so far;
    None if only the given messages are known."""


class ReplacementReader(Protocol):
    """A reader of one conversation that finds statements which replace earlier ones."""

    def read(self, message: SourceMessage) -> None:
        """Read the next message, in ordinal order."""

    def replaced_by(self, ref: str) -> tuple[str, ...]:
        """Return the references of the newest messages that replace a statement of this message, or ().

        `ref` and the results are references of messages, or of passages of long ones (`§12.4`).
        """


@runtime_checkable
class ResumableReader(ReplacementReader, Protocol):
    """A reader that can continue in another process."""

    def state(self) -> list[Any]:
        """Return the reader's state as JSON lists, numbers and texts."""

    def resume(self, state: list[Any]) -> bool:
        """Load a state; if a reader with other rules made it, change nothing and return False."""


class RuleReading(NamedTuple):
    """The rules in a user's message."""

    stated: tuple[str, ...] = ()
    """Rules that the message states, in the user's own words."""
    may_lift: bool = False
    """Whether the message may lift an earlier rule; `RuleReader.lifts` decides for each rule."""


class RuleReader(Protocol):
    """A reader of users' messages that finds lasting rules."""

    def read(self, text: str) -> RuleReading:
        """Read one message of a user."""

    def lifts(self, rule: str, text: str) -> bool:
        """Return whether a later message of the same user, which may lift rules, lifts this one."""


class Summarizer(Protocol):
    """Shorten originals into cited bullets within `budget_tokens`."""

    def __call__(self, source: SummarizerInput, *, budget_tokens: int) -> Summary: ...


class Span(NamedTuple):
    """Character offsets into the text of the original."""

    start: int
    stop: int


class Loss(FrozenModel):
    """A statement of an original that the section no longer shows; the original still resolves by `ref`."""

    kind: LossKind
    text: str
    ref: str
    span: tuple[int, int] | None = None
    """Character offsets into the original's text, or None for the whole message."""


class ObservationCounts(FrozenModel):
    """Changes of an observation log, in reports of earlier versions; no version writes it now."""

    appended: int
    merged: int = 0
    """Number of observations that reflections replace."""
    reflections: int = 0
    """Number of these reflections."""
    left: int = 0
    """Number of observations that were dropped because they did not fit."""
    tokens: int = 0
    """Tokens of the log in the window."""


class CompressionReport(FrozenModel):
    """The published report of one compaction; tokens are those of its section."""

    LATER: ClassVar[frozenset[str]] = frozenset(("origin", "observations"))

    id: str
    section: Literal["system", "static", "meta", "dynamic"]
    pre_tokens: int
    post_tokens: int
    losses: tuple[Loss, ...]
    kept_refs: tuple[str, ...]
    """Originals that a bullet cites or that stay verbatim."""
    policy: str
    source_addresses: tuple[str, ...]
    """Addresses of the originals that left the window, in ordinal order."""
    artifact: str
    """Address of the stored compaction."""
    created_at: str | None
    """ISO 8601 time by the caller's clock; None without one."""
    origin: SummaryOrigin | None = Field(default=None, exclude_if=lambda origin: origin is None)
    """The model's part in the bullets; left out if no model was called."""
    observations: ObservationCounts | None = Field(default=None, exclude_if=lambda counts: counts is None)
    """Changes of the observation log, in reports of earlier versions."""
