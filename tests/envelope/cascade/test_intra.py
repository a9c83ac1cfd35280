"""`intra_context`: a phase's own history kept short at compactions, and what the next attempt of a loop is shown."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.cascade import open_phase
from ctxsteward.envelope.cascade.config import cascade_of, intra_context
from ctxsteward.envelope.cascade.intra_phase import intra_policy, retry_messages
from ctxsteward.envelope.cascade.run import OpenedPhase
from ctxsteward.envelope.compaction.policy import Policy
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.evals.prompt_cost import openai_faults
from ctxsteward.schemas.cascade import IntraContext
from ctxsteward.schemas.message import Wire

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
        Budgets(dynamic_tokens=dynamic_tokens, recall_fraction=0.0, compact_at_fraction=0.9),
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


SAME = "the same rows again: " + "lorem ipsum " * 48


def phase_of(configured: dict[str, Any]) -> tuple[OpenedPhase, EnvelopeBuilder]:
    example = cascade_of({"cascade_id": "c", "phases": [{"name": "dig", "instructions": "Dig.", **configured}]})
    opened = open_phase(memory_store(), example, "dig", run="r", counter=CHARS)
    budgets = Budgets(dynamic_tokens=5_000, recall_fraction=0.0, compact_at_fraction=0.9)
    return opened, char_builder(budgets, selector=None)


def test_of_identical_outputs_one_stays_and_the_others_are_references() -> None:
    """Whatever their age: none of the six is older than the window, nor than what is masked."""
    opened, builder = phase_of({"intra_context": {"window": 50, "mask_observations_after": 50}})
    session = opened.session
    session.append(calls("read", "c0"), phase="dig")
    session.append(answers("other rows " * 90, "c0"), phase="dig")
    for step in range(1, 7):
        session.append(calls("read", f"c{step}"), phase="dig")
        session.append(answers(SAME, f"c{step}"), phase="dig")
    session.append(says("All the same."), phase="dig")
    session.append(user("Go on."), phase="dig")
    envelope = builder.build(session, policy=opened.policy)
    tools = [m["content"] for m in envelope.render("openai-chat")["messages"] if m["role"] == "tool"]
    (report,) = envelope.reports
    assert report.policy.startswith("intra-phase/2 threshold window=50 mask=50")
    assert tools.count(SAME) == 1
    assert tools[-1] == SAME
    lines = [f"[text result, {len(SAME)} characters, §{ordinal}]" for ordinal in (5, 7, 9, 11, 13)]
    assert tools[1:6] == lines
    assert [session.resolve(f"§{ordinal}").tool_results[0].text for ordinal in (5, 13)] == [SAME, SAME]


def test_long_reasoning_older_than_the_window_is_beginning_reference_and_end() -> None:
    opened, builder = phase_of({"intra_context": {"window": 1, "mask_observations_after": 1}})
    thoughts = "First I compare the hosts. " * 90 + "So host 4 is slow."
    session = opened.session
    session.append(says(thoughts), phase="dig")
    session.append(user("Go on."), phase="dig")
    for step in range(12):
        session.append(calls("read", f"c{step}"), phase="dig")
        session.append(answers(result(step), f"c{step}"), phase="dig")
        envelope = builder.build(session, policy=opened.policy)
        if envelope.reports:
            break
    said = next(m["content"] for m in envelope.render("openai-chat")["messages"] if m["role"] == "assistant")
    assert said.startswith("First I compare the hosts.")
    assert said.endswith("So host 4 is slow.")
    assert "§2 resolves to the whole" in said
    assert len(said) <= 2_000
    assert session.resolve("§2").text == thoughts


@pytest.mark.parametrize(("limit", "left"), [(1, {"try 5"}), (3, {"try 3", "try 4", "try 5"})])
def test_attempts_that_a_retry_is_not_shown_are_the_first_to_leave(limit: int, left: set[str]) -> None:
    settings = {"loop_history_limit": limit, "window": 50, "mask_observations_after": 50}
    opened, builder = phase_of({"intra_context": settings})
    session = opened.session
    for attempt in range(1, 6):
        session.append(says(f"try {attempt} " + "z" * (1_500 if attempt < 3 else 480)), phase="dig")
        session.extend(retry_messages(IntraContext(compress_loops=False), "Dig.", [("", "no")]))
    built = builder.build(session, policy=opened.policy)
    shown = [str(m["content"]).split(" z")[0] for m in built.render("openai-chat")["messages"]]
    assert built.reports
    assert left <= set(shown)
    assert "try 1" not in shown


def test_a_choice_that_does_not_fit_falls_back_with_a_finding() -> None:
    opened, builder = phase_of({"intra_context": {"window": 50, "mask_observations_after": 50}})
    found = []
    for step in range(1, STEPS + 1):
        opened.session.append(calls("read", f"c{step}"), phase="dig")
        opened.session.append(answers(result(step), f"c{step}"), phase="dig")
        envelope = builder.build(opened.session, policy=opened.policy)
        found += [(len(envelope.reports), f.text) for f in envelope.findings if f.kind == "policy_fell_back"]
    assert found
    assert all(
        reports == 1 and text.startswith("intra-phase/2 threshold window=50 mask=50: its") for reports, text in found
    )


def test_a_choice_that_fits_tells_of_nothing() -> None:
    opened, builder = phase_of({"intra_context": {"window": 2, "mask_observations_after": 1}})
    for step in range(1, STEPS + 1):
        opened.session.append(calls("read", f"c{step}"), phase="dig")
        opened.session.append(answers(result(step), f"c{step}"), phase="dig")
        assert not builder.build(opened.session, policy=opened.policy).findings


def test_a_phase_is_opened_with_the_policy_of_its_settings() -> None:
    example = cascade_of(
        {
            "cascade_id": "c",
            "auto_context": {"intra_phase": {"window": 4, "preserve_errors": False}},
            "phases": [{"name": "dig", "intra_context": {"mask_observations_after": 2}}],
        }
    )
    merged = intra_context(example, example.phases[0])
    assert merged == IntraContext(window=4, preserve_errors=False, mask_observations_after=2)
    opened = open_phase(memory_store(), example, "dig", run="r", counter=CHARS)
    assert opened.policy.name == intra_policy(merged).name == "intra-phase/2 threshold window=4 mask=2"


# -- loops -----------------------------------------------------------------------------------------------------

FAILURES = [(f"patch {n} " + "x" * 600, f"{n} tests fail") for n in range(1, 6)]


def retried(settings: IntraContext, failures: list[tuple[str, str]]) -> list[Wire]:
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
        ("assistant", "[Attempt #4]"),
        ("user", "[Validation Failed]"),
        ("assistant", "[Attempt #5]"),
        ("user", "[Validation Failed]"),
        ("user", "Attempt #6: mend what the validation found."),
    ]
    assert messages[3] == user("[Validation Failed]\n4 tests fail")
    assert len(messages[2]["content"]) == len("[Attempt #4]\n") + 500


def test_a_short_output_is_whole_and_no_attempt_is_made_up() -> None:
    assert retry_messages(IntraContext(), "Mend.", [("done", "no")])[1] == says("[Attempt #1]\ndone")
    assert [wire["content"].split("\n")[0] for wire in retry_messages(IntraContext(), "Mend.", [])] == [
        "[Original Task]",
        "Attempt #1: mend what the validation found.",
    ]
    assert len(retry_messages(IntraContext(loop_history_limit=0), "Mend.", FAILURES)) == 2


def test_without_compression_a_history_that_goes_on_is_told_why() -> None:
    assert retry_messages(IntraContext(compress_loops=False), "Mend.", FAILURES) == [
        user("[Validation Failed]\n5 tests fail"),
        user("Attempt #6: mend what the validation found."),
    ]
