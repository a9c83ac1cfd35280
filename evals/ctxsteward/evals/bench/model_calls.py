"""What a summary by a model costs behind the session's prefix, and what builds pay for a model that is down or slow.

``summaries``: the requests that `SummaryAhead` makes over the shipped conversation, and over SWE-agent runs of
``--data`` where there are any, counted in tokens of the prompt: behind the request that was rendered last (read from
the cache at a tenth of the price), the same prompt without a cache, and a prompt of its own that holds the sources.

``model down``: 60 turns each without a model, with one that refuses connections, and with one that takes them and never
answers. Every build must succeed, and its p99 must stay that of the extractive builder.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import Budgets, Counter, EnvelopeBuilder, SummaryAhead, load_tokenizer, read_transcripts
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.tokens import DEFAULT_TOKENIZER
from ctxsteward.schemas import ChatReply, ChatRequest, InputError, SummarizerInput, Summary, Wire
from ctxsteward.summarizers.models import CallLimits, GovernedModel, ModelSummarizer, OpenAIModel

from .benchmark_row import BenchmarkRow, conversation, row

CACHED = 0.1
"""Price of a token that was read from the cache, relative to a plain one."""
TURNS, DEADLINE_SECONDS = 60, 5.0
RUNS = 3
MOST_SECONDS = 60


class PromptTokens(NamedTuple):
    """Of one summary, three ways to ask for it."""

    prefix: int
    instruction: int
    own: int

    @property
    def ride(self) -> float:
        """In plain tokens."""
        return CACHED * self.prefix + self.instruction


class _SilentModel:
    """Remembers what it is asked, and has nothing to say."""

    name = "silent"

    def __init__(self) -> None:
        self.asked: list[ChatRequest] = []

    def reply(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        return ChatReply(text='{"bullets": []}')

    async def reply_async(self, request: ChatRequest) -> ChatReply:
        return self.reply(request)


class _PromptCounter:
    """A summarizer that asks both ways, and counts."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.found: list[PromptTokens] = []

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Wire | None = None) -> Summary:
        riding, own = _SilentModel(), _SilentModel()
        summary = ModelSummarizer(riding)(source, budget_tokens=budget_tokens, prefix=prefix)
        ModelSummarizer(own)(source, budget_tokens=budget_tokens)
        if prefix is not None and riding.asked:
            tools = self._counter.text(json.dumps(prefix.get("tools", [])))
            self.found.append(PromptTokens(
                prefix=self._tokens(prefix.get("messages", ())) + tools,
                instruction=self._tokens(riding.asked[0].messages),
                own=sum(self._tokens(request.messages) for request in own.asked),
            ))  # fmt: skip
        return summary

    def _tokens(self, messages: Sequence[Wire]) -> int:
        return sum(self._counter.text(json.dumps(message, ensure_ascii=False)) for message in messages)


def run(data: Path | None) -> Iterator[BenchmarkRow]:
    """Costs of prompts; then 60 turns with and without a model."""
    demo = Path(__file__).parents[4] / "console" / "ctxsteward" / "console" / "data" / "demo.jsonl"
    sources = {"the shipped conversation": [demo]} if demo.is_file() else {}
    if data is not None and (data / "swe_agent").is_dir():
        sources["SWE-agent runs"] = sorted((data / "swe_agent").iterdir())[:8]
    for name, paths in sources.items():
        yield from _costs(name, paths)
    yield from _builds()


def _costs(name: str, paths: Sequence[Path]) -> Iterator[BenchmarkRow]:
    measured = _PromptCounter(Counter(load_tokenizer(DEFAULT_TOKENIZER)))
    for path in paths:
        _play(path, measured)
    found = [one for one in measured.found if one.own]
    if not found:
        return
    for what, ratios in (
        ("the same prompt without a cache", [one.ride / (one.prefix + one.instruction) for one in found]),
        ("a prompt with the sources", [one.ride / one.own for one in found]),
    ):
        middle = sorted(ratios)[len(ratios) // 2]
        spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
        text = f"{name}: {len(found)} summaries behind the prefix, cost against {what}; {spread}"
        yield row("models", text, round(middle, 3))


def _play(path: Path, measured: _PromptCounter) -> None:
    ahead = SummaryAhead(measured, provider="openai-chat", workers=1)
    builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=6_000), ahead=ahead)
    for transcript in read_transcripts(path):
        session = memory_store().session("run")
        for entry in transcript.entries():
            try:
                session.append(entry.wire)
                builder.build(session)
            except InputError:
                return
            ahead.wait(MOST_SECONDS)


def _builds() -> Iterator[BenchmarkRow]:
    import openai  # noqa: F401  # a process that serves has it

    plain = _p99(None)
    yield row("models", f"{TURNS} turns without a model: p99 of a build", plain * 1e3, "ms")
    for what, address in (("refuses connections", _refusing), ("never answers", _silent)):
        with address() as url:
            model = OpenAIModel("none", base_url=url, api_key="none")
            limits = CallLimits(tries=2, first_wait_seconds=0.1)
            summarizer = ModelSummarizer(GovernedModel(model, limits=limits), deadline_seconds=DEADLINE_SECONDS)
            seconds = _p99(summarizer)
            model.close()
        run = f"{TURNS} turns with a model that {what}"
        yield row("models", f"{run}: p99 of a build", seconds * 1e3, "ms")
        yield row("models", f"{run}: p99 against none", seconds / plain, "×", at_most=1.5)


def _p99(summarizer: ModelSummarizer | None) -> float:
    """Of all builds of some runs, in seconds; raises what a build raises."""
    found: list[float] = []
    for seed in range(RUNS):
        ahead = None if summarizer is None else SummaryAhead(summarizer, provider="openai-chat")
        builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=2_000), ahead=ahead)
        session = memory_store().session(f"run-{seed}")
        for at, message in enumerate(conversation(2 * TURNS, sentences=8, seed=seed)):
            session.append(message)
            if at % 2 == 0:
                started = time.perf_counter()
                builder.build(session)
                found.append(time.perf_counter() - started)
        if not session.state.compactions:
            raise AssertionError("nothing was compacted: the run says nothing")
    return sorted(found)[int(0.99 * len(found)) - 1]


@contextmanager
def _refusing() -> Iterator[str]:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@contextmanager
def _silent() -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
