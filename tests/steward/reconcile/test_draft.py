"""What a draft weighs of its observations: the same in any order, evidence by turns, voices counted once."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxsteward.schemas.recommendation import MAX_EVIDENCE
from ctxsteward.steward.reconcile.draft import phrases, quoting, summarize_draft
from ctxsteward.steward.reconcile.observed import ObservationBrief
from ctxsteward.steward.reconcile.support import VoiceCounts, counted, supporting, voices

STRENGTHS = ("strict", "recovered", "scored", "broad")


def brief(number: int, who: int, where: int, day: int | None, **fields: object) -> ObservationBrief:
    given = {
        "id": f"{number:04d}", "seconds": float("-inf") if day is None else float(day), "source": f"log-{where}.jsonl",
        "session": f"s{where}", "ref": f"§{number % 3}", "start": 0, "stop": 9, "trust": "user",
        "principal": f"s{where}" if who == 0 else f"u{who}", "kind": "correction", "strength": "strict",
        "extractor": "corrections/1", "text": "Keep it short.", "score": 0.5, "ts": None if day is None else f"{day}",
        "sensitivity": "none", "is_single": False, "shown": frozenset[str](),
    }  # fmt: skip
    return ObservationBrief(**{**given, **fields})  # type: ignore[arg-type]


@st.composite
def members(draw: st.DrawFn, most: int = 40) -> list[tuple[str, ObservationBrief]]:
    """Of few or many people, in few or many sessions, and anything between."""
    people, sessions = draw(st.sampled_from([1, 2, 9, 30])), draw(st.sampled_from([1, 2, 9, 30]))
    rows = st.tuples(
        st.integers(0, people), st.integers(0, sessions), st.none() | st.integers(0, 9), st.sampled_from(STRENGTHS),
        st.sampled_from(["Keep it short.", "Short, please.", "Be brief."]), st.sampled_from([0.2, 0.5]), st.booleans(),
        st.sampled_from(["none", "personal", "sensitive"]), st.integers(0, 2),
    )  # fmt: skip
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


@settings(max_examples=400, deadline=None)
@given(members(), st.integers(0, 39))
def test_evidence_is_chosen_by_turns_of_principals_and_sessions(
    said: list[tuple[str, ObservationBrief]], at: int
) -> None:
    found = summarize_draft(said)
    spoken = found.choosable[at % len(said)]
    assert list(quoting(found, spoken).chosen) == [one.id for one in chosen(list(found.choosable), spoken)]


@settings(max_examples=200, deadline=None)
@given(members(), st.randoms(use_true_random=False))
def test_the_order_of_observations_decides_nothing(said: list[tuple[str, ObservationBrief]], rng: Random) -> None:
    shuffled = list(said)
    rng.shuffle(shuffled)
    assert summarize_draft(shuffled) == summarize_draft(said)
    assert phrases(one for _, one in shuffled) == phrases(one for _, one in said)
    for own in (True, False):
        assert voices((one for _, one in shuffled), own=own) == voices((one for _, one in said), own=own)


def test_counts_are_of_places_sessions_and_people() -> None:
    told = [
        brief(0, 1, 1, 1), brief(3, 1, 1, 2, strength="broad"), brief(1, 1, 2, 3, strength="scored"),
        brief(2, 0, 3, 4), brief(4, 0, 4, 5, strength="recovered", trust="tool_internal"),
    ]  # fmt: skip
    wide, own = (counted(voices(told, own=own)) for own in (False, True))
    assert wide == VoiceCounts(events=4, recovered=1, sessions=4, principals=2, strict=2, scored=1, said=2, helped=1)
    assert own == VoiceCounts(events=4, recovered=1, sessions=4, principals=4, strict=2, scored=1, said=3, helped=1)


def test_what_a_person_said_stands_alone_and_what_was_shown_lends_nothing() -> None:
    person, tool = brief(1, 1, 1, 1), brief(2, 2, 2, 2, trust="tool_internal")
    echo = brief(3, 3, 3, 3, shown=frozenset(("c1",)))
    said = [("c1", person), ("c1", tool), ("c1", echo)]
    assert supporting(said, {"c1"}) == [("c1", person)]
    assert supporting(said, {"c2"}) == [("c1", person), ("c1", echo)]
    assert supporting(said[1:], {"c1"}) == [("c1", tool)]
    fixes = [("c1", one._replace(kind="tool_fix")) for _, one in said]
    assert supporting(fixes, {"c1"}) == fixes[:2]
