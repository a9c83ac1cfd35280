"""A stored version whose `promotion` has another form than the steward writes is shown, and crashes no command."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.envelope import open_store

from .scenes import Desk, run, value

BLOB = {"blob": "b" * 64, "key": "k" * 64}
SOUND: dict[str, Any] = {"schema_version": 1, "level": "INFO", "touched": [], "approvals": []}
CANARY = {"share": 0.5, "champion": 1}
ODD: dict[str, tuple[Any, str]] = {
    "a text": ("agreed", "promotion"),
    "a list": ([1, 2], "promotion"),
    "zero": (0, "promotion"),
    "an empty object": ({}, ""),
    "a level that is a list": (SOUND | {"level": ["INFO"]}, "level"),
    "approvals that are a number": (SOUND | {"approvals": 7}, "approvals"),
    "approvals of nobody": (SOUND | {"approvals": [None, {}, {"who": 5}]}, ""),
    "a canary that is a number": (SOUND | {"canary": 5}, "canary"),
    "a canary without a share": (SOUND | {"canary": {"champion": 1}}, "canary"),
    "a canary with a text for a share": (SOUND | {"canary": CANARY | {"share": "half"}}, "canary"),
    "a canary of no version": (SOUND | {"canary": CANARY | {"champion": None}}, "canary"),
    "an empty canary": (SOUND | {"canary": None}, "canary"),
    "reports that are texts": (SOUND | {"drift": "d", "gate": None, "patch": 3}, "drift, gate, patch"),
    "a report without an address": (SOUND | {"gate": {"key": "k"}}, "gate"),
    "a report that is not there": (SOUND | {"drift": BLOB, "gate": BLOB, "patch": BLOB}, ""),
    "touched that is a number": (SOUND | {"touched": 3}, "touched"),
    "a list of what was taken back": (SOUND | {"taken_back": [1]}, "taken_back"),
    "a text for the last approved version": (SOUND | {"approved": "two"}, "approved"),
}
COMMANDS = (("log", "--markdown"), ("review",), ("doctor",), ("status",), ("digest",))


def with_promotion(desk: Desk, odd: Any) -> int:
    """Repeat the newest version with this promotion; the new version's number."""
    with open_store(desk.where[1]) as store:
        versions = store.profiles("fernhollow-desk")
        link = versions.newest().link
        return versions._chain.append(link, {**link.body, "promotion": odd}, commit_id="odd").number


@pytest.mark.parametrize(("odd", "unreadable"), ODD.values(), ids=ODD.keys())
def test_no_command_ends_in_a_traceback(desk: Desk, odd: Any, unreadable: str) -> None:
    number = with_promotion(desk, odd)
    for command in COMMANDS:
        done = run(*command, *desk.where, code=None)
        assert done.exception is None or isinstance(done.exception, SystemExit), (command, done.exception)
    rows = value("log", *desk.where)
    assert rows[0]["version"] == number
    assert ", ".join((rows[0]["promotion"] or {}).get("unreadable", ())) == unreadable
    assert f"cannot be read: {unreadable}" in run("log", *desk.where).stdout or not unreadable
