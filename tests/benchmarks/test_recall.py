"""The tables of the page on selection: a row for every ranking and every variant."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.recall import CHATS, TALK, VARIANTS, chats_table, main
from ctxsteward.evals.documents import block_of
from ctxsteward.evals.recall import measure

from ..evals.test_asked_chats import chat, folder
from ..evals.test_recall import sample, written


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_ranks_the_facts(tmp_path: Path, name: str) -> None:
    (row,) = measure(written(tmp_path, [sample()]), selector=VARIANTS[name], budgets_tokens=(200,))
    assert row.mean > 50


def test_the_table_of_chats_has_a_row_for_every_ranking_and_both_halves(tmp_path: Path) -> None:
    lines = list(chats_table(folder(tmp_path, chat=chat(12))))
    assert lines[0].startswith("2 and 0 / 2 and 0 questions about what users and the assistant said; percent;")
    names = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    assert names == ["ranking", *CHATS, "ranking, by passage", *CHATS]


def test_the_tables_of_the_page_are_generated_and_whole() -> None:
    page = (Path(__file__).parents[2] / "docs" / "selection.md").read_text(encoding="utf-8")
    for name, wanted in (("recall", TALK), ("variants", VARIANTS), ("chats", CHATS)):
        rows = [line for line in block_of(page, name).splitlines() if line.startswith("|")]
        assert {ranking for ranking in wanted if not any(row.startswith(f"| {ranking} |") for row in rows)} == set()


def test_a_page_without_a_place_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- recall --><!-- /recall -->", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path / "nowhere.json"), "--write", str(page)])
    assert stopped.value.code == 2
    assert "no <!-- variants --> followed by <!-- /variants -->" in capsys.readouterr().err
