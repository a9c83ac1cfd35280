"""Resolve references to a session's originals: ``§128``, ``§128.2`` (a part), ``tool:3``, ``tool:CALL``, ``meta:ID``.

CALL is the id of a tool call as the model wrote it; if several calls have it, the newest counts.

ID is the id of a record of the profile in force, or its first digits as prompts show them. ``meta:`` may be left out
and brackets added, as models copy ids (``[04bb]``). The parts of a message are its tool results; a message without any
has the passages of its text as parts (`language.passages.passage_spans`).

An original is checked against its address before it is served. Raises `InvalidReference`; `ReferenceNotFound` and
`Erased` (both a KeyError); `Damaged` for an unreadable original, for which `shown` gives a stand-in.
"""

from __future__ import annotations

from dataclasses import dataclass

from ctxsteward.language.passages import passage_spans
from ctxsteward.schemas import CompressionReport, Erased, Message, Ref, ReferenceNotFound, TextPart
from ctxsteward.schemas.errors import Damaged, InvalidReference
from ctxsteward.schemas.message import Wire
from ctxsteward.store.addresses import META_REPORT, report_in
from ctxsteward.store.journal.events import ForkPoint, RecallSelected, SessionHead, WindowCompacted
from ctxsteward.store.journal.log import read_manifest
from ctxsteward.store.journal.port import ForgottenSubject
from ctxsteward.store.profiles.text import META_REF, Profile, record_line, records_named

from .log_view import SessionLogView
from .tool_groups import LogEntry, MissingMessage

MAX_ORDINAL_DIGITS = 12


@dataclass(frozen=True, slots=True)
class MetaReduced:
    """The report of records that meta left out because they did not all fit."""

    report: CompressionReport


