"""Committing over a store that loses, delays, refuses and repeats: nothing acknowledged is lost, nothing lands twice.

Six writers, eight commits each, every history drawn from a seed (`simulation`). `make test` runs 100 seeds of our
protocol; ``CTXSTEWARD_SOAK=1`` runs 4,000. Beside it, three protocols that people write first, in the same
simulation: if it found nothing wrong with them, it would prove nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from ctxsteward.schemas import StoreUnavailable
from ctxsteward.schemas.errors import ObjectMissing, OutcomeUnknown, VersionTaken
from ctxsteward.store.crypto.hash_chain import Chain, _encode
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.names import numbered
from ctxsteward.store.objects.port import Patience

from ...examples import SOAK
from .simulation import NOTHING, Outcome, Simulation, Verdict, judge

SEEDS = 4_000 if SOAK else 100
NAIVE_SEEDS = 400 if SOAK else 10
WRITERS, COMMITS = 6, 8
KEY = AddressKey(b"k" * 32)
FOLDER = "profiles/acme/support/versions"
LOSSES_TO_GIVE_UP = 6


# -- the protocol ------------------------------------------------------------------------------------------


def chained(simulation: Simulation, commit_id: str) -> Outcome:
    """Read the head, append, decide again where somebody was first; give up after six losses."""
    turns = simulation.turns
    patience = Patience(total_seconds=20.0, clock=turns.clock, sleep=turns.sleep, jitter=lambda: 0.5)
    chain = Chain(simulation.objects, FOLDER, KEY, patience=patience)
    body = {"persona": commit_id, "policies": commit_id, "meta": commit_id}
    losses = 0
    while losses < LOSSES_TO_GIVE_UP:
        try:
            head = chain.head()
            if head is not None:
                simulation.read_slices(head.body["persona"], head.body["policies"], head.body["meta"])
            chain.append(head, body, commit_id=commit_id)
        except VersionTaken:
            losses += 1
        except StoreUnavailable:
            turns.sleep(0.2)
        except OutcomeUnknown:
            return "unknown"
        else:
            return "acked"
    return "failed"


def simulate(seed: int) -> Verdict:
    simulation = Simulation(seed, WRITERS)
    simulation.run(chained, COMMITS)
    assert simulation.bucket.deleted == 0, "what may have landed is never cleaned up"
    links = list(Chain(simulation.bucket, FOLDER, KEY).links())
    assert [link.number for link in links] == list(range(1, len(links) + 1))
    return judge(simulation, [link.commit_id for link in links])


def test_nothing_acknowledged_is_lost_and_nothing_lands_twice() -> None:
    total = NOTHING
    for seed in range(SEEDS):
        verdict = simulate(seed)
        wrong = verdict.acked_lost + verdict.failed_but_landed + verdict.double + verdict.mixed + verdict.out_of_order
        assert wrong == 0, f"seed {seed}: {verdict}"
        total += verdict
    print(f"{SEEDS} seeds: {total}")
    assert total.commits == SEEDS * WRITERS * COMMITS
    assert total.acked > total.commits * 0.8
    assert 0 < total.unknown <= total.commits * 0.001


def test_a_seed_is_one_history() -> None:
    assert simulate(11) == simulate(11)
    assert len({simulate(seed) for seed in range(5)}) > 1


# -- protocols that people write first ---------------------------------------------------------------------

DOCUMENT = "profile.json"
SLICES = ("persona.json", "policies.json", "meta.json")


def read_document(simulation: Simulation) -> tuple[bytes | None, list[str]]:
    while True:
        try:
            found = simulation.objects.get(DOCUMENT)
        except ObjectMissing:
            return None, []
        except StoreUnavailable:
            simulation.turns.sleep(0.2)
        else:
            return found, json.loads(found)


def blind_overwrite(simulation: Simulation, commit_id: str) -> Outcome:
    """Read, change, write each slice over the old one, and repeat what was not answered."""
    objects, bucket = simulation.objects, simulation.bucket
    with suppress(ObjectMissing, StoreUnavailable):
        simulation.read_slices(*(objects.get(key) for key in SLICES))
    _, document = read_document(simulation)
    bodies = {key: commit_id.encode() for key in SLICES} | {DOCUMENT: json.dumps([*document, commit_id]).encode()}
    for key, body in bodies.items():
        while objects.write(key, partial(bucket.overwrite, key, body)) == "unknown":
            simulation.turns.sleep(0.2)
    return "acked"


def if_match_and_retry(simulation: Simulation, commit_id: str) -> Outcome:
    """Replace the document if it is still the one that was read; anything but success: read it and do it again."""
    while True:
        before, document = read_document(simulation)
        body = json.dumps([*document, commit_id]).encode()
        replace = partial(simulation.bucket.replace, DOCUMENT, body, before)
        if simulation.objects.write(DOCUMENT, replace) == "committed":
            return "acked"
        simulation.turns.sleep(0.2)


def if_match_and_fail_on_timeout(simulation: Simulation, commit_id: str) -> Outcome:
    """Replace the document if it is still the one that was read; no answer is a failure."""
    while True:
        before, document = read_document(simulation)
        body = json.dumps([*document, commit_id]).encode()
        outcome = simulation.objects.write(DOCUMENT, partial(simulation.bucket.replace, DOCUMENT, body, before))
        if outcome != "conflicted":
            return "acked" if outcome == "committed" else "failed"


@pytest.mark.parametrize(
    ("protocol", "wrong"),
    [
        (blind_overwrite, lambda total: min(total.acked_lost, total.mixed)),
        (if_match_and_retry, lambda total: total.double),
        (if_match_and_fail_on_timeout, lambda total: total.failed_but_landed),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_simulation_finds_what_is_wrong_with_a_naive_protocol(
    protocol: Callable[[Simulation, str], Outcome], wrong: Callable[[Verdict], int]
) -> None:
    total = NOTHING
    for seed in range(1, NAIVE_SEEDS + 1):
        simulation = Simulation(seed, WRITERS)
        simulation.run(protocol, COMMITS)
        total += judge(simulation, json.loads(simulation.bucket.get(DOCUMENT)))
    print(f"{NAIVE_SEEDS} seeds of {protocol.__name__}: {total}")
    assert wrong(total) > total.commits * 0.02


# -- mutants of ours ---------------------------------------------------------------------------------------


def without_read_back(simulation: Simulation, commit_id: str) -> Outcome:
    """Ours, but a conflict is believed at once."""
    chain = Chain(simulation.objects, FOLDER, KEY)
    while True:
        try:
            head = chain.head()
        except StoreUnavailable:
            continue
        number = head.number + 1 if head else 1
        link = chain._sealed(number, commit_id, 0, head.mac if head else "", {})
        if simulation.objects.put(numbered(FOLDER, number), _encode(link)) == "committed":
            return "acked"
        simulation.turns.sleep(0.2)


def test_the_simulation_finds_a_chain_that_does_not_read_back() -> None:
    total = NOTHING
    for seed in range(1, NAIVE_SEEDS + 1):
        simulation = Simulation(seed, WRITERS)
        simulation.run(without_read_back, COMMITS)
        total += judge(simulation, [link.commit_id for link in Chain(simulation.bucket, FOLDER, KEY).links()])
    print(f"{NAIVE_SEEDS} seeds without reading back: {total}")
    assert total.double > total.commits * 0.02
