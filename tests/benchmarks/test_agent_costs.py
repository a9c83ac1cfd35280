"""Runs, prices and rows of the cost benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.agent_costs import (
    ALL,
    EVERYTHING,
    OURS,
    CostRow,
    measure,
    missed_bars,
)
from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.evals.prompt_cost import PricedPrompt, Prices, PromptJudge, Sizer
from ctxsteward.evals.replay import (
    AgentRun,
    files_of,
    read_run,
    values_of,
)
from ctxsteward.schemas import InputError

TASK = "Find out why the import fails, and mend it."
SIZER = Sizer(Counter(CharTokenizer()))


def agent_run(steps: int, result_chars: int = 200) -> list[dict[str, Any]]:
    """A task, then steps of one call and its result each, then an answer."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You mend things."}]
    messages.append({"role": "user", "content": TASK})
    for n in range(steps):
        function = {"name": "look", "arguments": json.dumps({"page": n})}
        calls = [{"id": f"c{n}", "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"page {n}: ".ljust(result_chars, "x")})
    return [*messages, {"role": "assistant", "content": "It was the disk."}]


def builder(**budgets: Any) -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(**budgets))


def run_of(messages: list[dict[str, Any]], sizer: Sizer = SIZER) -> AgentRun:
    (transcript,) = parse_transcripts(json.dumps(messages))
    return read_run(transcript, {OURS: builder(dynamic_tokens=4000)}, sizer)


def written(tmp_path: Path, *runs: list[dict[str, Any]]) -> Path:
    for n, messages in enumerate(runs):
        (tmp_path / f"run-{n}.json").write_text(json.dumps(messages), encoding="utf-8")
    return tmp_path


# -- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_is_the_transcript_message_by_message() -> None:
    messages = agent_run(2)
    run = run_of(messages)
    assert [piece.wire for piece in run.system] == messages[:1]
    assert [piece.wire for piece in run.messages] == messages[1:-1]
    assert (run.seen, run.task, run.task_ordinal) == ((1, 3, 5), TASK, 1)


def test_prompts_of_a_run_weigh_what_the_builder_says() -> None:
    """All but the three tokens with which the reply begins."""
    (transcript,) = parse_transcripts(json.dumps(agent_run(9)))
    build = builder(dynamic_tokens=900)
    run = read_run(transcript, {OURS: build}, SIZER)
    with_tools = run.tools_tokens + sum(piece.tokens for piece in run.ours[OURS][-1].pieces)
    (again,) = parse_transcripts(json.dumps(agent_run(9)))
    from ctxsteward.envelope.testing import memory_store
    from ctxsteward.evals.replay import open_session, replay

    with memory_store() as store:
        *_, last = replay(again, build, open_session(store, again))
    assert with_tools == last.envelope.tokens - 3


def test_a_folder_is_its_transcripts_in_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.traj", "LICENSE", "c.json"):
        (tmp_path / name).write_text("x")
    assert [path.name for path in files_of([tmp_path, tmp_path / "LICENSE"])] == [
        "a.traj",
        "b.jsonl",
        "c.json",
        "LICENSE",
    ]


def test_a_file_that_is_named_twice_or_linked_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("x")
    (tmp_path / "b.json").symlink_to("a.json")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "gone.json").symlink_to("nowhere.json")
    assert files_of([tmp_path, tmp_path / "loop" / "a.json"]) == [tmp_path / "a.json"]


def test_a_folder_without_transcripts_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no transcripts in this folder; name files, or a folder with \.jsonl or \.json"
    ):
        files_of([tmp_path])


# -- the judge -------------------------------------------------------------------------------------------------------


def judged(prompts: list[list[tuple[str, str]]], prices: Prices, tools_tokens: int = 0) -> PromptJudge:
    judge = PromptJudge(sizer=SIZER, prices=prices, budget_tokens=60, task="task", tools_tokens=tools_tokens)
    for messages in prompts:
        wires = [{"role": role, "content": text} for role, text in messages]
        judge.read(PricedPrompt(SIZER.pieces(wires)))
    return judge


