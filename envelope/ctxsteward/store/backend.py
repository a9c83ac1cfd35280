"""`Backend`: the journal, object store and keys of a store; `open_location` opens them by URI.

Profiles, facts, erasure and maintenance work on a `Backend`. The envelope's `Store` is a `Backend` with sessions.

A URI has one of these forms:

    file:PATH              one folder with objects, keys and, unless `journal` names another folder, the journal
    s3://BUCKET/PREFIX     a bucket (see `objects.s3_location`), with a journal on the local disk
    postgresql://USER@HOST/DATABASE?schema=NAME     a database that several machines share (see `postgres_database`)
    memory:                a store that is gone when the process ends

A store in PostgreSQL keeps its journal in the database, and also its objects, unless the URI names a bucket for them
(``objects=s3://BUCKET/PREFIX``, with ``&`` written as ``%26``). All machines need the same keys, so no machine makes
its own: pass `keys`, or name a folder that all machines share (``keys=FOLDER``). Data derived from sessions is kept in
the database too; `folder` then contains only the ledgers of this machine.

Raises `InputError`, `StoreError`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from ctxsteward.schemas import Finding, InputError, StoreError
from ctxsteward.schemas.arguments import check_argument
from ctxsteward.schemas.errors import Damaged, UnsupportedVersion, shown_uri

from .crypto.hash_chain import Chain
from .crypto.keyring import Keys, check_keys, file_keys, memory_keys
from .crypto.vault import Vault
from .derived_files import DerivedRows
from .journal.erasures import Eraser, erasures
from .journal.log import Listener
from .journal.port import Journal, SessionKey
from .names import checked_name
from .objects.port import ObjectStore, Patience
from .replication.breaker import Asker

if TYPE_CHECKING:
    from .journal.postgres import PostgresJournal
    from .objects.s3 import S3Objects
    from .replication.write_behind import WriteBehind

JOURNAL_FOLDER = ".ctxsteward/journal"
"""Default journal folder of a store that is not itself a folder."""
QUEUE_BYTES = 1 << 30
PROBE_SECONDS = 3.0


class Backend:
    """The journal, object store and keys of one store; opens its vaults and chains."""

    def __init__(
        self,
        journal: Journal,
        objects: ObjectStore,
        keys: Keys,
        *,
        patience: Patience | None = None,
        folder: Path | None = None,
        derived: DerivedRows | None = None,
    ) -> None:
        self.journal = journal
        self.objects = objects
        self.keys = keys
        self.patience: Patience = patience or Patience()
        self.folder = folder
        """Folder of the journal and of derived files (`derived_files`); None if they are not on disk."""
        self.derived_rows: DerivedRows | None = derived
        """Database rows that replace derived files, for a store in PostgreSQL."""
        self.findings: tuple[Finding, ...] = ()
        """Findings about the whole store from its opening; every session that is opened for writing repeats them."""
        if journal.missing:
            self.findings = (Finding(kind="journal_missing", field="journal", text=journal.missing),)
        self.erasers: list[Eraser] = []
        """Called at each erasure. A component that keeps text derived from sessions outside the store adds itself."""
        self.appended: list[Listener] = []
        """Called after every append by a session of this store."""
        self.write_behind: WriteBehind | None = None
        """Set if the journal is drained into the object store; `erasure.forget` takes it as `elsewhere`."""
        self._vaults: dict[str, Vault] = {}
        self._checked: set[str] = set()

    def vault(self, tenant: str = "default") -> Vault:
        """Return the vault with the tenant's encrypted content."""
        vault = self._vaults.get(tenant)
        if vault is None:
            vault = Vault(
                self.objects,
                self.keys,
                checked_name("tenant", tenant),
                patience=self.patience,
                erasures=partial(self.erasures, tenant),
            )
            vault = self._vaults.setdefault(tenant, vault)
        return vault

    def erasures(self, tenant: str) -> int:
        """Return the number of this tenant's erasures; a process must drop its caches when the number changes."""
        return erasures(self.journal, tenant)

    def check_keys(self, tenant: str, *, write: bool) -> None:
        """Raise `StoreError` if the tenant was written with other keys. With `write`, success is cached."""
        if tenant not in self._checked:
            check_keys(self.objects, self.keys, tenant, write=write, patience=self.patience)
            if write:
                self._checked.add(tenant)

    def fresh_vault(self, tenant: str) -> Vault:
        """Return a new vault without cached keys, for checks and garbage collection."""
        return Vault(self.objects, self.keys, tenant, patience=self.patience)

    def chain(self, folder: str, *, tenant: str) -> Chain:
        """Return the tenant's chain in this folder; `names` makes the folder names."""
        key = self.keys.address_key(tenant)
        return Chain(self.objects, folder, key, witness=self.journal, patience=self.patience)

    def derived_text_erasers(self) -> tuple[Eraser, ...]:
        """Return all erasers to call at an erasure; the envelope's `Store` adds those of summaries made ahead."""
        return tuple(self.erasers)

    def replay(self, key: SessionKey, length: int) -> None:
        """Read the first `length` records as a session does, and raise its errors. A plain backend reads nothing."""


