"""The events of a session, and their form as journal records.

opened | head | message | note | pin | outcome | compaction | observations | refused | selection | erased. Every
decision about a session is one of these events, so an envelope is a pure function of a log prefix and budgets. A
compaction contains the whole state of the window after it, so a session is read from its newest compaction on.

Unknown fields are ignored, because a later minor version may add some. A record of an unknown kind raises
`UnsupportedVersion`, because the state would be wrong without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple

from ctxsteward.schemas import Bullet, CompressionReport
from ctxsteward.schemas.documents import Outcome
from ctxsteward.schemas.errors import UnsupportedVersion
from ctxsteward.schemas.summary import SummaryOrigin

from .port import JournalRecord

RECORDS_VERSION = 1
"""Major version of the content of journal records."""

NONCE_DIGITS = 9
"""Decimal digits of a nonce: 30 bits, and three tokens for every nonce, so that no session costs more by chance."""

PinStrength = Literal["keep", "soft"]
"""keep: the message stays verbatim in the window. soft: it leaves the window last."""


class ForkPoint(NamedTuple):
    """The parent of a forked session, and the position and ordinal up to which the fork shares its log."""

    session: str
    position: int
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened:
    """The first event of a log."""

    nonce: str
    """Random digits for fences around derived text, drawn once per session; a fork has its parent's."""
    parent: ForkPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """The operator's part of a session: profile (as a JSON document), own system texts, tool schemas."""

    profile: dict[str, Any] | None = None
    system: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    project: str | None = None
    """The session's project, which earlier versions recorded; kept, but not used."""
    findings: tuple[dict[str, Any], ...] = field(default=(), compare=False)
    """Findings about the head at the time of writing, compared with the profile in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The place of a message in its tool group; decided once, when it is appended."""

    joins: bool = False
    """Whether the message belongs to the previous tool group."""
    aliases: tuple[tuple[int, str], ...] = ()
    """Pairs: index of a tool call in the message, and its new id, because its own is missing or taken."""
    answers: tuple[tuple[int, str], ...] = ()
    """Pairs: index of a tool result in the message, and the id or alias of the call that it answers."""
    orphans: tuple[int, ...] = ()
    """Indexes of tool results that answer no open call."""
    findings: tuple[str, ...] = ()
    """Kinds of the repairs that were necessary."""


PLAIN = Placement()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAppended:
    """An appended message."""

    ordinal: int
    wire: str
    placement: Placement = PLAIN
    tokens: dict[str, int] = field(default_factory=dict)
    """Tokens by counter name."""
    outputs: int = 0
    """Number of tool outputs in the session up to and including this message; 0 if it has none itself."""
    id: str | None = None
    phase: str | None = None
    pin: PinStrength | None = None
    ts: str | None = None
    principal: str | None = None
    origin: str | None = None
    address: str = ""
    erased: bool = False
    """Whether its subject was forgotten; the other content is then blank."""
    damaged: bool = False
    """Whether it replaces a record that cannot be read; never stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSet:
    """A named note; it replaces an earlier note of the same name, and an empty text removes it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PinSet:
    """A pin on a message, or, with `strength` None, its removal."""

    ordinal: int
    strength: PinStrength | None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTold:
    """The session's outcome as the application reports it; the latest report counts."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCompacted:
    """A compaction and the state of the window after it."""

    bullets: tuple[Bullet, ...]
    reserve: tuple[Bullet, ...] = ()
    """Bullets that do not fit now; a later compaction may show them again."""
    kept: tuple[tuple[int, ...], ...]
    """Ordinals of the messages that stay verbatim, group by group."""
    masked: tuple[int, ...] = ()
    """First ordinals of kept groups whose tool results are shown as one line from now on."""
    shortened: dict[int, int] = field(default_factory=dict)
    """First ordinals of kept groups whose text is shown only by its beginning and end from now on, each with the
    tokens that the text may take."""
    reply_tokens: int = 0
    """Most tokens of an assistant's reply after a newer reply has been answered; 0 for no limit."""
    report: CompressionReport
    checkpoint: dict[str, Any]
    """The other state that a reader needs to start here; see `state.State.checkpoint`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationsAppended:
    """Lines of a session's observation log. Earlier versions wrote this event; no version writes it now."""

    appended: tuple[Bullet, ...]
    """Observations to append to the log."""
    upto: int
    """Ordinal up to which messages have been observed."""
    standing: tuple[Bullet, ...] | None = None
    """The log before `appended` if lines were merged or dropped, merged lines first; None if it is unchanged."""
    merged: tuple[tuple[Bullet, ...], ...] = ()
    """For each merged line at the start of `standing`, the observations that it replaces."""
    origin: SummaryOrigin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRefused:
    """A compaction that was due but not made."""

    reason: str
    section_tokens: int
    """Tokens of dynamic at the refusal; the next attempt waits until dynamic has a tenth more."""


