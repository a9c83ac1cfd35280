"""Dense sessions: what counts as shown, that nothing passes without having been told, and the bars that hold today."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.survival import (
    ALL,
    STATEMENTS,
    DenseSession,
    DenseStatement,
    _row,
    beam_session,
    dense_session,
    measure,
    play,
    totals,
)
from ctxsteward.schemas import InputError

from ..needs import PUBLIC_DATA

BEAM = Path(__file__).parents[2] / "../shared/sets/beam"
GENERATORS = ("memo", "slang", "label", "prose")
NEWER = DenseStatement(name="Oslo", value="week 9", stale="week 7", text="Oslo moved to week 9")
SAID = DenseSession(generator="memo", messages=(), statements=(NEWER,), idle=lambda: {"role": "user", "content": "hm"})


@pytest.mark.parametrize(
    ("window", "counts"),
    [
        pytest.param("- Oslo is in week 9 §3", (1, 0, 1), id="newest"),
        pytest.param("- Oslo is in week 7 §1", (0, 1, 0), id="stale alone"),
        pytest.param("- Oslo, week 7\n- Oslo, week 9", (1, 0, 0), id="both: shown and not resolved"),
        pytest.param("- Oslo is near\n- week 9", (0, 0, 0), id="value and name apart say nothing"),
        pytest.param("- Oslo is in week 95 §3", (0, 0, 0), id="inside a longer number"),
        pytest.param("", (0, 0, 0), id="nothing"),
    ],
)
def test_a_line_shows_a_statement_by_its_name_and_newest_value(window: str, counts: tuple[int, int, int]) -> None:
    row = _row(SAID, 500, "ours", window, 0)
    assert (row.survived, row.stale_alone, row.resolved) == counts


@pytest.mark.parametrize("generator", GENERATORS)
def test_sessions_are_the_same_for_a_seed_and_name_everything_once(generator: str) -> None:
    first, again, other = (dense_session(generator, seed, "dev") for seed in (1, 1, 2))
    assert first.messages == again.messages
    assert first.statements != other.statements
    assert len(first.statements) == STATEMENTS
    said = [wire["content"] for wire in first.messages]
    assert all(said.count(statement.text) == 1 for statement in first.statements)


def test_our_window_holds_its_bars_on_the_development_half() -> None:
    found = totals(measure(seeds=1, budgets=(1_000, 2_000)))
    ours, best, some = (found[ALL, name] for name in ("ours", "oracle", "random"))
    assert ours.survived >= 0.8 * best.survived
    assert ours.survived > 3 * some.survived
    assert ours.stale_alone == 0
    assert ours.resolved >= 0.6 * ours.updates


def test_a_folder_without_chats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pass the folder of BEAM chats"):
        beam_session(tmp_path, 0, "dev")


@pytest.mark.skipif(not BEAM.is_dir(), reason=PUBLIC_DATA)
def test_real_turns_make_a_session() -> None:
    made = beam_session(BEAM, 0, "dev")
    assert len(made.statements) > 5
    assert {row.strategy for row in play(made, 1_000)} >= {"ours", "oracle", "random"}
