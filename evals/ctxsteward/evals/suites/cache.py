"""The suite ``cache``: stored state that is dropped, corrupted, stale or bypassed is recovered, or it is reported.

At seeded places of a conversation a copy of its log is damaged (`log_faults`) and opened cold. The next envelope must
have the undisturbed bytes, or be rebuilt from the originals, or hold a placeholder with a finding if an original is
gone. Text of an intruder is never shown, and `context.cache_miss` counts the damage. At other places a request is
tampered with on its way (`request_tampering`): the auditor must report each change, and nothing for unchanged requests.

The same messages are appended to a journal that drains into an object store with planned faults (`FaultyObjects`;
time is simulated). During the outage every envelope must have the undisturbed bytes. Afterwards all records drain,
another machine reads the whole session, and a record that the journal has lost since is fetched from the store.

Source: the layered-envelope design (recovery from cache misses; auditors that diff expected and actual context).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from ctxsteward.envelope import (
    Envelope,
    EnvelopeBuilder,
    Profile,
    Session,
    Store,
    instruments as telemetry,
    verify_seal,
)
from ctxsteward.envelope.audit import audit, sealed_request
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Finding
from ctxsteward.schemas.message import Wire
from ctxsteward.store import Journal, ObjectStore
from ctxsteward.store.crypto.keyring import Keys
from ctxsteward.store.facts.fact_store import FactLookup, FactStore
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import Patience
from ctxsteward.store.replication.breaker import Timing

from .kit.faulty_objects import FaultyObjects, Method, SeededFaults, SimulatedClock, StoreFault
from .kit.suite import Draw, PlayCounts, Scenario, Score, Scores, Setup, holds
from .kit.talk import SmallTalk, assistant, deck, head, revised, user
from .log_faults import FAULTS, LyingJournal, disturbed_copy, misses, opened_cold, shows
from .request_tampering import PROVIDERS, TAMPERINGS, TamperingScene

MESSAGES = 48
"""Messages from the beginning of the scenario."""
PASSES = 60
"""Most passes of the drain after the store is back."""


def drained_store(journal: Journal, objects: ObjectStore, keys: Keys, clock: SimulatedClock, nonce: str) -> Store:
    """Open a store with an external journal that drains only when the suite calls the drain."""

    def patience(total_seconds: float) -> Patience:
        return Patience(total_seconds=total_seconds, clock=clock, sleep=clock.sleep, jitter=lambda: 0.5)

    behind = {
        "background": False,
        "patience": patience(1.0),
        "timing": Timing(clock=clock, jitter=lambda: 0.5),
    }
    store = Store(
        journal,
        objects,
        keys,
        uri="memory:",
        draw_nonce=lambda: nonce,
        patience=patience(6.0),
        write_behind=True,
        behind=behind,
    )
    # Asks the store in this thread: a background lookup would wait by the machine's clock, not the simulated one.
    store.fact_lookup = FactLookup(
        lambda profile, tenant: FactStore(store, profile, tenant), erasures=lambda tenant: store.erasures(tenant)
    )
    return store


def cut_off(scenario: Scenario, setup: Setup, stage: PlayCounts, rng: Random) -> Scores:
    """Play the beginning of the conversation, with the store cut off in its middle."""
    nonce, clock = f"{rng.randrange(10**9):09d}", SimulatedClock()
    messages = scenario.messages[:MESSAGES]
    begins = rng.randrange(2, len(messages) // 2)
    ends = rng.randrange(begins + 8, len(messages) - 2)
    weights = {"dropped": 4.0, "lost_reply": 4.0, "late": 2.0, "error_before": 4.0, "error_after": 2.0, "slow": 3.0}
    faults = SeededFaults(rng.randrange(10**9), put_fraction=0.3, put_weights=weights)  # type: ignore[arg-type]
    state: Literal["cut off", "failing", "well"] = "well"

    def network(method: Method, key: str) -> StoreFault:
        if state == "cut off":  # no request arrives and no answer returns
            return StoreFault("dropped" if method == "put" else "error_before")
        return StoreFault() if state == "well" else faults(method, key)

    objects = MemoryObjects()
    wire = FaultyObjects(objects, network, pause=clock.sleep)
    journal = LyingJournal(MemoryJournal(drains=True), (key := (setup.session(scenario, memory_store())).key))
    with memory_store(nonce=nonce) as well:
        ailing = drained_store(journal, wire, well.keys, clock, nonce)
        twin, session = setup.session(scenario, well), setup.session(scenario, ailing)
        builders = setup.builder(), setup.builder()
        for number, message in enumerate(messages):
            state = "cut off" if begins <= number < ends else "well" if number < 2 else "failing"
            if message["role"] == "assistant" and number:
                stage.builds += 1
                envelopes = builders[0].build(twin), builders[1].build(session)
                yield holds(
                    "outage_same", _same(*envelopes), f"message {number}, store {state}", "the bytes are others"
                )
            twin.append(message)
            session.append(message)
            clock.sleep(rng.uniform(0.5, 20.0))
            if rng.random() < 0.5:
                _drain(ailing)
        state = "well"
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
            yield holds("told", now > before, at, "nothing was reported")
        for store in (ailing, other, cold):
            store.close(flush_seconds=0)


def _same(first: Envelope, second: Envelope) -> bool:
    return all(first.render(provider) == second.render(provider) for provider in ("openai-chat", "anthropic"))


def _drain(store: Store) -> None:
    assert store.write_behind is not None
    store.write_behind.drainer.run_once()


DISTURBED_EVERY = 5
"""Average number of calls between two disturbances."""
TAMPERED = 4
"""Tamperings with one audited call."""


def make(draw: Draw) -> Scenario:
    """Make a conversation under a small profile, with tools."""
    talk, rng = SmallTalk.of(draw), draw.random("cache")
    messages: list[Wire] = []
    for _ in range(draw.turns):
        messages.append(user(talk.user()))
        if rng.random() < 0.3:
            messages += talk.tools()
        messages.append(assistant(talk.assistant()))
    return Scenario(draw=draw, messages=tuple(messages), profile=head(rng, draw.language, draw.split))


# -- playing -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _CacheRun:
    """A conversation that is being played."""

    scenario: Scenario
    setup: Setup
    stage: PlayCounts
    store: Store
    session: Session
    builder: EnvelopeBuilder
    neighbours: tuple[Envelope, Envelope]
    """Another session of the tenant, and one of another tenant."""
    auditor: Auditor
    messages: list[Wire] = field(default_factory=list)
    last: Envelope | None = None

    def build(self) -> Envelope:
        self.stage.builds += 1
        return self.builder.build(self.session)


Auditor = Callable[..., Sequence[Finding]]
"""`audit`, or a double of it."""


def play_cache(scenario: Scenario, setup: Setup, stage: PlayCounts, *, auditor: Auditor = audit) -> Scores:
    """Play a scenario; disturb copies of it and tamper with its requests; then play its beginning under an outage."""
    rng = scenario.draw.random("events")
    faults = deck(rng, list(FAULTS))
    tamperings = deck(rng, list(TAMPERINGS))
    with memory_store(nonce=f"{rng.randrange(10**9):09d}") as store:
        run = _CacheRun(
            scenario,
            setup,
            stage,
            store,
            setup.session(scenario, store),
            setup.builder(),
            _neighbours(scenario, setup, store),
            auditor,
        )
        until, second = 6, rng.randrange(len(scenario.messages) // 3, len(scenario.messages) // 2)
        for number, wire in enumerate(scenario.messages):
            if wire["role"] == "assistant" and run.messages:
                envelope = run.build()
                is_sealed = envelope.seal is not None and verify_seal(store.keys, envelope.seal, envelope)
                yield holds("sealed", is_sealed, f"message {number}", "no seal, or not its own")
                until -= 1
                if until <= 0:
                    until = rng.randint(DISTURBED_EVERY - 2, DISTURBED_EVERY + 2)
                    yield from _disturbed(run, rng, envelope, next(faults), f"message {number}")
                    yield from _tampered(run, rng, envelope, tamperings, f"message {number}")
                run.last = envelope
            run.session.append(wire)
            run.messages.append(wire)
            if number == second and scenario.profile is not None:
                run.session.repin(Profile.from_document(revised(rng, scenario.profile)))
            if rng.random() < 0.06:
                run.session.note("snapshot", f"step {number} of {len(scenario.messages)}")
    yield from cut_off(scenario, setup, stage, rng)


def _neighbours(scenario: Scenario, setup: Setup, store: Store) -> tuple[Envelope, Envelope]:
    talk = SmallTalk.of(scenario.draw._replace(number=scenario.draw.number + 500_000))
    envelopes = []
    for id, tenant in ((f"{scenario.id}-next", "evals"), (scenario.id, "others")):
        profile = None if scenario.profile is None else Profile.from_document(scenario.profile)
        session = store.session(id, tenant=tenant, profile=profile)
        session.extend(
            [
                *(message for _ in range(4) for message in (user(talk.user()), assistant(talk.assistant()))),
                user(talk.user()),
            ]
        )
        envelopes.append(setup.builder().build(session))
    return envelopes[0], envelopes[1]


# -- disturbing --------------------------------------------------------------------------------------------------


def _disturbed(run: _CacheRun, rng: Random, before: Envelope, name: str, at: str) -> Scores:
    """Damage a copy of the session's log, open it cold, and check the envelope."""
    fault, world = FAULTS[name], disturbed_copy(run.store, run.session.key)
    gone = fault.do(rng, world)
    if gone is None:
        return
    at, misses_before = f"{at}: {name}", misses()
    try:
        wrong, unhandled = opened_cold(world, before, run.messages, run.setup, fault, gone)
    except Exception as error:  # any exception shows that the product did not handle the damage
        wrong, unhandled = f"{type(error).__name__}: {error}", True
    yield holds("recovered", not wrong, at, wrong)
    yield Score("unhandled_cache_misses", float(unhandled), at, wrong if unhandled else "")
    if fault.reasons and (not gone or shows(before, gone)):
        reasons = {reason for reason, count in misses().items() if count > misses_before.get(reason, 0)}
        yield holds("told", bool(reasons & fault.reasons), at, f"reported: {sorted(reasons) or 'nothing'}")


