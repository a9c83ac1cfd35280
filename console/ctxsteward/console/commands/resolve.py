"""``ctxsteward resolve``: the original that a reference names."""

from __future__ import annotations

import click

from ..failures import visible
from ..options import common
from ..output import print_json


@click.command(short_help="Show the original that a reference names.")
@click.argument("ref")
@click.option("--session", "session_id", required=True, metavar="ID", help="Session that the reference belongs to.")
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="First character to show.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many characters; default: all.")
@click.option("--grep", metavar="TEXT", help="Only lines that contain this text, in any case.")
@common
def resolve(
    ref: str,
    session_id: str,
    offset: int,
    limit: int | None,
    grep: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Show the original that REF names.

    §128 or 128 is the 128th message, §128.2 the second tool result in it, tool:3 the third tool output of the
    session.

    --json prints the message exactly as it was appended. Otherwise control characters are written out, and
    --offset, --limit and --grep choose a part.
    """
    from ctxsteward.envelope.accounting import text_of

    from ..stored import open_stored, stored_session

    with open_stored(store) as opened:
        message = stored_session(opened, session_id, tenant).resolve(ref)
    if as_json:
        print_json(message.wire)
        return
    text = text_of(message)
    if grep:
        text = "\n".join(line for line in text.split("\n") if grep.lower() in line.lower())
    stop = len(text) if limit is None else offset + limit
    click.echo(f"{ref} {message.role}")
    click.echo(visible(text[offset:stop], keep="\n\t"))
    if stop < len(text):
        click.echo(f"[{len(text) - stop:,} more characters; --offset {stop}]")
