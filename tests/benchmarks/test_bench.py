"""The benchmark command: rows with a bar and a verdict, and an exit code where a bar was missed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import unit_costs
from benchmarks.bench import BENCHES, main
from benchmarks.rows import BenchmarkRow, row

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(row("b", "w", 3), BenchmarkRow(bench="b", what="w", value="3"), id="for information"),
        pytest.param(row("b", "w", 12_345), BenchmarkRow(bench="b", what="w", value="12,345"), id="thousands"),
        pytest.param(
            row("b", "w", 0.123456, "s"), BenchmarkRow(bench="b", what="w", value="0.1235 s"), id="four digits, a unit"
        ),
        pytest.param(
            row("b", "w", 1.5, "×", at_most=1.5),
            BenchmarkRow(bench="b", what="w", value="1.5 ×", bar="≤ 1.5", ok=True),
            id="at the bar",
        ),
        pytest.param(
            row("b", "w", 1.51, at_most=1.5),
            BenchmarkRow(bench="b", what="w", value="1.51", bar="≤ 1.5", ok=False),
            id="over it",
        ),
        pytest.param(
            row("b", "w", 84.9, "%", at_least=85),
            BenchmarkRow(bench="b", what="w", value="84.9 %", bar="≥ 85", ok=False),
            id="under it",
        ),
        pytest.param(
            row("b", "w", 100, "%", at_least=100),
            BenchmarkRow(bench="b", what="w", value="100 %", bar="≥ 100", ok=True),
            id="all",
        ),
    ],
)
def test_a_row_is_a_figure_with_its_bar_and_its_verdict(made: BenchmarkRow, expected: BenchmarkRow) -> None:
    assert made == expected


def test_a_bench_yields_rows_of_its_name() -> None:
    rows = list(unit_costs.import_cost())
    assert [(found.bench, found.what.split()[-1]) for found in rows] == [
        ("import", "open_store"),
        ("import", "alone"),
    ]
    assert rows[1].ok is True


def test_a_missed_bar_is_exit_code_1_and_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def bench(data: Path | None) -> Iterator[BenchmarkRow]:
        yield row("slow", "one step", 9, "ms", at_most=3)
        yield row("slow", "another", 2, "ms", at_most=3)
        yield row("slow", "for information", 5)

    monkeypatch.setitem(BENCHES, "slow", bench)
    assert main(["slow"]) == 1
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["MISSED", "ok", "5"]
