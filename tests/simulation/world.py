"""A simulated world: hosts with disks, processes with stores, a network, clocks, and faults armed under load.

Nothing here runs in a thread and nothing waits. A *seed* draws every choice, so a seed is one history. The product's
code is real; it is entered at its ports:

    disk       SQLite's VFS and `create_once.Disk` (`disk`)
    network    `ObjectStore`, by `FaultyObjects`; listings and deletes fail here, too
    clocks     `Patience`, `Timing`, `WriterLease`, `Store(now=…)`
    chance     `draw_nonce`, `draw_id`, and the module `secrets`, which has no port: its functions are replaced
    process    a process that dies makes no more calls of any port; its objects are dropped, its files opened again

Three kinds of world: in a *bucket* each process has a host and a journal of its own and drains into a bucket, but in
one of eight such worlds two of three processes share a host; in a *folder* two processes of one host share a journal
and a folder of objects; with a server of PostgreSQL all hosts share its *database* (`database`).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from random import Random
from typing import Any

from ctxsteward.envelope.history.session import Session
from ctxsteward.envelope.store import Store
from ctxsteward.evals.suites.kit.faulty_objects import (
    PASS,
    Crashed,
    FaultyObjects,
    Method,
    SimulatedClock,
    StoreFault,
)
from ctxsteward.schemas import StoreUnavailable
from ctxsteward.store import process_forks
from ctxsteward.store.derived_files import DerivedRows
from ctxsteward.store.erasure import forget as forgetting
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.postgres import PostgresJournal
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.objects.file import FileObjects
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectInfo, ObjectStore, Patience, PutOutcome, is_there
from ctxsteward.store.profiles.versions import WriterLease
from ctxsteward.store.replication.breaker import Timing

from ..postgres import PostgresServer
from ..steward.night.doubles import KEYS, TENANT
from . import database
from .disk import DiskFault, ObjectDisk, SqliteDisk

EPOCH_SECONDS = 1_790_000_000.0
"""Unix time at which a world begins."""
SHM = Path("/dev/shm")

PUT_FAULTS: dict[str, tuple[Any, ...]] = {
    "lost reply": ("lost_reply", "error_after"),
    "repeated request": ("false_conflict",),
    "late write": ("late",),
    "dropped write": ("dropped",),
    "server error": ("error_before", "conflict_409"),
    "slow write": ("slow",),
}
FAULTS: dict[str, float] = {
    "full disk": 3,
    "disk error": 3,
    "killed process": 3,
    "power cut": 4,
    "process fork": 2,
    "other process between": 9,
    "clock forward": 2,
    "clock back": 2,
    **dict.fromkeys(PUT_FAULTS, 4.0),
    "failed read": 4,
    "failed delete": 4,
    "stale list": 5,
    "partition": 3,
}
"""Every fault that may be armed, with its weight."""
OUTCOMES = ("torn write",)
"""What comes of a fault and is counted beside them: a power cut found unsynced writes."""
NETWORK = frozenset((*PUT_FAULTS, "failed read", "failed delete", "stale list", "partition"))
_WITHOUT_NETWORK = {kind: weight for kind, weight in FAULTS.items() if kind not in NETWORK}
ARMED_SHARE = 0.6
"""Share of the steps before which a fault is armed."""
NEW_KEY_SHARE = 0.2
"""Share of the new keys before which another process is let in."""


@dataclass
class Host:
    """A machine, its disk and its clock."""

    name: str
    folder: Path
    skew_seconds: float = 0.0
    is_cut: bool = False


@dataclass
class Process:
    """A process of a host. Its wire outlives it, as what it sent does."""

    name: str
    host: Host
    wire: Wire = field(init=False)
    store: Store = field(init=False)
    sessions: dict[str, Session] = field(default_factory=dict)
    lease: WriterLease | None = None
    starts: int = 0
    is_dead: bool = False

    @property
    def owner(self) -> str:
        """The name that its leases carry; another one after each start."""
        return f"{self.name}:{self.starts}"


class World:
    """One seed's hosts and processes, and the fault that is armed."""

    def __init__(self, seed: int, folder: Path, server: PostgresServer | None = None) -> None:
        self.seed, self.folder = seed, folder
        self.random = Random(f"world {seed}")
        self.clock = SimulatedClock()
        self.kind = ("bucket", "folder", "bucket")[seed % 3] if server is None else "database"
        self.faults = database.FAULTS if server is not None else FAULTS if self.is_bucket else _WITHOUT_NETWORK
        self.modified: dict[str, float] = {}
        """When each object of a database was written."""
        self._schema = f"seed{seed}_{os.getpid()}"
        self._uri = server.uri(self._schema) if server is not None else ""
        self.database = database.FaultyDatabase(self, self._uri) if server is not None else None
        """The database as an oracle sees it."""
        self._busy = 0
        self.fired: Counter[str] = Counter()
        self.events: list[str] = []
        self.wrong: list[str] = []
        self.doomed: set[str] = set()
        """Subjects whose key was made when their tombstone stood already."""
        self.late: set[str] = set()
        """Subjects whose key may be put again by a request that arrives after it was destroyed."""
        self.armed: dict[str, int] = {}
        """Chances that each armed fault lets pass before it fires."""
        self.is_quiet = True
        """Whether no fault fires."""
        self._partition: dict[str, int] = {}
        self._nonces = itertools.count(100_000_000)
        self.between: Callable[[Process], None] = lambda process: None
        """Runs another process's step in the midst of this one's."""
        self._object_disk: ObjectDisk | None = None
        self.bucket = self._objects()
        names = ("a", "b", "c") if seed % 6 == 2 else ("a", "b")
        machines = 1 if self.kind == "folder" else 2 if seed % 12 == 8 else len(names)
        hosts = [Host(name, self.folder / f"host-{name}") for name in names[:machines]]
        self.processes = [Process(name, hosts[n % len(hosts)]) for n, name in enumerate(names)]
        self._disks = {host.name: SqliteDisk(host.folder, self._ask) for host in hosts}
        for process in self.processes:
            process.host.folder.mkdir(exist_ok=True)
            process.wire = Wire(self, process)
        self.current = self.processes[0]
        for process in self.processes:
            self.start(process)

    @property
    def is_bucket(self) -> bool:
        return self.kind == "bucket"

    def _objects(self) -> ObjectStore:
        if self.database is not None:
            return database.TimedObjects(self, self.database)
        if self.is_bucket:
            return MemoryObjects(now=self.now_seconds)
        self._object_disk = ObjectDisk(self.folder / "objects", self._ask)
        return FileObjects(self.folder / "objects", disk=self._object_disk)

    def now_seconds(self) -> float:
        return EPOCH_SECONDS + self.clock.seconds

    def clock_of(self, process: Process) -> Callable[[], float]:
        """Unix time as the process's host tells it."""
        return lambda: self.now_seconds() + process.host.skew_seconds

    def now(self) -> str:
        return datetime.fromtimestamp(self.now_seconds(), UTC).isoformat(timespec="milliseconds")

    def note(self, *what: object) -> None:
        """Write a line of the history."""
        self.events.append(" ".join(map(str, what)))

    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.events).encode()).hexdigest()

    # -- processes ----------------------------------------------------------------------------------------------

    @contextmanager
    def running(self, process: Process) -> Iterator[None]:
        """What is called in the block is called by this process."""
        before, self.current = self.current, process
        try:
            yield
        finally:
            self.current = before

    def start(self, process: Process) -> None:
        process.is_dead, process.sessions, process.lease = False, {}, None
        process.starts += 1
        with self.running(process):
            if self.database is not None:
                shared = database.FaultyDatabase(self, self._uri, process)
                own = PostgresJournal(shared, address_key=KEYS.address_key, draw_id=lambda: "d" * 8)
                process.wire.inner = database.TimedObjects(self, shared)
                process.store = self.opened(own, process.wire, folder=process.host.folder)
                return
            journal = FileJournal(
                process.host.folder,
                self.is_bucket,
                draw_id=lambda: process.name * 8,
                address_key=KEYS.address_key,
                busy_seconds=0.05,
            )
            submit = journal._submit

            def after_others(work: Callable[[Any], Any]) -> Any:
                self.at_request(process)  # another process may write between a reading and the write that rests on it
                return submit(work)

            journal._submit = after_others
            process.store = self.opened(journal, process.wire, folder=process.host.folder)

    def opened(self, journal: Any, objects: ObjectStore, folder: Path | None = None) -> Store:
        """Compose a store; with `MemoryJournal` a reader that has never seen anything."""
        clock = self.clock

        def patience(total_seconds: float) -> Patience:
            return Patience(total_seconds=total_seconds, clock=clock, sleep=clock.sleep, jitter=lambda: 0.5)

        return Store(
            journal,
            objects,
            KEYS,
            uri="memory:",
            folder=folder,
            derived=DerivedRows(journal.database.execute) if self.database is not None else None,
            write_behind=self.is_bucket,
            patience=patience(6.0),
            draw_nonce=lambda: str(next(self._nonces)),
            now=self.now,
            behind={
                "background": False,
                "patience": patience(1.0),
                "timing": Timing(clock=clock, jitter=lambda: 0.5, stuck_seconds=0.0),
            },
        )

    def fresh(self) -> Store:
        """A machine that reads the bucket without faults and has never seen anything, with everything read in."""
        store = self.opened(MemoryJournal(drains=True), self.bucket)
        assert store.write_behind is not None
        assert store.write_behind.all_readable(TENANT) == ()
        return store

    def keys(self) -> set[str]:
        """Addresses of the subjects whose keys are there."""
        return {info.key.rpartition("/")[2] for info in self.bucket.list("keys/")}

    def tombstones(self) -> set[str]:
        return {info.key.rpartition("/")[2] for info in self.bucket.list("tombstones/")}

    def others(self, process: Process) -> list[Process]:
        return [other for other in self.processes if other is not process and not other.is_dead]

    def recover(self) -> None:
        """Start every process that has died; what its host lost in a power cut is gone."""
        for host in dict.fromkeys(process.host.name for process in self.processes if process.is_dead):
            dead = [process for process in self.processes if process.host.name == host and process.is_dead]
            self.is_quiet = True
            for process in dead:
                with self.running(process):
                    process.store.journal.close()
            if dead[0].host.is_cut:
                torn = self._disks[host].cut_power(self.random)
                if self._object_disk is not None:
                    torn += self._object_disk.cut_power(self.random)
                self.fired["torn write"] += bool(torn)
                dead[0].host.is_cut = False
            for process in dead:
                self.start(process)
                self.note("started", process.name)
            self.is_quiet = False

    def close(self) -> None:
        self.is_quiet = True
        for process in self.processes:
            with self.running(process):
                process.store.journal.close()
        for disk in self._disks.values():
            disk.remove()
        if self.database is not None:
            database.drop(self.database, self._schema)
            self.database.close()

    # -- faults -------------------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Perhaps arm one more fault, and draw at which of its chances it fires. It stays armed until then."""
        if self.random.random() < ARMED_SHARE:
            kind = self.random.choices(list(self.faults), list(self.faults.values()))[0]
            self.armed.setdefault(kind, self.random.choice((0, 0, 0, 1, 2, 3, 5, 8, 13, 21)))

    def is_due(self, *kinds: str) -> str:
        """Return the first of these faults that is armed and fires at this chance, or ""."""
        for kind in kinds:
            if kind in self.armed and not self.is_quiet:
                self.armed[kind] -= 1
                if self.armed[kind] < 0:
                    del self.armed[kind]
                    self.fired[kind] += 1
                    self.note("fault:", kind)
                    return kind
        return ""

    def at_step(self, process: Process) -> None:
        """Fire what needs no call of a port."""
        if clock := self.is_due("clock forward", "clock back"):
            seconds = self.random.choice((30.0, 400.0, 90_000.0))
            process.host.skew_seconds += seconds if clock == "clock forward" else -seconds
        if self.is_due("process fork"):
            process_forks._before()
            process_forks._in_parent()
        if self.is_due("partition"):
            self._partition[process.name] = self.random.randint(3, 25)

    def _ask(self, what: str) -> DiskFault:
        """Choose the fault of one operation of a disk, by the process that is running."""
        process = self.current
        if process.is_dead:
            return "dead"
        match self.is_due("full disk", "disk error", "killed process", "power cut"):
            case "full disk":
                return "ENOSPC"
            case "disk error":
                return "EIO"
            case "":
                return ""
            case fault:
                self._die(process, cut=fault == "power cut")
                return "dead"

    def _die(self, process: Process, *, cut: bool) -> None:
        process.is_dead, process.host.is_cut = True, cut
        for other in self.processes if cut else ():
            other.is_dead = other.is_dead or other.host is process.host

    def at_request(self, process: Process) -> None:
        """A request or a transaction of a process begins: it may have died, or another one goes first."""
        if process.is_dead:
            raise Crashed(process.name)
        if self._busy:  # another process would wait for the locks of a transaction, or of this process
            return
        if self.is_due("other process between"):
            with self.busy() if self.database is not None else nullcontext():
                self.between(process)
        elif fault := self.is_due("killed process", "power cut"):
            self._die(process, cut=fault == "power cut")
        if process.is_dead:
            raise Crashed(process.name)

    def at_answer(self, process: Process) -> None:
        """An answer is there, and the process may die before it knows."""
        if fault := self.is_due("killed process", "power cut"):
            self._die(process, cut=fault == "power cut")
            raise Crashed(process.name)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """A transaction is open meanwhile."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    def is_cut_off(self, process: Process) -> bool:
        """Return whether this request meets a partition."""
        left = self._partition.get(process.name, 0)
        self._partition[process.name] = max(left - 1, 0)
        return left > 0 and not self.is_quiet

    def words_on_disk(self) -> bytes:
        """Everything in the files of the hosts, and in the database's."""
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file() and "-removed" not in str(path)]
        found = b"".join(path.read_bytes() for path in files)
        return found if self.database is None else found + database.bytes_on_disk(self.database, self._schema)

    def at_new_key(self, process: Process) -> None:
        """Let another process go first more often: it may erase what the key is made for."""
        if not self.is_quiet and self.random.random() < NEW_KEY_SHARE:
            self.armed["other process between"] = 0

    def fault_of(self, process: Process, method: Method, key: str) -> StoreFault:
        """Choose the fault of one request."""
        if self.database is not None:
            return PASS
        if self._partition.get(process.name, 0) > 0:
            self._partition[process.name] -= 1
            return StoreFault("dropped" if method == "put" else "error_before")
        if method != "put":
            return StoreFault("error_before") if self.is_due("failed read") else PASS
        fault = self.is_due(*PUT_FAULTS)
        if not fault:
            return PASS
        kind = self.random.choice(PUT_FAULTS[fault])
        if kind == "late" and key.startswith("keys/"):
            self.late.add(key.rpartition("/")[2].removesuffix(".json"))
        return StoreFault(kind, operations=self.random.randint(1, 40), seconds=self.random.uniform(0.2, 8.0))

    def is_stale(self) -> bool:
        return bool(self.is_due("stale list"))

    def is_delete_lost(self, process: Process) -> bool:
        return self._partition.get(process.name, 0) > 0 or bool(self.is_due("failed delete"))

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """No fault fires meanwhile, as where an oracle reads."""
        was, self.is_quiet = self.is_quiet, True
        try:
            yield
        finally:
            self.is_quiet = was

    def heal(self) -> None:
        """No fault from now on."""
        self.is_quiet = True
        self._partition.clear()
        for process in self.processes:
            process.wire.settle()


