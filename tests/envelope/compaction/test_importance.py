"""Pruning of plain lists: what a message is worth, what stays, what is archived, what subscribers are told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import open_store
from ctxsteward.envelope.compaction.importance import (
    ContextPruner,
    ContextStats,
    ImportanceWeights,
    PruneStats,
    auto_manage_context,
    context_stats,
    middle_out,
    prune_context,
    summarize_context,
)
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas import InputError, InvalidMessage, Message, UnknownModel
from ctxsteward.schemas.message import Wire
from ctxsteward.summarizers import extractive

from ...examples import examples
from ..agent_histories import RULE, agent_history
from ..messages import CHARS, call, opened, reply, result, user


def system(text: str) -> Wire:
    return {"role": "system", "content": text}


def texts(wires: Sequence[Wire]) -> list[str]:
    return [str(wire["content"])[:8].strip() for wire in wires]


# -- what a message is worth -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "index", "expected"),
    [
        pytest.param(system("x"), 0, 30, id="system, oldest"),
        pytest.param(user("x"), 0, 20, id="user"),
        pytest.param(reply("x"), 0, 10, id="assistant"),
        pytest.param(user("x"), 10, 60, id="newest"),
        pytest.param(user("x"), 5, 40, id="in the middle"),
        pytest.param(reply("ERROR: Failed"), 0, 25, id="an error"),
        pytest.param(reply("a tool ran"), 0, 20, id="talk of tools"),
        pytest.param(call("c"), 0, 20, id="a call"),
        pytest.param(result("c", "exit 1: fatal error"), 0, 35, id="a result that tells of an error"),
        pytest.param(user("x" * 1_000), 0, 22.5, id="half of the length"),
        pytest.param(user("x" * 9_000), 0, 25, id="length counts up to 2,000 characters"),
    ],
)
def test_worth_is_recency_role_words_and_length(wire: Wire, index: int, expected: float) -> None:
    assert ImportanceWeights().worth(Message.from_wire(wire), index, 11) == pytest.approx(expected, abs=0.1)


def test_weights_can_be_others() -> None:
    history = [system("s"), user("task"), *(reply(f"step {n} " + "word " * 20) for n in range(8)), user("now")]
    tokens = sum(CHARS.message(Message.from_wire(wire)) for wire in history)
    oldest_first = ImportanceWeights(recency=0, length=100, full_length_chars=10_000)
    kept = prune_context(history, tokens - 100, counter=CHARS, weights=oldest_first).pruned
    assert len(kept) == len(history) - 1
    with pytest.raises(InputError, match=r"weights.recency=-1: expected a number from 0 to 10,000"):
        ImportanceWeights(recency=-1)


# -- pruning -----------------------------------------------------------------------------------------------------------

HISTORY = [
    system("be brief"),
    user("the task"),
    reply("ok " * 40),
    user("more " * 40),
    reply("ERROR: Failed " * 12),
    user("again " * 40),
    reply("fine " * 40),
    user("the last"),
]


def test_what_fits_is_the_same_list_and_nobody_is_told() -> None:
    told: list[Any] = []
    pruner = ContextPruner(counter=CHARS)
    pruner.on("context:pruned", told.append)
    done = pruner.prune(HISTORY)
    assert done.pruned is HISTORY
    assert (done.removed, told) == ((), [])
    assert auto_manage_context(HISTORY, counter=CHARS).pruned is HISTORY


def test_system_task_and_newest_stay_and_an_error_outranks_its_peers() -> None:
    done = prune_context(HISTORY, 250, counter=CHARS)
    assert texts(done.pruned) == ["be brief", "the task", "ERROR: F", "the last"]
    assert texts(done.removed) == ["ok ok ok", "more mor", "again ag", "fine fin"]
    sizes = [CHARS.message(Message.from_wire(wire)) for wire in HISTORY]
    assert done.stats == PruneStats(sum(sizes), sum(CHARS.message(Message.from_wire(w)) for w in done.pruned), 4, 4)
    assert done.fits


def test_what_always_stays_stays_over_the_limit_and_the_result_says_so() -> None:
    done = prune_context(HISTORY, 10, counter=CHARS)
    assert texts(done.pruned) == ["be brief", "the task", "the last"]
    assert not done.fits
    assert done.stats.final > 10


def test_a_call_and_its_results_leave_together_and_a_pending_call_stays() -> None:
    history = [
        user("task"),
        call("a", "b"),
        result("a", "x" * 200),
        result("b", "y" * 200),
        reply("so"),
        user("go on"),
        call("c", "d"),
        result("c", "z" * 200),
    ]
    done = prune_context(history, 330, counter=CHARS)
    assert [wire["role"] for wire in done.pruned] == ["user", "assistant", "user", "assistant", "tool"]
    assert [wire["role"] for wire in done.removed] == ["assistant", "tool", "tool"]


def test_a_result_that_answers_nothing_goes_first() -> None:
    history = [user("task"), result("lost", "x"), reply("word " * 50), user("now")]
    done = prune_context(history, 270, counter=CHARS)
    assert [wire["role"] for wire in done.pruned] == ["user", "assistant", "user"]


DIALECTS = {
    "openai": lambda wires: openai_faults({"messages": wires}),
    "anthropic": lambda wires: anthropic_faults({"messages": wires}),
}


@settings(max_examples=examples(100))
@given(
    seed=st.integers(0, 10_000),
    steps=st.integers(1, 30),
    dialect=st.sampled_from(sorted(DIALECTS)),
    share=st.floats(0.02, 1.1),
    how=st.sampled_from(("prune", "summarize", "remove_progressively")),
)
def test_the_output_is_valid_keeps_what_must_stay_and_all_that_left_resolves(
    seed: int, steps: int, dialect: str, share: float, how: str
) -> None:
    history = [system(RULE), *agent_history(seed, steps=steps, dialect=dialect)]
    faults = DIALECTS[dialect]
    archive = opened(id="archive")
    pruner = ContextPruner(counter=CHARS, archive=archive.extend, summarizer=extractive)
    tokens = pruner.stats(history).tokens
    before = json.dumps(history)
    if how == "summarize":
        shown = pruner.summarize(history, max(1, int(steps * share))).summarized
    else:
        done = getattr(pruner, how)(history, int(tokens * share))
        shown = done.pruned
        assert done.stats.final == pruner.stats(shown).tokens
        assert done.fits is (done.stats.final <= int(tokens * share))
        assert [archive.resolve(ref).wire for ref in done.references] == list(done.removed)
    assert faults([wire for wire in shown if wire["role"] != "system"]) == []
    assert shown[0] == system(RULE)
    assert shown[1] == history[1]
    assert shown[-1] == history[-1]
    kept = {id(wire) for wire in shown}
    archived = [archive.entry(n).message.wire for n in range(1, archive.state.ordinal + 1)]
    assert all(id(wire) in kept or wire in archived for wire in history)
    assert json.dumps(history) == before


def test_an_archive_that_fails_keeps_everything_where_it_is() -> None:
    def full(wires: Sequence[Wire]) -> Sequence[Any]:
        raise OSError("no space left")

    told: list[Any] = []
    pruner = ContextPruner(counter=CHARS, archive=full)
    pruner.on("context:pruned", told.append)
    with pytest.raises(OSError, match="no space left"):
        pruner.prune(HISTORY, 250)
    with pytest.raises(InputError, match="the archive kept 0 of 4 messages; nothing was removed"):
        ContextPruner(counter=CHARS, archive=lambda wires: ()).prune(HISTORY, 250)
    assert told == []


def test_what_was_archived_once_is_not_archived_again() -> None:
    archive = opened(id="archive")
    pruner = ContextPruner(counter=CHARS, archive=archive.extend)
    first, second = pruner.prune(HISTORY, 250), pruner.prune(HISTORY, 250)
    assert first.references == second.references == ("§1", "§2", "§3", "§4")
    assert archive.state.ordinal == 4


# -- events ------------------------------------------------------------------------------------------------------------


def test_subscribers_are_told_in_order_until_they_end_it() -> None:
    told: list[tuple[str, Any]] = []
    pruner = ContextPruner(counter=CHARS)
    end = pruner.on("context:pruned", lambda payload: told.append(("first", dict(payload))))
    pruner.on("context:pruned", lambda payload: told.append(("second", dict(payload))))
    done = pruner.prune(HISTORY, 250)
    payload = {
        "original": done.stats.original,
        "final": done.stats.final,
        "removed": 4,
        "token_reduction": done.stats.original - done.stats.final,
    }
    assert told == [("first", payload), ("second", payload)]
    end()
    pruner.prune(HISTORY, 250)
    assert [name for name, _ in told] == ["first", "second", "second"]


def test_a_summary_is_told_with_what_it_stands_for() -> None:
    told: list[Any] = []
    pruner = ContextPruner(counter=CHARS)
    pruner.on("context:summarized", told.append)
    done = pruner.summarize(HISTORY, 2)
    assert told == [{"summarized": 4, "kept": 4, "summary": done.summary}]


# -- summaries ---------------------------------------------------------------------------------------------------------


def test_older_messages_become_one_that_counts_them() -> None:
    done = summarize_context(HISTORY, 2, counter=CHARS)
    head = "[Previous 4 messages: 2 user messages, 2 model responses, 0 tool calls]"
    assert done.summary == user(head)
    assert texts(done.summarized) == ["be brief", "the task", "[Previou", "fine fin", "the last"]
    assert (done.summarized_items, done.kept_items) == (4, 4)


def test_ten_messages_or_fewer_are_nothing_to_summarize() -> None:
    done = summarize_context(HISTORY)
    assert done.summarized is HISTORY
    assert done.summary is None


def test_200_summaries_do_not_nest_do_not_grow_and_keep_the_rules() -> None:
    archive = opened(id="archive")
    pruner = ContextPruner(archive=archive.extend, summarizer=extractive)
    history: Sequence[Wire] = [user("Look after the hosts.")]
    sizes = []
    for turn in range(200):
        spoken = "Never restart host 7 before 18:00." if turn == 3 else f"Look at host {turn}, ticket OPS-{turn}."
        history = [*history, user(spoken), call(f"c{turn}", arguments=json.dumps({"host": turn}))]
        history = [*history, result(f"c{turn}", f"host {turn} answers in {turn} ms"), reply(f"Host {turn} is fine.")]
        done = pruner.summarize(history, 4)
        history = done.summarized
        sizes.append(pruner.stats(history).tokens)
    text = str(history[1]["content"])
    counts = "[Previous 796 messages: 199 user messages, 398 model responses, 199 tool calls"
    assert text.splitlines()[0] == f"{counts}; §1 to §994]"  # with the 198 summaries that went into the next
    assert text.count("[Previous") == 1
    assert "Never restart host 7 before 18:00" in text
    assert max(sizes[100:]) <= 1.2 * max(sizes[:100])
    (rule,) = [line for line in text.splitlines() if "Never restart" in line]
    assert archive.resolve(rule.split()[-1]).text == "Never restart host 7 before 18:00."


# -- tool results by levels --------------------------------------------------------------------------------------------


def stepped(count: int, chars: int = 500) -> list[Wire]:
    steps = (w for n in range(count) for w in (call(f"c{n}"), result(f"c{n}", f"{n:02d}" + "x" * (chars - 2))))
    return [user("task"), *steps, reply("done")]


@pytest.mark.parametrize(
    ("share", "percent", "masked"),
    [
        pytest.param(1.0, 0, [], id="fits"),
        pytest.param(0.95, 10, [9, 10], id="ten percent, around the middle"),
        pytest.param(0.85, 20, [8, 9, 10, 11], id="twenty"),
        pytest.param(0.6, 50, list(range(5, 15)), id="fifty"),
        pytest.param(0.2, 100, list(range(20)), id="all of them"),
    ],
)
def test_the_first_level_that_is_enough_is_applied_once(share: float, percent: int, masked: list[int]) -> None:
    history = stepped(20)
    pruner = ContextPruner(counter=CHARS)
    done = pruner.remove_progressively(history, int(pruner.stats(history).tokens * share))
    shown = [wire["content"] for wire in done.pruned if wire["role"] == "tool"]
    assert [n for n, text in enumerate(shown) if text == "[text result left out, 500 characters]"] == masked
    assert (done.removed_percent, len(done.removed), done.fits) == (percent, len(masked), True)
    assert done.pruned is history or percent


def test_where_all_of_them_are_not_enough_the_rest_is_summarized() -> None:
    history = stepped(20)
    pruner = ContextPruner(counter=CHARS)
    done = pruner.remove_progressively(history, 700)
    assert done.removed_percent == 100
    assert str(done.pruned[1]["content"]).startswith(
        "[Previous 30 messages: 0 user messages, 15 model responses, 15 tool"
    )
    assert done.fits is (done.stats.final <= 700)


@pytest.mark.parametrize(
    ("count", "percent", "expected"),
    [
        (0, 50, []),
        (1, 10, [0]),
        (1, 100, [0]),
        (2, 50, [0]),
        (3, 34, [0]),
        (3, 100, [0, 1, 2]),
        (10, 20, [4, 5]),
        (9, 50, [3, 4, 2, 5]),
        (4, 0, []),
    ],
)
def test_middle_out_alternates_and_takes_at_least_one(count: int, percent: int, expected: list[int]) -> None:
    assert sorted(middle_out(range(count), percent)) == sorted(expected)


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "limit"),
    [("default", 100_000), ("claude-sonnet-4-5", 200_000), ("gpt-4o", 128_000), ("gemini-2.5-flash", 1_048_576)],
)
def test_stats_are_of_the_model_s_limit(model: str, limit: int) -> None:
    stats = context_stats([user("hello")], model, counter=CHARS)
    assert stats == ContextStats(1, 9, limit, round(900 / limit, 1), False)


def test_pruning_is_due_over_eighty_percent() -> None:
    at = [user("x" * (80_000 - 4))]
    assert not context_stats(at, counter=CHARS).needs_pruning
    assert context_stats([user("x" * (80_001 - 4))], counter=CHARS).needs_pruning
    over = [user("task"), *(reply("y" * 9_996) for _ in range(12)), user("now")]
    assert auto_manage_context(over, counter=CHARS).stats.final <= 80_000


ONE = user("x")


@pytest.mark.parametrize(
    ("attempt", "error", "told"),
    [
        pytest.param(lambda: prune_context([ONE], -1), InputError, "max_tokens=-1: expected a whole", id="negative"),
        pytest.param(lambda: prune_context([ONE], 2.5), InputError, "max_tokens=2.5: expected", id="a part"),
        pytest.param(lambda: prune_context([ONE], True), InputError, "max_tokens=True: expected", id="truth"),
        pytest.param(lambda: prune_context([ONE], model="gpt-9"), UnknownModel, "gpt-9", id="unknown model"),
        pytest.param(lambda: prune_context([{"content": "x"}], 1), InvalidMessage, "role", id="no role"),
        pytest.param(lambda: prune_context(cast("Any", ["x"]), 1), InvalidMessage, "expected", id="no message"),
        pytest.param(lambda: summarize_context([ONE], 0), InputError, "max_items=0: expected", id="no items"),
        pytest.param(lambda: ContextPruner().on(cast("Any", "x"), print), InputError, "known: context", id="event"),
    ],
)
def test_bad_input_is_refused(attempt: Callable[[], Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        attempt()


def test_pruning_takes_at_most_a_millisecond_for_a_hundred_messages_once_they_are_counted() -> None:
    history = agent_history(3, steps=120)
    pruner = ContextPruner(counter=CHARS)
    pruner.stats(history)
    best = min(_seconds(lambda: pruner.prune(history, 20_000)) for _ in range(9))
    assert best <= 0.001 * len(history) / 100


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def test_an_archive_in_a_store_on_disk_resolves_after_the_process_is_gone(tmp_path: Any) -> None:
    with open_store(f"file:{tmp_path}") as store:
        done = prune_context(HISTORY, 250, counter=CHARS, archive=store.session("archive").extend)
    with open_store(f"file:{tmp_path}") as store:
        session = store.session("archive")
        assert [session.resolve(ref).wire for ref in done.references] == list(done.removed)
