"""Where a steward's verbs work: store, tenant, profile, people; all checked before anything is written.

The profile is the one named, else the store's only one. Who may approve and operate stands in a YAML file
(`ctxsteward.steward.release.actors`): the one named, else `CTXSTEWARD_ACTORS`, else ``actors.yaml`` in a ``file:``
store's
folder. A token comes from an option, from `CTXSTEWARD_TOKEN`, or from standard input; it is never printed.

Raises `InputError`.

The file of people: made, and added to, without ever holding a token.

A token is 32 random bytes; its public key goes into the file (`ctxsteward.steward.release.actors`). The file is
rewritten
whole, in a new file that takes its place, and checked by the reader that nights use. Raises `InputError`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import InputError

from ..stores import JOURNAL_VARIABLE, open_stored

if TYPE_CHECKING:
    from ctxsteward.envelope import Store
    from ctxsteward.steward.night.environment import ProcessEnvironment
    from ctxsteward.steward.release.actors import Actors
    from ctxsteward.steward.release.approvals import Approvals
    from ctxsteward.steward.release.record_reviews import Needed, RecordReviews
    from ctxsteward.steward.settings import NightSettings
    from ctxsteward.store.profiles.versions import ProfileVersions
import re
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxsteward.steward.release.actors import Actor, Actors, token_signer

if TYPE_CHECKING:
    from rich.console import Console

ACTORS_VARIABLE, TOKEN_VARIABLE = "CTXSTEWARD_ACTORS", "CTXSTEWARD_TOKEN"
ACTORS_FILE = "actors.yaml"
MAX_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StewardContext:
    """One profile of one tenant of an open store."""

    store: Store
    uri: str
    tenant: str
    profile: str
    actors_path: Path | None
    """None: nobody is configured."""
    here: ProcessEnvironment
    told: Mapping[str, Any] = field(default_factory=dict)
    """Thresholds out of a settings file, as fields of `NightSettings`."""

    @property
    def versions(self) -> ProfileVersions:
        return self.store.profiles(self.profile, tenant=self.tenant)

    @property
    def head(self) -> int:
        """Number of the version in force; 0: there is none."""
        found = self.versions.head()
        return found.number if found else 0

    @property
    def actors(self) -> Actors:
        """Everybody with a role; nobody where nobody is configured."""
        from ctxsteward.steward.release.actors import NOBODY, Actors

        return NOBODY if self.actors_path is None else Actors.load(self.actors_path)

    @property
    def approvals(self) -> Approvals:
        from ctxsteward.steward.release.approvals import Approvals

        return Approvals(self.store, self.profile, self.tenant, actors=self.actors)

    @property
    def record_reviews(self) -> RecordReviews:
        from ctxsteward.steward.release.record_reviews import RecordReviews

        return RecordReviews(self.store, self.profile, self.tenant, actors=self.actors)

    @property
    def people_for(self) -> Needed:
        """How many must approve a record, under what is in force."""
        from ctxsteward.steward.release.record_reviews import people_for

        head = self.versions.head()
        return people_for(head.profile if head else None)

    def settings(self, **more: object) -> NightSettings:
        """The settings of a night at this place."""
        from ctxsteward.steward.settings import NightSettings

        actors = None if self.actors_path is None else str(self.actors_path)
        fields = {
            "store": self.uri, "journal": os.environ.get(JOURNAL_VARIABLE) or None, "tenant": self.tenant,
            "profile": self.profile, "actors": actors,
        }  # fmt: skip
        return NightSettings.model_validate({**self.told, **fields, **more})


@contextmanager
def open_context(
    uri: str, tenant: str, profile_name: str | None, actors: str | None = None
) -> Iterator[StewardContext]:
    """Open a store that is there, at a profile that is there; thresholds are those of `CTXSTEWARD_SETTINGS`."""
    from ctxsteward.steward.night.environment import of_this_process

    from .settings import read_settings, thresholds

    path = actors_path(actors, uri)
    told = thresholds(read_settings(None))
    with open_stored(uri) as store:
        profile = profile_of(store, tenant, profile_name)
        here = of_this_process()
        yield StewardContext(
            store=store, uri=uri, tenant=tenant, profile=profile, actors_path=path, here=here, told=told
        )


def profiles_in(store: Store, tenant: str) -> list[str]:
    """Names of the tenant's profiles."""
    from ctxsteward.store.profiles.versions import profile_names

    return list(profile_names(store.objects, store.profiles("default", tenant=tenant).tenant))