class Originals:
    """The original messages of a session's log and of the logs it was forked from."""

    def __init__(self, replica: SessionLogView) -> None:
        self._replica = replica

    # -- messages -----------------------------------------------------------------------------------------------

    def resolve(self, ref: str | int | Ref) -> Message:
        """Return the message or the tool result that a reference names."""
        if isinstance(ref, str) and ref.strip().startswith("tool:"):
            number = ref.strip()[5:]
            if not (number.isascii() and number.isdecimal() and len(number) <= MAX_ORDINAL_DIGITS):
                return self._output_of(number, ref)
            return self.tool_output(int(number))
        if isinstance(ref, str) and ref.strip().startswith(META_REF):
            return self._record(ref.strip())
        try:
            parsed = ref if isinstance(ref, Ref) else Ref.parse(str(ref))
        except InvalidReference:
            if not self._records_named(str(ref)):
                raise
            return self._record(str(ref).strip())
        message = self._said(self.entry(parsed.ordinal, str(ref)), str(ref))
        return self._result(message, parsed.part, str(ref)) if parsed.part else message

    def _record(self, ref: str) -> Message:
        """Return a meta record of the profile in force as a message."""
        records = self._records_named(ref)
        if not records:
            what = "the profile in force has no such record; earlier versions may: `ctxsteward steward log`"
            raise ReferenceNotFound(ref, self._replica.id, what)
        if len(records) > 1:
            some = " or ".join(META_REF + id for id in list(records)[:3])
            raise InvalidReference(ref, f"{len(records)} records begin so; write {some}")
        (line,) = records.values()
        return Message.from_wire({"role": "user", "content": line.strip()})

    def _records_named(self, ref: str) -> dict[str, str]:
        """Return the lines of the records that a reference names, by id."""
        profile = self._replica.state.head.profile
        records = Profile.model_validate(profile).meta if profile else ()
        named = records_named(records, ref.strip().removeprefix(META_REF).strip("[]"))
        return {record.id: record_line(record) for record in named}

    def tool_output(self, number: int) -> Message:
        """Return the n-th tool output (1-based), whole, as a message of role ``tool``."""
        ref = f"tool:{number}"
        state = self._replica.state
        if not 0 < number <= state.outputs:
            raise ReferenceNotFound(ref, self._replica.id, f"it holds {state.outputs} tool outputs")
        for log, last in self._replica.ancestry.shares(state.ordinal):
            record = log.journal.by_output(log.key, number)
            if record is None or (last is not None and record.ordinal > last):
                continue
            entry = self.entry(record.ordinal, ref)
            part = number - (entry.event.outputs - len(entry.message.tool_results))
            if part > 0:  # otherwise the number belongs to the parent's part of the log
                return self._result(self._said(entry, ref), part, ref)
        raise Damaged(f"session {self._replica.id!r}: the record of {ref} is damaged or missing and cannot be restored")

    def _output_of(self, call_id: str, ref: str) -> Message:
        """Return the output of the call with this id. It costs a reading of the log back to that call."""
        for ordinal in range(self._replica.state.ordinal if call_id else 0, 0, -1):
            entry = self._replica.shown(ordinal, f"§{ordinal}")
            for part, result in enumerate(entry.message.tool_results, 1):
                if result.call_id == call_id:
                    return self._result(self._said(self.entry(ordinal, ref), ref), part, ref)
        raise InvalidReference(ref)

    def _said(self, entry: LogEntry, ref: str) -> Message:
        """Return the message of an entry; raise `Erased` if it was forgotten."""
        event = entry.event
        if event.erased:
            log = self._replica.ancestry.owner(event.ordinal)
            owner = log.key.session
            gone = {note.principal: note for note in log.journal.forgotten(log.key.tenant, owner)}
            note = gone.get(event.principal) or ForgottenSubject(
                owner, event.principal, "unknown", "unknown", "unknown"
            )
            raise Erased(f"{ref} of session {self._replica.id!r}", who=note.who, when=note.when, why=note.why)
        return entry.message

    def _result(self, message: Message, part: int, ref: str) -> Message:
        results = message.tool_results
        if not results:
            return self._passage(message, part, ref)
        if part > len(results):
            raise ReferenceNotFound(ref, self._replica.id, f"that message holds {len(results)} tool results")
        if message.role == "tool":
            return message
        result = results[part - 1]
        wire: Wire = {"role": "tool", "tool_call_id": result.call_id, "content": result.text}
        return Message(role="tool", dialect="openai", parts=(result,), wire=wire)

    def _passage(self, message: Message, part: int, ref: str) -> Message:
        spans = passage_spans(message.text)
        if part > len(spans):
            raise ReferenceNotFound(
                ref, self._replica.id, f"that message holds {len(spans)} {'passage' if len(spans) == 1 else 'passages'}"
            )
        text = message.text[spans[part - 1].start : spans[part - 1].stop]
        wire: Wire = {"role": message.role, "content": text}
        return Message(role=message.role, dialect="openai", parts=(TextPart(text=text),), wire=wire)

    # -- entries ------------------------------------------------------------------------------------------------

    def entry(self, ordinal: int, ref: str) -> LogEntry:
        """Return a message as it was appended; an erased one has no words left. Raise `Damaged` if unreadable."""
        found = self._replica.found(ordinal, ref)
        if isinstance(found, MissingMessage):
            raise Damaged(
                f"session {self._replica.id!r}: {ref} is damaged or missing and is not served; "
                "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
            )
        return found

    def origin(self, at: int | str | None) -> ForkPoint:
        """Return where a fork behind message `at` begins, or a fork at the end of the log for None."""
        state = self._replica.state
        if at is None:
            return ForkPoint(self._replica.id, state.position, state.ordinal)
        ordinal = Ref.parse(str(at)).ordinal
        self._replica.shown(ordinal, f"§{ordinal}")
        log = self._replica.ancestry.owner(ordinal)
        owner, position = log.key.session, log.journal.position(log.key, ordinal)
        if position is None:
            raise Damaged(f"session {owner!r}: §{ordinal} is missing from the journal; fork at another message")
        return ForkPoint(owner, position + 1, ordinal)

    def origin_before(self, ordinal: int) -> ForkPoint:
        """Return where a fork before this message begins; it shares every record up to that message."""
        log = self._replica.ancestry.owner(ordinal)
        position = log.journal.position(log.key, ordinal)
        if position is None:
            raise Damaged(
                f"session {log.key.session!r}: §{ordinal} is missing from the journal; fork at another message"
            )
        return ForkPoint(log.key.session, position, ordinal - 1)

    # -- reports and shown records ------------------------------------------------------------------------------

    def compactions(self) -> list[WindowCompacted]:
        """Return all readable compactions, oldest first."""
        stretches = self._replica.ancestry.stretches()
        return [event for log, stop in stretches for _, event in log.compactions(stop)][::-1]

    def meta_reports(self) -> list[CompressionReport]:
        """Return reports of the records that meta left out of this session's own envelopes, oldest first."""
        log, end = self._replica.log, self._replica.state.position
        stored = [
            (manifest.address, manifest.body)
            for manifest in log.journal.manifests(log.key)
            if META_REPORT in manifest.body
        ]
        bodies = [read_manifest(log.address_key, *manifest) for manifest in stored]
        here = [report_in(body) for body in bodies if body["position"] <= end]
        return [report for report in here if report is not None]

    def shown_records(self) -> frozenset[str]:
        """Return ids of the meta records that the session was shown, in its profiles and as facts. The steward counts
        no support for them from this session, because it may only repeat them."""
        found: set[str] = set()
        for log, stop in self._replica.ancestry.stretches():
            for row in log.read(0, stop):
                if isinstance(row, SessionHead) and row.profile is not None:
                    found.update(record["id"] for record in row.profile.get("meta", ()))
                elif isinstance(row, RecallSelected):
                    found.update(fact.id for fact in row.facts)
        return frozenset(found)

    def shown_lines(self, session: str) -> frozenset[int]:
        """Return the ordinals of another session whose lines this one was shown."""
        return frozenset(
            line.ordinal
            for log, stop in self._replica.ancestry.stretches()
            for row in log.read(0, stop)
            if isinstance(row, RecallSelected)
            for line in row.earlier
            if line.session == session
        )
