"""Other libraries as subjects: each library's own code runs in a process and an environment of its own.

`peer_adapter` runs in that environment. It exchanges JSON lines, has a time limit, and is ended by the process that
started it. Its environment variables are a path, an empty home, and switches that keep libraries from looking for
models on the network; none of ours. A `LibrarySubject` starts a process per conversation, so that no state is kept
between them; an `AdapterProcess` is the same library for many conversations, one after the other.

Raises `LibraryFailed` with the failure of a library, `InputError` if its environment is missing.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ctxsteward.evals.subjects.port import Dialogue, Prompt, Task
from ctxsteward.schemas import ContextError, InputError, Message
from ctxsteward.schemas.message import Wire

PEERS_PYTHON = Path(".venv-peers/bin/python")


def canonical(wire: Wire) -> Wire:
    """Return a message with only the fields that all providers have."""
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


ADAPTER = Path(__file__).with_name("peer_adapter.py")
ANSWER_SECONDS = 120.0
CLOSE_SECONDS = 10.0
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "DO_NOT_TRACK": "1",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
    "HEADROOM_TELEMETRY": "off",
    "PYTHONUTF8": "1",
}


class LibraryFailed(ContextError):
    """A library gave no answer, or an error."""

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        super().__init__(f"{name}: {what}")


@dataclass(frozen=True, slots=True)
class LibrarySubject:
    """A library's strategy, with a process per conversation."""

    name: str
    python: Path = PEERS_PYTHON

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        if not self.python.is_file():
            raise InputError(
                f"subject {self.name}: {self.python} is not there; run `make adapters` first, in a checkout"
            )
        process = AdapterProcess(self.name, self.python)
        try:
            return LibraryDialogue(process, task, close=process.close)
        except ContextError:
            process.close()
            raise


class AdapterProcess:
    """A library's strategy in one process. Opening a conversation ends the one before."""

    def __init__(
        self, name: str, python: Path = PEERS_PYTHON, *, adapter: Path = ADAPTER, answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self.name = name
        self._answer_seconds = answer_seconds
        self._read = b""
        self._home = tempfile.TemporaryDirectory()
        environment = {"PATH": os.defpath, "HOME": self._home.name, **_QUIET}
        command = [str(python.absolute()), "-I", str(adapter), name]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=self._home.name,
            )
        except OSError as error:
            self._home.cleanup()
            raise LibraryFailed(name, f"{python} does not start: {error.strerror}") from None

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> LibraryDialogue:
        return LibraryDialogue(self, task)

    def close(self) -> None:
        """End the process; kill it if it does not end."""
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

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; raise `LibraryFailed`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise LibraryFailed(self.name, f"its process ended with {self._process.wait(CLOSE_SECONDS)}") from None
        line = self._line()
        try:
            answer = json.loads(line)
        except ValueError:
            raise LibraryFailed(self.name, f"its answer is no JSON: {line[:80]!r}") from None
        if not isinstance(answer, dict) or "error" in answer:
            raise LibraryFailed(self.name, str(answer["error"] if isinstance(answer, dict) else answer)[:200])
        return answer

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + self._answer_seconds
        parts = [self._read]
        while b"\n" not in parts[-1]:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._process.kill()
                raise LibraryFailed(self.name, f"no answer within {self._answer_seconds:g} s")
            part = os.read(self._process.stdout.fileno(), 1 << 20)
            if not part:
                raise LibraryFailed(self.name, f"its process ended with {self._process.wait(CLOSE_SECONDS)}")
            parts.append(part)
        line, _, self._read = b"".join(parts).partition(b"\n")
        return line


class LibraryDialogue:
    """One conversation with a library. It has `resolve` if the library keeps messages that it takes out."""

    def __init__(self, process: AdapterProcess, task: Task, close: Callable[[], None] = lambda: None) -> None:
        self._process, self.close = process, close
        self._new: list[Wire] = []
        self._ahead_seconds = 0.0
        opened = process.ask({"op": "open", "budget_tokens": task.budget_tokens})
        self.version = str(opened["version"])
        """Version of the library."""
        if "resolve" in opened["can"]:
            self.resolve = self._resolve

    def add(self, message: Wire) -> None:
        self._new.append(canonical(message))

    def prompt(self, question: str | None = None) -> Prompt:
        if question is None or self._new:
            said, self._new = self._new, []
            sent = self._ask("send", messages=said)
        if question is not None:
            sent = self._ask("preview", messages=[{"role": "user", "content": question}])
        return Prompt(messages=sent["messages"], references=sent["references"], cpu_seconds=float(sent["cpu_seconds"]))

    def set_time(self, now: str) -> None:
        told = datetime.fromisoformat(now)
        told = told if told.tzinfo else told.replace(tzinfo=UTC)
        self._ahead_seconds = (told - datetime.now(UTC)).total_seconds()

    def _resolve(self, reference: str) -> str:
        text = self._ask("resolve", reference=reference)["text"]
        if text is None:
            raise LookupError(f"{reference} leads nowhere")
        return str(text)

    def _ask(self, op: str, **request: Any) -> dict[str, Any]:
        return self._process.ask({"op": op, "ahead_seconds": self._ahead_seconds, **request})
