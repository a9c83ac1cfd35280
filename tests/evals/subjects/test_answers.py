"""What a strategy may answer wrongly: each has one clear message, or the score that it deserves."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ctxsteward.evals.subjects import Conversation, Prompt
from ctxsteward.evals.suites.kit.suite import Draw, Setup
from ctxsteward.evals.suites.results import play_one
from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

from .talks import ASK, TALK, FunctionSubject, Kept, Made, asked, ended, last_call, moments

HELLO: Wire = {"role": "user", "content": "hello"}


@dataclass(frozen=True, kw_only=True)
class BadAnswer:
    answer: Any
    told: str


def messages(**changed: Any) -> list[Wire]:
    return [{key: value for key, value in {**HELLO, **changed}.items() if value is not ...}]


def called(**changed: Any) -> list[Wire]:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}, **changed}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}]


async def never_awaited() -> Iterator[Wire]:
    yield HELLO  # type: ignore[misc]  # an async generator, which no strategy is


BAD_ANSWERS = {
    "nothing": BadAnswer(answer=None, told="it returned nothing (None); return a list of chat messages, or a Prompt"),
    "a text": BadAnswer(answer="hello", told="it returned str 'hello'; return a list of chat messages"),
    "bytes": BadAnswer(answer=b"hello", told="it returned bytes b'hello'"),
    "one message": BadAnswer(answer=HELLO, told="it returned dict {'role': 'user', 'content': 'hello'}; return a list"),
    "a number": BadAnswer(answer=7, told="it returned int 7"),
    "texts": BadAnswer(answer=["hello"], told="message 1 of what it returned is str 'hello'; write an OpenAI chat"),
    "tuples": BadAnswer(answer=[HELLO, ("user", "hi")], told="message 2 of what it returned is tuple"),
    "no role": BadAnswer(answer=messages(role=...), told="message 1 of what it returned has role None, not one of sys"),
    "unknown role": BadAnswer(answer=messages(role="narrator"), told="has role 'narrator', not one of system, develop"),
    "no content": BadAnswer(answer=messages(content=...), told="of role user has no content"),
    "content None": BadAnswer(answer=messages(content=None), told="of role user has no content"),
    "content of a number": BadAnswer(answer=messages(content=5), told="has content int 5, neither a text nor"),
    "content of texts": BadAnswer(answer=messages(content=["hi"]), told="has content list ['hi'], neither"),
    "text that is not counted": BadAnswer(
        answer=messages(content=[{"type": "image_url", "image_url": {"url": "x"}, "text": "all that was said"}]),
        told="neither a text nor a list of parts of type text or image_url",
    ),
    "another provider's block": BadAnswer(
        answer=messages(content=[{"type": "thinking", "thinking": "", "text": "hidden"}]), told="neither a text"
    ),
    "a tool's message of no call": BadAnswer(answer=messages(role="tool"), told="of role tool has no tool_call_id"),
    "calls of a user": BadAnswer(answer=messages(tool_calls=[{}]), told="of role user has tool_calls"),
    "calls that are no list": BadAnswer(
        answer=messages(role="assistant", tool_calls={"id": "a"}), told="has tool_calls dict {'id': 'a'}, not a list"
    ),
    "a call without function": BadAnswer(answer=called(function=None), told="has a tool call without id or function"),
    "a call without id": BadAnswer(answer=called(id=None), told="has a tool call without id or function"),
    "arguments as a dict": BadAnswer(
        answer=called(function={"name": "look", "arguments": {}}), told="has a tool call whose name or arguments are no"
    ),
    "no JSON": BadAnswer(answer=messages(extra={1, 2}), told="is not JSON (Object of type set is not"),
    "not a number": BadAnswer(answer=messages(extra=float("nan")), told="is not JSON (Out of range float values"),
    "half a character": BadAnswer(
        answer=messages(content="\ud800"), told="is not JSON ('utf-8' codec can't encode character '\\ud800'"
    ),
    "without end": BadAnswer(answer=iter(lambda: HELLO, None), told="more than 100,000 messages; return what a call"),
    "an async generator": BadAnswer(answer=never_awaited(), told="it returned an async generator; return a list"),
    "messages of a Prompt": BadAnswer(answer=Prompt(messages="hello"), told="it returned str 'hello'"),  # type: ignore[arg-type]
    "references in a list": BadAnswer(
        answer=Prompt(messages=[HELLO], references=["[1]"]),  # type: ignore[arg-type]
        told="`references` of its Prompt is list ['[1]']; give a dict from each reference to a 1-based place",
    ),
    "references from 0": BadAnswer(answer=Prompt(messages=[HELLO], references={"[0]": 0}), told="1-based place"),
    "summary of bytes": BadAnswer(
        answer=Prompt(messages=[HELLO], summary=b"x"),  # type: ignore[arg-type]
        told="`summary` of its Prompt is bytes b'x'; give a text or None",
    ),
    "lost by name": BadAnswer(
        answer=Prompt(messages=[HELLO], lost=frozenset({"§1"})),  # type: ignore[arg-type]
        told="`lost` of its Prompt is frozenset frozenset({'§1'}); give a set of 1-based places or None",
    ),
    "compacted as a number": BadAnswer(
        answer=Prompt(messages=[HELLO], compacted=1),  # type: ignore[arg-type]
        told="`compacted` of its Prompt is int 1; give a bool or None",
    ),
    "endless CPU": BadAnswer(
        answer=Prompt(messages=[HELLO], cpu_seconds=float("inf")), told="`cpu_seconds` of its Prompt is float inf"
    ),
    "a request in place of its maker": BadAnswer(
        answer=Prompt(messages=[HELLO], anthropic={}),  # type: ignore[arg-type]
        told="`anthropic` of its Prompt is dict {}; give a function or None",
    ),
}


@pytest.mark.parametrize("case", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_a_wrong_answer_is_refused_by_name(case: BadAnswer) -> None:
    with pytest.raises(InputError) as refused:
        moments(lambda conversation: case.answer)
    assert str(refused.value).startswith("subject made: ")
    assert case.told in str(refused.value)


def generated(conversation: Conversation) -> Iterator[Wire]:
    yield from conversation.messages


async def awaited(conversation: Conversation) -> list[Wire]:
    await asyncio.sleep(0)
    return list(conversation.messages)


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(lambda conversation: tuple(conversation.messages), id="a tuple"),
        pytest.param(lambda conversation: Prompt(messages=conversation.messages), id="a Prompt"),
        pytest.param(generated, id="a generator"),
        pytest.param(awaited, id="a coroutine"),
    ],
)
def test_any_list_of_messages_is_an_answer(strategy: Callable[[Conversation], Any]) -> None:
    assert last_call(moments(strategy)).prompt.messages == list(TALK[:11])


def test_no_messages_at_all_are_an_answer_that_shows_nothing() -> None:
    assert asked(moments(lambda conversation: [], TALK, ASK)).window == ""


# -- a subject does no harm ------------------------------------------------------------------------------------------


def test_what_a_strategy_does_to_its_messages_changes_nothing_that_was_said() -> None:
    def spoils(conversation: Conversation) -> Any:
        for message in conversation.messages:
            message["content"] = "spoilt"
        conversation.messages.clear()  # type: ignore[attr-defined]
        return [HELLO]

    end = ended(moments(spoils))
    assert list(end.wires) == list(TALK)


def test_what_a_strategy_sent_stays_as_it_was_sent() -> None:
    """One that changes the list it returned before would pass for one whose prefix never changes."""
    sent: list[Wire] = []

    def rewrites(conversation: Conversation) -> Prompt:
        sent[:] = [{"role": "user", "content": f"version {len(conversation.messages)}"}]
        return Prompt(messages=sent, compacted=False)

    call = last_call(moments(rewrites))
    assert not call.extends


def test_what_a_subject_prints_does_not_stand_among_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    def prints(conversation: Conversation) -> Any:
        print("thinking…")
        return conversation.messages

    moments(prints)
    out, err = capsys.readouterr()
    assert (out, "thinking…" in err) == ("", True)


def test_a_subject_that_leaves_ends_its_scenario_alone() -> None:
    with pytest.raises(InputError, match=r"the subject ended itself \(SystemExit 3\); return or raise instead"):
        moments(lambda conversation: sys.exit(3))


def test_a_process_that_a_subject_forks_does_not_go_on_judging() -> None:
    children: list[int] = []

    def forks(conversation: Conversation) -> Any:
        if child := os.fork():
            children.append(child)
        return conversation.messages

    moments(forks, TALK[:3])
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0]


def test_an_exception_of_a_strategy_is_its_scenarios_own_error() -> None:
    def fails(conversation: Conversation) -> Any:
        raise ZeroDivisionError("no rows")

    result = play_one(Draw("verbatim", "docs", 1), Setup(subject=FunctionSubject("fails", fails)))
    assert re.fullmatch(r"ZeroDivisionError: no rows, at test_answers.py:\d+ in fails", str(result.error))


def test_conversations_do_not_say_which_scenario_they_are() -> None:
    """A scenario's id is all that its answers are made from."""
    tasks = []

    def notes(conversation: Conversation) -> Any:
        tasks.append(conversation.task)
        return conversation.messages

    moments(notes)
    assert "verbatim" not in repr(tasks)
    assert len({task.id for task in tasks}) == 1


