"""``ctxsteward steward review``, ``promote``, ``rollback``, ``actors``: who may do what, and what becomes of it."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.console.steward.actors import Voucher, add_actor, remove_actor, renew_actor
from ctxsteward.envelope import Profile, Store, open_store
from ctxsteward.steward.release.actors import ActionRefused, Actors, token_signer
from ctxsteward.steward.release.approvals import Approvals
from ctxsteward.store.maintenance.fsck import fsck

from ...store.profiles.agreed import EarlierVersions
from .scenes import Desk, run, value


def test_a_record_goes_from_held_to_in_force_by_two_signed_approvals(desk: Desk) -> None:
    id_ = desk.record()
    early = value("promote", id_, "--as", "otto", *desk.where, **desk.as_("otto"), code=3)
    assert (early["obstacle"], early["request"]) == ("needs_approval", None)
    assert re.fullmatch(
        rf"record {id_}\w* is (vetted|candidate), not active; a reviewer approves it first", early["why"]
    )

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
        "version": 3,
        "restores": 1,
        "written": True,
        "who": "otto",
        "moved": 0,
        "open_sessions": [],
        "unknown_sessions": 0,
    }
    assert value("rollback", "1", "--as", "otto", *desk.where, **desk.as_("otto"))["written"] is False
    newest = value("log", *desk.where)[0]
    assert (newest["restores"], newest["who"], newest["why"]) == (1, "otto", "too early")


def test_a_rollback_names_the_open_sessions_that_it_does_not_reach_or_moves_them(desk: Desk) -> None:
    name, now = "fernhollow-desk", datetime.now(UTC)
    said = {"now": now.isoformat(), "long-ago": (now - timedelta(hours=7)).isoformat(), "timeless": None}
    with open_store(desk.where[1]) as store:
        for session, ts in said.items():
            opened = store.session(session, profile=store.profiles(name).newest().profile)
            opened.append({"role": "user", "content": "hello"}, ts=ts)
        store.session("older", profile=store.profiles(name).at(1).profile).append({"role": "user", "content": "hello"})
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
    both = ("--role", "reviewer", "--role", "operator", "--actors", str(path))
    other = value("actors", "--add", "ben", *both, "--as", "ada", input=f"{token}\n")
    assert other["token"] not in path.read_text()
    assert {name: actor.roles for name, actor in Actors.load(path).actors.items()} == {
        "ada": ("reviewer",),
        "ben": ("reviewer", "operator"),
    }
    assert value("actors", "--actors", str(path)) == {"ada": ["reviewer"], "ben": ["reviewer", "operator"]}
    more = ("--role", "operator", "--actors", str(path), "--token-file", str(kept))
    again = run("actors", "--add", "cleo", *more, code=2)
    assert "file exists" in again.stderr
    assert "cleo" not in path.read_text()


# -- who enrols people ---------------------------------------------------------------------------------------------


class Enrolment(NamedTuple):
    id: str
    arguments: tuple[str, ...]
    words: str
    """Of the error."""


ENROLMENTS = [
    Enrolment("added by nobody", ("--add", "eve", "--role", "reviewer"), "needs a reviewer's signature (ada)"),
    Enrolment("an operator, too", ("--add", "eve", "--role", "operator"), "needs a reviewer's signature (ada)"),
    Enrolment("by an operator", ("--add", "eve", "--role", "reviewer", "--as", "otto"), "'otto' is no reviewer"),
    Enrolment("by somebody unknown", ("--add", "eve", "--role", "reviewer", "--as", "eve"), "not in the configuration"),
    Enrolment(
        "by another one's token", ("--add", "eve", "--role", "reviewer", "--as", "ada"), "not that of actor 'ada'"
    ),
    Enrolment("a key changed by nobody", ("--new-token", "ada"), "needs a reviewer's signature"),
    Enrolment("removed by nobody", ("--remove", "otto"), "needs a reviewer's signature"),
    Enrolment("the last reviewer removed", ("--remove", "ada"), "is the last reviewer"),
    Enrolment("added twice", ("--add", "ada", "--role", "operator"), "is there already"),
]


@pytest.mark.parametrize("asked", ENROLMENTS, ids=lambda one: one.id)
def test_after_the_first_reviewer_nobody_is_enrolled_without_a_signature(tmp_path: Path, asked: Enrolment) -> None:
    path = tmp_path / "actors.yaml"
    ada = add_actor(path, "ada", ("reviewer",))
    otto = add_actor(path, "otto", ("operator",), Voucher("ada", ada))
    before = path.read_bytes()

    done = run("actors", *asked.arguments, "--actors", str(path), code=2, input=f"{otto}\n")

    assert asked.words in done.stderr
    assert path.read_bytes() == before


def _night_store(folder: Path) -> Store:
    store = open_store(f"file:{folder}")
    store.profiles("desk").commit(Profile(name="desk"), who="x", why="first", when="2026-11-22T04:00:00+00:00")
    return store


def _people(path: Path) -> tuple[dict[str, str], Actors]:
    ada = add_actor(path, "ada", ("reviewer",))
    ben = add_actor(path, "ben", ("reviewer",), Voucher("ada", ada))
    return {"ada": ada, "ben": ben}, Actors.load(path)


def _add_by_hand(path: Path, tokens: dict[str, str]) -> None:
    key = token_signer("eve-has-a-token-of-her-own", Actors.load(path).salt).key
    path.write_text(path.read_text() + f"  'eve': {{roles: [reviewer], key: '{key}'}}\n")


def _add_forged(path: Path, tokens: dict[str, str]) -> None:
    key = token_signer("eve-has-a-token-of-her-own", Actors.load(path).salt).key
    line = f"  'eve': {{roles: [reviewer], key: '{key}', by: 'ada', signature: '{'0' * 128}'}}\n"
    path.write_text(path.read_text() + line)


def _swap_key(path: Path, tokens: dict[str, str]) -> None:
    actors = Actors.load(path)
    key = token_signer("eve-has-a-token-of-her-own", actors.salt).key
    path.write_text(path.read_text().replace(actors.actors["ben"].key, key))


def _new_file(path: Path, tokens: dict[str, str]) -> None:
    path.unlink()
    path.write_text(f"salt: '{'5a' * 16}'\nactors:\n  'eve': {{roles: [reviewer], key: '{_eve('5a' * 16)}'}}\n")


def _eve(salt: str) -> str:
    return token_signer("eve-has-a-token-of-her-own", salt).key


def _register(store: Store, path: Path) -> Approvals:
    approvals = Approvals(store, "desk", actors=Actors.load(path))
    approvals.enrol()
    return approvals


@pytest.mark.parametrize("attack", [_add_by_hand, _add_forged, _swap_key, _new_file], ids=lambda one: one.__name__[1:])
def test_a_line_written_into_the_file_by_hand_makes_nobody_a_reviewer(
    tmp_path: Path, attack: Callable[[Path, dict[str, str]], None]
) -> None:
    path = tmp_path / "actors.yaml"
    tokens, _ = _people(path)
    with _night_store(tmp_path / "store") as store:
        before = set(_register(store, path).enrol().now.items())
        attack(path, tokens)
        approvals = _register(store, path)

        assert set(approvals.enrol().now.items()) == before
        signer = token_signer("eve-has-a-token-of-her-own", approvals.actors.salt)
        with pytest.raises(ActionRefused) as refused:
            approvals.reviewer(signer, None)
        assert refused.value.reason == "not_enrolled"
        assert fsck(store).damage == ()


def test_whoever_was_removed_does_not_come_back_by_the_line_they_had(tmp_path: Path) -> None:
    path = tmp_path / "actors.yaml"
    tokens, _ = _people(path)
    by = Voucher("ada", tokens["ada"])
    with _night_store(tmp_path / "store") as store:
        _register(store, path)
        eve = add_actor(path, "eve", ("reviewer",), by)
        line = next(line for line in path.read_text().splitlines() if "'eve'" in line)
        assert _register(store, path).reviewer(eve, "eve")[0] == "eve"
        remove_actor(path, "eve", by)
        assert "eve" not in _register(store, path).enrol().now
        text = path.read_text()
        path.write_text(text[: text.index("removed:")] + line + "\n")

        with pytest.raises(ActionRefused, match="no reviewer of profile desk has signed that"):
            _register(store, path).reviewer(eve, "eve")


def test_a_new_token_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "actors.yaml"
    tokens, _ = _people(path)
    with _night_store(tmp_path / "store") as store:
        _register(store, path)
        fresh = renew_actor(path, "ben", by=Voucher("ada", tokens["ada"]))

        assert _register(store, path).reviewer(fresh, "ben")[0] == "ben"
        with pytest.raises(ActionRefused, match="the token is not that of"):
            _register(store, path).reviewer(tokens["ben"], "ben")


def test_a_statement_that_is_forged_in_the_store_is_found(tmp_path: Path) -> None:
    path = tmp_path / "actors.yaml"
    _people(path)
    with _night_store(tmp_path / "store") as store:
        _register(store, path)
        chain = store.chain("steward/default/desk/people", tenant="default")
        body = {"schema_version": 1, "kind": "enrolled", "who": "eve", "roles": ["reviewer"], "key": _eve("5a" * 16)}
        chain.append(chain.head(), body | {"replaces": None, "by": "ada", "signature": "0" * 128})

        assert [one.kind for one in fsck(store).damage] == ["people_forged"]


def test_a_stored_version_with_invented_approvals_is_named_by_fsck_doctor_and_log(desk: Desk) -> None:
    with open_store(desk.where[1]) as store:
        versions = EarlierVersions(store, "fernhollow-desk")
        head = versions.newest().profile
        flipped = head.model_copy(update={"policies": (), "version": None})
        number = versions.commit(flipped, who="eve", why="x", when="2026-11-29T00:00:00Z", promotion=CRASHING).number

    doctor = run("doctor", *desk.where, code=1)
    told = {one["name"]: one for one in value("doctor", *desk.where, code=1)}
    assert told["approvals"]["state"] == "wrong"
    assert f"version {number}" in told["approvals"]["found"]
    assert "approvals" in doctor.stdout
    assert "ann" in run("log", *desk.where).stdout
    run("status", *desk.where, code=None)
    checked = CliRunner().invoke(cli, ["store", "fsck", *desk.where])
    assert checked.exit_code == 1
    assert "approval_forged" in checked.stdout


CRASHING = {"approvals": [{"who": "ann"}, "bo"]}
"""No level, no verdicts, and something that is no person."""