# -- opening a store by its URI --------------------------------------------------------------------------------


_PATH = re.compile(r"[.~/\\]|[^:]*/")


def store_uri(text: str | PathLike[str]) -> str:
    """Return the store URI for a path or URI.

    >>> store_uri("./desk"), store_uri("data/desk"), store_uri("file:desk"), store_uri("desk")
    ('file:./desk', 'file:data/desk', 'file:desk', 'desk')
    """
    if isinstance(text, PathLike) or _PATH.match(text):
        return f"file:{Path(text).expanduser()}" if str(text).startswith("~") else f"file:{fspath(text)}"
    return text


def local_folder(uri: str, journal: str | Path | None = None) -> Path:
    """Return the local folder of the store with this URI, or of its journal. Nothing is opened."""
    if journal is not None:
        return Path(journal)
    scheme, _, rest = store_uri(uri).partition(":")
    return Path(rest) if scheme == "file" and rest else Path(JOURNAL_FOLDER)


class StoreParts(NamedTuple):
    """The opened parts of a store."""

    uri: str
    journal: Journal
    objects: ObjectStore
    keys: Keys
    folder: Path | None = None
    """Folder of the journal, or of this machine's ledgers if the journal is in a database."""
    drains: Mapping[str, Any] | None = None
    """Arguments of the `WriteBehind` that drains the journal into the objects; None if nothing is drained."""
    derived: DerivedRows | None = None
    """Database rows for data derived from sessions; None if it is kept in `folder`."""


def open_location(
    uri: str | PathLike[str],
    *,
    journal: str | Path | None = None,
    keys: Keys | None = None,
    queue_bytes: int = QUEUE_BYTES,
) -> StoreParts:
    """Open the store at a URI or path; `journal` is a folder. Default `keys` are files beside objects or journal."""
    if not isinstance(uri, (str, PathLike)):
        raise InputError(f"a store is opened by a URI or a path, not {type(uri).__name__}; write file:PATH")
    uri = store_uri(uri)
    check_argument("journal", journal, (str, PathLike), "pass the path of a folder", optional=True)
    check_argument("keys", keys, Keys, "pass MasterKeys(secret), or file_keys(folder)", optional=True)
    check_argument("queue_bytes", queue_bytes, int, "pass a number of bytes")
    if queue_bytes < 1:
        raise InputError(f"queue_bytes is {queue_bytes}; pass a number of bytes, at least 1")
    scheme, separator, rest = uri.partition(":")
    if scheme == "memory" and separator and not rest and journal is None:
        from .journal.memory import MemoryJournal
        from .objects.memory import MemoryObjects

        return StoreParts(uri, MemoryJournal(), MemoryObjects(), keys or memory_keys())
    if scheme == "file" and rest:
        from .journal.sqlite import FileJournal
        from .objects.file import FileObjects

        root = Path(rest)
        objects, keys = FileObjects(root / "objects"), keys or file_keys(root / "keys")
        if journal is not None and Path(journal).resolve() != root.resolve():
            return _drained(uri, objects, Path(journal), keys, queue_bytes)
        around = (root / "objects", root / "keys")

        def has_files() -> bool:
            return any(files for folder in around for _, _, files in os.walk(folder))

        own = FileJournal(root, address_key=keys.address_key, inhabited=has_files)
        return StoreParts(uri, own, objects, keys, root)
    if scheme == "s3" and rest.startswith("//"):
        folder = Path(JOURNAL_FOLDER if journal is None else journal)
        bucket = open_bucket(uri)
        try:
            probe = None
            try:
                asker = Asker("its conditional writes", 1, late="the object store did not answer")
                asker.ask(lambda _: bucket.probe(), PROBE_SECONDS)
            except StoreError:  # no answer in time: the store opens, and the write-behind probes before its first write
                probe = bucket.probe
            return _drained(uri, bucket, folder, keys or file_keys(folder / "keys"), queue_bytes, probe)
        except BaseException:
            bucket.close()
            raise
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        return _in_postgres(uri, journal, keys)
    raise InputError(
        f"unknown store URI {shown_uri(uri)!r}; use ./PATH, file:PATH, s3://BUCKET/PREFIX, "
        "postgresql://USER@HOST/DATABASE or memory: (which has no journal)"
    )