def profile_of(store: Store, tenant: str, named: str | None) -> str:
    """The profile that is meant; raises `InputError` naming those that there are."""
    known = profiles_in(store, tenant)
    if not known:
        raise InputError(
            f"{store.uri}: tenant {tenant!r} has committed no profile; make the first version with `ctxsteward steward "
            "run --profile FILE` or `ctxsteward backfill --snapshot --profile FILE`"
        )
    some = ", ".join(known[:MAX_NAMES_SHOWN])
    some += f" and {len(known) - MAX_NAMES_SHOWN} more" if len(known) > MAX_NAMES_SHOWN else ""
    if named is None:
        if len(known) > 1:
            raise InputError(
                f"{store.uri}: tenant {tenant!r} has several profiles; name one with --profile-name: {some}"
            )
        return known[0]
    if named not in known:
        raise InputError(f"--profile-name {named:.80}: no such profile; tenant {tenant!r} has {some}")
    return named


def author(actor: str | None) -> str:
    """Who makes a first version: as told, else whoever is logged in."""
    from getpass import getuser

    try:
        return actor or getuser()
    except (OSError, KeyError, ImportError):  # a container without users
        raise InputError("say who you are: --as NAME") from None


def actors_path(named: str | None, uri: str) -> Path | None:
    """The file of actors, where there is one."""
    told = named or os.environ.get(ACTORS_VARIABLE) or None
    if told is not None:
        return Path(told)
    scheme, _, folder = uri.partition(":")
    beside = Path(folder) / ACTORS_FILE
    return beside if scheme == "file" and folder and beside.is_file() else None


def read_token(given: str | None) -> str:
    """The token, from wherever it was given; a person is asked for it without an echo."""
    told = given or os.environ.get(TOKEN_VARIABLE) or None
    if told == "-" or (told is None and not sys.stdin.isatty()):
        told = sys.stdin.readline().strip() or None
    if told is None and sys.stdin.isatty():
        from getpass import getpass

        told = getpass("token: ", stream=sys.stderr).strip() or None
    if told is None:
        raise InputError(f"no token: give --token, or {TOKEN_VARIABLE} in the environment, or a line on standard input")
    return told


SALT_BYTES, TOKEN_BYTES = 16, 32
SECRET_FILE_MODE = 0o600
_ACTOR_NAME = re.compile(r"[\w.@-]{1,80}")
ACTORS_FILE_HEAD = "# Who may approve (reviewer) and promote or roll back (operator). No secret is in this file.\n"


def list_actors(path: str | None, store: str) -> dict[str, list[str]]:
    """Everybody with their roles, by name."""
    found = actors_path(path, store)
    if found is None:
        raise InputError("nobody is configured; begin with `ctxsteward steward actors --add NAME --role reviewer`")
    return {name: list(actor.roles) for name, actor in sorted(Actors.load(found).actors.items())}


def show_actors(console: Console, people: Mapping[str, Sequence[str]]) -> None:
    """A row each."""
    from .. import tables

    table = tables.grid("who", "roles")
    for name, roles in people.items():
        table.add_row(tables.shown(name), ", ".join(roles))
    console.print(table)


def actors_file(path: str | None, store: str) -> Path:
    """The file that is named or told, else the one beside a ``file:`` store."""
    told = actors_path(path, store)
    if told is not None:
        return told
    scheme, _, folder = store.partition(":")
    if scheme == "file" and folder:
        return Path(folder) / ACTORS_FILE
    raise InputError(f"--store {store}: its people stand elsewhere; name the file with --actors")


def add_actor(path: Path, name: str, roles: Sequence[str]) -> str:
    """Write somebody with roles and a new key; their token."""
    if not _ACTOR_NAME.fullmatch(name):
        raise InputError(f"actor {name!r:.80}: use letters, digits, '.', '_', '@' and '-', at most 80")
    before = Actors.load(path) if path.exists() else Actors(salt=secrets.token_hex(SALT_BYTES), actors={})
    token = secrets.token_urlsafe(TOKEN_BYTES)
    key = token_signer(token, before.salt).key
    made = Actor.model_validate({"roles": tuple(dict.fromkeys(roles)), "key": key})
    _write_actors(path, Actors(salt=before.salt, actors={**before.actors, name: made}))
    return token


def check_token_file(path: Path) -> None:
    """Refuse a file for a token that is there already, before anybody is given another one."""
    if path.exists() or path.is_symlink():
        raise InputError(f"--token-file {path}: file exists; name one that does not")


def write_token_file(path: Path, token: str) -> None:
    """A file that only its owner reads; one that is there is not overwritten."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_FILE_MODE)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(f"{token}\n")


def _write_actors(path: Path, actors: Actors) -> None:
    people = "".join(
        f"  {name!r}: {{roles: [{', '.join(one.roles)}], key: '{one.key}'}}\n" for name, one in actors.actors.items()
    )
    text = f"{ACTORS_FILE_HEAD}salt: '{actors.salt}'\nactors:\n{people}"
    Actors.from_yaml(text, source=str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
