"""Options of the steward's verbs, and what a shell completes after them.

Completions read the store only when a shell asks; where that fails there is nothing to complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from .options import DEFAULT_STORE

if TYPE_CHECKING:
    from .steward_place import Place

MAX_COMPLETIONS = 200

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _at_place(names: Callable[[Place], Iterable[str]]) -> Completer:
    """A completer that asks the place that the other options name."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from .steward_place import placed

        told = {"store": DEFAULT_STORE, "tenant": "default", "profile_name": None, "actors": None, **_given(ctx)}
        try:
            with placed(told["store"], told["tenant"], told["profile_name"], told["actors"]) as place:
                found = [name for name in names(place) if name.startswith(incomplete)]
        except Exception:  # a shell that completes has no use for an error
            return []
        return found[:MAX_COMPLETIONS]

    return complete


def _given(ctx: click.Context) -> dict[str, Any]:
    return {name: value for name, value in ctx.params.items() if value is not None}


def _complete_profiles(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from .steward_place import profiles_in
    from .stored import open_stored

    told = {"store": DEFAULT_STORE, "tenant": "default", **_given(ctx)}
    try:
        with open_stored(told["store"]) as store:
            return [name for name in profiles_in(store, told["tenant"]) if name.startswith(incomplete)]
    except Exception:
        return []


def _versions(place: Place) -> list[str]:
    return [str(number) for number in range(place.head, 0, -1)]


def _requests(place: Place) -> list[str]:
    when = place.here.when
    return [request.id for request in place.approvals.pending(when=when, head=place.head)]


def _records(place: Place) -> list[str]:
    from .steward_records import records_at

    with records_at(place, keep=False) as records:
        return [record.id for record in records]


complete_versions = _at_place(_versions)
complete_records = _at_place(_records)
complete_waiting = _at_place(lambda place: [*_requests(place), *_records(place)])
complete_actors = _at_place(lambda place: sorted(place.actors.actors))

profile_name = click.option(
    "--profile-name", metavar="NAME", shell_complete=_complete_profiles,
    help="Name of the governed profile; default: the store's only one.",
)  # fmt: skip
actors_option = click.option(
    "--actors", type=click.Path(), metavar="FILE",
    help="Who may approve and operate (YAML); default: CTXSTEWARD_ACTORS, or actors.yaml in the store's folder.",
)  # fmt: skip
as_actor = click.option("--as", "actor", metavar="ACTOR", shell_complete=complete_actors, help="Who you are.")
token = click.option(
    "--token", metavar="TOKEN", help="Your token; safer: CTXSTEWARD_TOKEN, or - for a line on standard input."
)