class Wire(FaultyObjects):
    """The object store as a process reaches it."""

    def __init__(self, world: World, process: Process) -> None:
        super().__init__(
            world.bucket,
            lambda method, key: world.fault_of(process, method, key),
            turn=lambda: world.at_request(process),
            pause=world.clock.sleep,
        )
        self._world, self._process = world, process

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        if not self._world.is_stale():
            yield from super().list(prefix, after=after)
            return
        listed = list(super().list(prefix, after=after))
        newest = sorted(listed, key=lambda info: (info.modified_seconds, info.key))
        hidden = set(newest[-self._world.random.randint(1, 3) :])
        yield from (info for info in listed if info not in hidden)

    def put(self, key: str, body: bytes) -> PutOutcome:
        kind, _, name = key.partition("/")
        doomed = self._world.doomed
        if kind not in ("keys", "tombstones"):
            used = [
                each
                for each in doomed
                if each.encode() in body and is_there(self._world.bucket, f"keys/{TENANT}/{each}.json")
            ]
            self._world.wrong += [f"{key} is written under key {each}, made after its tombstone" for each in used]
        if kind == "keys":
            self._world.at_new_key(self._process)
        outcome = super().put(key, body)
        if kind == "keys" and is_there(self._world.bucket, key) and is_there(self._world.bucket, f"tombstones/{name}"):
            doomed.add(name.rpartition("/")[2].removesuffix(".json"))
        return outcome

    def delete(self, key: str) -> None:
        self._world.at_request(self._process)
        if key.startswith("keys/") and not is_there(self._world.bucket, key.replace("keys", "tombstones", 1)):
            self._world.wrong.append(f"{key} is destroyed before its tombstone stands")
        if self._world.is_delete_lost(self._process):
            if self._world.random.random() < 0.5:
                super().delete(key)
            raise StoreUnavailable(f"{key}: no answer to the delete")
        super().delete(key)


