"""``ctxsteward steward propose``: what it stages, what it carries over, what it leaves out, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ctxsteward.console.steward.context import shipped_folder

from .scenes import Desk, run, value

KEYS = [
    "outcome",
    "profile",
    "parent",
    "author",
    "request",
    "state",
    "people",
    "level",
    "touched",
    "touches_locked",
    "obstacle",
    "why",
    "changes",
    "drift",
    "gate",
    "findings",
    "dry_run",
]
HOURS = "meta:\n  hours: {text: The desk answers until eight in the evening., sources: [SOURCE]}\n"


def edited(desk: Desk, *edits: tuple[str, str], more: str = "") -> str:
    """The profile that the chain began with, edited."""
    text = (shipped_folder() / "profile.yaml").read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = desk.root / "desk.yaml"
    path.write_text(text + more, encoding="utf-8")
    return str(path)


def propose(desk: Desk, *args: str, who: str = "ada") -> Any:
    return value("propose", *args, "--token", desk.tokens[who], *desk.where)


def agree(desk: Desk, request: str, name: str) -> Any:
    desk.approve(request, name)
    return value("promote", request, "--token", desk.tokens["otto"], *desk.where)


def objects(desk: Desk) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (desk.root / "store" / "objects").rglob("*.*") if path.is_file()}


def test_a_change_of_the_persona_goes_from_a_file_into_force_with_one_other_person(desk: Desk) -> None:
    learned = desk.head().meta
    assert learned, "the night has learned something"
    found = propose(desk, edited(desk, ("friendly and brief", "calm and brief")), "--note", "warmer words")

    assert list(found) == KEYS
    assert (found["outcome"], found["author"], found["people"], found["touched"]) == (
        "staged",
        "ada",
        1,
        ["persona.voice"],
    )
    assert found["changes"] == [
        "~ persona.voice: friendly and brief; short sentences → calm and brief; short sentences"
    ]
    assert value("review", *desk.where, code=3)["requests"][0]["note"] == "warmer words"
    assert agree(desk, found["request"], "ben")["written"] is True
    head = desk.head()
    assert (head.version, head.persona[0].text, head.meta) == (3, "calm and brief; short sentences", learned)


def test_the_same_file_again_stages_nothing_and_makes_no_version(desk: Desk) -> None:
    before, file = objects(desk), edited(desk)

    assert propose(desk, file)["outcome"] == "unchanged"
    assert "says that already; nothing was staged" in run("propose", file, "--dry-run", *desk.where).stdout
    assert value("run", "--profile", file, *desk.where)["version"] == 2
    assert objects(desk).keys() >= before.keys()
    assert len(value("log", *desk.where)) == 2


def test_a_dry_run_says_the_same_asks_nobody_and_keeps_nothing(desk: Desk) -> None:
    before, file = objects(desk), edited(desk, ("friendly and brief", "calm and brief"))
    found = value("propose", file, "--dry-run", *desk.where)

    assert (found["dry_run"], found["outcome"], found["author"], found["people"]) == (True, "staged", "nobody", 1)
    assert objects(desk) == before
    assert propose(desk, file)["level"] == found["level"]


def test_sources_that_are_nowhere_keep_a_record_out_unless_people_vouch(desk: Desk) -> None:
    file = edited(desk, more=HOURS.replace("SOURCE", "nobody-7§3"))
    found = propose(desk, file)
    assert (found["outcome"], [one["kind"] for one in found["findings"]]) == ("unchanged", ["meta_source_unresolved"])

    vouched = propose(desk, file, "--vouch", "hours")
    assert (vouched["outcome"], vouched["people"]) == ("staged", 1)
    assert (
        "record hours: nobody-7§3 cannot be resolved; it stays because it is vouched for"
        in vouched["findings"][0]["text"]
    )
    run("promote", vouched["request"], "--token", desk.tokens["otto"], *desk.where, code=3)
    agree(desk, vouched["request"], "ben")
    assert desk.head().meta[0].id == "hours"
    assert propose(desk, file)["outcome"] == "unchanged", "what is in force is not asked again"


def test_sources_that_were_harvested_resolve_and_the_record_still_needs_a_person(desk: Desk) -> None:
    source = desk.head().meta[0].sources[0]
    found = propose(desk, edited(desk, more=HOURS.replace("SOURCE", source)))

    assert (found["outcome"], found["people"], found["findings"]) == ("staged", 1, [])
