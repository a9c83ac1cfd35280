"""The table of suites and subjects: each gate has a colour for each subject, and its findings are counted from them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.discriminate import GateColours, findings, main
from ctxsteward.evals.suites.gates import shipped_gates

DOCUMENT = Path(__file__).parents[2] / "benchmarks" / "discrimination.md"


def row(metric: str, rule: str = "at least 1", **subjects: tuple[str, float | None]) -> GateColours:
    colours = {name: colour for name, (colour, _) in subjects.items()}
    values = {name: value for name, (_, value) in subjects.items()}
    return GateColours(suite="made", metric=metric, rule=rule, colours=colours, values=values)  # type: ignore[arg-type]


def test_what_the_colours_say_of_the_gates_and_of_us() -> None:
    rows = [
        row("kept", ours=("green", 1.0), window=("red", 0.2)),
        row("blind", ours=("green", 1.0), window=("green", 1.0)),
        row("lost", ours=("red", 0.4), bm25=("green", 1.0)),
        row("cost", "at most 0.5", ours=("green", 0.4), summary=("green", 0.2), everything=("red", 0.1)),
        row("own", ours=("green", 1.0), window=("unscored", None)),
        row("unplayed"),
    ]
    assert list(findings(rows)) == [
        "- 4 gates can be asked of others, 2 look behind the messages at what only our product has.",
        "- Red for nobody: made `blind`. Red for ours: made `lost`.",
        "- A figure that some baseline has better than ours within its budget: made `lost`, made `cost`.",
    ]


def test_the_command_writes_the_table_and_refuses_a_page_without_a_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- baselines -->\n<!-- /baselines -->\n", encoding="utf-8")
    arguments = ["verbatim", "cache", "--subjects", "window", "--scenarios", "1", "--write", str(page)]

    assert main(arguments) == 0
    assert "| verbatim | `earlier_shown` at least 0.8 | all others |" in page.read_text(encoding="utf-8")
    page.write_text("nothing", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "no <!-- baselines -->" in capsys.readouterr().err


def test_the_document_has_a_row_for_every_gate_that_others_can_be_asked() -> None:
    """Else: python -m benchmarks.discriminate --write benchmarks/discrimination.md"""
    text = DOCUMENT.read_text(encoding="utf-8")
    told = {
        (suite, metric)
        for suite, gates in shipped_gates().items()
        for metric in gates
        if f"| {suite} | `{metric}` " in text
    }
    assert len(told) >= 49
    (nobody,) = re.findall(r"Red for nobody: (.*?)\. Red for ours", text)
    unfelt = re.findall(r"([a-z-]+) `(\w+)`", nobody)
    assert nobody == "none" or unfelt
    for suite, metric in unfelt:  # then one of our own mistakes turns it red
        assert re.search(rf"^\| .* \| {suite} \| .*\*\*{metric}\*\*", text, re.MULTILINE), metric
