"""``ctxsteward demo``: replay the shipped incident offline, print it in seven scenes, and check the demo's claims.

The first scene lists the cost of the same calls under other strategies (`demo_windows`). The second compares two
prompts of the same size at one late question: a sliding window (the newest whole messages that fit, under the same
head) and an envelope. Every figure that is printed, also by ``demo --json``, is computed here from the run.
The constants give message numbers of `data/demo.jsonl`, whose system message has no number. The builder's tokenizer
counts tokens; `_ms` are milliseconds of wall time.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.resources import files
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ctxsteward.envelope import (
    PROVIDERS,
    Budgets,
    Envelope,
    EnvelopeBuilder,
    Profile,
    Session,
    Store,
    rebuild,
)
from ctxsteward.envelope.history.tool_groups import text_of
from ctxsteward.envelope.render.text import section_text
from ctxsteward.envelope.tokens.models import dollars_of
from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas import CompressionReport, Message

from ..terminal import tables
from ..terminal.failures import FOUND, one_line, visible
from ..terminal.options import common, telemetry
from ..terminal.output import print_json, table_console, unicode_console
from ..terminal.stores import open_uri
from ..terminal.transcripts import open_session, unused_id
from .demo_windows import WAYS, PromptWindow
from .replay import ReplayStep, ReplayTotals, costs_table, replay_calls

MODEL = "gpt-4o"
DYNAMIC_TOKENS = 2000
ASKED_AT = 250
"""Message in which the user asks again for a decision of the morning, which has been changed since."""
RULE = (10, "customer emails never go into tickets")
OLD_DECISION = (81, "keep it at 5")
NEW_DECISION = (196, "retry budget is 2")
SUBJECT = re.compile(r"retry[ _]budget", re.IGNORECASE)
"""Matches the subject of the question in message `ASKED_AT`."""
TOOL_OUTPUT = 3


class DemoData(NamedTuple):
    """The shipped transcript and profile."""

    transcript: Transcript
    profile: Profile
    lines: tuple[str, ...]
    """The file's lines without the system message, byte for byte; the n-th line is message n."""

    @property
    def tool_outputs(self) -> list[str]:
        return [line for line in self.lines if json.loads(line)["role"] == "tool"]


class DemoCheck(NamedTuple):
    """One claim of the demo, and whether it holds."""

    name: str
    passed: bool


@dataclass(slots=True)
class DemoRun:
    """Results of one replay of the demo."""

    session: str
    tally: ReplayTotals
    windows: list[PromptWindow]
    """Windows of the other strategies, the sliding window first."""
    losses: int = 0
    openai_valid_calls: int = 0
    anthropic_valid_calls: int = 0
    refs_resolved: int = 0
    asked: Envelope | None = None
    """Envelope of the call that answers `ASKED_AT`."""
    asked_windows: tuple[PromptWindow, ...] = ()
    """Copies of `windows` at that call."""
    asked_full_tokens: int = 0
    """Prompt tokens of sending the whole history at that call."""
    last: Envelope | None = None
    checks: list[DemoCheck] = field(default_factory=list)


def load_shipped() -> DemoData:
    """Read the shipped transcript and profile."""
    data = files("ctxsteward.console") / "data"
    text = (data / "demo.jsonl").read_text(encoding="utf-8")
    (transcript,) = parse_transcripts(text, "demo.jsonl")
    profile = Profile.from_yaml((data / "demo-profile.yaml").read_text(encoding="utf-8"), "demo-profile.yaml")
    return DemoData(transcript, profile, tuple(text.splitlines()[len(transcript.system) :]))


def make_builder() -> EnvelopeBuilder:
    """Return the builder of the demo."""
    return EnvelopeBuilder(model=MODEL, budgets=Budgets(dynamic_tokens=DYNAMIC_TOKENS))


