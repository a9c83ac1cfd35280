"""The store, tenant, profile, people and settings of each verb of ``ctxsteward steward``, checked before writing.

The profile is the named one, else the store's only one. The YAML file of people who may approve and operate
(`ctxsteward.steward.release.actors`) is the named one, else `CTXSTEWARD_ACTORS`, else ``actors.yaml`` in the folder
of a ``file:`` store. A token comes from an option, from `CTXSTEWARD_TOKEN`, or from standard input; it is never
printed.

A settings file has the keys of `ctxsteward.steward.settings.NightSettings`. It is the named one, else
`CTXSTEWARD_SETTINGS`, so that every verb uses the thresholds of the nights. Options override the file, and both
override the defaults.

The package ships transcripts and a profile of a customer desk; the first night of a new store runs on them if no source
is named.

Raises `InputError` with file, line and key, or the option; `InputTooLarge`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from getpass import getpass, getuser
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ctxsteward.envelope import Profile, Store
from ctxsteward.schemas import InputError, ReferenceNotFound
from ctxsteward.steward import Approvals, NightChain, NightSettings, ProcessEnvironment, of_this_process, settings_of
from ctxsteward.steward.release.actors import NOBODY, Actors, Role, token_signer
from ctxsteward.steward.release.approvals import ApprovalRequest
from ctxsteward.steward.settings import FORM
from ctxsteward.store.profiles.versions import ProfileVersions, profile_names
from ctxsteward.store.strict_yaml import hint, message_clause

from ..terminal.failures import STEWARD, missing, need
from ..terminal.stores import JOURNAL_VARIABLE, open_stored, some_of, told_tenants

if TYPE_CHECKING:  # the ledger needs the extra `steward`, and most verbs do without
    from ctxsteward.steward import RecordReviews
    from ctxsteward.steward.release.record_reviews import Needed

ACTORS_VARIABLE, TOKEN_VARIABLE, SETTINGS_VARIABLE = "CTXSTEWARD_ACTORS", "CTXSTEWARD_TOKEN", "CTXSTEWARD_SETTINGS"
ACTORS_FILE = "actors.yaml"
OPTIONS = {
    "night": "--night",
    "since": "--since",
    "until": "--until",
    "workers": "--workers",
    "canary_share": "--canary",
    "profile": "--profile-name",
    "tenant": "--tenant",
    "runner": "--runner",
    "sources": "--transcripts",
    "dask_address": "--dask-address",
}
THRESHOLDS = ("admission", "drift", "gate", "canary", "internal_tools", "confirming_tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class StewardContext:
    """One profile of one tenant of an open store."""

    store: Store
    uri: str
    tenant: str
    profile: str
    actors_path: Path | None
    """None if no people are configured."""
    here: ProcessEnvironment
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    """Out of a settings file, as fields of `NightSettings`; verbs other than `run` take nothing else from it."""

    @property
    def versions(self) -> ProfileVersions:
        return self.store.profiles(self.profile, tenant=self.tenant)

    @property
    def head(self) -> int:
        """Number of the version in force, or 0."""
        head = self.versions.head()
        return head.number if head else 0

    @property
    def actors(self) -> Actors:
        """People with a role; empty if none are configured."""
        return NOBODY if self.actors_path is None else Actors.load(self.actors_path)

    @property
    def approvals(self) -> Approvals:
        return Approvals(self.store, self.profile, self.tenant, actors=self.actors)

    @property
    def nights(self) -> NightChain:
        return NightChain(self.store, self.tenant, self.profile)

    def requests(self) -> tuple[ApprovalRequest, ...]:
        """All requests for approval, as they stand now."""
        return tuple(self.approvals.requests(when=self.here.when, head=self.head))

    def pending(self) -> list[ApprovalRequest]:
        """Requests that wait for a person."""
        return [request for request in self.requests() if request.state == "waiting"]

    @property
    def record_reviews(self) -> RecordReviews:
        from ctxsteward.steward import RecordReviews

        return RecordReviews(self.store, self.profile, self.tenant, actors=self.actors)

    @property
    def people_for(self) -> Needed:
        """Return how many people must approve a record under the version in force."""
        from ctxsteward.steward.release.record_reviews import people_for

        head = self.versions.head()
        return people_for(head.profile if head else None)

    def owner(self, actor: str | None, secret: str | None, role: Role | None = None) -> str:
        """Whoever a token belongs to, who must have this role where one is named; `actor` is who they say they are."""
        people = self.actors
        if actor is not None:
            people.named(actor)
        signer = token_signer(read_token(secret), people.salt)
        return people.owner(signer, actor) if role is None else people.whose(signer, role, actor)

    def settings(self, **more: object) -> NightSettings:
        """The settings of a night at this place."""
        actors = None if self.actors_path is None else str(self.actors_path)
        fields = {
            "store": self.uri,
            "journal": os.environ.get(JOURNAL_VARIABLE) or None,
            "tenant": self.tenant,
            "profile": self.profile,
            "actors": actors,
        }
        return NightSettings.model_validate({**self.thresholds, **fields, **more})


@contextmanager
def open_context(
    uri: str, tenant: str, profile_name: str | None, actors: str | None = None
) -> Iterator[StewardContext]:
    """Open a store that is there, at a profile that is there; thresholds are those of `CTXSTEWARD_SETTINGS`."""
    path, file = actors_path(actors, uri), read_settings(None)
    with open_stored(uri, tenant) as store:
        profile = profile_of(store, tenant, profile_name)
        yield context_of(store, uri, tenant, profile, path, file, of_this_process())


def context_of(
    store: Store,
    uri: str,
    tenant: str,
    profile: str,
    actors: Path | None,
    file: Mapping[str, Any],
    here: ProcessEnvironment,
) -> StewardContext:
    """A profile of an open store, with these people and the thresholds of this settings file."""
    settings = with_shipped(profile, file)
    return StewardContext(
        store=store,
        uri=uri,
        tenant=tenant,
        profile=profile,
        actors_path=actors,
        here=here,
        thresholds={name: settings[name] for name in THRESHOLDS if name in settings},
    )


def is_installed() -> bool:
    """Whether the extra `steward` is here, without which no record can be read."""
    return not missing(STEWARD)


def stored_context(store: Store, tenant: str, profile: str) -> StewardContext:
    """A profile of an open store, with the people and thresholds of this process; raises `ReferenceNotFound`."""
    need(STEWARD, "the steward's page")
    if profile not in profiles_in(store, tenant):
        raise ReferenceNotFound(f"profile {profile!r:.80}", "", f"tenant {tenant!r} has no such profile")
    path = actors_path(None, store.uri)
    return context_of(store, store.uri, tenant, profile, path, read_settings(None), of_this_process())


def profiles_in(store: Store, tenant: str) -> list[str]:
    """Names of the tenant's profiles."""
    return list(profile_names(store.objects, store.profiles("default", tenant=tenant).tenant))


