"""The benchmark ``warm``: the cost of one more step of a running session, in milliseconds of CPU.

Without recall (`run`): append, build and render one message, at 50 and at 5,000 messages, against a floor that no
design avoids: tokenize that message and serialize the window once.

With recall (`rows`): append a user message, select, build and render, at 50 to 20,000 messages, against the same floor.
Only turns that recall something count. Each session is opened and read once, by the turn before the first that counts.
Turns of all sizes alternate, so that a drifting machine affects them equally.

Memory is the lasting allocation of one more session of 500 messages, with its store in memory, after earlier sessions
have filled the shared caches.

A cold build has 5,000 messages of 1.6 million tokens, as after a restart without any compaction to start from. It is
compared with tokenizing the same messages once, in three ways: all appended to an empty store and built; a file store
reopened that was never built; a file store reopened that was built all along. It is followed by the first recall: in a
session that was never read, and in one that was read before the restart.
"""

from __future__ import annotations

import gc
import json
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, load_tokenizer, open_store
from ctxsteward.schemas.message import Wire

from .conversations import conversation
from .rows import BenchmarkRow, row

RECALL_SIZES = (50, 500, 5_000, 20_000)
COMPARED = 500
TURNS = 100
_BUILD_EVERY = 20
"""Messages between two builds while a session is made."""


class RecallTurn(NamedTuple):
    """CPU milliseconds of a user turn that recalls, and of the floor that no design avoids."""

    ms: float
    floor_ms: float


@dataclass(slots=True)
class _RecallSession:
    """A session with its builder and its coming messages."""

    session: Session
    builder: EnvelopeBuilder
    coming: Iterator[Wire]
    count: Callable[[str], int]

    def turn(self) -> RecallTurn | None:
        """Play a user turn and its reply; return None if it compacted or recalled nothing."""
        question, reply = next(self.coming), next(self.coming)
        started = time.process_time_ns()
        self.session.append(question)
        envelope = self.builder.build(self.session)
        request = envelope.render("openai-chat")
        built = time.process_time_ns()
        self.count(question["content"])
        json.dumps(request)
        floor = time.process_time_ns()
        self.session.append(reply)
        if envelope.reports or envelope.dynamic.context is None:
            return None
        return RecallTurn((built - started) / 1e6, (floor - built) / 1e6)


def rows(name: str) -> Iterator[BenchmarkRow]:
    """Yield the figures under this benchmark's name."""
    talks = {size: _talk(size) for size in RECALL_SIZES}
    turns: dict[int, list[RecallTurn]] = {size: [] for size in RECALL_SIZES}
    for _ in range(TURNS):
        for size, talk in talks.items():
            if (turn := talk.turn()) is not None:
                turns[size].append(turn)
    p50 = {size: statistics.median(turn.ms for turn in turns[size]) for size in RECALL_SIZES}
    for size in RECALL_SIZES[2:]:
        ratio = p50[size] / p50[COMPARED]
        yield row(name, f"a user turn that recalls at {size:,} / {COMPARED} messages", ratio, "×", at_most=1.5)
    for size in RECALL_SIZES:
        floor = statistics.median(turn.floor_ms for turn in turns[size])
        yield row(name, f"a user turn that recalls at {size:,} messages / floor", p50[size] / floor, "×", at_most=12)
        yield row(name, f"a user turn that recalls at {size:,} messages, p50", p50[size], "ms")


MEMORY_MESSAGES = 500
_SESSIONS_BEFORE = 4
"""Number of sessions that fill the caches of read sentences."""


def session_mib() -> float:
    """Return the MiB of a session that is built at each user turn."""
    builder = EnvelopeBuilder(model="gpt-4o")
    tracemalloc.start()
    try:
        with open_store("memory:") as store:
            kept = [_played(store.session(f"s-{number}"), builder, number) for number in range(_SESSIONS_BEFORE)]
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            kept.append(_played(store.session("one more"), builder, len(kept)))
            gc.collect()
            return (tracemalloc.get_traced_memory()[0] - before) / 2**20
    finally:
        tracemalloc.stop()


def _played(session: Session, builder: EnvelopeBuilder, seed: int) -> Session:
    for message in conversation(MEMORY_MESSAGES, seed=seed):
        session.append(message)
        if message["role"] == "user":
            builder.build(session)
    return session


def _talk(size: int) -> _RecallSession:
    """Return a session of `size` messages, compacted as it grew."""
    session = open_store("memory:").session("bench")
    builder, earlier = (EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=4_000)) for _ in range(2))
    earlier.selector = None  # recall before the turns that count costs nothing here
    messages = conversation(size + 2 * TURNS, seed=1)
    for number, message in enumerate(messages[:size]):
        session.append(message)
        if number % _BUILD_EVERY == 0:
            earlier.build(session)
    builder.build(session)
    return _RecallSession(session, builder, iter(messages[size:]), load_tokenizer("o200k_base").count)


