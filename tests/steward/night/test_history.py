"""Stages whose yield is out of the ordinary: judged one by one, told by every status of the nights they were in."""

from __future__ import annotations

import pytest

from ctxsteward.envelope.testing import memory_store
from ctxsteward.steward.night.alerts import alerts
from ctxsteward.steward.night.chain import Night

from ..scenes import chain_of

USUAL = {
    "due": 10,
    "harvested": 9,
    "absorbed": 20,
    "reconciled": 50,
    "admitted": 8,
    "fitted": 4,
    "staged": 1,
    "promoted": 1,
}


def night(number: int = 1, **counts: int) -> Night:
    told = {**USUAL, **counts}
    return Night(night=f"2026-11-{number:02}", run=f"n{number}", ledger="", outcome="unchanged", final="", counts=told)


WEEK = [night(n) for n in range(1, 8)]
QUIET = {**USUAL, "due": 0, "harvested": 0, "absorbed": 0}

CASES: list[tuple[str, dict[str, int], list[Night], tuple[str, ...]]] = [
    ("as ever", {}, WEEK, ()),
    ("the first night", {}, [], ()),
    ("nothing harvested", {"harvested": 0}, WEEK, ("harvested: nothing, though 10 were due",)),
    ("nothing new", {"absorbed": 0}, WEEK, ("absorbed: nothing, though 10 were due",)),
    ("nothing of what was due is the steward's business", {"harvested": 0, "absorbed": 0, "readable": 0}, WEEK, ()),
    (
        "nothing harvested of what is",
        {"harvested": 0, "absorbed": 0, "readable": 3},
        WEEK,
        ("harvested: nothing, though 3 were due", "absorbed: nothing, though 3 were due"),
    ),
    ("a night after many of others' sessions", {}, [night(harvested=0, absorbed=0, readable=0)] * 7, ()),
    ("nothing harvested, on the first night", {"harvested": 0}, [], ("harvested: nothing, though 10 were due",)),
    ("no record for many, where there never was one", {"admitted": 0}, [night(admitted=0)] * 7, ()),
    ("no record any more", {"admitted": 0}, WEEK, ("admitted: nothing, though the night before had 8",)),
    ("the slice emptied", {"fitted": 0}, WEEK, ("fitted: nothing, though the night before had 4",)),
    ("all claims gone", {"reconciled": 0}, WEEK, ("reconciled: nothing, though the night before had 50",)),
    ("nothing staged or promoted", {"staged": 0, "promoted": 0}, WEEK, ()),
    ("nothing due", QUIET, WEEK, ("due: nothing, though nights have 10",)),
    ("nothing due, as on most nights", QUIET, [night(due=0)] * 4 + WEEK[:3], ()),
    (
        "too much read",
        {"due": 30, "harvested": 27},
        WEEK,
        ("due: 30, 3.0 × the median of 7 nights", "harvested: 27, 3.0 × the median of 7 nights"),
    ),
    ("almost too much read", {"due": 29, "harvested": 26}, WEEK, ()),
    ("too much said", {"absorbed": 61}, WEEK, ("absorbed: 61, 3.0 × the median of 7 nights",)),
    ("too much admitted", {"admitted": 30}, WEEK, ("admitted: 30, 3.8 × the median of 7 nights",)),
    ("too much known", {"reconciled": 150}, WEEK, ("reconciled: 150, 3.0 × the median of 7 nights",)),
    ("too few nights to say", {"absorbed": 900}, WEEK[:2], ()),
    ("a first record is none too many", {"admitted": 2}, [night(admitted=0)] * 7, ()),
    ("from nothing to many", {"admitted": 3}, [night(admitted=0)] * 7, ("admitted: 3, 3.0 × the median of 7 nights",)),
    (
        "older nights do not count",
        {"absorbed": 61},
        [night(absorbed=900)] * 5 + WEEK,
        ("absorbed: 61, 3.0 × the median of 7 nights",),
    ),
    (
        "nights that read nothing do not count",
        {"absorbed": 61},
        [*WEEK[:4], *[night(due=0, absorbed=0)] * 3],
        ("absorbed: 61, 3.0 × the median of 4 nights",),
    ),
]


@pytest.mark.parametrize(("counts", "earlier", "told"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_nothing_or_three_times_the_median_of_a_stage_is_an_alert(
    counts: dict[str, int], earlier: list[Night], told: tuple[str, ...]
) -> None:
    assert alerts({**USUAL, **counts}, earlier) == told


def test_each_night_is_judged_by_those_before_it() -> None:
    odd = [report.alerts for report in chain_of(memory_store(), *WEEK, night(8, absorbed=0), night(9)).reports(9)]
    assert odd == [(), (), (), (), (), (), (), ("absorbed: nothing, though 10 were due",), ()]


def test_status_tells_alerts_and_rates_of_the_nights_it_shows() -> None:
    store = memory_store()
    used = {"judged": 4, "fired": 1, "complied": 1, "contradicted": 1, "events": 0}
    nights = chain_of(store, *WEEK, night(8, absorbed=99, **used), night(9))
    last = nights.reports(2)[::-1]
    assert [(night.night, night.alerts) for night in last] == [
        ("2026-11-09", ()),
        ("2026-11-08", ("absorbed: 99, 5.0 × the median of 7 nights",)),
    ]
    assert last[1].rates == {"used": 0.25, "obeyed": 0.5}
