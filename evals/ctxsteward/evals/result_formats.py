"""Write results as Markdown for people and as JUnit XML for CI services.

Markdown has a table of figures with intervals and gates, the misses, and the changes since the last run. In JUnit each
eval suite is a test suite; each gate, and each scenario that broke off, is a test case. An undecided gate is a failure
if it fails the run, else it is skipped, like an unscored one. Figures without a gate are properties.
Source: the JUnit schema of the Jenkins xUnit plugin, as CI services read it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree as Xml

from ctxsteward.schemas.eval_result import EvalResult, GateResult, MetricResult, Verdict

from .result_history import SURE, FigureComparison, GateChange, ResultComparison, before, incomparable, values
from .suites.kit.model_judges import JUDGED

MISSES = 5
"""Misses shown per figure."""


MARKS: dict[Verdict, str] = {"passed": "✅", "failed": "❌", "undecided": "❔", "unscored": "➖"}


def outcome(results: Sequence[EvalResult]) -> Verdict:
    """Return the outcome of a run: failed, else undecided or unscored if a gate is, else passed."""
    verdicts = {gate.verdict for result in results for gate in result.gates}
    if "failed" in verdicts or any(result.errors for result in results) or nothing_scored(results):
        return "failed"
    return next((verdict for verdict in ("undecided", "unscored") if verdict in verdicts), "passed")


def nothing_scored(results: Sequence[EvalResult]) -> bool:
    """Return whether no figure has a value, or every gate is unscored; such a run must not pass."""
    verdicts = {gate.verdict for result in results for gate in result.gates}
    return verdicts == {"unscored"} or all(metric.value is None for result in results for metric in result.metrics)


def tally(gates: Sequence[GateResult]) -> str:
    """Count the gates by verdict, as in ``11 of 13 gates passed, 2 undecided``."""
    counts = {verdict: sum(gate.verdict == verdict for gate in gates) for verdict in MARKS}
    others = [f", {count} {verdict}" for verdict, count in counts.items() if count and verdict != "passed"]
    return f"{counts['passed']} of {len(gates)} gates passed{''.join(others)}"


def markdown(results: Sequence[EvalResult], history: Sequence[EvalResult] = ()) -> str:
    """Write a page of all results, each compared with the last comparable run in the history.

    If there is none, the page lists the differences from the last run of the suite.
    """
    gates = [gate for result in results for gate in result.gates]
    scenarios, turns = sum(result.scenarios for result in results), sum(result.turns for result in results)
    rows = [
        f"# Context evals: {outcome(results)}",
        "",
        f"{tally(gates) if gates else 'No gates were asked for'}; {scenarios:,} scenarios, {turns:,} turns.",
    ]
    for result in results:
        rows += ["", *_suite(result, before(history, result))]
        if differs := incomparable(history, result):
            rows += ["", f"Not compared: the last run differs in {_cell('; '.join(differs))}."]
    return "\n".join(rows) + "\n"


def _suite(result: EvalResult, earlier: EvalResult | None) -> Iterator[str]:
    yield f"## {MARKS[outcome([result])]} {result.suite}"
    yield ""
    yield _cell(result.about)
    yield ""
    repeats = f" {REPEATS} |" if has_repeats(result) else ""
    yield f"| figure | value | 95 % interval |{repeats} checks | each thing once | gate | notices | since last run |"
    yield f"|---|---:|---|{'---|' if repeats else ''}---:|---|---|---|---|"
    for metric in result.metrics:
        gates = [gate for gate in result.gates if gate.metric == metric.name]
        yield (
            f"| {metric.name} | {figure(metric, metric.value)} | {interval(metric)} "
            f"|{f' {deviations(metric)} |' if repeats else ''} {metric.checks:,} "
            f"| {distinct(metric)} | {', '.join(f'{MARKS[gate.verdict]} {gate.rule}' for gate in gates)} "
            f"| {', '.join(filter(None, (notices(metric, gate) for gate in gates)))} | {delta(metric, earlier)} |"
        )
    yield from _failures(result)
    if lines := list(judging_lines(result)):
        yield ""
        yield from (f"{'  ' * line.startswith('  ')}- {_cell(line)}" for line in lines)
    yield ""
    yield f"`{result.reproduce}`" if result.reproduce else ""


def _failures(result: EvalResult) -> Iterator[str]:
    for gate in sorted(result.gates, key=lambda gate: gate.metric):
        if gate.passed:
            continue
        yield ""
        yield f"**{gate.metric}** {gate.verdict}: {_cell(gate.why)}"
        yield ""
        for miss in [miss for miss in result.misses if miss.metric == gate.metric][:MISSES]:
            yield f"- `{miss.scenario}`, {_cell(miss.at)}: {_cell(miss.why)}"
    for id, error in result.errors.items():
        yield f"- `{id}` broke off: {_cell(error)}"


def wholly_unscored(result: EvalResult) -> str:
    """Return in a line why a suite is wholly unscored; empty if a figure has a value or a scenario broke off."""
    if result.errors or any(metric.value is not None for metric in result.metrics):
        return ""
    why = Counter[str]()
    for metric in result.metrics:
        why.update(metric.unscored)
    reasons = "; ".join(reason for reason, _ in why.most_common(2)) or "nothing was asked"
    return f"unscored, all {len(result.metrics)} figures: {reasons}"


def judging_lines(result: EvalResult) -> Iterator[str]:
    """Yield lines on the calls and cost of model judges, and on the agreement and differences of raters."""
    if result.judging is None or not result.judging.models:
        reasons = next((metric.unscored for metric in result.metrics if metric.name == JUDGED.name), {})
        yield from (f"{JUDGED.name}: {count:,} unscored: {reason}" for reason, count in reasons.items())
    if result.judging is None:
        return
    for model in result.judging.models:
        cost = "no price given" if model.cost is None else f"cost {model.cost:.4g}"
        tokens = f"{model.tokens_in:,} tokens in, {model.tokens_out:,} out"
        yield f"{model.model}: {model.verdicts:,} verdicts in {model.calls:,} calls, {tokens}, {cost}"
        yield from (f"  {count:,} unscored: {reason}" for reason, count in model.unscored.items())
    for pair in result.judging.agreement:
        raters = f"{pair.first} and itself" if pair.first == pair.second else f"{pair.first} and {pair.second}"
        kappa = pair.note or f"kappa {pair.kappa:.3g}"
        of = f"over {pair.cases:,} {'ask' if pair.cases == 1 else 'asks'}"
        yield f"{raters}: agree in {100 * pair.agree:.4g} % {of}, {kappa}"
        yield from (f"  {case}" for case in pair.differ[:MISSES])
        if pair.differing > MISSES:
            yield f"  and {pair.differing - MISSES:,} more, in --json"


def figure(metric: MetricResult | FigureComparison, value: float | None) -> str:
    """Format a figure for people.

    >>> from ctxsteward.schemas.eval_result import MetricResult
    >>> one = MetricResult(name="goal_drift", about="", kind="rate", better="lower", unit="", value=0.0125, low=None,
    ...     high=None, method=None, checks=80, scenarios=26, unscored={})
    >>> figure(one, one.value)
    '1.25 %'
    """
    if value is None:
        return "unscored"
    if metric.kind == "rate":
        return f"{100 * value:.4g} %"
    return f"{value:,.4g}{' ' + metric.unit if metric.unit else ''}"


def interval(metric: MetricResult) -> str:
    """Format an interval for people; empty without one."""
    if metric.low is None or metric.high is None:
        return ""
    return f"{figure(metric, metric.low)} to {figure(metric, metric.high)}"


REPEATS = "sd of repeats, of scenarios"


def has_repeats(result: EvalResult) -> bool:
    """Return whether scenarios were played several times."""
    return any(metric.within_sd is not None for metric in result.metrics)


def deviations(metric: MetricResult) -> str:
    """Format the deviations between repeats and between scenarios, in points for a rate; empty without repeats."""
    scale = 100 if metric.kind == "rate" else 1
    return ", ".join(
        f"{scale * deviation:.3g}" for deviation in (metric.within_sd, metric.between_sd) if deviation is not None
    )


def distinct(metric: MetricResult) -> str:
    """Format the rate with each distinct thing counted once; empty if checks name no things."""
    if metric.distinct is None:
        return ""
    return f"{figure(metric, metric.distinct_value)} of {metric.distinct:,}"


def notices(metric: MetricResult, gate: GateResult) -> str:
    """Format the smallest true shortfall that fails a gate four times out of five; empty if unknown."""
    if gate.detects is None:
        return ""
    if gate.promise:
        return f"a miss in {100 * gate.detects:.2g} % of scenarios"
    scale, unit = (100, " points") if metric.kind == "rate" else (1, f" {metric.unit}".rstrip())
    return f"{scale * gate.detects:.2g}{unit} off"


def delta(metric: MetricResult, earlier: EvalResult | None) -> str:
    """Format the change of a figure since an earlier run; empty if that run had no such figure."""
    (was,) = (None,) if earlier is None else values((earlier,), metric.name)
    if was is None:
        return ""
    if metric.value is None or metric.value == was:
        return "="
    worse = metric.value < was if metric.better == "higher" else metric.value > was
    scale, unit = (100, " points") if metric.kind == "rate" else (1, "")
    return f"{scale * (metric.value - was):+.3g}{unit}{' worse' if worse else ''}"


def comparison(compared: Sequence[ResultComparison]) -> str:
    """Write the comparison of two runs as Markdown, suite by suite."""
    rows = ["# Context evals: two runs compared", "", summary(compared)]
    for suite in compared:
        rows += ["", f"## {suite.suite}", "", *(f"- {_cell(line)}" for line in compared_runs(suite)), ""]
        rows += ["| figure | before | after | difference | 95 % interval | p | |", "|---|---:|---:|---:|---|---:|---|"]
        rows += [f"| {' | '.join(map(_cell, cells))} |" for cells in map(figure_cells, suite.figures)]
        rows += ["", *(f"- {_cell(gate_change(change))}" for change in suite.gates)] if suite.gates else []
    return "\n".join(rows) + "\n"


def summary(compared: Sequence[ResultComparison]) -> str:
    """Say how many figures differ surely, how many of these for the worse, and how many would by chance."""
    figures = [figure for suite in compared for figure in suite.figures if figure.differing]
    sure = [figure.is_surely for figure in figures if figure.is_surely]
    surely = f"{len(sure)} of {len(figures)} figures that differ do so surely, {sure.count('worse')} for the worse"
    return f"{surely}; of as many without any true difference, up to {SURE * len(figures):.2g} would."


def compared_runs(compared: ResultComparison) -> Iterator[str]:
    """Yield lines on the two runs, their common scenarios and their intended differences."""
    for label, run in (("before", compared.before), ("after", compared.after)):
        revision = f", revision {run.revision}" if run.revision else ""
        yield f"{label}: {run.product}{revision}, {run.when}, {_scenarios(run.scenarios)}"
    meant = f"; meant to differ: {'; '.join(map(str, compared.meant))}" if compared.meant else ""
    yield f"compared over {_scenarios(len(compared.scenario_ids))} of split {compared.split} that both played{meant}"
    if broken := len(compared.broke_off):
        which = ", ".join(compared.broke_off[:MISSES])
        yield f"left out: {_scenarios(broken)} that broke off ({which})"


def _scenarios(count: int) -> str:
    return f"{count} scenario{'s' * (count != 1)}"


def figure_cells(compared: FigureComparison) -> tuple[str, ...]:
    """Return name, both values, difference, interval, p, and the verdict better, worse or empty."""
    values = figure(compared, compared.before), figure(compared, compared.after)
    if compared.difference is None:
        return compared.metric, *values, "", "", "", ""
    if not compared.differing:
        return compared.metric, *values, "=", "", "", ""
    between = " to ".join(_signed(compared, end) for end in (compared.low, compared.high) if end is not None)
    p = "" if compared.p is None else "<0.001" if compared.p < 0.001 else f"{compared.p:.3f}"
    return compared.metric, *values, _signed(compared, compared.difference), between, p, compared.is_surely or ""


def gate_change(change: GateChange) -> str:
    """Describe the change of a gate, as in ``goal_drift below 0.08: passed before, failed after``."""
    return f"{change.metric} {change.rule}: {change.before or 'no gate'} before, {change.after or 'no gate'} after"


def _signed(compared: FigureComparison, value: float) -> str:
    """Format a signed value, in points for a rate."""
    return f"{100 * value if compared.kind == 'rate' else value:+.3g}"


def _cell(text: str) -> str:
    """Escape a text for Markdown tables and lists."""
    flat = " ".join(text.split())
    return "".join(f"\\{char}" if char in "|<>*_`[]\\" else char for char in flat)


_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit(results: Iterable[EvalResult]) -> str:
    """Write all results as one JUnit document."""
    root = Xml.Element("testsuites", name="ctxsteward evals")
    for result in results:
        root.append(_junit_suite(result))
    for count in ("tests", "failures", "skipped", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _junit_suite(result: EvalResult) -> Xml.Element:
    failed = [gate for gate in result.gates if gate.fails_run]
    skipped = [gate for gate in result.gates if not gate.passed and not gate.fails_run]
    suite = Xml.Element(
        "testsuite",
        name=result.suite,
        tests=str(len(result.gates) + len(result.errors)),
        failures=str(len(failed)),
        skipped=str(len(skipped)),
        errors=str(len(result.errors)),
        time=f"{result.cpu_seconds:.3f}",
        timestamp=result.when,
    )
    properties = Xml.SubElement(suite, "properties")
    figures = {metric.name: "unscored" if metric.value is None else f"{metric.value:g}" for metric in result.metrics}
    figures |= {
        f"{metric.name}, {REPEATS}": deviations(metric) for metric in result.metrics if metric.within_sd is not None
    }
    for name, value in {"product": result.product, "reproduce": result.reproduce, **figures}.items():
        Xml.SubElement(properties, "property", name=name, value=_legal(value))
    for gate in result.gates:
        _junit_gate(suite, result, gate)
    for id, error in result.errors.items():
        case = Xml.SubElement(suite, "testcase", classname=f"evals.{result.suite}", name=id, time="0")
        Xml.SubElement(case, "error", message=_legal(error))
    if lines := list(judging_lines(result)):
        Xml.SubElement(suite, "system-out").text = _legal("\n".join(lines))
    return suite


def _junit_gate(suite: Xml.Element, result: EvalResult, gate: GateResult) -> None:
    name = f"{gate.metric} {gate.rule}"
    case = Xml.SubElement(suite, "testcase", classname=f"evals.{result.suite}", name=name, time="0")
    if gate.passed:
        return
    message = _legal(gate.why if gate.verdict == "failed" else f"{gate.verdict}: {gate.why}")
    if not gate.fails_run:
        Xml.SubElement(case, "skipped", message=message)
    else:
        failure = Xml.SubElement(case, "failure", message=message)
        misses = (miss for miss in result.misses if miss.metric == gate.metric)
        failure.text = _legal("\n".join(f"{miss.scenario}, {miss.at}: {miss.why}" for miss in misses))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("�", text)