FRAME = SIZER.piece({"role": "user", "content": ""}).tokens
A, B, C = ("user", "task" + "a" * 26), ("assistant", "b" * 30), ("user", "c" * 30)
PIECE = 30 + FRAME
FREE_WRITES = Prices(block_tokens=0, write=1)


@pytest.mark.parametrize(
    ("prompts", "prices", "priced"),
    [
        pytest.param([[A], [A, B]], FREE_WRITES, PIECE + 0.1 * PIECE + PIECE, id="what grows is cached"),
        pytest.param([[A, B], [B, A]], FREE_WRITES, 4 * PIECE, id="another beginning is not"),
        pytest.param(
            [[A], [A, B]], Prices(block_tokens=1000), 3 * PIECE, id="nor a prefix under the block, which is not written"
        ),
        pytest.param(
            [[A], [A, B]],
            Prices(block_tokens=0, write=1.25),
            1.25 * 2 * PIECE + 0.1 * PIECE,
            id="writing has its price",
        ),
        pytest.param([[B, A], [B, C]], FREE_WRITES, 2 * PIECE + 0.1 * PIECE + PIECE, id="the first difference ends it"),
        pytest.param(
            [[C], [("user", "c" * 20 + "d" * 10)]],
            FREE_WRITES,
            PIECE + 2 + (FRAME + 10),
            id="a text's common beginning counts",
        ),
    ],
)
def test_a_prompt_costs_what_the_cache_left(prompts: Any, prices: Prices, priced: float) -> None:
    assert judged(prompts, prices).bill.priced == pytest.approx(priced)


def test_tool_schemas_are_part_of_every_prompt_and_of_the_prefix() -> None:
    bill = judged([[A], [A]], Prices(block_tokens=0), tools_tokens=100).bill
    assert (bill.tokens, bill.cached_tokens) == (2 * (PIECE + 100), PIECE + 100)


def test_the_judge_counts_calls_over_budget_and_lost_tasks() -> None:
    bill = judged([[A], [A, B], [B]], Prices()).bill
    assert (bill.calls, bill.over_budget) == (3, 1)
    assert (bill.runs, bill.task_shown, bill.task_reachable) == (1, 0, 0)


def test_a_call_that_a_provider_would_refuse_is_invalid() -> None:
    assert judged([[A], [("tool", "an answer to nothing")]], Prices()).bill.invalid == 1


def test_a_reference_to_the_task_keeps_it_reachable() -> None:
    judge = PromptJudge(sizer=SIZER, prices=Prices(), budget_tokens=60, task="task", task_ordinal=3)
    judge.read(PricedPrompt(SIZER.pieces([{"role": "user", "content": "other"}]), reachable=frozenset({3})))
    assert (judge.bill.task_shown, judge.bill.task_reachable) == (0, 1)


