"""``ctxsteward blame``: which piece of a call's prompt carries the words of its reply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from ctxsteward.envelope import Session, Store, past_calls
from ctxsteward.envelope.audit.blame import Blame, PromptSource, TermIndex, sources_of
from ctxsteward.envelope.building.past_calls import PastCall
from ctxsteward.language.words import sentences
from ctxsteward.schemas import ContextError, InputError, Ref
from ctxsteward.store.profiles.text import Profile, records_named, static_blocks, system_blocks

from ..pages.inspector import PastEnvelope, call_numbered, open_call
from ..terminal.options import common
from ..terminal.output import print_json, table_console
from ..terminal.stores import is_address, open_stored, stored_session
from ..terminal.tables import grid, say

MOST_CALLS = 200
"""So many of a session's newest calls are laid out again to see who else was shown a source."""


@click.command()
@click.argument("name", metavar="CALL|SESSION")
@click.option("--call", "number", type=click.IntRange(min=1), metavar="N", help="Of a SESSION; default: the newest.")
@click.option("--phrase", metavar="TEXT", help="Ask about this text; default: each sentence of the reply.")
@common
def blame(name: str, number: int | None, phrase: str | None, as_json: bool, store: str, tenant: str) -> None:
    """Name the line, record, bullet, recalled message, message or result that carries a reply's words.

    CALL is an envelope's address; anything else is a session id. No model is asked: words are compared, rare ones count
    most, and where no source has enough of them the answer is `cannot tell`. Each source is shown with who said it, how
    it came into the prompt, and which other calls and sessions were shown it.
    """
    with open_stored(store) as opened:
        past, calls, session = _called(opened, name, number, tenant)
        index = TermIndex(sources_of(past.envelope))
        found = [index.blame(text) for text in _phrases(session, past.call, phrase)]
        rows = [_described(opened, past, calls, session, each, tenant) for each in found]
    if as_json:
        for row in rows:
            print_json(row)
        return
    console = table_console()
    cells = (
        (row["phrase"][:60], _short(row), f"{row['share']:.0%}", row["said_by"], row["gate"], row["shown_to"])
        for row in rows
    )
    console.print(grid("words of the reply", "source", "share", "said by", "came by", "also shown to", rows=cells))
    told = sum(row["source"] is not None for row in rows)
    say(console, f"call {past.call.number} of {session.id}: {told} of {len(rows)} sentences have a source")


def _called(
    store: Store, name: str, number: int | None, tenant: str
) -> tuple[PastEnvelope, Sequence[PastCall], Session]:
    """The call that is asked about, the session's calls, and the session as it is now."""
    address = store.address(name, tenant=tenant)
    if is_address(address):
        if number is not None:
            raise click.UsageError("--call goes with a SESSION; an address names its call")
        id = store.manifest(address, tenant=tenant)["session"]
    else:
        id = name
    session = stored_session(store, id, tenant)
    calls = past_calls(store, id, tenant=tenant)
    if is_address(address):
        number = next((call.number for call in calls if call.address == address), None)
        if number is None:
            raise InputError(f"{address}: no call of session {id!r}; take an address from a build")
    return open_call(store, tenant, call_numbered(calls, number or len(calls), id)), calls, session


def _phrases(session: Session, call: PastCall, phrase: str | None) -> list[str]:
    """The phrase, or the sentences of the first reply after the call."""
    if phrase is not None:
        return [phrase]
    for entry in session.entries(call.messages + 1):
        text = entry.message.text
        if entry.message.role == "assistant" and text.strip():
            return [text[span.start : span.stop].strip() for span in sentences(text)]
    hint = "append it to the session, or name words of it with --phrase TEXT"
    raise InputError(f"call {call.number} of session {session.id!r} has no reply with text in the log; {hint}")


