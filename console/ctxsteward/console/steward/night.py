"""The shipped transcripts and profile of a customer desk: what a first night runs on where there is nothing else.

They lie in the package. Their night is tonight, as any night is.

A bar on stderr that tells how far a night is, stage by stage; nothing where stderr is no terminal.

Running a night from the command line: what it is told, who runs it, and what is known about it afterwards.

Without transcripts named it goes on with the sources of the last night; before the first one it reads the store's own
sessions, or, where the store is new, the shipped transcripts (`steward_shipped`).

Raises `InputError`, `StoreError`.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxsteward.envelope import Profile, Store
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import InputError

from ..extras import FLOWS, S3, STEWARD, need
from ..output import table_console
from ..stores import JOURNAL_VARIABLE, open_uri
from .context import StewardContext, actors_path, author, profile_of, profiles_in
from .records import LedgerView, records_at, reviews_of
from .settings import night_settings, thresholds

if TYPE_CHECKING:
    from ctxsteward.envelope import Profile, Store
    from ctxsteward.schemas import Finding
    from ctxsteward.schemas.recommendation import MetaRecommendation
    from ctxsteward.steward.night.environment import ProcessEnvironment
    from ctxsteward.steward.night.report import NightReport
    from ctxsteward.steward.night.run import Tell
    from ctxsteward.steward.settings import NightSettings

SHIPPED_WHO, SHIPPED_WHY = "shipped demo", "the profile of the shipped transcripts"
_SHIPPED_FOLDER = ("data", "steward")


def shipped_transcripts() -> str:
    """Their folder."""
    return str(_shipped_folder() / "shipped_transcripts")


def is_shipped(uri: str) -> bool:
    """Whether a source is this folder, of this installation or of another one.

    >>> is_shipped(transcripts()), is_shipped("logs")
    (True, False)
    """
    return uri.replace("\\", "/").endswith("/ctxsteward/console/data/steward/transcripts")


def shipped_profile() -> Profile:
    """The governed text that the first night starts from."""
    from ctxsteward.envelope import Profile

    return Profile.load(_shipped_folder() / "profile.yaml")


def commit_shipped_profile(store: Store, tenant: str, when: str) -> str:
    """Make it a version of its own, once; its name."""
    shipped = shipped_profile()
    store.profiles(shipped.name, tenant=tenant).commit(
        shipped, who=SHIPPED_WHO, why=SHIPPED_WHY, when=when, parent=None
    )
    return shipped.name


def _shipped_folder() -> Path:
    return Path(str(files("ctxsteward.console").joinpath(*_SHIPPED_FOLDER)))


STAGES = (
    "due", "harvested", "absorbed", "reconciled", "admitted", "fitted", "staged", "drift", "gate", "promoted", "linked",
    "canary",
)  # fmt: skip
"""Boundaries of a night, in order (`ctxsteward.steward.night.run`)."""


@contextmanager
def night_bar(*, shown: bool) -> Iterator[Callable[[str], object]]:
    """Told each boundary as it is passed."""
    if not (shown and sys.stderr.isatty()):
        yield lambda boundary: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=table_console(stderr=True), transient=True) as bar:
        task = bar.add_task("night", total=len(STAGES))
        batches = 0

        def tell(boundary: str) -> None:
            nonlocal batches
            if boundary == "batch":
                batches += 1
                bar.update(task, description=f"night: {batches:,} batches")
            else:
                bar.update(task, description=f"night: {boundary}", advance=1)

        yield tell


WHY = "the first version, of a profile file"
SILENT = {"PREFECT_LOGGING_LEVEL": "CRITICAL", "DASK_LOGGING__DISTRIBUTED": "error"}
"""What keeps Prefect and Dask from telling a terminal about themselves; what is set already stays."""
MAX_LISTED = 200
"""Records of one list in a report."""
MAX_COMPARED = 20_000
"""With more records than that a night does not say which are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightOptions:
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
class PreparedNight:
    """A night that can begin."""

    settings: NightSettings
    place: StewardContext
    is_shipped: bool
    findings: tuple[Finding, ...] = ()
    """About the profile file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRecords:
    """Records after a night."""

    new: tuple[RecordWithSpans, ...]
    """Active ones that were not active before."""
    held: tuple[RecordWithSpans, ...]
    """That are not used, and why."""
    compared: bool
    """False: there are too many to say which are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWithSpans:
    """A record with its spans."""

    record: MetaRecommendation
    spans: tuple[tuple[str, str, str, str | None], ...]
    """Session, reference, trust and words of each; words are None where they were forgotten."""


@contextmanager
def ready(asked: NightOptions, here: ProcessEnvironment | None = None) -> Iterator[PreparedNight]:
    """Settle sources, profile and settings; a dry run on a new store has one of its own, thrown away at the end.

    `here` tells clock and machine; None: those of this process.
    """
    from ctxsteward.steward.night.environment import of_this_process

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
            place = StewardContext(
                store=store, uri=uri, tenant=asked.tenant, profile=profile, actors_path=path, here=here,
                told=thresholds(asked.file),
            )  # fmt: skip
            yield PreparedNight(
                settings=settings,
                place=place,
                is_shipped=all(map(is_shipped, settings.sources)),
                findings=findings,
            )


