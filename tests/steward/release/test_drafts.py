"""What a night drafts of a record: where it belongs, what it says, and what is never drafted."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.schemas.recommendation import MetaRecommendation, Scope
from ctxsteward.steward.harvest.usage import RecordUse
from ctxsteward.steward.ledger.judgement import TriedFix
from ctxsteward.steward.release.drafts import DraftedChange, drafted

from ..scenes import recommendation

SHOWN = "Write amounts in euros."
PROFILE = ProfileDocument(
    name="support",
    policies=(
        ProfileEntry(id="returns", text="Returns are taken within 30 days."),
        ProfileEntry(id="refunds", text="Refunds take 5 days.", locked=True),
    ),
    surface=(ProfileEntry(id="units", text="Give sizes in metric units."),),
    meta=(MetaRecord(id="a" * 16, text=SHOWN, sources=("s§1",)),),
)


def record(text: str, kind: str, *reasons: str, status: str = "vetted", people: int = 3, **more: Any) -> Any:
    made = recommendation("a" * 16, text, kind=kind, status=status)
    support = made.support.model_copy(update={"principals": people})
    return made.model_copy(update={"reasons": reasons, "support": support, **more})


def change(one: MetaRecommendation, **more: Any) -> DraftedChange | None:
    return drafted(one, PROFILE, people=3, **more)


def told(found: DraftedChange | None) -> tuple[str, str, str | None, str | None] | None:
    return None if found is None else (found.cause, f"{found.block}.{found.key}", found.before, found.text)


CASES = {
    "a wish that many share is a line of the surface": (
        record("Please use metric units.", "preference", "alike"),
        ("shared", "surface.metric-units", None, "Please use metric units."),
    ),
    "what people tell of the world in words of their own is a policy": (
        record("The lift at platform two is broken.", "preference", "alike"),
        ("shared", "policies.lift-platform-broken", None, "The lift at platform two is broken."),
    ),
    "a correction that many make is a policy, without who says it": (
        record("Correction: pickup in Bonn ends at 18:00.", "correction", "needs_confirmation"),
        ("shared", "policies.pickup-bonn-ends", None, "Pickup in Bonn ends at 18:00."),
    ),
    "what a tool said in runs of several tasks is a policy in the tool's words": (
        record('`policies` says "basic economy: not changeable"', "environment", "needs_person"),
        ("stated", "policies.basic-economy-changeable", None, "Basic economy: not changeable"),
    ),
    "what contradicts a rule takes its place": (
        record(
            "Correction: returns are not taken within 30 days.", "correction", "gainsays_rule", status="quarantined"
        ),
        (
            "contradicts",
            "policies.returns",
            "Returns are taken within 30 days.",
            "Returns are not taken within 30 days.",
        ),
    ),
    "another figure for what is in force takes its place, too": (
        record("Correction: returns are taken within 60 days.", "correction", "needs_confirmation"),
        ("shared", "policies.returns", "Returns are taken within 30 days.", "Returns are taken within 60 days."),
    ),
    "words with a gap say nothing": (record('`book` says "fee: … EUR"', "environment", "needs_person"), None),
    "too few contradict a rule": (
        record("Correction: returns are taken within 60 days.", "correction", "gainsays_rule", people=2),
        None,
    ),
    "a locked rule is left alone": (
        record("Correction: refunds take 9 days.", "correction", "needs_confirmation"),
        None,
    ),
    "what is in force already is not drafted": (
        record("Give sizes in metric units.", "preference", "alike"),
        None,
    ),
    "what is personal is never an entry": (
        record("Please use metric units.", "preference", "alike", sensitivity="personal"),
        None,
    ),
    "what was said in one project stays there": (
        record(
            "Please use metric units.", "preference", "alike", scope=Scope(tenant="acme", agent="support", project="x")
        ),
        None,
    ),
    "what nobody has to decide is no draft": (
        record("Please use metric units.", "preference", "needs_principals"),
        None,
    ),
}


@pytest.mark.parametrize(("one", "expected"), CASES.values(), ids=CASES)
def test_each_kind_of_record_is_drafted_where_it_belongs(one: MetaRecommendation, expected: Any) -> None:
    assert told(change(one)) == expected


def test_a_draft_stands_beside_the_line_whose_meaning_is_nearest() -> None:
    found = change(record("Please use metric units.", "preference", "alike"))
    assert (found and found.beside) == "surface.units: Give sizes in metric units."


def test_a_key_is_taken_once() -> None:
    taken = PROFILE.model_copy(update={"surface": (ProfileEntry(id="metric-units", text="Be brief."),)})
    found = drafted(record("Please use metric units.", "preference", "alike"), taken, people=3)
    assert told(found) == ("shared", "surface.metric-units-2", None, "Please use metric units.")


def test_a_wish_in_another_script_has_a_key_of_its_record() -> None:
    found = change(record("回答请用中文，不要用英文。", "preference", "alike"))
    assert told(found) == ("shared", "policies.line-aaaaaaaa", None, "回答请用中文，不要用英文。")


@pytest.mark.parametrize(
    ("use", "cause"),
    [
        (RecordUse(shown=40, judged=40), "unused"),
        (RecordUse(shown=40, judged=4), None),
        (RecordUse(shown=40, judged=40, fired=12, complied=12), "proven"),
        (RecordUse(shown=40, judged=40, fired=3, complied=3), None),
        (RecordUse(shown=40, judged=40, fired=20, complied=4, contradicted=16), "disobeyed"),
    ],
    ids=["never applied", "too few sessions", "obeyed", "obeyed too seldom", "disobeyed"],
)
def test_a_line_of_the_slice_is_drafted_by_the_use_that_was_made_of_it(use: RecordUse, cause: str | None) -> None:
    found = change(record(SHOWN, "preference", "independent_principals", status="active"), use=use)
    assert (found and found.cause) == cause
    approved = record(SHOWN, "preference", "approved", status="active")
    assert change(approved, use=use) is None, "a person decided that already"
    if cause in ("unused", "disobeyed"):
        assert told(found) == (cause, f"meta.{'a' * 16}", SHOWN, None)


@pytest.mark.parametrize(("failed", "is_drafted"), [(3, True), (2, False)])
def test_advice_that_failed_is_forbidden_by_a_rail(failed: int, *, is_drafted: bool) -> None:
    advice = record(
        "`reserve` rejects `day`: leave out day.",
        "tool_fix",
        "fails_more",
        status="candidate",
        trigger="reserve:day",
        action="leave out day",
    )
    found = change(advice, tried=(TriedFix("leave out day", 1, failed, 0), TriedFix("write it", 0, 9, 0)))
    rail = ("fails", "rails.reserve-rejects-day", None, "`reserve` rejects `day`: do not leave out day.")
    assert told(found) == (rail if is_drafted else None)
