"""``ctxsteward steward digest``: one week in sentences, without an id."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ctxsteward.console.steward.digest import digest_text, week_of
from ctxsteward.schemas import InputError

from .scenes import Desk, run, value

PICKUP = "Correction: pickup in Bonn ends at 18:00."
NOW = datetime.now(UTC)
TODAY = str(NOW.date())
WEEK = f"{NOW.isocalendar().year}-W{NOW.isocalendar().week:02}"


def busy(desk: Desk) -> None:
    """Somebody rejects a claim, and another brings back the version before the last."""
    id_ = next(one["id"] for one in value("review", *desk.where)["records"] if one["text"] == PICKUP)
    run("review", "--reject", id_, "--reason", "only until *May*", "--as", "ada", *desk.where, **desk.as_("ada"))
    run("rollback", "1", "--as", "otto", "--note", "ask the depot first", *desk.where, code=4, **desk.as_("otto"))


def test_the_digest_of_a_week_says_what_happened_in_sentences(desk: Desk, tmp_path: Path) -> None:
    busy(desk)
    path = tmp_path / "week.md"
    assert run("digest", "--out", str(path), *desk.where).stdout == ""
    text = path.read_text(encoding="utf-8")
    assert run("digest", "--week", WEEK, *desk.where).stdout == text
    assert text.splitlines().index("## What was taken out") <= 20, "the first screen says what is in force and waits"
    begin, _, rest = text.partition("## What waits for people: ")
    first = NOW.date() - timedelta(days=NOW.weekday())
    assert begin.splitlines() == [
        f"# Week {WEEK} of fernhollow-desk",
        "",
        f"From {first} to {first + timedelta(days=6)}. Version 3 is in force, with 0 learnt lines.",
        "",
        "## What came into force",
        "",
        f"- On {TODAY}, version 1 by shipped demo: the first, with 9 entries",
        f"- On {TODAY}, in version 2 by steward: “Never use emojis in your messages, please.”",
        "",
    ]
    waits, _, rest = rest.partition("## What was taken out\n")
    count, *rows = filter(None, waits.splitlines())
    assert (int(count), len(rows), rows[-1]) == (5, 5, "- and 1 more: `ctxsteward steward review`")
    out, _, rest = rest.partition("## What was rejected\n")
    assert out.splitlines() == [
        "",
        f"- On {TODAY}, in version 3: “Never use emojis in your messages, please.”, because otto brought version 1 "
        "back: ask the depot first.",
        "",
    ]
    assert rest.splitlines() == [
        "",
        f"- On {TODAY} ada rejected “{PICKUP}”: “only until \\*May\\*”",
        "",
        "## Errors that came up most in its transcripts",
        "",
        rest.splitlines()[-1],
    ]
    assert re.findall(r"\b[0-9a-f]{12,}\b", text) == [], "no hash"


def test_the_errors_of_a_week_are_those_of_its_transcripts(desk: Desk) -> None:
    found = value("digest", "--week", "2026-W47", *desk.where)
    assert (found["first"], found["last"]) == ("2026-11-16", "2026-11-22")
    assert (found["in_force"], found["taken_out"], found["rejected"]) == ([], [], [])
    errors = [(one["text"].partition(":")[0], one["transcripts"]) for one in found["errors"]]
    assert errors == [
        ("`refund` refuses the payment in `payment_id`", 3),
        ("`get_order` does not find `order_id`", 2),
        *errors[2:],
    ]
    assert {count for _, count in errors[2:]} == {1}
    assert found["waiting"][0]["text"] == PICKUP, "what waits is what waits now"


def test_a_week_in_which_nothing_happened_says_so(desk: Desk) -> None:
    text = digest_text(value("digest", "--week", "2020-W01", *desk.where) | {"waiting": []})
    assert text.splitlines() == [
        "# Week 2020-W01 of fernhollow-desk",
        "",
        "From 2019-12-30 to 2020-01-05. Version 2 is in force, with 1 learnt line.",
        "",
        "## What came into force",
        "",
        "Nothing came into force.",
        "",
        "## What waits for people: 0",
        "",
        "Nothing waits.",
        "",
        "## What was taken out",
        "",
        "Nothing was taken out.",
        "",
        "## What was rejected",
        "",
        "Nothing was rejected.",
        "",
        "## Errors that came up most in its transcripts",
        "",
        "No error with a known remedy.",
    ]


@pytest.mark.parametrize("text", ["48", "2026-W54", "2026-W00", "2026-48", "W48", "2026-W4", "0000-W01", ""])
def test_a_week_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        week_of(text, "2026-11-24")
    assert str(refused.value) == f"--week {text}: no such week; write one such as 2026-W48"


def test_without_a_week_it_is_that_of_today() -> None:
    assert [str(week_of(None, day)) for day in ("2026-11-23", "2026-11-29", "2026-11-30")] == [
        "2026-11-23",
        "2026-11-23",
        "2026-11-30",
    ]
