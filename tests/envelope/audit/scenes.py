"""Scenes to audit: sessions with everything an envelope can hold, built call by call, and what a mix-up would send.

Each scene is seeded: a profile in two versions, tools, an application's system text, a conversation with tool groups
(generated, or a tau-bench run where the real data is), notes, recalled messages, compactions. `scenes()` builds them
once a process.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile
from ctxsteward.envelope.testing import FirstLine, WordOverlap, memory_store
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.store.crypto.keyring import memory_keys

from ...tables import table

Wire = dict[str, Any]

TAU_BENCH = Path(__file__).parents[3] / "../shared/data/tau_bench_airline/runs_even_tasks.jsonl"
KEYS = memory_keys(lambda size: (b"k" * 64)[:size])
"""Those of `memory_store`."""

WORDS = table(__file__, "scenes.yaml")

TOOLS: list[Wire] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {field: {"type": "string", "description": f"Which {field}."}},
            },
        },
    }
    for name, description, field in WORDS["tools"]
]


@dataclass(frozen=True, slots=True)
class Scene:
    """One audited call, and whatever could be sent in its place."""

    id: int
    expected: Envelope
    built: tuple[Envelope, ...]
    """Of every call of the session, oldest first, `expected` last; the first half under the version before."""
    stale: Envelope
    """The same messages under the version before."""
    neighbour: Envelope
    """Another session of the tenant."""
    foreigner: Envelope
    """A session of another tenant."""
    history: tuple[Wire, ...]
    """Every message of the session, as it was appended."""

    @property
    def earlier(self) -> tuple[Envelope, ...]:
        """Envelopes of the session under the same profile version."""
        return tuple(one for one in self.built[:-1] if one.profile_version == self.expected.profile_version)

    @property
    def others(self) -> tuple[Envelope, ...]:
        """What a store knows besides the expected envelope."""
        return (*self.built[:-1], self.stale, self.neighbour, self.foreigner)


def conversation(seed: int, turns: int) -> list[Wire]:
    """A session's messages: questions, tool groups (one in three turns two at once), answers."""
    rng = random.Random(f"conversation {seed}")
    wires: list[Wire] = []
    for turn in range(turns):
        n, d = rng.randrange(1000, 9999), rng.randrange(10, 28)
        wires.append({"role": "user", "content": rng.choice(WORDS["openers"]).format(n=n, d=d)})
        if rng.random() < 0.6:
            ids = [f"call_{seed}_{turn}_{k}" for k in range(1 + (rng.random() < 0.3))]
            orders = [{"name": "find_order", "arguments": f'{{"order": "{n + k}"}}'} for k in range(len(ids))]
            calls = [{"id": id, "type": "function", "function": order} for id, order in zip(ids, orders, strict=True)]
            wires.append({"role": "assistant", "content": None, "tool_calls": calls})
            for k, id in enumerate(ids):
                text = WORDS["result"].format(n=n + k, d=d) * rng.randrange(1, 4)
                wires.append({"role": "tool", "tool_call_id": id, "content": text})
        wires.append({"role": "assistant", "content": rng.choice(WORDS["replies"]).format(n=n + turn, d=d)})
    wires.append({"role": "user", "content": rng.choice(WORDS["openers"]).format(n=rng.randrange(1000, 9999), d=11)})
    return wires


def profile(limit: int) -> Profile:
    return Profile.from_yaml(WORDS["profile"].replace("{limit}", str(limit)))


def tau_bench(index: int) -> list[Wire] | None:
    """A real run up to its last tool result or user message; None where the data is not here."""
    if not TAU_BENCH.exists():
        return None
    wires = [entry.wire for entry in _runs()[index].entries()]
    while wires and wires[-1]["role"] == "assistant":
        wires.pop()
    return wires if len(wires) > 8 else None


@cache
def _runs() -> tuple[Any, ...]:
    return tuple(read_transcripts(TAU_BENCH))


@cache
def scenes(count: int = 16) -> tuple[Scene, ...]:
    """The scenes, every second one from real runs where they are here."""
    return tuple(scene(number) for number in range(count))


def scene(number: int) -> Scene:
    """One scene."""
    wires = (tau_bench(3 * number) if number % 2 else None) or conversation(number, 10 + number % 7)
    dynamic_tokens = (900, 1400, 2600, 700)[number // 2 % 4]
    id = f"s-{number}"
    built = _play(number, id, "acme", wires, dynamic_tokens, moves_on=len(wires) // 2)
    stale = _play(number, id, "acme", wires, dynamic_tokens)
    neighbour = _play(number + 500, f"{id}-b", "acme", conversation(number + 500, 9), dynamic_tokens, moves_on=2)
    foreigner = _play(number + 900, id, "globex", conversation(number + 900, 9), dynamic_tokens, moves_on=2)
    return Scene(number, built[-1], built, stale[-1], neighbour[-1], foreigner[-1], tuple(wires))


def _play(
    seed: int, id: str, tenant: str, wires: list[Wire], dynamic_tokens: int, moves_on: int | None = None
) -> tuple[Envelope, ...]:
    """The envelopes of a session's calls; before message `moves_on` the profile moves on to its second version."""
    store = memory_store(nonce=f"{271828182 + 31 * seed:09d}")
    session = store.session(
        id, tenant=tenant, profile=profile(100), tools=TOOLS, system="Shop: Müller & Söhne, EU only."
    )
    builder = EnvelopeBuilder(
        tokenizer="o200k_base",
        budgets=Budgets(dynamic_tokens=dynamic_tokens),
        summarizer=FirstLine(),
        selector=WordOverlap() if seed % 3 else None,
    )
    envelopes: list[Envelope] = []
    for position, wire in enumerate(wires):
        if wire["role"] == "assistant" and position:
            envelopes.append(builder.build(session))
        if position == 5 and seed % 2 == 0:
            session.note("plan", "1. find the order  2. ask before any refund")
        if position == moves_on:
            session.repin(profile(250))
        session.append(wire)
    return (*envelopes, builder.build(session))


# -- texts of a request -----------------------------------------------------------------------------------------


def strings(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], str]]:
    """Every string that is a value, and where it stands."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from strings(inner, (*path, index))


def put(payload: Wire, path: tuple[object, ...], text: str) -> Wire:
    changed = copy.deepcopy(payload)
    place: object = changed
    for step in path[:-1]:
        place = place[step]  # type: ignore[index]
    place[path[-1]] = text  # type: ignore[index]
    return changed
