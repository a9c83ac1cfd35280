"""``ctxsteward cards``: list context cards, the summaries of messages that selectors read, and make them again.

Exit code 2 means bad input, or a store that does not answer.
"""

from __future__ import annotations

import click

from ctxsteward.envelope.cards import card_summarizer, cards_of
from ctxsteward.schemas import Finding, InputError
from ctxsteward.schemas.errors import Damaged

from ..terminal.failures import one_line
from ..terminal.options import common
from ..terminal.output import note, print_document, print_json, progress, table_console
from ..terminal.stores import open_stored, stored_session
from ..terminal.tables import grid

summarizer_option = click.option(
    "--summarizer", default="extractive", show_default=True, metavar="NAME", help="Summarizer of long messages."
)
_FINDINGS_SHOWN = 10


@click.group()
def cards() -> None:
    """Context cards: a one-line summary of each message, which selectors read instead of the originals."""


@cards.command(short_help="Make cards again from the originals.")
@click.option("--session", "session_id", metavar="ID", help="Only this session; default: all sessions of the tenant.")
@summarizer_option
@common
def rebuild(session_id: str | None, summarizer: str, as_json: bool, store: str, tenant: str) -> None:
    """Make the cards of one session, or of all sessions, again from their originals.

    Erased messages have no card. The summarizer `leading` takes the first sentences of a message.
    """
    make = card_summarizer(summarizer)
    sessions = messages = made = 0
    findings: list[Finding] = []
    with open_stored(store, tenant) as opened, progress("cards of", shown=not as_json) as tell:
        if session_id is None and store == "memory:":
            raise InputError("--store memory: has no sessions; name a store with sessions")
        for name in opened.sessions(tenant=tenant) if session_id is None else [session_id]:
            tell(name)
            try:
                session = stored_session(opened, name, tenant)
                done = cards_of(session, make, anew=True)
            except Damaged as error:
                if session_id is not None:
                    raise
                findings.append(Finding(kind="card_not_made", text=f"session {name!r}: {error}"))
                continue
            sessions, messages, made = sessions + 1, messages + len(session), made + len(done.cards)
            findings += done.findings
    if as_json:
        listed = [finding.model_dump(mode="json") for finding in findings]
        print_json({"sessions": sessions, "messages": messages, "cards": made, "findings": listed})
        return
    click.echo(f"{made:,} cards of {messages:,} messages in {sessions:,} sessions")
    _note(findings)


@cards.command(name="ls", short_help="List the cards of a session.")
@click.argument("session_id", metavar="SESSION")
@click.option("--phase", metavar="NAME", help="Only cards of this phase.")
@click.option("--ref", "refs", multiple=True, metavar="REF", help="Only cards of this message; repeatable.")
@summarizer_option
@common
def list_cards(
    session_id: str, phase: str | None, refs: tuple[str, ...], summarizer: str, as_json: bool, store: str, tenant: str
) -> None:
    """List the cards of SESSION with their current pins; a fork includes the cards of the part it shares.

    Cards that are not there yet are made.
    """
    make = card_summarizer(summarizer)
    with open_stored(store, tenant) as opened:
        listed, findings = cards_of(stored_session(opened, session_id, tenant), make, phase=phase, refs=refs or None)
    if as_json:
        print_document("context_card", [card.model_dump(mode="json") for card in listed])
        return
    rows = [
        (
            card.ref,
            card.role,
            one_line(card.phase_name or ""),
            str(card.turn_number or ""),
            f"{card.estimated_tokens:,}",
            one_line((card.callout_name or ("anchor" if card.is_anchor else "callout")) if card.is_callout else ""),
            one_line(card.summary),
        )
        for card in listed
    ]
    columns = ("ref", "role", "phase", "turn", "tokens", "pin", "summary")
    table_console().print(grid(*columns, rows=rows, numbers=("turn", "tokens")) if rows else "no cards")
    _note(findings)


def _note(findings: list[Finding]) -> None:
    for finding in findings[:_FINDINGS_SHOWN]:
        note(f"{finding.kind} {finding.ref or ''}: {finding.text}")
    if len(findings) > _FINDINGS_SHOWN:
        note(f"{len(findings) - _FINDINGS_SHOWN:,} more findings")