@contextmanager
def simulated_chance(seed: int) -> Iterator[None]:
    """Replace the functions of `secrets` by ones that a seed decides."""
    random = Random(f"secrets {seed}")
    replaced: dict[str, Callable[..., Any]] = {
        "token_bytes": lambda count=32: random.randbytes(count),
        "token_hex": lambda count=32: random.randbytes(count).hex(),
        "randbelow": random.randrange,
        "randbits": random.getrandbits,
    }
    real = {name: getattr(secrets, name) for name in replaced}
    listed, forgetting.entry_points = forgetting.entry_points, _entry_points  # reads every package's file each time
    try:
        for name, function in replaced.items():
            setattr(secrets, name, function)
        yield
    finally:
        forgetting.entry_points = listed
        for name, function in real.items():
            setattr(secrets, name, function)


@cache
def _entry_points(**wanted: str) -> Any:
    return entry_points(**wanted)


@contextmanager
def world_of(seed: int, server: PostgresServer | None = None) -> Iterator[World]:
    """A world in a folder of its own, in memory where the system has one; with `server`, in a schema of its own."""
    folder = Path(tempfile.mkdtemp(prefix="simulation-", dir=SHM if SHM.is_dir() else None))
    try:
        with simulated_chance(seed):
            world = World(seed, folder, server)
            try:
                with database.simulated_time(world):
                    yield world
            finally:
                world.close()
    finally:
        shutil.rmtree(folder)