class FactRef(NamedTuple):
    """A reference to a shown fact; its text is in the vault."""

    id: str
    blob: str
    """Address of the content."""
    key: str
    """Address of the subject whose key decrypts it."""


class EarlierLine(NamedTuple):
    """A shown line that a person said in another session: a reference and the encrypted row."""

    session: str
    """Session in which the line was said."""
    ordinal: int
    key: str
    """Address of the subject whose key decrypts it: the person in that session. Empty in a draft, which is plain."""
    sealed: str
    """The shown row: ciphertext as base64, or plain text in a draft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSelected:
    """Originals recalled for a user turn, and the facts and lines of earlier sessions shown with them."""

    turn: int
    """Ordinal of the turn's user message."""
    refs: tuple[int, ...]
    log: dict[str, Any]
    """The published selection log."""
    superseded: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Ordinals in `refs` that later messages replace in part, with the ordinals of the later messages."""
    facts: tuple[FactRef, ...] = ()
    """Facts in the order in which they are shown."""
    excerpts: dict[int, int] = field(default_factory=dict)
    """Ordinals of messages that the question names by number and that are shown as excerpts, with the most tokens of
    the excerpt of a message in `refs`; 0 if the window itself shows the excerpt."""
    passages: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Ordinals in `refs` of long messages that are shown only in passages, with the passages' numbers, ascending."""
    earlier: tuple[EarlierLine, ...] = ()
    """Lines of earlier sessions in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlankRecord:
    """An empty record in place of a record whose content was forgotten."""

    was: str = ""
    """Kind of the forgotten record."""


Event = (
    SessionOpened
    | SessionHead
    | MessageAppended
    | NoteSet
    | PinSet
    | OutcomeTold
    | WindowCompacted
    | ObservationsAppended
    | CompactionRefused
    | RecallSelected
    | BlankRecord
)


_BY_ORDINAL = ("superseded", "excerpts", "passages")
"""Optional fields of a selection, by ordinal; an empty one is not written."""


def _tuples(rows: Iterable[tuple[int, Iterable[int]]]) -> dict[int, tuple[int, ...]]:
    return {ordinal: tuple(numbers) for ordinal, numbers in rows}


_PLAIN_KINDS: dict[str, type[NoteSet | PinSet | CompactionRefused | BlankRecord]] = {
    "note": NoteSet,
    "pin": PinSet,
    "refused": CompactionRefused,
    "erased": BlankRecord,
}
"""Kinds of records whose body is exactly the fields of the event."""


def to_record(event: Event) -> JournalRecord:
    """Return the journal record of an event."""
    match event:
        case MessageAppended():
            return JournalRecord("message", _message_body(event), event.ordinal, event.outputs, event.id, event.wire)
        case SessionOpened(nonce=nonce, parent=parent):
            return JournalRecord("opened", encoded_body({"nonce": nonce, "parent": list(parent) if parent else None}))
        case SessionHead(profile=profile, system=system, tools=tools, project=project, findings=findings):
            optional: dict[str, Any] = {} if project is None else {"project": project}
            optional |= {"findings": findings} if findings else {}
            return JournalRecord(
                "head", encoded_body({"profile": profile, "system": system, "tools": tools, **optional})
            )
        case OutcomeTold(outcome=outcome):
            return JournalRecord("outcome", encoded_body(outcome.model_dump(exclude_none=True)))
        case WindowCompacted():
            bullets = ",".join(bullet.model_dump_json() for bullet in event.bullets)
            shortened = {"shortened": list(event.shortened.items())} if event.shortened else {}
            replies = {"reply_tokens": event.reply_tokens} if event.reply_tokens else {}
            window = {"kept": event.kept, "masked": event.masked, **shortened, **replies}
            window |= {"reserve": [bullet.model_dump(mode="json") for bullet in event.reserve]} if event.reserve else {}
            window["checkpoint"] = event.checkpoint
            rest = encoded_body(window)[1:]
            return JournalRecord(
                "compaction", f'{{"bullets":[{bullets}],"report":{event.report.model_dump_json()},{rest}'
            )
        case ObservationsAppended():
            observed: dict[str, Any] = {"appended": _rows(event.appended), "upto": event.upto}
            if event.standing is not None:
                observed |= {"standing": _rows(event.standing), "merged": list(map(_rows, event.merged))}
            if event.origin is not None:
                observed["origin"] = event.origin.model_dump(mode="json")
            return JournalRecord("observations", encoded_body(observed))
        case RecallSelected():
            body: dict[str, Any] = {"turn": event.turn, "refs": event.refs, "log": event.log}
            body |= {"facts": event.facts} if event.facts else {}
            for name in _BY_ORDINAL:
                body |= {name: list(rows.items())} if (rows := getattr(event, name)) else {}
            body |= {"earlier": event.earlier} if event.earlier else {}
            return JournalRecord("selection", encoded_body(body))
        case _:
            kind = next(kind for kind, plain in _PLAIN_KINDS.items() if isinstance(event, plain))
            return JournalRecord(kind, encoded_body(asdict(event)))


def from_record(record: JournalRecord) -> Event:
    """Return the event in a journal record."""
    body = json.loads(record.body)
    match record.kind:
        case "message":
            return _message(record, body)
        case "opened":
            parent = body["parent"]
            return SessionOpened(nonce=body["nonce"], parent=ForkPoint(*parent) if parent else None)
        case "head":
            return SessionHead(
                profile=body["profile"],
                system=tuple(body["system"]),
                tools=tuple(body["tools"]),
                project=body.get("project"),
                findings=tuple(body.get("findings", ())),
            )
        case "outcome":
            known = {name: value for name, value in body.items() if name in Outcome.model_fields}
            return OutcomeTold(outcome=Outcome.model_validate(known))
        case "compaction":
            return WindowCompacted(
                bullets=bullets_of(body["bullets"]),
                reserve=bullets_of(body.get("reserve", ())),
                kept=tuple(tuple(group) for group in body["kept"]),
                masked=tuple(body.get("masked", ())),
                shortened=dict(body.get("shortened", ())),
                reply_tokens=body.get("reply_tokens", 0),
                report=CompressionReport.model_validate(body["report"]),
                checkpoint=body["checkpoint"],
            )
        case "observations":
            return ObservationsAppended(
                appended=bullets_of(body["appended"]),
                upto=body["upto"],
                standing=None if body.get("standing") is None else bullets_of(body["standing"]),
                merged=tuple(map(bullets_of, body.get("merged", ()))),
                origin=None if body.get("origin") is None else SummaryOrigin.model_validate(body["origin"]),
            )
        case "selection":
            return RecallSelected(
                turn=body["turn"],
                refs=tuple(body["refs"]),
                log=body["log"],
                facts=facts_of(body.get("facts", ())),
                superseded=_tuples(body.get("superseded", ())),
                excerpts=dict(body.get("excerpts", ())),
                passages=_tuples(body.get("passages", ())),
                earlier=tuple(EarlierLine(*row) for row in body.get("earlier", ())),
            )
        case kind if kind in _PLAIN_KINDS:
            plain = _PLAIN_KINDS[kind]
            return plain(**{field.name: body[field.name] for field in fields(plain) if field.name in body})
        case other:
            raise UnsupportedVersion(
                "a journal record", f"{RECORDS_VERSION + 1} or later (kind {other[:40]!r})", RECORDS_VERSION
            )


def bullets_of(rows: Iterable[Any]) -> tuple[Bullet, ...]:
    """Return bullets from their JSON."""
    return tuple(map(Bullet.model_validate, rows))


def _rows(bullets: Iterable[Bullet]) -> list[dict[str, Any]]:
    return [bullet.model_dump(mode="json") for bullet in bullets]


def fork_point(first: Sequence[JournalRecord]) -> ForkPoint | None:
    """Return the fork point in a log's first record, or None if the log is no fork or is empty."""
    opened = from_record(first[0]) if first and first[0].kind == "opened" else None
    return opened.parent if isinstance(opened, SessionOpened) else None