def _described(
    store: Store, past: PastEnvelope, calls: Sequence[PastCall], session: Session, found: Blame, tenant: str
) -> dict[str, Any]:
    source = found.source
    row: dict[str, Any] = {"phrase": found.phrase, "share": found.share, "terms": found.terms, "why": found.why}
    if source is None:
        return row | {"source": None, "said_by": "", "gate": "", "shown_to": "", "calls": [], "sessions": []}
    numbers = [
        call.number for call in calls[-MOST_CALLS:] if call != past.call and _is_shown(store, call, source, tenant)
    ]
    sessions = list(_other_sessions(store, session, source, tenant))
    told = [f"{len(numbers)} calls"] if numbers else []
    return row | {
        "source": {"kind": source.kind, "name": source.name, "refs": source.refs, "text": source.text},
        "repeats": [{"kind": each.kind, "name": each.name} for each in found.repeats],
        "said_by": ", ".join(dict.fromkeys(_speakers(session, source))),
        "gate": _gate(past, session, source),
        "shown_to": ", ".join([*told, *sessions]),
        "calls": numbers,
        "sessions": sessions,
    }


def _short(row: dict[str, Any]) -> str:
    return f"cannot tell: {row['why']}" if row["source"] is None else f"{row['source']['kind']} {row['source']['name']}"


def _speakers(session: Session, source: PromptSource) -> Iterator[str]:
    """Who said it: roles, with the principal where the application names one."""
    if not source.refs:
        yield source.speaker
    for ref in source.refs:
        entry = session.shown(Ref.parse(ref).ordinal)
        role = "tool" if entry.message.tool_results else entry.message.role
        yield role if entry.event.principal is None else f"{role} {entry.event.principal}"


def _gate(past: PastEnvelope, session: Session, source: PromptSource) -> str:
    """How it came into the prompt."""
    version = (past.envelope.profile_version or "")[:16]
    match source.kind:
        case "line" | "tool schema":
            is_own = any(source.text in text for text in past.session.state.head.system)
            return "the application's own text" if is_own or not version else f"profile {version}"
        case "record":
            profile = Profile.model_validate(past.session.state.head.profile)
            records = records_named(profile.meta, source.name)
            how = "approved" if any(record.approved for record in records) else "learned"
            pointers = [pointer for record in records for pointer in record.sources]
            return f"profile {version}, {how}, from {', '.join(pointers)}"
        case "bullet":
            made = [each for each in session.compactions() if any(b.text == source.text for b in each.bullets)]
            return f"compaction {made[0].report.id[:16]}" if made else "a compaction"
        case "recalled":
            return f"recall for §{past.session.state.last_user}"
        case "earlier":
            return "an earlier session of the same person"
        case "note":
            return "a note of the application"
        case _:
            return "still in the window"


def _is_shown(store: Store, call: PastCall, source: PromptSource, tenant: str) -> bool:
    """Whether another call of the session shows the same piece, or its original."""
    try:
        shown = sources_of(open_call(store, tenant, call).envelope)
    except ContextError:  # of a call that cannot be laid out any more nothing is known
        return False
    if source.refs:
        return any(set(source.refs) & set(each.refs) for each in shown)
    return any((each.kind, each.text) == (source.kind, source.text) for each in shown)


def _other_sessions(store: Store, session: Session, source: PromptSource, tenant: str) -> Iterator[str]:
    """Sessions that were shown the same record or line, or lines of this session."""
    ordinals = {Ref.parse(ref).ordinal for ref in source.refs}
    for id in store.sessions(tenant=tenant):
        if id == session.id:
            continue
        try:
            other = store.at(tenant, id)
            head = other.state.head
            profile = Profile.model_validate(head.profile) if head.profile else None
            if source.kind == "record":
                is_shown = profile is not None and bool(records_named(profile.meta, source.name))
            elif source.kind == "line":
                blocks = (*system_blocks(profile), *static_blocks(profile)) if profile else ()
                lines = {line for text in (*head.system, *(b.text for b in blocks)) for line in text.split("\n")}
                is_shown = source.text in lines
            else:
                is_shown = bool(ordinals & other.shown_lines(session.id))
        except ContextError:  # a session that cannot be read says nothing
            continue
        if is_shown:
            yield id
