"""A help desk of our own, for whole nights with the real stages: transcripts, settings, nights in this process."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.steward.gate.suite import shipped
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.worker_pool import InProcess, Isolation, ItemLimits, WorkerPool
from ctxsteward.steward.night.batch_harvest import HarvestResult, HarvestWorker
from ctxsteward.steward.night.environment import ProcessEnvironment, of_this_process
from ctxsteward.steward.night.report import NightReport
from ctxsteward.steward.night.run import Tell, run_night
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.setup import Isolate, open_night
from ctxsteward.store.crypto.keyring import file_keys

from ...examples import SOAK

SHARED = (
    "No, the baggage allowance is 23 kg, not 20 kg.",
    "No, the cancellation fee is 50 EUR, not 30 EUR.",
    "No, the airport fee is 12 EUR, not 15 EUR.",
)
"""About the agent's work: they may reach everybody once three people have said them, and a tool says the same."""
TERMS = {
    "baggage allowance": "23 kg",
    "cancellation fee": "50 EUR",
    "airport fee": "12 EUR",
    "parking fee": "8 EUR",
    "locker fee": "3 EUR",
}
"""What the desk's own tool knows; it answers where somebody has spoken of it."""
TOOL = "get_terms"
PERSONAL = ("I always prefer aisle seats on flights.", "Please always answer in German.")
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()
DAY_SECONDS = 86_400.0


def settings_of(root: Path, **more: Any) -> NightSettings:
    """Of a store in this folder that reads `root / "in"`; stores of one root have the same keys."""
    fields = {"store": f"file:{root / 'store'}", "sources": (str(root / "in"),), "profile": "support"}
    fields |= {"internal_tools": (TOOL,), "confirming_tools": {TOOL: ("is",)}}
    told = NightSettings(**fields | {"tenant": "acme", "night": "2026-11-22", "workers": 1} | more)
    return told


def keys_in(store: Path, seed: Path) -> None:
    """Give a store the keys of another one, so that the same is found under the same addresses."""
    file_keys(seed).address_key("acme")
    store.mkdir(parents=True)
    (store / "keys").symlink_to(seed)


def looked_up(text: str) -> list[dict[str, Any]]:
    """The call of the desk's tool about what somebody said, and its answer; nothing where it knows nothing of it."""
    item = next((item for item in TERMS if item in text), None)
    return [] if item is None else answered({"item": item, "is": TERMS[item]})


def answered(value: dict[str, Any]) -> list[dict[str, Any]]:
    """A call of the desk's tool and its answer."""
    call = {"id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(value)},
    ]


def say(folder: Path, name: str, text: str, *, principal: str, seconds: float = NOON, **meta: Any) -> Path:
    """A transcript in which somebody says this; what the desk's tool knows of it was looked up before."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hello, I have a question."},
        {"role": "assistant", "content": "Of course, what can I do for you?"},
        *looked_up(text),
        {"role": "user", "content": text},
        {"role": "assistant", "content": "Understood."},
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"messages": messages, "ctxsteward": {"principal": principal, **meta}}))
    os.utime(path, (seconds, seconds))
    return path


def fill(folder: Path, count: int, start: int = 0, *, seconds: float = NOON) -> None:
    """So many transcripts of as many people, each of whom says one of five things."""
    said = SHARED + PERSONAL
    for number in range(start, start + count):
        say(folder, f"{number:05}", said[number % len(said)], principal=f"user-{number}", seconds=seconds + number)


def here(now_seconds: float | None = None) -> ProcessEnvironment:
    """This process, at a moment."""
    process = of_this_process()
    return process if now_seconds is None else replace(process, clock=lambda: now_seconds)


def in_process(reaper: HarvestWorker, settings: NightSettings) -> Isolation[HarvestResult]:
    """Without worker processes."""
    return InProcess(reaper)


def night(
    settings: NightSettings,
    *,
    now_seconds: float | None = None,
    isolate: Isolate = in_process,
    tell: Tell = lambda boundary: None,
) -> NightReport:
    """What the night reports; its gate replays one of the four shipped cases, with CTXSTEWARD_SOAK=1 all of them."""
    with (
        pytest.MonkeyPatch.context() as patch,
        open_night(settings, here(now_seconds), isolate=isolate, tell=tell) as opening,
    ):
        if not SOAK:
            suite = shipped()
            patch.setattr(
                "ctxsteward.steward.gate.settings.shipped", lambda: suite.model_copy(update={"cases": suite.cases[:1]})
            )
        return run_night(opening)


@dataclass(frozen=True, slots=True)
class Trapped:
    """A reaper that falls into an endless loop over a transcript that says so, or eats all memory."""

    reaper: HarvestWorker

    def __call__(self, loaded: LoadedItem) -> HarvestResult:
        if b"for ever and ever" in loaded.data:
            while True:
                time.sleep(0.01)
        if b"more and more" in loaded.data:
            eaten = [b"x" * (1 << 20)]
            while True:
                eaten.append(eaten[0] * 16)
        return self.reaper(loaded)


def trapped(reaper: HarvestWorker, settings: NightSettings) -> Isolation[HarvestResult]:
    """Worker processes with little time and memory."""
    return WorkerPool(Trapped(reaper), 1, ItemLimits(wall_seconds=1.5, cpu_seconds=5, memory_bytes=256 << 20))


def poison(folder: Path) -> dict[str, str]:
    """Ten bad transcripts by name, with the reason each is refused for."""
    deep = "[" * 20_000 + "]" * 20_000
    wide = json.dumps([{"role": "user", "content": "x" * (9 << 20)}] * 8)
    bad: dict[str, tuple[bytes, str]] = {
        "bomb-deep": (deep.encode(), "invalid"),
        "bomb-wide": (wide.encode(), "too_large"),
        "utf8-latin": (b'[{"role": "user", "content": "caf\xe9"}]', "invalid"),
        "utf8-surrogate": (b'[{"role": "user", "content": "\\ud800"}]', "invalid"),
        "schema-role": (b'[{"role": "wizard", "content": "hello"}]', "invalid"),
        "schema-keys": (b'[{"role": "user", "content": "a", "content": "b"}]', "invalid"),
        "schema-meta": (b'{"messages": [{"role": "user", "content": "a"}], "ctxsteward": {"x": 1}}', "bad_metadata"),
        "loop-a": (b'[{"role": "user", "content": "for ever and ever"}]', "time_limit"),
        "loop-b": (b'[{"role": "user", "content": "for ever and ever, again"}]', "time_limit"),
        "glutton": (b'[{"role": "user", "content": "more and more"}]', "memory_limit"),
    }
    for name, (data, _) in bad.items():
        path = folder / f"{name}.json"
        path.write_bytes(data)
        os.utime(path, (NOON, NOON))
    return {f"{name}.json": reason for name, (_, reason) in bad.items()}
