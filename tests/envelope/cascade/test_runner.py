"""`CascadeRunner`: a cascade played against a script, killed anywhere and gone on with, within limits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Policy, Store
from ctxsteward.envelope.cascade import CascadeRunner, script_of
from ctxsteward.envelope.cascade.config import cascade_of
from ctxsteward.envelope.cascade.runner import RunEnd, progress_of, recording_of
from ctxsteward.envelope.cascade.script import (
    EvaluatedAttempt,
    FunctionPlayer,
    ModelAnswer,
    ModelRequest,
    ModelScript,
    PhaseOutput,
    Player,
    ToolAnswer,
    ToolUse,
    judged,
    load_script,
)
from ctxsteward.envelope.cascade.turns import RunLedger
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store
from ctxsteward.evals.prompt_cost import openai_faults
from ctxsteward.evals.suites.kit.faulty_objects import Crashed
from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.documents import SelectionLog
from ctxsteward.schemas.errors import Conflict
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.store.objects.memory import MemoryObjects

from ...examples import drawn

LONG = "lorem ipsum dolor sit amet " * 12
ROOMY = Budgets(dynamic_tokens=1_000_000)
TIGHT = Budgets(dynamic_tokens=2_400, system_tokens=2_000, recall_fraction=0.1)


def search(result: str = "3 hits", **arguments: Any) -> dict[str, Any]:
    return {"tool": "search", "arguments": arguments, "result": result}


def row(phase: str, text: str, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"phase": phase, "text": text, "calls": list(calls), **more}


Choose = Callable[[str, Sequence[EvaluatedAttempt]], int]


class Heard:
    """A player that passes on to a script and keeps what the model was asked."""

    def __init__(self, model: ModelScript, evaluate: Choose | None = None) -> None:
        self.model, self.asked, self.evaluate = model, list[ModelRequest](), evaluate

    def tool(self, use: ToolUse) -> ToolAnswer | None:
        return self.model.tool(use)

    def verdict(self, output: PhaseOutput) -> str | None:
        return self.model.verdict(output)

    def choose(self, phase: str, attempts: Sequence[EvaluatedAttempt]) -> int | None:
        return None if self.evaluate is None else self.evaluate(phase, attempts)

    def answer(self, request: ModelRequest) -> ModelAnswer:
        self.asked.append(request)
        assert openai_faults(request.request) == []
        return self.model.answer(request)


def runner_of(
    cascade: Cascade,
    script: ModelScript,
    store: Store | None = None,
    player: Player | None = None,
    budgets: Budgets = ROOMY,
    **more: Any,
) -> CascadeRunner:
    def builder(policy: Policy) -> EnvelopeBuilder:
        return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=budgets, summarizer=FirstLine(), policy=policy)

    return CascadeRunner(
        store=store or memory_store(),
        cascade=cascade,
        player=player or script,
        builder=builder,
        run="r",
        **({"tools": {"search": None}, "workers": 1} | more),
    )


def play(
    cascade: Cascade, rows: Sequence[Mapping[str, Any]], evaluate: Choose | None = None, **more: Any
) -> tuple[RunEnd, Heard]:
    script = script_of(rows)
    heard = Heard(script, evaluate)
    return runner_of(cascade, script, player=heard, **more).play(), heard


def said(request: ModelRequest) -> list[str]:
    """Contents of a request behind its system message."""
    return [str(message["content"]) for message in request.request["messages"] if message["role"] != "system"]


TWO = cascade_of(
    {
        "cascade_id": "tea",
        "phases": [
            {
                "name": "dig",
                "instructions": "Find {{ input.topic }}.",
                "tackle": ["search"],
                "output_extraction": {"pattern": r"port (\d+)", "store_as": "port"},
            },
            {"name": "write", "instructions": "Write of {{ state.port }}.", "context": {"from": ["dig"]}},
        ],
    }
)
TWO_ROWS = [row("dig", "I look.", search(q="tea")), row("dig", "It is port 8."), row("write", "Port 8 it is.")]


def test_two_phases_are_played_with_their_tools_and_state() -> None:
    end, heard = play(TWO, TWO_ROWS, input={"topic": "tea"}, scratchpad=False)

    assert (end.status, end.state, [(one.phase, one.status, one.calls, one.text) for one in end.phases]) == (
        "done",
        {"port": "8"},
        [("dig", "done", 2, "It is port 8."), ("write", "done", 1, "Port 8 it is.")],
    )
    assert [said(request) for request in heard.asked] == [
        ["Find tea."],
        ["Find tea.", "I look.", "3 hits"],
        ['[Original Input]:\n{\n  "topic": "tea"\n}', "[Output from dig]:\nIt is port 8.", "Write of 8."],
    ]
    assert [tool["function"]["name"] for tool in heard.asked[0].request["tools"]] == ["search"]


def long_dig(results: int = 14) -> tuple[Cascade, list[dict[str, Any]]]:
    intra = {"window": 3, "mask_observations_after": 2}
    phase = {"name": "dig", "instructions": "Dig.", "tackle": ["search"], "intra_context": intra}
    rows = [row("dig", f"Step {n}.", search(f"{n} " + LONG * 8, q=n)) for n in range(results)]
    return cascade_of({"cascade_id": "dig", "phases": [phase]}), [*rows, row("dig", "Done.")]


def test_every_call_of_a_run_has_its_selection_log() -> None:
    cascade, rows = long_dig()
    store, script = memory_store(), script_of(rows)

    def builder(policy: Policy) -> EnvelopeBuilder:
        return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=30_000), policy=policy)

    replace(runner_of(cascade, script, store, scratchpad=False), builder=builder).play()

    logs = [SelectionLog(**call["selection"]) for call in RunLedger(store, "r", "default").all("call-").values()]
    assert {(log.selection_type, log.strategy) for log in logs} == {
        ("intra_phase", "intra-phase/2 threshold window=3 mask=2")
    }
    assert [log.full_history_size for log in logs] == list(range(1, 31, 2))
    assert logs[-1].tokens_saved > 0
    assert logs[-1].masked_count + len(logs[-1].selected_refs) >= 14


# -- tries -----------------------------------------------------------------------------------------------------------


def mending(**more: Any) -> Cascade:
    rules = {"loop_until": "tests", "max_attempts": 3}
    return cascade_of(
        {"cascade_id": "c", "phases": [{"name": "mend", "instructions": "Mend.", "rules": rules, **more}]}
    )


REFUSED_TWICE = [
    row("mend", "First.", refused="2 tests fail"),
    row("mend", "Second.", refused="1 test fails"),
    row("mend", "Third."),
]


def test_a_refused_try_is_shown_the_task_the_attempts_and_why_they_failed() -> None:
    end, heard = play(mending(intra_context={"loop_history_limit": 1}), REFUSED_TWICE, scratchpad=False)

    assert (end.phases[0].status, end.phases[0].tries, end.phases[0].text) == ("done", 3, "Third.")
    assert said(heard.asked[2]) == [
        "[Original Task]\nMend.",
        "[Attempt #2]\nSecond.",
        "[Validation Failed]\n1 test fails",
        "Attempt #3: mend what the validation found.",
    ]


def test_without_compressed_loops_the_history_goes_on() -> None:
    _, heard = play(mending(), REFUSED_TWICE, scratchpad=False)

    assert said(heard.asked[2]) == [
        "Mend.",
        "First.",
        "[Validation Failed]\n2 tests fail",
        "Attempt #2: mend what the validation found.",
        "Second.",
        "[Validation Failed]\n1 test fails",
        "Attempt #3: mend what the validation found.",
    ]


# -- soundings -------------------------------------------------------------------------------------------------------


def sounding(**more: Any) -> Cascade:
    return cascade_of(
        {
            "cascade_id": "c",
            "phases": [
                {"name": "look", "instructions": "Look."},
                {
                    "name": "plan",
                    "instructions": "Plan.",
                    "tackle": ["search"],
                    "soundings": {"factor": 3, **more},
                    "context": {"mode": "auto", "anchors": {"include": []}},
                },
                {"name": "do", "instructions": "Do.", "context": {"from": ["plan"]}},
            ],
        }
    )


SOUNDED = [
    row("look", "The relay stalls."),
    *(
        one
        for n in (1, 2, 3)
        for one in (
            row("plan", f"Secret {n}.", search(f"only {n}"), attempt=n),
            row("plan", f"Plan {n}.", attempt=n),
        )
    ),
    row("do", "Done."),
]


def chosen_of(end: RunEnd) -> tuple[int | None, list[str]]:
    plan = end.phases[1]
    return plan.chosen, [kind for kind, _ in plan.findings]


@pytest.mark.parametrize("workers", [1, 3])
def test_no_sounding_sees_another_and_each_selects_for_itself(workers: int) -> None:
    store = memory_store()
    end, heard = play(sounding(), SOUNDED, store=store, workers=workers, scratchpad=False)

    assert end.status == "done"
    for number in (1, 2, 3):
        texts = "\n".join(text for request in heard.asked if request.attempt == number for text in said(request))
        assert f"Secret {number}." in texts
        assert not any(f"Secret {other}." in texts or f"Plan {other}." in texts for other in {1, 2, 3} - {number})
        first = next(said(request) for request in heard.asked if request.attempt == number)
        assert first == ["[Conversation from look]:", "Look.", "The relay stalls.", "Plan."]
    assert said(heard.asked[-1]) == ["[Output from plan]:\nPlan 1.", "Do."]


@pytest.mark.parametrize(
    ("reply", "chosen", "kinds"),
    [
        ('{"chosen": 3, "reasoning": "names the port"}', 3, []),
        ("I take 2.", 2, []),
        ("None of them.", 1, ["evaluator_unusable"]),
        ('{"chosen": 7, "reasoning": "?"}', 1, ["evaluator_unusable"]),
        ("1 or 2", 1, ["evaluator_unusable"]),
    ],
)
def test_the_model_chooses_where_it_is_told_how(reply: str, chosen: int, kinds: list[str]) -> None:
    rows = [*SOUNDED, row("plan", reply, evaluator=True)]
    end, heard = play(sounding(evaluator_instructions="Take the safest."), rows)

    assert chosen_of(end) == (chosen, kinds)
    (asked,) = [request for request in heard.asked if request.purpose == "evaluator"]
    assert all(f"[Attempt {n}]\nPlan {n}." in said(asked)[0] for n in (1, 2, 3))


def test_a_function_may_choose_and_sees_only_what_its_validator_let_pass() -> None:
    seen: list[Sequence[EvaluatedAttempt]] = []

    def last(phase: str, attempts: Sequence[EvaluatedAttempt]) -> int:
        seen.append(attempts)
        return attempts[-1].attempt

    cascade = cascade_of(
        {
            "cascade_id": "c",
            "phases": [{"name": "plan", "soundings": {"factor": 3}, "rules": {"loop_until": "v", "max_attempts": 1}}],
        }
    )
    rows = [row("plan", f"Plan {n}.", attempt=n, **({"refused": "no"} if n == 3 else {})) for n in (1, 2, 3)]
    end, _ = play(cascade, rows, evaluate=last)

    assert (end.phases[0].chosen, end.phases[0].text, end.phases[0].calls) == (2, "Plan 2.", 3)
    assert seen == [[EvaluatedAttempt(1, "Plan 1."), EvaluatedAttempt(2, "Plan 2.")]]


# -- sub-cascades ----------------------------------------------------------------------------------------------------


NESTED = cascade_of(
    {
        "cascade_id": "outer",
        "phases": [
            {
                "name": "gather",
                "sub_cascades": [
                    {
                        "ref": "inner",
                        "input_map": {"q": "{{ input.topic }}!"},
                        "context_in": ["house"],
                        "context_out": ["port"],
                    },
                ],
            },
            {"name": "tell", "instructions": "Tell of {{ state.port }}.", "context": {"from": []}},
        ],
        "cascades": [
            {
                "cascade_id": "inner",
                "phases": [
                    {
                        "name": "dig",
                        "instructions": "Dig {{ input.q }}",
                        "output_extraction": {"pattern": r"port (\d+)", "store_as": "port"},
                    },
                    {"name": "tell", "instructions": "Note it."},
                ],
            }
        ],
    }
)
NESTED_ROWS = [
    row("dig", "port 9", cascade="inner"),
    row("tell", "Noted.", cascade="inner"),
    row("tell", "It is 9.", cascade="outer"),
]


def test_a_sub_cascade_is_a_run_of_its_own_and_its_state_flows_out() -> None:
    store = memory_store()
    end, heard = play(NESTED, NESTED_ROWS, store=store, input={"topic": "tea"}, scratchpad=False)

    assert end.state == {"port": "9"}
    assert said(heard.asked[0]) == ["Dig tea!"]
    assert said(heard.asked[-1]) == ['[Original Input]:\n{\n  "topic": "tea"\n}', "Tell of 9."]
    assert {"r.sub1-1", "r.sub1-1..ledger"} <= set(store.sessions())


def test_a_failed_sub_cascade_says_where_and_why() -> None:
    inner = {"cascade_id": "i", "phases": [{"name": "dig", "rules": {"loop_until": "v", "max_attempts": 1}}]}
    cascade = cascade_of(
        {"cascade_id": "o", "phases": [{"name": "g", "sub_cascades": [{"ref": "i"}]}], "cascades": [inner]}
    )
    end, _ = play(cascade, [row("dig", "x", refused="wrong")])

    assert (end.status, end.phases[0].reason) == (
        "failed",
        "sub-cascade 'i' failed in 'dig': 'v' refused 1 attempts, the last one: wrong",
    )


# -- limits ----------------------------------------------------------------------------------------------------------


LOOPING = [row("dig", f"Again {n}.", search(f"hit {n}")) for n in range(1, 9)]


def test_max_turns_cuts_a_phase_with_its_calls_answered() -> None:
    cascade = cascade_of(
        {
            "cascade_id": "c",
            "phases": [
                {"name": "dig", "instructions": "Dig.", "tackle": ["search"], "rules": {"max_turns": 3}},
                {"name": "tell"},
            ],
        }
    )
    end, heard = play(cascade, [*LOOPING, row("tell", "Told.")])

    assert (end.status, end.phases[0].status, end.phases[0].calls, end.phases[0].reason) == (
        "done",
        "cut",
        3,
        "no answer within 3 turns",
    )
    assert said(heard.asked[-1])[-3:] == ["Again 3.", "hit 3", "[Phase tell]"]


def test_a_try_that_takes_too_many_turns_is_refused_and_max_attempts_ends_the_run() -> None:
    cascade = cascade_of(
        {
            "cascade_id": "c",
            "phases": [
                {"name": "dig", "tackle": ["search"], "rules": {"max_turns": 2, "loop_until": "v", "max_attempts": 2}},
                {"name": "tell"},
            ],
        }
    )
    end, heard = play(cascade, LOOPING)

    assert (end.status, len(end.phases), len(heard.asked)) == ("failed", 1, 4)
    assert end.phases[0].reason == "'v' refused 2 attempts, the last one: no answer within 2 turns"


def test_max_calls_stops_a_run_that_may_go_on_later() -> None:
    store, script = memory_store(), script_of(TWO_ROWS)
    with pytest.raises(InputError, match="made 2 calls of the model, which is its limit"):
        runner_of(TWO, script, store, max_calls=2, input={"topic": "tea"}).play()

    assert runner_of(TWO, script, store, max_calls=1, input={"topic": "tea"}).play().status == "done"


def test_a_tool_that_the_phase_does_not_name_is_refused_to_the_model() -> None:
    cascade = cascade_of({"cascade_id": "c", "phases": [{"name": "dig", "tackle": ["search"]}]})
    rows = [row("dig", "", {"tool": "erase", "arguments": {}, "result": "gone"}), row("dig", "Ok.")]
    _, heard = play(cascade, rows)

    assert said(heard.asked[1])[-1] == "error: this phase has no tool 'erase'; its tools: search"


def test_what_an_output_must_hold_and_does_not_fails_the_phase() -> None:
    extraction = {"pattern": "port (.+)", "store_as": "port", "required": True}
    cascade = cascade_of({"cascade_id": "c", "phases": [{"name": "dig", "output_extraction": extraction}]})
    end, _ = play(cascade, [row("dig", "Nothing.")])

    assert (end.status, end.phases[0].reason) == ("failed", "the output of 'dig' has nothing that matches 'port (.+)'")


# -- killed and gone on with -----------------------------------------------------------------------------------------


class MortalJournal(MemoryJournal):
    """A journal whose process dies before, or just after, a write."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        """Writes until death; None: it lives."""
        self.after = False
        self.writes: list[tuple[str, ...]] = []
        """What each was of: its session, and the kinds of its records; of a note, the first word of its name, too."""

    def append(self, key: SessionKey, position: int, records: Sequence[JournalRecord], *, generation: int = 0) -> None:
        named = [json.loads(record.body)["name"] if record.kind == "note" else "" for record in records]
        self.writes.append((key.session, *(record.kind for record in records), *(n.partition("-")[0] for n in named)))
        dies = self.left == 0
        self.left = None if self.left is None else self.left - 1
        if dies and not self.after:
            raise Crashed
        try:
            super().append(key, position, records, generation=generation)
        except Conflict:
            if not dies:
                raise
        if dies:
            raise Crashed


def mortal_store() -> tuple[Store, MortalJournal]:
    journal = MortalJournal()
    keys = memory_keys(lambda size: b"k" * size)
    return Store(journal, MemoryObjects(), keys, uri="memory:", draw_nonce=lambda: "000000000"), journal


KILLED = cascade_of(
    {
        "cascade_id": "all",
        "auto_context": {"intra_phase": {"window": 2, "mask_observations_after": 1, "loop_history_limit": 2}},
        "phases": [
            {"name": "dig", "instructions": "Find it.", "tackle": ["search"]},
            {
                "name": "mend",
                "instructions": "Mend it.",
                "tackle": ["search"],
                "rules": {"loop_until": "tests"},
                "context": {"from": ["dig"]},
            },
            {"name": "plan", "instructions": "Plan.", "soundings": {"factor": 2, "evaluator_instructions": "Which?"}},
            {"name": "sub", "sub_cascades": [{"ref": "inner"}]},
            {"name": "tell", "instructions": "Tell of {{ state.port }}."},
        ],
        "cascades": [
            {
                "cascade_id": "inner",
                "phases": [
                    {
                        "name": "note",
                        "instructions": "Note.",
                        "output_extraction": {"pattern": r"\d+", "store_as": "port"},
                    }
                ],
            }
        ],
    }
)
PAD = "\nSCRATCHPAD:## Key Decisions\n- use port {n}\n## Blockers\n- None"
KILLED_ROWS = [
    *(
        row(
            "dig",
            f"I look {n}.{PAD.format(n=n)}",
            search(LONG + str(n)),
            search("QUALITY_PASSED: lint"),
            usage={"prompt_tokens": 900 * n, "completion_tokens": 9},
        )
        for n in range(1, 8)
    ),
    row("dig", "Found."),
    row("mend", "Try.", search(LONG)),
    row("mend", "First.", refused="2 fail"),
    row("mend", "Second.", refused="1 fails"),
    row("mend", "Third." + PAD.format(n=9)),
    row("plan", "A.", attempt=1),
    row("plan", "B.", attempt=2),
    row("plan", "2", evaluator=True),
    row("note", "port 9"),
    row("tell", "Told."),
]


def runs(store: Store) -> list[dict[str, Any]]:
    """Calls of the run and of its sub-cascade."""
    return [call for run in ("r", "r.sub4-1") for call in RunLedger(store, run, "default").all("call-").values()]


def kept(store: Store) -> dict[str, Any]:
    """What stands in every session at the end: messages, notes, and the addresses of all envelopes."""
    sessions = {
        id: ([entry.message.wire for entry in store.session(id).entries()], dict(store.session(id).state.notes))
        for id in store.sessions()
        if not id.endswith("..ledger")
    }
    envelopes = [(call["phase"], call["attempt"], call["number"], call["envelope"]) for call in runs(store)]
    return {"sessions": sessions, "envelopes": envelopes}


def whole_run(store: Store) -> RunEnd:
    return runner_of(KILLED, script_of(KILLED_ROWS), store, budgets=TIGHT).play()


@pytest.fixture(scope="module")
def unbroken() -> tuple[RunEnd, dict[str, Any], list[tuple[str, ...]]]:
    store, journal = mortal_store()
    end = whole_run(store)
    return end, kept(store), journal.writes


def test_the_run_that_is_killed_has_all_there_is(
    unbroken: tuple[RunEnd, dict[str, Any], list[tuple[str, ...]]],
) -> None:
    store, _ = mortal_store()
    end = whole_run(store)

    assert end == unbroken[0]
    assert end.state == {"port": "9"}
    assert sum(call["compactions"] for call in runs(store)) >= 2
    ledger = RunLedger(store, "r", "default")
    assert {name: one["iteration"] for name, one in ledger.all("checkpoint-000").items()}["checkpoint-000-000"] >= 5
    assert ledger.all("used-")  # counts were corrected on the way


def test_killed_at_any_write_it_goes_on_to_the_same_envelopes_byte_for_byte(
    unbroken: tuple[RunEnd, dict[str, Any], list[tuple[str, ...]]],
) -> None:
    """Before or after a write, one of each kind of record at least; at all with CTXSTEWARD_SOAK=1."""
    expected_end, expected, writes = unbroken
    assert len(writes) > 100
    cases = [(place, after) for place in range(len(writes)) for after in (False, True)]
    for place, after in drawn(cases, len(writes) // 10, "cascade", kind=lambda case: writes[case[0]][1:]):
        store, journal = mortal_store()
        journal.left, journal.after = place, after
        with pytest.raises(Crashed):
            whole_run(store)
        journal.left = None
        again = Store(journal, MemoryObjects(), store.keys, uri="memory:", draw_nonce=lambda: "000000000")

        assert whole_run(again) == expected_end, place
        assert kept(again) == expected, place


def test_a_recording_plays_the_run_again() -> None:
    store = memory_store()
    end = whole_run(store)
    rows = list(recording_of(store, KILLED, "r"))
    again = memory_store()
    played = runner_of(KILLED, script_of(rows), again, budgets=TIGHT).play()

    assert played == end
    assert list(recording_of(again, KILLED, "r")) == rows
    assert [one["refused"] for one in rows if "refused" in one] == ["2 fail", "1 fails"]


SPANS = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from tests.envelope.cascade.test_runner import TWO, TWO_ROWS, play
play(TWO, TWO_ROWS, input={"topic": "tea"})
for span in exporter.get_finished_spans():
    if span.name in ("context.run", "context.phase"):
        print(span.name, dict(span.attributes))
"""


