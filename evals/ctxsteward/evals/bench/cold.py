"""A cold build: 5,000 messages of 1.6 million tokens, as after a restart without any compaction to start from.

Against tokenizing the same messages once. Three ways: all appended to an empty store and built; a file store reopened
that was never built; a file store reopened that was built all along. And the first recall: of a session that nobody has
read, and of one that was read before the restart.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.tokens import load_tokenizer
from ctxsteward.schemas import Wire

from ..documents import BenchmarkRow, row
from .conversations import conversation

NAME = "cold"
MESSAGES = 5_000
SENTENCES = 15
ROUNDS = 5


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    gc.collect()
    gc.freeze()  # what other benchmarks left behind is not this one's to walk: a restart starts empty
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
    """Of a first recall in a process, nothing read before; and read before, after each of some turns."""
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
