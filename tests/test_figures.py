"""A figure that stands in several documents is the same in all: commands write the tables, and pages quote them.

``python -m tests.test_figures`` writes the README's table anew.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Store, open_store
from ctxsteward.evals.documents import block_of, table_rows, write_blocks

from .postgres import PostgresServer

ROOT = Path(__file__).parents[1]


def rows(document: str, name: str) -> list[list[str]]:
    return table_rows(block_of((ROOT / document).read_text(encoding="utf-8"), name))


def chats(asked: str) -> tuple[str, str]:
    """Held-out percent of evidence shown at 4,000 tokens: at our default settings, and by the best baseline.

    Of long replies it is the passages that answer: four fifths of their words.
    """
    block = block_of((ROOT / "docs" / "selection.md").read_text(encoding="utf-8"), "chats")
    whole, _, passages = block.partition("By the passage")
    text = passages if asked == "assistant" else whole
    head, *body = (row for row in table_rows(text) if len(row) > 2)
    shown = {row[0]: row[head.index(f"{asked}, 4,000")].split(" / ")[1] for row in body}
    ours = shown["heuristic, defaults"]
    baselines = {name: share for name, share in shown.items() if not name.startswith(("heuristic", "oracle"))}
    best = max(baselines, key=lambda name: float(baselines[name]))
    return f"{ours} %", f"best baseline, {best}: {baselines[best]} %"


def prices(budget: str, column: str) -> dict[str, str]:
    """A column of the page on cost by row, at a budget: cost relative to sending everything, or another figure."""
    block = block_of((ROOT / "docs" / "cost.md").read_text(encoding="utf-8"), "cost")
    table = block[block.index(f"**all: 122 runs, 1,393 calls, {budget}**") :].split("\n\n**")[0]
    head, *body = (row for row in table_rows(table) if len(row) > 2)
    return {row[0]: row[head.index(column)] for row in body}


def readme_block() -> list[str]:
    """The README's table of figures, read from the demo and from the tables of the pages it links."""
    demo = json.loads(CliRunner().invoke(cli, ["demo", "--json"]).stdout)
    price, dearest = prices("default budgets", "all"), prices("default budgets", "dearest run")
    shown = {(row[0], row[1]): row[2] for row in rows("docs/selection.md", "recall") if len(row) > 2}
    milliseconds = {row[0]: row[-1] for row in rows("docs/benchmarks.md", "peers")[1:] if len(row) > 2}
    others = {name: ms for name, ms in milliseconds.items() if name != "everything" and not name.startswith("ours")}
    fastest = min(others, key=lambda name: float(others[name]))
    table = [
        (
            f"prompt tokens of the demo's {demo['calls']} calls at gpt-4o's prices",
            f"{demo['sent_priced_tokens']:,}",
            f"whole history: {demo['full_history_priced_tokens']:,}",
        ),
        (
            "[cost](docs/cost.md) of 122 agent runs, everything = 1; dearest run",
            f"{price['ours']}; {dearest['ours']}",
            f"window of 5 steps: {price['window of 5 steps']}; {dearest['window of 5 steps']}",
        ),
        (
            "[LoCoMo](docs/selection.md), development half: evidence shown in 900 tokens",
            f"{shown['heuristic, defaults', '900']} %",
            f"sliding window: {shown['recency', '900']} %",
        ),
        *(
            (
                f"[BEAM](docs/selection.md#long-messages), held-out half: {what} in 4,000 tokens",
                *chats(asked),
            )
            for what, asked in (
                ("evidence in users' words shown", "user"),
                ("passages of long replies that answer, shown", "assistant"),
            )
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
    shown = {row[1]: row[2] for row in rows("docs/selection.md", "recall") if row[0] == "heuristic, defaults"}
    asked = [
        *re.findall(r"(\S+ %) (?:of the evidence|of it)", page),
        *re.findall(r"(\S+ %)(?: \(held-out| \(\[fig)", page),
    ]
    assert asked == [f"{shown['4,000']} %", chats("user")[0], chats("assistant")[0]]
    (agent,) = re.findall(
        r"show (\S+) % of the values [^|]*?, and (\S+) % without .* is (\S+) of the .*, and (\S+) without [^|]*\|",
        page,
    )
    values, costs = prices("budget 4,000 tokens", "values, swe-agent, %"), prices("budget 4,000 tokens", "swe-agent")
    assert agent == tuple(column[row] for column in (values, costs) for row in ("ours, for tool loops", "ours"))


@pytest.mark.parametrize("sender", ["ours", "ours, no recall"])
def test_what_ours_costs_is_one_figure_on_all_pages(sender: str) -> None:
    """The pages count a little apart (one request head more or less): by less than what they print."""
    cost = prices("budget 4,000 tokens", "all")[sender]
    (beside,) = (row[2] for row in rows("docs/benchmarks.md", "peers") if row[0] == sender)
    assert float(beside) == pytest.approx(float(cost), abs=0.011)


SESSIONS, TURNS_EACH, PEAK = 1_000_000, 10, 3


def test_the_sizing_of_a_deployment_stands_on_measured_figures() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    table = [row for row in rows("benchmarks/figures.md", "bench") if len(row) > 2 and re.match(r"[\d,.]+ ", row[2])]
    measured = {row[1]: float(row[2].split()[0].replace(",", "")) for row in table}
    turns = SESSIONS * TURNS_EACH
    a_second = PEAK * turns / 86_400
    night, times, batches, turn_ms = (
        measured[row]
        for row in (
            "CPU of the full night, 10,000 transcripts",
            "store / its input, bytes, made-up transcripts",
            "of the full night, its batches: reading, harvest, artifacts, a transcript",
            "a user turn that recalls at 500 messages, p50",
        )
    )
    expected = {
        "turns a second at the peak": f"{a_second:,.0f}",
        "cores for builds at the peak": f"{a_second * turn_ms / 1000:.1f}",
        "journal (SQLite) a day": f"{turns * quoted_kilobytes('a SQLite journal') / 1e6:,.0f} GB",
        "tables and indexes (PostgreSQL) a day": f"{turns * quoted_kilobytes('PostgreSQL') / 1e6:,.0f} GB",
        "night: core hours of the batches": f"{SESSIONS * batches / 3_600_000:.1f}",
        "night: hours of one driver, one profile": f"{SESSIONS * (night / 10 - batches) / 3_600_000:.1f}",
        "night: what it stores": f"{SESSIONS * 6.3 * times / 1e6:.0f} GB",  # a transcript has 6.3 KB
    }
    assert dict(row for row in table_rows(page) if row[0] in expected) == expected


def quoted_kilobytes(store: str) -> float:
    """What a turn takes of a store, as the page on deploying says."""
    page = " ".join((ROOT / "docs" / "deploy.md").read_text(encoding="utf-8").split())
    return float(re.findall(rf"([\d.]+) KB of {store}", page)[0])


WORDS = "the order was late again and we asked the carrier for a date that nobody could give us"


def talk(characters: int, seed: int) -> str:
    """The same words in every run."""
    words = WORDS.split()
    said = ""
    while len(said) < characters:
        seed = (seed * 48271 + 11) % 2147483647
        said += words[seed % len(words)] + (f" {seed % 900}" if seed % 7 == 0 else "") + " "
    return said


def play(store: Store) -> int:
    """Play 20 sessions of ten turns; how many turns that were."""
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=2000))
    for number in range(20):
        session = store.session(f"chat-{number}")
        for turn in range(10):
            session.append({"role": "user", "content": talk(200, 100 * number + turn + 1)})
            builder.build(session)
            session.append({"role": "assistant", "content": talk(400, 7000 + 100 * number + turn)})
    store.close()
    return 200


def test_the_sizing_of_a_journal_is_what_its_file_takes(tmp_path: Path) -> None:
    turns = play(open_store(f"file:{tmp_path}"))
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as journal:
        journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    taken = (tmp_path / "journal.sqlite").stat().st_size / turns / 1000
    assert quoted_kilobytes("a SQLite journal") == pytest.approx(taken, abs=0.25)


def test_the_sizing_of_postgresql_is_what_its_tables_take(shared_postgres: PostgresServer, tmp_path: Path) -> None:
    turns = play(open_store(shared_postgres.uri("sizing", keys=str(tmp_path))))
    size = (
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'sizing' AND c.relkind = 'r'"
    )
    with psycopg.connect(host=str(shared_postgres.home), user="postgres", dbname="postgres") as connection:
        (taken,) = connection.execute(size).fetchone() or (0,)
    assert quoted_kilobytes("PostgreSQL") == pytest.approx(float(taken) / turns / 1000, abs=0.3)


if __name__ == "__main__":
    write_blocks(ROOT / "README.md", {"figures": readme_block()})