def replay_shipped(
    shipped: DemoData,
    builder: EnvelopeBuilder,
    store: Store,
    tenant: str,
    on_compaction: Callable[[ReplayStep, CompressionReport], None],
) -> tuple[DemoRun, Session]:
    """Replay every call, and pass each compaction to `on_compaction` as it happens."""
    transcript = shipped.transcript
    id = unused_id(store, transcript.session, tenant)
    session = open_session(store, transcript, id, tenant=tenant, profile=shipped.profile, counter=builder.counter)
    tally = ReplayTotals.for_builder(builder)
    windows = [
        PromptWindow(name=name, reduce=reduce, budget_tokens=builder.budgets.dynamic_tokens, prices=tally.prices)
        for name, reduce in WAYS.items()
    ]
    run = DemoRun(id, tally, windows)
    tally.transcripts = 1
    for replayed in replay_calls(builder, session, transcript):
        envelope = run.last = replayed.envelope
        tally.add(replayed)
        for window in windows:
            window.move(session, builder.counter, envelope.tokens - envelope.section("dynamic").tokens)
        run.openai_valid_calls += not openai_faults(envelope.render("openai-chat"))
        run.anthropic_valid_calls += not anthropic_faults(envelope.render("anthropic"))
        if len(session) == ASKED_AT:
            run.asked = envelope
            run.asked_windows = tuple(map(replace, windows))
            run.asked_full_tokens = replayed.full_tokens
        for report in envelope.reports:
            run.losses += len(report.losses)
            on_compaction(replayed, report)
    return run, session


def check_window(run: DemoRun) -> None:
    """Check that the morning's rule and the new decision are shown, and the old decision only marked as superseded."""
    for envelope, when in ((run.asked, "when it is asked for"), (run.last, "at the last call")):
        text = "" if envelope is None else envelope.section("dynamic").text
        run.checks.append(DemoCheck(f"the rule stated once, in §{RULE[0]}, is shown {when}", RULE[1] in text))
        marked = f"§{OLD_DECISION[0]} user, superseded by §{NEW_DECISION[0]}: "
        changed = NEW_DECISION[1] in text and (OLD_DECISION[1] not in text or marked in text)
        run.checks.append(DemoCheck(f"an old value of the changed decision is never alone {when}", changed))


def check_answer(run: DemoRun) -> None:
    """Check that the envelope at `ASKED_AT` shows the new decision, and a sliding window of the same size does not."""
    assert run.asked is not None
    shown = NEW_DECISION[1] in run.asked.section("dynamic").text and NEW_DECISION[1] not in run.asked_windows[0].text
    run.checks.append(DemoCheck(f"§{NEW_DECISION[0]} answers §{ASKED_AT}; the sliding window has lost it", shown))


def lines_about(text: str) -> list[str]:
    """Return the lines of a window that name the question's subject, except the question; user messages come first."""
    found = [line for line in text.splitlines() if line.startswith("§") and SUBJECT.search(line)]
    told = [line for line in found if not line.startswith(f"§{ASKED_AT} ")]
    return sorted(told, key=lambda line: re.match(r"§\d+ user\b", line) is None)


def wire_text(session: Session, ref: str) -> str:
    """Return the original as JSON text with its keys in their original order."""
    return json.dumps(session.resolve(ref).wire, ensure_ascii=False)


def summary(run: DemoRun, shipped: DemoData) -> dict[str, object]:
    """Return the document that ``demo --json`` prints."""
    tally = run.tally
    return {
        "session": run.session,
        "messages": len(shipped.lines),
        "calls": tally.calls,
        "compactions": tally.compactions,
        "losses": run.losses,
        "full_history_tokens": tally.full_tokens,
        "sent_tokens": tally.sent_tokens,
        "full_history_priced_tokens": round(tally.full_priced),
        "sent_priced_tokens": round(tally.sent_priced),
        "window_tokens": run.windows[0].sent_tokens,
        "window_priced_tokens": round(run.windows[0].sent_priced),
        "dollars": {name: round(dollars, 4) for name, dollars in bills(run).items()},
        "over_budget_calls": tally.over_budget_calls,
        "openai_valid_calls": run.openai_valid_calls,
        "anthropic_valid_calls": run.anthropic_valid_calls,
        "refs_resolved": run.refs_resolved,
        "build_ms_p50": tally.build_ms_at(0.5),
        "build_ms_p95": tally.build_ms_at(0.95),
        "last_envelope": run.last.address if run.last else None,
        "checks": [{"name": check.name, "passed": check.passed} for check in run.checks],
        "passed": all(check.passed for check in run.checks),
    }


