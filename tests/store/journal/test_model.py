"""Any sequence of calls leaves a journal equal to a dictionary model of it: in memory, in a file, reopened or not."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Conflict
from ctxsteward.store.journal.port import (
    DrainMark,
    ForgottenSubject,
    JournalRecord,
    Manifest,
    SessionKey,
    WaitingLog,
)
from ctxsteward.store.journal.tables import compaction_address

from ...examples import examples
from .journals import JOURNALS, compaction, message, note, serve

KEYS = [SessionKey("a", "s"), SessionKey("a", "t"), SessionKey("b", "s")]
ADDRESSES = [f"{n:02x}" for n in range(0, 256, 40)]


@dataclass
class Log:
    """A log of the model."""

    records: list[JournalRecord] = field(default_factory=list)
    generation: int = 0
    drained: DrainMark = field(default_factory=DrainMark)
    manifests: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Address → body, whether it waits."""

    def waits(self) -> bool:
        return len(self.records) > self.drained.position or any(waits for _, waits in self.manifests.values())

    def waiting_bytes(self) -> int:
        texts = [(record.body + (record.wire or "")) for record in self.records[self.drained.position :]]
        texts += [body for body, waits in self.manifests.values() if waits]
        return sum(len(text.encode()) for text in texts)


class JournalMachine(RuleBasedStateMachine):
    """`kind` is set by each test."""

    kind = "memory"

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.drains = "drains" in self.kind
        self.open()
        self.id = self.journal.id
        self.logs = {key: Log() for key in KEYS}
        self.order: list[SessionKey] = []
        """Logs that wait, longest first."""
        self.numbers: dict[str, int] = {}
        self.subjects: dict[str, dict[tuple[str, str | None], ForgottenSubject]] = {"a": {}, "b": {}}

    def open(self) -> None:
        self.journal = JOURNALS[self.kind](Path(self.folder.name))

    def teardown(self) -> None:
        if hasattr(self, "journal"):
            self.journal.close()
            self.folder.cleanup()

    def went_on(self, key: SessionKey, *, to_the_end: bool) -> None:
        """Keep the order of waiting."""
        if to_the_end and key in self.order:
            self.order.remove(key)
        if self.drains and self.logs[key].waits() and key not in self.order:
            self.order.append(key)

    def fresh(self, key: SessionKey, kinds: list[str]) -> list[JournalRecord]:
        """Records that may follow in this log."""
        log = self.logs[key]
        ordinal = max((record.ordinal for record in log.records), default=0)
        outputs = max((record.outputs for record in log.records), default=0)
        made: list[JournalRecord] = []
        for index, kind in enumerate(kinds):
            here = len(log.records) + index
            if kind == "note":
                made.append(note(f"{here} €"))
            elif kind == "compaction":
                made.append(compaction(f"{KEYS.index(key)}{log.generation}{here:04x}"))
            else:
                ordinal += 1
                outputs += 2 * (kind == "tool")
                id = f"id-{log.generation}-{here}" if kind == "named" else None
                made.append(message(ordinal, f"text {here}", id=id, outputs=outputs if kind == "tool" else 0))
        return made

    # -- rules

    kinds = st.lists(st.sampled_from(["note", "plain", "named", "tool", "compaction"]), max_size=5)
    keys = st.sampled_from(KEYS)

    @rule(key=keys, kinds=kinds)
    def append(self, key: SessionKey, kinds: list[str]) -> None:
        log, records = self.logs[key], self.fresh(key, kinds)
        self.journal.append(key, len(log.records), records, generation=log.generation)
        log.records += records
        self.went_on(key, to_the_end=False)

    @rule(key=keys, position=st.integers(-2, 2), generation=st.integers(-1, 1))
    def append_elsewhere(self, key: SessionKey, position: int, generation: int) -> None:
        log = self.logs[key]
        if position or generation:
            with pytest.raises(Conflict):
                self.journal.append(
                    key, len(log.records) + position, [note("x")], generation=log.generation + generation
                )

    @rule(key=keys, data=st.data())
    def append_what_is_there(self, key: SessionKey, data: st.DataObject) -> None:
        log = self.logs[key]
        known = [r for r in log.records if r.ordinal or r.id or compaction_address(r)]
        if known:
            batch = [note("x"), data.draw(st.sampled_from(known))]
            with pytest.raises(StoreError):
                self.journal.append(key, len(log.records), batch, generation=log.generation)

    @rule(key=keys, data=st.data())
    def rewrite(self, key: SessionKey, data: st.DataObject) -> None:
        log = self.logs[key]
        if not log.records:
            return
        positions = data.draw(st.sets(st.integers(0, len(log.records) - 1), max_size=3))
        changed: Mapping[int, JournalRecord] = {
            n: JournalRecord("erased", "{}", log.records[n].ordinal, log.records[n].outputs, log.records[n].id)
            for n in positions
        }
        self.journal.rewrite(key, changed)
        if changed:
            log.records = [changed.get(n, record) for n, record in enumerate(log.records)]
            log.generation += 1
            self.went_on(key, to_the_end=True)

    @rule(key=keys, back=st.integers(-1, 4))
    def truncate(self, key: SessionKey, back: int) -> None:
        log = self.logs[key]
        length = len(log.records) - back
        self.journal.truncate(key, length)
        if 0 <= length < len(log.records):
            del log.records[length:]
            log.generation += 1
            log.drained = log.drained._replace(position=min(length, log.drained.position))
            self.went_on(key, to_the_end=True)

    @rule(key=keys, address=st.sampled_from(ADDRESSES))
    def put_manifest(self, key: SessionKey, address: str) -> None:
        body = f"{key} {address} §"
        self.journal.put_manifest(key, address, body)
        if not any(address in self.logs[other].manifests for other in KEYS if other.tenant == key.tenant):
            self.logs[key].manifests[address] = (body, self.drains)
            self.went_on(key, to_the_end=False)

    @rule(key=keys)
    def drop_manifests(self, key: SessionKey) -> None:
        log = self.logs[key]
        self.journal.drop_manifests(key)
        if log.manifests:
            log.manifests = {}
            log.generation += 1
            self.went_on(key, to_the_end=True)

    @rule(key=keys, back=st.integers(-1, 3), number=st.integers(-1, 2), data=st.data())
    def set_drained(self, key: SessionKey, back: int, number: int, data: st.DataObject) -> None:
        log = self.logs[key]
        given = DrainMark(max(0, len(log.records) - back), max(0, log.drained.number + number), log.drained.epoch + 1)
        gone = data.draw(st.lists(st.sampled_from(ADDRESSES), max_size=3))
        self.journal.set_drained(key, given, gone)
        if given.number >= log.drained.number:
            log.drained = given
        log.manifests = {
            address: (body, waits and address not in gone) for address, (body, waits) in log.manifests.items()
        }
        self.went_on(key, to_the_end=True)

    @rule(name=st.sampled_from("xy"), number=st.integers(0, 9))
    def see(self, name: str, number: int) -> None:
        self.journal.see(name, number)
        self.numbers[name] = max(number, self.numbers.get(name, 0))

    @rule(key=keys, principal=st.sampled_from([None, "", "p"]), who=st.sampled_from("xy"))
    def forget(self, key: SessionKey, principal: str | None, who: str) -> None:
        forgotten = ForgottenSubject(key.session, principal, who, "now", "asked")
        self.journal.forget(key.tenant, forgotten)
        self.subjects[key.tenant].setdefault((key.session, principal), forgotten)

    @rule()
    def scrub(self) -> None:
        self.journal.scrub()

    @rule()
    def reopen(self) -> None:
        if self.kind.startswith("file"):
            self.journal.close()
            self.open()

    # -- what must hold

    @invariant()
    def logs_are_equal(self) -> None:
        for key, log in self.logs.items():
            records = log.records
            assert self.journal.read(key, 0) == records
            assert (self.journal.length(key), self.journal.generation(key)) == (len(records), log.generation)
            compactions = [n for n, record in enumerate(records) if record.kind == "compaction"]
            for before in (None, *compactions):
                below = [n for n in compactions if before is None or n < before]
                assert self.journal.checkpoint(key, before) == (below[-1] if below else 0)
            for n, record in enumerate(records):
                if record.ordinal:
                    assert self.journal.message(key, record.ordinal) == record
                    assert self.journal.position(key, record.ordinal) == n
                if record.id:
                    assert self.journal.by_id(key, record.id) == record
                if (address := compaction_address(record)) is not None:
                    assert self.journal.find(key.tenant, address) == (key.session, n)
            most = max((record.outputs for record in records), default=0)
            for number in range(1, most + 2):
                holders = (record for record in records if record.outputs >= number)
                assert self.journal.by_output(key, number) == next(holders, None)

    @invariant()
    def lists_are_equal(self) -> None:
        for tenant in ("a", "b"):
            written = [key.session for key in KEYS if key.tenant == tenant and self.logs[key].records]
            assert self.journal.sessions(tenant) == written
            assert self.journal.forgotten(tenant) == list(self.subjects[tenant].values())
        assert self.journal.tenants() == sorted({key.tenant for key in KEYS if self.logs[key].records})
        assert {name: self.journal.seen(name) for name in self.numbers} == self.numbers
        for key, log in self.logs.items():
            assert self.journal.manifests(key) == [Manifest(a, body) for a, (body, _) in log.manifests.items()]
            waiting = [Manifest(a, body) for a, (body, waits) in log.manifests.items() if waits]
            assert self.journal.manifests(key, waiting=True) == waiting

    @invariant()
    def what_waits_is_equal(self) -> None:
        self.order = [key for key in self.order if self.logs[key].waits()]
        expected = []
        for key in self.order:
            log = self.logs[key]
            manifests = sum(waits for _, waits in log.manifests.values())
            expected.append(WaitingLog(key, log.drained, len(log.records), manifests))
        assert self.journal.waiting() == expected
        assert self.journal.waiting_bytes() == sum(self.logs[key].waiting_bytes() for key in self.order)
        assert {key: self.journal.drained(key) for key in KEYS} == {key: self.logs[key].drained for key in KEYS}
        assert self.journal.id == self.id


@pytest.mark.parametrize(
    ("kind", "count"),
    [("memory", 100), ("memory, drains", 200), ("file", 40), ("file, drains", 100), ("postgres", 25)],
)
def test_a_journal_is_its_model(request: pytest.FixtureRequest, kind: str, count: int) -> None:
    serve(request, kind)
    machine = type("Machine", (JournalMachine,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(count),
            stateful_step_count=30,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
