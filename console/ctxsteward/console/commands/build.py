"""``ctxsteward build``: the envelope for the next call of a transcript."""

from __future__ import annotations

import click

from ctxsteward.envelope import Envelope
from ctxsteward.envelope.transcripts import Transcript
from ctxsteward.schemas import InputError

from ..terminal import (
    append_missing,
    building,
    choose_transcript,
    common,
    note,
    open_session,
    open_uri,
    print_document,
    print_json,
    progress,
    provider,
    read_builder,
    read_profile,
    read_provider,
    table_console,
    tables,
)


@click.command()
@click.argument("transcript", type=click.Path(allow_dash=True))
@building
@click.option("--run", default=0, show_default=True, metavar="N", help="Which transcript of the file, from 0.")
@click.option("--session", "session_id", metavar="ID", help="Session to append to; default: named after the file.")
@click.option("--user-turn", metavar="TEXT", help="As if this were the next user message; writes no envelope.")
@provider
@common
def build(
    transcript: str,
    profile: str | None,
    budgets: tuple[str, ...],
    policy: str | None,
    model: str,
    format: str,
    run: int,
    session_id: str | None,
    user_turn: str | None,
    provider: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Build the envelope for the next call of TRANSCRIPT (- for stdin).

    Messages that the session does not hold yet are appended to it; running the command twice appends nothing.
    """

    read_provider(provider)
    if user_turn is not None and not user_turn.strip():
        raise InputError("--user-turn: the text is empty; write what the user says")
    builder = read_builder(model, budgets, policy)
    governed = read_profile(profile)
    chosen, count = choose_transcript(transcript, format, run)
    with open_uri(store) as opened:
        session = open_session(
            opened,
            chosen,
            chosen.session if session_id is None else session_id,
            tenant=tenant,
            profile=governed,
            counter=builder.counter,
        )
        with progress("appending", shown=not as_json) as tell:
            appended = append_missing(session, chosen, builder, tell)
        envelope = builder.build(session) if user_turn is None else builder.preview(session, user_turn)
        kind = f"{chosen.format}{' (detected)' if format == 'auto' else ''}"
        if count > 1:
            note(f"{transcript} holds {count} transcripts; this is number {run}, --run takes another")
        if provider or as_json:
            note(f"{transcript}: format {kind}")
            _print_value(envelope, provider, as_json)
        else:
            _print_tables(envelope, chosen, f"format {kind}, {len(session)} messages, {appended} appended now")


def _print_value(envelope: Envelope, provider: str | None, as_json: bool) -> None:
    if provider is None:
        print_document("envelope", envelope.document())
    else:
        print_json(envelope.render(provider), indent=None if as_json else 2)  # type: ignore[arg-type]


def _print_tables(envelope: Envelope, transcript: Transcript, origin: str) -> None:
    console = table_console()
    console.print(tables.shown(f"{envelope.session}: {origin}"))
    console.print(tables.sections_table(envelope))
    if envelope.dynamic.bullets is not None:
        console.print("compacted history")
        console.print(tables.bullet_list(envelope))
        console.print()
    if findings := (*transcript.findings, *envelope.findings):
        console.print("findings")
        console.print(tables.finding_list(findings))
        console.print()
    console.print(f"envelope {envelope.address}", soft_wrap=True)
