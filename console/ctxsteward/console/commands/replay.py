"""``ctxsteward replay``: one build for each model call of a transcript, or a past envelope rebuilt."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import click

from ..failures import FOUND
from ..options import building, common, provider, read_builder, read_profile, read_provider, telemetry
from ..output import note, print_document, print_json, progress, table_console, unicode_console

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxsteward.envelope import EnvelopeBuilder, Profile, Store
    from ctxsteward.envelope.transcripts import Transcript

    from ..replay import ReplayCall, ReplayTotals


@click.command(short_help="Build once for every model call, or rebuild a past envelope.")
@click.argument("transcript", type=click.Path(allow_dash=True), required=False)
@click.option("--from", "address", metavar="ADDRESS", help="Rebuild this envelope and check that it is the same.")
@building
@click.option("--run", type=int, metavar="N", help="Only this transcript of the file, from 0; default: all.")
@provider
@telemetry
@common
def replay(
    transcript: str | None,
    address: str | None,
    profile: str | None,
    budgets: tuple[str, ...],
    model: str,
    format: str,
    run: int | None,
    provider: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Build just before each assistant message of TRANSCRIPT (- for stdin): the call that it came from.

    Each transcript is replayed into a session named after it. A session of that name that holds messages
    already is left alone: the replay takes NAME@2, then NAME@3 and so on.

    With --from, rebuild a past envelope out of its session's log, running no summarizer; exit 1 if its
    address differs.
    """
    if (transcript is None) == (address is None):
        raise click.UsageError("give either TRANSCRIPT or --from ADDRESS")
    if address is not None:
        if profile or budgets or run is not None:
            raise click.UsageError("--from takes its profile and budgets from the envelope; leave them out")
        _rebuild(address, provider, as_json, store, tenant)
    elif transcript is not None:
        if provider is not None:
            raise click.UsageError("--provider goes with --from, which rebuilds one envelope")
        job = _Job(read_builder(model, budgets), read_profile(profile), transcript, format, run, tenant)
        _replay(job, store, as_json)


class _Job(NamedTuple):
    builder: EnvelopeBuilder
    profile: Profile | None
    path: str
    format: str
    run: int | None
    tenant: str

    def transcripts(self) -> Iterator[Transcript]:
        from ..transcripts import choose_transcript, read_file

        if self.run is None:
            yield from read_file(self.path, self.format)
        else:
            yield choose_transcript(self.path, self.format, self.run).transcript


def _replay(job: _Job, store: str, as_json: bool) -> None:
    from ..replay import ReplayTotals
    from ..stores import open_uri

    tally = ReplayTotals.for_builder(job.builder)
    calls: list[ReplayCall] = []
    transcripts = job.transcripts()
    first = next(transcripts)  # a file that is none leaves no store behind
    with open_uri(store) as opened, progress("replaying", shown=not as_json) as tell:
        for call in _calls(job, chain([first], transcripts), opened, tally):
            tell(f"{call.transcript}, call {call.call}")
            if as_json:
                print_json(call.model_dump(mode="json"))
            elif tally.transcripts == 1:
                calls.append(call)
    if not as_json:
        _print_tables(job, tally, calls if tally.transcripts == 1 else [])


def _calls(job: _Job, transcripts: Iterable[Transcript], store: Store, tally: ReplayTotals) -> Iterator[ReplayCall]:
    from ..replay import replay_calls
    from ..transcripts import open_session, unused_id

    for transcript in transcripts:
        tally.transcripts += 1
        tally.formats[transcript.format] += 1
        id = unused_id(store, transcript.session, job.tenant)
        session = open_session(
            store, transcript, id, tenant=job.tenant, profile=job.profile, counter=job.builder.counter
        )
        tally.notice(id, transcript.findings)
        for replayed in replay_calls(job.builder, session, transcript):
            tally.add(replayed)
            yield replayed.call


def _print_tables(job: _Job, tally: ReplayTotals, calls: Iterable[ReplayCall]) -> None:
    from .. import tables

    console = table_console()
    console.print(tables.tally_table(tally))
    console.print(tables.costs_table(tally))
    rows = list(calls)
    if rows:
        budget = job.builder.budgets.dynamic_tokens
        values = [call.tokens_by_section["dynamic"] for call in rows]
        blocks = tables.BLOCKS if unicode_console(console) else tables.ASCII_BLOCKS
        console.print(f"dynamic tokens by call, {min(values):,} to {max(values):,} of {budget:,}; ^ compacted")
        console.print(tables.sparkline(values, [call.compacted for call in rows], console.width - 2, blocks=blocks))
        console.print(f"session {rows[-1].transcript}", soft_wrap=True)
        console.print(f"last envelope {rows[-1].envelope}", soft_wrap=True)


def _rebuild(address: str, provider: str | None, as_json: bool, store: str, tenant: str) -> None:
    from ctxsteward.envelope import rebuild
    from ctxsteward.schemas import InputError, ReferenceNotFound

    from ..stores import envelope_address, open_stored

    read_provider(provider)
    with open_stored(store) as opened:
        address = envelope_address(opened, "--from", address, tenant)
        try:
            envelope = rebuild(opened, address, tenant=tenant)
        except ReferenceNotFound:
            raise InputError(
                f"--from {address}: no such envelope of tenant {tenant!r} in {store}; take one from a build"
            ) from None
        if provider is None:
            print_document("envelope", envelope.document(), indent=None if as_json else 2)
        else:
            print_json(envelope.render(provider), indent=None if as_json else 2)  # type: ignore[arg-type]
    if envelope.address != address:
        note(
            f"--from {address}: rebuilt as {envelope.address}; "
            "the log or the key is not what it was: restore the store from a backup"
        )
        raise click.exceptions.Exit(FOUND)
