"""What a summarizer is given and gives back, and what a compaction lost.

A summarizer is a callable ``(source, *, budget_tokens) -> Summary``. It sees originals only, never bullets as text to
be summarized again; the standing bullets are shown so that it can say which of them a newer message supersedes.

`LossKind` is the closed enum of typed probes. Source: the layered-envelope design (structured compression pipeline).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import BeforeValidator, Field

from .chat_model import TokenUsage
from .frozen import FrozenModel
from .message import Message
from .recommendation import Trust

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
"""What the user wants; tools and limits; files; errors and fixes; what was settled; what is open; where it stands."""
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
"""Where a line stands of which nobody said a section."""


class Bullet(FrozenModel):
    """One frozen line of a compacted section, with at least one citation."""

    LATER: ClassVar[frozenset[str]] = frozenset(("section",))

    text: str
    """One line, no marker, no reference; quotes of the originals are unaltered."""
    citations: Annotated[tuple[str, ...], Field(min_length=1)]
    """References (``§12``) in ordinal order."""
    kind: LossKind = "fact"
    value: float = 0.0
    """How much it is worth keeping when bullets must go; higher stays. Comparable within a session."""
    section: HandoffSection | None = Field(default=None, exclude_if=lambda section: section is None)
    """Of a structured compaction: where it stands; left out of others."""
    trust: Trust | None = Field(default=None, exclude_if=lambda trust: trust is None)
    """Of an observation: the least trust of what it cites. Left out of others."""

    @property
    def place(self) -> HandoffSection:
        """Its section, or that of its kind."""
        return self.section or SECTION_OF_KIND[self.kind]


class Utterance(FrozenModel):
    """One side of the last raw turn."""

    ref: str
    text: str


class LastRawTurn(FrozenModel):
    """The newest user text and the newest assistant text, byte for byte."""

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
"""Kinds of failure; an HTTP status may stand behind one."""
_KINDS = "|".join(FALL_BACKS).replace("[", r"\[").replace("]", r"\]")
_FALL_BACK = re.compile(rf"({_KINDS})( \(HTTP [1-5][0-9]{{2}}\))?")


def _known_fall_back(value: object) -> object:
    """A kind of the closed set; earlier versions wrote more behind it, and of parts in other words.

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
    """What a model had to do with a summary: what of it was taken, and why the rest was not."""

    LATER: ClassVar[frozenset[str]] = frozenset(("pointed",))

    model: str
    template: str
    """Name, version and the first digits of its SHA-256: ``history_bullets 1 4f0c2a91``."""
    grounded: int
    """Bullets that are there because the model wrote them."""
    pointed: int = 0
    """Of those, in the words of their sources."""
    refused: dict[str, int] = Field(default_factory=dict)
    """What the model wrote that does not hold, by what is wrong with it; words of sources, or of rules, stand in."""
    fell_back: tuple[FallBack, ...] = ()
    """Why a part of the sources has no bullets of the model: of a closed set, with an HTTP status; no words of its."""
    calls: int = 0
    usage: TokenUsage = TokenUsage.model_construct()


class Summary(FrozenModel):
    """What a summarizer returns."""

    LATER: ClassVar[frozenset[str]] = frozenset(("origin",))

    bullets: tuple[Bullet, ...]
    """New bullets, in ordinal order of their first citation."""
    superseded: tuple[int, ...] = ()
    """Positions in `SummarizerInput.standing` whose value a newer message replaces."""
    last_raw_turn: LastRawTurn = LastRawTurn.model_construct()
    origin: SummaryOrigin | None = None
    """None: no model was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMessage:
    """An original with the reference to cite it by."""

    ref: str
    message: Message
    ts: str | None = None
    """When it was said, ISO 8601; None: the log does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizerInput:
    """Everything a summarizer may look at."""

    messages: tuple[SourceMessage, ...]
    """To be shortened, in ordinal order."""
    standing: tuple[Bullet, ...] = ()
    """Bullets of earlier compactions; never to be rewritten."""
    visible: tuple[SourceMessage, ...] = ()
    """Messages that stay verbatim in the window, in ordinal order: they may supersede, and need no bullet."""
    count_tokens: Callable[[str], int] = len
    """Tokens of a text; the default counts characters so that a reader can do the arithmetic."""


class ReplacementReader(Protocol):
    """Reads one conversation for what replaces what."""

    def read(self, message: SourceMessage) -> None:
        """Take the next message, in ordinal order."""

    def replaced_by(self, ref: str) -> tuple[str, ...]:
        """References of what says the newest of what this message says; () where nothing of it is replaced.

        `ref` names a message, or a passage of a long one (`§12.4`), and so do the references that are given.
        """


@runtime_checkable
class ResumableReader(ReplacementReader, Protocol):
    """A reader that can go on in another process where it was."""

    def state(self) -> list[Any]:
        """What it knows: lists, numbers and texts, as JSON has them."""

    def resume(self, state: list[Any]) -> bool:
        """Take up a state; False, and nothing is changed, where other rules than its own have made it."""


class RuleReading(NamedTuple):
    """What a user's message does with rules."""

    stated: tuple[str, ...] = ()
    """Rules that it states, in the user's own words."""
    may_lift: bool = False
    """Whether it may lift an earlier one: `RuleReader.lifts` says which."""


class RuleReader(Protocol):
    """Reads users' messages for rules that last."""

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
    """Something the originals said that the section no longer shows; it still resolves by `ref`."""

    kind: LossKind
    text: str
    ref: str
    span: tuple[int, int] | None = None
    """Character offsets into the original's text; None: the message as a whole."""


class ObservationCounts(FrozenModel):
    """Changes of an observation log. Reports of earlier versions hold it; none is written any more."""

    appended: int
    merged: int = 0
    """Observations that others stand for from now on."""
    reflections: int = 0
    """Those others."""
    left: int = 0
    """Observations that went for want of room."""
    tokens: int = 0
    """Of the log as the window shows it now."""


class CompressionReport(FrozenModel):
    """The published view of one compaction; tokens are those of its section."""

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
    """ISO 8601 as told by the caller's clock; None without one."""
    origin: SummaryOrigin | None = Field(default=None, exclude_if=lambda origin: origin is None)
    """What a model had to do with the bullets; left out where none was asked."""
    observations: ObservationCounts | None = Field(default=None, exclude_if=lambda counts: counts is None)
    """Changes of the observation log, in reports of earlier versions."""
