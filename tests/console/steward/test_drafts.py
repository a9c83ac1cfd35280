"""Changes that nights draft: shown with patch and effect, accepted by one answer, remembered where they are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxsteward.console.steward.actors import Voucher, add_actor
from ctxsteward.envelope import open_store

from .scenes import Desk, run, transcript, value

WISHES = {"ann": "Metric units please.", "ben": "Use metric units.", "cleo": "Only metric units for me."}
LENGTHS = {
    "dan": "Keep replies under five lines.",
    "eva": "Under five lines, please.",
    "finn": "Replies under five lines.",
}
PROFILE = "name: desk\npersona: {voice: calm}\nsurface: {money: Amounts in euros.}\n"


def said(folder: Path, words: dict[str, str], prefix: str) -> None:
    for who, text in words.items():
        transcript(folder / f"{prefix}-{who}.json", "Hello, can you help?", "Of course.", text, principal=who)


@pytest.fixture
def place(tmp_path: Path) -> Desk:
    """A desk without locked lines, after a night in which three people each wished two things in their own words."""
    (tmp_path / "profile.yaml").write_text(PROFILE)
    said(tmp_path / "logs", WISHES, "units")
    said(tmp_path / "logs", LENGTHS, "length")
    where = ("--store", f"file:{tmp_path / 'store'}")
    profile = ("--profile", str(tmp_path / "profile.yaml"))
    run("run", "--transcripts", str(tmp_path / "logs"), *profile, *where, "--night", "2026-12-01")
    tokens, path = dict[str, str](), tmp_path / "store" / "actors.yaml"
    for name, roles in {"ada": ("reviewer", "operator"), "rita": ("reviewer",), "ann": ("reviewer",)}.items():
        tokens[name] = add_actor(path, name, roles, Voucher("ada", tokens["ada"]) if tokens else None)
    tokens["otto"] = add_actor(path, "otto", ("operator",), Voucher("ada", tokens["ada"]))
    return Desk(tmp_path, tokens)


def drafts(desk: Desk) -> dict[str, dict[str, Any]]:
    """Records that wait with a drafted change, by the key of its entry."""
    waiting = value("review", *desk.where, code=None)["records"]
    return {f"{one['draft']['block']}.{one['draft']['key']}": one for one in waiting if "draft" in one}


def surface(desk: Desk) -> dict[str, str]:
    with open_store(desk.where[1]) as store:
        return {entry.id: entry.text for entry in store.profiles("desk").newest().profile.surface}


def test_a_shared_wish_is_drafted_with_its_patch_and_its_effect(place: Desk) -> None:
    found = drafts(place)
    one = found["surface.metric-units"]
    assert [one["draft"][key] for key in ("cause", "text", "before")] == ["shared", one["text"], None]
    assert one["draft"]["replayed"].startswith("The frozen cases, replayed before and after: no figure changes.")
    lines = run("review", *place.where).stdout.splitlines()
    assert f"  Draft: + surface.metric-units: {one['text']}" in lines


def test_one_answer_of_an_operator_who_reviews_brings_a_draft_into_force(place: Desk) -> None:
    one = drafts(place)["surface.metric-units"]
    assert "it is in force" in run("review", "--accept", one["id"], *place.where, **place.as_("ada")).stdout
    assert surface(place) == {"money": "Amounts in euros.", "metric-units": one["text"]}
    newest = value("log", "--limit", "1", *place.where)[0]
    assert f"from record {one['id']}" in newest["why"]
    assert [each["who"] for each in newest["promotion"]["approvals"]] == ["ada"]
    assert "surface.metric-units" not in drafts(place), "it is not asked again"
    run("rollback", "1", "--as", "ada", *place.where, **place.as_("ada"), code=4)
    assert surface(place) == {"money": "Amounts in euros."}


def test_a_reviewer_accepts_two_drafts_and_an_operator_brings_both_into_force(place: Desk) -> None:
    found = list(drafts(place).values())
    assert len(found) == 2
    answered = [value("review", "--accept", one["id"], *place.where, **place.as_("rita")) for one in found]
    assert [(one["state"], one["in_effect"]) for one in answered] == [("approved", False)] * 2
    assert drafts(place) == {}
    run("promote", answered[-1]["request"], *place.where, **place.as_("otto"))
    assert set(surface(place).values()) == {"Amounts in euros.", *(one["text"] for one in found)}


def test_who_may_not_accept_stages_nothing(place: Desk) -> None:
    one = drafts(place)["surface.metric-units"]
    for name, why in (("otto", "no reviewer"), ("ann", "said this; somebody else must approve it")):
        accept = ("review", "--accept", one["id"], "--as", name)
        assert why in run(*accept, *place.where, **place.as_(name), code=2).stderr
    assert value("review", *place.where)["requests"] == []


def test_what_was_rejected_is_not_drafted_again_in_other_words(place: Desk, tmp_path: Path) -> None:
    one = drafts(place)["surface.metric-units"]
    run("review", "--reject", one["id"], "--note", "we sell in inches", *place.where, **place.as_("rita"))
    again = {
        "gus": "Give me metric units only.",
        "hal": "Metric units, if you please.",
        "ida": "In metric units please.",
    }
    said(tmp_path / "logs", again, "more")
    run("run", *place.where, "--night", "2026-12-02", code=None)
    assert not any("metric" in text for found in drafts(place).values() for text in [found["text"]])


def test_what_has_no_draft_cannot_be_accepted(desk: Desk) -> None:
    refused = run("review", "--accept", desk.record(), "--as", "ada", *desk.where, **desk.as_("ada"), code=2)
    assert "no change is drafted of it" in refused.stderr


def test_beside_locked_lines_two_people_accept(desk: Desk) -> None:
    id_ = drafts(desk)["policies.pickup-bonn-ends"]["id"]
    first = value("review", "--accept", id_, "--as", "ada", *desk.where, **desk.as_("ada"))
    assert (first["state"], first["approved"], first["people"]) == ("waiting", 1, 2)
    desk.approve(first["request"], "ben")
    run("promote", first["request"], *desk.where, **desk.as_("otto"))
    assert desk.head().policies[-1].text == "Pickup in Bonn ends at 18:00."


def test_what_is_in_force_is_printed_as_a_file_to_edit_and_propose(desk: Desk, tmp_path: Path) -> None:
    told = run("show", *desk.where).stdout
    path = tmp_path / "edited.yaml"
    path.write_text(told)
    assert "nothing was staged" in run("propose", str(path), "--dry-run", *desk.where).stdout
    path.write_text(told.replace("friendly and brief", "formal and brief"))
    assert "~ persona.voice" in run("propose", str(path), "--dry-run", *desk.where).stdout
    assert value("show", "1", *desk.where)["meta"] == [], "an earlier version, as JSON"