def open_bucket(uri: str) -> S3Objects:
    """Open the bucket ``s3://BUCKET/PREFIX``. Raises `InputError`, also if the extra ``s3`` is not installed."""
    try:
        from .objects.s3 import S3Objects
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(("boto3", "botocore")):
            raise
        raise InputError(f"{uri:.200} needs boto3: pip install 'ctxsteward[s3]'") from error
    return S3Objects.open(uri)


def _in_postgres(uri: str, journal: str | Path | None, keys: Keys | None) -> StoreParts:
    try:
        from .postgres_database import SCHEMA, PostgresDatabase, PostgresUri
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("psycopg"):
            raise
        raise InputError("a store in PostgreSQL needs psycopg: pip install 'ctxsteward[postgres]'") from error
    from .journal.postgres import PostgresJournal
    from .objects.postgres import PostgresObjects

    place = PostgresUri.parse(uri, schema=SCHEMA)
    if keys is None and place.keys is None:
        raise InputError(
            f"{place.place}: its machines need the same keys: set CTXSTEWARD_MASTER_KEY for commands, pass "
            "`keys=MasterKeys.from_environment(os.environ)` to `open_store`, or name a folder that all of them have "
            "(?keys=FOLDER)"
        )
    keys = keys or file_keys(Path(place.keys or ""))
    database = PostgresDatabase(place)
    try:
        own = PostgresJournal(database, address_key=keys.address_key)
        objects = PostgresObjects(database) if place.objects is None else _bucket(place.objects)
        _check_keys(own, objects, keys)
    except BaseException:
        database.close()
        raise
    folder = Path(JOURNAL_FOLDER if journal is None else journal)
    return StoreParts(place.place, own, objects, keys, folder, derived=DerivedRows(database.execute))


def _check_keys(journal: PostgresJournal, objects: ObjectStore, keys: Keys) -> None:
    """Raise `StoreError` if the first tenant was written with other keys; a session checks those of its own tenant.

    An altered check object raises nothing if the keys fit the tenant's rows: `fsck` reports the alteration.
    """
    first = next(iter(objects.list("tenants/")), None)
    part = "~" if first is None else first.key.split("/")[1]
    if part.startswith("~"):  # no tenant, or a hashed name, which cannot be turned back into the tenant's
        return
    tenant = unquote(part)
    try:
        check_keys(objects, keys, tenant, write=False)
    except (Damaged, UnsupportedVersion):
        return
    except StoreError:
        if not journal.fits(tenant):
            raise


def _bucket(uri: str) -> ObjectStore:
    """Open the bucket of a store in PostgreSQL. It must answer now: objects are written to it without a queue."""
    if not uri.startswith("s3://"):
        raise InputError(
            f"objects {shown_uri(uri)!r} are nowhere that several machines reach; write objects=s3://BUCKET/PREFIX"
        )
    bucket = open_bucket(uri)
    try:
        bucket.probe()
    except BaseException:
        bucket.close()
        raise
    return bucket


def _drained(
    uri: str,
    objects: ObjectStore,
    folder: Path,
    keys: Keys,
    queue_bytes: int,
    probe: Callable[[], None] | None = None,
) -> StoreParts:
    from .journal.sqlite import FileJournal

    journal = FileJournal(folder, drains=True, queue_bytes=queue_bytes, address_key=keys.address_key)
    return StoreParts(uri, journal, objects, keys, folder, {"lock_path": folder / "drain.lock", "probe": probe})
