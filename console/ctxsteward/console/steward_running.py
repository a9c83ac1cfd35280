"""Running a night from the command line: what it is told, who runs it, and what is known about it afterwards.

Without transcripts named it goes on with the sources of the last night; before the first one it reads the store's own
sessions, or, where the store is new, the shipped transcripts (`steward_shipped`).

Raises `InputError`, `StoreError`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import InputError

from . import steward_shipped as shipped
from .steward_extras import FLOWS, S3, STEWARD, need
from .steward_place import Place, actors_path, author, profile_of, profiles_in
from .steward_records import Records, records_at, reviews_of
from .steward_settings import night_settings, thresholds
from .stored import JOURNAL_VARIABLE, open_uri

if TYPE_CHECKING:
    from ctxsteward.envelope import Profile, Store
    from ctxsteward.schemas import Finding
    from ctxsteward.schemas.recommendation import MetaRecommendation
    from ctxsteward.steward.night import Tell
    from ctxsteward.steward.report import NightReport
    from ctxsteward.steward.settings import NightSettings
    from ctxsteward.steward.surroundings import Surroundings

WHY = "the first version, of a profile file"
SILENT = {"PREFECT_LOGGING_LEVEL": "CRITICAL", "DASK_LOGGING__DISTRIBUTED": "error"}
"""What keeps Prefect and Dask from telling a terminal about themselves; what is set already stays."""
MAX_LISTED = 200
"""Records of one list in a report."""
MAX_COMPARED = 20_000
"""With more records than that a night does not say which are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks for; None or empty: not said."""

    store: str
    tenant: str
    transcripts: tuple[str, ...] = ()
    profile_name: str | None = None
    profile: Profile | None = None
    """Made the first version where there is none; else it must be what is in force."""
    who: str | None = None
    """Author of that first version; None: whoever is logged in."""
    actors: str | None = None
    file: Mapping[str, Any] = field(default_factory=dict)
    """Of a settings file."""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A night that can begin."""

    settings: NightSettings
    place: Place
    is_shipped: bool
    findings: tuple[Finding, ...] = ()
    """About the profile file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Records after a night."""

    new: tuple[Listed, ...]
    """Active ones that were not active before."""
    held: tuple[Listed, ...]
    """That are not used, and why."""
    compared: bool
    """False: there are too many to say which are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A record with its spans."""

    record: MetaRecommendation
    spans: tuple[tuple[str, str, str, str | None], ...]
    """Session, reference, trust and words of each; words are None where they were forgotten."""


@contextmanager
def ready(asked: Asked, here: Surroundings | None = None) -> Iterator[Ready]:
    """Settle sources, profile and settings; a dry run on a new store has one of its own, thrown away at the end.

    `here` tells clock and machine; None: those of this process.
    """
    from ctxsteward.steward.surroundings import of_this_process

    need(STEWARD, "steward run")
    dry = bool(asked.options.get("dry_run") or asked.file.get("dry_run"))
    scheme, _, folder = asked.store.partition(":")
    with TemporaryDirectory(prefix="ctxsteward-dry-") as spare:
        new = scheme == "file" and bool(folder) and not (Path(folder) / "objects").is_dir()
        uri = f"file:{spare}" if dry and new else asked.store
        _check_sources(asked.transcripts or asked.file.get("sources", ()))
        _settings(asked, uri, "default", asked.transcripts or ("store",))
        here = here or of_this_process()
        with open_uri(uri) as store:
            profile, sources, findings = _settled(store, asked, here.when, dry=dry and not new)
            settings = _settings(asked, uri, profile, sources)
            path = Path(settings.actors) if settings.actors else None
            place = Place(
                store=store, uri=uri, tenant=asked.tenant, profile=profile, actors_path=path, here=here,
                told=thresholds(asked.file),
            )  # fmt: skip
            yield Ready(
                settings=settings,
                place=place,
                is_shipped=all(map(shipped.is_shipped, settings.sources)),
                findings=findings,
            )


def run(ready: Ready, tell: Tell) -> tuple[NightReport, Seen]:
    """Run the night; what it said, and the records behind it."""
    before = _active(ready.place, keep=not ready.settings.dry_run)
    if ready.settings.runner == "dask":
        report = _on_dask(ready.settings)
        with records_at(ready.place) as records:
            return report, _seen(records, before)
    from ctxsteward.steward.night import run_night
    from ctxsteward.steward.telemetry import tell_night
    from ctxsteward.steward.wiring import opened

    with opened(ready.settings, ready.place.here, tell=tell) as opening:
        report = run_night(opening.stages, opening.shell)
        tell_night(report)
        if report.outcome == "busy":
            return report, Seen(new=(), held=(), compared=True)
        reviews = reviews_of(ready.place, opening.ledger, report.night)
        return report, _seen(Records(opening.ledger, report.night, reviews, ready.settings.admission), before)


# -- before -------------------------------------------------------------------------------------------------------


