"""``ctxsteward cards``: rebuild and list context cards, the summaries of messages that selectors read.

Without `--cards` the index is the store's: `CTXSTEWARD_CARDS`, else ``cards.sqlite`` in the folder of its journal. Exit
code 2 means bad input, or an index that does not exist or does not answer.
"""

from __future__ import annotations

from contextlib import closing

import click

from ctxsteward.envelope import Store
from ctxsteward.envelope.cards import (
    CardIndex,
    card_maker,
    cards_of,
    open_cards,
    rebuild as made_anew,
)
from ctxsteward.schemas import InputError

from ..terminal.failures import one_line
from ..terminal.options import common
from ..terminal.output import note, print_document, print_json, progress, table_console
from ..terminal.stores import open_stored, stored_session
from ..terminal.tables import grid

index_option = click.option(
    "--cards", "cards_uri", metavar="URI", help="The index: sqlite:PATH or postgresql://USER@HOST/DATABASE."
)
_FINDINGS_SHOWN = 10


@click.group()
def cards() -> None:
    """Context cards: one line about each message of a session, for selectors to read instead of originals."""


@cards.command(short_help="Make cards anew from originals.")
@click.option("--session", "session_id", metavar="ID", help="Only this session; default: all of the tenant.")
@click.option("--summarizer", default="extractive", show_default=True, metavar="NAME", help="Who writes summaries.")
@index_option
@common
def rebuild(
    session_id: str | None, summarizer: str, cards_uri: str | None, as_json: bool, store: str, tenant: str
) -> None:
    """Make the cards of a session, or of all sessions, again from their originals.

    Cards of erased messages are not made again. The summarizer `leading` takes the first sentences of a message.
    """

    maker = card_maker(summarizer)
    with open_stored(store, cards=cards_uri) as opened:
        if session_id is not None:
            stored_session(opened, session_id, tenant)
        with (
            closing(_index(opened, cards_uri)) as index,
            progress("cards of", shown=not as_json) as tell,
        ):
            done = made_anew(opened, index, maker, tenant, session_id, on_session=tell)
    if as_json:
        print_json(done._asdict() | {"findings": [finding.model_dump(mode="json") for finding in done.findings]})
        return
    click.echo(f"{done.cards:,} cards of {done.messages:,} messages in {done.sessions:,} sessions")
    for finding in done.findings[:_FINDINGS_SHOWN]:
        note(f"{finding.kind} {finding.ref or ''}: {finding.text}")
    if len(done.findings) > _FINDINGS_SHOWN:
        note(f"{len(done.findings) - _FINDINGS_SHOWN:,} more findings; --json lists all")


@cards.command(name="ls", short_help="List the cards of a session.")
@click.argument("session_id", metavar="SESSION")
@click.option("--phase", metavar="NAME", help="Only of this phase.")
@click.option("--ref", "refs", multiple=True, metavar="REF", help="Only of this message; repeatable.")
@index_option
@common
def list_cards(
    session_id: str,
    phase: str | None,
    refs: tuple[str, ...],
    cards_uri: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """List the cards of SESSION, a fork's with those of the part it shares, pins as they are now.

    Says so where the newest messages have no card yet.
    """

    with open_stored(store, cards=cards_uri) as opened:
        session = stored_session(opened, session_id, tenant)
        with closing(_index(opened, cards_uri, must_exist=True)) as index:
            listed = cards_of(index, session, phase=phase, refs=refs or None)
            carded = index.carded(tenant, session_id)
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
    if carded < len(session) and not (phase or refs):
        note(f"carded up to §{carded} of {len(session)} messages; `ctxsteward cards rebuild` makes the rest")


def _index(store: Store, given: str | None, *, must_exist: bool = False) -> CardIndex:
    """Open the card index of `--cards`, else the store's; raise `InputError` if that would be in memory only."""
    if given is None and store.cards_uri == "memory:":
        raise InputError(f"--store {store.uri}: its cards are elsewhere; name them with --cards")
    return open_cards(store.cards_uri, must_exist=must_exist)