# -- tampering ---------------------------------------------------------------------------------------------------


def _tampered(run: _CacheRun, rng: Random, expected: Envelope, names: Iterator[str], at: str) -> Scores:
    """Audit requests that were tampered with, and unchanged requests."""
    scene = _scene(run, rng, expected)
    keys = run.store.keys
    others = [envelope for envelope in (scene.earlier, scene.neighbour) if envelope]
    for _ in range(TAMPERED):
        name, provider = next(names), rng.choice(PROVIDERS)
        sent = TAMPERINGS[name](rng, scene, provider) or TAMPERINGS[name](rng, scene, "openai-chat")
        if sent is not None:
            differences = run.auditor(expected, sent, keys=keys, known=others if rng.random() < 0.5 else ())
            yield Score(
                "audit_misses", float(not differences), f"{at}, {provider}: {name}", "" if differences else "no finding"
            )
    provider = rng.choice(PROVIDERS)
    for sent in (sealed_request(expected, provider, cache=rng.random() < 0.5), expected.render(provider)):
        differences = run.auditor(expected, sent, keys=keys, known=others)
        yield Score(
            "false_alarms",
            float(bool(differences)),
            f"{at}, {provider}",
            f"{differences[0].kind}: {differences[0].text}" if differences else "",
        )


def _scene(run: _CacheRun, rng: Random, expected: Envelope) -> TamperingScene:
    other = run.session.draft()
    if run.scenario.profile is not None:
        other.repin(Profile.from_document(revised(rng, run.scenario.profile)))
    earlier = run.last if run.last is not None and run.last.address != expected.address else None
    return TamperingScene(
        expected=expected,
        earlier=earlier,
        neighbour=run.neighbours[0],
        foreigner=run.neighbours[1],
        other_head=run.builder.rebuild(other),
        messages=run.messages,
        remarks=run.scenario.draw.texts("cache", "remarks"),
    )
