"""The auditor's mutation suite: twelve ways a request goes wrong, many seeded requests each, the cause named first.

And the other side: thousands of requests with which nothing is wrong, however they were logged.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from ctxsteward.envelope import PROVIDERS
from ctxsteward.envelope.audit import audit, sealed_request
from ctxsteward.envelope.audit.auditor import KINDS
from ctxsteward.schemas import Finding

from ...examples import SOAK, examples
from ...needs import PUBLIC_DATA
from .operators import OPERATORS, Mutation
from .scenes import KEYS, TAU_BENCH, Scene, Wire, put, scenes, strings

ROUNDS = examples(200)
CLEAN_REQUESTS = examples(10_000)


def mutations(name: str) -> Iterator[tuple[str, Scene, str, Mutation]]:
    """Requests gone wrong, every scene and provider in turn."""
    staged = [scene for scene in scenes() if scene.earlier]
    for number in range(ROUNDS):
        rng = random.Random(f"{name} {number}")
        scene, provider = staged[number // len(PROVIDERS) % len(staged)], PROVIDERS[number % len(PROVIDERS)]
        yield f"{name} {number} {provider} scene {scene.id}", scene, provider, OPERATORS[name](rng, scene, provider)


def test_there_is_an_operator_for_each_of_the_twelve_classes() -> None:
    assert set(OPERATORS) == set(KINDS)
    assert len(KINDS) == 12


@pytest.mark.skipif(not TAU_BENCH.exists(), reason=PUBLIC_DATA)
def test_half_of_the_scenes_are_real_runs() -> None:
    assert [scene.id for scene in scenes() if "reservation" in str(scene.history)] == list(range(1, 16, 2))


@pytest.mark.parametrize("name", KINDS)
def test_every_mutation_is_caught_and_its_cause_named_first(name: str) -> None:
    missed: list[str] = []
    for id, scene, provider, mutation in mutations(name):
        named = None if "payload" in mutation.sent else provider
        found = audit(scene.expected, mutation.sent, provider=named, keys=KEYS, known=mutation.known)
        if not found or found[0].kind != name:
            missed.append(f"{id}: {[f'{one.kind} {one.text}' for one in found[:3]]}")
    print(f"{name}: {ROUNDS - len(missed)} of {ROUNDS}")
    assert missed == []


# -- nothing wrong -----------------------------------------------------------------------------------------------

EXTRA: dict[str, Wire] = {
    "openai-chat": {"model": "gpt-4o", "max_tokens": 900, "temperature": 0.2, "stream": True, "tool_choice": "auto"},
    "openai-responses": {"model": "gpt-4o", "max_output_tokens": 900, "store": False, "metadata": {"trace": "a1"}},
    "anthropic": {"model": "claude-sonnet-4-5", "max_tokens": 900, "thinking": {"type": "disabled"}, "stream": True},
    "gemini": {"model": "gemini-2.5-flash", "labels": {"team": "shop"}},
    "text": {"model": "local", "n_predict": 400, "stop": ["</s>"], "temperature": 0},
}


def as_logged(rng: random.Random, payload: Wire) -> Wire:
    """Through JSON, with its keys in another order, in either way of writing Unicode."""

    def shuffled(value: object) -> object:
        if isinstance(value, dict):
            items = [(key, shuffled(inner)) for key, inner in value.items()]
            rng.shuffle(items)
            return dict(items)
        return [shuffled(inner) for inner in value] if isinstance(value, list) else value

    read: Wire = json.loads(json.dumps(shuffled(payload), ensure_ascii=rng.random() < 0.5))
    return read


def clean_requests() -> Iterator[tuple[int, str, list[Finding]]]:
    """Every envelope of every scene for every provider, sent as services send it, until there are enough."""
    rng = random.Random("clean")
    number = 0
    while True:
        for scene in scenes():
            for envelope in scene.built:
                for provider in PROVIDERS:
                    payload = envelope.render(provider, cache=rng.random() < 0.5) | EXTRA[provider]
                    if rng.random() < 0.5:
                        payload = as_logged(rng, payload)
                    sent = payload
                    if rng.random() < 0.3:
                        sent = as_logged(rng, sealed_request(envelope, provider)) | {"payload": payload}
                    known = scene.others if number % 50 == 0 else ()
                    named = provider if number % 2 else None
                    yield number, provider, list(audit(envelope, sent, provider=named, keys=KEYS, known=known))
                    number += 1
                    if number == CLEAN_REQUESTS:
                        return


def test_thousands_of_untouched_requests_give_no_finding() -> None:
    alarms = [(number, provider, found[0]) for number, provider, found in clean_requests() if found]
    print(f"{len(alarms)} false alarms in {CLEAN_REQUESTS:,}")
    assert alarms == []


# -- every byte --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_byte_of_any_string_can_change_unseen(provider: str) -> None:
    """One byte removed, and one altered, at the ends and at random places of every string of the context."""
    rng = random.Random(f"bytes {provider}")
    tried = 0
    for scene in scenes()[: 4 if SOAK else 1]:
        payload = scene.expected.render(provider, cache=False)  # type: ignore[arg-type]
        for path, text in strings(payload):
            data = text.encode()
            places = {0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(1 + len(data) // 60))} if data else ()
            for at in places:
                for changed in (data[:at] + data[at + 1 :], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]):
                    sent = put(payload, path, changed.decode("utf-8", "replace"))
                    tried += 1
                    assert audit(scene.expected, sent, provider=provider), (path, at)
    print(f"{provider}: {tried:,} single bytes")