def facts_of(rows: Iterable[Sequence[str]]) -> tuple[FactRef, ...]:
    """Return references to facts from their JSON."""
    return tuple(FactRef(*row) for row in rows)


_OPTIONAL_FIELDS = ("phase", "pin", "ts", "principal", "origin")
_PLACEMENT_FIELDS = ("joins", "aliases", "answers", "orphans", "findings")


def _message_body(event: MessageAppended) -> str:
    body: dict[str, Any] = {}
    for name in _OPTIONAL_FIELDS:
        value = getattr(event, name)
        if value is not None:
            body[name] = value
    placement = event.placement
    if placement is not PLAIN:
        body["placement"] = {name: getattr(placement, name) for name in _PLACEMENT_FIELDS}
    if event.erased:
        body["erased"] = True
    counts = ",".join([f'"{name}":{tokens}' for name, tokens in event.tokens.items()])  # names need no escape
    fixed = f'{{"address":"{event.address}","tokens":{{{counts}}}'
    return f"{fixed},{encoded_body(body)[1:]}" if body else fixed + "}"


def _message(record: JournalRecord, body: dict[str, Any]) -> MessageAppended:
    placement = PLAIN
    if (placed := body.get("placement")) is not None:
        placement = Placement(
            joins=placed["joins"],
            aliases=tuple((index, alias) for index, alias in placed["aliases"]),
            answers=tuple((index, call) for index, call in placed["answers"]),
            orphans=tuple(placed["orphans"]),
            findings=tuple(placed["findings"]),
        )
    optional = {name: body[name] for name in _OPTIONAL_FIELDS if name in body}
    return MessageAppended(
        ordinal=record.ordinal,
        wire=record.wire or "",
        outputs=record.outputs,
        id=record.id,
        placement=placement,
        tokens=body.get("tokens", {}),
        address=body["address"],
        erased=body.get("erased", False),
        **optional,
    )


encoded_body: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Encode a record's body as it is stored."""
