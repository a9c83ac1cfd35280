"""Figures: one form for one figure, whatever its spelling; a bound tells the most from the least."""

from __future__ import annotations

import pytest

from ctxsteward.language.figures import changed_figure, figures

SAME = (
    ("1,000 items", "1000 items"),
    ("one thousand items", "1000 items"),
    ("24 hours", "one day"),
    ("9 am", "09:00"),
    ("5:30 pm", "17:30"),
    ("$1,200", "1200 dollars"),
    ("USD 50", "$50"),
    ("$1.5k", "$1500"),
    ("20 percent", "20%"),
    ("at most 5 links", "no more than five links"),
    ("never more than 5 links", "up to 5 links"),
    ("3 November 2026", "2026-11-03"),
    ("November 3, 2026", "3rd of November 2026"),
    ("三十天", "30 天"),
    ("二十四小时内", "24小时以内"),
    ("不超过三句话", "最多3句话"),
    ("百分之二十", "20%"),
    ("两万元", "20000元"),
    ("half an hour", "30 minutes"),
    ("twice", "2 times"),
)
OTHER = (
    ("30 days", "45 days"),
    ("30 days", "30 hours"),
    ("at most 5", "at least 5"),
    ("不超过三次", "不少于三次"),
    ("9 am", "9 pm"),
    ("$50", "€50"),
    ("5%", "50%"),
    ("三天", "十三天"),
    ("2026-11-03", "2026-12-03"),
)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_figure_in_two_spellings_is_one(one: str, other: str) -> None:
    assert changed_figure(one, other) is None
    assert [figure[:2] for figure in figures(one)] == [figure[:2] for figure in figures(other)] != []


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_figure_is_seen(one: str, other: str) -> None:
    assert changed_figure(one, other) is not None


@pytest.mark.parametrize("text", ["no one", "one another", "一般", "一定", "万一", "step by step", ""])
def test_no_figure_is_made_up(text: str) -> None:
    assert figures(text) == ()
