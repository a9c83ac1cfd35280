"""``ctxsteward replay`` builds once for each model call of a transcript, or rebuilds a past envelope. ``build`` builds
the envelope for the next call.

``demo`` uses this module, too. A `ReplayCall` is one line of ``replay --json``. `ReplayTotals` adds calls up, and adds
up the cost of sending the whole history under the same head. The builder's tokenizer counts tokens; `_ms` are
milliseconds of wall time.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import click
from pydantic import BaseModel, ConfigDict
from rich.table import Table

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Prices, Profile, Session, rebuild
from ctxsteward.envelope.telemetry.spans import prefix_tokens
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.evals.replay import replay as model_calls
from ctxsteward.schemas import Finding, InputError, ReferenceNotFound

from ..terminal import tables
from ..terminal.failures import FOUND
from ..terminal.options import building, common, provider, read_builder, read_profile, read_provider, telemetry
from ..terminal.output import note, print_document, print_json, progress, table_console, unicode_console
from ..terminal.stores import envelope_address, open_stored, open_uri
from ..terminal.tables import say
from ..terminal.transcripts import append_missing, choose_transcript, open_session, read_file, unused_id


class ReplayCall(BaseModel):
    """Figures of the prompt of one model call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    transcript: str
    """Id of the session into which the transcript was replayed."""
    call: int
    """Number of the call in the transcript, from 1."""
    turn: int
    """User turns so far."""
    prompt_tokens: int
    prefix_tokens: int
    """Tokens at the beginning of the prompt that the previous call had and wrote to the provider's cache."""
    tokens_by_section: dict[str, int]
    overflow_tokens: int
    compacted: bool
    report_ids: tuple[str, ...]
    build_ms: float
    selection_ms: float
    findings: tuple[Finding, ...]
    envelope: str
    """Address of the envelope."""


class ReplayStep(NamedTuple):
    """A call, its envelope, and the prompt tokens of sending the whole history instead."""

    call: ReplayCall
    envelope: Envelope
    full_tokens: int
    """Tokens of the same head and every message so far, whole."""
    full_prefix_tokens: int
    unwritten_tokens: int = 0
    """Tokens at the end of the prompt that are not written to the provider's cache."""


def replay_calls(builder: EnvelopeBuilder, session: Session, transcript: Transcript) -> Iterator[ReplayStep]:
    """Append the transcript to an empty session, and yield a build just before each assistant message."""
    before: Envelope | None = None
    history_tokens = full_before = counted = 0
    for call in model_calls(transcript, builder, session):
        envelope = call.envelope
        history_tokens += sum(entry.tokens(builder.counter) for entry in session.entries(counted + 1))
        counted = len(session)
        prefix = prefix_tokens(before, envelope, builder.counter.text)
        if before is not None:
            prefix = min(prefix, before.tokens - before.unwritten_tokens)
        full = envelope.tokens - envelope.section("dynamic").tokens + history_tokens
        tokens = {name: section.tokens for name, section in envelope.sections.items()}
        numbers = ReplayCall(
            transcript=session.id,
            call=call.number,
            turn=session.state.turns,
            prompt_tokens=envelope.tokens,
            prefix_tokens=prefix,
            tokens_by_section={**tokens, "tools": envelope.head.tools_tokens},
            overflow_tokens=sum(section.overflow_tokens for section in envelope.sections.values()),
            compacted=bool(envelope.reports),
            report_ids=tuple(report.id for report in envelope.reports),
            build_ms=envelope.build_ms,
            selection_ms=envelope.selection_ms,
            findings=envelope.findings,
            envelope=envelope.address,
        )
        yield ReplayStep(numbers, envelope, full, full_before, envelope.unwritten_tokens)
        before, full_before = envelope, full


