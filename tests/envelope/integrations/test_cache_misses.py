"""What the provider read from its cache, beside what it could have read: which section, and why."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope.integrations.answers import read_answer, read_reply
from ctxsteward.envelope.testing import memory_store

SYSTEM = "You plan trips. " + "Every booking is confirmed by its number. " * 400


class Clock:
    """The clock of the calls, which the test sets."""

    now: float = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    place = "ctxsteward.envelope.integrations.session_call.time"
    monkeypatch.setattr(place, SimpleNamespace(monotonic=lambda: clock.now))
    return clock


class Case(NamedTuple):
    id: str
    reads: list[int]
    seconds: float
    where: list[str]
    says: str = ""
    more: dict[str, Any] = {}  # noqa: RUF012 (no case changes it)


DIAGNOSED = {"prompt_cache_diagnostics": {"type": "cache_miss", "reason": "tools_changed", "cache_missed_tokens": 9}}
CASES = [
    Case("the first call reads nothing", [0], 1, []),
    Case("all is read", [0, 3_328], 1, []),
    Case("nothing is read", [0, 0], 1, ["system"], "did not keep it"),
    Case("less than a block is missing", [0, 2_900], 1, []),
    Case("the lifetime is over", [0, 0], 4_000, ["system"], "4,000 s lay between the calls"),
    Case("the provider says why", [0, 0], 1, ["system"], "the provider says 'tools_changed'", DIAGNOSED),
    Case("a hit is no reason", [0, 3_328], 1, [], more={"prompt_cache_diagnostics": {"type": "cache_hit"}}),
    Case("each miss is told", [0, 0, 0], 1, ["system", "system"], "did not keep it"),
]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_what_the_provider_missed_is_a_finding_of_its_call(case: Case, clock: Clock) -> None:
    chat, told = memory_store().chat("trip", model="gpt-4o", system=SYSTEM), []
    for number, read in enumerate(case.reads):
        clock.now += case.seconds
        with chat.turn(f"Which hotel did we choose on day {number}?") as turn:
            choice = {"message": {"role": "assistant", "content": f"The hotel of day {number}."}}
            usage = {"prompt_tokens": 4_000, "prompt_tokens_details": {"cached_tokens": read}}
            turn.finish({"choices": [choice], "usage": usage, **case.more})
        told += [finding for finding in turn.findings if finding.kind == "cache_missed"]
    assert [finding.field for finding in told] == case.where
    assert all(case.says in finding.text for finding in told)


def test_a_short_beginning_and_a_report_without_a_count_are_no_miss(clock: Clock) -> None:
    chat = memory_store().chat("trip", model="gpt-4o", system="You plan trips.")
    for usage in ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 0}}, {"prompt_tokens": 40}):
        for _ in range(2):
            with chat.turn("Which hotel?") as turn:
                turn.finish({"choices": [{"message": {"role": "assistant", "content": "One."}}], "usage": usage})
            assert [f for f in turn.findings if f.kind == "cache_missed"] == []


CLAUDE = {
    "content": [{"type": "text", "text": "One."}],
    "role": "assistant",
    "stop_reason": "end_turn",
    "type": "message",
    "usage": {"input_tokens": 9},
    "diagnostics": {"cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 9}},
}


def test_reasons_of_both_providers_are_kept_from_whole_answers_and_streams() -> None:
    whole = read_reply("anthropic", CLAUDE)
    assert whole.usage == {"input_tokens": 9, "cache_miss_reason": "system_changed"}
    start = {"type": "message_start", "message": {**CLAUDE, "content": [], "stop_reason": None}}
    events = [
        start,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "One."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    streamed = read_answer("anthropic", "text/event-stream", data)
    assert streamed is not None
    assert streamed.usage is not None
    assert streamed.usage["cache_miss_reason"] == "system_changed"
