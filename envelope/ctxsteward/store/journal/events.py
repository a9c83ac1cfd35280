"""The session's events and how a journal record holds them.

opened | head | message | note | pin | outcome | compaction | observations | refused | selection | erased. Everything
that was ever decided about a session is one of these events, so an envelope is a pure function of a log prefix and
budgets. A compaction holds the whole state of the window after it: reading a session back starts at the newest one.

Fields this version does not know are left alone (a later minor version may add some); a record of a kind it does not
know raises `UnsupportedVersion`: what cannot be understood must not be passed over.
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
"""Major version of what a journal record holds."""

NONCE_DIGITS = 9
"""Decimal digits: 30 bits, three tokens in every nonce, so that a session's costs do not depend on its luck."""

PinStrength = Literal["keep", "soft"]
"""keep: stays verbatim; soft: goes last."""


class ForkPoint(NamedTuple):
    """Where a forked session's log begins: its parent, up to this position and ordinal."""

    session: str
    position: int
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened:
    """First event of a log."""

    nonce: str
    """Drawn once a session (a fork takes its parent's); fences derived text."""
    parent: ForkPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """The operator's part: profile (as a JSON document), own system texts, tool schemas."""

    profile: dict[str, Any] | None = None
    system: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    project: str | None = None
    """What earlier versions were told that the session is for; kept and not read."""
    findings: tuple[dict[str, Any], ...] = field(default=(), compare=False)
    """What was found of it when it was written, beside the profile in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How a message fits its history; decided once, when it is appended."""

    joins: bool = False
    """It belongs to the tool group before it."""
    aliases: tuple[tuple[int, str], ...] = ()
    """(index of a tool call in the message, the id it goes by because its own is missing or taken)."""
    answers: tuple[tuple[int, str], ...] = ()
    """(index of a tool result in the message, the id or alias of the call it answers)."""
    orphans: tuple[int, ...] = ()
    """Indexes of tool results that answer no open call."""
    findings: tuple[str, ...] = ()
    """Kinds of what was repaired."""


PLAIN = Placement()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAppended:
    """A message."""

    ordinal: int
    wire: str
    placement: Placement = PLAIN
    tokens: dict[str, int] = field(default_factory=dict)
    """Tokens by counter name."""
    outputs: int = 0
    """Tool outputs in the session up to and including this message; 0 where it holds none."""
    id: str | None = None
    phase: str | None = None
    pin: PinStrength | None = None
    ts: str | None = None
    principal: str | None = None
    origin: str | None = None
    address: str = ""
    erased: bool = False
    """Its subject was forgotten: what is here says nothing."""
    damaged: bool = False
    """It stands in for a record that cannot be read; never stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSet:
    """A named note; the latest of a name wins, empty text removes it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PinSet:
    """A message is pinned (or, with `strength` None, no longer)."""

    ordinal: int
    strength: PinStrength | None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTold:
    """How the session ended, as its application says; of what several tell, the latest counts."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCompacted:
    """A compaction and the state of the window after it."""

    bullets: tuple[Bullet, ...]
    reserve: tuple[Bullet, ...] = ()
    """Bullets for which there is no room now; a later compaction may show them again."""
    kept: tuple[tuple[int, ...], ...]
    """Ordinals of the messages that stay verbatim, group by group."""
    masked: tuple[int, ...] = ()
    """First ordinals of kept groups whose tool results are shown as one line from now on."""
    shortened: dict[int, int] = field(default_factory=dict)
    """First ordinals of kept groups whose text is shown as its beginning and end from now on, with the tokens it may
    take."""
    reply_tokens: int = 0
    """What the text of an assistant's reply may take from now on once a newer one is answered; 0: all that it needs."""
    report: CompressionReport
    checkpoint: dict[str, Any]
    """What else a reader needs to go on from here; see `state.State.checkpoint`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationsAppended:
    """Lines of a session's observation log. Earlier versions wrote it; none is written any more."""

    appended: tuple[Bullet, ...]
    """Behind those that stand."""
    upto: int
    """Ordinal up to which messages have been observed."""
    standing: tuple[Bullet, ...] | None = None
    """The log before `appended`, where it is another one than it was: merged, or short of room. Merged ones first."""
    merged: tuple[tuple[Bullet, ...], ...] = ()
    """The observations that the first of `standing` stand for, one by one."""
    origin: SummaryOrigin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRefused:
    """A compaction that was due and not made."""

    reason: str
    section_tokens: int
    """Of dynamic, when it was refused: the next try waits for a tenth more."""


