"""The ledger of the sealed split: who looked at it, when, with which setup, and what the figures were.

A split is blind as long as nobody tunes by it, so each run of the split ``sealed`` leaves a JSON line a suite in
``sealed-openings.jsonl``. The ledger of the product itself is committed (``evals/sealed-openings.jsonl``). An opening
is one command; its rows have the same `when`. Without being asked to, a run of the split keeps the texts of what it
missed to itself (`without_misses`). Nothing else opens it (`refuse_sealed`).

Raises `InputError` with the line that does not fit, and for a file that cannot be read or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import EvalResult, GateResult

from .documents import table
from .result_formats import figure, interval
from .result_history import append_lines

FILE = "sealed-openings.jsonl"
BLOCK = "sealed"
"""Of the document that has the table: its markers."""


class SealedOpening(BaseModel):
    """One suite of one opening."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    when: str
    """ISO 8601; of the whole command."""
    suite: str
    scenarios: int = Field(ge=1)
    only: tuple[str, ...]
    """Ids, where single scenarios were asked for."""
    product: str
    revision: str | None
    setup: dict[str, str | int | float | None]
    figures: dict[str, float | None]
    misses_shown: bool
    """Whether what was missed was shown with its texts: whoever saw them has read the split."""


def opening(result: EvalResult, *, when: str, only: Iterable[str], misses_shown: bool) -> SealedOpening:
    """The row of a result."""
    figures = {metric.name: metric.value for metric in result.metrics}
    return SealedOpening(
        when=when,
        suite=result.suite,
        scenarios=result.scenarios,
        only=tuple(only),
        product=result.product,
        revision=result.revision,
        setup=result.setup,
        figures=figures,
        misses_shown=misses_shown,
    )


def read(path: Path) -> tuple[SealedOpening, ...]:
    """All rows, oldest first; none where there is no file yet."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable ledger ({error}); pass another file to --sealed-log") from error
    return tuple(_row(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip())


def _row(line: str, where: str) -> SealedOpening:
    try:
        return SealedOpening.model_validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        todo = "restore the line, or pass another file to --sealed-log"
        raise InputError(f"{where}: not an opening ({field}: {first['msg']}); {todo}") from error


def append(path: Path, row: SealedOpening) -> None:
    """Add one row at the end, made if missing; a whole line, synced."""
    append_lines(path, [row.model_dump_json()], "the opening cannot be recorded")


def told(rows: Sequence[SealedOpening], path: Path) -> str:
    """When the split was opened last, and how often in all, as one line."""
    if not rows:
        return f"the sealed split was never opened before; this opening is recorded in {path}"
    last = rows[-1].when
    suites = ", ".join(dict.fromkeys(row.suite for row in rows if row.when == last))
    times = len({row.when for row in rows})
    seen = len({row.when for row in rows if row.misses_shown})
    often = "once" if times == 1 else f"{times} times"
    shown = f", {seen} of them with misses shown" if seen else ""
    return f"the sealed split was opened {often} before{shown}, last {last} ({suites}); recorded in {path}"


def refuse_sealed(split: str) -> None:
    """Refuse the sealed split where no opening is recorded."""
    if split == "sealed":
        raise InputError("split 'sealed' is opened by `ctxsteward evals run SUITE --sealed` alone; one of: docs, ci")


def without_misses(result: EvalResult) -> EvalResult:
    """The figures alone: no text of a scenario, nor of what broke one off."""
    errors = {id: error.partition(":")[0] for id, error in result.errors.items()}
    return result.model_copy(update={"misses": (), "errors": errors})


def figures_beside(results: Sequence[EvalResult], ci: Mapping[str, EvalResult]) -> Iterator[str]:
    """Of what, when, and a Markdown table: all figures on the sealed split beside those on ``ci``, by suite."""
    first = results[0]
    yield f"{first.product}{f', revision {first.revision}' if first.revision else ''}, {first.when[:10]}."
    yield ""
    rows: list[tuple[str, ...]] = []
    for result in results:
        seen = {metric.name: metric for metric in ci[result.suite].metrics} if result.suite in ci else {}
        for metric in result.metrics:
            gates = [gate for gate in result.gates if gate.metric == metric.name]
            before = seen.get(metric.name)
            rows.append(
                (
                    f"`{result.suite}`",
                    f"`{metric.name}`",
                    ", ".join(map(_gate, gates)),
                    figure(before, before.value) if before else "",
                    figure(metric, metric.value),
                    interval(metric),
                )
            )
    yield from table(("suite", "figure", "gate", "`ci`", "`sealed`", "`sealed`, 95 %"), rows, texts=3)


def _gate(gate: GateResult) -> str:
    if gate.verdict == "undecided":
        return f"undecided: {gate.rule}"
    return gate.rule if gate.passed else f"**falls short:** {gate.rule}"
