"""``ctxsteward steward quarantine`` and ``forget``: list what nights set aside for people, and erase transcripts.

Nights set aside transcripts that they refuse, records that the schema refuses, and records that contradict a rule in
force.

A batch keeps only a reason and an address. To find the name of a transcript, its source is listed again; to explain
the fault, the transcript is read again, in a process of its own under the limits of a night. The explanation may
quote a few redacted characters.

`forget` is for transcripts outside the store. It destroys the keys of their harvest artifacts, and removes their
observations from the ledger for good. Records that are no longer active without them are erased from every version, and
so are facts that rest on them. `ctxsteward store forget` does the same for the store's own sessions. The transcript
itself is not deleted. Raises `InputError` if nothing was harvested from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import click
from rich.console import Console

from ctxsteward.schemas import InputError
from ctxsteward.steward.erasure import StewardRecords
from ctxsteward.steward.harvest.batches import BatchRecords
from ctxsteward.steward.ingest.items import LoadedItem, QuarantinedItem, SkippedItem, SourceItem
from ctxsteward.steward.ingest.pipeline import IngestSettings, ingest, load
from ctxsteward.steward.ingest.sources import TranscriptSource, open_source
from ctxsteward.steward.ingest.worker_pool import ItemLimits, WorkerPool
from ctxsteward.store.facts.fact_store import withdraw_facts
from ctxsteward.store.journal.erasures import ErasureRequest

from ..terminal.failures import FOUND, STEWARD, need, one_line
from ..terminal.output import print_json, print_result, progress
from ..terminal.tables import say
from .context import StewardContext, source_name
from .records import ProfileOptions, about_a_profile, against_rule, reason_text, records_at, rule_text

READS, GONE, SKIPPED, NOT_READ = "reads", "gone", "left out", "not read again"
"""The present state of a refused transcript."""
LIMIT_SECONDS, LIMIT_BYTES = 30.0, 1 << 30
DO: Mapping[str, str] = {
    "too_large": "split it",
    "unreadable": "put the file itself there, readable",
    "invalid": "correct it, or take it out of the source",
    "bad_metadata": "correct its metadata",
    "orphan_metadata": "name it after its transcript, or take it out",
    "time_limit": "split it, or raise limit_seconds",
    "cpu_limit": "split it, or raise limit_seconds",
    "memory_limit": "split it, or raise limit_bytes",
    "worker_died": "try it alone; then report it",
    "failed": "report it: a reader or harvester failed",
}
READ_AGAIN = "it is harvested once it changes, or by `steward run --full`"


def document(place: StewardContext, limit: int, tell: Callable[[str], object]) -> dict[str, Any]:
    """Everything in quarantine as JSON; at most `limit` transcripts are read again."""
    need(STEWARD, "quarantine")
    newest = place.nights.head()
    sources: dict[str, TranscriptSource] = {}
    with ExitStack() as stack:
        for uri in sorted(newest.marks) if newest else ():  # sources that nights have read
            sources[uri] = open_source(
                uri, store=place.store, tenant=place.tenant, profile=place.profile, now_seconds=place.here.clock()
            )
            stack.callback(sources[uri].close)
        transcripts = list(_transcripts(_refused(place, sources), sources, limit, tell))
    with records_at(place) as records:
        flawed = [{"id": id, "flaw": flaw} for id, flaw in records.ledger.flawed().items()]
        aside = [
            {
                "id": record.id,
                "text": record.text,
                "against": against_rule(place, record),
                "why": reason_text(record),
            }
            for record in records
            if record.status == "quarantined"
        ]
    standing = sum(row["now"] not in (READS, GONE, SKIPPED) for row in transcripts)
    return {"transcripts": transcripts, "standing": standing, "records": flawed, "set_aside": aside}


def show(console: Console, document: Mapping[str, Any]) -> None:
    if not any(document[what] for what in ("transcripts", "records", "set_aside")):
        console.print("nothing is in quarantine")
        return
    for row in document["transcripts"]:
        where = "a transcript that is listed no more"
        if row["name"]:
            where = f"{row['name']} in {source_name(row['source'])}"
        say(console, f"{where}: {row['reason'].replace('_', ' ')}", "bold")
        detail = row["detail"] or row["now"]
        say(console, f"  {detail}; {row['do']}" if row["do"] else f"  {detail}")
    for row in document["records"]:
        say(console, f"record {row['id']}: {row['flaw']}")
    for row in document["set_aside"]:
        about = f"record {row['id']}: {row['text']}"
        say(console, about, "bold")
        detail = rule_text(row["against"]) if row["against"] else row["why"]
        say(console, f"  {detail}")


def refusals(settings: IngestSettings, loaded: LoadedItem) -> tuple[QuarantinedItem, ...]:
    """Return the faults of an item."""
    return tuple(outcome for outcome in ingest(loaded, settings) if isinstance(outcome, QuarantinedItem))


def _refused(place: StewardContext, sources: Mapping[str, TranscriptSource]) -> list[tuple[SourceItem | None, str]]:
    """Items that some batch refused, with the reason; None for an item that no source lists any more."""
    batches = BatchRecords(place.store, place.tenant, place.profile, extractor="")
    reasons = {one.item: one.reason for batch in batches.every() for one in batch.quarantined}
    if not reasons:
        return []
    named: dict[str, SourceItem] = {}
    for uri, source in sources.items():
        try:
            items = (item._replace(source=uri) for item in source.items())
            named |= {batches.address(item): item for item in items}
        except InputError:
            continue  # the source itself is gone
    refusals_by_item = [(named.get(address), reason) for address, reason in reasons.items()]
    return sorted(refusals_by_item, key=lambda one: (one[0] is None, one[0] or (), one[1]))


def _transcripts(
    refused: Sequence[tuple[SourceItem | None, str]],
    sources: Mapping[str, TranscriptSource],
    limit: int,
    tell: Callable[[str], object],
) -> Iterator[dict[str, Any]]:
    """Yield each refused transcript with its present fault and advice."""
    limits = ItemLimits(wall_seconds=LIMIT_SECONDS, cpu_seconds=LIMIT_SECONDS, memory_bytes=LIMIT_BYTES)
    with WorkerPool[tuple[QuarantinedItem, ...]](partial(refusals, IngestSettings()), 1, limits) as workers:
        for at, (item, reason) in enumerate(refused):
            detail: str | None = None
            if item is None:
                now = GONE
            elif at >= limit:
                now = NOT_READ
            else:
                tell(item.name)
                loaded = load(sources[item.source], item.name, item.version)
                if isinstance(loaded, SkippedItem):
                    now, detail = SKIPPED, loaded.reason
                else:
                    bad = [loaded] if isinstance(loaded, QuarantinedItem) else []
                    for _, result in workers.run([loaded]) if isinstance(loaded, LoadedItem) else ():
                        bad += [result] if isinstance(result, QuarantinedItem) else result
                    now, detail = bad[0].reason if bad else READS, "; ".join(one.detail for one in bad[:3]) or None
            yield {
                "source": item.source if item else None,
                "name": item.name if item else None,
                "reason": reason,
                "now": now,
                "detail": detail,
                "do": READ_AGAIN if now == READS else DO.get(now, ""),
            }


@click.command()
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Most transcripts to read again.")
@about_a_profile(people=False)
@click.pass_context
def quarantine(ctx: click.Context, limit: int, where: ProfileOptions, as_json: bool) -> None:
    """List the transcripts in quarantine, read each again, and say what is wrong with it.

    A transcript that is readable now is harvested by the next night after it changes, or by `run --full`. Exit code
    1: transcripts are still in quarantine.
    """
    with where.open() as place, progress("reading again", shown=not as_json) as tell:
        found = document(place, limit, tell)
    print_result(found, show, as_json=as_json)
    if found["standing"] or found["records"] or found["set_aside"]:
        ctx.exit(FOUND)


@click.command()
@click.option("--session", metavar="ID", help="Session to erase.")
@click.option("--principal", metavar="NAME", help="Person whose text to erase, in all sessions (or in --session).")
@click.option("--who", required=True, metavar="NAME", help="Who requests the erasure; stored unencrypted.")
@click.option("--why", required=True, metavar="TEXT", help="Reason, such as a request number; stored unencrypted.")
@about_a_profile(people=False)
def forget(
    session: str | None, principal: str | None, who: str, why: str, where: ProfileOptions, as_json: bool
) -> None:
    """Erase what was harvested from transcripts outside the store, permanently and in every version.

    For the store's own sessions use `ctxsteward store forget`. The next night also forgets each transcript that is
    marked as deleted at its source.
    """
    if session is None and principal is None:
        raise click.UsageError("say whom: --session, --principal, or both")
    with where.open() as place:
        done = forget_harvested(place, session, principal, who, why)
    print_json(done) if as_json else click.echo(one_line(erasure_text(done)))


def forget_harvested(
    place: StewardContext, session: str | None, principal: str | None, who: str, why: str
) -> dict[str, Any]:
    """Erase what was harvested from the transcripts, and count it."""
    request = ErasureRequest(who, place.here.when, why)
    with records_at(place) as records:
        ids_before = set(records.by_id)
        observations = records.ledger.withdraw(session=session, principal=principal, told=request)
        still_active = {record.id for record in records if record.status == "active"}
    if not observations:
        raise InputError(f"{_whom(session, principal)}: nothing was harvested from them; nothing was forgotten")
    erased = place.versions.erase(lambda record: record.id in ids_before - still_active, **request._asdict())
    erased += StewardRecords(place.store, place.tenant).withdraw(request)
    facts = withdraw_facts(place.store, place.tenant, **request._asdict())
    return {
        "session": session,
        "principal": principal,
        "observations": observations,
        "records": erased,
        "facts": facts,
        "who": who,
        "when": request.when,
        "why": why,
    }


def erasure_text(done: dict[str, Any]) -> str:
    """Return a line about what was erased."""
    counts = ", ".join(f"{done[name]:,} {name}" for name in ("observations", "records", "facts"))
    return f"forgot {_whom(done['session'], done['principal'])}: {counts}; delete the transcripts where they lie, too"


def _whom(session: str | None, principal: str | None) -> str:
    names = [f"principal {principal}" if principal is not None else "", f"session {session}" if session else ""]
    return " in ".join(part for part in names if part)
