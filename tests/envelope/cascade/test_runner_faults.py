"""What goes wrong around a run, and what it may not do then: ask too often, run tools twice, lose or show too much."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest

from ctxsteward.envelope import LogEntry, Session
from ctxsteward.envelope.cascade import script_of
from ctxsteward.envelope.cascade.config import cascade_of
from ctxsteward.envelope.cascade.continuity import decisions_of
from ctxsteward.envelope.cascade.runner import choice_in, recording_of
from ctxsteward.envelope.cascade.script import ModelAnswer, ModelRequest, ToolAnswer, ToolUse, called, tool_schema
from ctxsteward.envelope.cascade.turns import RunLedger
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.suites.kit.faulty_objects import Crashed
from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.message import Wire

from .runs import SIBLINGS
from .test_runner import Heard, play, row, runner_of, search


def dig(**more: Any) -> Cascade:
    return cascade_of({"cascade_id": "c", "phases": [{"name": "dig", "instructions": "Dig.", **more}]})


STRICT = {"loop_until": "v", "max_attempts": 2}
REFUSED = [row("dig", f"Port {n}.", refused="no source") for n in range(2)]


@pytest.mark.parametrize("intra", [None, {}])
def test_killed_after_its_last_refusal_it_asks_no_more(intra: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script, store, cascade = (
        script_of([*REFUSED, row("dig", "Fine.")]),
        memory_store(),
        dig(rules=STRICT, intra_context=intra),
    )
    put = RunLedger.put

    def killed(self: RunLedger, name: str, value: object) -> None:
        if name.startswith("end-"):
            raise Crashed
        put(self, name, value)

    monkeypatch.setattr(RunLedger, "put", killed)
    with pytest.raises(Crashed):
        runner_of(cascade, script, store).play()
    monkeypatch.setattr(RunLedger, "put", put)
    heard = Heard(script)
    (end,) = runner_of(cascade, script, store, player=heard).play().phases

    assert (heard.asked, end.status, end.tries, end.calls, end.text) == ([], "failed", 2, 2, "Port 1.")
    assert end.reason == "'v' refused 2 attempts, the last one: no source"


def test_what_was_refused_is_stored_as_refused_and_gives_no_state() -> None:
    store, extraction = memory_store(), {"pattern": r"Port (\d+)", "store_as": "port"}
    end, _ = play(dig(rules=STRICT, intra_context={}, output_extraction=extraction), REFUSED, store=store)
    kept = [entry.message.text for entry in store.session("r").entries()]

    assert (end.status, end.state.get("port")) == ("failed", None)
    assert kept[-2:] == ["[Refused attempt #2]\n'v' refused 2 attempts, the last one: no source", "Port 1."]
    assert not any("Accepted" in text for text in kept)


def circular() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def raising() -> None:
    raise ValueError("half \ud83d")


@pytest.mark.parametrize(
    ("function", "text", "is_error"),
    [
        (lambda: datetime.date(2020, 1, 2), '"2020-01-02"', False),
        (lambda: {1}, '"{1}"', False),
        (lambda: {"raw": b"x"}, '{"raw": "b\'x\'"}', False),
        (lambda: "half \ud83d", "half ?", False),
        (lambda: {"half": "\ud83d"}, '{"half": "?"}', False),
        (raising, "error: ValueError: half ?", True),
        (lambda: {(1, 2): 3}, "error: TypeError: ", True),
        (circular, "error: ValueError: ", True),
    ],
)
def test_whatever_a_tool_gives_is_told_and_asked_for_once(
    function: Callable[[], object], text: str, is_error: bool
) -> None:
    rows = [row("dig", "I look.", {"tool": "look", "id": "a"}), row("dig", "Seen.")]
    ran = list[ToolUse]()
    store = memory_store()

    class Plays(Heard):
        def tool(self, use: ToolUse) -> ToolAnswer:
            ran.append(use)
            return called(function, use)

    cascade, script = dig(tackle=["look"]), script_of(rows)
    runner = runner_of(cascade, script, store, player=Plays(script), tools={"look": function})
    for _ in range(2):
        assert runner.play().status == "done"

    assert called(function, ran[0]).text.startswith(text)
    assert (called(function, ran[0]).is_error, len(ran)) == (is_error, 1)
    (told,) = [result.text for entry in store.session("r").entries() for result in entry.message.tool_results]
    assert told.startswith(text)


def test_a_limit_on_calls_holds_when_a_run_goes_on_and_refused_calls_are_not_recorded() -> None:
    script, store = script_of([row("dig", "I look.", search())] * 4), memory_store()
    counts = []
    for _ in range(3):
        heard = Heard(script)
        with pytest.raises(InputError, match="which is its limit"):
            runner_of(dig(tackle=["search"]), script, store, player=heard, max_calls=1).play()
        counts.append((len(heard.asked), len(list(RunLedger(store, "r", "default").all("call-").values()))))

    assert counts == [(1, 1), (1, 2), (1, 3)]


def test_the_evaluator_s_call_is_recorded_only_where_it_is_made() -> None:
    soundings = {"factor": 2, "evaluator_instructions": "Choose."}
    script, store = script_of([row("dig", f"{n}.", attempt=n) for n in (1, 2)]), memory_store()
    with pytest.raises(InputError, match="which is its limit"):
        runner_of(dig(soundings=soundings), script, store, max_calls=2).play()

    assert [call["attempt"] for call in RunLedger(store, "r", "default").all("call-").values()] == [1, 2]


def test_a_sub_cascade_that_names_a_sibling_is_recorded() -> None:
    store = memory_store()
    play(SIBLINGS, [row("pb", "Gone.")], store=store)

    rows = list(recording_of(store, SIBLINGS, "r"))
    assert [(one["cascade"], one["phase"], one["text"]) for one in rows] == [("b", "pb", "Gone.")]


@pytest.mark.parametrize(
    ("usage", "kept"),
    [
        ({"prompt_tokens": 90, "completion_tokens": 4}, {"prompt_tokens": 90, "completion_tokens": 4}),
        ({"prompt_tokens": 90, "completion_tokens": "x"}, {"prompt_tokens": 90}),
        ({"prompt_tokens": "many"}, None),
        ({"prompt_tokens": 3.5}, None),
        ({"prompt_tokens": True}, None),
        ({"prompt_tokens": -1}, None),
        ({"prompt_tokens": 0}, None),
        (None, None),
    ],
)
def test_a_recording_holds_the_usage_that_counts(usage: Wire | None, kept: Wire | None) -> None:
    script, store = script_of([row("dig", "Fine.")]), memory_store()

    class Counts(Heard):
        def answer(self, request: ModelRequest) -> ModelAnswer:
            return self.model.answer(request)._replace(usage=usage)

    runner = runner_of(dig(), script, store, player=Counts(script))
    assert runner.play().status == "done"
    (recorded,) = recording_of(store, dig(), "r")

    assert recorded.get("usage") == kept
    assert script_of([recorded]).answer(ModelRequest("c", "dig", None, 1, "phase", {})).usage == kept


@pytest.mark.parametrize("text", ["1" * 5_000, '{"chosen": ' + "[" * 100_000 + "}", "1234", "none", "1 of 2"])
def test_an_evaluator_s_reply_that_names_nothing_chooses_nothing(text: str) -> None:
    assert choice_in(text, [1, 2, 1234]) is None


def hidden(_place: int) -> None: ...
def reserved(model_config: int) -> None: ...
def foreign(place: object = object, other: Crashed | None = None) -> None: ...
def nameless(place: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037


@pytest.mark.parametrize("function", [hidden, reserved, foreign, nameless])
def test_a_tool_whose_arguments_cannot_be_described_is_refused_by_its_name(function: Callable[..., object]) -> None:
    with pytest.raises(InputError, match=r"tool 'look': its arguments cannot be described \(\w+: .*\); annotate"):
        tool_schema("look", function)


def test_a_session_s_decisions_are_read_once_and_stay_the_same() -> None:
    texts = [f"I decided on {n % 13}. Then more." for n in range(40)]
    session = memory_store().session("s")
    read = list[int]()
    for n, text in enumerate(texts):
        session.append({"role": "assistant", "content": text})
        if n % 3 == 0:
            decisions_of(session)
    entries = type(session).entries

    def counted(self: Session, start: int = 1, stop: int | None = None) -> list[LogEntry]:
        found = entries(self, start, stop)
        read.append(len(found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(session), "entries", counted)
        found = [decisions_of(session), decisions_of(session)]

    assert found == [[f"I decided on {n}." for n in range(3, 13)]] * 2
    assert sum(read) == 0