@dataclass(slots=True)
class ReplayTotals:
    """Totals over calls."""

    prices: Prices = field(default_factory=Prices)
    transcripts: int = 0
    formats: Count[str] = field(default_factory=Count)
    calls: int = 0
    sent_tokens: int = 0
    full_tokens: int = 0
    sent_priced: float = 0.0
    """Cost at these prices, in tokens at full price."""
    full_priced: float = 0.0
    compactions: int = 0
    over_budget_calls: int = 0
    findings: Count[str] = field(default_factory=Count)
    """Number of findings by kind; a finding that calls of one transcript repeat counts once."""
    build_ms: list[float] = field(default_factory=list)
    _noticed: set[tuple[str, str, str | None, str | None]] = field(default_factory=set)

    @classmethod
    def for_builder(cls, builder: EnvelopeBuilder) -> ReplayTotals:
        """Return empty totals at the prices of the builder's model."""
        return cls(builder.prices or Prices())

    def add(self, replayed: ReplayStep) -> None:
        """Count one call."""
        call, prices = replayed.call, self.prices
        self.calls += 1
        self.sent_tokens += call.prompt_tokens
        self.full_tokens += replayed.full_tokens
        self.sent_priced += prices.of(call.prompt_tokens, call.prefix_tokens, replayed.unwritten_tokens)
        self.full_priced += prices.of(replayed.full_tokens, replayed.full_prefix_tokens)
        self.compactions += len(call.report_ids)
        self.over_budget_calls += call.overflow_tokens > 0
        self.build_ms.append(call.build_ms)
        self.notice(call.transcript, call.findings)

    def notice(self, transcript: str, findings: tuple[Finding, ...]) -> None:
        """Count the findings that this transcript has not had before."""
        for finding in findings:
            key = (transcript, finding.kind, finding.ref, finding.field)
            if key not in self._noticed:
                self._noticed.add(key)
                self.findings[finding.kind] += 1

    def build_ms_at(self, fraction: float) -> float:
        """Return the quantile `fraction` of the build times, in milliseconds; 0 without calls."""
        ranked = sorted(self.build_ms)
        return ranked[min(len(ranked) - 1, int(len(ranked) * fraction))] if ranked else 0.0


def costs_table(tally: ReplayTotals) -> Table:
    """Return a table of prompt tokens, sent and of the whole history, as counted and with the cached prefix at 0.1."""
    rows = (
        (name, f"{full:,.0f}", f"{sent:,.0f}", tables.change(sent, full))
        for name, full, sent in (
            ("as counted", tally.full_tokens, tally.sent_tokens),
            (f"cached prefix at {tally.prices.cached:g}", tally.full_priced, tally.sent_priced),
        )
    )
    numbers = ("whole history", "sent", "change")
    table = tables.grid("prompt tokens", *numbers, rows=rows, numbers=numbers)
    table.caption = (
        f"same head in both; cached from {tally.prices.block_tokens:,} tokens, written at {tally.prices.write:g}"
    )
    table.caption_justify = "left"
    return table


def tally_rows(tally: ReplayTotals) -> list[tuple[str, str]]:
    """Return a replay's totals as names and texts."""
    return [
        ("transcripts", f"{tally.transcripts:,}"),
        ("format", ", ".join(tally.formats)),
        ("model calls", f"{tally.calls:,}"),
        ("compactions", f"{tally.compactions:,}"),
        ("calls over budget", f"{tally.over_budget_calls:,}"),
        ("build p50 / p95", f"{tally.build_ms_at(0.5):.2f} / {tally.build_ms_at(0.95):.2f} ms"),
        ("findings", ", ".join(f"{count} {kind}" for kind, count in tally.findings.most_common()) or "none"),
    ]


