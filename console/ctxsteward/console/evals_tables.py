"""Tables of eval suites and their results for people; no numbers are made here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ctxsteward.evals.reports.history import Difference
from ctxsteward.evals.reports.markdown import delta, figure, interval
from ctxsteward.schemas.eval_result import EvalResult, GateResult

from .tables import grid, shown

MISSES = 3


def suites_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """A row a figure, below its suite."""
    table = grid("suite, figures", "gate")
    for row in rows:
        table.add_row(Text(f"{row['suite']}  ({row['scenarios']} scenarios)", style="bold"), "")
        table.add_row(shown(f"  {row['about']}", style="dim"), "")
        for name in row["metrics"]:
            table.add_row(f"  {name}", ", ".join(row["gates"].get(name, ())))
    return table


def result_table(result: EvalResult, difference: Difference | None) -> Table:
    """The figures of one result with intervals and gates."""
    table = grid(result.suite, "value", "95 %", "gate", *(("since",) if difference else ()), numbers=("value",))
    was = {one.metric: one.before for one in difference.changes} if difference else {}
    for metric in result.metrics:
        gates = [gate for gate in result.gates if gate.metric == metric.name]
        before = was.get(metric.name)
        since = [delta(metric, before) if before is not None else ""] if difference else []
        table.add_row(metric.name, figure(metric, metric.value), interval(metric), _gates(gates), *since)
    return table


def miss_lines(result: EvalResult) -> list[Text]:
    """What failed, and where: the first few of each gate."""
    lines = [shown(f"  {id} broke off: {error}", style="red") for id, error in result.errors.items()]
    for gate in result.gates:
        if gate.passed:
            continue
        lines.append(shown(f"  {gate.metric}: {gate.why}", style="red"))
        missed = [miss for miss in result.misses if miss.metric == gate.metric][:MISSES]
        lines += [shown(f"    {miss.scenario}, {miss.at}: {miss.why}") for miss in missed]
    return lines


def _gates(gates: Sequence[GateResult]) -> Text:
    text = Text()
    for gate in gates:
        text.append(f"{'ok' if gate.passed else 'FAILED'} {gate.rule}", style="green" if gate.passed else "bold red")
    return text
