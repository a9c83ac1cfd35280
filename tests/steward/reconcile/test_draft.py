"""What observations make of a draft: words, evidence and support, the same in whatever order they came."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings, strategies as st

from ctxsteward.schemas.recommendation import MAX_EVIDENCE
from ctxsteward.steward.reconcile.claims import ObservationBrief, voice_of
from ctxsteward.steward.reconcile.draft import ClaimSupport, backing, summarize_draft, supporting

from ...examples import examples

STRENGTHS = ("strict", "recovered", "accepted", "broad")


def brief(number: int, who: int, where: int, day: int | None, **fields: object) -> ObservationBrief:
    given = {
        "id": f"{number:04d}",
        "seconds": float("-inf") if day is None else float(day),
        "source": f"log-{where}.jsonl",
        "session": f"s{where}",
        "ref": f"§{number % 3}",
        "start": 0,
        "stop": 9,
        "trust": "user",
        "principal": None if who == 0 else f"u{who}",
        "kind": "correction",
        "strength": "strict",
        "extractor": "corrections/1",
        "text": "Keep it short.",
        "score": 0.5,
        "ts": None if day is None else f"{day}",
        "sensitivity": "none",
        "is_single": False,
        "is_confirmed": False,
        "is_denied": False,
    }
    given["voice"] = voice_of(None if who == 0 else f"u{who}")
    return ObservationBrief(**{**given, **fields})  # type: ignore[arg-type]


@st.composite
def members(draw: st.DrawFn, most: int = 40) -> list[tuple[str, ObservationBrief]]:
    """Of few or many people, in few or many sessions, and anything between."""
    people, sessions = draw(st.sampled_from([1, 2, 9, 30])), draw(st.sampled_from([1, 2, 9, 30]))
    rows = st.tuples(
        st.integers(0, people),
        st.integers(0, sessions),
        st.none() | st.integers(0, 9),
        st.sampled_from(STRENGTHS),
        st.sampled_from(["Keep it short.", "Short, please.", "Be brief."]),
        st.sampled_from([0.2, 0.5]),
        st.booleans(),
        st.sampled_from(["none", "personal", "sensitive"]),
        st.integers(0, 2),
    )
    names = ("strength", "text", "score", "is_single", "sensitivity")
    return [
        (f"c{claim}", brief(number, who, where, day, **dict(zip(names, fields, strict=True))))
        for number, (who, where, day, *fields, claim) in enumerate(draw(st.lists(rows, min_size=1, max_size=most)))
    ]


def chosen(ordered: list[ObservationBrief], spoken: ObservationBrief) -> list[ObservationBrief]:
    """By turns of principals and sessions, looked for in the plainest way among all."""
    found, waiting = [spoken], [one for one in ordered if one is not spoken]
    while waiting and len(found) < MAX_EVIDENCE:
        people, places = Counter(one.principal for one in found), Counter(one.session for one in found)
        best = min(waiting, key=lambda one: (people[one.principal], places[one.session]))  # of equals the first
        waiting.remove(best)
        found.append(best)
    return found


@settings(max_examples=examples(400))
@given(members())
def test_evidence_is_chosen_by_turns_of_principals_and_sessions(said: list[tuple[str, ObservationBrief]]) -> None:
    found = summarize_draft(said)
    ordered = sorted((one for _, one in said), key=lambda one: (STRENGTHS.index(one.strength), one.moment))
    spoken = next(one for one in ordered if one.id == found.spoken)
    assert found.chosen == tuple(one.id for one in chosen(ordered, spoken))


@settings(max_examples=examples(200))
@given(members(), st.randoms(use_true_random=False))
def test_observations_in_any_order_come_to_the_same(said: list[tuple[str, ObservationBrief]], rng: object) -> None:
    shuffled = list(said)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert summarize_draft(shuffled) == summarize_draft(said)


def test_the_words_are_of_the_strongest_cue_then_said_most_often_then_scored_highest_then_first() -> None:
    strict = [
        brief(1, 1, 1, 5, text="Be brief."),
        brief(2, 2, 2, 4, text="Keep it short.", score=0.2),
        brief(3, 3, 3, 3, text="Keep it short.", score=0.9),
        brief(4, 4, 4, 9, text="Keep it short.", score=0.9),
    ]
    weak = [brief(number, number, number, 1, text="Short, please.", strength="broad") for number in range(5, 10)]
    tool = brief(10, 10, 10, 0, text="Tools say so.", trust="tool_internal", score=1.0)
    found = summarize_draft([("c", one) for one in (tool, *weak, *strict)])
    assert found.spoken == "0003"


def test_counts_are_of_places_sessions_and_people() -> None:
    told = [
        brief(0, 1, 1, 1),
        brief(3, 1, 1, 2, strength="broad"),
        brief(1, 1, 2, 3, strength="accepted"),
        brief(2, 0, 3, 4, kind="preference", is_confirmed=True),
        brief(4, 0, 4, 5, strength="recovered", trust="tool_internal"),
    ]
    assert backing(told) == ClaimSupport(
        events=4,
        sessions=4,
        principals=2,
        said=2,
        votes=1,
        confirmed=1,
        denied=0,
        recovered=1,
        helped=1,
        accepted=0,
        obeyed_succeeded=0,
        obeyed_failed=0,
        from_tool=False,
    )


def test_what_a_person_said_stands_alone_and_what_was_shown_lends_nothing() -> None:
    person, tool = brief(1, 1, 1, 1), brief(2, 2, 2, 2, trust="tool_internal")
    echo = brief(3, 3, 3, 3, shown="c1")
    said = [("c1", person), ("c1", tool), ("c1", echo)]
    assert supporting(said, {echo.id}) == [("c1", person)]
    assert supporting(said) == [("c1", person), ("c1", echo)]
    assert supporting(said[1:], {echo.id}) == [("c1", tool)]
    fixes = [("c1", one._replace(kind="tool_fix")) for _, one in said]
    assert supporting(fixes, {echo.id}) == fixes[:2]
