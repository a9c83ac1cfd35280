"""A figure that stands in several documents is one: each table is written by its command, prose quotes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxsteward.evals.documents import block_of, table_rows

ROOT = Path(__file__).parents[1]


def rows(document: str, name: str) -> list[list[str]]:
    return table_rows(block_of((ROOT / "docs" / document).read_text(encoding="utf-8"), name))


def recall(strategy: str, tokens: str) -> int:
    """Evidence shown, percent."""
    (row,) = (row for row in rows("selection.md", "recall") if row[:2] == [strategy, tokens])
    return round(float(row[2]))


def test_the_readme_quotes_recall_as_it_was_measured() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    quoted = re.search(
        r"LoCoMo's evidence (\d+) % in a window of 900 tokens and (\d+) % in one of 4,000 \((\d+) % and (\d+) % "
        r"where all of it is recall's\); a sliding window of that size shows (\d+) % and (\d+) %",
        text,
    )
    assert quoted is not None
    names = ("heuristic, defaults", "heuristic", "recency")
    assert [int(one) for one in quoted.groups()] == [recall(n, size) for n in names for size in ("900", "4,000")]


def test_the_readme_quotes_the_demo_as_its_picture_draws_it() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    drawn = (ROOT / "docs" / "img" / "window.svg").read_text(encoding="utf-8")
    calls, sent, everything = re.findall(
        r"makes (\d+) model calls with ([\d,]+) prompt tokens; sending the whole history takes ([\d,]+)\.", text
    )[0]
    assert f"of {calls} model calls. All of the history: {everything} in all. Envelope: {sent}" in drawn


@pytest.mark.parametrize("sender", ["ours", "ours, no recall"])
def test_what_ours_costs_is_one_figure_on_all_pages(sender: str) -> None:
    """The pages count a little apart (one request head more or less): by less than what they print."""
    page = block_of((ROOT / "docs" / "cost.md").read_text(encoding="utf-8"), "cost")
    table = page[page.index("**all: 122 runs, 1,393 calls, budget 4,000 tokens") :].split("\n\n**")[0]
    (cost,) = (row[4] for row in table_rows(table) if row[0] == sender)
    (beside,) = (row[2] for row in rows("benchmarks.md", "peers") if row[0] == sender)
    assert float(beside) == pytest.approx(float(cost), abs=0.011)


def test_prose_about_cost_quotes_no_other_figure_than_the_tables() -> None:
    chosen = table_rows((ROOT / "docs" / "selection.md").read_text(encoding="utf-8"))
    page = block_of((ROOT / "docs" / "cost.md").read_text(encoding="utf-8"), "cost")
    for name, sender in (("a part that grows with it, up to a quarter", "ours"), ("nothing", "ours, no recall")):
        (shipped,) = (row for row in chosen if row[0] == name)
        for size, quoted in (("900", shipped[1]), ("4,000", shipped[3])):
            table = page[page.index(f"**tau-bench: 100 runs, 1,163 calls, budget {size} tokens") :]
            assert float(next(row for row in table_rows(table) if row[0] == sender)[4]) == float(quoted)


def test_the_sizing_of_a_deployment_stands_on_measured_figures() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    table = [row for row in rows("benchmarks.md", "bench") if len(row) > 2 and re.match(r"[\d,.]+ ", row[2])]
    measured = {row[1]: float(row[2].split()[0].replace(",", "")) for row in table}
    for name, row in (
        ("TURNS_ACKNOWLEDGED_A_SECOND", "acknowledged turns, 64 sessions in 64 threads"),
        ("RECALLING_TURN_MS", "a user turn that recalls at 500 messages, p50"),
        ("NIGHT_BATCHES_MS", "of the full night, its batches: reading, harvest, artifacts, a transcript"),
    ):
        assert float(re.findall(rf"^{name} = ([\d.]+)", page, re.MULTILINE)[0]) == measured[row], name
    night, times = (measured[row] for row in ("CPU of the full night, 10,000 transcripts",
                                              "store / its input, bytes, made-up transcripts"))  # fmt: skip
    assert f"NIGHT_MS = {night:.2f} * 1000 / 10_000" in page
    assert f"NIGHT_STORE_TIMES_INPUT, TRANSCRIPT_KB = {times}, 6.3" in page