def test_a_run_and_its_phases_are_spans_where_opentelemetry_listens() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", SPANS], capture_output=True, text=True, check=True, cwd=root)

    assert done.stdout.splitlines() == [
        "context.phase {'context.cascade.phase': 'dig', 'context.status': 'done', 'context.calls': 2}",
        "context.phase {'context.cascade.phase': 'write', 'context.status': 'done', 'context.calls': 1}",
        "context.run {'context.cascade': 'tea', 'context.status': 'done', 'context.calls': 3}",
    ]


def test_a_run_that_has_ended_asks_nobody_again() -> None:
    store, script = memory_store(), script_of(TWO_ROWS)
    end = runner_of(TWO, script, store, input={"topic": "tea"}).play()
    heard = Heard(script)

    assert runner_of(TWO, script, store, heard, input={"topic": "tea"}).play() == end
    assert heard.asked == []


def test_a_run_of_something_else_is_refused() -> None:
    store, script = memory_store(), script_of(TWO_ROWS)
    runner_of(TWO, script, store, input={"topic": "tea"}).play()

    with pytest.raises(InputError, match="run 'r' was begun with another input, or a cascade that was changed"):
        runner_of(TWO, script, store, input={"topic": "coffee"}).play()
    with pytest.raises(InputError, match="run 'r' was begun with cascade 'tea'"):
        runner_of(mending(), script, store).play()


