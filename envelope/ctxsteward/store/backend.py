"""`Backend`: a store as everything below sessions sees it, with its journal, its object store and its keys.

Profiles, facts, erasure and maintenance take a `Backend`; the envelope's `Store` is one, with sessions on top.

And where one lies: the journal, the objects and the keys that a URI names, opened (`open_location`).


    file:PATH              one folder: objects, keys and, unless it is named elsewhere, the journal
    s3://BUCKET/PREFIX     a bucket (see `objects.s3_location`), with a journal on the local disk
    postgresql://USER@HOST/DATABASE?schema=NAME     a database that several machines share (see `postgres_database`)
    memory:                nothing lasts

A store in PostgreSQL has its journal there, and its objects, too, unless the URI names a bucket for them
(``objects=s3://BUCKET/PREFIX``, with ``&`` written as ``%26``). All machines need the same keys, so none are made on
one of them unasked: pass `keys`, or name a folder that all of them have (``keys=FOLDER``). What is derived from
sessions lies in the database; `folder` is only where this machine has ledgers.

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
from .replication.drain import Asker

if TYPE_CHECKING:
    from .journal.postgres import PostgresJournal
    from .objects.s3 import S3Objects
    from .replication.write_behind import WriteBehind

JOURNAL_FOLDER = ".ctxsteward/journal"
"""Of a store that is no folder."""
QUEUE_BYTES = 1 << 30
PROBE_SECONDS = 3.0


class Backend:
    """Journal, object store and keys, and what is opened with them."""

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
        """Of the journal, and of what can be derived again (`derived_files`); None: nothing of it is on disk."""
        self.derived_rows: DerivedRows | None = derived
        """Where what is derived from sessions is kept instead."""
        self.findings: tuple[Finding, ...] = ()
        """What was noticed of the store as a whole when it was opened; every session opened for writing has it, too."""
        if journal.missing:
            self.findings = (Finding(kind="journal_missing", field="journal", text=journal.missing),)
        self.erasers: list[Eraser] = []
        """Told what was forgotten here: whatever holds text derived from sessions beside the store adds itself."""
        self.appended: list[Listener] = []
        """Told of every append by a session that was opened here."""
        self.write_behind: WriteBehind | None = None
        """Where the journal lies outside the store; also what `erasure.forget` takes as `elsewhere`."""
        self._vaults: dict[str, Vault] = {}
        self._checked: set[str] = set()

    def vault(self, tenant: str = "default") -> Vault:
        """The tenant's encrypted content."""
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
        """How many erasures this tenant has had: what a process remembers is valid as long as the number stays."""
        return erasures(self.journal, tenant)

    def check_keys(self, tenant: str, *, write: bool) -> None:
        """Raise `StoreError` where the tenant was written with other keys; asked once."""
        if tenant not in self._checked:
            check_keys(self.objects, self.keys, tenant, write=write, patience=self.patience)
            if write:
                self._checked.add(tenant)

    def fresh_vault(self, tenant: str) -> Vault:
        """The same content through a vault that remembers no keys: what a check or a collection reads it with."""
        return Vault(self.objects, self.keys, tenant, patience=self.patience)

    def chain(self, folder: str, *, tenant: str) -> Chain:
        """A chain of this tenant's; see `names` for the folders."""
        key = self.keys.address_key(tenant)
        return Chain(self.objects, folder, key, witness=self.journal, patience=self.patience)

    def derived_text_erasers(self) -> tuple[Eraser, ...]:
        """All erasers to call at an erasure; the envelope's `Store` adds those of card indexes that nobody has open."""
        return tuple(self.erasers)

    def replay(self, key: SessionKey, length: int) -> None:
        """Read this much of a log as its readers do; raises what they raise. Without readers nothing is read."""


# -- where a store lies ----------------------------------------------------------------------------------------


_PATH = re.compile(r"[.~/\\]|[^:]*/")


def store_uri(text: str | PathLike[str]) -> str:
    """Return the URI that a path or URI means.

    >>> store_uri("./desk"), store_uri("data/desk"), store_uri("file:desk"), store_uri("desk")
    ('file:./desk', 'file:data/desk', 'file:desk', 'desk')
    """
    if isinstance(text, PathLike) or _PATH.match(text):
        return f"file:{Path(text).expanduser()}" if str(text).startswith("~") else f"file:{fspath(text)}"
    return text


def local_folder(uri: str, journal: str | Path | None = None) -> Path:
    """The folder on this machine where a store of this URI, or its journal, lies; nothing is opened."""
    if journal is not None:
        return Path(journal)
    scheme, _, rest = store_uri(uri).partition(":")
    return Path(rest) if scheme == "file" and rest else Path(JOURNAL_FOLDER)


class StoreParts(NamedTuple):
    """What a store is made of."""

    uri: str
    journal: Journal
    objects: ObjectStore
    keys: Keys
    folder: Path | None = None
    """Of the journal, or where this machine keeps what it derives."""
    drains: Mapping[str, Any] | None = None
    """Arguments of the `WriteBehind` that carries the journal into the objects; None: it lies beside them."""
    derived: DerivedRows | None = None
    """Where what is derived from sessions is kept; None: in the folder."""
    cards: str | None = None
    """Where this store has its context cards; None: in the folder."""


def open_location(
    uri: str | PathLike[str],
    *,
    journal: str | Path | None = None,
    keys: Keys | None = None,
    queue_bytes: int = QUEUE_BYTES,
) -> StoreParts:
    """Open what the URI names; `journal` is a folder, and `keys` are files beside the objects or the journal."""
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
            probe = None if _answers(bucket.probe) else bucket.probe
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
    """The bucket of ``s3://BUCKET/PREFIX``; raises `InputError`, also where the extra ``s3`` is not installed."""
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
    return StoreParts(
        place.place, own, objects, keys, folder, derived=DerivedRows(database.execute), cards=place.cards_uri
    )


def _check_keys(journal: PostgresJournal, objects: ObjectStore, keys: Keys) -> None:
    """Raise `StoreError` where the first tenant was written with other keys; another one's are checked at its sessions.

    A check that was altered is for `fsck` to name: there are rows that these keys do fit.
    """
    first = next(iter(objects.list("tenants/")), None)
    part = "~" if first is None else first.key.split("/")[1]
    if part.startswith("~"):  # no name, or one that cannot be read back from it
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
    """The bucket beside a database; it must answer, as nothing is written into it later."""
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


def _answers(probe: Callable[[], None]) -> bool:
    """Whether the endpoint answered in time and keeps the first of two writes; raises `InputError` where it does not.

    Where it does not answer the store opens all the same, and the write-behind asks before it writes anything.
    """
    try:
        Asker("its conditional writes", 1, late="the object store did not answer").ask(lambda _: probe(), PROBE_SECONDS)
    except StoreError:
        return False
    return True
