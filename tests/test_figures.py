"""A figure that stands in several documents is the same in all: commands write the tables, and pages quote them.

``python -m tests.test_figures`` writes the README's table anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import open_store
from ctxsteward.evals.documents import block_of, table_rows, write_blocks

from .postgres import PostgresServer

ROOT = Path(__file__).parents[1]


def rows(document: str, name: str) -> list[list[str]]:
    return table_rows(block_of((ROOT / "docs" / document).read_text(encoding="utf-8"), name))


def chats(asked: str) -> tuple[str, str]:
    """Held-out percent of evidence shown at 4,000 tokens: at our default settings, and by the best baseline."""
    text = block_of((ROOT / "docs" / "selection.md").read_text(encoding="utf-8"), "chats").partition("By the passage")[
        0
    ]
    head, *body = (row for row in table_rows(text) if len(row) > 2)
    shown = {row[0]: row[head.index(f"{asked}, 4,000")].split(" / ")[1] for row in body}
    ours = shown["heuristic, defaults"]
    baselines = {name: share for name, share in shown.items() if not name.startswith(("heuristic", "oracle"))}
    best = max(baselines, key=lambda name: float(baselines[name]))
    return f"{ours} %", f"best baseline, {best}: {baselines[best]} %"


def readme_block() -> list[str]:
    """The README's table of figures, read from the demo and from the tables of the pages it links."""
    demo = json.loads(CliRunner().invoke(cli, ["demo", "--json"]).stdout)
    cost = block_of((ROOT / "docs" / "cost.md").read_text(encoding="utf-8"), "cost")
    runs = table_rows(cost[cost.index("**all: 122 runs, 1,393 calls, budget 4,000 tokens") :].split("\n\n**")[0])
    price = {row[0]: row[2] for row in runs}
    shown = {(row[0], row[1]): row[2] for row in rows("selection.md", "recall") if len(row) > 2}
    milliseconds = {row[0]: row[-1] for row in rows("benchmarks.md", "peers")[1:] if len(row) > 2}
    others = {name: ms for name, ms in milliseconds.items() if name != "everything" and not name.startswith("ours")}
    fastest = min(others, key=lambda name: float(others[name]))
    table = [
        (
            f"prompt tokens of the demo's {demo['calls']} calls at gpt-4o's prices",
            f"{demo['sent_priced_tokens']:,}",
            f"whole history: {demo['full_history_priced_tokens']:,}",
        ),
        (
            "[cost](docs/cost.md) of 122 public agent runs, whole history = 1, 4,000 tokens",
            price["ours"],
            f"window of 5 steps: {price['window of 5 steps']}",
        ),
        (
            "[LoCoMo](docs/selection.md), development half: evidence shown in 900 tokens",
            f"{shown['heuristic, defaults', '900']} %",
            f"sliding window: {shown['recency', '900']} %",
        ),
        *(
            (
                f"[BEAM](docs/selection.md#long-messages), {what}, held-out half: evidence shown in 4,000 tokens",
                *chats(asked),
            )
            for what, asked in (("words of users", "user"), ("long replies of assistants", "assistant"))
        ),
        (
            "[CPU](docs/benchmarks.md#beside-other-libraries) of a recalling call after 5,000 messages",
            f"{milliseconds['ours']} ms",
            f"fastest other library, {fastest}: {others[fastest]} ms",
        ),
    ]
    return [
        "",
        "| figure | ctxsteward, default settings | beside it |",
        "|---|---:|---:|",
        *(f"| {' | '.join(row)} |" for row in table),
        "",
    ]


def test_the_readme_quotes_the_demo_and_the_tables_of_its_pages() -> None:
    written = block_of((ROOT / "README.md").read_text(encoding="utf-8"), "figures").strip().splitlines()
    assert written == readme_block()[1:-1], "out of date: run `python -m tests.test_figures`"


