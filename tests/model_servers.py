"""A real model server of the tests: llama.cpp with a very small model, on this machine alone.

`make llama` makes its environment. It proves the wire (protocol, grammar, time limits), not what a model can do.
"""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LLAMA = Path(__file__).resolve().parents[1] / ".venv-llama"
START_SECONDS = 120
LIFE_SECONDS = 1_800
"""It ends by itself, whatever becomes of the test."""


def is_installed() -> bool:
    return (LLAMA / ".installed").is_file()


@contextmanager
def llama_server(folder: Path) -> Iterator[str]:
    """Its address, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        "timeout",
        str(LIFE_SECONDS),
        str(LLAMA / "bin" / "llama-server-vulkan"),
        "-m",
        str(LLAMA / "model.gguf"),
    ]
    command += ["--host", "127.0.0.1", "--port", str(port), "-c", "4096", "-t", "2", "--parallel", "1", "--no-webui"]
    with open(folder / "llama.log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(f"http://127.0.0.1:{port}/health", server, folder / "llama.log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(20)


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the model server does not answer:\n{log.read_text(errors='replace')[-2000:]}")
