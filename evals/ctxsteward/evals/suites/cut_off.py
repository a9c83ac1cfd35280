"""A store that is cut off, slow or failing for a while, behind a journal that is well.

The same messages are said twice: into a store in memory, and into a journal that is drained into an object store that
fails by a plan (`FaultyObjects`; time is simulated). While nothing arrives, every envelope has the undisturbed bytes.
Afterwards everything drains, another machine reads the session whole, and a record that the journal has lost since is
fetched from the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ctxsteward.envelope import Envelope, Store, telemetry
from ctxsteward.envelope.commit import Patience
from ctxsteward.envelope.keyring import Keys
from ctxsteward.envelope.objects.faulty import Fault, FaultyObjects, Method, SeededFaults
from ctxsteward.envelope.objects.memory import MemoryObjects
from ctxsteward.envelope.objects.port import ObjectStore
from ctxsteward.envelope.stores.memory import MemoryJournal
from ctxsteward.envelope.stores.port import Journal
from ctxsteward.envelope.testing import SimulatedClock, memory_store
from ctxsteward.envelope.writebehind.breaker import Pauses
from ctxsteward.envelope.writebehind.drain import Pace

from .disturbing import LyingJournal
from .scenario import Scenario
from .scoring import holds
from .setup import Setup
from .suite import Scores, Stage

MESSAGES = 48
"""Of the scenario, from its beginning."""
PASSES = 60
"""Of the drain, after the store is back."""


@dataclass(slots=True)
class Network:
    """A plan that can be cut: then nothing arrives and nothing is answered."""

    faults: SeededFaults
    up: bool = True
    well: bool = False

    def __call__(self, method: Method, key: str) -> Fault:
        if not self.up:
            return Fault("dropped" if method == "put" else "error_before")
        return Fault() if self.well else self.faults(method, key)


def drained_store(journal: Journal, objects: ObjectStore, keys: Keys, clock: SimulatedClock, nonce: str) -> Store:
    """A store whose journal lies outside it; nothing drains but when it is asked to."""

    def patience(total_seconds: float) -> Patience:
        return Patience(total_seconds=total_seconds, clock=clock, sleep=clock.sleep, jitter=lambda: 0.5)

    behind = {
        "background": False, "patience": patience(1.0), "clock": clock, "pace": Pace(clock=clock),
        "pauses": Pauses(clock=clock, jitter=lambda: 0.5),
    }  # fmt: skip
    return Store(
        journal, objects, keys, uri="memory:", draw_nonce=lambda: nonce, patience=patience(6.0), write_behind=True,
        behind=behind,
    )  # fmt: skip


def cut_off(scenario: Scenario, setup: Setup, stage: Stage, rng: Random) -> Scores:
    """The beginning of the conversation, with the store cut off in its middle."""
    nonce, clock = f"{rng.randrange(10**9):09d}", SimulatedClock()
    messages = scenario.messages[:MESSAGES]
    begins = rng.randrange(2, len(messages) // 2)
    ends = rng.randrange(begins + 8, len(messages) - 2)
    weights = {"dropped": 4.0, "lost_reply": 4.0, "late": 2.0, "error_before": 4.0, "error_after": 2.0, "slow": 3.0}
    network = Network(SeededFaults(rng.randrange(10**9), put_fraction=0.3, put_weights=weights))  # type: ignore[arg-type]
    objects = MemoryObjects()
    wire = FaultyObjects(objects, network, pause=clock.sleep)
    journal = LyingJournal(MemoryJournal(drains=True), (key := (setup.session(scenario, memory_store())).key))
    with memory_store(nonce=nonce) as well:
        ailing = drained_store(journal, wire, well.keys, clock, nonce)
        twin, session = setup.session(scenario, well), setup.session(scenario, ailing)
        builders = setup.builder(), setup.builder()
        for number, message in enumerate(messages):
            network.up = not begins <= number < ends
            if message["role"] == "assistant" and number:
                stage.builds += 1
                envelopes = builders[0].build(twin), builders[1].build(session)
                state = "cut off" if not network.up else "failing"
                yield holds(
                    "outage_same", _same(*envelopes), f"message {number}, store {state}", "the bytes are others"
                )
            twin.append(message)
            session.append(message)
            clock.sleep(rng.uniform(0.5, 20.0))
            if rng.random() < 0.5:
                _drain(ailing)
        network.up, network.well = True, True
        wire.settle()
        for _ in range(PASSES):
            if not journal.waiting(1):
                break
            clock.sleep(30.0)
            _drain(ailing)
        expected = builders[0].build(twin)
        builders[1].build(session)
        _drain(ailing)
        yield holds("drained", not journal.waiting(1), "after the outage", "records still wait")
        other = drained_store(MemoryJournal(drains=True), objects, well.keys, clock, nonce)
        again = setup.builder().build(setup.session(scenario, other))
        yield holds("drained", _same(expected, again), "on another machine", "the bytes are others")
        place = rng.randrange(1, journal.length(key))
        journal.records[place] = rng.choice((None, journal.inner.read(key, place, place + 1)[0]._replace(mac="")))
        before = telemetry.board().numbers("context.cache_miss").get(("restored",), 0)
        cold = drained_store(journal, wire, well.keys, clock, nonce)
        envelope = setup.builder().build(setup.session(scenario, cold))
        at = f"record {place} lost after it was drained"
        yield holds("recovered", _same(expected, envelope), at, "the bytes are others")
        if any(finding.kind == "record_restored" for finding in envelope.findings):
            now = telemetry.board().numbers("context.cache_miss").get(("restored",), 0)
            yield holds("told", now > before, at, "nothing was told")
        for store in (ailing, other, cold):
            store.close(flush_seconds=0)


def _same(one: Envelope, other: Envelope) -> bool:
    return all(one.render(provider) == other.render(provider) for provider in ("openai-chat", "anthropic"))


def _drain(store: Store) -> None:
    assert store.write_behind is not None
    store.write_behind.drainer.run_once()
