"""What is gathered of observations is the same however they came, and draws what all of them at once would draw."""

from __future__ import annotations

from collections import Counter
from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxsteward.schemas.recommendation import MAX_EVIDENCE
from ctxsteward.steward.reconcile.draft import (
    PhraseCount,
    choosable,
    join_phrases,
    join_summaries,
    phrases,
    quoting,
    summarize_draft,
)
from ctxsteward.steward.reconcile.indexed_observation import ObservationBrief
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
def test_what_is_choosable_chooses_what_all_would(said: list[tuple[str, ObservationBrief]], at: int) -> None:
    ordered = sorted((one for _, one in said), key=lambda one: (STRENGTHS.index(one.strength), one.moment))
    spoken = ordered[at % len(ordered)]
    few = choosable(ordered)
    assert chosen([one for one in few if one is not spoken], spoken) == chosen(ordered, spoken)
    assert choosable(few) == few


def test_of_many_people_few_are_choosable() -> None:
    many = [brief(number, number, number, number) for number in range(1, 1000)]
    assert choosable(many) == tuple(many[:15])


def test_of_one_person_no_more_are_choosable_than_are_chosen() -> None:
    many = [brief(number, 1, number, number) for number in range(1, 1000)]
    assert choosable(many) == tuple(many[:MAX_EVIDENCE])


@settings(max_examples=200, deadline=None)
@given(members(), st.randoms(use_true_random=False), st.integers(1, 5))
def test_parts_in_any_order_come_to_what_the_whole_comes_to(
    said: list[tuple[str, ObservationBrief]], rng: object, parts: int
) -> None:
    shuffled = list(said)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    cut = [part for at in range(parts) if (part := shuffled[at::parts])]
    whole, grown = summarize_draft(said), reduce(join_summaries, map(summarize_draft, cut))
    texts = phrases(one for _, one in said)
    grown_texts: dict[str, PhraseCount] = {}
    for part in cut:
        for text, phrase in phrases(one for _, one in part).items():
            grown_texts[text] = join_phrases(grown_texts[text], phrase) if text in grown_texts else phrase
    assert grown_texts == texts
    for phrase in texts.values():
        assert quoting(grown, phrase.best) == quoting(whole, phrase.best)
    assert [getattr(grown, name) for name in ENDS] == [getattr(whole, name) for name in ENDS]


ENDS = ("claim", "first", "last", "told", "single", "score", "sensitivity", "is_from_tool")


@settings(max_examples=200, deadline=None)
@given(members(), members(), st.booleans())
def test_voices_that_were_heard_before_count_what_they_add(
    said: list[tuple[str, ObservationBrief]], more: list[tuple[str, ObservationBrief]], own: bool
) -> None:
    before, new = (voices((one for _, one in part), own=own) for part in (said, more))
    added = counted({voice: heard & ~before.get(voice, 0) for voice, heard in new.items()})
    whole = counted(voices((one for _, one in (*said, *more)), own=own))
    assert VoiceCounts(*map(sum, zip(counted(before), added, strict=True))) == whole


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
