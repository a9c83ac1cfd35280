"""Subjects in processes of their own: libraries, and strategies behind an address, in any language.

**Libraries.** Each library's own code runs in a process and an environment of its own. `peer_adapter` runs in that
environment, spoken to over JSON lines, bounded in time, ended by whoever started it. Its environment variables are a
path, an empty home, and switches that keep libraries from looking for models on the network; nothing of ours. A
`LibrarySubject` starts a process a conversation, so that nothing is kept from one to the next; an `AdapterProcess` is
the same library for many conversations, one after the other.

**An address.** Every question is one POST of JSON:

    {"op": "prompt", "id": …, "budget_tokens": …, "system": …, "tools": […], "messages": […], "question": …}
        -> {"messages": […]}, and as much of `Prompt` as it can tell: references, summary, lost, compacted
    {"op": "resolve", "id": …, "reference": …}  -> {"text": …}, or {"text": null} where it leads nowhere
    {"op": "search", "id": …, "query": …}       -> {"texts": […]}

`messages` is all that was said; a question that is asked in passing is the last of them, and named. The last two are
only asked of a server whose answers say ``"can": ["resolve", "search"]``. An address that sends on to another one is
refused: what is judged is what was named.

Raises `LibraryFailed` with what went wrong in a library, `InputError` where its environment is not there or with what
the server did instead of answering.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ctxsteward.schemas import ContextError, InputError, Message, Wire

from .port import Dialogue, Prompt, Task

PEERS_PYTHON = Path(".venv-peers/bin/python")


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
    """A library gave no answer, or said that it cannot."""

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        super().__init__(f"{name}: {what}")


@dataclass(frozen=True, slots=True)
class LibrarySubject:
    """A library's strategy, a process a conversation."""

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
    """A library's strategy in one process: a conversation ends where the next is opened."""

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

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; raises `LibraryFailed`."""
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
    """One conversation with a library; it has `resolve` where the library keeps what it takes out."""

    def __init__(self, process: AdapterProcess, task: Task, close: Callable[[], None] = lambda: None) -> None:
        self._process, self.close = process, close
        self._new: list[Wire] = []
        self._ahead_seconds = 0.0
        opened = process.ask({"op": "open", "budget_tokens": task.budget_tokens})
        self.version = str(opened["version"])
        """Of the library."""
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


MAX_ANSWER_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow nowhere: the answer is then an error with its status."""


_open = build_opener(_NoRedirects).open


@dataclass(frozen=True, slots=True)
class HttpSubject:
    """A server that answers at this address."""

    name: str
    answer_seconds: float = ANSWER_SECONDS

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        return HttpDialogue(self.name, task, self.answer_seconds)


class HttpDialogue:
    """One conversation with a server; it has `resolve` and `search` once the server says that it can."""

    def __init__(self, address: str, task: Task, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._address, self._task, self._answer_seconds = address, task, answer_seconds
        self._said: list[Wire] = []

    def add(self, message: Wire) -> None:
        self._said.append(message)

    def prompt(self, question: str | None = None) -> Prompt:
        asked: list[Wire] = [] if question is None else [{"role": "user", "content": question}]
        answer = self._ask(
            {
                "op": "prompt",
                "budget_tokens": self._task.budget_tokens,
                "system": self._task.system,
                "tools": list(self._task.tools),
                "messages": [*self._said, *asked],
                "question": question,
            }
        )
        if "messages" not in answer:
            raise InputError(f"{self._address}: its answer has no `messages`: {answer!r:.60}")
        can = answer.get("can", [])
        if not isinstance(can, list):
            raise InputError(f"{self._address}: `can` is {can!r:.60}; answer a list of resolve, search")
        if "resolve" in can:
            self.resolve = self._resolve
        if "search" in can:
            self.search = self._search
        return Prompt(
            messages=answer["messages"],
            references=answer.get("references") or {},
            summary=answer.get("summary"),
            lost=answer.get("lost"),
            compacted=answer.get("compacted"),
        )

    def _resolve(self, reference: str) -> str:
        text = self._ask({"op": "resolve", "reference": reference}).get("text")
        if text is None:
            raise LookupError(f"{reference} leads nowhere")
        return text  # type: ignore[no-any-return]  # whatever it is: `answers` looks at it

    def _search(self, query: str) -> Sequence[str]:
        return self._ask({"op": "search", "query": query}).get("texts")  # type: ignore[return-value]  # the same

    def _ask(self, question: dict[str, Any]) -> Mapping[str, Any]:
        body = {**question, "id": self._task.id}
        raw = post_json(self._address, body, {}, answer_seconds=self._answer_seconds)
        try:
            answer = json.loads(raw)
        except ValueError as error:
            raise InputError(f"{self._address}: its answer is no JSON: {raw[:60]!r}") from error
        if not isinstance(answer, dict):
            raise InputError(f"{self._address}: its answer is {answer!r:.60}; answer an object with `messages`")
        return answer


def post_json(address: str, body: object, headers: Mapping[str, str], *, answer_seconds: float) -> bytes:
    """What an address answers to a POST of JSON; raises `InputError` with what it did instead."""
    deadline = time.monotonic() + answer_seconds
    try:
        request = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
        with _open(request, timeout=answer_seconds) as response:
            raw = bytearray()
            while len(raw) <= MAX_ANSWER_BYTES and (piece := response.read1(_PIECE_BYTES)):
                raw += piece
                if time.monotonic() > deadline:
                    raise TimeoutError
    except HTTPError as error:
        error.close()
        raise InputError(f"{address}: answered {error.code} {error.reason}; see the server's log") from error
    except TimeoutError as error:
        raise InputError(f"{address}: no answer within {answer_seconds:g} s") from error
    except (OSError, HTTPException, ValueError) as error:
        # a ValueError's text may quote a header, and with it a key
        what = type(error).__name__ if isinstance(error, ValueError) else getattr(error, "reason", error)
        if isinstance(what, TimeoutError):
            raise InputError(f"{address}: no answer within {answer_seconds:g} s") from error
        raise InputError(f"{address}: no answer ({what}); start it first") from error
    if len(raw) > MAX_ANSWER_BYTES:
        raise InputError(f"{address}: an answer of more than {MAX_ANSWER_BYTES >> 20} MB")
    return bytes(raw)
