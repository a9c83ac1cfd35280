"""Made-up conversations for benchmarks. The same seed or number gives the same messages.

`conversation` makes one long talk for timing builds: sentences with numbers and names, and no two equal messages.

`write` makes files of a help desk's transcripts for timing the steward's nights, one conversation each (`messages`). A
conversation has 10 to 30 messages: questions, answers, tool calls (some fail and are repeated with a correction), and
sometimes a correction, a wish or a fact of the user.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from ctxsteward.schemas.message import Wire

_SUBJECTS = (
    "The checkout service",
    "Our staging cluster",
    "The nightly import",
    "The invoice queue",
    "That customer's order",
)
_VERBS = ("returned", "logged", "retried", "dropped", "reported", "handled", "queued", "rejected")
_OBJECTS = (
    "a timeout",
    "the wrong total",
    "duplicate rows",
    "a stale price",
    "an empty page",
    "two warnings",
    "a 502",
)
_ENDS = (
    "after the deploy",
    "before lunch",
    "since the migration",
    "on the second node",
    "while I watched",
    "again",
)


def conversation(messages: int, *, sentences: int = 3, seed: int = 7) -> list[Wire]:
    """Make `messages` wire dicts, alternately of user and assistant, about 15 tokens per sentence."""
    rng = random.Random(seed)
    return [_message(index, sentences, rng) for index in range(messages)]


def _message(index: int, sentences: int, rng: random.Random) -> Wire:
    said = [
        f"{rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)} {rng.randrange(2, 900)} times "
        f"{rng.choice(_ENDS)} (run {index}-{rng.randrange(10**4)})."
        for _ in range(sentences)
    ]
    return {"role": "user" if index % 2 == 0 else "assistant", "content": " ".join(said)}


_THINGS = "order invoice refund parcel carrier address window seat ticket booking voucher curtain ladder contract meter"
_PLACES = "bicycle kettle printer router battery cable garden school hospital station harbour market bridge tower river"
WORDS = tuple(f"{_THINGS} {_PLACES}".split())
NAMES = ("Ada", "Ben", "Carla", "Dmitri", "Emeka", "Farah", "Goran", "Hana", "Ivo", "Jun")
CITIES = ("Bonn", "Graz", "Lyon", "Oslo", "Porto", "Turin", "Ghent", "Malmo", "Riga", "Cork")


def write(folder: Path, count: int, start: int = 0, *, first_seconds: float = 1_760_000_000.0) -> None:
    """Write `count` files below `folder`, from number `start` on, with times one minute apart."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(start, start + count):
        path = folder / f"{number:06}.json"
        document = {"messages": list(messages(number)), "ctxsteward": {"principal": f"user-{number // 2}"}}
        path.write_text(json.dumps(document), encoding="utf-8")
        os.utime(path, (first_seconds + 60 * number,) * 2)


def messages(number: int) -> Iterator[dict[str, Any]]:
    """Yield one conversation, always the same for a number."""
    draw = Random(number)
    yield {"role": "user", "content": f"Hello, I have a question about my {draw.choice(WORDS)}."}
    yield {"role": "assistant", "content": "Of course. " + _prose(draw, 30)}
    for turn in range(draw.randint(3, 7)):
        yield {"role": "user", "content": _said(draw)}
        if turn % 2:
            yield from _tool(draw, f"c{turn}", fails=draw.random() < 0.4)
        yield {"role": "assistant", "content": _prose(draw, 60)}


def _said(draw: Random) -> str:
    word, other = draw.sample(WORDS, 2)
    kind = draw.randrange(6)
    if kind == 0:
        return f"No, the {word} fee is {draw.randint(5, 95)} EUR, not {draw.randint(100, 200)} EUR."
    if kind == 1:
        return f"Please always mention the {word} before the {other}. " + _prose(draw, 15)
    if kind == 2:
        return f"My {draw.choice(('sister', 'brother', 'boss'))} {draw.choice(NAMES)} moved to {draw.choice(CITIES)}."
    return _prose(draw, 35)


VERBS = ("find", "change", "cancel", "send", "check", "print")
ERRORS = (
    "Error: invalid {}, expected digits only",
    "Error: unknown {}",
    "404 not found: {}",
    "Error: {} is required",
    "Permission denied for {}",
)


def _tool(draw: Random, id: str, *, fails: bool) -> Iterator[dict[str, Any]]:
    noun = draw.choice(WORDS)
    name, field, number = f"{draw.choice(VERBS)}_{noun}", f"{noun}_id", str(draw.randint(1_000, 9_999))
    if fails:
        yield _call(f"{id}a", name, {field: f"#{number}"})
        yield {"role": "tool", "tool_call_id": f"{id}a", "content": draw.choice(ERRORS).format(field)}
    yield _call(f"{id}b", name, {field: number})
    rows = [{"id": number, "state": draw.choice(WORDS), "note": _prose(draw, 8)} for _ in range(draw.randint(2, 12))]
    yield {"role": "tool", "tool_call_id": f"{id}b", "content": json.dumps(rows)}


def _call(id: str, name: str, arguments: dict[str, str]) -> dict[str, Any]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _prose(draw: Random, count: int) -> str:
    words = draw.choices(WORDS, k=count)
    return " ".join(words).capitalize() + "."