def test_progress_says_what_has_ended_and_what_is_left() -> None:
    store, script = memory_store(), script_of(TWO_ROWS[:2])
    with pytest.raises(InputError):
        runner_of(TWO, script, store, input={"topic": "tea"}).play()

    found = progress_of(store, "r")
    assert found is not None
    assert (found.cascade, found.ended, found.left, found.session) == ("tea", ("dig",), ("write",), "r.write")
    assert progress_of(store, "nobody") is None


# -- tools and validators that are functions -------------------------------------------------------------------------


def test_functions_play_tools_and_validators_and_what_they_raise_is_told() -> None:
    def look(place: str) -> dict[str, str]:
        "Look there."
        if place == "moon":
            raise LookupError("too far")
        return {"at": place}

    cascade = cascade_of(
        {
            "cascade_id": "c",
            "phases": [{"name": "dig", "tackle": ["look"], "rules": {"loop_until": "short", "max_attempts": 2}}],
        }
    )
    wants = [{"tool": "look", "arguments": arguments} for arguments in ({"place": "sea"}, {"place": "moon"}, "[1]")]
    script = script_of([row("dig", "", *wants), row("dig", "Far too long."), row("dig", "Ok.")])
    heard = Heard(script)
    runner = CascadeRunner(
        store=memory_store(),
        cascade=cascade,
        player=FunctionPlayer(
            model=heard.answer,
            tools={"look": look},
            validators={"short": lambda text: (len(text) < 5, f"{len(text)} characters")},
        ),
        run="r",
        tools={"look": look},
        builder=lambda policy: EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=ROOMY),
    )
    end = runner.play()

    assert end.phases[0].tries == 2
    assert said(heard.asked[1])[-3:] == [
        '{"at": "sea"}',
        "error: LookupError: too far",
        "error: arguments are a JSON object",
    ]
    assert "[Validation Failed]\n13 characters" in said(heard.asked[2])
    schema = heard.asked[0].request["tools"][0]["function"]
    assert (schema["description"], schema["parameters"]["required"]) == ("Look there.", ["place"])


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (True, None),
        (False, "not valid"),
        ((False, "why"), "why"),
        ({"valid": False, "reason": "why"}, "why"),
        ({"valid": True}, None),
    ],
)
def test_verdicts_are_read(given: object, verdict: str | None) -> None:
    from ctxsteward.envelope.cascade.script import PhaseOutput

    output = PhaseOutput("c", "p", None, 1, "v", "text")
    assert judged(lambda text: given, output) == verdict


