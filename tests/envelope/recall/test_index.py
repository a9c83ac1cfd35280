"""The index of a session: the textbook's scores, surroundings, and a ranking that is a pure function of its turns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope.recall.heuristic import Weights, rarity_of
from ctxsteward.envelope.recall.selection import ScoredOriginal
from ctxsteward.envelope.recall.session_index import (
    EVEN_TERMS,
    K1,
    LEAST_SETTLED,
    MAX_PASSAGES_RANKED,
    MAX_POSTINGS,
    MAX_RANKED,
    B,
    IndexedUnit,
    Postings,
    SessionIndex,
)

WORDS = ("ash", "birch", "cedar", "date", "elm", "fir", "gum", "hazel")
words = st.lists(st.sampled_from(WORDS), max_size=8)
turns = st.lists(
    st.builds(
        IndexedUnit,
        terms=words,
        size_tokens=st.integers(0, 300),
        asks=st.booleans(),
        speaker=st.sampled_from([None, "ann", "bob"]),
        passage=st.sampled_from([0, 0, 1]),
        repeated=words,
        sitting=st.sampled_from([None, "2026-01-01", "2026-01-02", "2026-01-03"]),
        date_terms=st.sampled_from([(), ("1", "januari"), ("2", "januari")]),
    ),
    max_size=30,
)
ONLY_WIDE = Weights(wide=1, asked=0, sitting=0, date=0, speaker=0, novel=0)


def index_of(made: list[IndexedUnit], start: int = 1) -> SessionIndex:
    index = SessionIndex()
    for ordinal, turn in enumerate(made, start):
        index.add(ordinal, turn)
    return index


def plain(ranked: list[ScoredOriginal]) -> list[tuple[int, float, dict[str, float]]]:
    return [(one.ordinal, one.score, dict(one.signals)) for one in ranked]


# -- BM25 ----------------------------------------------------------------------------------------------------------


def textbook(documents: list[list[str]], query: list[str]) -> list[float]:
    """Robertson and Zaragoza's formula with Lucene's idf, written once more, document by document."""
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for term in query:
            holding = sum(term in other for other in documents)
            idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            times = document.count(term)
            if times:
                score += idf * times * (K1 + 1) / (times + K1 * (1 - B + B * len(document) / mean))
        scores.append(score)
    return scores


documents = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=20)


def held(postings: Postings, *query: str) -> list[dict[int, float]]:
    """Unit → times, by term of the query."""
    found: list[dict[int, float]] = [{} for _ in query]
    for row, unit, times in zip(*postings.of(query), strict=True):
        assert int(unit) not in found[row]
        found[row][int(unit)] = float(times)
    return found


@given(documents, st.sets(st.integers(0, 20)))
def test_postings_say_which_units_hold_a_term_how_often(made: list[list[str]], settled: set[int]) -> None:
    postings = Postings()
    for number, document in enumerate(made):
        postings.add(number, document)
        if number in settled:
            postings = Postings.resumed(postings.state())
    wanted = [
        {number: document.count(word) for number, document in enumerate(made) if word in document} for word in WORDS
    ]
    assert held(postings, *WORDS) == wanted
    assert [postings.spread(word) for word in WORDS] == [len(units) for units in wanted]
    assert held(postings, "unheard", "ash") == [{}, wanted[0]]


def test_a_term_may_stand_in_one_unit_any_number_of_times() -> None:
    postings = Postings()
    postings.add(7, ["ash"] * 100_000)
    assert held(postings, "ash") == [{7: 100_000}]


def test_postings_that_were_settled_are_found_beside_the_newest() -> None:
    postings = Postings()
    for number in range(3 * LEAST_SETTLED):
        postings.add(number, ["ash", f"rare{number}"])
    first, last = "rare0", f"rare{3 * LEAST_SETTLED - 1}"
    found = held(postings, first, "ash", last)
    assert found == [{0: 1}, dict.fromkeys(range(3 * LEAST_SETTLED), 1), {3 * LEAST_SETTLED - 1: 1}]


@given(turns, words)
def test_wide_is_the_textbooks_score_of_a_turn_with_its_neighbours(made: list[IndexedUnit], query: list[str]) -> None:
    """Weighed alone, it is BM25 over documents of five turns, as far as the sitting goes."""
    made = [turn._replace(sitting="one", passage=0) for turn in made]
    joined = [[t for turn in made[max(0, n - 2) : n + 3] for t in turn.terms] for n in range(len(made))]
    ranked = index_of(made).rank(query, "", ONLY_WIDE)
    wanted = textbook(joined, query) if any(joined) else []
    best = max(wanted, default=0.0)
    expected = {n + 1: score / best for n, score in enumerate(wanted) if score > 0}
    assert {one.ordinal: one.score for one in ranked} == pytest.approx(expected)


# -- a pure function of the turns ----------------------------------------------------------------------------------


@given(turns, words, st.integers(0, 30))
def test_an_index_that_grew_ranks_as_one_made_from_scratch(made: list[IndexedUnit], query: list[str], at: int) -> None:
    grown = index_of(made[:at])
    grown.rank(query, "Ann", Weights())
    for ordinal, turn in enumerate(made[at:], min(at, len(made)) + 1):
        grown.add(ordinal, turn)
    assert plain(grown.rank(query, "Ann", Weights())) == plain(index_of(made).rank(query, "Ann", Weights()))


@given(turns, words, st.sets(st.integers(1, 30)), st.sets(st.integers(1, 30)))
def test_a_ranking_holds_known_ordinals_once_each_best_first(
    made: list[IndexedUnit], query: list[str], pinned: set[int], skip: set[int]
) -> None:
    weights = Weights(recency=0.2)
    ranked = index_of(made).rank(query, "what did bob say", weights, pinned=pinned, skip=skip)
    ordinals = [one.ordinal for one in ranked]
    assert len(set(ordinals)) == len(ordinals)
    assert set(ordinals) <= set(range(1, len(made) + 1)) - skip
    assert all(math.isfinite(one.score) and one.score > 0 for one in ranked)
    assert all(a.score > b.score or (a.score == b.score and a.ordinal < b.ordinal) for a, b in pairwise(ranked))


@given(turns, words)
def test_a_score_is_the_sum_of_its_signals(made: list[IndexedUnit], query: list[str]) -> None:
    for one in index_of(made).rank(query, "bob", Weights(recency=0.3), pinned={2, 5}):
        assert sum(one.signals.values()) == pytest.approx(one.score)
        assert 0.0 not in one.signals.values()


@given(turns, words)
def test_signals_stay_as_they_were_when_the_index_grows(made: list[IndexedUnit], query: list[str]) -> None:
    index, weights = index_of(made), Weights(recency=0.3)
    ranked, looked_at = index.rank(query, "bob", weights), plain(index.rank(query, "bob", weights))
    for ordinal in range(len(made) + 1, len(made) + 6):
        index.add(ordinal, IndexedUnit(WORDS, sitting="2027-01-01"))
    assert plain(ranked) == looked_at


@given(turns, words)
def test_a_limit_and_a_heap_change_nothing_about_the_order(made: list[IndexedUnit], query: list[str]) -> None:
    index = index_of(made)
    whole = [one.ordinal for one in index.rank(query, "", Weights())]
    assert [one.ordinal for one in index.rank(query, "", Weights(), limit=2)] == whole[:2]


# -- what the signals mean -----------------------------------------------------------------------------------------


def turn(text: str, **more: object) -> IndexedUnit:
    return IndexedUnit(terms=text.split(), **more)  # type: ignore[arg-type]


def test_neighbours_do_not_reach_across_days() -> None:
    made = [turn("ash", sitting="a"), turn("elm", sitting="b"), turn("fir", sitting="b")]
    assert [one.ordinal for one in index_of(made).rank(["ash"], "", ONLY_WIDE)] == [1]


def test_an_answer_is_found_under_its_question() -> None:
    made = [turn("ash", asks=True, sitting="a"), turn("fir", sitting="a"), turn("gum", sitting="a")]
    weights = Weights(wide=0, asked=1, sitting=0, date=0, speaker=0)
    assert {one.ordinal for one in index_of(made).rank(["ash"], "", weights)} == {1, 2}


def test_a_day_is_worth_nothing_where_there_is_no_other() -> None:
    made = [turn(word, sitting="a", date_terms=("8", "may")) for word in ("ash", "elm", "fir", "gum", "oak")]
    alone, beside = index_of(made), index_of([*made, turn("yew", sitting="b", date_terms=("9", "may"))])
    assert {one.ordinal for one in alone.rank(["ash", "8"], "", Weights())} == {1, 2, 3}
    assert {one.ordinal for one in beside.rank(["ash", "8"], "", Weights())} == {1, 2, 3, 4, 5}


def test_a_turn_without_a_time_belongs_to_the_day_before_it() -> None:
    made = [turn("ash", sitting="a"), turn("elm"), turn("fir", sitting="a")]
    assert {one.ordinal for one in index_of(made).rank(["ash"], "", Weights())} == {1, 2, 3}


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("what did Al eat", 2),
        ("what did also matter", None),
        ("Al and Ann", None),
        ("AL's cat", 2),
        ("小明喜欢什么", 3),
        ("", None),
    ],
)
def test_the_one_speaker_that_is_named_goes_first(query: str, named: int | None) -> None:
    made = [turn("ash", speaker=name, sitting=str(n)) for n, name in enumerate(("ann", "al", "小明"))]
    ranked = index_of(made).rank(["ash"], query, Weights())
    assert {one.ordinal for one in ranked if one.signals.get("speaker")} == ({named} if named else set())


def test_a_term_that_nearly_all_turns_hold_is_left_out_only_beside_others() -> None:
    made = [turn(f"ash w{n}", sitting="a") for n in range(100)]
    index = index_of(made)
    alone, beside = index.rank(["ash", "unheard"], "", ONLY_WIDE), index.rank(["ash", "w7"], "", ONLY_WIDE)
    assert len(alone) == 100
    assert {one.ordinal for one in beside} == {6, 7, 8, 9, 10}


def test_words_of_a_date_find_its_day() -> None:
    made = [turn("ash", sitting=day, date_terms=(day,)) for day in ("x", "y", "z")]
    assert index_of(made).rank(["y"], "", Weights())[0].ordinal == 2


def test_a_turn_that_brought_new_words_is_worth_more_than_one_that_repeats_them() -> None:
    index = index_of([turn("fir gum", sitting="a"), turn("ash fir", sitting="b"), turn("ash gum", sitting="c")])
    new, repeated = index.rank(["ash"], "", Weights())
    assert (new.ordinal, new.signals["novel"]) == (2, pytest.approx(0.25 * 1.6))
    assert (repeated.ordinal, repeated.signals.get("novel")) == (3, None)


def test_an_everyday_word_of_a_question_counts_less_than_a_rare_one() -> None:
    index = index_of([turn("ash", sitting="a"), turn("elm", sitting="b")])
    everyday, rare = reversed(index.rank(["ash", "elm"], "", ONLY_WIDE, rarity={"ash": 0.0}))
    assert (everyday.ordinal, rare.ordinal) == (1, 2)
    assert everyday.score == pytest.approx(0.4 * rare.score)


def test_pinned_turns_gain() -> None:
    made = [turn("ash", sitting=str(n)) for n in range(4)]
    assert [one.ordinal for one in index_of(made).rank(["ash"], "", Weights(novel=0), pinned={3})] == [3, 1, 2, 4]


def a_reply_to(asked: str, *passages: str, repeated: Sequence[str] = ()) -> SessionIndex:
    """§1 asks, §2 answers at length; the last passage repeats some words."""
    index = SessionIndex()
    index.add(1, turn(asked, sitting="a"))
    for number, text in enumerate(passages, 1):
        again = repeated if number == len(passages) else ()
        index.add(2, turn(text, sitting="a", passage=number, size_tokens=100, repeated=again))
    return index


def test_the_best_passage_has_its_weight_and_a_whole_message_goes_first() -> None:
    found = a_reply_to("elm", "ash elm", "fir gum").rank(["ash"], "", Weights())
    assert [str(one.ref) for one in found] == ["§1", "§2.1"]
    assert found[1].score == pytest.approx(Weights().passage)


def test_a_passage_is_found_by_the_message_that_it_answers() -> None:
    found = a_reply_to("ash", "elm", "elm").rank(["ash"], "", Weights())
    assert {str(one.ref): set(one.signals) for one in found[1:]} == {"§2.1": {"answers"}, "§2.2": {"answers"}}


def test_words_that_a_passage_repeats_find_it_and_nothing_beside_it() -> None:
    index = a_reply_to("elm", "fir", "gum", repeated=("ash",))
    index.add(3, turn("ash", sitting="b"))
    assert [str(one.ref) for one in index.rank(["ash"], "", Weights())] == ["§3", "§2.2"]


@pytest.mark.parametrize(("passages_tokens", "order"), [(0, "§1 §3 §2.1"), (150, "§1 §2.1 §3")])
def test_of_the_room_a_part_is_for_passages(passages_tokens: int, order: str) -> None:
    index = SessionIndex()
    index.add(1, turn("ash", sitting="a", size_tokens=100))
    index.add(2, turn("ash elm", sitting="b", passage=1, size_tokens=100))
    index.add(3, turn("ash ash", sitting="c", size_tokens=100))
    found = index.rank(["ash"], "", Weights(), room_tokens=250, rooms=2, passages_tokens=passages_tokens)
    assert sorted(str(one.ref) for one in found) == sorted(order.split())
    assert [one.ref.part for one in found] == [int(ref == "§2.1") for ref in order.split()]


def test_a_long_turn_counts_less_by_the_root_of_its_length() -> None:
    index = SessionIndex()
    index.add(1, turn("ash " * EVEN_TERMS, sitting="a"))
    index.add(2, turn("ash " * 4 * EVEN_TERMS, sitting="b"))
    even, long = sorted(index.rank(["ash"], "", Weights(sitting=0)), key=lambda one: one.ordinal)
    assert "length" not in even.signals
    assert long.score == pytest.approx(0.5 * (long.signals["wide"] + long.signals["asked"]))
    assert sum(long.signals.values()) == pytest.approx(long.score)


def test_one_message_that_repeats_itself_leaves_room_for_others() -> None:
    index = SessionIndex()
    for part in range(1, 100):
        index.add(1, turn("ash", sitting="a", passage=part))
    index.add(2, turn("ash elm fir", sitting="b"))
    found = [one.ordinal for one in index.rank(["ash"], "", Weights(), limit=20)]
    assert found.count(1) == MAX_PASSAGES_RANKED
    assert 2 in found


@pytest.mark.parametrize("query", [[], ["unheard"]])
def test_what_shares_nothing_with_the_session_finds_nothing(query: list[str]) -> None:
    assert index_of([turn("ash"), turn("elm")]).rank(query, "ash", Weights()) == []
    assert SessionIndex().rank(query, "", Weights(recency=1)) == []


@settings(max_examples=5)
@given(st.integers(0, 2**32))
def test_a_query_touches_no_more_than_so_many_postings_of_a_long_session(seed: int) -> None:
    common = [f"common{n}" for n in range(8)]
    index = index_of([turn(f"{common[(n + seed) % 8]} rare{n}", sitting=str(n // 30)) for n in range(6_000)])
    query = index._telling(Counter([*common, "rare5", "rare77"]))
    assert sum(map(index._postings.spread, query)) <= MAX_POSTINGS
    assert {"rare5", "rare77"} <= set(query)
    assert len(index.rank(common, "", Weights())) == MAX_RANKED


@settings(max_examples=5)
@given(st.integers(0, 2_999))
def test_what_holds_every_word_goes_first_however_many_turns_hold_one(answer: int) -> None:
    words = [f"word{n}" for n in range(24)]
    asked = words[:8]  # a thousand turns hold one of these
    made = [turn(f"{' '.join(asked) if n == answer else words[n % 24]} rare{n}", sitting="a") for n in range(3_000)]
    assert abs(index_of(made).rank(asked, "", ONLY_WIDE)[0].ordinal - (answer + 1)) <= 2


def test_a_ranking_takes_no_more_tokens_than_it_may_and_one_unit_at_least() -> None:
    index = index_of([turn("ash", size_tokens=100, sitting=str(n)) for n in range(9)])
    for room_tokens, ranked in ((250, 2), (100, 1), (0, 1), (10_000, 9)):
        assert len(index.rank(["ash"], "", Weights(), room_tokens=room_tokens)) == ranked


# -- which turns need memory -----------------------------------------------------------------------------------------


def spoken(**more: object) -> SessionIndex:
    said = ["passport expir", *["itinerari zanzibar ferri"] * 12, *["great"] * 40]
    return index_of([turn(text, **more) for text in said])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Which ferry is on the Zanzibar itinerary?", 1.0),
        ("Put the Zanzibar ferry back on the itinerary of Zanzibar", 1.0),
        ("When does my passport expire?", 1 / 5),  # all of its words, said once
        ("Great, thanks!", 0.0),
        ("ok", 0.0),
        ("How do penguins keep warm on the ferry to Antarctica?", 0.0),
        ("", 0.0),
    ],
)
def test_a_turn_recalls_as_far_as_the_session_has_spoken_of_its_words(text: str, part: float) -> None:
    assert spoken().need(rarity_of(text), asks="?" in text) == part


def test_the_words_of_a_date_are_familiar_if_there_is_another_day() -> None:
    asked = rarity_of("Who phoned on 8 November 2023?")
    day = {"sitting": "a", "date_terms": ("8", "novemb", "2023")}
    alone = [turn("great", **day) for _ in range(40)]
    beside = [*alone, turn("great", sitting="b", date_terms=("9", "novemb", "2023"))]
    assert [index_of(made).need(asked, asks=True) for made in (alone, beside)] == [0.0, 1.0]


def test_one_message_that_is_quoted_is_worth_a_part_of_the_room() -> None:
    index = index_of([turn("kiln glaze crack"), *[turn(f"w{n}") for n in range(400)]])
    assert index.need(dict.fromkeys(("kiln", "glaze", "crack", "unheard"), 0.5), asks=False) == 1 / 5


@given(turns, words)
def test_a_need_is_a_part_of_the_room(made: list[IndexedUnit], query: list[str]) -> None:
    for asks in (False, True):
        assert 0 <= index_of(made).need(dict.fromkeys(query, 1.0), asks=asks) <= 1
        assert index_of(made).need({}, asks=asks) == 0


def test_the_weights_of_a_bad_configuration_are_refused() -> None:
    for bad in ({"wide": -1}, {"wide": math.nan}, {"passage": 1.5}, {"date": math.inf}, {"nearly": 1}):
        with pytest.raises(ValueError, match="validation error"):
            Weights.model_validate(bad)
