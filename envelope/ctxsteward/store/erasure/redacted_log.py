"""Redact a session's log for a forgotten principal: every record keeps its place and loses the principal's words.

The forgotten ordinals are those of messages that were appended under the principal, in this log or in the part of a
parent's log that it shares. Redaction changes each kind of record:

    message       a message of the principal gets the content that `redacted` returns, a new address and
                  ``"erased": true``, and loses its token counts, which are counted again on demand; id, phase, time
                  and the principal's name stay
    compaction    loses the text of bullets and losses that cite a forgotten ordinal, and the reason why a model's
                  summary fell back; gets the new addresses of sources; its checkpoint loses the same as the records
                  below, and the forgotten users' rules
    observations  lose the text of observations that cite a forgotten ordinal, and the reason of a fall-back
    selection     loses scores by signal, reasons, and lines of earlier sessions; counts and references stay
    note          loses its text, which removes the note
    pin           loses its name
    refused       loses the text of the exception

Notes, selections and refusals have no author. Those after the first forgotten message are redacted, because their
author may have used its words. Everything else stays, also what others said about the principal. A record whose code
was invalid before gets no valid code: it stays damaged, without its words.

A redacted message keeps its role, block types, ids of tool calls and results, names of tools, `is_error` and the number
of blocks, so that pairs stay together and every provider accepts the history. It loses every text, argument, image,
file, a participant's `name`, and every field that is not named here. An image or a block of another kind becomes a text
block. Reasoning is removed as a whole, because a provider refuses changed reasoning.

>>> redacted({"role": "user", "name": "Ann", "content": "my number is 555"})
{'role': 'user', 'content': '[erased]'}

Redaction works on OpenAI, Anthropic and Gemini dicts. It is pure, and a repeat changes nothing. It does not raise for a
record that cannot be read, but returns its position.

`Lineage` reads from a tenant's logs which sessions are forks, and which messages of a principal are in each session. A
fork shares its parent's log up to a position and an ordinal, so a message in that part belongs to both. `Lineage` reads
the first record of each log, and whole logs to find a principal; it raises `StoreError`.

Source: the providers' published API references.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ctxsteward.schemas import ContextError, Ref
from ctxsteward.schemas.errors import Damaged, InvalidReference
from ctxsteward.schemas.message import Wire, encode_wire, gemini_field, is_gemini

from ..crypto.keyring import AddressKey, address_of, subject_of
from ..journal.events import ForkPoint, SessionOpened, encoded_body, from_record
from ..journal.log import body_of, check, coded_manifest, read_manifest, recoded
from ..journal.port import ForgottenSubject, Journal, JournalRecord, Manifest, SessionKey
from ..replication.ownership import moved_from

ERASED_TEXT = "[erased]"
"""Replaces a removed text."""

NO_ARGUMENTS = "{}"

_TEXT_FIELDS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_THINKING = ("thinking", "redacted_thinking", "reasoning")


def redacted(wire: Wire) -> Wire:
    """Return a new dict with the message's structure and none of its texts."""
    if is_gemini(wire):
        parts = (_gemini_part(part) for part in wire["parts"])
        return {**_texts(wire, "role"), "parts": [part for part in parts if part is not None]}
    role = wire["role"]
    skeleton: Wire = {"role": role, **(_texts(wire, "tool_call_id", "name", "type") if role == "tool" else {})}
    content = wire.get("content")
    if content is None and isinstance(wire.get("refusal"), str):
        skeleton["content"] = _without_text(wire["refusal"])
    elif "content" in wire:
        skeleton["content"] = _content(content)
    if isinstance(wire.get("tool_calls"), list):
        skeleton["tool_calls"] = [_call(call) for call in wire["tool_calls"]]
    return skeleton


def _content(content: object) -> object:
    if isinstance(content, str):
        return _without_text(content)
    if not isinstance(content, list):
        return None
    blocks = (_block(block) for block in content)
    return [block for block in blocks if block is not None]