@pytest.mark.parametrize("given", [None, "yes", 1, ({}, "x"), {"reason": "x"}])
def test_what_is_no_verdict_is_refused(given: object) -> None:
    from ctxsteward.envelope.cascade.script import PhaseOutput

    with pytest.raises(InputError, match="validator 'v' gave"):
        judged(lambda text: given, PhaseOutput("c", "p", None, 1, "v", "text"))


# -- bad scripts -----------------------------------------------------------------------------------------------------


class Bad(NamedTuple):
    id: str
    text: str
    says: str
    suffix: str = ".yaml"


BAD = [
    Bad("no replies", "schema_version: 1\n", "replies: nothing; write a list of {phase, text}"),
    Bad("replies that are no list", "replies: hi\n", "s.yaml:1: replies: the text 'hi'; write a list"),
    Bad("unknown key", "replies: []\nreply: []\n", "s.yaml:2: reply: unknown key; allowed: schema_version, replies"),
    Bad("another version", "schema_version: 2\nreplies: []\n", "schema_version: the number 2; write 1"),
    Bad("a row that is no mapping", "replies: [hi]\n", "s.yaml:1: replies[0]: the text 'hi'; write {phase, text}"),
    Bad("a row without a phase", "replies: [{text: hi}]\n", "replies[0].phase: nothing; add this key"),
    Bad(
        "an unknown key of a row",
        "replies:\n  - {phase: a, txt: hi}\n",
        "s.yaml:2: replies[0].txt: no such key; allowed: phase, cascade",
    ),
    Bad(
        "a text that is none",
        "replies: [{phase: a, text: 7}]\n",
        "s.yaml:1: replies[0].text: the number 7; write a text",
    ),
    Bad(
        "attempt 0",
        "replies: [{phase: a, attempt: 0}]\n",
        "attempt: the number 0; write a number greater than or equal to 1",
    ),
    Bad("a call without a tool", "replies: [{phase: a, calls: [{arguments: {}}]}]\n", "calls[0].tool: nothing; add"),
    Bad(
        "an unknown key of a call",
        "replies: [{phase: a, calls: [{tool: t, args: {}}]}]\n",
        "replies[0].calls[0].args: no such key; allowed: tool, arguments",
    ),
    Bad(
        "usage that is none",
        "replies: [{phase: a, usage: {prompt_tokens: many}}]\n",
        "usage.prompt_tokens: the text 'many'; write a whole number",
    ),
    Bad("YAML that does not parse", "replies: [\n", "s.yaml"),
    Bad("a line that is no JSON", '{"phase": "a"}\n{phase: b}\n', "s.jsonl: line 2", ".jsonl"),
    Bad("a line that is no row", '{"phase": "a"}\n[1]\n', "s.jsonl: line 2: a list; write {phase, text}", ".jsonl"),
    Bad("a line with an unknown key", '{"phase": "a", "say": 1}\n', "s.jsonl: line 1: say: no such key", ".jsonl"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_a_bad_script_is_refused_naming_file_row_and_key(case: Bad, tmp_path: Path) -> None:
    path = tmp_path / f"s{case.suffix}"
    path.write_text(case.text, encoding="utf-8")

    with pytest.raises(InputError) as refused:
        load_script(path)
    assert case.says in str(refused.value)


def test_rows_are_read_from_yaml_and_jsonl_alike(tmp_path: Path) -> None:
    yaml, jsonl = tmp_path / "s.yaml", tmp_path / "s.jsonl"
    yaml.write_text("replies:\n  - {phase: a, text: Hi., calls: [{tool: t, result: [1]}]}\n", encoding="utf-8")
    jsonl.write_text('{"phase": "a", "text": "Hi.", "calls": [{"tool": "t", "result": [1]}]}\n', encoding="utf-8")

    assert load_script(yaml).rows == load_script(jsonl).rows


class Stops(NamedTuple):
    id: str
    cascade: Cascade
    rows: list[dict[str, Any]]
    says: str


def one(name: str = "dig", **more: Any) -> Cascade:
    return cascade_of({"cascade_id": "c", "phases": [{"name": name, **more}]})


STOPS = [
    Stops("the script ends", one(), [], "script: phase 'dig' asks for reply 1; it has 0; add the rows"),
    Stops(
        "it ends in an attempt",
        one(soundings={"factor": 2}),
        [row("dig", "a", attempt=1)],
        "phase 'dig', attempt 2 asks for reply 1",
    ),
    Stops(
        "a call without a result",
        one(tackle=["search"]),
        [row("dig", "", {"tool": "search"})],
        "phase 'dig', call 1: nobody plays the tool 'search'; name a function for it",
    ),
    Stops(
        "no row of the evaluator",
        one(soundings={"factor": 2, "evaluator_instructions": "Which?"}),
        [row("dig", "a", attempt=1), row("dig", "b", attempt=2)],
        "asks for the choice among attempts",
    ),
]


@pytest.mark.parametrize("case", STOPS, ids=lambda case: case.id)
def test_a_run_that_cannot_go_on_says_why(case: Stops) -> None:
    with pytest.raises(InputError) as refused:
        play(case.cascade, case.rows)
    assert case.says in str(refused.value)


def test_nobody_s_validator_is_refused() -> None:
    script = script_of(REFUSED_TWICE)
    with pytest.raises(InputError, match="phase 'mend': nobody plays the validator 'tests'"):
        runner_of(mending(), script, player=FunctionPlayer(model=script.answer)).play()
