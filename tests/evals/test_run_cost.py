"""What a run cost beside sending everything."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import Budgets, Counter, EnvelopeBuilder, Policy
from ctxsteward.envelope.cascade import CascadeRunner, script_of
from ctxsteward.envelope.cascade.config import cascade_of
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.evals.prompt_cost import Prices, Sizer
from ctxsteward.evals.run_cost import efficiency_of, judged_calls
from ctxsteward.schemas import InputError

from ..envelope.cascade.runs import SIBLINGS

SIZER = Sizer(Counter(CharTokenizer()))
"""A message costs its text and 4."""
CASCADE = cascade_of(
    {
        "cascade_id": "c",
        "phases": [
            {"name": "dig", "instructions": "Dig.", "rules": {"loop_until": "v"}, "intra_context": {}},
            {
                "name": "plan",
                "instructions": "Plan.",
                "context": {"from": ["dig"], "include_input": False},
                "soundings": {"factor": 2},
            },
            {"name": "sub", "sub_cascades": [{"ref": "inner"}]},
        ],
        "cascades": [{"cascade_id": "inner", "phases": [{"name": "note", "instructions": "Note."}]}],
    }
)
ROWS = [
    {"phase": "dig", "text": "No.", "refused": "bad"},
    {"phase": "dig", "text": "Yes."},
    {"phase": "plan", "attempt": 1, "text": "One."},
    {"phase": "plan", "attempt": 2, "text": "Two."},
    {"phase": "note", "text": "Noted."},
]


def test_a_sub_cascade_that_names_a_sibling_is_priced() -> None:
    store = memory_store()
    CascadeRunner(
        store=store,
        cascade=SIBLINGS,
        player=script_of([{"phase": "pb", "text": "Gone."}]),
        run="r",
        workers=1,
        builder=lambda policy: EnvelopeBuilder(model="gpt-4o", policy=policy),
    ).play()

    assert [row.phase for row in efficiency_of(store, SIBLINGS, "r", counter=SIZER.counter)] == ["main/pa/pb"]


def test_a_report_holds_every_phase_s_tokens_sent_and_of_everything() -> None:
    script = script_of(ROWS)
    store = memory_store()

    def builder(policy: Policy) -> EnvelopeBuilder:
        return EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=60_000), policy=policy)

    CascadeRunner(
        store=store,
        cascade=CASCADE,
        player=script,
        run="r",
        builder=builder,
        workers=1,
        scratchpad=False,
    ).play()
    rows = efficiency_of(store, CASCADE, "r", counter=SIZER.counter, prices=Prices(block_tokens=1, write=1))

    task = len("[Original Task]\nDig.") + len("[Attempt #1]\nNo.") + len("[Validation Failed]\nbad") + 4 * 4
    task += len("Attempt #2: mend what the validation found.")
    again = len("[Validation Failed]\nbad\n\nAttempt #2: mend what the validation found.") + 4
    dig = (len("Dig.") + 4, len("Dig.") + 4 + len("No.") + 4 + again)
    plan = len("[Output from dig]:\nYes.") + 4 + len("Plan.") + 4
    cached = len("[O") + plan  # with which the call before begins as well
    everything = dig[1] + len("Yes.") + 4 + len("Plan.") + 4
    assert [row.document(price) for row, price in zip(rows, (None, None, 2.0, None), strict=True)] == [
        {
            "phase": "dig",
            "calls": 2,
            "compactions": 0,
            "sent_tokens": dig[0] + task,
            "everything_tokens": sum(dig),
            "saved": round(1 - (dig[0] + task) / sum(dig), 4),
            "sent_priced": float(dig[0] + task),
            "everything_priced": round(sum(dig) - 0.9 * dig[0], 1),
            "priced_ratio": round((dig[0] + task) / (sum(dig) - 0.9 * dig[0]), 4),
            "cached_tokens": 0,
        },
        {
            "phase": "plan",
            "calls": 2,
            "compactions": 0,
            "sent_tokens": 2 * plan,
            "everything_tokens": 2 * everything,
            "saved": round(1 - plan / everything, 4),
            "sent_priced": round(2 * plan - 0.9 * cached, 1),
            "everything_priced": round(2 * everything - 0.9 * (dig[1] + everything), 1),
            "priced_ratio": round((2 * plan - 0.9 * cached) / (2 * everything - 0.9 * (dig[1] + everything)), 4),
            "cached_tokens": cached,
        },
        {
            "phase": "sub/note",
            "calls": 1,
            "compactions": 0,
            "sent_tokens": 9,
            "everything_tokens": 9,
            "saved": 0.0,
            "sent_priced": 9.0,
            "everything_priced": 9.0,
            "priced_ratio": 1.0,
            "cached_tokens": 0,
            "dollars": {
                "sent_tokens": 1.8e-5,
                "everything_tokens": 1.8e-5,
                "sent_priced": 1.8e-5,
                "everything_priced": 1.8e-5,
            },
        },
        {
            "phase": "all",
            "calls": 5,
            "compactions": 0,
            "sent_tokens": dig[0] + task + 2 * plan + 9,
            "everything_tokens": sum(dig) + 2 * everything + 9,
            "saved": rows[-1].saved,
            "sent_priced": rows[-1].sent_priced,
            "everything_priced": round(rows[-1].everything_priced, 1),
            "priced_ratio": rows[-1].priced_ratio,
            "cached_tokens": cached,
        },
    ]


def test_a_run_without_calls_has_nothing_to_price() -> None:
    with pytest.raises(InputError, match="run 'r' has made no call of a model"):
        list(judged_calls(memory_store(), CASCADE, "r", sizer=SIZER))