def run(ready: PreparedNight, tell: Tell) -> tuple[NightReport, NightRecords]:
    """Run the night; what it said, and the records behind it."""
    before = _active(ready.place, keep=not ready.settings.dry_run)
    if ready.settings.runner == "dask":
        report = _on_dask(ready.settings)
        with records_at(ready.place) as records:
            return report, _seen(records, before)
    from ctxsteward.steward.night.run import run_night
    from ctxsteward.steward.night.telemetry import tell_night
    from ctxsteward.steward.wiring import open_night

    with open_night(ready.settings, ready.place.here, tell=tell) as opening:
        report = run_night(opening.stages, opening.shell)
        tell_night(report)
        if report.outcome == "busy":
            return report, NightRecords(new=(), held=(), compared=True)
        reviews = reviews_of(ready.place, opening.ledger, report.night)
        return report, _seen(LedgerView(opening.ledger, report.night, reviews, ready.settings.admission), before)


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


def _settled(
    store: Store, asked: NightOptions, when: str, *, dry: bool
) -> tuple[str, tuple[str, ...], tuple[Finding, ...]]:
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
        return commit_shipped_profile(store, asked.tenant, when), (shipped_transcripts(),), findings
    profile = profile_of(store, asked.tenant, named)
    return profile, sources or _earlier_sources(store, asked.tenant, profile), findings


def _entered(store: Store, asked: NightOptions, profile: Profile, when: str, *, dry: bool) -> tuple[Finding, ...]:
    """Make the first version of a file, or find that it says what is in force."""
    from ctxsteward.store.profiles.proposal import bootstrap

    if dry and store.profiles(profile.name, tenant=asked.tenant).head() is None:
        raise InputError(f"a dry run commits no profile, and {profile.name!r} has no version; leave --dry-run out")
    return bootstrap(store, profile, who=author(asked.who), why=WHY, when=when, tenant=asked.tenant).findings


def _earlier_sources(store: Store, tenant: str, profile: str) -> tuple[str, ...]:
    """Those that nights have read, else the store's own sessions."""
    from ctxsteward.steward.night.history import NightChain

    newest = NightChain(store, tenant, profile).head()
    known = sorted(newest[1].marks) if newest else []
    return tuple(shipped_transcripts() if is_shipped(uri) else uri for uri in known) or ("store",)


def _settings(asked: NightOptions, uri: str, profile: str, sources: tuple[str, ...]) -> NightSettings:
    told = asked.actors or asked.file.get("actors")
    path = actors_path(told, asked.store)
    fixed: dict[str, Any] = {
        "store": uri, "journal": os.environ.get(JOURNAL_VARIABLE) or asked.file.get("journal"), "tenant": asked.tenant,
        "profile": profile, "sources": sources, "actors": None if path is None else str(path),
    }  # fmt: skip
    settings = night_settings(asked.file, {**fixed, **{k: v for k, v in asked.options.items() if v is not None}})
    if settings.actors is not None:
        from ctxsteward.steward.release.actors import Actors

        Actors.load(settings.actors)
    if settings.runner == "dask":
        if settings.dry_run:
            raise InputError("a dry run keeps everything in this process's memory; leave --runner dask out")
        need(FLOWS, "--runner dask")
    return settings


def _active(place: StewardContext, *, keep: bool) -> set[str] | None:
    """Ids of active records; None where there are too many to compare."""
    from ctxsteward.steward.night.history import NightChain

    if NightChain(place.store, place.tenant, place.profile).head() is None:
        return set()
    with records_at(place, keep=keep) as records:
        if records.ledger.size().components > MAX_COMPARED:
            return None
        return {record.id for record in records if record.status == "active"}


def _on_dask(settings: NightSettings) -> NightReport:
    """The same night as a Prefect flow, its batches tasks."""
    from ctxsteward.flows import QUIET

    for name, value in {**QUIET, **SILENT}.items():
        os.environ.setdefault(name, value)
    from ctxsteward.flows.local_server import local_api
    from ctxsteward.flows.night import NightFailed, meta_steward_nightly

    with local_api():
        try:
            return meta_steward_nightly(settings)
        except NightFailed as failed:
            return failed.report


# -- after --------------------------------------------------------------------------------------------------------


def _seen(records: LedgerView, before: set[str] | None) -> NightRecords:
    new, held = [], []
    for record in records:
        if record.status == "active":
            if before is not None and record.id not in before:
                new.append(record)
        elif record.status != "superseded":
            held.append(record)
    for found in (new, held):
        found.sort(key=lambda record: (not record.scope.is_shared, record.kind, record.text, record.id))
    return NightRecords(
        new=tuple(_listed(records, one) for one in new[:MAX_LISTED]),
        held=tuple(_listed(records, one) for one in held[:MAX_LISTED]), compared=before is not None,
    )  # fmt: skip


def _listed(records: LedgerView, record: MetaRecommendation) -> RecordWithSpans:
    spans = ((s.evidence.session, s.evidence.ref, s.evidence.trust, s.text) for s in records.spans(record))
    return RecordWithSpans(record=record, spans=tuple(spans))