# -- lookups ---------------------------------------------------------------------------------------------------------


class Refers(Kept):
    """Shows one reference, to the third message."""

    def prompt(self, question: str | None = None) -> Any:
        return Prompt(messages=[{"role": "user", "content": "the shelf of item 2: [m3]"}], references={"[m3]": 3})


def resolving(resolve: Any) -> Made:
    return Made(type("Resolves", (Refers,), {"resolve": resolve}))


def raises(error: Exception) -> Callable[..., str]:
    def resolve(self: Any, reference: str) -> str:
        raise error

    return resolve


async def later(self: Any, reference: str) -> str:
    return str(TALK[2]["content"])


@pytest.mark.parametrize(
    ("resolve", "leads"),
    [
        pytest.param(lambda self, reference: self.said[2]["content"], True, id="the message"),
        pytest.param(lambda self, reference: f"§3 user:\n{self.said[2]['content']}", True, id="with a label"),
        pytest.param(later, True, id="a coroutine"),
        pytest.param(lambda self, reference: self.said[1]["content"], False, id="another message"),
        pytest.param(raises(KeyError("m3")), False, id="not there"),
        pytest.param(lambda self, reference: "\n".join(m["content"] for m in self.said), False, id="all that was said"),
        pytest.param(lambda self, reference: "", False, id="nothing"),
    ],
)
def test_a_reference_leads_to_its_message_and_little_else(resolve: Any, leads: bool) -> None:
    assert last_call(moments(resolving(resolve))).leads(3) is leads


