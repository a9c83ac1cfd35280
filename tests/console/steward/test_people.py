"""``ctxsteward steward review``, ``promote``, ``rollback``, ``actors``: who may do what, and what becomes of it."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree

from ctxsteward.envelope import Profile, open_store
from ctxsteward.steward.release.actors import Actors

from .scenes import Desk, run, value


def test_a_record_goes_from_held_to_in_force_by_two_signed_approvals(desk: Desk) -> None:
    id_ = desk.record()
    early = value("promote", id_, "--as", "otto", *desk.where, **desk.as_("otto"), code=3)
    assert (early["obstacle"], early["request"]) == ("needs_approval", None)

    said = value("review", id_, "--approve", "--as", "ada", "--note", "seen", *desk.where, **desk.as_("ada"))
    assert (said["kind"], said["who"], said["state"]) == ("record", "ada", "approved")
    staged = value("promote", id_, "--as", "otto", *desk.where, **desk.as_("otto"), code=3)
    assert (staged["obstacle"], staged["written"]) == ("held", False)
    assert any(line.startswith("+ `book`") for line in staged["changes"])

    waits = value("review", *desk.where, code=3)["requests"]
    assert [(one["id"], one["people"], one["approved"]) for one in waits] == [(staged["request"], 1, 0)]
    assert "+ meta." in run("review", staged["request"], *desk.where).stdout
    assert value("drift", *desk.where, code=1)["request"] == staged["request"]
    answer = value("review", staged["request"], "--approve", "--as", "ada", *desk.where, **desk.as_("ada"))
    assert (answer["kind"], answer["state"]) == ("request", "approved")

    landed = value("promote", staged["request"], "--as", "otto", *desk.where, **desk.as_("otto"))
    assert (landed["version"], landed["written"], landed["obstacle"]) == (3, True, None)
    assert value("log", *desk.where)[0]["promotion"]["approvals"][0]["who"] == "ada"
    assert value("run", *desk.where)["outcome"] == "unchanged", "the next night keeps what a person approved"


def test_a_record_that_is_rejected_is_used_no_more(desk: Desk) -> None:
    id_ = value("run", *desk.where)["records"]["held"][0]["id"]
    run("review", id_, "--reject", "--as", "ben", *desk.where, **desk.as_("ben"))
    assert value("why", id_, *desk.where)["record"]["status"] == "rejected"
    run("review", id_, "--approve", "--as", "ada", *desk.where, **desk.as_("ada"))
    assert value("why", id_, *desk.where)["record"]["status"] == "active", "the newest verdict counts"


def test_the_next_night_brings_an_approved_record_before_people(desk: Desk) -> None:
    id_ = desk.record()
    run("review", id_, "--approve", "--as", "ada", *desk.where, **desk.as_("ada"))
    night = value("run", *desk.where, code=3)
    assert (night["outcome"], night["waiting"]) == ("held", 1)
    request = value("review", *desk.where, code=3)["requests"][0]["id"]
    run("review", request, "--approve", "--as", "ben", *desk.where, **desk.as_("ben"))
    assert value("run", *desk.where)["outcome"] == "promoted"


def test_what_was_approved_comes_into_force_with_a_night_of_a_later_date(desk: Desk) -> None:
    id_ = desk.record()
    run("review", id_, "--approve", "--as", "ada", *desk.where, **desk.as_("ada"))
    value("run", "--night", "2026-12-01", *desk.where, code=3)
    asked = value("review", *desk.where, code=3)["requests"]
    value("run", "--night", "2026-12-02", *desk.where, code=3)
    assert value("review", *desk.where, code=3)["requests"] == asked, "nobody is asked twice"
    run("review", asked[0]["id"], "--approve", "--as", "ben", *desk.where, **desk.as_("ben"))
    assert value("run", "--night", "2026-12-03", *desk.where)["outcome"] == "promoted"


def test_a_token_is_never_printed(desk: Desk) -> None:
    id_, token = desk.record(), desk.tokens["ada"]
    ways = (
        {"args": ("--token", token), "more": {}},
        {"args": (), "more": {"env": {"CTXSTEWARD_TOKEN": token}}},
        {"args": ("--token", "-"), "more": {"input": f"{token}\n"}},
        {"args": ("--token", token[:-1] + "~"), "more": {}},
    )
    for way in ways:
        args = ("review", id_, "--approve", "--as", "ada", *way["args"], *desk.where)
        result = run(*args, code=None, **way["more"])  # type: ignore[arg-type]
        assert token not in result.output
        assert token[:-1] not in result.output


def test_a_rollback_is_a_new_version_and_an_operators(desk: Desk) -> None:
    assert "is no operator" in run("rollback", "1", "--as", "ada", *desk.where, **desk.as_("ada"), code=2).stderr
    found = value("rollback", "1", "--as", "otto", "--note", "too early", *desk.where, code=4, **desk.as_("otto"))
    assert found == {
        "version": 3, "restores": 1, "written": True, "who": "otto", "moved": 0, "open_sessions": [],
        "unknown_sessions": 0,
    }  # fmt: skip
    assert value("rollback", "1", "--as", "otto", *desk.where, **desk.as_("otto"))["written"] is False
    newest = value("log", *desk.where)[0]
    assert (newest["restores"], newest["who"], newest["why"]) == (1, "otto", "too early")


def test_a_rollback_names_the_open_sessions_that_it_does_not_reach_or_moves_them(desk: Desk) -> None:
    name, now = "fernhollow-desk", datetime.now(UTC)
    said = {"now": now.isoformat(), "long-ago": (now - timedelta(hours=7)).isoformat(), "timeless": None}
    with open_store(desk.where[1]) as store:
        for session, ts in said.items():
            opened = store.session(session, profile=Profile.head(store, name))
            opened.append({"role": "user", "content": "hello"}, ts=ts)
        store.session("older", profile=Profile.at(store, name, 1)).append({"role": "user", "content": "hello"})
        store.session("another's").append({"role": "user", "content": "hello"})

    told = run("rollback", "1", "--as", "otto", *desk.where, code=4, **desk.as_("otto")).stdout
    assert told.splitlines() == [
        "version 3 is in force; it says what version 1 said",
        "it does not reach 2 open sessions, which keep the version they began with: now (version 2), timeless "
        "(version 2); --move-sessions moves them",
    ]
    moved = value("rollback", "1", "--move-sessions", "--as", "otto", *desk.where, **desk.as_("otto"))
    assert (moved["written"], moved["moved"], moved["open_sessions"]) == (False, 2, [])
    with open_store(desk.where[1]) as store:
        kept = {session: (store.at("default", session).state.head.profile or {}).get("version") for session in said}
    assert kept == {"now": 3, "long-ago": 2, "timeless": 3}


def test_without_people_configured_a_rollback_asks_for_a_name_alone(night: Path, tmp_path: Path) -> None:
    where = ("--store", f"file:{copytree(night, tmp_path / 'store')}")
    assert "say who you are" in run("rollback", "1", *where, code=2).stderr
    assert value("rollback", "1", "--as", "ada", *where, code=4)["who"] == "ada"


def test_the_file_of_people_holds_no_token(tmp_path: Path) -> None:
    path = tmp_path / "people.yaml"
    kept = tmp_path / "ada.token"
    told = run("actors", "--add", "ada", "--role", "reviewer", "--actors", str(path), "--token-file", str(kept))
    token = kept.read_text().strip()
    assert len(token) >= 40
    assert token not in told.output + path.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    other = value("actors", "--add", "ben", "--role", "reviewer", "--role", "operator", "--actors", str(path))
    assert other["token"] not in path.read_text()
    assert {name: actor.roles for name, actor in Actors.load(path).actors.items()} == {
        "ada": ("reviewer",), "ben": ("reviewer", "operator"),
    }  # fmt: skip
    assert value("actors", "--actors", str(path)) == {"ada": ["reviewer"], "ben": ["reviewer", "operator"]}
    more = ("--role", "operator", "--actors", str(path), "--token-file", str(kept))
    again = run("actors", "--add", "cleo", *more, code=2)
    assert "file exists" in again.stderr
    assert "cleo" not in path.read_text()
