"""``ctxsteward blame``: which piece of a call's prompt carries the words of its reply."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from ctxsteward.envelope import Session, Store, past_calls
from ctxsteward.envelope.audit.blame import Bisection, Blame, PromptSource, TermIndex, bisect, sources_of
from ctxsteward.envelope.building.past_calls import PastCall
from ctxsteward.envelope.envelope import Provider
from ctxsteward.evals.model_runs import run_model
from ctxsteward.schemas import ChatRequest, ContextError, InputError, Ref
from ctxsteward.schemas.message import Wire
from ctxsteward.store.profiles.text import Profile, records_named, static_blocks, system_blocks
from ctxsteward.summarizers.models import GovernedModel

from ..pages.inspector import PastEnvelope, call_numbered, open_call
from ..pages.reply import reply_sentences, said_by
from ..terminal.options import common
from ..terminal.output import print_json, table_console
from ..terminal.stores import is_address, open_stored, stored_session
from ..terminal.tables import grid, say

MOST_CALLS = 200
"""So many of a session's newest calls are laid out again to see who else was shown a source."""
MOST_REPLY_TOKENS = 2_048
"""Longest reply of a model that is asked again."""


@click.command()
@click.argument("name", metavar="CALL|SESSION")
@click.option("--call", "number", type=click.IntRange(min=1), metavar="N", help="Call of SESSION; default: the newest.")
@click.option("--phrase", metavar="TEXT", help="Ask about this text; default: each sentence of the reply.")
@click.option(
    "--model-url",
    metavar="NAME",
    help="Ask this model again without half of the sources, and so on until one is left; needs --phrase. "
    "https://HOST/v1#MODEL, openai:MODEL, anthropic:MODEL, module:name, FILE.py:name.",
)
@common
def blame(
    name: str,
    number: int | None,
    phrase: str | None,
    model_url: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Name the source of a reply's words: a profile line, record, bullet, recalled message, message or result.

    CALL is an envelope's address; anything else is a session id. Without --model-url no model is called: the command
    compares words, and rare words count most. Where no source has enough of them it prints `cannot tell`. For each
    source it shows who said it, how it came into the prompt, and which other calls and sessions were shown it.

    With --model-url it names the one source without which the model no longer says the phrase, and prints what the
    model says then. Of N sources this takes at most two calls for each halving of N, and one with the whole prompt.
    """
    if model_url is not None and phrase is None:
        raise click.UsageError("--model-url needs --phrase TEXT: each phrase takes several calls of the model")
    with open_stored(store, tenant) as opened:
        past, calls, session = _called(opened, name, number, tenant)
        asked = None if model_url is None else _asked(past, phrase or "", model_url)
        if asked is None:
            index = TermIndex(sources_of(past.envelope))
            found = [index.blame(text) for text in _phrases(session, past.call, phrase)]
        else:
            found = [asked.blame]
        sources = [each.source for each in found]
        others = [call for call in calls[-MOST_CALLS:] if call != past.call]
        numbers = _calls_that_show(opened, others, sources, tenant)
        sessions = _sessions_that_show(opened, session, sources, tenant)
        rows = [_described(past, session, *row) for row in zip(found, numbers, sessions, strict=True)]
        if asked is not None:
            rows[0] |= {"model": model_url, "model_calls": asked.calls, "reply_without": asked.reply}
    if as_json:
        for row in rows:
            print_json(row)
        return
    console = table_console()
    cells = []
    for row in rows:
        name = f"{row['source']['kind']} {row['source']['name']}" if row["source"] else f"cannot tell: {row['why']}"
        cells.append((row["phrase"][:60], name, f"{row['share']:.0%}", row["said_by"], row["gate"], row["shown_to"]))
    console.print(grid("words of the reply", "source", "share", "said by", "came by", "also shown to", rows=cells))
    if asked is not None:
        left_out = "without it" if asked.blame.source else "the last time"
        say(console, f"the model was asked {asked.calls} times; {left_out} it says: {asked.reply[:200]}")
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


def _asked(past: PastEnvelope, phrase: str, model_url: str) -> Bisection:
    """Ask the model again without some of the sources."""
    model = GovernedModel(run_model(model_url))

    def ask(prefix: Wire) -> str:
        request = ChatRequest(purpose="blame", messages=(), prefix=prefix, max_output_tokens=MOST_REPLY_TOKENS, seed=0)
        return model.reply(request).text

    provider: Provider = "anthropic" if model_url.startswith("anthropic:") else "openai-chat"
    return bisect(past.envelope, provider, phrase, ask)


def _phrases(session: Session, call: PastCall, phrase: str | None) -> list[str]:
    """The phrase, or the sentences of the first reply after the call."""
    if phrase is not None:
        return [phrase]
    if texts := reply_sentences(session, call):
        return texts
    hint = "append it to the session, or name words of it with --phrase TEXT"
    raise InputError(f"call {call.number} of session {session.id!r} has no reply with text in the log; {hint}")


def _described(
    past: PastEnvelope, session: Session, found: Blame, numbers: Sequence[int], sessions: Sequence[str]
) -> dict[str, Any]:
    source = found.source
    row: dict[str, Any] = {"phrase": found.phrase, "share": found.share, "terms": found.terms, "why": found.why}
    if source is None:
        return row | {"source": None, "said_by": "", "gate": "", "shown_to": "", "calls": [], "sessions": []}
    told = [f"{len(numbers)} calls"] if numbers else []
    return row | {
        "source": {"kind": source.kind, "name": source.name, "refs": source.refs, "text": source.text},
        "repeats": [{"kind": each.kind, "name": each.name} for each in found.repeats],
        "said_by": said_by(session, source),
        "gate": _gate(past, session, source),
        "shown_to": ", ".join([*told, *sessions]),
        "calls": numbers,
        "sessions": sessions,
    }


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


def _calls_that_show(
    store: Store, calls: Sequence[PastCall], sources: Sequence[PromptSource | None], tenant: str
) -> list[list[int]]:
    """Return for each source the calls that show it or its original; lay each call out once."""
    numbers: list[list[int]] = [[] for _ in sources]
    for call in calls if any(sources) else ():
        with suppress(ContextError):  # nothing is known of a call that cannot be laid out any more
            shown = sources_of(open_call(store, tenant, call).envelope)
            for source, found in zip(sources, numbers, strict=True):
                if source is not None and source.stands_in(shown):
                    found.append(call.number)
    return numbers


def _sessions_that_show(
    store: Store, session: Session, sources: Sequence[PromptSource | None], tenant: str
) -> list[list[str]]:
    """Return for each source the other sessions that were shown its record, its line, or its original."""
    ids: list[list[str]] = [[] for _ in sources]
    others = [id for id in store.sessions(tenant=tenant) if id != session.id] if any(sources) else []
    for id in others:
        with suppress(ContextError):  # a session that cannot be read shows nothing
            other = store.at(tenant, id)
            for source, found in zip(sources, ids, strict=True):
                if source is not None and _shows(other, session.id, source):
                    found.append(id)
    return ids


def _shows(other: Session, id: str, source: PromptSource) -> bool:
    """Return whether another session shows a source of the session `id`."""
    head = other.state.head
    profile = Profile.model_validate(head.profile) if head.profile else None
    if source.kind == "record":
        return profile is not None and bool(records_named(profile.meta, source.name))
    if source.kind == "line":
        blocks = (*system_blocks(profile), *static_blocks(profile)) if profile else ()
        return any(source.text in text.split("\n") for text in (*head.system, *(block.text for block in blocks)))
    return not {Ref.parse(ref).ordinal for ref in source.refs}.isdisjoint(other.shown_lines(id))
