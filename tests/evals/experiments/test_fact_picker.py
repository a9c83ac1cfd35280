"""Facts for a request: which are picked, how they are shown, what they cost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter, load_tokenizer
from ctxsteward.evals.experiments.fact_picker import FactPicker, RequestFact, of_observation, of_record, pick, shown
from ctxsteward.schemas.recommendation import Confidence, Evidence, Extractor, MetaRecommendation, Scope, Slot, Support
from ctxsteward.steward.harvest.harvester import HARVESTERS

from ...steward.harvest.talk import said, talk

COUNTER = Counter(load_tokenizer("o200k_base"))


def fact(number: int, text: str, *, day: str | None = "2023-05-08", **more: object) -> RequestFact:
    ts = f"{day}T10:00:00" if day else None
    fields: dict[str, object] = {"pointer": f"§{number}", "ts": ts, "order": (number, 0), **more}
    return RequestFact(id=str(number), text=text, **fields)  # type: ignore[arg-type]


FACTS = [
    fact(1, "Ann: The spare key hangs in the shed."),
    fact(2, "Ann: My sister lives in Oslo."),
    fact(3, "Bob: We sold the piano in spring.", day="2023-05-09"),
    fact(4, "Bob: My sister lives in Bergen.", day="2023-05-09"),
    fact(5, "Ann: 我对花生过敏。", day="2023-05-10"),
]


def picked(query: str, budget_tokens: int = 60, facts: list[RequestFact] = FACTS) -> list[str]:
    return [one.id for one in pick(facts, query, budget_tokens, COUNTER).facts]


@pytest.mark.parametrize(
    ("query", "id"),
    [
        pytest.param("Where is the spare key?", "1", id="a word"),
        pytest.param("Who got rid of the pianos?", "3", id="another form of it"),
        pytest.param("花生可以吃吗？", "5", id="Chinese"),
        pytest.param("What happened on 9 May?", "3", id="a date"),
    ],
)
def test_what_says_most_about_the_question_is_picked(query: str, id: str) -> None:
    assert id in picked(query, budget_tokens=24)


def test_the_speaker_whom_the_question_names_goes_first() -> None:
    assert picked("Where does Bob's sister live?", budget_tokens=18) == ["4"]
    assert picked("Where does Ann's sister live?", budget_tokens=18) == ["2"]


def test_a_fact_is_found_under_the_question_it_answers_which_is_not_shown() -> None:
    answer = fact(9, "Ann: In Bergen, near the harbour.", answers="Where did you grow up?")
    slice = pick([*FACTS, answer], "Where did Ann grow up?", 30, COUNTER)
    assert "9" in {one.id for one in slice.facts}
    assert "grow" not in slice.text


def test_facts_stand_under_their_day_in_the_order_in_which_they_were_said() -> None:
    slice = pick(FACTS, "Where does whose sister live, and where is the spare key?", 200, COUNTER)
    assert slice.text.splitlines()[:3] == [
        "8 May 2023:",
        "§1 Ann: The spare key hangs in the shed.",
        "§2 Ann: My sister lives in Oslo.",
    ]
    assert slice.text.endswith("§4 Bob: My sister lives in Bergen.\n")


def test_what_was_said_in_one_message_stands_behind_one_pointer() -> None:
    two = [fact(1, "Ann: I moved."), fact(1, "Ann: My key is in the shed.", order=(1, 9))]
    assert shown(two) == "8 May 2023:\n§1 Ann: I moved. My key is in the shed.\n"


def test_facts_without_a_day_or_a_pointer_are_shown_plainly() -> None:
    assert shown([fact(1, "Tea it is.", day=None, pointer="")]) == "Tea it is.\n"
    mixed = [fact(1, "Ann: I moved."), fact(2, "Tea it is.", day=None)]
    assert shown(mixed) == "8 May 2023:\n§1 Ann: I moved.\nundated:\n§2 Tea it is.\n"


def test_nothing_to_say_is_an_empty_slice() -> None:
    assert pick([], "Where is the key?", 60, COUNTER) == ("", (), 0)
    assert pick(FACTS, "", 60, COUNTER) == ("", (), 0)
    assert pick(FACTS, "Where is the spare key?", 3, COUNTER) == ("", (), 0)


WORDS = st.lists(st.sampled_from("key shed oslo piano sister tea 花生 moved to the in".split()), min_size=1, max_size=9)  # noqa: SIM905


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(WORDS, st.integers(1, 28), st.booleans()), max_size=12), WORDS, st.integers(0, 300), st.randoms()
)
def test_a_slice_is_in_budget_and_of_its_input_alone(rows: list, query: list[str], budget: int, random: object) -> None:  # type: ignore[type-arg]
    facts = [
        fact(number, f"Ann: {' '.join(words)}.", day=f"2023-05-{day:02d}" if dated else None)
        for number, (words, day, dated) in enumerate(rows, 1)
    ]
    counter = Counter(CharTokenizer())
    slice = pick(facts, " ".join(query), budget, counter)
    assert slice.tokens == counter.text(slice.text) <= budget
    assert shown(slice.facts) == slice.text
    random.shuffle(facts)  # type: ignore[attr-defined]
    assert pick(facts, " ".join(query), budget, counter) == slice


def test_one_picker_serves_many_questions() -> None:
    picker = FactPicker(FACTS, COUNTER)
    for query in ("Where is the spare key?", "Where does Bob's sister live?"):
        assert picker.pick(query, 60) == pick(FACTS, query, 60, COUNTER)


def test_an_observation_and_its_record_make_one_fact() -> None:
    asked = said("Where did you grow up?", "assistant", 1)
    replayed = talk(asked, said("I grew up in Bergen with my brother.", ordinal=2, ts="2023-05-08T10:00:00"))
    (seen,) = HARVESTERS["facts"](replayed)
    made = of_observation(seen, id="a")
    assert (made.pointer, made.day, made.answers) == ("§2", "2023-05-08", "Where did you grow up?")
    place = seen.places[0]
    record = MetaRecommendation(
        id="a",
        kind="fact",
        scope=Scope(tenant="t", agent="default", user="user-1"),
        slot=Slot(subject="user", attribute="origin"),
        text=seen.text,
        evidence=(
            Evidence(
                source="talk.jsonl", session="talk", ref=place.ref, span=(place.start, place.stop), role="user",
                span_address="0" * 64, trust="user", principal="user-1", ts=seen.ts,
            ),
        ),
        support=Support(events=1, sessions=1, principals=1),
        confidence=Confidence(score=0.9, lower95=0.2, method="wilson"),
        trust="user",
        extractor=Extractor(name="facts", version="1"),
        run="night-1",
        tokens=9,
    )  # fmt: skip
    assert of_record(record, answers=seen.answers) == made
