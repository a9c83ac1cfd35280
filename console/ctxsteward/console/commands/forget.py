"""``ctxsteward store forget``: erase a session, or what a principal said."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ..failures import one_line
from ..options import common
from ..output import print_json

if TYPE_CHECKING:
    from ctxsteward.envelope.erasure import Erasure


_REPEAT = "mend what is named above (`ctxsteward store fsck`), and repeat the command"


@click.command(short_help="Erase a session, or what a principal said.")
@click.option("--session", metavar="ID", help="This session, with all forks of it.")
@click.option("--principal", metavar="NAME", help="What this principal said, in all sessions (or in --session).")
@click.option("--who", required=True, metavar="NAME", help="Who orders it; kept in plain.")
@click.option("--why", required=True, metavar="TEXT", help="Why, such as a request's number; kept in plain.")
@click.option("--when", metavar="TIME", help="ISO 8601; default: now.")
@click.option("--cards", "cards_uri", metavar="URI", help="Index of context cards; default: the store's own.")
@common
def forget(
    session: str | None, principal: str | None, who: str, why: str, when: str | None, cards_uri: str | None,
    as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """Erase a session, or what a principal said: for good, in every copy.

    A tombstone says who, why and when. A session is gone whole, and its id cannot be used again. Of a principal's
    messages the place stays, without the words; what others said, the model included, stays. Repeating the command
    finishes what an interruption has left. What cannot be read is named and passed over; the exit code is then 1:
    mend it, and repeat the command.
    """
    from ctxsteward.envelope.erasure import forget as erase

    from ..stored import open_stored

    told = when or datetime.now(UTC).isoformat(timespec="seconds")
    with open_stored(store, cards=cards_uri) as opened:
        _check_cards(cards_uri)
        done = erase(opened, tenant=tenant, session=session, principal=principal, who=who, why=why, when=told)
    if as_json:
        print_json(_document(done))
    else:
        _print(done, session, principal)
    if not done.complete:
        click.echo(one_line(f"not everything is forgotten: {done.findings[0].field}; {_REPEAT}"), err=True)
        raise click.exceptions.Exit(1)


def _check_cards(uri: str | None) -> None:
    """Raise where an index that is named is not there: better before anything is gone."""
    if uri is not None:
        from ctxsteward.envelope.cards import open_cards

        open_cards(uri, must_exist=True).close()


def _document(done: Erasure) -> dict[str, Any]:
    values = {field.name: getattr(done, field.name) for field in fields(done)}
    return (
        values
        | {"complete": done.complete}
        | {"findings": [finding.model_dump(mode="json") for finding in done.findings]}
    )


def _print(done: Erasure, session: str | None, principal: str | None) -> None:
    what = f"principal {principal}" if principal is not None else f"session {session}"
    where = f" in {len(done.sessions)} sessions" if principal is not None else f" and {len(done.forks)} forks of it"
    click.echo(one_line(f"forgot {what}{where}"))
    counts = {
        "messages": done.messages, "derived records": done.derived, "manifests": done.manifests,
        "recommendations withdrawn": done.recommendations, "texts elsewhere": done.elsewhere,
        "subjects buried": done.subjects,
    }  # fmt: skip
    click.echo(", ".join(f"{number:,} {name}" for name, number in counts.items()))
    for finding in done.findings:
        click.echo(one_line(f"{finding.kind}: {finding.field}: {finding.text}"))
