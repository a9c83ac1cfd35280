"""The tables of the page on cost: one for each budget and each format of runs."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.cost import cost_block

from .test_agent_costs import agent_run

ROOT = Path(__file__).parents[2]


def test_the_block_has_a_table_for_each_budget(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(agent_run(16)), encoding="utf-8")
    lines = list(cost_block([path], (700, None)))

    assert lines[0] == "A cached token costs 0.1, a written one 1.25; block 1,024 tokens."
    assert [line for line in lines if line.startswith("**")] == [
        "**openai: 1 runs, 17 calls, budget 700 tokens**",
        "**openai: 1 runs, 17 calls, default budgets**",
    ]


def test_the_tables_of_the_page_are_generated_and_whole() -> None:
    page = (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")
    block = page[page.index("<!-- cost -->") : page.index("<!-- /cost -->")]
    rows = [line for line in block.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1
    assert sum(row.startswith("| mask every step |") for row in rows) == block.count("**") // 2
