"""`intra_context`: a phase's own history kept short at compactions, and what the next attempt of a loop is shown."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.cascade import (
    RefusedAttempt,
    cascade_of,
    intra_context,
    intra_policy,
    open_phase,
    retry_messages,
)
from ctxsteward.envelope.compaction.policy import Policy
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.evals.validity import openai_faults
from ctxsteward.schemas import Wire
from ctxsteward.schemas.cascade import IntraContext

from ..messages import char_builder
from .runs import CHARS, answers, calls, says, user

STEPS = 20
ERROR_STEP = 3


def result(step: int) -> str:
    body = "error: no such file" if step == ERROR_STEP else f"rows of step {step}"
    return f"{body} " + "lorem ipsum " * 16


def sent(configured: dict[str, Any], *, steps: int = STEPS, dynamic_tokens: int = 5_000) -> list[Wire]:
    """What a provider is sent after so many steps of a phase, built before each call as an agent does."""
    example = cascade_of({"cascade_id": "c", "phases": [{"name": "dig", "instructions": "Dig.", **configured}]})
    session = open_phase(memory_store(), example, "dig", run="r", counter=CHARS).session
    builder = char_builder(
        Budgets(dynamic_tokens=dynamic_tokens, recall_fraction=0.0),
        policy=intra_policy(intra_context(example, example.phases[0])),
        selector=None,
    )
    for step in range(1, steps + 1):
        session.append({**calls("read", f"c{step}"), "content": f"I read {step}."}, phase="dig")
        session.append(answers(result(step), f"c{step}"), phase="dig")
        envelope = builder.build(session)
    request = envelope.render("openai-chat")
    assert openai_faults(request) == []
    messages: list[Wire] = request["messages"]
    return messages


def whole_results(messages: list[Wire]) -> set[int]:
    return {step for step in range(1, STEPS + 1) if any(m["content"] == result(step) for m in messages)}


def shown_steps(messages: list[Wire]) -> set[int]:
    return {step for step in range(1, STEPS + 1) if any(m["content"] == f"I read {step}." for m in messages)}


def test_the_newest_steps_stay_whole_and_older_results_become_a_line() -> None:
    messages = sent({"intra_context": {"window": 5, "mask_observations_after": 3}})

    assert set(range(STEPS - 4, STEPS + 1)) <= whole_results(messages)
    assert whole_results(messages) < shown_steps(messages)  # of masked steps the words are left
    assert len(whole_results(messages)) > len(whole_results(sent({})))


def test_what_tells_of_an_error_is_kept_while_anything_else_can_go() -> None:
    kept, not_kept = (
        sent({"intra_context": {"mask_observations_after": 2, "window": 4, "preserve_errors": keep}})
        for keep in (True, False)
    )
    assert ERROR_STEP in whole_results(kept)
    assert ERROR_STEP not in whole_results(not_kept)


def test_between_compactions_nothing_is_masked() -> None:
    messages = sent({"intra_context": {"window": 1, "mask_observations_after": 0}}, steps=4, dynamic_tokens=100_000)
    assert whole_results(messages) == {1, 2, 3, 4}


@pytest.mark.parametrize("configured", [{}, {"intra_context": {"enabled": False}}], ids=["no block", "off"])
def test_without_a_block_or_switched_off_the_builder_s_own_policy_holds(configured: dict[str, Any]) -> None:
    example = cascade_of({"cascade_id": "c", "phases": [{"name": "dig", **configured}]})
    assert intra_policy(intra_context(example, example.phases[0])) == Policy()


@pytest.mark.parametrize("window", [0, 1, 5, 50])
@pytest.mark.parametrize("after", [0, 3, 50])
def test_whatever_is_configured_the_budget_holds(window: int, after: int) -> None:
    configured = {"intra_context": {"window": window, "mask_observations_after": after}}
    messages = sent(configured, dynamic_tokens=1_600)
    assert sum(len(str(message["content"])) for message in messages) < 2_400


# -- loops -----------------------------------------------------------------------------------------------------

FAILURES = [RefusedAttempt(f"patch {n} " + "x" * 600, f"{n} tests fail") for n in range(1, 6)]


def retried(settings: IntraContext, failures: list[RefusedAttempt]) -> list[Wire]:
    """What a provider is sent for the next attempt."""
    session = memory_store().session("r.fix.retry", system="You mend code.", counter=CHARS)
    session.extend(retry_messages(settings, "Mend the code.", failures))
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=100_000))
    request = builder.build(session).render("openai-chat")
    assert openai_faults(request) == []
    messages: list[Wire] = request["messages"]
    return messages


def test_a_retry_sees_the_task_the_newest_attempts_and_why_they_failed() -> None:
    messages = retried(IntraContext(loop_history_limit=2), FAILURES)

    assert messages[:2] == [{"role": "system", "content": "You mend code."}, user("[Original Task]\nMend the code.")]
    assert [(m["role"], m["content"].splitlines()[0]) for m in messages[2:]] == [
        ("assistant", "[Attempt #4]"), ("user", "[Validation Failed]"),
        ("assistant", "[Attempt #5]"), ("user", "[Validation Failed]"),
        ("user", "Attempt #6: mend what the validation found."),
    ]  # fmt: skip
    assert messages[3] == user("[Validation Failed]\n4 tests fail")
    assert len(messages[2]["content"]) == len("[Attempt #4]\n") + 500


def test_a_short_output_is_whole_and_no_attempt_is_made_up() -> None:
    assert retry_messages(IntraContext(), "Mend.", [RefusedAttempt("done", "no")])[1] == says("[Attempt #1]\ndone")
    assert [wire["content"].split("\n")[0] for wire in retry_messages(IntraContext(), "Mend.", [])] == [
        "[Original Task]", "Attempt #1: mend what the validation found.",
    ]  # fmt: skip
    assert len(retry_messages(IntraContext(loop_history_limit=0), "Mend.", FAILURES)) == 2


def test_without_compression_a_history_that_goes_on_is_told_why() -> None:
    assert retry_messages(IntraContext(compress_loops=False), "Mend.", FAILURES) == [
        user("[Validation Failed]\n5 tests fail"),
        user("Attempt #6: mend what the validation found."),
    ]