def _block(block: object) -> object:
    """Return the redacted content block, or None for reasoning."""
    if isinstance(block, str):
        return _without_text(block)
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in _THINKING:
        return None
    if kind == "tool_use":
        return {"type": kind, **_texts(block, "id", "name"), "input": {}}
    if str(kind).endswith("_call") and isinstance(block, dict) and _of(block, "call_id"):
        return {"type": kind, **_texts(block, "call_id", "name"), "arguments": NO_ARGUMENTS}
    if kind == "tool_result":
        content, is_error = _of(block, "content"), _of(block, "is_error")
        skeleton: Wire = {"type": kind, **_texts(block, "tool_use_id")}
        skeleton |= {} if content is None else {"content": _content(content)}
        return skeleton | ({"is_error": is_error} if isinstance(is_error, bool) else {})
    field = _TEXT_FIELDS.get(str(kind))
    if field is None:
        return {"type": "text", "text": ERASED_TEXT}
    return {"type": kind, field: _without_text(str(_of(block, field)))}


def _gemini_part(part: Wire) -> Wire | None:
    """Return the redacted Gemini part, or None for reasoning and for a signature alone."""
    held = gemini_field(part)
    if part.get("thought") is True or "signature" in held.kind:
        return None
    if held.kind == "text":
        return {"text": _without_text(held.value)}
    if held.kind == "function_call":
        return {held.key: {**_texts(held.value, "id", "name"), "args": {}}}
    if held.kind == "function_response":
        key = "error" if list(held.value.get("response") or ()) == ["error"] else "output"
        return {held.key: {**_texts(held.value, "id", "name"), "response": {key: ERASED_TEXT}}}
    return {"text": ERASED_TEXT}


def _call(call: object) -> Wire:
    """Return the redacted OpenAI tool call, `function` or `custom`."""
    function, custom = _of(call, "function"), _of(call, "custom")
    if function is None and isinstance(custom, dict):
        return {**_texts(call, "id"), "type": "custom", "custom": {**_texts(custom, "name"), "input": ""}}
    inner = {**_texts(function, "name"), "arguments": NO_ARGUMENTS}
    return {**_texts(call, "id"), "type": "function", "function": inner}


def _without_text(text: str) -> str:
    """Return the replacement of a text. A blank text stays blank, because readers treat blank texts differently."""
    return ERASED_TEXT if text.strip() else text[:1]


def _texts(source: object, *fields: str) -> Wire:
    """Return the named fields whose values are texts."""
    return {name: value for name in fields if isinstance(value := _of(source, name), str)}


def _of(value: Any, field: str) -> Any:
    return value.get(field) if isinstance(value, dict) else None


_LOG_FIELDS = (
    "selection_type",
    "strategy",
    "full_history_size",
    "context_size",
    "masked_count",
    "anchor_refs",
    "selected_refs",
    "tokens_saved",
)
_FAILED = "the summarizer failed: "


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalShare:
    """The messages of a principal in one session's log."""

    own: Mapping[int, int]
    """Ordinal by position of the messages appended under the principal."""
    inherited: frozenset[int]
    """Ordinals of such messages in the shared part of a parent's log."""
    unreadable: tuple[int, ...] = ()
    """Positions of message records that cannot be read, so that their authors are not known."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Notes set before the principal's first message, by name. They cannot contain its words."""

    @property
    def ordinals(self) -> frozenset[int]:
        return self.inherited | frozenset(self.own.values())

    @property
    def since(self) -> int:
        """Position of the first record that may contain words derived from the principal's messages."""
        return 0 if self.inherited else min(self.own, default=0)


def share_of(
    rows: Sequence[JournalRecord],
    principal: str,
    inherited: frozenset[int] = frozenset(),
    notes: Mapping[str, str] | None = None,
) -> PrincipalShare:
    """Find a principal's messages in a log; `notes` are the notes that `standing_notes` returns for the shared part."""
    own: dict[int, int] = {}
    unreadable: list[int] = []
    for position, record in enumerate(rows):
        if record.kind != "message":
            continue
        body = body_of(record)
        if body is None:
            unreadable.append(position)
        elif body.get("principal") == principal:
            own[position] = record.ordinal
    share = PrincipalShare(own=own, inherited=inherited, unreadable=tuple(unreadable), notes=notes or {})
    return replace(share, notes=standing_notes(rows, share, share.since))