@pytest.mark.parametrize(
    ("resolve", "error", "told"),
    [
        pytest.param(
            lambda self, reference: None, InputError, "`resolve` gave nothing (None); give the text", id="None"
        ),
        pytest.param(lambda self, reference: b"x", InputError, "`resolve` gave bytes b'x'", id="bytes"),
        pytest.param(raises(ValueError("broken")), ValueError, "broken", id="an exception"),
        pytest.param(lambda self, reference: self.resolve(reference), RecursionError, "recursion", id="itself"),
    ],
)
def test_a_reference_that_breaks_says_how(resolve: Any, error: type[Exception], told: str) -> None:
    moment = last_call(moments(resolving(resolve)))
    with pytest.raises(error) as broke:
        moment.leads(3)
    assert told in str(broke.value)


@pytest.mark.parametrize(
    "answer", [pytest.param(each, id=repr(each)) for each in (None, "one text", b"x", {"a": 1}, 7, [3], [None])]
)
def test_a_search_gives_a_list_of_texts_or_says_what_it_gave(answer: object) -> None:
    from ctxsteward.evals.suites.kit.play import reaches

    searches = Made(type("Searches", (Kept,), {"search": lambda self, query: answer}))
    with pytest.raises(InputError, match=r"the subject's `search` gave .+; give a list of texts"):
        reaches(last_call(moments(searches)), 1, "item 0", "700")