class FactRef(NamedTuple):
    """A fact that was shown: no text, that is in the vault."""

    id: str
    blob: str
    """Address of its content."""
    key: str
    """Address of the subject whose key opens it."""


class EarlierLine(NamedTuple):
    """A line that a person said in another session, as it was shown: by reference, its text encrypted."""

    session: str
    """Where it was said."""
    ordinal: int
    key: str
    """Address of the subject whose key opens it: the person in that session. Empty in a draft: nothing is encrypted."""
    sealed: str
    """The row: ciphertext, as base64; in a draft the row itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSelected:
    """Originals recalled for a user turn, and what is shown with them: facts, lines of earlier sessions."""

    turn: int
    """Ordinal of the turn's user message."""
    refs: tuple[int, ...]
    log: dict[str, Any]
    """The published selection log."""
    superseded: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Of `refs`, those of which later messages replace something, with these messages."""
    facts: tuple[FactRef, ...] = ()
    """In the order in which they are shown."""
    excerpts: dict[int, int] = field(default_factory=dict)
    """What the question names by number and is not shown whole: those of `refs` with the tokens that an excerpt may
    take, and 0 for one of which the window itself shows an excerpt."""
    passages: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Of `refs`, long messages of which only passages are shown, with their numbers, ascending."""
    earlier: tuple[EarlierLine, ...] = ()
    """In the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlankRecord:
    """A record whose content was forgotten: it holds its place and nothing else."""

    was: str = ""
    """Its kind."""


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
"""What a selection says of some of its messages; written where there is any."""


def _tuples(rows: Iterable[tuple[int, Iterable[int]]]) -> dict[int, tuple[int, ...]]:
    return {ordinal: tuple(numbers) for ordinal, numbers in rows}


_PLAIN_KINDS: dict[str, type[NoteSet | PinSet | CompactionRefused | BlankRecord]] = {
    "note": NoteSet,
    "pin": PinSet,
    "refused": CompactionRefused,
    "erased": BlankRecord,
}
"""Events whose record holds their fields and nothing else, by its kind."""


def to_record(event: Event) -> JournalRecord:
    """The journal's form of an event."""
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
            return JournalRecord("observations", encoded_body(_observations_body(event)))
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
    """The event a journal record holds."""
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
    """Bullets out of their JSON."""
    return tuple(map(Bullet.model_validate, rows))


def _observations_body(event: ObservationsAppended) -> dict[str, Any]:
    """What is empty is left out."""
    body: dict[str, Any] = {"appended": _rows(event.appended), "upto": event.upto}
    if event.standing is not None:
        body |= {"standing": _rows(event.standing), "merged": [_rows(stands_for) for stands_for in event.merged]}
    return body if event.origin is None else body | {"origin": event.origin.model_dump(mode="json")}


def _rows(bullets: Iterable[Bullet]) -> list[dict[str, Any]]:
    return [bullet.model_dump(mode="json") for bullet in bullets]


def fork_point(first: Sequence[JournalRecord]) -> ForkPoint | None:
    """Where a log was forked off, by its first record; None for an original, or one that is not there."""
    opened = from_record(first[0]) if first and first[0].kind == "opened" else None
    return opened.parent if isinstance(opened, SessionOpened) else None


def facts_of(rows: Iterable[Sequence[str]]) -> tuple[FactRef, ...]:
    """References to facts out of their JSON."""
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
    counts = ",".join([f'"{name}":{tokens}' for name, tokens in event.tokens.items()])  # names are plain words
    fixed = f'{{"address":"{event.address}","tokens":{{{counts}}}'
    return f"{fixed},{encoded_body(body)[1:]}" if body else fixed + "}"


def _message(record: JournalRecord, body: dict[str, Any]) -> MessageAppended:
    placed = body.get("placement")
    optional = {name: body[name] for name in _OPTIONAL_FIELDS if name in body}
    return MessageAppended(
        ordinal=record.ordinal,
        wire=record.wire or "",
        outputs=record.outputs,
        id=record.id,
        placement=PLAIN if placed is None else _placement(placed),
        tokens=body.get("tokens", {}),
        address=body["address"],
        erased=body.get("erased", False),
        **optional,
    )


def _placement(body: dict[str, Any]) -> Placement:
    return Placement(
        joins=body["joins"],
        aliases=tuple((index, alias) for index, alias in body["aliases"]),
        answers=tuple((index, call) for index, call in body["answers"]),
        orphans=tuple(body["orphans"]),
        findings=tuple(body["findings"]),
    )


encoded_body: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A record's body as it is stored."""