NAME = "warm"
SIZES = (50, 5_000)
STEPS = 200
ROUNDS = 5


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures; medians over interleaved rounds, so that a drifting machine affects both sizes equally."""
    rounds = [{size: _measure(size, number) for size in SIZES} for number in range(ROUNDS)]
    young, old = SIZES
    ratio = statistics.median(r[old]["build"] / r[young]["build"] for r in rounds)
    yield row(NAME, f"append + build + render at {old:,} / {young} messages", ratio, "×", at_most=1.2)
    for size in SIZES:
        floor = statistics.median(r[size]["build"] / r[size]["floor"] for r in rounds)
        yield row(NAME, f"p50 at {size:,} messages / floor", floor, "×", at_most=3)
        yield row(NAME, f"p50 at {size:,} messages", statistics.median(r[size]["build"] for r in rounds), "ms")
    for name, what in (
        ("floor", "floor (tokenize the message, json.dumps the window)"),
        ("compaction_p50", "a call that compacts, p50"),
        ("compaction_p99", "a call that compacts, p99"),
    ):
        yield row(NAME, what, statistics.median(r[old][name] for r in rounds), "ms")
    yield row(NAME, f"memory of one more session of {MEMORY_MESSAGES} messages", session_mib(), "MiB", at_most=2)
    yield from rows(NAME)


def _measure(size: int, seed: int) -> dict[str, float]:
    """Return milliseconds of CPU."""
    session = open_store("memory:").session("bench")
    budgets = Budgets(dynamic_tokens=4000, recall_fraction=0)
    builder, earlier = (EnvelopeBuilder(model="gpt-4o", budgets=budgets) for _ in range(2))
    messages = conversation(size + STEPS, seed=seed)
    for message in messages[:size]:
        session.append(message)
        if message["role"] == "user":
            earlier.build(session)
    builder.build(session).render("openai-chat")
    spent: dict[str, list[float]] = {"build": [], "floor": [], "compaction": []}
    count = load_tokenizer("o200k_base").count
    for message in messages[size:]:
        start = time.process_time_ns()
        session.append(message)
        envelope = builder.build(session)
        request = envelope.render("openai-chat")
        stop = time.process_time_ns()
        spent["compaction" if envelope.reports else "build"].append((stop - start) / 1e6)
        start = time.process_time_ns()
        count(message["content"])
        json.dumps(request)
        spent["floor"].append((time.process_time_ns() - start) / 1e6)
    compacting = sorted(spent.pop("compaction")) or [0.0]
    return {
        **{name: statistics.median(values) for name, values in spent.items()},
        "compaction_p50": statistics.median(compacting),
        "compaction_p99": compacting[min(len(compacting) - 1, int(len(compacting) * 0.99))],
    }


# -- cold ------------------------------------------------------------------------------------------------------------


NAME = "cold"
MESSAGES = 5_000
SENTENCES = 15
ROUNDS = 5


def run_cold(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    gc.collect()
    gc.freeze()  # objects of other benchmarks need no collection here, because a restart begins empty
    messages = conversation(MESSAGES, sentences=SENTENCES)
    count = load_tokenizer("o200k_base").count
    tokens = sum(count(message["content"]) for message in messages)
    yield row(NAME, "tokens of 5,000 messages", tokens)
    half = conversation(MESSAGES // 2, sentences=SENTENCES)
    fresh, doubled, reopened, windowed = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        _fill(f"file:{folder}/never", messages, build=False)
        _fill(f"file:{folder}/always", messages, build=True)
        for number in range(ROUNDS):
            base = _tokenize(messages)
            whole = _fresh(messages)
            fresh.append(whole / base)
            doubled.append(whole / _fresh(half))
            never = Path(folder) / f"never-{number}"
            _fill(f"file:{never}", messages, build=False)
            reopened.append(_reopen(f"file:{never}") / base)
            windowed.append(_reopen(f"file:{folder}/always") / base)
        unread, read = _recalls(Path(folder) / "recalled", messages, base)
    for what, ratios, most in (
        ("append all + build / tokenizing once", fresh, 3),
        ("5,000 messages / 2,500 messages", doubled, 2.3),
        ("reopen a file store never built + build / tokenizing once", reopened, 3),
        ("reopen a file store built before + build / tokenizing once", windowed, None),
        ("first recall, nothing read before / tokenizing once", unread, None),
        ("first recall after a restart / tokenizing once", read, 1.5),
    ):
        yield row(NAME, what, statistics.median(ratios), "×", at_most=most)


def _builder(**recall: Any) -> EnvelopeBuilder:
    return EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=4000, **recall or {"recall_fraction": 0}))


def _recalls(folder: Path, messages: list[Wire], base: float) -> tuple[list[float], list[float]]:
    """Return ratios of the first recall in a process: one with nothing read before, and some with it read before."""
    _fill(f"file:{folder}", messages, build=False)
    ratios = []
    for turn in conversation(2 * (ROUNDS + 1), seed=11):
        with open_store(f"file:{folder}") as store:
            session, builder = store.session("cold"), _builder(recall_fraction=Budgets().recall_fraction)
            session.append(turn)
            if turn["role"] == "user":
                start = time.process_time()
                builder.build(session)
                ratios.append((time.process_time() - start) / base)
    return ratios[:1], ratios[1:]


def _tokenize(messages: list[Wire]) -> float:
    count = load_tokenizer("o200k_base").count
    start = time.process_time()
    for message in messages:
        count(message["content"])
    return time.process_time() - start


def _fresh(messages: list[Wire]) -> float:
    builder = _builder()
    start = time.process_time()
    session = open_store("memory:").session("cold")
    session.extend(messages)
    builder.build(session).render("openai-chat")
    return time.process_time() - start


def _fill(uri: str, messages: list[Wire], *, build: bool) -> None:
    builder = _builder()
    with open_store(uri) as store:
        session = store.session("cold")
        for start in range(0, len(messages), 50 if build else len(messages)):
            session.extend(messages[start : start + (50 if build else len(messages))])
            if build:
                builder.build(session)


def _reopen(uri: str) -> float:
    builder = _builder()
    start = time.process_time()
    with open_store(uri) as store:
        builder.build(store.session("cold")).render("openai-chat")
    return time.process_time() - start
