"""Functions for worker processes, of the kinds that harvesters could be: good ones, and ones that misbehave.

Each does what the data of its item says, such as ``ok:TEXT``, ``loop``, ``memory:BYTES``, ``raise``, or ``spawn:PATH``
(a child process whose id is written there).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.pipeline import IngestSettings, Outcome, ingest

KEPT: list[bytearray] = []
"""What one item leaves behind in its worker."""


def act(item: LoadedItem) -> str:
    word, _, rest = item.data.decode().partition(":")
    if word == "pid":
        return str(os.getpid())
    if word == "loop":
        while True:
            pass
    if word == "regex":  # holds the interpreter while it lasts
        re.match(r"(a+)+b", "a" * 60)
    if word == "sleep":
        time.sleep(3600)
    if word == "memory":
        return str(len(bytearray(int(rest))))
    if word == "keep":
        KEPT.append(bytearray(int(rest)))
        return ""
    if word == "objects":
        return str(len([[] for _ in range(int(rest))]))
    if word == "die":
        os.abort()
    if word == "exit":
        os._exit(3)
    if word == "raise":
        raise ValueError(f"what somebody said: {rest}")
    if word == "unpicklable":
        return lambda: None  # type: ignore[return-value]
    if word == "big":
        return "x" * int(rest)
    if word == "spawn":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        with open(rest, "w") as stream:
            stream.write(str(child.pid))
        time.sleep(3600)
    return rest


def ingest_and_act(item: LoadedItem, settings: IngestSettings) -> tuple[Outcome, ...]:
    """Ingest, and a harvester that never comes back from one word."""
    outcomes = ingest(item, settings)
    if b"never-ending" in item.data:
        while True:
            pass
    if b"hungry" in item.data:
        return act(LoadedItem(source="", name="", data=b"memory:1000000000"))  # type: ignore[return-value]
    return outcomes