@pytest.mark.parametrize("prices", [{"cached": -0.1}, {"cached": 2.0}, {"write": 101.0}, {"cached": float("nan")}])
def test_prices_that_cannot_be_are_refused(prices: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected 0 ≤ cached ≤ written ≤ 100"):
        Prices(**prices)


# -- what replies used ------------------------------------------------------------------------------------------------


def calling(number: int, **arguments: Any) -> dict[str, Any]:
    function = {"name": "look", "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def answering(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


def booking(task: str = TASK) -> list[dict[str, Any]]:
    """Flight HAT136 is found by the first call and used by the third and the fifth, each with idle steps before it."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Book with code SYS_17."},
        {"role": "user", "content": task},
    ]
    for n in range(6):
        messages.append(calling(n, flight="HAT136", code="SYS_17") if n in (2, 4) else calling(n, page=n))
        messages.append(answering(n, ("flights: HAT136, HAT069. " if not n else "nothing here. ").ljust(120, "x")))
    return messages


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param('{"flight": "HAT136"}', {"HAT136"}, id="an identifier"),
        pytest.param('{"command": "open src/fields.py 1474\\n"}', {"src/fields.py", "1474"}, id="a path and a number"),
        pytest.param('{"ids": [{"id": 40521}, 12]}', {"40521"}, id="inner values, none under four characters"),
        pytest.param('{"note": "please book the window seat"}', set(), id="prose is none"),
        pytest.param('{"x": "--dry_run a.b.c."}', {"dry_run", "a.b.c"}, id="signs around it are not part of it"),
        pytest.param("open getValue (broken", {"getValue"}, id="no JSON is read as it is"),
        pytest.param("{}", set(), id="nothing"),
    ],
)
def test_values_are_identifiers_paths_and_numbers(arguments: str, expected: set[str]) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": arguments}}
    assert values_of({"role": "assistant", "content": None, "tool_calls": [call]}) == expected


@pytest.mark.parametrize(
    ("task", "found"),
    [
        pytest.param(TASK, {"HAT136"}, id="a result said it first"),
        pytest.param("Book HAT136.", set(), id="the task said it first"),
    ],
)
def test_a_value_is_found_where_a_tool_result_was_the_first_to_say_it(task: str, found: set[str]) -> None:
    """Not where the system message did, nor the task; used twice, it counts twice."""
    nothing: set[str] = set()
    assert list(run_of(booking(task)).found_values) == [nothing, nothing, found, nothing, found, nothing]


def test_what_the_model_made_up_is_not_found_though_a_result_repeats_it() -> None:
    messages = [
        {"role": "user", "content": TASK},
        *(calling(0, name="draft_7.txt"), answering(0, "wrote draft_7.txt")),
        *(calling(1, name="draft_7.txt"), answering(1, "read draft_7.txt")),
    ]
    assert set().union(*run_of(messages).found_values) == set()


def test_rows_without_a_used_value_are_unscored_not_zero(tmp_path: Path) -> None:
    none, some = (
        measure([written(tmp_path, messages)], {OURS: builder(dynamic_tokens=900)})[0]
        for messages in (agent_run(3), booking())
    )
    assert none.values_shown is None
    assert some.values_shown is not None


# -- rows and gate ---------------------------------------------------------------------------------------------------


def test_rows_are_a_strategy_each_by_format_and_over_all(tmp_path: Path) -> None:
    anthropic = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "here " * 40}]},
        {"role": "assistant", "content": "Here."},
    ]
    rows = measure([written(tmp_path, agent_run(12), anthropic)], {OURS: builder(dynamic_tokens=900)})
    names = [OURS, EVERYTHING]
    assert [(row.runs_of, row.strategy) for row in rows] == [
        (group, name) for group in ("openai", "anthropic", ALL) for name in names
    ]
    by_name = {row.strategy: row for row in rows if row.runs_of == ALL}
    assert by_name[EVERYTHING].raw_ratio == by_name[EVERYTHING].priced_ratio == 1
    assert {row.calls for row in rows} == {13, 2, 15}
    assert all(row.invalid == 0 for row in rows)


def row(**changes: Any) -> CostRow:
    held = CostRow("all", OURS, 1, 1, 0.5, 0.9, 0.9, 0.5, 0.0, 0.5, 1.0, 0.9)
    return held._replace(**changes)


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        pytest.param({}, [], id="all held"),
        pytest.param({"strategy": "window of 5 steps", "invalid": 1.0}, [], id="others are not held to it"),
        pytest.param({"invalid": 0.25}, ["all: calls a provider would refuse: 0.25, held to 0"], id="refused"),
        pytest.param({"task_reachable": 0.9}, ["all: runs whose task is lost: 0.1, held to 0"], id="lost task"),
        pytest.param({"raw_ratio": 1.01}, ["all: raw tokens to sending everything: 1.01, held to ≤ 1"], id="raw"),
        pytest.param(
            {"priced_ratio": 1.06},
            ["all: cache-priced tokens to sending everything: 1.06, held to ≤ 1.05"],
            id="priced",
        ),
    ],
)
def test_the_gate_names_what_ours_misses(changes: dict[str, Any], missed: list[str]) -> None:
    assert missed_bars([row(**changes)]) == missed


def test_runs_without_a_model_call_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model call in these transcripts"):
        measure([written(tmp_path, [{"role": "user", "content": "hi"}])], {OURS: builder()})
