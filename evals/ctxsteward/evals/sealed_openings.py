"""The ledger of the sealed split: time, setup and figures of each opening.

A split is blind as long as nobody tunes by it, so each run of the split ``sealed`` appends a JSON line per suite to
``sealed-openings.jsonl``. The ledger of the product itself is committed (``evals/sealed-openings.jsonl``). An opening
is one command; its rows have the same `when`. By default a run of the split hides the texts of its misses
(`without_misses`). No other command opens the split (`refuse_sealed`).

Raises `InputError` with the number of an invalid line, and for a file that cannot be read or written.
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
"""Name of the block for the table in documents."""


class SealedOpening(BaseModel):
    """One suite of one opening."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    when: str
    """Time of the command in ISO 8601."""
    suite: str
    scenarios: int = Field(ge=1)
    only: tuple[str, ...]
    """Ids if single scenarios were chosen."""
    product: str
    revision: str | None
    setup: dict[str, str | int | float | None]
    figures: dict[str, float | None]
    misses_shown: bool
    """Whether the texts of misses were shown, so that a reader has seen part of the split."""


def opening(result: EvalResult, *, when: str, only: Iterable[str], misses_shown: bool) -> SealedOpening:
    """Make the row of a result."""
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
    """Read all rows, oldest first; empty without a file."""
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
    """Append a row as a whole line and sync the file, creating it if missing."""
    append_lines(path, [row.model_dump_json()], "the opening cannot be recorded")


def told(rows: Sequence[SealedOpening], path: Path) -> str:
    """Describe in one line the last opening and the number of openings."""
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
    """Raise `InputError` for the sealed split, for callers that record no opening."""
    if split == "sealed":
        raise InputError("split 'sealed' is opened only by `ctxsteward evals run SUITE --sealed`; use docs or ci")


def without_misses(result: EvalResult) -> EvalResult:
    """Return the result without texts of scenarios or of errors."""
    errors = {id: error.partition(":")[0] for id, error in result.errors.items()}
    return result.model_copy(update={"misses": (), "errors": errors})


def figures_beside(results: Sequence[EvalResult], ci: Mapping[str, EvalResult]) -> Iterator[str]:
    """Yield Markdown: product and date, then a table of the figures on the sealed split beside those on ``ci``."""
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
