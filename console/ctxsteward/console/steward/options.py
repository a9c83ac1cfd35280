"""Options that the steward's verbs share, and what a shell completes after them.

Completions read the store; where that fails there is nothing to complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

from ..terminal import DEFAULT_STORE, common, open_stored
from .context import StewardContext, open_context, profiles_in
from .records import records_at

MAX_COMPLETIONS = 200

_Command = TypeVar("_Command", bound=Callable[..., Any])
Completer = Callable[[click.Context, click.Parameter, str], list[str]]


class ProfileOptions(NamedTuple):
    """Which profile of which store a verb is about, as the command line says it."""

    store: str = DEFAULT_STORE
    tenant: str = "default"
    profile_name: str | None = None
    actors: str | None = None

    @classmethod
    def of(cls, ctx: click.Context) -> ProfileOptions:
        """Those that were read so far."""
        return cls(**{name: ctx.params[name] for name in cls._fields if ctx.params.get(name) is not None})

    def open(self) -> AbstractContextManager[StewardContext]:
        return open_context(*self)


def _completer(names: Callable[[ProfileOptions], Iterable[str]]) -> Completer:
    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        try:
            found = [name for name in names(ProfileOptions.of(ctx)) if name.startswith(incomplete)]
        except Exception:  # a shell that completes has no use for an error
            return []
        return found[:MAX_COMPLETIONS]

    return complete


def _profiles(where: ProfileOptions) -> list[str]:
    with open_stored(where.store) as store:
        return profiles_in(store, where.tenant)


def _versions(where: ProfileOptions) -> list[str]:
    with where.open() as place:
        return [str(number) for number in range(place.head, 0, -1)]


def _requests(where: ProfileOptions) -> list[str]:
    with where.open() as place:
        return [request.id for request in place.approvals.pending(when=place.here.when, head=place.head)]


def _records(where: ProfileOptions) -> list[str]:
    with where.open() as place, records_at(place, keep=False) as records:
        return [record.id for record in records]


def _actors(where: ProfileOptions) -> list[str]:
    with where.open() as place:
        return sorted(place.actors.actors)


complete_versions = _completer(_versions)
complete_records = _completer(_records)
complete_waiting = _completer(lambda where: [*_requests(where), *_records(where)])

profile_name = click.option(
    "--profile-name", metavar="NAME", shell_complete=_completer(_profiles),
    help="Name of the governed profile; default: the store's only one.",
)  # fmt: skip
actors_option = click.option(
    "--actors", type=click.Path(), metavar="FILE",
    help="Who may approve and operate (YAML); default: CTXSTEWARD_ACTORS, or actors.yaml in the store's folder.",
)  # fmt: skip
as_actor = click.option("--as", "actor", metavar="ACTOR", shell_complete=_completer(_actors), help="Who you are.")
token = click.option(
    "--token", metavar="TOKEN", help="Your token; safer: CTXSTEWARD_TOKEN, or - for a line on standard input."
)


def about_a_profile(*, people: bool = True) -> Callable[[_Command], _Command]:
    """--profile-name, --json, --store, --tenant and, with `people`, --actors; the verb gets `where` and `as_json`."""

    def decorate(command: _Command) -> _Command:
        @wraps(command)
        def told(
            *args: Any, store: str, tenant: str, profile_name: str | None, actors: str | None = None, **more: Any
        ) -> Any:
            return command(*args, where=ProfileOptions(store, tenant, profile_name, actors), **more)

        wrapped: Any = profile_name(common(told))
        with_people: _Command = actors_option(wrapped) if people else wrapped
        return with_people

    return decorate