def standing_notes(rows: Sequence[JournalRecord], share: PrincipalShare, stop: int) -> dict[str, str]:
    """Return the notes by name at position `stop` of a log, after redaction."""
    notes = dict(share.notes)
    for record in rows[:stop]:
        body = body_of(record) if record.kind == "note" else None
        if body:
            name, text = str(body.get("name")), str(body.get("text"))
            notes.pop(name, None)
            if text:
                notes[name] = text
    return notes


def moved_addresses(
    key: AddressKey, session: str, rows: Sequence[JournalRecord], share: PrincipalShare
) -> dict[str, str]:
    """Return the new addresses of redacted messages by their old ones."""
    moved: dict[str, str] = {}
    for position in share.own:
        before, after = body_of(rows[position]), body_of(_message(key, session, rows[position]))
        if before and after and before.get("address") != after["address"]:
            moved[str(before.get("address"))] = after["address"]
    return moved


def redacted_rows(
    key: AddressKey, session: str, rows: Sequence[JournalRecord], share: PrincipalShare, moved: Mapping[str, str]
) -> dict[int, JournalRecord]:
    """Return the changed records by position; empty if the log was redacted before."""
    changed: dict[int, JournalRecord] = {}
    derived = _DerivedRecords(share, moved)
    for position, record in enumerate(rows):
        rewritten = _message(key, session, record) if position in share.own else record
        if position >= share.since:
            rewritten = derived.redacted(rewritten)
        else:
            derived.skip(rewritten)
        if rewritten[:-1] != record[:-1]:
            changed[position] = recoded(key, session, position, record, rewritten)
    return changed


def redacted_manifests(key: AddressKey, manifests: Sequence[Manifest], share: PrincipalShare) -> list[Manifest]:
    """Return the session's manifests, without findings if the manifest is later than the principal's first message.

    A finding may quote an exception, and thereby a message.
    """
    cleared = []
    for address, body in manifests:
        try:
            fields = read_manifest(key, address, body)
        except Damaged:
            body = "{}"  # its content is unknown
        else:
            if fields["position"] > share.since and fields.get("findings"):
                remaining = {name: value for name, value in fields.items() if name not in ("findings", "mac")}
                body = coded_manifest(key, address, json.dumps(remaining)[1:-1])
        cleared.append(Manifest(address, body))
    return cleared


def _message(key: AddressKey, session: str, record: JournalRecord) -> JournalRecord:
    body = body_of(record) or {}
    try:
        wire = encode_wire(redacted(json.loads(record.wire or "{}")))
    except (ContextError, ValueError, KeyError, TypeError, RecursionError):  # damaged
        wire = encode_wire({"role": "user", "content": ERASED_TEXT})
    body["address"] = address_of(key, subject_of(session, body.get("principal")), "message", wire.encode())
    body["tokens"] = {}
    body["erased"] = True
    return record._replace(wire=wire, body=encoded_body(body))


_BEFORE_EARLIER = 7
"""Number of fields of a checkpoint's selection before its lines of earlier sessions."""


