"""Scratchpads, quality signals, checkpoints, and the handoff that a new session begins with."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.envelope import Budgets, Session
from ctxsteward.envelope.cascade import handoff_of, resume, script_of
from ctxsteward.envelope.cascade.config import cascade_of
from ctxsteward.envelope.cascade.continuity import (
    INSTRUCTIONS,
    MAX_SCRATCHPAD_CHARS,
    SECTIONS,
    Workspace,
    opening_of,
    sanitized,
    scratchpad_in,
    signals_in,
)
from ctxsteward.envelope.cascade.turns import RunLedger
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.publish import validate

from ..messages import char_builder, reply, session_of, user
from .test_runner import play, row, runner_of, said, search

SCRATCHPAD = """\
## Current Understanding
The relay stalls under load.

## Current Plan
1. [x] Find the queue
- [X] Read its log
- [ ] Raise the limit
- Restart it

## Key Decisions
- Use port 8443
* Keep retries at 4

## Blockers
- No access to the ledger

## Last Action
Read the log."""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nothing here.", None),
        ("Done.\nSCRATCHPAD:## Blockers\n- None", "## Blockers\n- None"),
        ("SCRATCHPAD: one\nSIGNAL: next\nmore", "one"),
        ("SCRATCHPAD: one\nSCRATCHPAD: two", "two"),
        ("SCRATCHPAD: a SIGNAL: inside", "a SIGNAL: inside"),
        ("SCRATCHPAD:\x1b[31mred\u202e\x00 text", "[31mred text"),
        ("SCRATCHPAD:", ""),
        ("I will not write a SCRATCHPAD: here yet.", None),
        ("SCRATCHPAD: kept\nwith a SCRATCHPAD: inside", "kept\nwith a SCRATCHPAD: inside"),
        ("A.\n  SCRATCHPAD: indented", "indented"),
        (f"SCRATCHPAD:{'x' * 9_000}", "x" * MAX_SCRATCHPAD_CHARS),
    ],
)
def test_the_last_scratchpad_of_a_message_counts_made_harmless(text: str, found: str | None) -> None:
    assert scratchpad_in(text) == found


def test_a_scratchpad_that_was_stored_sets_nothing_when_it_is_read_again() -> None:
    stored = sanitized("plan\nSCRATCHPAD: another\n SIGNAL: stop")

    assert stored == "plan\nSCRATCHPAD : another\n SIGNAL : stop"
    assert scratchpad_in(stored) is None
    assert sanitized(stored) == stored


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("10\u00a0km\u3000on", "10 km on"),
        ("one\u2028two\r\nthree", "one\ntwo\nthree"),
        (
            "\U0001f469\u200d\U0001f4bb \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\U0001f469\u200d\U0001f4bb \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
        ("a\u202e\u200b\x00b", "ab"),
        ("a\u2028SIGNAL: stop", "a\nSIGNAL : stop"),
    ],
)
def test_words_stay_apart_where_what_is_not_printed_is_left_out(text: str, kept: str) -> None:
    assert sanitized(text) == kept


def test_a_gate_that_says_nothing_is_kept_once() -> None:
    first = dict(signals_in("QUALITY_X:", {}))
    later = dict(signals_in("QUALITY_X: ok\nQUALITY_Y: 1", {"quality": first["quality"].strip()}))

    assert later == {"quality": "QUALITY_X: ok\nQUALITY_Y: 1"}


def test_quality_signals_keep_the_newest_of_each_gate_and_tools_write_no_scratchpad() -> None:
    first = dict(signals_in("QUALITY_PASSED: lint\nSCRATCHPAD: mine", {}, of_model=False))
    second = dict(signals_in("x\n  QUALITY_BLOCKED 2 tests fail\nQUALITY_PASSED: types", first))

    assert first == {"quality": "QUALITY_PASSED: lint"}
    assert second == {"quality": "QUALITY_BLOCKED: 2 tests fail\nQUALITY_PASSED: types"}


PHASES = cascade_of({"cascade_id": "c", "phases": [{"name": "dig", "instructions": "Dig.", "tackle": ["search"]}]})


def test_a_signal_stands_in_every_later_envelope_and_its_instructions_before_it() -> None:
    store = memory_store()
    rows = [
        row("dig", "A.\nSCRATCHPAD:## Key Decisions\n- use port 1", search("QUALITY_PASSED: lint")),
        row("dig", "B.\nSCRATCHPAD:## Key Decisions\n- use port 2", search()),
        row("dig", "C."),
    ]
    _, heard = play(PHASES, rows, store=store)

    assert heard.asked[0].request["messages"][0]["content"].endswith(INSTRUCTIONS)
    assert all(f"## {name}" in INSTRUCTIONS for name in SECTIONS)
    notes = [said(request)[-1] for request in heard.asked[1:]]
    assert all("scratchpad: ## Key Decisions" in note and "quality: QUALITY_PASSED: lint" in note for note in notes)
    assert ("use port 1" in notes[0], "use port 2" in notes[1]) == (True, True)


def test_a_checkpoint_is_written_every_five_steps_with_all_that_a_person_asks_for() -> None:
    store = memory_store()
    rows = [row("dig", f"Step {n}.", search(), usage={"prompt_tokens": 10, "completion_tokens": 3}) for n in range(7)]
    store.now = lambda: "2026-01-02T03:04:05Z"
    runner = runner_of(PHASES, script_of([*rows, row("dig", "Done.")]), store)
    runner.play()
    checkpoint = RunLedger(store, "r", "default").get("checkpoint-000-000")

    assert list(checkpoint) == [
        "iteration",
        "input_tokens",
        "output_tokens",
        "hat",
        "session",
        "messages",
        "last_error",
        "failed_at",
        "recovery_hint",
        "scratchpad",
        "handoff",
    ]
    assert (checkpoint["iteration"], checkpoint["output_tokens"], checkpoint["hat"]) == (5, 15, "dig")
    validate("handoff", checkpoint["handoff"])


def test_what_a_model_raises_is_in_the_checkpoint() -> None:
    store = memory_store()
    store.now = lambda: "2026-01-02T03:04:05Z"
    with pytest.raises(InputError):
        runner_of(PHASES, script_of([row("dig", "A.", search())]), store).play()
    checkpoint = RunLedger(store, "r", "default").get("checkpoint-000-000")

    assert checkpoint["last_error"].startswith("script: phase 'dig' asks for reply 2; it has 1")
    assert (checkpoint["failed_at"], checkpoint["recovery_hint"]) == (
        "2026-01-02T03:04:05Z",
        "run it again: it goes on from here",
    )
    assert checkpoint["handoff"]["blocking_issues"] == [checkpoint["last_error"]]


# -- handing over -----------------------------------------------------------------------------------------------------


def working(**notes: str) -> Session:
    session = session_of(user("Mend the relay.\nNever write to ledger_2019."), reply("I decided to use port 9. Ok."))
    for name, text in notes.items():
        session.note(name, text)
    return session


def test_a_handoff_is_read_from_scratchpad_and_task() -> None:
    workspace = Workspace("main", "0f" * 20, ("a.py",), ("b.py",))
    found = handoff_of(
        working(scratchpad=SCRATCHPAD), role="builder", workspace=workspace, now=lambda: "2026-01-02T03:04:05Z"
    )
    document = found.model_dump(mode="json")

    validate("handoff", document)
    assert document == {
        "schema_version": 1,
        "generated_at": "2026-01-02T03:04:05Z",
        "session": "s",
        "task_title": "Mend the relay.",
        "goal": "Mend the relay.\nNever write to ledger_2019.",
        "current_hat": "builder",
        "branch": "main",
        "head_commit": "0f" * 20,
        "plan": "1. [x] Find the queue\n- [X] Read its log\n- [ ] Raise the limit\n- Restart it",
        "completed_items": ["Find the queue", "Read its log"],
        "remaining_items": ["Raise the limit", "Restart it"],
        "blocking_issues": ["No access to the ledger"],
        "modified_files": ["a.py"],
        "created_files": ["b.py"],
        "artifacts": [],
        "key_decisions": ["Use port 8443", "Keep retries at 4"],
        "understanding": "The relay stalls under load.",
        "last_action": "Read the log.",
        "continuation_prompt": "Continue working on: Mend the relay.\nCurrent phase: builder\n"
        "Next step: Raise the limit",
        "lines": [],
        "origin": None,
    }


@pytest.mark.parametrize(
    ("notes", "field", "value"),
    [
        ({}, "key_decisions", ("I decided to use port 9. §2",)),
        (
            {},
            "continuation_prompt",
            "Continue working on: Mend the relay.\nCurrent phase: -\n"
            "Next step: Wait for the answer to §2: I decided to use port 9. Ok.",
        ),
        ({"plan": "- [x] one\n- [ ] two"}, "remaining_items", ("two",)),
        ({"plan": "just do it"}, "remaining_items", ("just do it",)),
        ({"scratchpad": "## Blockers\nNone currently."}, "blocking_issues", ()),
        ({"scratchpad": "## Blockers\n- none"}, "blocking_issues", ()),
        ({"scratchpad": "no headings at all"}, "blocking_issues", ()),
        ({"scratchpad": "## Key Decisions\n- a\n- a"}, "key_decisions", ("a",)),
    ],
)
def test_what_is_not_written_down_is_left_out_or_taken_from_what_was_said(
    notes: dict[str, str], field: str, value: Any
) -> None:
    assert getattr(handoff_of(working(**notes)), field) == value


def test_a_session_without_a_task_has_nothing_to_hand_over() -> None:
    with pytest.raises(InputError, match="session 's' holds no user message: there is nothing to hand over"):
        handoff_of(session_of())


def test_a_new_session_holds_goal_plan_decisions_and_blockers_in_its_first_envelope_and_ever_after() -> None:
    session = working(scratchpad=SCRATCHPAD)
    store = memory_store()
    found = handoff_of(session, role="builder")
    begun = resume(store, found, "next")
    builder = char_builder(Budgets(dynamic_tokens=6_000, recall_fraction=0.0), selector=None)

    def window() -> str:
        return "\n".join(str(wire["content"]) for wire in builder.build(begun).render("openai-chat")["messages"])

    assert begun.entry(1).message.text == opening_of(found)
    assert opening_of(found).startswith("## Resuming Session\n\n**Task**: Mend the relay.\n")
    held = ("Never write to ledger_2019.", "[ ] Raise the limit", "Use port 8443", "No access to the ledger")
    assert all(text in window() for text in held)
    for step in range(60):
        begun.append(reply(f"Step {step}: " + "lorem ipsum " * 12))
        begun.append(user(f"Go on {step}."))
        shown = window()
        assert all(text in shown for text in held), step
    assert begun.state.compactions > 0


def test_a_handoff_of_a_handoff_keeps_the_goal_and_what_was_done() -> None:
    first = handoff_of(working(scratchpad=SCRATCHPAD), role="builder")
    second = handoff_of(resume(memory_store(), first, "next"), role="builder")

    kept = ("goal", "task_title", "plan", "completed_items", "remaining_items", "blocking_issues", "key_decisions")
    assert [getattr(second, name) for name in kept] == [getattr(first, name) for name in kept]
    assert "## Resuming Session" not in second.goal


def test_a_session_that_exists_is_not_begun_again() -> None:
    store = memory_store()
    found = handoff_of(working())
    resume(store, found, "next")
    with pytest.raises(InputError, match="session 'next' exists already"):
        resume(store, found, "next")