EVERYTHING, OURS = "whole history", "ctxsteward"


def bills(run: DemoRun) -> dict[str, float]:
    """Return the dollars that the prompts of all calls cost, by strategy."""
    paid = {EVERYTHING: run.tally.full_priced, **{window.name: window.paid for window in run.windows}}
    paid[OURS] = run.tally.sent_priced
    return {name: dollars_of(MODEL, tokens) or 0.0 for name, tokens in paid.items()}


SHOWN_BULLETS = 9
SHOWN_LINES, LINE_CHARS = 2, 120

_CITED = re.compile(r"(.*?) ?((?:§[\d.]+ ?)*)")
"""Matches a bullet: its text, then its citations."""


class Narrator:
    """Printer of the demo's scenes on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def money(self, run: DemoRun) -> None:
        """Print the bill of each strategy, and whether its prompt holds the answer to the late question."""
        assert run.asked is not None
        self._scene(f"1  A day of {run.tally.calls} calls of {MODEL}, and one late question")
        windows = {
            EVERYTHING: (run.asked_full_tokens, True),
            **{window.name: (window.prompt_tokens, NEW_DECISION[1] in window.text) for window in run.asked_windows},
            OURS: (run.asked.tokens, NEW_DECISION[1] in run.asked.section("dynamic").text),
        }
        rows = [
            (
                tables.shown(name, "bold" if name == OURS else ""),
                f"${dollars:.2f}",
                f"{windows[name][0]:,}",
                "yes" if windows[name][1] else "no",
            )
            for name, dollars in bills(run).items()
        ]
        numbers = ("all prompts", f"tokens at §{ASKED_AT}")
        columns = ("", *numbers, f"holds the answer to §{ASKED_AT}")
        self._console.print(Padding(tables.grid(*columns, rows=rows, numbers=numbers), (0, 0, 0, 2), expand=False))
        self._line(
            "summary: LangChain's defaults, its model scripted (first sentences of the user); cleared: Anthropic's "
            "defaults, without a bound for texts. Cached tokens at the model's price."
        )

    def question(self, run: DemoRun, session: Session, shipped: DemoData) -> None:
        """Print the late question, and what each of two prompts of the same size shows about its answer."""
        assert run.asked is not None
        tally, window, asked, slid = run.tally, run.windows[0], run.asked, run.asked_windows[0]
        self._scene(f"2  One question, two prompts with {window.budget_tokens:,} tokens of the conversation")
        self._line(f"§{ASKED_AT}: {one_line(text_of(session.resolve(f'§{ASKED_AT}')))}")
        reachable = sum(wire_text(session, f"§{at}") == line for at, line in enumerate(shipped.lines[:ASKED_AT], 1))
        rows = (
            ("it says of that", _told(slid.text), _told(asked.section("dynamic").text)),
            ("messages in reach", f"{len(slid.rows)} of {ASKED_AT}", f"{reachable} of {ASKED_AT}, by reference"),
            ("this prompt", f"{slid.prompt_tokens:,} tokens", f"{asked.tokens:,} tokens"),
            (f"all {tally.calls} calls", f"{window.sent_tokens:,} tokens", f"{tally.sent_tokens:,} tokens"),
            (
                f"with cached prefix at {tally.prices.cached:g}",
                f"{window.sent_priced:,.0f}",
                f"{tally.sent_priced:,.0f}",
            ),
        )
        table = tables.grid("", "sliding window", "ctxsteward", rows=rows)
        self._console.print(Padding(table, (0, 0, 0, 2), expand=False))

    def comes_in(self, shipped: DemoData, builder: EnvelopeBuilder) -> None:
        """Print the size of the transcript and the budget of its replay."""
        messages = [Message.from_wire(json.loads(line)) for line in shipped.lines]
        tokens = sum(builder.counter.message(message) for message in messages)
        calls = sum(message.role == "assistant" for message in messages)
        self._scene("3  What comes in")
        self._line(
            f"An on-call day: {len(messages)} messages, {tokens:,} tokens, {calls} model calls. "
            f"The window may hold {builder.budgets.dynamic_tokens:,} tokens of it."
        )
        self._scene("4  Compactions, as they happened")

    def compacted(self, replayed: ReplayStep, report: CompressionReport) -> None:
        """Print one line for one compaction."""
        call, arrow = replayed.call, "→" if unicode_console(self._console) else "->"
        self._line(
            f"call {call.call:>3}  {report.pre_tokens:>5,} {arrow} {report.post_tokens:>5,} tokens, "
            f"{len(report.losses):>2} lost: {tables.losses_by_kind(report, most=2)}",
            wrap=False,
        )

    def window(self, run: DemoRun) -> None:
        """Print the envelope of the call that answers the question about the morning."""
        assert run.asked is not None
        envelope = run.asked
        self._scene(f"5  One envelope: the call that answers §{ASKED_AT}")
        for name, section in envelope.sections.items():
            beginning = "" if name == "dynamic" else one_line(section.text)
            self._line(
                f"{name:<8}{section.tokens:>6,} of {section.budget_tokens:>5,} tokens  {beginning}",
                wrap=False,
            )
        self._console.print()
        self._bullets(envelope)
        self._console.print()
        self._line(visible(section_text(envelope.dynamic.live), keep="\n\t"))

    def originals(self, session: Session, shipped: DemoData) -> None:
        """Resolve three references, and print whether each original equals its line of the shipped file."""
        self._scene("6  Nothing is gone: references resolve to the original bytes")
        for ref, line in (
            (f"§{RULE[0]}", shipped.lines[RULE[0] - 1]),
            (f"§{OLD_DECISION[0]}", shipped.lines[OLD_DECISION[0] - 1]),
            (f"tool:{TOOL_OUTPUT}", shipped.tool_outputs[TOOL_OUTPUT - 1]),
        ):
            found = wire_text(session, ref)
            same = "identical" if found == line else "DIFFERENT"
            text = one_line(text_of(session.resolve(ref)))
            self._line(f"{ref:<6} {len(found.encode()):>4,} bytes, {same}: {text}", wrap=False)

    def closing(self, run: DemoRun, shipped: DemoData) -> None:
        """Print whether the last envelope rebuilds, every check, and the figures."""
        assert run.last is not None
        tally, calls = run.tally, run.tally.calls
        self._scene("7  The last envelope again, out of the log alone")
        verdict = "byte for byte the same, for every provider" if run.checks[-1].passed else "NOT the same"
        self._line(f"replay --from {tables.short(run.last.address)}…: {verdict}")
        self._scene("Checked")
        good, bad = ("✓", "✗") if unicode_console(self._console) else ("ok", "FAILED")
        for check in run.checks:
            mark = Text(good, style="green") if check.passed else Text(bad, style="bold red")
            self._console.print(Text("  ").append_text(mark).append(f" {check.name}"))
        self._console.print()
        self._console.print(costs_table(tally))
        rows = (
            ("calls over budget", f"{tally.over_budget_calls} of {calls}"),
            ("valid requests, OpenAI", f"{run.openai_valid_calls} of {calls}"),
            ("valid requests, Anthropic", f"{run.anthropic_valid_calls} of {calls}"),
            ("references resolved", f"{run.refs_resolved} of {len(shipped.lines)}"),
            ("compactions, losses recorded", f"{tally.compactions}, {run.losses}"),
            ("build, p50 / p95", f"{tally.build_ms_at(0.5):.2f} / {tally.build_ms_at(0.95):.2f} ms"),
        )
        self._console.print(tables.pairs(rows, justify="right", indent=1))

    def _bullets(self, envelope: Envelope) -> None:
        """Print the bullets about the rule and the new decision, and the first of the others."""
        rows = tables.bullet_rows(envelope)
        wanted = [index for index, row in enumerate(rows) if RULE[1] in row or NEW_DECISION[1] in row]
        others = [index for index in range(len(rows)) if index not in wanted]
        lines = []
        for index in sorted([*wanted, *others[: SHOWN_BULLETS - len(wanted)]]):
            text, refs = _CITED.fullmatch(rows[index]).groups()  # type: ignore[union-attr]
            style = "bold" if index in wanted else ""
            lines.append((tables.shown(refs, style), tables.shown(text, style)))
        self._console.print(tables.pairs(lines, indent=2))
        if len(rows) > SHOWN_BULLETS:
            self._line(f"… and {len(rows) - SHOWN_BULLETS} more bullets")

    def _scene(self, title: str) -> None:
        self._console.print()
        self._console.print(Text(title, style="bold"))

    def _line(self, text: str, *, wrap: bool = True) -> None:
        line = Text(text, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
        self._console.print(Padding(line, (0, 0, 0, 2), expand=False))


def _told(window: str) -> str:
    """Return the first of `lines_about`, shortened, or "nothing"."""
    lines = lines_about(window)
    more = [f"… and {len(lines) - SHOWN_LINES} more"] if len(lines) > SHOWN_LINES else []
    return (
        "\n".join([*(textwrap.shorten(line, LINE_CHARS, placeholder=" …") for line in lines[:SHOWN_LINES]), *more])
        or "nothing"
    )


@click.command()
@common
@click.pass_context
@telemetry
def demo(ctx: click.Context, as_json: bool, store: str, tenant: str) -> None:
    """Replay the shipped incident, a day on call, under a small budget, and check the result.

    Writes to a temporary store unless --store is given. Exit code 1: a check failed.
    """

    given = ctx.get_parameter_source("store") is not click.core.ParameterSource.DEFAULT
    narrator = None if as_json else Narrator(table_console())
    with TemporaryDirectory(prefix="ctxsteward-demo-") as folder:
        run, shipped = _tell(store if given else f"file:{folder}", tenant, narrator)
    if as_json:
        print_json(summary(run, shipped))
    if not all(check.passed for check in run.checks):
        raise click.exceptions.Exit(FOUND)


def _tell(uri: str, tenant: str, narrator: Narrator | None) -> tuple[DemoRun, DemoData]:
    shipped, builder = load_shipped(), make_builder()
    store = open_uri(uri, tenant)
    compactions: list[tuple[ReplayStep, CompressionReport]] = []
    try:
        run, session = replay_shipped(
            shipped, builder, store, tenant, lambda step, report: compactions.append((step, report))
        )
        check_answer(run)
        calls, lines = run.tally.calls, shipped.lines
        run.checks += [
            DemoCheck("every call is within its budgets", run.tally.over_budget_calls == 0),
            DemoCheck("every request is valid for OpenAI", run.openai_valid_calls == calls),
            DemoCheck("every request is valid for Anthropic", run.anthropic_valid_calls == calls),
        ]
        check_window(run)
        run.refs_resolved = sum(wire_text(session, f"§{number}") == line for number, line in enumerate(lines, 1))
        whole = wire_text(session, f"tool:{TOOL_OUTPUT}") == shipped.tool_outputs[TOOL_OUTPUT - 1]
        run.checks += [
            DemoCheck("every message resolves, byte for byte", run.refs_resolved == len(lines)),
            DemoCheck(f"tool output {TOOL_OUTPUT} resolves, byte for byte", whole),
        ]
        if narrator:
            narrator.money(run)
            narrator.question(run, session, shipped)
            narrator.comes_in(shipped, builder)
            for step, report in compactions:
                narrator.compacted(step, report)
            narrator.window(run)
            narrator.originals(session, shipped)
        if uri != "memory:":  # reopen the store, as another process would
            store.close()
            store = open_uri(uri, tenant)
        assert run.last is not None
        again = rebuild(store, run.last.address, tenant=tenant)
        same = again.document() == run.last.document() and all(
            json.dumps(again.render(provider)) == json.dumps(run.last.render(provider)) for provider in PROVIDERS
        )
        run.checks.append(DemoCheck("the last envelope rebuilds, byte for byte", same))
        if narrator:
            narrator.closing(run, shipped)
    finally:
        store.close()
    return run, shipped