def outside_blocks(text: str) -> list[str]:
    """Figures that stand in prose: percentages, tokens, times, sizes and prices."""
    plain = re.sub(r"^```.*?^```$|<!-- (\w+) -->.*?<!-- /\1 -->", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\d[\d,.]*\s*(?:%|tokens?\b|ms\b|seconds?\b|[KMG]B\b|\$|times\b|calls?\b)", plain)


def test_no_figure_of_the_readme_stands_outside_its_blocks() -> None:
    assert outside_blocks("It is 7 % and 12 ms.\n\n<!-- figures -->\n9 %\n<!-- /figures -->\n") == ["7 %", "12 ms"]
    assert outside_blocks((ROOT / "README.md").read_text(encoding="utf-8")) == []


def test_the_presets_of_budgets_quote_the_tables() -> None:
    page = (ROOT / "docs" / "choose-a-budget.md").read_text(encoding="utf-8")
    shown = {row[1]: row[2] for row in rows("selection.md", "recall") if row[0] == "heuristic, defaults"}
    asked = [
        *re.findall(r"(\S+ %) (?:of the evidence|of it)", page),
        *re.findall(r"(\S+ %)(?: \(held-out| \(\[fig)", page),
    ]
    assert asked == [f"{shown['4,000']} %", chats("user")[0], chats("assistant")[0]]


@pytest.mark.parametrize("sender", ["ours", "ours, no recall"])
def test_what_ours_costs_is_one_figure_on_all_pages(sender: str) -> None:
    """The pages count a little apart (one request head more or less): by less than what they print."""
    page = block_of((ROOT / "docs" / "cost.md").read_text(encoding="utf-8"), "cost")
    table = page[page.index("**all: 122 runs, 1,393 calls, budget 4,000 tokens") :].split("\n\n**")[0]
    (cost,) = (row[2] for row in table_rows(table) if row[0] == sender)
    (beside,) = (row[2] for row in rows("benchmarks.md", "peers") if row[0] == sender)
    assert float(beside) == pytest.approx(float(cost), abs=0.011)


def test_prose_about_cost_quotes_no_other_figure_than_the_tables() -> None:
    chosen = table_rows((ROOT / "docs" / "selection.md").read_text(encoding="utf-8"))
    page = block_of((ROOT / "docs" / "cost.md").read_text(encoding="utf-8"), "cost")
    for name, sender in (("a part that grows with it, up to a quarter", "ours"), ("nothing", "ours, no recall")):
        (shipped,) = (row for row in chosen if row[0] == name)
        for size, quoted in (("900", shipped[1]), ("4,000", shipped[3])):
            table = page[page.index(f"**tau-bench: 100 runs, 1,163 calls, budget {size} tokens") :]
            assert float(next(row for row in table_rows(table) if row[0] == sender)[2]) == float(quoted)


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
    night, times = (
        measured[row]
        for row in ("CPU of the full night, 10,000 transcripts", "store / its input, bytes, made-up transcripts")
    )
    assert f"NIGHT_MS = {night:.2f} * 1000 / 10_000" in page
    assert f"NIGHT_STORE_TIMES_INPUT, TRANSCRIPT_KB = {times}, 6.3" in page


def test_the_sizing_of_postgresql_is_what_its_tables_take(shared_postgres: PostgresServer, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    loop = re.findall(r"^```python\n(.*?)^with tempfile", page, re.MULTILINE | re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(loop, names)
    turns = names["play"](open_store(shared_postgres.uri("sizing", keys=str(tmp_path))))
    size = (
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'sizing' AND c.relkind = 'r'"
    )
    with psycopg.connect(host=str(shared_postgres.home), user="postgres", dbname="postgres") as connection:
        (taken,) = connection.execute(size).fetchone() or (0,)
    (quoted,) = re.findall(r"^POSTGRESQL_KB = ([\d.]+)", page, re.MULTILINE)
    assert float(quoted) == pytest.approx(float(taken) / turns / 1000, abs=0.3)


if __name__ == "__main__":
    write_blocks(ROOT / "README.md", {"figures": readme_block()})