def _check_sources(transcripts: Sequence[str]) -> None:
    """Refuse a folder that is not there or holds nothing like a transcript, before anything is written."""
    from ctxsteward.steward.wiring import require_transcripts

    for uri in transcripts:
        if uri.startswith("s3:"):
            need(S3, f"--transcripts {uri}")
        try:
            require_transcripts(uri)
        except InputError as error:
            raise InputError(f"--transcripts {uri}: {error}") from error


def _settled(store: Store, asked: Asked, when: str, *, dry: bool) -> tuple[str, tuple[str, ...], tuple[Finding, ...]]:
    """Profile and sources; of a profile that was given, or the shipped one, a first version is made."""
    findings: tuple[Finding, ...] = ()
    sources = asked.transcripts or tuple(asked.file.get("sources", ()))
    named = asked.profile_name or asked.file.get("profile")
    if asked.profile is not None:
        if named not in (None, asked.profile.name):
            raise InputError(f"--profile-name {named}: the file's profile is {asked.profile.name!r}; leave one out")
        named = asked.profile.name
        findings = _entered(store, asked, asked.profile, when, dry=dry)
    is_new = not profiles_in(store, asked.tenant) and not store.sessions(tenant=asked.tenant)
    if is_new and not sources and named is None:
        return shipped.commit_profile(store, asked.tenant, when), (shipped.transcripts(),), findings
    profile = profile_of(store, asked.tenant, named)
    return profile, sources or _earlier_sources(store, asked.tenant, profile), findings


def _entered(store: Store, asked: Asked, profile: Profile, when: str, *, dry: bool) -> tuple[Finding, ...]:
    """Make the first version of a file, or find that it says what is in force."""
    from ctxsteward.envelope.proposal import bootstrap

    if dry and store.profiles(profile.name, tenant=asked.tenant).head() is None:
        raise InputError(f"a dry run commits no profile, and {profile.name!r} has no version; leave --dry-run out")
    return bootstrap(store, profile, who=author(asked.who), why=WHY, when=when, tenant=asked.tenant).findings


def _earlier_sources(store: Store, tenant: str, profile: str) -> tuple[str, ...]:
    """Those that nights have read, else the store's own sessions."""
    from ctxsteward.steward.nights import Nights

    newest = Nights(store, tenant, profile).head()
    known = sorted(newest[1].marks) if newest else []
    return tuple(shipped.transcripts() if shipped.is_shipped(uri) else uri for uri in known) or ("store",)


def _settings(asked: Asked, uri: str, profile: str, sources: tuple[str, ...]) -> NightSettings:
    told = asked.actors or asked.file.get("actors")
    path = actors_path(told, asked.store)
    fixed: dict[str, Any] = {
        "store": uri, "journal": os.environ.get(JOURNAL_VARIABLE) or asked.file.get("journal"), "tenant": asked.tenant,
        "profile": profile, "sources": sources, "actors": None if path is None else str(path),
    }  # fmt: skip
    settings = night_settings(asked.file, {**fixed, **{k: v for k, v in asked.options.items() if v is not None}})
    if settings.actors is not None:
        from ctxsteward.steward.actors import Actors

        Actors.load(settings.actors)
    if settings.runner == "dask":
        if settings.dry_run:
            raise InputError("a dry run keeps everything in this process's memory; leave --runner dask out")
        need(FLOWS, "--runner dask")
    return settings


def _active(place: Place, *, keep: bool) -> set[str] | None:
    """Ids of active records; None where there are too many to compare."""
    from ctxsteward.steward.nights import Nights

    if Nights(place.store, place.tenant, place.profile).head() is None:
        return set()
    with records_at(place, keep=keep) as records:
        if records.ledger.size().components > MAX_COMPARED:
            return None
        return {record.id for record in records if record.status == "active"}


def _on_dask(settings: NightSettings) -> NightReport:
    """The same night as a Prefect flow, its batches tasks."""
    from ctxsteward.flows.quiet import QUIET

    for name, value in {**QUIET, **SILENT}.items():
        os.environ.setdefault(name, value)
    from ctxsteward.flows.nightly import NightFailed, meta_steward_nightly
    from ctxsteward.flows.serving import local_api

    with local_api():
        try:
            return meta_steward_nightly(settings)
        except NightFailed as failed:
            return failed.report


# -- after --------------------------------------------------------------------------------------------------------


def _seen(records: Records, before: set[str] | None) -> Seen:
    new, held = [], []
    for record in records:
        if record.status == "active":
            if before is not None and record.id not in before:
                new.append(record)
        elif record.status != "superseded":
            held.append(record)
    for found in (new, held):
        found.sort(key=lambda record: (not record.scope.is_shared, record.kind, record.text, record.id))
    return Seen(
        new=tuple(_listed(records, one) for one in new[:MAX_LISTED]),
        held=tuple(_listed(records, one) for one in held[:MAX_LISTED]), compared=before is not None,
    )  # fmt: skip


def _listed(records: Records, record: MetaRecommendation) -> Listed:
    spans = ((s.evidence.session, s.evidence.ref, s.evidence.trust, s.text) for s in records.spans(record))
    return Listed(record=record, spans=tuple(spans))
