"""A profile and transcripts of our own: people correct the agent in short conversations, or say what they prefer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ctxsteward.envelope.store import open_store
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.steward.settings import NightSettings

SAID = (
    "No, the baggage allowance is 23 kg, not 20 kg.",
    "I always prefer aisle seats on flights.",
    "No, the cancellation fee is 50 EUR, not 30 EUR.",
    "Please always answer in German.",
)
"""The first and third are about the agent's work, so they may reach everybody, where `TERMS` says the same; the others
are personal."""
TERMS = {SAID[0]: {"item": "baggage allowance", "is": "23 kg"}, SAID[2]: {"item": "cancellation fee", "is": "50 EUR"}}
"""What the desk's own tool has answered before somebody says so."""
TOOL = "get_terms"


def conversation(number: int) -> list[dict[str, Any]]:
    """A conversation; every fourth one says the same."""
    text = SAID[number % len(SAID)]
    call = {"id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": "{}"}}
    looked_up: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(TERMS.get(text))},
    ]
    return [
        {"role": "user", "content": f"Hello, this is about order {number}."},
        {"role": "assistant", "content": "Of course, what can I do for you?"},
        *(looked_up if text in TERMS else ()),
        {"role": "user", "content": text},
        {"role": "assistant", "content": "Understood."},
    ]


def founded(settings: NightSettings) -> NightSettings:
    """These settings and the name of the desk's own tool, with a first version of their profile in their store."""
    with open_store(settings.store) as store:
        versions = store.profiles(settings.profile, tenant=settings.tenant)
        versions.commit(ProfileDocument(name=settings.profile), who="ada", why="first", when="2026-11-01")
    return settings.model_copy(update={"confirming_tools": {TOOL: ("is",)}})


def write(folder: Path, count: int, start: int = 0, *, seconds: float = 1_794_000_000) -> None:
    """So many files, of as many principals, changed a second apart; in November 2026 unless told."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(start, start + count):
        document = {"messages": conversation(number), "ctxsteward": {"principal": f"user-{number}"}}
        path = folder / f"{number:05}.json"
        path.write_text(json.dumps(document))
        os.utime(path, (seconds + number, seconds + number))
