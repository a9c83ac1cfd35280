"""Messages and histories of any shape cost in proportion to their size: appended, built, compacted, recalled, reported.

A shape says what there is many of: parts, tool calls, keys, lines, links, fences, quotes, digits, letters that combine.
It is drawn by a seed, made at n and at 2n, and the processor time of both is compared: 2 is in proportion, 4 is
quadratic. What is over the bound is measured again, the best of several tries, so that a busy machine fails nobody. A
failing shape prints its seed: ``CTXSTEWARD_SHAPE=12345 pytest tests/test_linear_shapes.py`` repeats it. The everyday
run draws new shapes for some seconds; `CTXSTEWARD_SOAK=1` does so for minutes, with larger ones.
"""

from __future__ import annotations

import gc
import json
import os
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.building.past_calls import past_calls
from ctxsteward.envelope.recall.model_tools import answer_search
from ctxsteward.envelope.testing import CharTokenizer, memory_store

from .examples import SOAK

Wire = dict[str, Any]
SIZE = 4_000 if SOAK else 1_200
"""Pieces in the smaller of the two; each is a word to a line."""
GROWTH = 2.5
FLOOR_SECONDS = 0.25
"""Below, a clock's and a collector's noise is larger than what is measured."""
RUN_SECONDS = 300.0 if SOAK else 7.0
SEED = os.environ.get("CTXSTEWARD_SHAPE")
PIECES: tuple[Callable[[int], str], ...] = (
    lambda n: f"order W-{n} is due on {n % 28 + 1} May",
    lambda n: f"we never ship before {n} o'clock",
    lambda n: f"\n- item {n}: {n * 7} EUR",
    lambda n: f"see https://example.org/{n}/page?id={n}",
    lambda n: f"\n```py\nx{n} = {n}\n```\n",
    lambda n: f'he said "number {n}"',
    lambda n: f"“{n}” and ‘{n}’",
    lambda n: f"{n}{n}{n}",
    lambda n: f"价格是{n}元。",
    lambda n: f"é\u0301\u200d{n}🙂",
    lambda n: f'{{"key{n}": [{n}, "v"]}}',
    lambda n: f"> > quoted {n}\n",
    lambda n: f"/srv/data/{n}/file_{n}.txt",
    lambda n: f"No, it is {n} kg, not {n + 1} kg.",
    lambda n: "same words again and again",
    lambda n: "(" if n % 2 else ")",
    lambda n: f"§{n}",
    lambda n: f"| {n} | {n} |\n",
    lambda n: f"Instead of {n} we take {n + 3}; the plan is settled.",
    lambda n: f"<tag{n}>x</tag{n}>",
)


def text_of(piece: Callable[[int], str], count: int, between: str) -> str:
    return between.join(piece(n) for n in range(count))


def many_parts(piece: Callable[[int], str], size: int, between: str) -> list[Wire]:
    return [{"role": "user", "content": [{"type": "text", "text": piece(n)} for n in range(size)]}]


def one_text(piece: Callable[[int], str], size: int, between: str) -> list[Wire]:
    return [{"role": "user", "content": text_of(piece, size, between)}]


def one_answer(piece: Callable[[int], str], size: int, between: str) -> list[Wire]:
    return [{"role": "user", "content": "tell me"}, {"role": "assistant", "content": text_of(piece, size, between)}]


def tool_calls(piece: Callable[[int], str], size: int, between: str) -> list[Wire]:
    """One message with many calls, and a result for each."""
    count = size // 8
    calls = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": f"look{n % 5}", "arguments": json.dumps({"q": piece(n)})},
        }
        for n in range(count)
    ]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": piece(n)} for n in range(count)]
    return [{"role": "user", "content": "look"}, {"role": "assistant", "content": None, "tool_calls": calls}, *results]


def keys(piece: Callable[[int], str], size: int, between: str) -> list[Wire]:
    """A result that is one object of many keys."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    content = json.dumps({f"k{n}": piece(n) for n in range(size)})
    return [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": content},
    ]


def arguments(piece: Callable[[int], str], size: int, between: str) -> list[Wire]:
    given = json.dumps({f"k{n}": piece(n) for n in range(size)})
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": given}}
    return [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]


def history(piece: Callable[[int], str], size: int, between: str) -> list[Wire]:
    """Many short messages."""
    count = size // 8
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"{piece(n)}{between}{piece(n + 1)}"} for n in range(count)
    ]


SHAPES = (many_parts, one_text, one_answer, tool_calls, keys, arguments, history)
BETWEEN = (" ", "\n", ". ", "", ", ", "\n\n")


def play(messages: list[Wire]) -> None:
    """All that a service does with them."""
    store = memory_store()
    session = store.session("s")
    for message in messages:
        session.append(message)
    for n in range(3):
        session.append({"role": "assistant", "content": f"noted {n}"})
        session.append({"role": "user", "content": f"and what about order W-{n}, in §{n + 1}?"})
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=2_000), summarizer="extractive")
    envelope = builder.build(session)
    envelope.render("openai-chat")
    answer_search(session, "order W-3")
    assert past_calls(store, "s")


def seconds(shape: Callable[..., list[Wire]], piece: Callable[[int], str], size: int, between: str) -> float:
    messages = shape(piece, size, between)
    gc.collect()
    started = time.process_time()
    play(messages)
    return time.process_time() - started


def drawn(seed: int) -> tuple[Callable[..., list[Wire]], Callable[[int], str], str, str]:
    draw = random.Random(seed)
    shape, chosen, between = (
        draw.choice(SHAPES),
        draw.sample(range(len(PIECES)), draw.choice((1, 1, 2, 3))),
        draw.choice(BETWEEN),
    )
    name = f"CTXSTEWARD_SHAPE={seed}: {shape.__name__} of pieces {chosen}, {between!r} between"
    return shape, lambda n: PIECES[chosen[n % len(chosen)]](n), between, name


def growth(seed: int) -> tuple[float, str]:
    """How much longer the doubled shape takes; 2 where both are too quick to tell."""
    shape, piece, between, name = drawn(seed)
    best = [float("inf"), float("inf")]
    for _ in range(4):  # what is in proportion shows it at once
        for at, factor in enumerate((1, 2)):
            best[at] = min(best[at], seconds(shape, piece, factor * SIZE, between))
        if best[1] < FLOOR_SECONDS or best[1] <= GROWTH * best[0]:
            return min(best[1] / best[0], GROWTH), name
    return best[1] / best[0], f"{name}: {best[0]:.2f} s and {best[1]:.2f} s"


def test_every_shape_costs_in_proportion_to_its_size() -> None:
    play(one_text(PIECES[0], 50, " "))  # what is imported and compiled once
    until = time.process_time() + RUN_SECONDS
    seeds = iter([int(SEED)]) if SEED else iter(lambda: random.SystemRandom().randrange(10**6), None)
    slow, looked_at = [], 0
    for seed in seeds:
        found, name = growth(seed)
        looked_at += 1
        if found > GROWTH:
            slow.append(name)
        if time.process_time() > until:
            break
    assert looked_at >= (1 if SEED else 3)
    assert slow == []


def test_what_is_quadratic_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure itself, on work that grows with the square of its messages' parts."""

    def quadratic(messages: list[Wire]) -> None:
        size = sum(len(str(message)) for message in messages)
        sum(range(size * size // 2_000))

    monkeypatch.setitem(globals(), "play", quadratic)
    monkeypatch.setitem(globals(), "FLOOR_SECONDS", 0.0)
    # one measure of three may fall on a moment in which the machine did something else
    assert any(growth(1)[0] > GROWTH for _ in range(3))
