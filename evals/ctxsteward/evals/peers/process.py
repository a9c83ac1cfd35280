"""An adapter process: a peer in its own environment, spoken to over JSON lines, bounded in time, ended by its owner.

Its environment holds a path, a home that is empty, and switches that keep libraries from looking for models on the
network; nothing of ours. Raises `PeerFailed` with what went wrong.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ctxsteward.envelope.readers import TranscriptEntry
from ctxsteward.schemas import ContextError

from .sending import About, Sent

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

    def open(self, budget_tokens: int) -> About:
        answer = self._ask({"op": "open", "budget_tokens": budget_tokens})
        return About(str(answer["version"]), str(answer["note"]))

    def send(self, said: Sequence[TranscriptEntry]) -> Sent:
        return self._sent({"op": "send", "messages": [row.wire for row in said]})

    def preview(self, question: str) -> Sent:
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

    def _sent(self, request: dict[str, Any]) -> Sent:
        answer = self._ask(request)
        return Sent(answer["messages"], float(answer["cpu_seconds"]))

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
