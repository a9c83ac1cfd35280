"""``ctxsteward steward run``: choose sources, profile and settings, run the night, show progress.

Without named transcripts a night reads the sources of the last night. The first night reads the store's own sessions,
or the shipped transcripts if the store holds nothing at all (`shipped_transcripts`). If stderr is a terminal, a bar
shows the stages.

Raises `InputError`, `StoreError`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ctxsteward.envelope import Profile, Store
from ctxsteward.schemas import Finding, InputError
from ctxsteward.schemas.errors import shown_uri
from ctxsteward.steward import (
    NightChain,
    NightReport,
    NightSettings,
    ProcessEnvironment,
    of_this_process,
    open_night,
    run_night,
)
from ctxsteward.steward.night.run import Tell
from ctxsteward.steward.release.actors import Actors
from ctxsteward.steward.setup import require_transcripts
from ctxsteward.store.profiles.proposal import bootstrap

from ..terminal.failures import FLOWS, S3, STEWARD, need
from ..terminal.options import read_profile, telemetry
from ..terminal.output import print_json, table_console
from ..terminal.stores import JOURNAL_VARIABLE, is_empty, open_uri, told_tenants
from .context import (
    StewardContext,
    actors_path,
    author,
    commit_shipped_profile,
    context_of,
    is_shipped,
    night_settings,
    profile_of,
    profiles_in,
    read_settings,
    shipped_transcripts,
    with_shipped,
)
from .night_report import night_document, show_night, with_changelog, with_records
from .questions import count_drafts
from .records import LedgerView, ProfileOptions, about_a_profile, records_at

STAGES = (
    "due",
    "harvested",
    "absorbed",
    "reconciled",
    "admitted",
    "fitted",
    "staged",
    "drift",
    "gate",
    "promoted",
    "linked",
    "canary",
)
"""Boundaries of a night, in order (`ctxsteward.steward.night.run`)."""


@contextmanager
def night_bar(*, shown: bool) -> Iterator[Callable[[str], object]]:
    """Show a progress bar, and yield a function to call with the name of each finished stage."""
    if not (shown and sys.stderr.isatty()):
        yield lambda boundary: None
        return

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
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
MAX_COMPARED = 20_000
"""With more records than that a night does not say which are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightOptions:
    """The options of the command line; None or empty if they are not given."""

    store: str
    tenant: str
    transcripts: tuple[str, ...] = ()
    profile_name: str | None = None
    profile: Profile | None = None
    """Profile for the first version; if there is a version, the profile must equal the one in force."""
    who: str | None = None
    """Author of that first version; None for the login name."""
    actors: str | None = None
    file: Mapping[str, Any] = field(default_factory=dict)
    """Settings from a file."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, uri: str, profile: str, sources: tuple[str, ...]) -> NightSettings:
        """Settings of the night over this store, profile and sources; raises `InputError`."""
        path = actors_path(self.actors or self.file.get("actors"), self.store)
        fixed: dict[str, Any] = {
            "store": uri,
            "journal": os.environ.get(JOURNAL_VARIABLE) or self.file.get("journal"),
            "tenant": self.tenant,
            "profile": profile,
            "sources": sources,
            "actors": None if path is None else str(path),
        }
        options = {name: value for name, value in self.options.items() if value is not None}
        settings = night_settings(with_shipped(profile, self.file), {**fixed, **options})
        if settings.actors is not None:
            Actors.load(settings.actors)
        if settings.runner == "dask":
            if settings.dry_run:
                raise InputError("a dry run keeps everything in this process's memory; leave --runner dask out")
            need(FLOWS, "--runner dask")
        return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedNight:
    """A night that can begin."""

    settings: NightSettings
    place: StewardContext
    findings: tuple[Finding, ...] = ()
    """About the profile file."""


@contextmanager
def ready(asked: NightOptions, here: ProcessEnvironment | None = None) -> Iterator[PreparedNight]:
    """Choose sources, profile and settings; a dry run without a store gets a temporary one.

    `here` has clock and machine, by default those of this process.
    """
    need(STEWARD, "steward run")
    dry = bool(asked.options.get("dry_run") or asked.file.get("dry_run"))
    scheme, _, folder = asked.store.partition(":")
    with TemporaryDirectory(prefix="ctxsteward-dry-") as spare:
        new = scheme == "file" and bool(folder) and not (Path(folder) / "objects").is_dir()
        uri = f"file:{spare}" if dry and new else asked.store
        _check_sources(asked.transcripts or asked.file.get("sources", ()))
        asked.settings(uri, "default", asked.transcripts or ("store",))  # refused before anything is written
        here = here or of_this_process()
        with open_uri(uri, asked.tenant) as store:
            store.check_keys(asked.tenant, write=False)  # also of a bucket, without which there is no night
            profile, sources, findings = _settled(store, asked, here.when, dry=dry and not new)
            settings = asked.settings(uri, profile, sources)
            path = Path(settings.actors) if settings.actors else None
            place = context_of(store, uri, asked.tenant, profile, path, asked.file, here)
            yield PreparedNight(settings=settings, place=place, findings=findings)


def run_prepared(night: PreparedNight, tell: Tell) -> NightReport:
    """Run the night; return its report, with records and changelog."""
    settings, place = night.settings, night.place
    before = _active(place, keep=not settings.dry_run)
    if settings.runner == "dask":
        from ctxsteward.flows import run_on_dask

        report = run_on_dask(settings).model_copy(update={"findings": night.findings})
        with records_at(place) as records:
            return _told(report, place, records, before)
    from ctxsteward.steward.night.telemetry import tell_night

    with open_night(settings, place.here, tell=tell) as opened:
        report = run_night(opened).model_copy(update={"findings": night.findings})
        tell_night(report)
        if report.outcome == "busy":
            return report
        return _told(report, place, LedgerView.of(place, opened.ledger, report.night, settings), before)


def _told(report: NightReport, place: StewardContext, records: LedgerView, before: set[str] | None) -> NightReport:
    """The report with records, drafts and changelog."""
    drafted = count_drafts(place, records) if before is not None else 0
    told = with_records(report, records, before).model_copy(update={"drafted": drafted})
    return with_changelog(told, place.versions)


def _check_sources(transcripts: Sequence[str]) -> None:
    """Refuse a folder that is not there or holds nothing like a transcript, before anything is written."""
    for uri in transcripts:
        if uri.startswith("s3:"):
            need(S3, f"--transcripts {shown_uri(uri)}")
        try:
            require_transcripts(uri)
        except InputError as error:
            raise InputError(f"--transcripts {shown_uri(uri)}: {error}") from error


def _settled(
    store: Store, asked: NightOptions, when: str, *, dry: bool
) -> tuple[str, tuple[str, ...], tuple[Finding, ...]]:
    """Profile and sources; of a profile that was given, or the shipped one, a first version is made."""
    is_new = is_empty(store)
    findings: tuple[Finding, ...] = ()
    sources = asked.transcripts or tuple(asked.file.get("sources", ()))
    named, given = asked.profile_name or asked.file.get("profile"), asked.profile
    if given is not None:
        if named not in (None, given.name):
            raise InputError(f"--profile-name {named}: the file's profile is {given.name!r}; leave one out")
        named = given.name
        if dry and store.profiles(named, tenant=asked.tenant).head() is None:
            raise InputError(f"a dry run commits no profile, and {named!r} has no version; leave --dry-run out")
        findings = bootstrap(store, given, who=author(asked.who), why=WHY, when=when, tenant=asked.tenant).findings
    if is_new and not sources and named is None:
        return commit_shipped_profile(store, asked.tenant, when), (shipped_transcripts(),), findings
    if not (sources or profiles_in(store, asked.tenant) or store.sessions(tenant=asked.tenant)):
        raise InputError(
            f"{store.uri}: tenant {asked.tenant!r} holds nothing to read; name transcripts with --transcripts, or "
            f"another tenant with --tenant; {told_tenants(store)}"
        )
    profile = profile_of(store, asked.tenant, named)
    if not sources:  # those that earlier nights have read, else the store's own sessions
        newest = NightChain(store, asked.tenant, profile).head()
        read = sorted(newest.marks) if newest else []
        sources = tuple(shipped_transcripts() if is_shipped(uri) else uri for uri in read) or ("store",)
    return profile, sources, findings


def _active(place: StewardContext, *, keep: bool) -> set[str] | None:
    """Ids of active records; None where there are too many to compare."""
    if place.nights.head() is None:
        return set()
    with records_at(place, keep=keep) as records:
        if records.ledger.size().components > MAX_COMPARED:
            return None
        return {record.id for record in records if record.status == "active"}


@click.command()
@click.option("--transcripts", multiple=True, metavar="PATH|URI", help="Folder, file, s3://BUCKET/PREFIX or store.")
@click.option("--since", metavar="TIME", help="Ignore transcripts that changed before this time (ISO 8601).")
@click.option("--until", metavar="TIME", help="Ignore transcripts that changed at or after this time.")
@click.option("--full", is_flag=True, default=None, help="Read every transcript again.")
@click.option("--dry-run", is_flag=True, default=None, help="Decide, but store nothing.")
@click.option("--runner", type=click.Choice(["threads", "dask"]), help="Runner of the batches; default: threads.")
@click.option("--workers", type=int, metavar="N", help="Threads, or processes of a local Dask cluster; default: 2.")
@click.option("--dask-address", metavar="ADDRESS", help="Scheduler of an existing Dask cluster.")
@click.option("--night", metavar="DATE", help="Date of the night; records age by it; default: today.")
@click.option("--canary", "canary_share", type=float, metavar="SHARE", help="Share of sessions to try it on first.")
@click.option(
    "--profile",
    type=click.Path(),
    metavar="FILE",
    help="Profile (YAML) for a first version; later it must equal the one in force (see `steward propose`).",
)
@click.option("--settings", type=click.Path(), metavar="FILE", help="Settings (YAML); default: CTXSTEWARD_SETTINGS.")
@click.option("--as", "who", metavar="NAME", help="Author of a first version; default: your login name.")
@about_a_profile()
@click.pass_context
@telemetry
def run(
    ctx: click.Context,
    /,
    transcripts: tuple[str, ...],
    profile: str | None,
    settings: str | None,
    who: str | None,
    where: ProfileOptions,
    as_json: bool,
    **options: object,
) -> None:
    """Run one night: read new transcripts, harvest, reconcile, check, commit, and report what changed and why.

    Without --transcripts it continues with the last night's source, or with the store's own closed sessions; on a
    new store it runs on shipped transcripts. Exit codes: 1 a batch failed, or nothing could be read; 3 a person
    must decide, or another night is running; 4 a canary was rolled back.
    """
    file = read_settings(settings)
    asked = NightOptions(
        store=_given(ctx, "store", file),
        tenant=_given(ctx, "tenant", file),
        transcripts=transcripts,
        profile_name=where.profile_name,
        profile=read_profile(profile),
        who=who,
        actors=where.actors,
        file=file,
        options=options,
    )
    with ready(asked) as night:
        with night_bar(shown=not as_json) as tell:
            report = run_prepared(night, tell)
        if as_json:
            print_json(night_document(report))
        else:
            shipped = all(map(is_shipped, night.settings.sources))
            show_night(table_console(), report, is_shipped=shipped)
    ctx.exit(report.exit_code)


def _given(ctx: click.Context, name: str, file: Mapping[str, Any]) -> str:
    """Return an option if it was given, else the file's value, else the default."""
    given = ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    return str(ctx.params[name] if given else file.get(name, ctx.params[name]))