class _DerivedRecords:
    """Redacts records that have no author, in log order; remembers the notes and the selection that stay."""

    def __init__(self, share: PrincipalShare, moved: Mapping[str, str]) -> None:
        self._erased, self._moved = share.ordinals, moved
        self._notes = dict(share.notes)
        self._selection: list[Any] | None = None

    def skip(self, record: JournalRecord) -> None:
        """Pass over a record from before the first forgotten message."""
        if record.kind == "selection" and (body := body_of(record)):
            self._selection = [body.get("turn"), body.get("refs"), body.get("log")]

    def redacted(self, record: JournalRecord) -> JournalRecord:
        redact = {
            "compaction": self._compaction,
            "selection": self._take_selection,
            "note": self._note,
            "pin": self._pin,
            "refused": self._refused,
            "observations": self._observations,
        }.get(record.kind)
        if redact is None:
            return record
        blank = record._replace(kind="erased", body=encoded_body({"was": record.kind}))
        body = body_of(record)
        if body is None:
            return blank
        before = json.dumps(body)
        try:
            redact(body)
        except (KeyError, TypeError, ValueError, AttributeError):  # it is damaged, so its content is unknown
            return blank
        return record if json.dumps(body) == before else record._replace(body=encoded_body(body))

    def _note(self, body: dict[str, Any]) -> None:
        body["text"] = ""
        self._notes.pop(body["name"], None)

    def _pin(self, body: dict[str, Any]) -> None:
        if body["ordinal"] in self._erased:
            body["name"] = None

    def _refused(self, body: dict[str, Any]) -> None:
        if str(body["reason"]).startswith(_FAILED):
            body["reason"] = _FAILED + ERASED_TEXT

    def _take_selection(self, body: dict[str, Any]) -> None:
        body["log"] = _log(body["log"])
        body.pop("earlier", None)  # these lines of other sessions answer a question that may be forgotten here
        self._selection = None

    def _observations(self, body: dict[str, Any]) -> None:
        for bullets in (body["appended"], body.get("standing") or (), *body.get("merged", ())):
            self._bullets(bullets)
        if (origin := body.get("origin")) and origin.get("fell_back"):
            origin["fell_back"] = [ERASED_TEXT]

    def _bullets(self, bullets: Iterable[dict[str, Any]]) -> None:
        for bullet in bullets:
            if self._cites_erased(bullet["citations"]):
                bullet["text"] = ERASED_TEXT

    def _compaction(self, body: dict[str, Any]) -> None:
        report, checkpoint = body["report"], body["checkpoint"]
        self._bullets(body["bullets"])
        if reserve := body.pop("reserve", ()):
            body["reserve"] = [bullet for bullet in reserve if not self._cites_erased(bullet["citations"])]
        self._bullets(checkpoint.get("observations", ()))
        for loss in report["losses"]:
            if self._cites_erased([loss["ref"]]):
                loss |= {"text": ERASED_TEXT, "span": None}
        if (origin := report.get("origin")) and origin.get("fell_back"):
            origin["fell_back"] = [ERASED_TEXT]
        report["source_addresses"] = [self._moved.get(address, address) for address in report["source_addresses"]]
        standing = checkpoint["notes"].items()
        checkpoint["notes"] = {name: text for name, text in standing if self._notes.get(name) == text}
        checkpoint["pins"] = [
            [ordinal, strength, None if ordinal in self._erased else name]
            for ordinal, strength, name in checkpoint["pins"]
        ]
        if rules := checkpoint.pop("rules", ()):
            checkpoint["rules"] = [row for row in rules if row[0] not in self._erased]
        chosen = checkpoint.get("selection")
        if chosen and chosen[:3] != self._selection:
            checkpoint["selection"] = [chosen[0], chosen[1], _log(chosen[2]), *chosen[3:_BEFORE_EARLIER]]

    def _cites_erased(self, refs: Sequence[str]) -> bool:
        for ref in refs:
            with suppress(InvalidReference):
                if Ref.parse(ref).ordinal in self._erased:
                    return True
        return False


def _log(log: object) -> dict[str, Any]:
    """Return a selection's log with numbers and references only."""
    if not isinstance(log, dict) or not log:
        return {}
    kept = {name: log[name] for name in _LOG_FIELDS if name in log}
    candidates = log.get("candidates")
    rows = [
        {"ref": row["ref"], "score": row["score"], "signals": {}, "in": row["in"], "why": ""}
        for row in (candidates if isinstance(candidates, list) else ())
    ]
    return kept | {"candidates": rows}


def readable_notes(journal: Journal, tenant: str) -> tuple[list[ForgottenSubject], dict[str, Damaged]]:
    """Return the forgotten subjects of undamaged sessions, and an error for each session with altered notes."""
    try:
        return journal.forgotten(tenant), {}
    except Damaged:  # read session by session to find the altered notes
        notes: list[ForgottenSubject] = []
        spoiled: dict[str, Damaged] = {}
    for session in journal.sessions(tenant):
        try:
            notes += journal.forgotten(tenant, session)
        except Damaged as error:
            spoiled[session] = error
    return notes, spoiled


