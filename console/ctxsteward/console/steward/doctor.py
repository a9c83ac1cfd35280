"""``ctxsteward steward doctor``: check everything that a night needs, and say what to do about faults.

    ok     fine
    note   worth knowing; nights run
    wrong  nights do not run, or do not do what they should

A check is left out if it needs an earlier one that failed. The only change is that the ledger on this machine catches
up with the store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date
from typing import Literal, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import click
from rich.console import Console

from ctxsteward.schemas import ContextError
from ctxsteward.schemas.errors import without_secrets
from ctxsteward.steward import environment_keys
from ctxsteward.steward.night.environment import KEY_VARIABLE
from ctxsteward.steward.release.actors import Actors, statements
from ctxsteward.steward.release.assignment import running
from ctxsteward.store.profiles.people import PeopleRegister
from ctxsteward.store.profiles.versions import WriterLease

from ..terminal.failures import FLOWS, FOUND, S3, STEWARD, failure_line, installed, missing
from ..terminal.output import print_json, progress, table_console
from ..terminal.tables import grid, shown
from .context import SETTINGS_VARIABLE, StewardContext, actors_path, read_settings
from .records import ProfileOptions, about_a_profile, records_at

State = Literal["ok", "note", "wrong"]
REVIEWERS_FOR_BLOCK = 2
LATE_DAYS = 2
PREFECT_VARIABLE = "PREFECT_API_URL"
PREFECT_SECONDS = 3.0


class DoctorCheck(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: State
    found: str
    do: str = ""


def checked(where: ProfileOptions, settings: str | None, tell: Callable[[str], object]) -> list[DoctorCheck]:
    """All checks, in order; none shows the password of a URI."""
    checks = [*_packages(where.store), *_keys(), *_prefect(), *_settings(settings)]
    tell("configuration")
    checks += _people(where.actors, where.store)
    with ExitStack() as stack:
        try:
            place = stack.enter_context(where.open())
        except (ContextError, OSError) as error:
            checks.append(DoctorCheck("store", "wrong", _text_of(error), "correct it; the rest was not looked at"))
        else:
            for name, check in STORE_CHECKS.items():
                tell(name)
                try:
                    checks += list(check(place))  # all of a check, or that it failed
                except (ContextError, OSError) as error:
                    checks.append(DoctorCheck(name, "wrong", _text_of(error), FSCK))
    return [check._replace(found=without_secrets(check.found), do=without_secrets(check.do)) for check in checks]


def show(console: Console, checks: Sequence[DoctorCheck]) -> None:
    styles = {"ok": "green", "note": "yellow", "wrong": "red"}
    rows = (
        (check.name, shown(check.state, styles[check.state]), "\n".join(filter(None, (check.found, check.do))))
        for check in checks
    )
    console.print(grid("check", "", "found", rows=rows))
    wrong, notes = (sum(check.state == state for check in checks) for state in ("wrong", "note"))
    worth = f", {notes} worth a look" if notes else ""
    console.print(f"{len(checks)} checks: {wrong or 'none'} wrong{worth}")


# -- configuration ------------------------------------------------------------------------------------------------


def _packages(store: str) -> Iterator[DoctorCheck]:
    for extra, packages, state in (("steward", STEWARD, "wrong"), ("flows", FLOWS, "note"), ("s3", S3, "note")):
        gone = missing(packages)
        needed: State = "wrong" if extra == "s3" and store.startswith("s3:") else state  # type: ignore[assignment]
        if gone:
            uses = "; ".join(f"{one.distribution}: {one.use}" for one in gone)
            yield DoctorCheck(f"extra {extra}", needed, f"missing {uses}", f"pip install 'ctxsteward[{extra}]'")
        else:
            versions = (f"{one.distribution} {installed(one) or ''}".strip() for one in packages)
            yield DoctorCheck(f"extra {extra}", "ok", ", ".join(versions))


def _keys() -> Iterator[DoctorCheck]:
    try:
        keys = environment_keys()
    except ContextError as error:
        yield DoctorCheck("keys", "wrong", str(error))
        return
    origin = f"derived from {KEY_VARIABLE}" if keys is not None else "files beside the store or its journal"
    yield DoctorCheck("keys", "ok", origin)


def _prefect() -> Iterator[DoctorCheck]:
    if missing(FLOWS[:1]):
        return
    url = os.environ.get(PREFECT_VARIABLE)
    if not url:
        do = "set it for nights on a schedule, or use cron: see the guide"
        yield DoctorCheck("prefect", "note", f"{PREFECT_VARIABLE} is not set", do)
        return
    if not url.startswith(("http://", "https://")):
        yield DoctorCheck(
            "prefect", "wrong", f"{PREFECT_VARIABLE} is {without_secrets(url)!r:.80}", "write http://HOST:PORT/api"
        )
        return
    try:
        with urlopen(f"{url.rstrip('/')}/health", timeout=PREFECT_SECONDS) as answer:
            fine = answer.status == 200
    except (URLError, OSError, ValueError) as error:
        yield DoctorCheck(
            "prefect", "wrong", f"{url} does not answer: {error}", "`prefect server start`, or correct it"
        )
        return
    yield DoctorCheck("prefect", "ok" if fine else "wrong", f"{url} answers")


def _settings(path: str | None) -> Iterator[DoctorCheck]:
    path = path or os.environ.get(SETTINGS_VARIABLE) or None
    if path is None:
        return
    try:
        names = read_settings(path)
    except ContextError as error:
        yield DoctorCheck("settings", "wrong", str(error))
        return
    yield DoctorCheck("settings", "ok", f"{path}: {', '.join(names)}")


def _people(actors: str | None, store: str) -> Iterator[DoctorCheck]:
    path = actors_path(actors, store)
    if path is None:
        add = "`ctxsteward steward actors --add NAME --role reviewer`"
        yield DoctorCheck("people", "note", "nobody is configured; what needs people waits", add)
        return
    try:
        people = Actors.load(path).actors.values()
    except ContextError as error:
        yield DoctorCheck("people", "wrong", str(error))
        return
    reviewers, operators = (sum(role in actor.roles for actor in people) for role in ("reviewer", "operator"))
    roles = f"{reviewers} reviewers, {operators} operators in {path}"
    if reviewers < REVIEWERS_FOR_BLOCK or not operators:
        do = "a BLOCK or a locked entry needs two reviewers; promoting an operator"
        yield DoctorCheck("people", "note", roles, do)
    else:
        yield DoctorCheck("people", "ok", roles)


# -- the store ----------------------------------------------------------------------------------------------------


def _profile(place: StewardContext) -> Iterator[DoctorCheck]:
    number = 0
    for version in place.versions.told():
        number = version.version
    head = place.versions.newest()
    yield DoctorCheck("store", "ok", place.store.uri)
    yield DoctorCheck("profile", "ok", f"{place.profile}: {number} versions, {len(head.profile.meta)} records in force")


def _approvals(place: StewardContext) -> Iterator[DoctorCheck]:
    """Check that people signed the versions, and that the file of actors matches the store."""
    forged = {number: check.problems[0] for number, check in place.versions.approval_checks() if check.problems}
    if forged:
        some = "; ".join(f"version {number}: {why}" for number, why in list(forged.items())[:3])
        do = "roll back to a version before it (`ctxsteward steward rollback`), and find out who wrote it"
        yield DoctorCheck("approvals", "wrong", f"{len(forged)} versions that people have not agreed to: {some}", do)
    else:
        yield DoctorCheck("approvals", "ok", "every version that people must agree to has their signatures")
    enrolled = PeopleRegister(place.store, place.profile, place.tenant).read()
    if not enrolled.is_founded:
        return
    unknown = [name for name in place.actors.actors if not place.approvals.is_enrolled(name)]
    waiting = {one.who for one in statements(place.actors) if enrolled.obstacle(one) is None}
    stray = sorted(set(unknown) - waiting)
    if stray:
        do = "have a reviewer add them (`ctxsteward steward actors --add NAME --as REVIEWER`), or take the lines out"
        text = f"no reviewer vouches for what the file of actors says of {', '.join(stray)}; it has no effect"
        yield DoctorCheck("enrolment", "wrong", text, do)


def _lease(place: StewardContext) -> Iterator[DoctorCheck]:
    lease = WriterLease(place.store, place.profile, place.tenant, owner="doctor", clock=place.here.clock)
    holder = lease.holder()
    if holder is None:
        yield DoctorCheck("lease", "ok", "free")
    elif place.here.abandoned(holder.owner):
        yield DoctorCheck(
            "lease", "note", f"{holder.owner} has ended without giving it back", "the next night takes it"
        )
    elif holder.expires_seconds <= place.here.clock():
        yield DoctorCheck("lease", "note", f"{holder.owner} is late", "the next night takes it")
    else:
        yield DoctorCheck("lease", "ok", f"a night is under way: {holder.owner}")


def _nights(place: StewardContext) -> Iterator[DoctorCheck]:
    newest = place.nights.head()
    if newest is None:
        yield DoctorCheck("nights", "note", "none yet", "`ctxsteward steward run`")
        return
    days = (date.fromisoformat(place.here.today) - date.fromisoformat(newest.night)).days
    text = f"{newest.number} nights, the last of {newest.night}: {newest.outcome}"
    late = days > LATE_DAYS
    yield DoctorCheck(
        "nights", "note" if late else "ok", text, f"{days} days ago; is the schedule running?" if late else ""
    )
    refused = sum(newest.quarantined.values())
    if refused:
        yield DoctorCheck("quarantine", "note", f"{refused} transcripts last night", "`ctxsteward steward quarantine`")


def _waiting(place: StewardContext) -> Iterator[DoctorCheck]:
    waits = place.pending()
    if waits:
        yield DoctorCheck("waiting", "note", f"{len(waits)} requests wait for people", "`ctxsteward steward review`")
    canary = running(place.store, place.versions.newest(), profile=place.profile, tenant=place.tenant)
    if canary:
        yield DoctorCheck("canary", "note", f"version {place.head} for {canary['share']:.0%} of sessions")


def _ledger(place: StewardContext) -> Iterator[DoctorCheck]:
    if missing(STEWARD):
        return
    newest = place.nights.head()
    with records_at(place) as records:
        size, digest = records.ledger.size(), records.ledger.digest()
        counts = f"{size.artifacts:,} artifacts, {size.observations:,} observations, {size.components:,} claims"
        if newest is not None and newest.ledger != digest:
            do = "something was erased since, or artifacts are missing; the next night settles it, fsck tells"
            yield DoctorCheck("ledger", "note", f"{counts}; not what the last night left", do)
        else:
            yield DoctorCheck("ledger", "ok", counts)
        active = [record for record in records if record.status == "active"]
        broken = {record.id for record in active if records.ledger.broken(record.evidence)}
        spans = sum(len(record.evidence) for record in active)
        if broken:
            some = ", ".join(sorted(broken)[:3])
            do = "`ctxsteward steward why ID`; then `store fsck --read-data`"
            yield DoctorCheck(
                "spans", "wrong", f"{len(broken)} of {len(active)} active records do not verify: {some}", do
            )
        else:
            yield DoctorCheck("spans", "ok", f"all {spans:,} spans of {len(active):,} active records verify")


FSCK = "run `ctxsteward store fsck --read-data`"
STORE_CHECKS: dict[str, Callable[[StewardContext], Iterator[DoctorCheck]]] = {
    "profile": _profile,
    "approvals": _approvals,
    "lease": _lease,
    "nights": _nights,
    "waiting": _waiting,
    "ledger": _ledger,
}


def _text_of(error: Exception) -> str:
    return (failure_line(error) or str(error)).removeprefix("ctxsteward: ")


@click.command()
@click.option("--settings", type=click.Path(), metavar="FILE", help="Also check these night settings (YAML).")
@about_a_profile()
@click.pass_context
def doctor(ctx: click.Context, settings: str | None, where: ProfileOptions, as_json: bool) -> None:
    """Check everything that a night needs, and print a remedy for each problem.

    Exit code 1: there is a problem.
    """
    with progress("checking", shown=not as_json) as tell:
        checks = checked(where, settings, tell)
    if as_json:
        print_json([check._asdict() for check in checks])
    else:
        show(table_console(), checks)
    if any(check.state == "wrong" for check in checks):
        ctx.exit(FOUND)
