"""A store that holds one of everything: sessions with compactions, a fork, segments, governed slices, tombstones.

The journal lies in a folder, the objects in memory, so that a copy of either costs little.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Session
from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.testing import CharTokenizer, FirstLine
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.store.crypto.keyring import Keys, memory_keys
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.names import writers_folder
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.profiles.versions import ProfileVersions
from ctxsteward.store.replication.write_behind import WriteBehind

from ..doubles import holding, stored
from ..profiles.agreed import agreed

CHARS = Counter(CharTokenizer())
TENANTS = ("acme", "beta")
GONE = "gone"
"""A subject of each tenant that was forgotten."""

PROFILE = """\
name: support
persona: You answer for the support desk.
policies:
  refund: {{text: Refunds up to {limit} EUR, value: {limit}, unit: EUR}}
meta:
  m1: {{text: Prefers window seats on trips, sources: [s§1, s§3]}}
  m2: {{text: Reads invoices number {limit} in German, sources: [s§5]}}
"""


def furnish(store: Store) -> None:
    """Fill it; the same in every run but for keys and nonces."""
    for tenant in TENANTS:
        converse(store, tenant)
        govern(store, tenant)
        vault = store.vault(tenant)
        vault.put(GONE, "meta", b"what a forgotten subject said")
        vault.destroy_key(GONE, who="dpo", when="2026-11-22", why="asked")
        store.journal.see(f"tombstones/{tenant}", 1)
    drain(store)


def converse(store: Store, tenant: str) -> None:
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=1_000), summarizer=FirstLine())
    session = store.session("s", tenant=tenant, counter=CHARS, system="Be brief.")
    for n in range(13):
        talk(session, n)
        if n % 4 == 0:
            session.note("plan", f"- step {n}")
            session.pin(str(len(session)), "soft", name=f"pin{n}")
        if n % 3 == 0:
            builder.build(session)
    branch = session.fork(at=30, id="s-branch")
    talk(branch, 90)
    builder.build(branch)
    other = store.session("t", tenant=tenant, counter=CHARS)
    other.append({"role": "user", "content": f"other words of {tenant}"}, id="first", principal="ann")


def talk(session: Session, n: int) -> None:
    """A user's turn, a tool call, its result and an answer."""
    call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": f'{{"n": {n}}}'}}
    session.append({"role": "user", "content": f"{session.tenant} asks {n}: " + "why " * (n % 7)}, id=f"u{n}")
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"row {n} " * 5})
    session.append({"role": "assistant", "content": f"answer {n} 你好"}, id=f"a{n}")


def govern(store: Store, tenant: str) -> None:
    versions = ProfileVersions(store, "support", tenant)
    snapshots = Snapshots(store, tenant)
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(system_tokens=2_000, meta_tokens=2_000))
    writers = store.chain(writers_folder(tenant, "support"), tenant=tenant)
    writer = None
    for number, limit in enumerate((100, 150, 200), start=1):
        writer = writers.append(writer, {"kind": "lease", "holder": tenant, "round": number}, epoch=number)
        commit(store, limit, tenant=tenant)
        snapshots.take(versions.newest(), builder, who="ops", when="2026-11-22")


def commit(store: Store, *limits: int, tenant: str = "acme") -> None:
    """A version of the profile for each limit of its refunds."""
    versions = ProfileVersions(store, "support", tenant)
    for limit in limits:
        profile = Profile.from_yaml(PROFILE.format(limit=limit))
        rests_on = agreed(store, profile, who="ops", when="2026-11-22", tenant=tenant) if versions.head() else None
        versions.commit(profile, who="ops", why="a new limit", when="2026-11-22", promotion=rests_on)


def drain(store: Store) -> None:
    """Carry the journal into the object store, in several segments, without a thread."""
    behind = WriteBehind(store.journal, store.objects, store.keys, store.vault)
    behind.drainer.run_once()
    for tenant in TENANTS:
        talk(store.session("s", tenant=tenant, counter=CHARS), 95)
        behind.drainer.run_once()
        talk(store.session("s", tenant=tenant, counter=CHARS), 96)
    behind.drainer.run_once()
    assert store.journal.waiting() == [], behind.status()


class Original:
    """A furnished store, and copies of it to be damaged."""

    def __init__(self, folder: Path, *, drains: bool = True) -> None:
        self.folder = folder
        self.keys: Keys = memory_keys(Random(1).randbytes)  # the same addresses in every run
        self.objects = MemoryObjects()
        self.journal = FileJournal(folder / "original", drains=drains)
        self.store = Store(self.journal, self.objects, self.keys, uri="memory:", draw_nonce=lambda: "000000000")
        furnish(self.store)
        with closing(sqlite3.connect(folder / "original" / "journal.sqlite")) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.erased = {note.field for note in fsck(self.store, read_data=True).notes}
        self._copies = 0

    def bodies(self) -> dict[str, bytes]:
        """All objects by key."""
        return stored(self.objects)

    def with_objects(self, bodies: dict[str, bytes]) -> Store:
        """The same journal over other objects."""
        return Store(self.journal, holding(bodies), self.keys, uri="memory:")

    def journal_file(self) -> Path:
        """A copy of the journal's file, in a folder of its own."""
        self._copies += 1
        folder = self.folder / f"copy{self._copies}"
        folder.mkdir()
        return Path(shutil.copy(self.folder / "original" / "journal.sqlite", folder / "journal.sqlite"))

    def with_journal(self, file: Path, bodies: dict[str, bytes] | None = None, *, drains: bool = False) -> Store:
        """Another journal over the same objects, or over these; close its journal."""
        objects = holding(self.bodies() if bodies is None else bodies)
        return Store(FileJournal(file.parent, drains=drains), objects, self.keys, uri="memory:")

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "original" / "journal.sqlite")) as db:
            return db.execute(query, values).fetchall()

    def close(self) -> None:
        self.store.close()