class Lineage:
    """The forks among a tenant's sessions, without forgotten sessions unless `forgotten` is set."""

    def __init__(self, journal: Journal, tenant: str, *, forgotten: bool = False) -> None:
        self._journal, self._tenant = journal, tenant
        notes, spoiled = readable_notes(journal, tenant)
        self.spoiled: dict[str, Damaged] = spoiled
        """Errors by session for altered notes of forgotten subjects."""
        erased = {note.session for note in notes if note.principal is None and not forgotten}
        self.sessions: list[str] = [session for session in journal.sessions(tenant) if session not in erased]
        self.unreadable: list[str] = []
        """Sessions whose first record cannot be read, so that they may be forks."""
        self.origins: dict[str, ForkPoint] = {}
        for session in self.sessions:
            origin = self._origin(session)
            if origin is not None:
                self.origins[session] = origin
        self.parents: dict[str, str] = {session: origin.session for session, origin in self.origins.items()}

    def forks_of(self, parents: Iterable[str]) -> list[str]:
        """Return the direct forks of these sessions."""
        wanted = set(parents)
        return [session for session, parent in self.parents.items() if parent in wanted]

    def line(self, session: str) -> list[str]:
        """Return the session and its ancestors, oldest first."""
        return [session, *line_above(session, self.parents)][::-1]

    def shares(
        self, principal: str, only: str | None, sessions: Sequence[str] | None = None
    ) -> dict[str, PrincipalShare]:
        """Return the principal's messages in each of these sessions (default: all), parents before their forks.

        With `only`, return messages that were appended to this session, including those that moved into a fork later,
        and forks that share them.
        """
        chosen = self.sessions if sessions is None else sessions
        by_session: dict[str, PrincipalShare] = {}
        for session in sorted(chosen, key=lambda name: (len(self.line(name)), name)):
            share = self._share(session, principal, by_session)
            if share.inherited or (share.own and (only is None or _was_said_in(only, session))):
                by_session[session] = share
        return by_session

    def _share(self, session: str, principal: str, found: dict[str, PrincipalShare]) -> PrincipalShare:
        rows = self._journal.read(SessionKey(self._tenant, session), 0)
        origin = self.origins.get(session)
        above = found.get(origin.session) if origin is not None else None
        if origin is None or above is None:
            return share_of(rows, principal)
        inherited = frozenset(ordinal for ordinal in above.ordinals if ordinal <= origin.ordinal)
        parent = self._journal.read(SessionKey(self._tenant, origin.session), 0, origin.position)
        return share_of(rows, principal, inherited, standing_notes(parent, above, min(above.since, origin.position)))

    def _origin(self, session: str) -> ForkPoint | None:
        first = self._journal.read(SessionKey(self._tenant, session), 0, 1)
        try:
            opened = from_record(first[0]) if first else None
        except (ContextError, ValueError, KeyError, TypeError):
            self.unreadable.append(session)
            return None
        if isinstance(opened, SessionOpened) and opened.parent is not None:
            return opened.parent
        parent = moved_from(session)  # a fork whose turns moved from the first one on shares no part of its parent
        return None if parent is None else ForkPoint(parent, 0, 0)


def _was_said_in(origin: str, session: str) -> bool:
    """Return whether the own messages of `session` were appended to `origin`."""
    name: str | None = session
    while name is not None and name != origin:
        name = moved_from(name)
    return name is not None


def line_above(session: str, parents: Mapping[str, str]) -> list[str]:
    """Return the session's ancestors, nearest first."""
    line = [session]
    while (parent := parents.get(line[-1])) is not None and parent not in line:
        line.append(parent)
    return line[1:]


def whole_log(journal: Journal, key: SessionKey) -> list[JournalRecord]:
    """Return all records of a log. Raises `Damaged` if their number is not the log's length."""
    length = journal.length(key)
    rows = journal.read(key, 0)
    if not length <= len(rows) <= journal.length(key):
        raise Damaged(f"session {key.session!r}: its log has {len(rows)} records, and {length} were written")
    return rows


def damage_of(journal: Journal, key: SessionKey, address_key: AddressKey) -> str:
    """Return a description of the damage to a log's messages, or ""."""
    try:
        rows = whole_log(journal, key)
    except Damaged as error:
        return str(error)
    altered = 0
    for position, record in enumerate(rows):
        if record.kind == "message" and '"erased"' not in record.body:
            try:
                check(address_key, key.session, position, record)
            except Damaged:
                altered += 1
    return f"{altered} messages are not what was written" if altered else ""


def sessions_without_row(journal: Journal, tenant: str) -> set[str]:
    """Return the sessions that have records in the journal but no row in its table of logs."""
    altered = journal.altered(tenant)
    return {session for session, row in altered if row == "log"}.difference(journal.sessions(tenant))
