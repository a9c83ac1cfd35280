"""Senders: each takes a history, message by message, and says what it would send to a model now.

A `Sender` is given the budget for all messages but the system's, and messages as OpenAI chat takes them; system
messages and tool schemas are the judge's, the same for all. `OurEnvelope` is our builder, `WholeHistory` the baseline
that sends everything. `AdapterProcess` is a peer: `adapter` in the peers' environment, spoken to over JSON lines,
bounded in time, ended by whoever started it. Its environment variables are a path, an empty home, and switches that
keep libraries from looking for models on the network; nothing of ours. It raises `PeerFailed` with what went wrong.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, NewMessage, Session
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.transcripts import TranscriptEntry
from ctxsteward.schemas import ContextError, Message, Wire

from ..agent_runs import reachable_ordinals


class SentPrompt(NamedTuple):
    """What one model call is sent."""

    messages: Sequence[Wire]
    cpu_seconds: float
    reachable: frozenset[int] = frozenset()
    """1-based places of messages that a reference leads to."""


class SenderDescription(NamedTuple):
    """Which sender, as measured."""

    version: str
    note: str


class Sender(Protocol):
    """One way of sending a history."""

    def open(self, budget_tokens: int) -> SenderDescription:
        """Begin a new conversation."""

    def send(self, said: Sequence[TranscriptEntry]) -> SentPrompt:
        """Take in what was said since, and say what would be sent now."""

    def preview(self, question: str) -> SentPrompt:
        """The same for a user message, without keeping it."""

    def expand(self, after_seconds: float) -> Sequence[str]:
        """Texts that references in what was last sent lead to, so much later."""

    def close(self) -> None:
        """End what was started."""


def canonical(wire: Wire) -> Wire:
    """A message with what all providers have and nothing else."""
    content = wire.get("content")
    text = content if isinstance(content, str) or content is None else Message.from_wire(wire).text
    made: Wire = {"role": wire["role"], "content": text}
    if wire.get("tool_calls"):
        made["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {k: call["function"][k] for k in ("name", "arguments")}}
            for call in wire["tool_calls"]
        ]
    if "tool_call_id" in wire:
        made["tool_call_id"] = wire["tool_call_id"]
    return made


class WholeHistory:
    """Sends all messages."""

    def __init__(self) -> None:
        self._messages: list[Wire] = []

    def open(self, budget_tokens: int) -> SenderDescription:
        self._messages = []
        return SenderDescription("", "all messages")

    def send(self, said: Sequence[TranscriptEntry]) -> SentPrompt:
        started = time.process_time()
        self._messages += [row.wire for row in said]
        return SentPrompt(list(self._messages), time.process_time() - started)

    def preview(self, question: str) -> SentPrompt:
        return SentPrompt([*self._messages, {"role": "user", "content": question}], 0.0)

    def expand(self, after_seconds: float) -> Sequence[str]:
        return ()

    def close(self) -> None:
        self._messages = []


class OurEnvelope:
    """Our builder, its store in memory. CPU is that of append, build and render."""

    def __init__(self, note: str, budgets: Mapping[str, Any] | None = None, *, model: str = "gpt-4o") -> None:
        self._note, self._budgets, self._model = note, dict(budgets or {}), model
        self._builder = EnvelopeBuilder(model=model)
        self._session: Session | None = None
        self._envelope: Envelope | None = None
        self._count = 0

    def open(self, budget_tokens: int) -> SenderDescription:
        self.close()
        budgets = Budgets(**{"dynamic_tokens": budget_tokens, **self._budgets})
        self._builder = EnvelopeBuilder(model=self._model, budgets=budgets)
        self._session, self._count = memory_store().session("peers"), 0
        return SenderDescription("", self._note)

    def send(self, said: Sequence[TranscriptEntry]) -> SentPrompt:
        session = self._opened()
        new = [NewMessage(message=row.wire, ts=row.ts, id=f"#{n}") for n, row in enumerate(said, self._count + 1)]
        self._count += len(new)
        started = time.process_time()
        session.extend(new)
        self._envelope = self._builder.build(session)
        messages = self._envelope.render("openai-chat", cache=False)["messages"]
        seconds = time.process_time() - started
        return SentPrompt(messages, seconds, reachable_ordinals(self._envelope))

    def preview(self, question: str) -> SentPrompt:
        started = time.process_time()
        envelope = self._builder.preview(self._opened(), question)
        messages = envelope.render("openai-chat", cache=False)["messages"]
        return SentPrompt(messages, time.process_time() - started)

    def expand(self, after_seconds: float) -> Sequence[str]:
        assert self._envelope is not None
        session = self._opened()
        return [session.resolve(f"§{n}").text for n in sorted(reachable_ordinals(self._envelope))]

    def close(self) -> None:
        self._session = self._envelope = None

    def _opened(self) -> Session:
        assert self._session is not None, "open first"
        return self._session


ADAPTER = Path(__file__).with_name("adapter.py")
ANSWER_SECONDS = 120.0
CLOSE_SECONDS = 10.0
_QUIET = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "DO_NOT_TRACK": "1",
    "LANGSMITH_TRACING": "false", "OTEL_SDK_DISABLED": "true", "HEADROOM_TELEMETRY": "off", "PYTHONUTF8": "1",
}  # fmt: skip


class PeerFailed(ContextError):
    """A peer gave no answer, or said that it cannot."""

    def __init__(self, peer: str, what: str) -> None:
        self.peer = peer
        super().__init__(f"{peer}: {what}")


class AdapterProcess:
    """A `Sender` in another process."""

    def __init__(
        self, python: Path, peer: str, *, adapter: Path = ADAPTER, answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self.peer = peer
        self._answer_seconds = answer_seconds
        self._read = b""
        self._home = tempfile.TemporaryDirectory()
        environment = {"PATH": os.defpath, "HOME": self._home.name, **_QUIET}
        command = [str(python.absolute()), "-I", str(adapter), peer]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=environment, cwd=self._home.name,
            )  # fmt: skip
        except OSError as error:
            self._home.cleanup()
            raise PeerFailed(peer, f"{python} does not start: {error.strerror}") from None

    def open(self, budget_tokens: int) -> SenderDescription:
        answer = self._ask({"op": "open", "budget_tokens": budget_tokens})
        return SenderDescription(str(answer["version"]), str(answer["note"]))

    def send(self, said: Sequence[TranscriptEntry]) -> SentPrompt:
        return self._sent({"op": "send", "messages": [row.wire for row in said]})

    def preview(self, question: str) -> SentPrompt:
        return self._sent({"op": "preview", "messages": [{"role": "user", "content": question}]})

    def expand(self, after_seconds: float) -> Sequence[str]:
        return [str(text) for text in self._ask({"op": "expand", "after_seconds": after_seconds})["texts"]]

    def close(self) -> None:
        """End the process; kill it where it does not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._home.cleanup()

    def _sent(self, request: dict[str, Any]) -> SentPrompt:
        answer = self._ask(request)
        return SentPrompt(answer["messages"], float(answer["cpu_seconds"]))

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(self.peer, f"its process ended with {self._process.wait(CLOSE_SECONDS)}") from None
        line = self._line()
        try:
            answer = json.loads(line)
        except ValueError:
            raise PeerFailed(self.peer, f"its answer is no JSON: {line[:80]!r}") from None
        if not isinstance(answer, dict) or "error" in answer:
            raise PeerFailed(self.peer, str(answer["error"] if isinstance(answer, dict) else answer)[:200])
        return answer

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + self._answer_seconds
        parts = [self._read]
        while b"\n" not in parts[-1]:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._process.kill()
                raise PeerFailed(self.peer, f"no answer within {self._answer_seconds:g} s")
            part = os.read(self._process.stdout.fileno(), 1 << 20)
            if not part:
                raise PeerFailed(self.peer, f"its process ended with {self._process.wait(CLOSE_SECONDS)}")
            parts.append(part)
        line, _, self._read = b"".join(parts).partition(b"\n")
        return line
