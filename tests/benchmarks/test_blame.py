"""Planted causes are found, and where none is planted nobody is accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.blame import cases, longest_overlap, ours, scored

from ..examples import examples
from ..needs import PUBLIC_DATA

DATA = Path(__file__).parents[2] / "../shared/data"


@pytest.mark.skipif(not DATA.is_dir(), reason=PUBLIC_DATA)
def test_planted_causes_are_found_and_hardly_anybody_is_accused_wrongly() -> None:
    made = list(cases(DATA, examples(500), half=1))

    counts, baseline = scored(made, ours), scored(made, longest_overlap)

    assert counts["found"] >= 0.8 * counts["planted"] > 0  # the bar of 500 cases is .9; fifty may be unlucky
    assert counts["rightly not told"] >= 0.85 * counts["none"] > 0
    assert counts["wrong"] <= 0.06 * len(made) < baseline["wrong"]
