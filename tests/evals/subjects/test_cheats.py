"""How a subject might cheat, and that the judge is not fooled; what it takes on trust stands in the port."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ctxsteward.envelope.recall.model_tools import DEFAULT_RESULTS, MAX_RESULT_CHARS
from ctxsteward.evals.canaries import TypedCanary
from ctxsteward.evals.prompt_cost import Sizer
from ctxsteward.evals.subjects import Conversation, Prompt
from ctxsteward.evals.subjects.ours import EnvelopeDialogue
from ctxsteward.evals.suites.citation_checks import references_resolve
from ctxsteward.evals.suites.compression import judge
from ctxsteward.evals.suites.kit.play import (
    LOOKUP_SLACK_CHARS,
    SEARCH_HITS,
    BudgetJudge,
    PrefixJudge,
    accounted,
    asked_within_budget,
    reaches,
)
from ctxsteward.evals.suites.kit.suite import PlayCounts, Setup
from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

from .talks import ASK, TALK, Kept, Made, asked, ended, last_call, moments


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


def archive(prompt: Callable[[Any], Prompt]) -> Made:
    """A subject that sends this and resolves honestly."""
    return Made(
        type(
            "Archives",
            (Kept,),
            {
                "prompt": lambda self, question=None: prompt(self),
                "resolve": lambda self, reference: self.said[int(reference.strip("[]m")) - 1]["content"],
            },
        )
    )


EVERY_PLACE = {f"[m{n}]": n for n in range(1, 12)}


# -- references ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "references", "leads"),
    [
        pytest.param("see [m3]", EVERY_PLACE, [3], id="what is shown"),
        pytest.param("see nothing", EVERY_PLACE, [], id="declared and not shown"),
        pytest.param("see [m1]-[m11]", EVERY_PLACE, [], id="the ends of a range"),
        pytest.param("see", {"": 3}, [], id="nothing as a reference"),
        pytest.param(TALK[4]["content"], {"shelf": 3, "item": 4}, [], id="words of what was said"),
        pytest.param(f"Earlier: {TALK[4]['content']}", {"shelf": 3, "item": 4}, [], id="words of a quote"),
    ],
)
def test_references_are_what_stands_in_added_words(text: str, references: dict[str, int], leads: list[int]) -> None:
    made = archive(lambda self: Prompt(messages=[user(text)], references=references))
    assert sorted(last_call(moments(made)).references) == leads


@pytest.mark.parametrize(
    ("sent", "leads"),
    [
        pytest.param([user("; ".join(EVERY_PLACE))], False, id="every reference and no word"),
        pytest.param([user("see [m3], which was said before")], False, id="words that it does not have"),
        pytest.param([user("about the shelf of item 2: [m3]")], True, id="words that it has"),
        pytest.param([user("[m1] [m3]: shelf number 702")], True, id="its value"),
        pytest.param([user("[m3]\nshelf number of item 2 …")], True, id="an excerpt"),
        pytest.param([user("shelf number of item 2: [m1] [m2] [m3] [m4]")], False, id="words for many at once"),
    ],
)
def test_a_reference_leads_somewhere_where_it_tells_what_it_is_about(sent: list[Wire], leads: bool) -> None:
    made = archive(lambda self: Prompt(messages=sent, references=EVERY_PLACE))
    assert last_call(moments(made)).leads(3) is leads
    assert reaches(last_call(moments(made)), 3, "item 2", "702") is leads


@pytest.mark.parametrize(("call_id", "leads"), [("c", True), ("d", False)])
def test_a_reference_in_place_of_a_tool_result_is_about_what_was_called(call_id: str, leads: bool) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    said = (TALK[0], asks, {"role": "tool", "tool_call_id": "c", "content": "702"}, *TALK[3:5])
    sent = [TALK[0], {**asks, "tool_calls": [{**call, "id": call_id}]}]
    sent += [{"role": "tool", "tool_call_id": call_id, "content": "[m3]"}]
    made = archive(lambda self: Prompt(messages=sent, references=EVERY_PLACE))
    assert last_call(moments(made, said)).leads(3) is leads


def test_a_reference_to_a_message_that_nobody_said_does_not_resolve() -> None:
    made = archive(lambda self: Prompt(messages=[user("see [m3] and [m99]")], references={"[m3]": 3, "[m99]": 99}))
    with pytest.raises(IndexError):
        made.open(None, None).resolve("[m99]")  # type: ignore[arg-type, attr-defined]
    scores = {score.at: score.value for score in references_resolve(ended(moments(made))) if score.value is not None}
    assert scores == {"[m3]": 1, "[m99]": 0}


# -- search ----------------------------------------------------------------------------------------------------------


def searching(give: Callable[[Any], list[str]]) -> Made:
    return Made(type("Searches", (Kept,), {"search": lambda self, query: give(self)}))


def texts(self: Any) -> list[str]:
    return [message["content"] for message in self.said]


@pytest.mark.parametrize(
    ("give", "reached"),
    [
        pytest.param(lambda self: texts(self)[2:3], True, id="the message"),
        pytest.param(lambda self: ["Item 2 stands at 702."], True, id="its value in other words"),
        pytest.param(lambda self: ["\n".join(texts(self))], False, id="all that was said as one text"),
        pytest.param(lambda self: [*texts(self)[3:], *texts(self)[3:], *texts(self)], False, id="too many texts"),
        pytest.param(lambda self: [], False, id="nothing"),
    ],
)
def test_a_search_counts_as_far_as_a_model_would_read_it(give: Callable[[Any], list[str]], reached: bool) -> None:
    assert reaches(last_call(moments(searching(give))), 3, "item 2", "702") is reached


def test_the_bounds_of_a_lookup_are_those_of_our_own_search() -> None:
    assert (SEARCH_HITS, LOOKUP_SLACK_CHARS) == (DEFAULT_RESULTS, MAX_RESULT_CHARS)


# -- budget and tokens -----------------------------------------------------------------------------------------------


def only_when_asked(conversation: Conversation) -> Any:
    """Cheap at every call; when a user asks, all that was ever said."""
    return conversation.messages if conversation.messages[-1]["content"] == ASK.question else conversation.messages[-1:]


def within(subject: Any, messages: Any, budget_tokens: int) -> bool:
    moment = asked(moments(subject, messages, ASK, budget_tokens=budget_tokens))
    return asked_within_budget("within_budget", moment, BudgetJudge(Sizer(Setup().counter()))).value == 1


def test_a_budget_holds_when_a_user_asks_too() -> None:
    long = tuple({**wire, "content": f"{wire['content']} " * 20} for wire in TALK)
    assert not within(only_when_asked, long, 500)
    assert within(only_when_asked, long, 50_000)


@pytest.mark.parametrize("field", ["name", "refusal", "metadata"])
def test_text_in_fields_that_are_no_content_is_shown_to_nobody(field: str) -> None:
    moment = asked(moments(lambda _: [{**user("hello"), field: "item 3 is on shelf 703"}], TALK, ASK))
    assert moment.window == "hello"


def test_a_hidden_system_message_is_counted() -> None:
    hidden = [{"role": "system", "content": "item 3 is on shelf 703. " * 200}, user("hello")]
    assert not within(lambda _: hidden, TALK, 200)


# -- reports ---------------------------------------------------------------------------------------------------------


def test_a_rewrite_that_is_denied_breaks_the_prefix() -> None:
    def denies(conversation: Conversation) -> Prompt:
        return Prompt(messages=conversation.messages[-2:], compacted=False)

    judge_of_prefix = PrefixJudge()
    last = last_call(moments(denies))
    assert [score.value for score in judge_of_prefix.read("prefix", last) if score.value is not None] == [0]


def test_a_compaction_that_is_claimed_where_nothing_changed_is_none() -> None:
    def claims(conversation: Conversation) -> Prompt:
        return Prompt(messages=conversation.messages, compacted=True)

    calls = [moment for moment in moments(claims) if hasattr(moment, "compacted")]
    assert [call.compacted for call in calls] == [False] * 6


def test_what_is_shown_is_not_lost() -> None:
    """To report everything as lost accounts for what is gone, and is wrong of what is shown."""

    def gives_up(conversation: Conversation) -> Prompt:
        return Prompt(messages=conversation.messages[-3:], lost=frozenset(range(1, 1_000)))

    scores = [score.value for score in accounted("accounted", ended(moments(gives_up))) if score.value is not None]
    assert scores == [1] * 8 + [0] * 3 + [1]


@pytest.mark.parametrize("summary", ["", "Item 3 is somewhere."])
def test_outdated_values_in_added_words_count_whatever_the_summary_is_said_to_be(summary: str) -> None:
    moved = (*TALK[:10], {"role": "user", "content": "Item 3 is on shelf 888 now."}, TALK[11])
    planted = (
        TypedCanary(kind="updated_value", value="888", ordinals=(4, 11), stale=("703",)),
        "item 3",
    )
    says = {
        "own words": "So far: item 3 is to be found at 703.",
        "a quote": f"So far: {TALK[3]['content']}",
    }
    scores = {
        what: next(
            score.value
            for score in judge(
                planted, asked(moments(lambda _, t=text: Prompt(messages=[user(t)], summary=summary), moved, ASK))
            )
            if score.metric == "updates_followed" and score.value is not None
        )
        for what, text in says.items()
    }
    assert scores == {"own words": 0, "a quote": 1}


@pytest.mark.parametrize(
    ("claimed", "least", "most"),
    [
        pytest.param(0.0, 0.02, 5, id="none"),
        pytest.param(1_000.0, 0.02, 5, id="more than has passed"),
        pytest.param(None, 0.02, 5, id="not told"),
    ],
)
def test_cpu_is_measured_whatever_is_claimed(claimed: float | None, least: float, most: float) -> None:
    def works(conversation: Conversation) -> Prompt:
        until = time.process_time() + least
        while time.process_time() < until:
            pass
        return Prompt(messages=conversation.messages, cpu_seconds=claimed)

    counts = PlayCounts()
    moments(works, TALK[:3], counts=counts)
    assert all(least <= seconds < most for seconds in counts.build_cpu_seconds)


def test_a_dialogue_that_passes_for_ours_is_judged_as_anybodys() -> None:
    """Ours tells what only its envelope knows; one that inherits from it could tell anything."""

    class Passes(EnvelopeDialogue):
        def __init__(self, *_: object) -> None:
            self.said: list[Wire] = []

        def add(self, message: Wire) -> None:
            self.said.append(message)

        def prompt(self, question: str | None = None) -> Prompt:
            return Prompt(messages=self.said[-1:], envelope=object())  # type: ignore[arg-type]

        def accounted(self) -> set[int]:
            return set(range(1_000))

    found = moments(Made(Passes))
    assert last_call(found).ours is None
    assert [score.value for score in accounted("accounted", ended(found))] == [None]


def test_a_request_to_anthropic_that_breaks_ends_the_scenario_with_its_own_error() -> None:
    def breaks(conversation: Conversation) -> Prompt:
        return Prompt(messages=conversation.messages, anthropic=lambda: [])  # type: ignore[arg-type, return-value]

    moment = last_call(moments(breaks))
    assert moment.prompt.anthropic is not None
    with pytest.raises(InputError, match="`anthropic` gave list"):
        moment.prompt.anthropic()
