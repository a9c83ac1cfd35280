"""``ctxsteward context``: show the context that a cascade's phase would get."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from ctxsteward.envelope import EnvelopeBuilder, open_store
from ctxsteward.envelope.cascade import phase_context, read_run
from ctxsteward.envelope.cascade.config import load_tree
from ctxsteward.envelope.cascade.past import Past
from ctxsteward.envelope.cascade.phase import PhaseContext
from ctxsteward.envelope.cascade.run import RecordedRun, past_of_rows, read_rows, recorded_of
from ctxsteward.envelope.history.tool_groups import NewMessage, text_of
from ctxsteward.schemas import InputError, Message

from ..terminal import tables
from ..terminal.options import DEFAULT_MODEL, common, provider, read_builder, read_input, read_provider
from ..terminal.output import print_json, table_console
from ..terminal.stores import open_stored, stored_session

_ROOM_TOKENS = 10_000_000
"""Budget large enough to show a phase's whole context; the builder's own budgets apply when the phase runs."""


@click.command()
@click.argument("file", type=click.Path())
@click.option("--phase", metavar="NAME", help="Phase to show; default: the last one.")
@click.option("--session", "session_id", metavar="ID", help="Run in the store that supplies the past.")
@click.option("--transcript", metavar="FILE", type=click.Path(), help="Past as JSON or JSONL of {phase, message}.")
@click.option("--input", "given", metavar="JSON", help="The cascade's input; @FILE reads it from a file.")
@click.option("--grid", "as_grid", is_flag=True, help="FILE is a session: show its newest call as a grid.")
@click.option("--model", default=DEFAULT_MODEL, show_default=True, metavar="NAME", help="Model that counts tokens.")
@provider
@common
def context(
    file: str,
    phase: str | None,
    session_id: str | None,
    transcript: str | None,
    given: str | None,
    as_grid: bool,
    model: str,
    provider: str | None,
    as_json: bool,
    store: str,
    tenant: str,
) -> None:
    """Show what a phase of the cascade in FILE (YAML or JSON) would see, and how it was selected.

    FILE may also hold `input`, `state`, `states` and a recorded `transcript`. Nothing is written. If a strategy
    needs an extra or a model that is missing, selection by words replaces it and a finding reports that.

    With --grid, FILE is a session id; its newest call is shown as a grid, as in `ctxsteward view`.
    """

    if as_grid:
        if phase or session_id or transcript or given or provider:
            raise click.UsageError("--grid takes the id of a session and nothing of a cascade; `view` has more options")
        root = click.get_current_context().find_root()
        view = root.command.get_command(root, "view")  # type: ignore[attr-defined]
        root.invoke(view, sessions=(file,), as_json=as_json, store=store, tenant=tenant)
        return
    read_provider(provider)
    if session_id is not None and transcript is not None:
        raise InputError("--session and --transcript: two pasts; give one of them")
    recorded = recorded_of(load_tree(file))
    builder = read_builder(model, (f"dynamic_tokens={_ROOM_TOKENS}",))
    past = _past(recorded, builder, session_id, transcript, store, tenant)
    shown = phase_context(
        recorded.cascade,
        recorded.cascade.names[-1] if phase is None else phase,
        past,
        input=recorded.input if given is None else read_input(given),
        state=None if recorded.state is None else {**past.state, **recorded.state},
        counter=builder.counter,
    )
    if provider is not None:
        print_json(_rendered(shown, builder, provider), indent=None if as_json else 2)
    elif as_json:
        print_json(document(recorded.cascade.cascade_id, shown))
    else:
        _print(recorded.cascade.cascade_id, shown)


def document(cascade_id: str, shown: PhaseContext) -> dict[str, Any]:
    """Return a phase's context as JSON values with stable keys; `origins` has one entry for each of `messages`."""
    return {
        "cascade": cascade_id,
        "phase": shown.phase,
        "mode": shown.mode,
        "messages": shown.wires,
        "origins": [
            {"origin": message.origin, "kind": message.kind, "phase": message.phase, "tokens": message.tokens}
            for message in shown.messages
        ],
        "instructions": shown.instructions,
        "tokens": shown.tokens,
        "selection_log": shown.log.model_dump(mode="json"),
        "findings": [finding.model_dump(mode="json") for finding in shown.findings],
    }


def _past(
    recorded: RecordedRun,
    builder: EnvelopeBuilder,
    session_id: str | None,
    transcript: str | None,
    uri: str,
    tenant: str,
) -> Past:

    if session_id is not None:
        opened = open_stored(uri, tenant)  # stays open: messages are read when they are shown
        past = read_run(opened, recorded.cascade, session_id, tenant=tenant)
        if not past.messages:
            stored_session(opened, session_id, tenant)
        return past
    rows = recorded.rows if transcript is None else read_rows(recorded.cascade, transcript)
    return past_of_rows(recorded.cascade, rows, recorded.states, store=open_store("memory:"), counter=builder.counter)


def _rendered(shown: PhaseContext, builder: EnvelopeBuilder, provider: str) -> Any:
    """Return the request for `provider` that the builder makes of the phase's context and instructions."""
    system = [str(wire["content"]) for wire in shown.wires if wire["role"] == "system"]
    session = open_store("memory:").session(shown.phase, system=system, counter=builder.counter)
    rest = [message for message in shown.messages if message.wire["role"] != "system"]
    session.extend(NewMessage(message=message.wire, origin=message.origin) for message in rest)
    if shown.instructions.strip():
        session.append({"role": "user", "content": shown.instructions}, phase=shown.phase)
    return builder.build(session).render(provider)  # type: ignore[arg-type]


def _print(cascade_id: str, shown: PhaseContext) -> None:
    console, log = table_console(), shown.log
    console.print(tables.shown(f"{cascade_id}: {shown.phase} ({shown.mode}), {shown.tokens} tokens"))
    table = Table("role", "from", "tokens", "text", box=None, pad_edge=False)
    for message in shown.messages:
        read = Message.from_wire(message.wire)
        text = " ".join(text_of(read).split())[:300] or ", ".join(part.kind for part in read.parts)
        table.add_row(read.role, message.origin, str(message.tokens), tables.shown(text))
    if shown.instructions.strip():
        table.add_row("user", "instructions", "", tables.shown(" ".join(shown.instructions.split())[:300]))
    console.print(table)
    console.print(
        f"selection {log.strategy}: {log.context_size} of {log.full_history_size} messages, "
        f"{len(log.anchor_refs)} anchors, {log.tokens_saved} tokens saved"
    )
    if log.reasoning:
        console.print(tables.shown(f"because: {log.reasoning}"))
    if log.candidates:
        table = Table("ref", "score", "", "why", "signals", box=None, pad_edge=False)
        for each in log.candidates:
            signals = ", ".join(f"{name} {value:g}" for name, value in each.signals.items())
            table.add_row(each.ref, f"{each.score:.3f}", "in" if each.in_ else "out", each.why, signals)
        console.print(table)
    if shown.findings:
        console.print("findings")
        console.print(tables.finding_list(shown.findings))
