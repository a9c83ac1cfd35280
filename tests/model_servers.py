"""A real model server: llama.cpp with a very small model. It tests protocol, grammar and time limits, not quality."""

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

# llama.cpp's own server inside a Python process: this wheel is built for any x86-64 or ARM machine of recent years.
# Wheels with the server's binary use instructions of the machine that built them, and die on others.
SERVER = """
import sys, threading, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.port = sys.argv[1], int(sys.argv[2])
parameters.hostnames, parameters.ui = ["127.0.0.1"], False
parameters.n_ctx, parameters.n_parallel, parameters.cpuparams.n_threads = 4096, 1, 2
server = xllamacpp.Server(parameters)
threading.Event().wait()
"""


def is_installed() -> bool:
    return (LLAMA / ".installed").is_file()


@contextmanager
def llama_server(folder: Path) -> Iterator[str]:
    """Its address, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    python = str(LLAMA / "bin/python")
    command = ["timeout", "-k", "20", str(LIFE_SECONDS), python, "-c", SERVER, str(LLAMA / "model.gguf"), str(port)]
    with open(folder / "llama.log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(f"http://127.0.0.1:{port}/health", server, folder / "llama.log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait(30)


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
