"""Chats with planted values for the comparison with other libraries: generated ones, and ones written by hand.

A scenario is a conversation of OpenAI chat dicts (small talk, questions, tool calls and results) with about 32 canaries
planted in natural sentences at all positions, or one of `stories`. A canary's `value` must be in the window after
compaction; a `stale` value must not be shown without the newer one. The same seed gives the same scenario.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

from pydantic import TypeAdapter
from ruamel.yaml import YAML

from ctxsteward.evals.canaries import CanaryKind, Half, TypedCanary, filled, normalize, planted_values, shows
from ctxsteward.evals.phrasings import Language, Phrasings, Texts, canary_phrasings
from ctxsteward.schemas.message import Wire


class StoryText(Phrasings):
    """A conversation written by hand, and the values planted in it."""

    name: str
    language: Language
    chatter: int
    """Exchanges of small talk after each reply."""
    lines: tuple[tuple[Literal["user", "assistant"], str], ...]
    values: tuple[tuple[str, str, Texts], ...]
    """Kind, newest form, older forms of each value."""


@cache
def story_texts() -> tuple[StoryText, ...]:
    """Read the conversations written by hand."""
    text = Path(__file__).with_name("stories.yaml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[StoryText, ...]).validate_python(YAML(typ="safe").load(text)["stories"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryScenario:
    """A conversation and the values planted in it."""

    name: str
    messages: tuple[Wire, ...]
    canaries: tuple[TypedCanary, ...]


def found_in(scenario: CanaryScenario, window_text: str) -> list[TypedCanary]:
    """Return the canaries that a window shows."""
    window = normalize(window_text)
    return [canary for canary in scenario.canaries if shows(window, canary.value)]


def stale_in(scenario: CanaryScenario, window_text: str) -> list[TypedCanary]:
    """Return the canaries whose old value a window shows without the new one."""
    window = normalize(window_text)
    return [
        canary
        for canary in scenario.canaries
        if any(shows(window, old) for old in canary.stale) and not shows(window, canary.value)
    ]


def scenario(
    seed: int, language: Language, turns: int = 120, split: Half = "dev", canaries: int = 32
) -> CanaryScenario:
    """Build a conversation of `turns` turns with about `canaries` planted values."""
    rng = random.Random(f"canaries {seed} {language} {split}")
    texts = canary_phrasings(language)
    phrasings = texts.dev if split == "dev" else texts.held_out
    planted = list(planted_values(rng, phrasings, texts.slots, turns, canaries))
    at: dict[int, list[tuple[int, str]]] = {}
    for index, (_, sentences, _) in enumerate(planted):
        for turn, sentence in sentences:
            at.setdefault(turn, []).append((index, sentence))
    messages: list[Wire] = []
    ordinals: dict[int, list[int]] = {}
    for turn in range(turns):
        news = at.get(turn, [])
        lead = rng.choice(texts.leads) if news else ""
        tail = rng.choice(texts.tails) if news else ""
        text = lead + (" ".join if language == "en" else "".join)(s for _, s in news) + tail
        messages.append({"role": "user", "content": text or filled(rng.choice(texts.user_filler), rng, texts.slots)})
        for index, _ in news:
            ordinals.setdefault(index, []).append(len(messages))
        if rng.random() < 0.25:
            messages.extend(tool_traffic(rng, turn))
        reply = rng.choice(texts.replies) if news and rng.random() < 0.7 else rng.choice(texts.assistant_filler)
        messages.append({"role": "assistant", "content": filled(reply, rng, texts.slots)})
    canaries_planted = tuple(
        TypedCanary(kind=kind, value=values[-1], stale=tuple(values[:-1]), ordinals=tuple(ordinals[index]))
        for index, (kind, _, values) in enumerate(planted)
    )
    return CanaryScenario(name=f"{language}-{split}-{seed}", messages=tuple(messages), canaries=canaries_planted)


def tool_traffic(rng: random.Random, turn: int) -> list[Wire]:
    """Make a tool call and its result: a search, a lookup or a log."""
    call_id = f"call_{turn}_{rng.randrange(16**6):06x}"
    name, arguments, result = rng.choice((_search, _lookup, _log))(rng)
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def _search(rng: random.Random) -> tuple[str, dict[str, object], str]:
    snippet = "a passage about the topic at hand"
    rows = [
        {"title": f"Page {rng.randint(1, 999)}", "score": round(rng.random(), 3), "snippet": snippet}
        for _ in range(rng.randint(3, 8))
    ]
    return "search_pages", {"query": "background reading", "limit": len(rows)}, json.dumps(rows)


def _lookup(rng: random.Random) -> tuple[str, dict[str, object], str]:
    key = rng.randint(10**6, 10**7)
    status, items = rng.choice(("open", "closed", "pending")), rng.randint(1, 9)
    record = {"record_id": f"R{key}", "status": status, "items": items, "updated": "2024-05-03"}
    return "get_record", {"record": key}, json.dumps(record)


def _log(rng: random.Random) -> tuple[str, dict[str, object], str]:
    lines = [
        f"12:{rng.randint(10, 59)}:00 INFO worker {rng.randint(1, 8)} done in {rng.randint(5, 900)} ms"
        for _ in range(rng.randint(4, 14))
    ]
    if rng.random() < 0.3:
        lines.insert(len(lines) // 2, f"12:31:07 ERROR worker {rng.randint(1, 8)} lost its connection")
    return "tail_log", {"lines": len(lines)}, "\n".join(lines)


# -- conversations written by hand -----------------------------------------------------------------------------


def stories() -> tuple[CanaryScenario, ...]:
    """Return the conversations written by hand, with the generator's small talk after each turn."""
    return tuple(map(_story, story_texts()))


def _story(story: StoryText) -> CanaryScenario:
    texts = canary_phrasings(story.language)
    rng = random.Random(story.name)
    messages: list[Wire] = []
    places: dict[str, list[int]] = {value: [] for _, value, _ in story.values}
    for role, text in story.lines:
        messages.append({"role": role, "content": text})
        for value in places:
            if role == "user" and value in text:
                places[value].append(len(messages))
        if role == "assistant":
            for _ in range(story.chatter):
                messages.append({"role": "user", "content": filled(rng.choice(texts.user_filler), rng, texts.slots)})
                reply = filled(rng.choice(texts.assistant_filler), rng, texts.slots)
                messages.append({"role": "assistant", "content": reply})
    canaries = tuple(
        TypedCanary(kind=cast(CanaryKind, kind), value=value, stale=stale, ordinals=tuple(places[value]))
        for kind, value, stale in story.values
    )
    return CanaryScenario(name=story.name, messages=tuple(messages), canaries=canaries)
