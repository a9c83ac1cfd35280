"""The watermark: every version of every transcript is processed once, in whatever order and however late it comes."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.schemas import ContextError
from ctxsteward.steward.ingest import watermark as module
from ctxsteward.steward.ingest.items import SourceItem
from ctxsteward.steward.ingest.watermark import Watermark, advanced, due, marker

from ...examples import examples

NEW = Watermark(source="s")
OVERLAP_SECONDS = 100.0


def mark(name: str, version: str) -> str:
    return f"{name}/{version}"


def item(name: str, modified_seconds: float, version: str = "1") -> SourceItem:
    return SourceItem("in", name, version, 0, modified_seconds)


def night(
    watermark: Watermark, items: list[SourceItem], now_seconds: float = 1e9, **told: object
) -> tuple[Watermark, list[str]]:
    tonight = due(items, watermark, mark=mark, **told)  # type: ignore[arg-type]
    after = advanced(watermark, items, tonight, mark=mark, now_seconds=now_seconds, overlap_seconds=OVERLAP_SECONDS)
    return after, [one.name for one in tonight]


def test_a_night_takes_what_is_new() -> None:
    items = [item("b", 1000), item("a", 500)]
    first, names = night(NEW, items)
    assert names == ["a", "b"]
    assert (first.high_seconds, first.floor_seconds, dict(first.marks)) == (1000, 900, {"b/1": 1000})
    assert night(first, items) == (first, [])
    assert night(first, [*items, item("c", 1000)])[1] == ["c"]


def test_what_comes_late_within_the_overlap_is_caught() -> None:
    first, _ = night(NEW, [item("a", 1000)])
    assert night(first, [item("a", 1000), item("late", 900), item("too-late", 899)])[1] == ["late"]


def test_what_changed_is_taken_again() -> None:
    first, _ = night(NEW, [item("a", 1000)])
    assert night(first, [item("a", 1000, "2")])[1] == ["a"]


def test_what_is_left_is_due_again_however_long_it_takes() -> None:
    items = [item("a", 500), item("b", 1000)]
    watermark = advanced(NEW, items, due(items, NEW, mark=mark), [items[0]], mark=mark, now_seconds=1e9)
    for time in (2000, 3000, 40_000_000):
        items.append(item(f"new-{time}", time))
        tonight = due(items, watermark, mark=mark)
        assert [one.name for one in tonight] == ["a", f"new-{time}"]
        watermark = advanced(watermark, items, tonight, [items[0]], mark=mark, now_seconds=1e9)
    watermark, names = night(watermark, items)
    assert names == ["a"]
    assert night(watermark, items)[1] == []


def test_a_clock_that_runs_fast_does_not_hide_the_rest() -> None:
    first, names = night(NEW, [item("a", 1000), item("future", 9e9)], now_seconds=2000)
    assert names == ["a", "future"]
    assert first.high_seconds == 2000
    assert night(first, [item("future", 9e9), item("b", 2500)], now_seconds=3000)[1] == ["b"]


def test_since_until_and_full() -> None:
    items = [item(str(time), time) for time in (100, 200, 1000)]
    first, _ = night(NEW, items)
    assert night(first, items, full=True)[1] == ["100", "1000", "200"]
    assert night(first, items, full=True, since_seconds=150.0)[1] == ["1000", "200"]
    assert night(first, items, since_seconds=150.0)[1] == ["200"]
    assert night(NEW, items, until_seconds=1000.0)[1] == ["100", "200"]


def test_what_a_later_since_passed_over_stays_due() -> None:
    items = [item("a", 100), item("b", 5000)]
    first, names = night(NEW, items, since_seconds=3000.0)
    assert names == ["b"]
    assert night(first, items)[1] == ["a"]


def test_an_empty_source_changes_nothing() -> None:
    assert advanced(NEW, [], [], mark=mark, now_seconds=5.0) == NEW


def test_marks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MARKS", 10)
    items = [item(str(number), 1000 + number) for number in range(50)]
    first, _ = night(NEW, items)
    assert len(first.marks) == 10
    assert night(first, items)[1] == []
    undone = advanced(NEW, items, items, [items[0]], mark=mark, now_seconds=1e9)
    assert len(undone.marks) <= 10
    assert items[0] in due(items, undone, mark=mark)


def test_json_and_back() -> None:
    first, _ = night(NEW, [item("b", 1000.25), item("a", 990)])
    text = json.dumps(first.to_json())
    assert Watermark.from_json(json.loads(text)) == first
    assert json.dumps(Watermark.from_json(json.loads(text)).to_json()) == text


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        [],
        {"schema_version": 2},
        {"schema_version": 1},
        {"schema_version": 1, "source": "s", "marks": []},
        {"schema_version": 1, "source": "s", "marks": {"a": "b"}},
        {"schema_version": 1, "source": "s", "marks": {}, "floor_seconds": math.nan},
        {"schema_version": 1, "source": "s", "marks": {}, "high_seconds": True},
    ],
)
def test_what_is_no_watermark_is_refused(value: object) -> None:
    with pytest.raises(ContextError):
        Watermark.from_json(value)


def test_a_mark_is_keyed_and_tells_source_name_and_version() -> None:
    from ctxsteward.store.crypto.keyring import AddressKey

    ours, theirs = AddressKey(b"k" * 32), AddressKey(b"x" * 32)
    marks = {
        make(name, version)
        for make in (marker(ours, "s"), marker(ours, "t"), marker(theirs, "s"))
        for name, version in (("a", "1"), ("a", "2"), ("b", "1"))
    }
    assert len(marks) == 9
    assert all(len(one) == 32 for one in marks)


ARRIVALS = st.lists(
    st.tuples(
        st.integers(0, 7),  # the night it is first listed on
        st.integers(-100, 60),  # when it says it was written, against that night
        st.integers(0, 5),  # which file: a name twice is a file that grew
    ),
    max_size=30,
)


@given(ARRIVALS, st.randoms(use_true_random=False), st.sets(st.integers(0, 7)), st.integers(0, 3))
@settings(max_examples=examples(300))
def test_every_version_is_processed_exactly_once(
    arrivals: list[tuple[int, int, int]], random: object, killed: set[int], failing: int
) -> None:
    """Nights 100 s apart, late and early files, shuffled listings, killed nights that keep nothing, repeated nights,
    a file that cannot be read for three nights."""
    watermark, processed = NEW, Counter[str]()
    everything: dict[str, SourceItem] = {}
    for number in range(9):
        now_seconds = 1000.0 + 100 * number
        for serial, (first, offset, name) in enumerate(arrivals):
            if first == number:
                everything[f"{name}"] = item(f"{name}", now_seconds + min(offset, 40), f"v{serial}")
        for _ in range(2):
            items = list(everything.values())
            random.shuffle(items)  # type: ignore[attr-defined]
            tonight = due(items, watermark, mark=mark)
            left = [one for one in tonight if one.name == str(failing) and number < 3]
            if number not in killed or number == 8:
                watermark = advanced(
                    Watermark.from_json(watermark.to_json()),
                    items,
                    tonight,
                    left,
                    mark=mark,
                    now_seconds=now_seconds,
                    overlap_seconds=OVERLAP_SECONDS + 40,
                )
                processed.update(mark(one.name, one.version) for one in tonight if one not in left)
    assert all(count == 1 for count in processed.values())
    assert {mark(one.name, one.version) for one in everything.values()} <= set(processed)
