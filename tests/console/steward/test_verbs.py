"""``ctxsteward steward``: the verbs that only read, over a store with one night on shipped transcripts."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree
from typing import Any

import jsonpatch
import pytest
from click.shell_completion import ShellComplete

from ctxsteward.console.cli import cli
from ctxsteward.console.pages.charts import Bar, Series, bars, lines
from ctxsteward.envelope.store import open_store
from ctxsteward.schemas.profile import ProfileEntry

from ...store.profiles.agreed import agreed
from .scenes import people, run, value

PROFILE = "fernhollow-desk"


@pytest.fixture(scope="module")
def folder(night: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(copytree(night, tmp_path_factory.mktemp("verbs") / "store"))


@pytest.fixture
def where(folder: Path) -> tuple[str, str]:
    return "--store", f"file:{folder}"


def records(where: tuple[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = value("review", "--all", *where)["records"]
    return found


def test_status_says_how_it_stands(where: tuple[str, str]) -> None:
    found = value("status", *where)
    assert list(found) == [
        "tenant",
        "profile",
        "version",
        "records",
        "nights",
        "last",
        "sources",
        "running",
        "lapsed",
        "waiting",
        "canary",
    ]
    assert (found["version"], found["records"], found["nights"], found["running"]) == (2, 1, 1, None)
    assert found["last"][0]["outcome"] == "promoted"
    assert "the shipped transcripts" in run("status", *where).stdout


def test_log_tells_versions_and_the_changelog(where: tuple[str, str]) -> None:
    rows = value("log", *where)
    assert [(row["version"], row["promotion"] and row["promotion"]["level"]) for row in rows] == [
        (2, "INFO"),
        (1, None),
    ]
    assert [row["version"] for row in value("log", "--limit", "1", *where)] == [2]
    assert "needed nobody" in run("log", *where).stdout
    page = run("log", "--markdown", *where).stdout
    assert page.startswith(f"# Changelog of profile {PROFILE}\n")
    assert "pickup in Bonn" not in page, "a changelog holds addresses, never what users said"


def test_a_comparison_gives_a_patch_and_its_inverse(where: tuple[str, str]) -> None:
    from ctxsteward.steward.drift.report import keyed

    found = value("drift", "1", "2", *where)
    with open_store(where[1]) as store:
        one, two = (keyed(store.profiles(PROFILE).at(number).profile) for number in (1, 2))
    assert jsonpatch.apply_patch(one, found["patch"]) == two
    assert jsonpatch.apply_patch(two, found["inverse"]) == one
    assert [line[:2] for line in found["changes"]] == ["+ "]
    assert value("drift", "2", "2", *where)["patch"] == []


def test_drift_is_of_the_last_commit_and_says_its_level(where: tuple[str, str]) -> None:
    found = value("drift", *where)
    assert (found["before"], found["after"], found["level"], found["request"]) == (1, 2, "INFO", None)
    assert value("drift", "2", "1", *where, code=1)["level"] == "WARN", "two thirds of the slice would go"
    assert "patch (RFC 6902):" in run("drift", *where).stdout


def test_why_quotes_every_span_with_session_reference_and_trust(where: tuple[str, str]) -> None:
    told = run("log", *where) and value("run", *where)
    (wish,) = [one for one in in_force(where) if "emojis" in one[1]]
    found = value("why", wish[0], *where)
    assert found["in_force_in_version"] == told["version"]
    assert sorted((s["session"], s["ref"], s["trust"], s["verified"]) for s in found["spans"]) == [
        ("ben-3", "§3", "user", True),
        ("emil-1", "§9", "user", True),
        ("hana-2", "§5", "user", True),
    ]
    assert all("emojis in your messages" in span["text"] for span in found["spans"])
    text = run("why", wish[0][:6], *where).stdout
    assert "ben-3§3  user, trust user, supports, ben" in text
    assert "enough people said it, independently" in text


def in_force(where: tuple[str, str]) -> list[tuple[str, str]]:
    with open_store(where[1]) as store:
        return [(record.id, record.text) for record in store.profiles(PROFILE).newest().profile.meta]


def test_review_lists_what_a_person_may_lift(where: tuple[str, str]) -> None:
    found = value("review", *where)
    assert (found["requests"], found["reviewers"]) == ([], [])
    assert [(one["kind"], one["reasons"]) for one in found["records"]] == [
        ("correction", ["needs_confirmation"]),
        ("environment", ["needs_person"]),  # what a tool says where another value helped
        ("tool_fix", ["needs_person"]),  # it takes another value, and pays with it
        ("tool_fix", ["needs_recovery"]),
        ("tool_fix", ["hint", "needs_recovery"]),  # what came up in most sessions is asked first
    ]
    assert len(records(where)) == found["held"] >= 3
    assert value("review", found["records"][0]["id"], *where)["kind"] == "record"


def test_quarantine_reads_again_and_says_why(where: tuple[str, str]) -> None:
    found = value("quarantine", *where, code=1)
    (row,) = found["transcripts"]
    assert (row["name"], row["reason"], row["now"], found["standing"]) == ("19-broken.json", "invalid", "invalid", 1)
    assert "line 1, column 43: the JSON ends too early" in row["detail"]
    assert row["do"] == "correct it, or take it out of the source"
    assert value("quarantine", "--limit", "0", *where, code=1)["transcripts"][0]["now"] == "not read again"


def test_doctor_names_every_check_and_what_to_do(where: tuple[str, str], folder: Path) -> None:
    found = {one["name"]: one for one in value("doctor", *where)}
    assert list(found) == [
        "extra steward",
        "extra flows",
        "extra s3",
        "keys",
        "prefect",
        "people",
        "store",
        "profile",
        "approvals",
        "lease",
        "nights",
        "quarantine",
        "ledger",
        "spans",
    ]
    assert all(set(one) == {"name", "state", "found", "do"} for one in found.values())
    assert found["spans"]["found"].endswith("active records verify")
    assert "actors --add" in found["people"]["do"]


def test_doctor_finds_a_ledger_that_is_not_what_was_harvested(folder: Path, tmp_path: Path) -> None:
    where = ("--store", f"file:{copytree(folder, tmp_path / 'store')}")
    for blob in sorted((tmp_path / "store" / "objects" / "blobs").rglob("*")):
        if blob.is_file():
            blob.write_bytes(b"\x00" * blob.stat().st_size)
    assert any(one["state"] == "wrong" for one in value("doctor", *where, code=1))


def test_doctor_says_what_it_could_not_look_at(tmp_path: Path) -> None:
    found = value("doctor", "--store", f"file:{tmp_path / 'none'}", code=1)
    assert found[-1]["name"] == "store"
    assert "no such folder" in found[-1]["found"]


def test_doctor_reads_settings_people_and_the_address_of_prefect(
    where: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.yaml").write_text("profil: x\n")
    (tmp_path / "actors.yaml").write_text("salt: short\n")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    bad = ("--settings", str(tmp_path / "bad.yaml"), "--actors", str(tmp_path / "actors.yaml"))
    found = {one["name"]: one for one in value("doctor", *bad, *where, code=1)}
    assert [found[name]["state"] for name in ("settings", "people", "prefect")] == ["wrong"] * 3
    assert "no such key" in found["settings"]["found"]


@pytest.mark.parametrize("whom", [("--session", "hana-2"), ("--principal", "hana")])
def test_who_is_forgotten_leaves_every_record_and_version(folder: Path, tmp_path: Path, whom: tuple[str, str]) -> None:
    where = ("--store", f"file:{copytree(folder, tmp_path / 'store')}")
    (wish,) = [one for one in in_force(where) if "emojis" in one[1]]
    done = value("forget", *whom, "--who", "ada", "--why", "request 17", *where)
    assert done["observations"] >= 1
    assert done["records"] == 1, "two voices are too few"
    found = value("why", wish[0], *where, code=None)
    assert sorted(span["session"] for span in found["spans"]) == ["ben-3", "emil-1"]
    assert (found["record"]["status"], found["in_force_in_version"]) == ("candidate", None)
    assert "emojis" not in run("drift", "1", "2", *where).stdout
    again = run("forget", *whom, "--who", "ada", "--why", "request 17", *where, code=2)
    assert "nothing was harvested from them" in again.stderr
    night = value("run", "--full", *where, code=None)
    assert night["skipped"]["deleted"] >= 2, "they do not come back"


# -- what a shell completes ---------------------------------------------------------------------------------------


def completed(*args: str) -> list[str]:
    complete = ShellComplete(cli, {}, "ctxsteward", "_CTXSTEWARD_COMPLETE")
    return [item.value for item in complete.get_completions(["steward", *args[:-1]], args[-1])]


def test_names_versions_records_and_people_complete(where: tuple[str, str], folder: Path) -> None:
    people(folder)
    try:
        assert completed("rollback", *where, "") == ["2", "1"]
        assert completed("status", *where, "--profile-name", "fern") == [PROFILE]
        assert in_force(where)[0][0] in completed("why", *where, in_force(where)[0][0][:2])
        assert completed("review", *where, "--as", "") == ["ada", "ben", "otto"]
    finally:
        (folder / "actors.yaml").unlink()


def test_nothing_completes_where_there_is_no_store() -> None:
    assert completed("why", "--store", "file:/nowhere/at/all", "") == []


# -- plots --------------------------------------------------------------------------------------------------------


def test_plots_escape_and_count() -> None:
    drawn = bars("a <b>", [Bar('x" <i>', (1, 2)), Bar("empty", (0, 0))], ("one", "two"))
    assert "<b>" not in drawn
    assert "<i>" not in drawn
    assert drawn.count("<rect") == 2 + 2, "a bar for each part that is not 0, and the key"
    assert bars("none", []) == '<p class="none">none: nothing to show yet</p>'


def test_a_night_without_a_figure_is_a_gap() -> None:
    drawn = lines("rate", [Series("used", (0.5, None, 0.25, 0.75))], ["a", "b", "c", "d"])
    assert drawn.count("<circle") == 3
    assert drawn.count("<polyline") == 1
    assert 'aria-label="rate, last: used 75%"' in drawn
    assert "nothing to show" in lines("rate", [Series("used", (None,))], ["a"])


def test_help_names_every_verb() -> None:
    told = run("--help").stdout
    for verb in "run status log why review promote rollback quarantine drift doctor forget actors".split():  # noqa: SIM905
        assert f"  {verb} " in told


def test_status_fits_eighty_columns_whatever_the_nights_were(where: tuple[str, str]) -> None:
    from io import StringIO

    from rich.console import Console

    from ctxsteward.console.steward.status import show_status

    found = value("status", *where)
    row = found["last"][0] | {
        "outcome": "unchanged",
        "version": 123_456,
        "rates": {"used": 1.0, "obeyed": 1.0},
        "drift": {"level": "BLOCK"},
        "gate": {"level": "passed"},
        "refused": {"invalid": 150_000},
        "stages": {"due": 150_000, "absorbed": 999_999},
    }
    told = StringIO()
    show_status(Console(file=told, width=80, markup=False), found | {"last": [row] * 2})

    lines = told.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in told.getvalue()
    assert (
        sum(
            line.split()
            == [
                row["night"],
                "unchanged",
                "123456",
                "150000",
                "999999",
                "150000",
                "100%",
                "100%",
                "BLOCK",
                "passed",
            ]
            for line in lines
        )
        == 2
    )


def test_quarantine_and_review_name_the_record_the_reason_and_the_locked_line(folder: Path, tmp_path: Path) -> None:
    where = ("--store", f"file:{copytree(folder, tmp_path / 'store')}")
    line = ProfileEntry(id="pickup", text="Pickup in Bonn ends at 16:00.", locked=True)
    with open_store(where[1]) as store:
        versions = store.profiles(PROFILE)
        head = versions.newest()
        changed = head.profile.model_copy(update={"rails": (*head.profile.rails, line), "version": None})
        told = {"who": "ada", "when": "2026-11-23T00:00:00Z", "parent": head.number}
        versions.commit(changed, **told, why="locked", promotion=agreed(store, changed, **told, name=PROFILE))

    held = {one["id"]: one for one in value("review", "--all", *where)["records"] if "against" in one}
    aside = {one["id"]: one["against"] for one in value("quarantine", *where, code=1)["set_aside"]}

    assert {one["against"]["rule"] for one in held.values()} == {"rails.pickup"}
    assert all("rails.pickup, which is locked: Pickup in Bonn" in one["why"] for one in held.values())
    assert aside == {id: one["against"] for id, one in held.items() if one["status"] == "quarantined"} != {}
    shown = run("quarantine", *where, code=1).stdout
    assert all(f"record {id}: " in shown for id in aside)
    assert "which is locked: Pickup in Bonn" in shown
