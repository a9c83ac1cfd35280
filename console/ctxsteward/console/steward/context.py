"""Where a steward's verbs work: store, tenant, profile, people; all checked before anything is written.

The profile is the one named, else the store's only one. Who may approve and operate stands in a YAML file
(`ctxsteward.steward.release.actors`): the one named, else `CTXSTEWARD_ACTORS`, else ``actors.yaml`` in the folder of a
``file:`` store. A token comes from an option, from `CTXSTEWARD_TOKEN`, or from standard input; it is never printed.

Raises `InputError`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from getpass import getpass, getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxsteward.envelope import Store
from ctxsteward.schemas import InputError
from ctxsteward.steward.night.environment import ProcessEnvironment, of_this_process
from ctxsteward.steward.release.actors import NOBODY, Actors
from ctxsteward.steward.release.approvals import Approvals
from ctxsteward.steward.settings import NightSettings
from ctxsteward.store.profiles.versions import ProfileVersions, profile_names

from ..stores import JOURNAL_VARIABLE, open_stored
from .settings import read_settings, thresholds

if TYPE_CHECKING:  # the ledger needs the extra `steward`, and most verbs do without
    from ctxsteward.steward.release.record_reviews import Needed, RecordReviews

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
        return NOBODY if self.actors_path is None else Actors.load(self.actors_path)

    @property
    def approvals(self) -> Approvals:
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
        told = getpass("token: ", stream=sys.stderr).strip() or None
    if told is None:
        raise InputError(f"no token: give --token, or {TOKEN_VARIABLE} in the environment, or a line on standard input")
    return told