@click.command()
@click.argument("transcript", type=click.Path(allow_dash=True), required=False)
@click.option("--from", "address", metavar="ADDRESS", help="Rebuild this envelope and check that it is the same.")
@building
@click.option("--run", type=int, metavar="N", help="Number of the only transcript to replay, from 0; default: all.")
@provider
@telemetry
@common
def replay(
    transcript: str | None,
    address: str | None,
    profile: str | None,
    budgets: tuple[str, ...],
    policy: str | None,
    selector: str | None,
    summarizer: str | None,
    model: str,
    format: str,
    run: int | None,
    provider: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Replay TRANSCRIPT (- for stdin), and build the envelope of each call just before its assistant message.

    Each transcript is replayed into a session named after it. If that session has messages already, the replay uses
    NAME@2, then NAME@3, and so on.

    With --from, rebuild an old envelope from its session's log without a summarizer; exit code 1: its address
    differs.
    """
    if (transcript is None) == (address is None):
        raise click.UsageError("give either TRANSCRIPT or --from ADDRESS")
    if address is not None:
        if profile or budgets or policy or selector or summarizer or run is not None:
            raise click.UsageError("--from takes its profile and budgets from the envelope; leave them out")
        _rebuild(address, provider, as_json, store, tenant)
    elif transcript is not None:
        if provider is not None:
            raise click.UsageError("--provider goes with --from, which rebuilds one envelope")
        builder, governed = read_builder(model, budgets, policy, selector, summarizer), read_profile(profile)
        if run is None:
            transcripts = read_file(transcript, format)
        else:
            transcripts = iter([choose_transcript(transcript, format, run)[0]])
        _replay(builder, governed, transcripts, store, tenant, as_json)


def _replay(
    builder: EnvelopeBuilder,
    profile: Profile | None,
    transcripts: Iterator[Transcript],
    store: str,
    tenant: str,
    as_json: bool,
) -> None:
    tally = ReplayTotals.for_builder(builder)
    calls: list[ReplayCall] = []
    first = next(transcripts)  # read first: a file without a transcript must create no store
    with open_uri(store, tenant) as opened, progress("replaying", shown=not as_json) as tell:
        for transcript in chain([first], transcripts):
            tally.transcripts += 1
            tally.formats[transcript.format] += 1
            id = unused_id(opened, transcript.session, tenant)
            session = open_session(opened, transcript, id, tenant=tenant, profile=profile, counter=builder.counter)
            tally.notice(id, transcript.findings)
            for step in replay_calls(builder, session, transcript):
                tally.add(step)
                tell(f"{step.call.transcript}, call {step.call.call}")
                if as_json:
                    print_json(step.call.model_dump(mode="json"))
                elif tally.transcripts == 1:
                    calls.append(step.call)
    if as_json:
        return
    console = table_console()
    console.print(tables.pairs(tally_rows(tally)))
    console.print(costs_table(tally))
    if calls and tally.transcripts == 1:
        values = [call.tokens_by_section["dynamic"] for call in calls]
        blocks = tables.BLOCKS if unicode_console(console) else tables.ASCII_BLOCKS
        between = f"{min(values):,} to {max(values):,} of {builder.budgets.dynamic_tokens:,}"
        console.print(f"dynamic tokens by call, {between}; ^ compacted")
        console.print(tables.sparkline(values, [call.compacted for call in calls], console.width - 2, blocks=blocks))
        say(console, f"session {calls[-1].transcript}")
        say(console, f"last envelope {calls[-1].envelope}")


def _rebuild(address: str, provider: str | None, as_json: bool, store: str, tenant: str) -> None:
    read_provider(provider)
    with open_stored(store, tenant) as opened:
        address = envelope_address(opened, "--from", address, tenant)
        try:
            envelope = rebuild(opened, address, tenant=tenant)
        except ReferenceNotFound:
            raise InputError(
                f"--from {address}: no such envelope of tenant {tenant!r} in {store}; take one from a build"
            ) from None
        _print_value(envelope, provider, None if as_json else 2)
    if envelope.address != address:
        note(
            f"--from {address}: rebuilt as {envelope.address}; "
            "the log or the key is not what it was: restore the store from a backup"
        )
        raise click.exceptions.Exit(FOUND)


@click.command()
@click.argument("transcript", type=click.Path(allow_dash=True))
@building
@click.option("--run", default=0, show_default=True, metavar="N", help="Number of the transcript in the file, from 0.")
@click.option("--session", "session_id", metavar="ID", help="Session to append to; default: named after the file.")
@click.option("--user-turn", metavar="TEXT", help="Preview with this as the next user message; writes no envelope.")
@provider
@common
def build(
    transcript: str,
    profile: str | None,
    budgets: tuple[str, ...],
    policy: str | None,
    selector: str | None,
    summarizer: str | None,
    model: str,
    format: str,
    run: int,
    session_id: str | None,
    user_turn: str | None,
    provider: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Build the envelope for the next call of TRANSCRIPT (- for stdin).

    New messages are appended to the session first. Running the command twice appends nothing the second time.
    """

    read_provider(provider)
    if user_turn is not None and not user_turn.strip():
        raise InputError("--user-turn: the text is empty; write what the user says")
    builder = read_builder(model, budgets, policy, selector, summarizer)
    governed = read_profile(profile)
    chosen, count = choose_transcript(transcript, format, run)
    with open_uri(store, tenant) as opened:
        session = open_session(
            opened,
            chosen,
            chosen.session if session_id is None else session_id,
            tenant=tenant,
            profile=governed,
            counter=builder.counter,
        )
        with progress("appending", shown=not as_json) as tell:
            appended = append_missing(session, chosen, builder, tell)
        envelope = builder.build(session) if user_turn is None else builder.preview(session, user_turn)
        kind = f"{chosen.format}{' (detected)' if format == 'auto' else ''}"
        if count > 1:
            note(f"{transcript} holds {count} transcripts; this is number {run}, --run takes another")
        if provider or as_json:
            note(f"{transcript}: format {kind}")
            _print_value(envelope, provider, None if as_json or not provider else 2)
            return
        console = table_console()
        counts = f"format {kind}, {len(session)} messages, {appended} appended now"
        console.print(tables.shown(f"{envelope.session}: {counts}"))
        console.print(tables.sections_table(envelope))
        if envelope.dynamic.bullets is not None:
            console.print("compacted history")
            console.print(tables.bullet_list(envelope))
            console.print()
        if findings := (*chosen.findings, *envelope.findings):
            console.print("findings")
            console.print(tables.finding_list(findings))
            console.print()
        say(console, f"envelope {envelope.address}")


def _print_value(envelope: Envelope, provider: str | None, indent: int | None) -> None:
    """Print the envelope as JSON, or as the request of a provider."""
    if provider is None:
        print_document("envelope", envelope.document(), indent=indent)
    else:
        print_json(envelope.render(provider), indent=indent)  # type: ignore[arg-type]