def profile_of(store: Store, tenant: str, named: str | None) -> str:
    """The named profile, else the only one; raises `InputError` that lists the profiles."""
    names = profiles_in(store, tenant)
    if not names:
        raise InputError(
            f"{store.uri}: tenant {tenant!r} has committed no profile; make the first version with `ctxsteward steward "
            f"run --profile FILE` or `ctxsteward backfill --snapshot --profile FILE`; {told_tenants(store)}"
        )
    some = some_of(names)
    if named is None:
        if len(names) > 1:
            raise InputError(
                f"{store.uri}: tenant {tenant!r} has several profiles; name one with --profile-name: {some}"
            )
        return names[0]
    if named not in names:
        raise InputError(f"--profile-name {named:.80}: no such profile; tenant {tenant!r} has {some}")
    return named


def author(actor: str | None) -> str:
    """Who makes a first version: the name of --as, else the login name."""
    try:
        return actor or getuser()
    except (OSError, KeyError, ImportError):  # a container without users
        raise InputError("say who you are: --as NAME") from None


def actors_path(named: str | None, uri: str) -> Path | None:
    """The file of actors, where there is one."""
    path = named or os.environ.get(ACTORS_VARIABLE)
    if path:
        return Path(path)
    scheme, _, folder = uri.partition(":")
    beside = Path(folder) / ACTORS_FILE
    return beside if scheme == "file" and folder and beside.is_file() else None


def read_token(given: str | None) -> str:
    """The token, from wherever it was given; a person is asked for it without an echo."""
    secret = given or os.environ.get(TOKEN_VARIABLE) or None
    if secret == "-" or (secret is None and not sys.stdin.isatty()):
        secret = sys.stdin.readline().strip() or None
    if secret is None and sys.stdin.isatty():
        secret = getpass("token: ", stream=sys.stderr).strip() or None
    if secret is None:
        raise InputError(f"no token: give --token, or {TOKEN_VARIABLE} in the environment, or a line on standard input")
    return secret


# -- settings -----------------------------------------------------------------------------------------------------


def read_settings(path: str | None) -> dict[str, Any]:
    """Return the checked settings of a file, or none without a file."""
    file = path or os.environ.get(SETTINGS_VARIABLE)
    if not file:
        return {}
    settings = settings_of(file, f"--settings {file}" if path else f"{SETTINGS_VARIABLE}={file}")
    settings.gate.suite()  # refuses a file that holds no cases
    return {name: getattr(settings, name) for name in settings.model_fields_set}


def night_settings(file: Mapping[str, Any], options: Mapping[str, Any]) -> NightSettings:
    """Settings of a night from a settings file and the command line's options, which win unless they are None."""
    set_options = {name: value for name, value in options.items() if value is not None}
    try:
        return NightSettings.model_validate({**file, **set_options})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        value = str(first["input"])[:80]
        raise InputError(
            f"{OPTIONS.get(name, name)} {value}: {message_clause(first['msg'])}; {hint(first, FORM)}"
        ) from error


# -- what is shipped ----------------------------------------------------------------------------------------------


def shipped_folder() -> Path:
    """Where transcripts and profile of the customer desk lie."""
    return Path(str(files("ctxsteward.console").joinpath("data", "steward")))


def shipped_transcripts() -> str:
    """The folder of the shipped transcripts, as a source."""
    return str(shipped_folder() / "transcripts")


def with_shipped(profile: str, file: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a file; for the shipped profile, the shipped settings are the defaults."""
    shipped = read_settings(str(shipped_folder() / "settings.yaml"))
    return {**shipped, **file} if profile == shipped["profile"] else file


def is_shipped(uri: str) -> bool:
    """Whether a source is this folder, of this installation or of another one.

    >>> is_shipped(shipped_transcripts()), is_shipped("logs")
    (True, False)
    """
    return uri.replace("\\", "/").endswith("/ctxsteward/console/data/steward/transcripts")


def commit_shipped_profile(store: Store, tenant: str, when: str) -> str:
    """Commit the shipped profile as the version that a first night on a new store starts from; return its name."""
    shipped = Profile.load(shipped_folder() / "profile.yaml")
    store.profiles(shipped.name, tenant=tenant).commit(
        shipped, who="shipped demo", why="the profile of the shipped transcripts", when=when, parent=None
    )
    return shipped.name


def source_name(uri: str) -> str:
    """A source as people know it."""
    return "the shipped transcripts" if is_shipped(uri) else uri
