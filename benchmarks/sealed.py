"""Open the sealed split: play suites on it, record the opening, and print the figures beside those on ``ci``.

    python -m benchmarks.sealed [SUITE...] --history FILE --write docs/sealed-split.md

A split is blind as long as nobody tunes by it. So each opening appends a JSON line per suite to the ledger of the
repository, before anything is shown, and the texts of misses are shown only with ``--show-misses``. `FILE` is a history
with a run on ``ci``. Raises `InputError` for an invalid ledger, with the number of the line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from ctxsteward.evals import result_history
from ctxsteward.evals.documents import check_output, table
from ctxsteward.evals.phrasings import SEALED
from ctxsteward.evals.result_formats import figure, interval
from ctxsteward.evals.result_history import append_lines
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.gates import shipped_gates
from ctxsteward.evals.suites.kit.suite import Setup, drawn
from ctxsteward.evals.suites.results import played
from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import EvalResult, GateResult
from ctxsteward.schemas.frozen import FrozenModel

from .report import progress, publish, script

LEDGER = Path("evals/sealed-openings.jsonl")


class SealedOpening(FrozenModel):
    """One suite of one opening."""

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
    words: str = ""
    """Digest of the split's words; empty before digests were recorded."""
    misses_shown: bool
    """Whether the texts of misses were shown, so that a reader has seen part of the split."""


def read(path: Path) -> tuple[SealedOpening, ...]:
    """Read all rows, oldest first; empty without a file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable ledger ({error}); pass another file to --log") from error
    return tuple(_row(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip())


def _row(line: str, where: str) -> SealedOpening:
    try:
        return SealedOpening.model_validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        todo = "restore the line, or pass another file to --log"
        raise InputError(f"{where}: not an opening ({field}: {first['msg']}); {todo}") from error


def words_digest() -> str:
    """Return a digest of the split's words. New words were never opened, even if the old ones were."""
    folder = files("ctxsteward.evals.phrasings") / SEALED
    texts = sorted((path.name, path.read_bytes()) for path in folder.iterdir() if path.name.endswith(".yaml"))
    return sha256(b"\0".join(part for name, text in texts for part in (name.encode(), text))).hexdigest()[:12]


def told(rows: Sequence[SealedOpening], path: Path) -> str:
    """Describe in one line the last opening of the present words and the number of openings."""
    rows = [row for row in rows if row.words == words_digest()]
    if not rows:
        return f"the sealed split was never opened before; this opening is recorded in {path}"
    last = rows[-1].when
    suites = ", ".join(dict.fromkeys(row.suite for row in rows if row.when == last))
    times = len({row.when for row in rows})
    seen = len({row.when for row in rows if row.misses_shown})
    often = "once" if times == 1 else f"{times} times"
    shown = f", {seen} of them with misses shown" if seen else ""
    return f"the sealed split was opened {often} before{shown}, last {last} ({suites}); recorded in {path}"


def without_misses(result: EvalResult) -> EvalResult:
    """Return the result without texts of scenarios or of errors."""
    errors = {id: error.partition(":")[0] for id, error in result.errors.items()}
    return result.model_copy(update={"misses": (), "errors": errors})


def figures_beside(results: Sequence[EvalResult], ci: Mapping[str, EvalResult]) -> Iterator[str]:
    """Yield Markdown: product and date, then the figures on the sealed split that miss a gate, beside ``ci``."""
    first = results[0]
    yield f"{first.product}{f', revision {first.revision}' if first.revision else ''}, {first.when[:10]}."
    yield ""
    rows: list[tuple[str, ...]] = []
    for result in results:
        seen = {metric.name: metric for metric in ci[result.suite].metrics} if result.suite in ci else {}
        for metric in result.metrics:
            gates = [gate for gate in result.gates if gate.metric == metric.name and not gate.passed]
            if not gates:
                continue
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
    held = sum(gate.passed for result in results for gate in result.gates)
    yield from ("", f"{held} other gates hold; the ledger has their figures.")


def _gate(gate: GateResult) -> str:
    return f"{'undecided: ' if gate.verdict == 'undecided' else ''}{gate.rule}"


def _tell(suite: str, done: int) -> None:
    progress(suite, f"{done} scenarios")


def opened(suites: Sequence[str], scenarios: int | None, ledger: Path, *, misses_shown: bool) -> Iterator[EvalResult]:
    """Play suites on the sealed split; yield each result once its opening is recorded."""
    check_output("--log", ledger, makes_folder=True)
    progress(told(read(ledger), ledger))
    began = datetime.now(UTC).isoformat(timespec="seconds")
    for name in suites:
        draws = tuple(drawn(name, "sealed", scenarios or suite_named(name).scenarios))
        result = played(
            name,
            draws,
            Setup(),
            workers=os.cpu_count() or 1,
            gates=shipped_gates().get(name, {}),
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            tell=partial(_tell, name),
        )
        row = SealedOpening(
            when=began,
            suite=name,
            scenarios=result.scenarios,
            only=(),
            product=result.product,
            revision=result.revision,
            setup=result.setup,
            figures={metric.name: metric.value for metric in result.metrics},
            words=words_digest(),
            misses_shown=misses_shown,
        )
        append_lines(ledger, [row.model_dump_json()], "the opening cannot be recorded")
        yield result if misses_shown else without_misses(result)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures, or write them into the page."""
    parser = script(__doc__)
    parser.add_argument("suites", nargs="*", default=NAMES, metavar="SUITE", help="default: all")
    parser.add_argument("--history", type=Path, metavar="FILE", help="results with a run on ci")
    parser.add_argument("--log", type=Path, default=LEDGER, metavar="FILE", help="ledger of openings")
    parser.add_argument("--scenarios", type=int, metavar="N", help="of each suite; default: what CI runs")
    parser.add_argument("--show-misses", action="store_true", help="print the texts of misses; this is recorded")
    options = parser.parse_args(argv)

    def lines() -> Iterator[str]:
        history = result_history.read(options.history) if options.history else ()
        results = list(opened(options.suites, options.scenarios, options.log, misses_shown=options.show_misses))
        yield from figures_beside(results, {result.suite: result for result in history if result.split == "ci"})
        for result in results:
            progress(*(f"{miss.scenario}, {miss.at}: {miss.why}" for miss in result.misses))
            progress(*(f"{id} broke off: {error}" for id, error in result.errors.items()))

    return publish(parser, options, {"sealed": lines})


if __name__ == "__main__":
    raise SystemExit(main())
