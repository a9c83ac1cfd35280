"""Runs in a store: phases opened once, frozen as opened, laid out by the builder, and read again by later phases."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import EnvelopeBuilder, SelectionRequest, Store, open_store
from ctxsteward.envelope.cascade import open_phase, phase_context, read_run, record_state
from ctxsteward.envelope.cascade.past import read_past
from ctxsteward.envelope.cascade.run import OpenedPhase, choose_attempt, close_phase, extracted
from ctxsteward.envelope.recall.selection import ScoredOriginal
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.errors import InvalidCascade
from ctxsteward.schemas.message import Wire

from .runs import CHARS, ROOMY, cascade, openai_image, says, user, with_image

EXAMPLE = cascade(
    {"name": "draw", "instructions": "Draw {{ input.what }}."},
    {"name": "check", "instructions": "Check.", "context": {"from": ["draw"]}},
    {"name": "revise", "instructions": "Revise."},
    {"name": "compare", "instructions": "Compare.", "inject_from": [{"phase": "draw", "include": ["images"]}]},
)


def opened(store: Store, example: Cascade, phase: str, **more: Any) -> OpenedPhase:
    return open_phase(store, example, phase, run="r", input={"what": "a pot"}, counter=CHARS, **more)


def sent(phase: OpenedPhase, provider: str = "openai-chat") -> list[Wire]:
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=ROOMY)
    request = builder.build(phase.session).render(provider)  # type: ignore[arg-type]
    assert (openai_faults if provider == "openai-chat" else anthropic_faults)(request) == []
    messages: list[Wire] = request["messages"]
    return messages


def run_phase(store: Store, example: Cascade, phase: str, *wires: Wire, **more: Any) -> OpenedPhase:
    found = opened(store, example, phase, **more)
    for wire in wires:
        found.session.append(wire, phase=phase)
    return found


def test_a_run_from_its_first_phase_to_its_last() -> None:
    store = memory_store()
    drawn = run_phase(store, EXAMPLE, "draw", with_image("red0"), says("drawn"))
    assert sent(drawn) == [user("Draw a pot."), with_image("red0"), says("drawn")]

    checked = run_phase(store, EXAMPLE, "check", says("checked"))
    image = {"role": "user", "content": [{"type": "text", "text": "[Images from draw]:"}, openai_image("red0")]}
    assert sent(checked) == [
        user('[Original Input]:\n{\n  "what": "a pot"\n}'),
        image,
        user("[Output from draw]:\ndrawn"),
        user("Check."),
        says("checked"),
    ]
    assert len(sent(checked, "anthropic")) == 5

    revised = run_phase(store, EXAMPLE, "revise", says("revised"))
    assert revised.session.id == drawn.session.id == "r"
    assert sent(revised)[-4:] == [user("Check."), says("checked"), user("Revise."), says("revised")]

    compared = opened(store, EXAMPLE, "compare")
    assert compared.context.wires[0] == image  # first in the context, after the history in the stream
    assert sent(compared)[-3:] == [says("revised"), image, user("Compare.")]
    assert read_run(store, EXAMPLE, "r").ran == {"draw", "check", "revise", "compare"}


def test_what_is_injected_keeps_its_origin_and_is_nobodys_own() -> None:
    store = memory_store()
    run_phase(store, EXAMPLE, "draw", with_image("red0"), says("drawn"))
    checked = run_phase(store, EXAMPLE, "check", says("checked"))
    events = [entry.event for entry in checked.session.entries()]

    assert [(event.origin, event.phase) for event in events] == [
        ("input", None),
        ("r§2", None),
        ("r§3", None),
        (None, "check"),
        (None, "check"),
    ]
    assert [m.origin for m in read_run(store, EXAMPLE, "r").of("check")] == ["r.check§4", "r.check§5"]


def test_a_phase_is_frozen_when_it_is_first_opened() -> None:
    store = memory_store()
    first = run_phase(store, EXAMPLE, "draw", says("drawn"))
    check = opened(store, EXAMPLE, "check")
    before = sent(check)
    first.session.append(says("drawn again"), phase="draw")
    again = opened(store, EXAMPLE, "check")

    assert (check.is_new, again.is_new) == (True, False)
    assert sent(again) == before
    assert again.context.wires != check.context.wires


def test_opening_survives_the_process(tmp_path: Path) -> None:
    uri = f"file:{tmp_path}"
    with open_store(uri) as store:
        run_phase(store, EXAMPLE, "draw", says("drawn"))
        run_phase(store, EXAMPLE, "check", says("checked"))
        record_state(store, "r", "check", {"ok": True})
    with open_store(uri) as store:
        assert not opened(store, EXAMPLE, "check").is_new
        past = read_run(store, EXAMPLE, "r")
        assert (past.ran, past.state) == ({"draw", "check"}, {"ok": True})
        assert opened(store, EXAMPLE, "revise").context.wires[-1] == says("checked")


def test_a_phase_that_retains_its_output_only_runs_beside_the_stream() -> None:
    example = cascade({"name": "a"}, {"name": "b", "context_retention": "output_only"}, {"name": "c"})
    store = memory_store()
    run_phase(store, example, "a", user("one"), says("1"))
    beside = run_phase(store, example, "b", user("two"), says("draft"), says("2"))
    after = run_phase(store, example, "c", user("three"))

    assert beside.session.id == "r.b"
    assert sent(beside) == [user("one"), says("1"), user("two"), says("draft"), says("2")]
    assert sent(after) == [user("one"), says("1"), user("[Output from b]:\n2"), user("three")]
    assert not opened(store, example, "c").is_new


def test_every_attempt_sees_the_same_and_the_chosen_one_flows_on() -> None:
    example = cascade(
        {"name": "a", "instructions": "Go."},
        {"name": "b", "instructions": "Try.", "soundings": {"factor": 2}},
        {"name": "c", "context": {"from": ["b"], "include_input": False}},
        {"name": "d"},
    )
    store = memory_store()
    run_phase(store, example, "a", says("1"))
    tries = [
        run_phase(store, example, "b", with_image(name), says(f"try {name}"), attempt=n)
        for n, name in enumerate(("red0", "blue"), 1)
    ]
    assert [t.session.id for t in tries] == ["r.b.1", "r.b.2"]
    assert [sent(t)[:3] for t in tries] == [[user("Go."), says("1"), user("Try.")]] * 2

    undecided = read_run(store, example, "r")
    assert [image.attempt for image in undecided.images("b")] == [1, 2]
    choose_attempt(store, "r", "b", 1)
    assert opened(store, example, "c").context.wires[1] == user("[Output from b]:\ntry red0")
    assert sent(opened(store, example, "d"))[-3:] == [user("Try."), with_image("red0"), says("try red0")]
    with pytest.raises(InputError, match="no attempt 3"):
        choose_attempt(store, "r", "b", 3)


# -- several at once -----------------------------------------------------------------------------------------

CHOSEN = cascade(
    {"name": "gather"},
    {
        "name": "report",
        "instructions": "Report.",
        "context": {"mode": "auto", "include_input": False, "anchors": {"from_phases": [], "include": []}},
    },
)


def test_attempts_that_choose_at_the_same_time_are_all_frozen() -> None:
    store = memory_store()
    run_phase(store, CHOSEN, "gather", *map(says, "abcd"))
    together = threading.Barrier(8)

    def choose(request: SelectionRequest) -> Sequence[ScoredOriginal]:
        together.wait(10)
        return [ScoredOriginal(1, 1.0)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: opened(store, CHOSEN, "report", attempt=n, selector=choose), range(1, 9)))
    again = [opened(store, CHOSEN, "report", attempt=n) for n in range(1, 9)]
    assert [(one.is_new, two.is_new) for one, two in zip(found, again, strict=True)] == [(True, False)] * 8
    assert list(map(sent, again)) == list(map(sent, found))


@pytest.mark.parametrize("attempt", [None, 1, 2])
def test_what_another_process_opened_meanwhile_stays_as_it_was_opened(tmp_path: Path, attempt: int | None) -> None:
    uri = f"file:{tmp_path}"
    with open_store(uri) as store, open_store(uri) as other:
        run_phase(store, CHOSEN, "gather", *map(says, "abcd"))
        theirs: list[list[Wire]] = []

        def choose(request: SelectionRequest) -> Sequence[ScoredOriginal]:
            phase = opened(other, CHOSEN, "report", attempt=attempt, selector=lambda request: [ScoredOriginal(2, 1.0)])
            theirs.append(sent(phase))
            return [ScoredOriginal(1, 1.0), ScoredOriginal(3, 0.5)]

        first = opened(store, CHOSEN, "report", attempt=1, selector=choose)
        assert first.is_new == (attempt != 1)
        assert not opened(store, CHOSEN, "report", attempt=1).is_new
        again = opened(other, CHOSEN, "report", attempt=attempt)
        assert (again.is_new, sent(again)) == (False, theirs[0])
        assert sent(opened(other, CHOSEN, "report", attempt=1)) == sent(first)


def test_a_phase_holds_the_sessions_of_its_past_while_a_selector_ranks() -> None:
    """A builder holds its session first and what the selector keeps second; so does a phase."""
    session = memory_store().session("s", counter=CHARS)
    for text in "abcd":
        session.append(says(text), phase="gather")
    free: list[bool] = []

    def choose(request: SelectionRequest) -> Sequence[ScoredOriginal]:
        with ThreadPoolExecutor(1) as pool:
            free.append(pool.submit(session.lock.acquire, blocking=False).result(10))
        return [ScoredOriginal(1, 1.0)]

    phase_context(CHOSEN, "report", read_past(session), counter=CHARS, selector=choose)
    assert free == [False]


def test_a_trusted_source_speaks_as_the_operator() -> None:
    example = cascade(
        {"name": "rules"},
        {"name": "work", "context": {"from": [{"phase": "rules", "include": ["output"], "as_role": "system"}]}},
    )
    for trusted, role in (((), "user"), (("rules",), "system")):
        store = memory_store()
        run_phase(store, example, "rules", says("Be brief."))
        messages = sent(opened(store, example, "work", trusted=trusted, system="You work."))
        assert {"role": role, "content": "[Output from rules]:\nBe brief."} in messages
        assert messages[0] == {"role": "system", "content": "You work."}
        assert sent(opened(store, example, "work", trusted=trusted, system="You work.")) == messages


# -- state ---------------------------------------------------------------------------------------------------


def test_state_is_recorded_by_phase_and_shown_to_no_model() -> None:
    store = memory_store()
    phase = run_phase(store, EXAMPLE, "draw", says("drawn"))
    record_state(store, "r", "draw", {"n": 1, "m": 1})
    record_state(store, "r", "draw", {"n": 2})
    record_state(store, "r", "check", {"n": 3})

    assert read_run(store, EXAMPLE, "r").states == {"draw": {"n": 2, "m": 1}, "check": {"n": 3}}
    assert read_run(store, EXAMPLE, "r").state == {"n": 3, "m": 1}
    assert "state" not in str(sent(phase))
    with pytest.raises(InputError, match=r"state\.x"):
        record_state(store, "r", "draw", {"x": float("nan")})


def test_a_state_note_in_a_log_counts_and_a_damaged_one_is_named() -> None:
    session = memory_store().session("s", counter=CHARS)
    session.note("state-a", '{"n": 1}')
    assert read_past(session).states == {"a": {"n": 1}}
    session.note("state-a", "[1]")
    with pytest.raises(InputError, match="note 'state-a' of session 's'"):
        read_past(session)


@pytest.mark.parametrize(
    ("extraction", "output", "state"),
    [
        ({"pattern": r"n=(\d+)", "store_as": "n"}, "so n=42.", {"n": "42"}),
        ({"pattern": r"\d+", "store_as": "n"}, "so n=42.", {"n": "42"}),
        ({"pattern": r"```(.*?)```", "store_as": "d", "format": "json"}, '```{"a": 1}```', {"d": {"a": 1}}),
        ({"pattern": r"```(.*?)```", "store_as": "d", "format": "json"}, "```{```", None),
        ({"pattern": "x", "store_as": "n"}, "nothing", None),
    ],
)
def test_output_extraction_becomes_state(extraction: dict[str, Any], output: str, state: dict[str, Any] | None) -> None:
    example = cascade({"name": "a", "output_extraction": {**extraction, "required": True}})
    store = memory_store()
    run_phase(store, example, "a", says(output))
    found, findings = close_phase(store, example, "a", run="r")

    assert found == (state or {})
    assert [finding.kind for finding in findings] == ([] if state else ["extraction_required"])
    assert read_run(store, example, "r").states == ({"a": state} if state else {})


def test_a_pattern_that_is_none_is_an_error() -> None:
    example = cascade({"name": "a", "output_extraction": {"pattern": "(", "store_as": "n"}})
    with pytest.raises(InvalidCascade, match=r"output_extraction\.pattern"):
        extracted(example.phases[0], "text")


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more", [{"run": ""}, {"run": "r" * 101}, {"attempt": 0}, {"attempt": True}, {"attempt": 101}], ids=str
)
def test_a_run_or_attempt_that_is_none_is_refused(more: dict[str, Any]) -> None:
    given = {"run": "r", **more}
    with pytest.raises(InputError):
        open_phase(memory_store(), EXAMPLE, "draw", input={"what": "x"}, counter=CHARS, **given)


def test_a_condition_that_fails_leaves_no_session_half_open() -> None:
    example = cascade({"name": "a"}, {"name": "b", "context": {"from": [{"phase": "a", "if": "1 / state.zero"}]}})
    store = memory_store()
    run_phase(store, example, "a", says("1"))
    with pytest.raises(InvalidCascade):
        opened(store, example, "b", state={"zero": 0})
    assert len(store.session("r.b", counter=CHARS)) == 0
