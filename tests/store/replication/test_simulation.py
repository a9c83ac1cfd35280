"""Two and three machines over one object store, by a seed: opened here and there, cut off, killed, healed.

Whatever happens: every acknowledged message stands in its session or in exactly one fork of it, all machines end up
with the same logs, and each envelope that was built can be rebuilt from the object store alone, each compaction found.
1,000 seeds of each with CTXSTEWARD_SOAK=1, else 12.
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, rebuild
from ctxsteward.envelope.history.session import Session
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.testing import FirstLine
from ctxsteward.evals.suites.kit.faulty_objects import PASS, PUT_WEIGHTS, Crashed, SeededFaults
from ctxsteward.schemas import StoreError

from ...examples import SOAK
from .machines import World, drain, user

SEEDS = 1000 if SOAK else 12
STEPS = 60
WEIGHTS = PUT_WEIGHTS | {"crash_before": 2, "crash_after": 4, "crash_late": 2}


class History:
    """One seed: what machines do, and what was acknowledged."""

    def __init__(self, seed: int, machines: int, *, faults: bool) -> None:
        self.random = random.Random(f"{seed}/{machines}/{faults}")
        self.world = World()
        self.names = [chr(ord("a") + n) for n in range(machines)]
        self.faults = faults
        self.stores: dict[str, Store] = {}
        self.sessions: dict[tuple[str, str], Session] = {}
        self.acknowledged: dict[str, str] = {}
        self.envelopes: dict[str, object] = {}
        """What was sent, by the envelope's address."""
        self.reports: list[str] = []
        self.builder = EnvelopeBuilder(
            tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=120), summarizer=FirstLine()
        )
        for name in self.names:
            self.start(name)

    def start(self, name: str) -> None:
        plan = SeededFaults(f"{self.random.random()}", put_weights=WEIGHTS) if self.faults else (lambda m, k: PASS)
        self.stores[name] = self.world.machine(name, plan)
        self.sessions = {key: session for key, session in self.sessions.items() if key[0] != name}

    def run(self) -> None:
        for _ in range(STEPS):
            name = self.random.choice(self.names)
            self.world.clock.seconds += self.random.choice((0.1, 0.1, 3.0, 20.0))
            try:
                with suppress(StoreError):
                    self.step(name)
            except Crashed:
                self.start(name)

    def step(self, name: str) -> None:
        match self.random.choices(
            ("append", "open", "drain", "cut", "heal", "kill", "fork", "build"), (30, 12, 20, 4, 6, 3, 2, 6)
        )[0]:
            case "append":
                self.append(name)
            case "open":
                id = self.random.choice(("s", "t"))
                self.sessions[name, id] = self.stores[name].session(id)
            case "drain":
                drain(self.stores[name], hurry=self.random.random() < 0.2)
            case "cut":
                self.world.cut(name)
            case "heal":
                self.world.cut(name, up=True)
            case "kill":
                self.start(name)
            case "fork":
                if (session := self.held(name)) is not None:
                    fork = session.fork()
                    self.sessions[name, fork.id] = fork
            case "build":
                if (session := self.held(name)) is not None:
                    envelope = self.builder.build(session)
                    self.envelopes[envelope.address] = envelope.render("openai-chat")
                    self.reports += [report.id for report in envelope.reports]

    def append(self, name: str) -> None:
        if (session := self.held(name)) is not None:
            text = f"message {len(self.acknowledged)} written at {name}, " + "with some words " * 4
            session.append(user(text), principal=self.random.choice((None, "ann")))
            self.acknowledged[text] = session.id.partition("-fork-")[0]

    def held(self, name: str) -> Session | None:
        mine = [session for (machine, _), session in sorted(self.sessions.items()) if machine == name]
        return self.random.choice(mine) if mine else None


@pytest.mark.parametrize("faults", [False, True], ids=["partitions", "partitions and faults"])
@pytest.mark.parametrize("machines", [2, 3])
def test_no_acknowledged_message_is_lost_or_doubled_and_all_machines_hold_one_order(
    machines: int, faults: bool
) -> None:
    forks = 0
    for seed in range(SEEDS):
        history = History(seed, machines, faults=faults)
        history.run()
        try:
            history.world.check(history.acknowledged)
            fresh = history.world.fresh()
            for address, sent in history.envelopes.items():
                assert rebuild(fresh, address).render("openai-chat") == sent
            for address in history.reports:
                assert fresh.compaction(address).report.id == address
        except (AssertionError, StoreError) as error:
            raise AssertionError(f"seed {seed}, {machines} machines, faults {faults}: {error}") from error
        forks += sum("-fork-e" in session for session in fresh.journal.sessions("default"))
    assert forks > SEEDS / 4, "the histories hold no contention worth its name"
