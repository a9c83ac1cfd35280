"""Records shown, fired and obeyed: counted over a replayed session, without a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ctxsteward.schemas.recommendation import MetaRecommendation, Slot
from ctxsteward.steward.harvest.harvester import harvest
from ctxsteward.steward.harvest.usage import RecordUse, UseTally, WatchedRecord, tally
from ctxsteward.steward.observations.observation import MessageSpan, Observation
from ctxsteward.steward.observations.transcript import ReplayedCall, Role

from ..scenes import recommendation
from .tools.scenes import Line, asks, call, scene, tells

TRIGGER = "tool:book error:payment arg:payment_id"
FAILS = call("book", "Error: payment method not found", user="ann", payment_id="card_1")
WORKS = call("book", "{}", user="ann", payment_id="card_2")


def record(
    id: str = "r-1", kind: Any = "tool_fix", slot: tuple[str, str] = ("book", "x"), **fields: Any
) -> MetaRecommendation:
    of = {"subject": slot[0], "attribute": slot[1]}
    return recommendation(id, "a record of some length", kind=kind, slot=of, **fields)


def fix(id: str = "r-1", trigger: str = TRIGGER) -> MetaRecommendation:
    return record(id, trigger=trigger, action="take payment_id from get_user")


def count(*lines: Line, records: tuple[MetaRecommendation, ...], observed: tuple[Observation, ...] = ()) -> UseTally:
    shown = frozenset(one.id for one in records)
    return tally(scene(*lines, shown=shown), tuple(map(WatchedRecord.of, records)), observed)


@pytest.mark.parametrize(
    ("lines", "hit"),
    [
        ((), RecordUse(shown=1, judged=1)),
        ((call("find", "[]", payment_id="card_1"),), RecordUse(shown=1, judged=1)),
        ((call("book", "{}", user="ann"),), RecordUse(shown=1, judged=1)),
        ((WORKS,), RecordUse(shown=1, judged=1, fired=1, complied=1)),
        ((WORKS, WORKS), RecordUse(shown=1, judged=1, fired=1, complied=1)),
        ((FAILS, WORKS), RecordUse(shown=1, judged=1, fired=1, contradicted=1)),
        (
            (call("book", "Error: flight not found", payment_id="card_1", flight="HAT1"),),
            RecordUse(shown=1, judged=1, fired=1, complied=1),
        ),
        (
            (asks(1, (ReplayedCall(id="a", name="book", arguments='{"payment_id": "x"}'),)),),
            RecordUse(shown=1, judged=1, fired=1, unjudged=1),
        ),
    ],
    ids=["none", "another tool", "no argument", "worked", "twice is once", "failed", "failed otherwise", "pending"],
)
def test_a_fix_fires_on_its_tool_and_argument_and_is_judged_by_the_answer(
    lines: tuple[Line, ...], hit: RecordUse
) -> None:
    assert count(*lines, records=(fix(),)).uses == {"r-1": hit}


@pytest.mark.parametrize(
    ("trigger", "anticipated"),
    [
        (TRIGGER, 1),
        ("tool:book error:payment", 1),
        ("tool:book error:payment arg:flights", 0),
        ("tool:book error:not_found arg:payment_id", 0),
        ("tool:change error:payment arg:payment_id", 0),
        ("whenever it fails", 0),
    ],
    ids=["all of it", "no argument named", "another argument", "another code", "another tool", "no trigger"],
)
def test_an_error_is_anticipated_by_its_tool_code_and_argument_alone(trigger: str, anticipated: int) -> None:
    found = count(FAILS, WORKS, records=(fix(trigger=trigger),))
    assert (found.events, found.anticipated) == (1, anticipated)


def test_a_record_that_was_not_shown_may_anticipate_but_has_no_row() -> None:
    found = tally(scene(FAILS), [WatchedRecord.of(fix())])
    assert (found.events, found.anticipated, found.uses) == (1, 1, {})


def heard(kind: Any = "correction", slot: tuple[str, str] = ("user", "unit_system")) -> Observation:
    return Observation(
        kind=kind,
        text="use metric units",
        slot=Slot(subject=slot[0], attribute=slot[1]),
        places=(MessageSpan("§1", 0, 3),),
        strength="strict",
        score=0.9,
        reach="session",
        principal="task-1",
    )


def metric(**fields: Any) -> MetaRecommendation:
    return record("p-1", "preference", ("user", "unit_system"), **{"value": "metric", **fields})


@pytest.mark.parametrize(
    ("lines", "record", "observed", "hit"),
    [
        (("hello",), metric(), (), RecordUse(shown=1, judged=1)),
        (
            ("which unit is it?", tells(2, "All metric: 3 km.", role="assistant")),
            metric(),
            (),
            RecordUse(1, 1, 1, 1, 0, 0),
        ),
        (("which unit is it?", tells(2, "3 miles.", role="assistant")), metric(), (), RecordUse(1, 1, 1, 0, 0, 1)),
        (
            ("which unit is it?", tells(2, "All metric: 3 km.", role="assistant")),
            metric(polarity="negative"),
            (),
            RecordUse(1, 1, 1, 0, 1, 0),
        ),
        (("no, use metric",), metric(), (heard(),), RecordUse(1, 1, 1, 0, 0, 1)),
        (("which unit is it?",), metric(value=None), (), RecordUse(1, 1, 1, 0, 0, 1)),
        (("anything",), record("p-1", "eval_failure", ("user", "plan")), (), RecordUse(shown=1)),
    ],
    ids=["not come up", "said", "not said", "said though to avoid", "said first", "no value", "cannot be told"],
)
def test_what_people_said_is_judged_by_words_or_not_at_all(
    lines: tuple[Line, ...], record: MetaRecommendation, observed: tuple[Observation, ...], hit: RecordUse
) -> None:
    assert count(*lines, records=(record,), observed=observed).uses == {"p-1": hit}


WISHES: dict[str, tuple[str, str]] = {
    "metric": ("Please always answer in metric units.", "preference"),
    "no emojis": ("Never use emojis.", "preference"),
    "公制": ("请以后都用公制单位。", "preference"),
    "不用表情": ("以后不要用表情符号。", "preference"),
}
"""What records were made of, and their kind."""
ASSISTANT: Role = "assistant"
USER: Role = "user"
REPEATED: list[tuple[str, str, tuple[tuple[Role, str], ...], str]] = [
    # reason, wish, what is said in a later session that was shown the record, what becomes of it
    ("nobody spoke before", "metric", ((USER, "Please always answer in metric units."),), "unjudged"),
    ("said again at once", "metric", ((USER, "As I said, please always use metric units."),), "unjudged"),
    (
        "greeted, then told",
        "metric",
        ((USER, "Hi"), (ASSISTANT, "Hello, how can I help?"), (USER, "Please always answer in metric units.")),
        "unjudged",
    ),
    (
        "done, then thanked for",
        "metric",
        (
            (USER, "How far is it?"),
            (ASSISTANT, "In metric units: 3 km."),
            (USER, "Please always answer in metric units."),
        ),
        "complied",
    ),
    (
        "done, then changed their mind",
        "metric",
        ((USER, "How far?"), (ASSISTANT, "3 km, metric."), (USER, "Please always answer in imperial units.")),
        "complied",
    ),
    (
        "did otherwise, told again",
        "metric",
        ((USER, "How far?"), (ASSISTANT, "3 miles."), (USER, "I told you, please always use metric units.")),
        "contradicted",
    ),
    (
        "did otherwise in words of the matter",
        "metric",
        (
            (USER, "How far?"),
            (ASSISTANT, "In imperial units, 3 miles."),
            (USER, "Please always answer in metric units."),
        ),
        "contradicted",
    ),
    (
        "did otherwise after it was said here",
        "metric",
        (
            (USER, "Please always answer in metric units."),
            (ASSISTANT, "Fine. It is 3 miles."),
            (USER, "I already told you, please always use metric units."),
        ),
        "contradicted",
    ),
    (
        "what was just said here is no merit of the record",
        "metric",
        ((USER, "Please always answer in metric units."), (ASSISTANT, "In metric units: 3 km.")),
        "unjudged",
    ),
    (
        "an objection",
        "metric",
        ((USER, "How far?"), (ASSISTANT, "3 miles."), (USER, "No, always answer in metric units.")),
        "contradicted",
    ),
    (
        "the answer to a question",
        "metric",
        ((USER, "How far?"), (ASSISTANT, "Which one do you want?"), (USER, "Always answer in metric units.")),
        "unjudged",
    ),
    (
        "told to stop again",
        "no emojis",
        ((USER, "Hi"), (ASSISTANT, "Hi 😀"), (USER, "Never use emojis, I already told you.")),
        "contradicted",
    ),
    ("told to stop for once", "no emojis", ((USER, "Hi"), (ASSISTANT, "Hi"), (USER, "Never use emojis.")), "unjudged"),
    (
        "wants them now",
        "no emojis",
        ((USER, "Hi"), (ASSISTANT, "Hi"), (USER, "I changed my mind: always use emojis, I said.")),
        "unjudged",
    ),
    ("没有人先说话", "公制", ((USER, "请以后都用公制单位。"),), "unjudged"),
    ("问候之后才说", "公制", ((USER, "你好"), (ASSISTANT, "您好。"), (USER, "请以后都用公制单位。")), "unjudged"),
    (
        "做错了，再说一遍",
        "公制",
        ((USER, "多远？"), (ASSISTANT, "三英里。"), (USER, "我说过了，请一直用公制单位。")),
        "contradicted",
    ),
    (
        "又用错了",
        "不用表情",
        ((USER, "你好"), (ASSISTANT, "你好😀"), (USER, "我说过，以后不要用表情符号。")),
        "contradicted",
    ),
    ("第一次说", "不用表情", ((USER, "你好"), (ASSISTANT, "你好"), (USER, "以后不要用表情符号。")), "unjudged"),
]


def learned(wish: str) -> MetaRecommendation:
    """The record that a wish has become."""
    text, kind = WISHES[wish]
    (found,) = [one for one in harvest(scene(text)) if one.kind == kind]
    return record(
        "p-1", found.kind, (found.slot.subject, found.slot.attribute), value=found.value, polarity=found.polarity
    )


@pytest.mark.parametrize(("wish", "said", "judged"), [row[1:] for row in REPEATED], ids=[row[0] for row in REPEATED])
def test_who_states_a_wish_anew_was_disobeyed_only_where_the_assistant_did_otherwise_before(
    wish: str, said: tuple[tuple[Role, str], ...], judged: str
) -> None:
    lines = [tells(at, text, role=role) for at, (role, text) in enumerate(said, 1)]
    session = scene(*lines, shown=frozenset(("p-1",)))
    hit = tally(session, [WatchedRecord.of(learned(wish))], harvest(session)).uses["p-1"]
    assert hit == RecordUse(shown=1, judged=1, fired=1)._replace(**{judged: 1})


def test_a_record_is_known_by_every_id_that_it_was_shown_under() -> None:
    merged_since = replace(WatchedRecord.of(fix("r-9")), names=frozenset(("r-1", "r-9")))
    found = tally(scene(WORKS, shown=frozenset(("r-1",))), (), watched=[merged_since])
    assert found.uses == {"r-9": RecordUse(shown=1, judged=1, fired=1, complied=1)}


def test_what_a_person_says_again_is_an_event_that_its_slot_anticipated() -> None:
    found = count(
        "no, metric", records=(metric(),), observed=(heard(), heard(slot=("user", "tone")), heard("eval_failure"))
    )
    assert (found.events, found.anticipated) == (2, 1)


def test_a_chinese_value_is_found_in_running_text() -> None:
    record_ = metric(value="公制")
    found = count("用什么单位？", tells(2, "这里用公制单位。", role="assistant"), records=(record_,))
    assert found.uses["p-1"].complied == 1


def test_what_cannot_be_judged_was_shown_and_nothing_else() -> None:
    undecided = count("anything", records=(record("p-1", "eval_failure", ("user", "plan")),))
    assert undecided.total == RecordUse(shown=1)


SESSIONS = st.lists(st.sampled_from((FAILS, WORKS, "hello", call("find", "Error: not found", id="x-1"))), max_size=5)
RECORDS = st.lists(
    st.sampled_from((fix("r-1"), fix("r-2", "tool:find error:not_found arg:id"), metric())), unique_by=lambda r: r.id
)


@given(st.lists(st.tuples(SESSIONS, RECORDS), max_size=4))
def test_each_count_is_a_part_of_the_one_before(sessions: list[tuple[list[Line], list[MetaRecommendation]]]) -> None:
    for lines, records in sessions:
        one = count(*lines, records=tuple(records))
        assert 0 <= one.anticipated <= one.events
        assert one.total.complied + one.total.contradicted + one.total.unjudged == one.total.fired
        assert one.total.fired <= one.total.judged <= one.total.shown
