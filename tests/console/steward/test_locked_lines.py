"""A locked line turned round: whoever tries to bring it into force, by whatever command or call, it stays out."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.envelope import Profile, open_store
from ctxsteward.schemas import ContextError
from ctxsteward.steward.gate.settings import GateSettings, configured
from ctxsteward.steward.release.actors import Actors
from ctxsteward.steward.release.approvals import Approvals
from ctxsteward.steward.release.promotion import assess, promote, rollback, stage
from ctxsteward.store.profiles.proposal import bootstrap

from .scenes import people, run, transcript, value

PROFILE = """\
name: desk
persona: {voice: calm}
policies:
  refunds:
    {text: Never refund more than 200 EUR without a person., modality: must_not, value: 200, unit: EUR, locked: true}
"""
FLIP = PROFILE.replace("Never refund more than 200 EUR without a person.", "Refund up to 9000 EUR at once.").replace(
    "must_not, value: 200", "may, value: 9000"
)
WHEN = "2026-11-22T04:00:00+00:00"
IN_FORCE = Profile.from_yaml(PROFILE).policies


class Desk:
    """A store with the profile in force, people, and the flip in a file."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "store"
        self.store = f"file:{self.folder}"
        self.profile, self.flip, self.transcripts = root / "desk.yaml", root / "flip.yaml", str(root / "in")
        self.tokens: dict[str, str] = json.loads((root / "tokens.json").read_text())

    def cli(self, *args: str) -> Result:
        return CliRunner().invoke(cli, [*args, "--store", self.store])

    def propose(self, *more: str) -> dict[str, Any]:
        told = run("propose", str(self.flip), *more, "--json", "--store", self.store, code=None)
        found: dict[str, Any] = json.loads(told.stdout)
        return found

    def policies(self) -> tuple[Any, ...]:
        with open_store(self.store) as store:
            return store.profiles("desk").newest().profile.policies


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For all tests: none writes into it."""
    root = tmp_path_factory.mktemp("prepared")
    (root / "desk.yaml").write_text(PROFILE, encoding="utf-8")
    (root / "flip.yaml").write_text(FLIP, encoding="utf-8")
    transcript(root / "in" / "one.json", "Hello, where is my parcel?", "On its way.")
    (root / "tokens.json").write_text(json.dumps(people(root / "store")))
    Desk(root).cli("backfill", "--snapshot", "--profile", str(root / "desk.yaml"), "--as", "ada")
    return root


@pytest.fixture
def desk(prepared: Path, tmp_path: Path) -> Desk:
    return Desk(copytree(prepared, tmp_path / "desk"))


def by_run(desk: Desk) -> None:
    done = desk.cli("steward", "run", "--profile", str(desk.flip), "--transcripts", desk.transcripts)
    assert done.exit_code == 2
    assert "`ctxsteward steward propose FILE`" in done.stderr


def by_dry_run(desk: Desk) -> None:
    assert desk.cli("steward", "run", "--dry-run", "--profile", str(desk.flip)).exit_code == 2


def by_backfill(desk: Desk) -> None:
    done = desk.cli("backfill", "--snapshot", "--profile", str(desk.flip))
    assert done.exit_code == 2
    assert "`ctxsteward steward propose FILE`" in done.stderr


def by_promoting_it_unapproved(desk: Desk) -> None:
    request = desk.propose("--token", desk.tokens["otto"])["request"]
    told = value("promote", request, "--token", desk.tokens["otto"], "--store", desk.store, code=3)
    assert (told["obstacle"], told["written"]) == ("needs_approval", False)


def by_one_reviewer(desk: Desk) -> None:
    request = desk.propose("--token", desk.tokens["otto"])["request"]
    run("review", request, "--approve", "--token", desk.tokens["ada"], "--store", desk.store)
    run("promote", request, "--token", desk.tokens["otto"], "--store", desk.store, code=3)


def by_its_author_and_one_other(desk: Desk) -> None:
    request = desk.propose("--token", desk.tokens["ada"])["request"]
    said = run("review", request, "--approve", "--token", desk.tokens["ada"], "--store", desk.store, code=2).stderr
    assert "'ada' made this change; somebody else must approve it" in said
    run("review", request, "--approve", "--token", desk.tokens["ben"], "--store", desk.store)
    run("promote", request, "--token", desk.tokens["otto"], "--store", desk.store, code=3)


def by_a_name_that_is_not_theirs(desk: Desk) -> None:
    said = run("propose", str(desk.flip), "--as", "ben", "--token", desk.tokens["ada"], "--store", desk.store, code=2)
    assert "the token is not that of actor 'ben'" in said.stderr


def by_a_rollback_beyond(desk: Desk) -> None:
    run("rollback", "2", "--token", desk.tokens["otto"], "--store", desk.store, code=2)


def by_another_tenants_file(desk: Desk) -> None:
    assert desk.cli("backfill", "--snapshot", "--profile", str(desk.flip), "--tenant", "other").exit_code == 0


def _by_api(call: Callable[[Any, Profile], object]) -> Callable[[Desk], None]:
    def door(desk: Desk) -> None:
        with open_store(desk.store) as store, suppress(ContextError):
            call(store, Profile.from_yaml(FLIP))

    return door


NOTE: dict[str, str] = {"who": "mallory", "why": "by hand", "when": WHEN}


def _promoted(store: Any, flip: Profile, *, ask: bool = True, drift_of: Profile | None = None) -> object:
    versions = store.profiles("desk")
    drift = assess(versions, drift_of or flip, parent=1, when=WHEN)
    gate = configured(GateSettings())(versions.at(1).profile, flip)
    actors = Actors(salt="5a" * 16, actors={})
    approvals = Approvals(store, "desk", actors=actors) if ask else None
    found = promote(store, "desk", flip, drift, gate, approvals, "steward", "night", WHEN, parent=1)
    assert found.kind == "blocked"
    return found


def _staged(store: Any, flip: Profile) -> None:
    versions = store.profiles("desk")
    drift = assess(versions, flip, parent=1, when=WHEN)
    gate = configured(GateSettings())(versions.at(1).profile, flip)
    approvals = Approvals(store, "desk", actors=Actors(salt="5a" * 16, actors={}))
    assert stage(store, "desk", flip, drift, gate, approvals, "eve", "", WHEN, parent=1).kind == "blocked"


DOORS: dict[str, Callable[[Desk], None]] = {
    "steward run --profile": by_run,
    "steward run --dry-run --profile": by_dry_run,
    "backfill --profile": by_backfill,
    "promote, nobody having approved": by_promoting_it_unapproved,
    "promote, one having approved": by_one_reviewer,
    "its author approves": by_its_author_and_one_other,
    "an author under another name": by_a_name_that_is_not_theirs,
    "rollback to what never was": by_a_rollback_beyond,
    "backfill for another tenant": by_another_tenants_file,
    "versions.commit": _by_api(lambda store, flip: store.profiles("desk").commit(flip, **NOTE)),
    "versions.commit after it": _by_api(lambda store, flip: store.profiles("desk").commit(flip, **NOTE, parent=1)),
    "versions.commit as the first": _by_api(lambda store, flip: store.profiles("desk").commit(flip, **NOTE, parent=0)),
    "versions.commit that rests on nobody": _by_api(
        lambda store, flip: store.profiles("desk").commit(flip, **NOTE, promotion={"level": "INFO", "approvals": []})
    ),
    "versions.rollback": _by_api(lambda store, flip: store.profiles("desk").rollback(2, **NOTE)),
    "bootstrap": _by_api(lambda store, flip: bootstrap(store, flip, **NOTE)),
    "promotion.promote": _by_api(_promoted),
    "promotion.promote where nobody is asked": _by_api(lambda store, flip: _promoted(store, flip, ask=False)),
    "promotion.promote by another's report": _by_api(
        lambda store, flip: _promoted(store, flip, drift_of=Profile.from_yaml(PROFILE))
    ),
    "promotion.stage": _by_api(_staged),
    "promotion.rollback": _by_api(lambda store, flip: rollback(store, "desk", 2, **NOTE)),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_the_flip_comes_into_force_by_no_door(desk: Desk, door: Callable[[Desk], None]) -> None:
    door(desk)

    assert desk.policies() == IN_FORCE


def test_by_two_other_people_it_does_and_what_it_rests_on_stands_beside_it(desk: Desk) -> None:
    found = desk.propose("--token", desk.tokens["otto"], "--note", "as the board decided")
    assert (found["outcome"], found["level"], found["people"], found["author"]) == ("staged", "BLOCK", 2, "otto")
    for name in ("ada", "ben"):
        run("review", found["request"], "--approve", "--token", desk.tokens[name], "--store", desk.store)
    run("promote", found["request"], "--token", desk.tokens["otto"], "--store", desk.store)

    assert desk.policies() == Profile.from_yaml(FLIP).policies
    (newest, *_) = value("log", "--store", desk.store)
    assert newest["who"] == "otto"
    assert newest["why"].endswith(": as the board decided")
    assert [each["who"] for each in newest["promotion"]["approvals"]] == ["ada", "ben"]
