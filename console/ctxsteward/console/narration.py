"""The demo as a person reads it: five short scenes and a closing table. Prints what `story` computed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ctxsteward.envelope.accounting import text_of
from ctxsteward.envelope.render.text import section_text
from ctxsteward.schemas import Message

from . import tables
from .failures import one_line, visible
from .output import unicode_console
from .story import ASKED_AT, NEW_DECISION, OLD_DECISION, RULE, TOOL_OUTPUT, wire_text

if TYPE_CHECKING:
    from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session
    from ctxsteward.schemas import CompressionReport

    from .replaying import Replayed
    from .story import Run, Shipped

SHOWN_BULLETS = 9

_CITED = re.compile(r"(.*?) ?((?:§[\d.]+ ?)*)")
"""A bullet's text and its citations."""


class Narrator:
    """Tells the demo on a console, scene by scene."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def comes_in(self, shipped: Shipped, builder: EnvelopeBuilder) -> None:
        """What is replayed, under which budget."""
        messages = [Message.from_wire(json.loads(line)) for line in shipped.lines]
        tokens = sum(builder.counter.message(message) for message in messages)
        calls = sum(message.role == "assistant" for message in messages)
        self._scene("1  What comes in")
        self._line(
            f"An on-call day: {len(messages)} messages, {tokens:,} tokens, {calls} model calls. "
            f"The window may hold {builder.budgets.dynamic_tokens:,} tokens of it."
        )
        self._scene("2  Compactions, as they happen")

    def compacted(self, replayed: Replayed, report: CompressionReport) -> None:
        """One line for one compaction."""
        call, arrow = replayed.call, "→" if unicode_console(self._console) else "->"
        self._line(
            f"call {call.call:>3}  {report.pre_tokens:>5,} {arrow} {report.post_tokens:>5,} tokens, "
            f"{len(report.losses):>2} lost: {tables.losses_by_kind(report, most=2)}",
            wrap=False,
        )

    def window(self, run: Run) -> None:
        """The envelope of the call that answers a question about the morning."""
        assert run.asked is not None
        envelope = run.asked
        self._scene(f"3  One envelope: the call that answers §{ASKED_AT}")
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

    def originals(self, session: Session, shipped: Shipped) -> None:
        """References resolved, against the shipped file."""
        self._scene("4  Nothing is gone: references resolve to the original bytes")
        for ref, line in (
            (f"§{RULE[0]}", shipped.lines[RULE[0] - 1]),
            (f"§{OLD_DECISION[0]}", shipped.lines[OLD_DECISION[0] - 1]),
            (f"tool:{TOOL_OUTPUT}", shipped.tool_outputs[TOOL_OUTPUT - 1]),
        ):
            found = wire_text(session, ref)
            same = "identical" if found == line else "DIFFERENT"
            text = one_line(text_of(session.resolve(ref)))
            self._line(f"{ref:<6} {len(found.encode()):>4,} bytes, {same}: {text}", wrap=False)

    def closing(self, run: Run, shipped: Shipped) -> None:
        """The rebuilt envelope, every check, and the figures."""
        assert run.last is not None
        tally, calls = run.tally, run.tally.calls
        self._scene("5  The last envelope again, out of the log alone")
        self._line(f"replay --from {tables.short(run.last.address)}…: {_verdict(run.checks[-1].passed)}")
        self._scene("Checked")
        good, bad = ("✓", "✗") if unicode_console(self._console) else ("ok", "FAILED")
        for check in run.checks:
            mark = Text(good, style="green") if check.passed else Text(bad, style="bold red")
            self._console.print(Text("  ").append_text(mark).append(f" {check.name}"))
        self._console.print()
        self._console.print(tables.costs_table(tally))
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        for name, value in (
            ("calls over budget", f"{tally.over_budget_calls} of {calls}"),
            ("valid requests, OpenAI", f"{run.openai_valid_calls} of {calls}"),
            ("valid requests, Anthropic", f"{run.anthropic_valid_calls} of {calls}"),
            ("references resolved", f"{run.refs_resolved} of {len(shipped.lines)}"),
            ("compactions, losses recorded", f"{tally.compactions}, {run.losses}"),
            ("build, p50 / p95", f"{tally.build_ms_at(0.5):.2f} / {tally.build_ms_at(0.95):.2f} ms"),
        ):
            table.add_row(name, value)
        self._console.print(Padding(table, (0, 0, 0, 1), expand=False))

    def _bullets(self, envelope: Envelope) -> None:
        """The bullets that the story is about, and the first others."""
        rows = tables.bullet_rows(envelope)
        wanted = [index for index, row in enumerate(rows) if RULE[1] in row or NEW_DECISION[1] in row]
        others = [index for index in range(len(rows)) if index not in wanted]
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column()
        for index in sorted([*wanted, *others[: SHOWN_BULLETS - len(wanted)]]):
            text, refs = _CITED.fullmatch(rows[index]).groups()  # type: ignore[union-attr]
            table.add_row(refs, tables.shown(text), style="bold" if index in wanted else "")
        self._console.print(Padding(table, (0, 0, 0, 2), expand=False))
        if len(rows) > SHOWN_BULLETS:
            self._line(f"… and {len(rows) - SHOWN_BULLETS} more bullets")

    def _scene(self, title: str) -> None:
        self._console.print()
        self._console.print(Text(title, style="bold"))

    def _line(self, text: str, *, wrap: bool = True) -> None:
        line = Text(text, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
        self._console.print(Padding(line, (0, 0, 0, 2), expand=False))


def _verdict(passed: bool) -> str:
    return "byte for byte the same, for every provider" if passed else "NOT the same"
