"""Files beside the journal that can be derived again: ``<journal's folder>/<kind>/<tenant>/…``; with a journal in a
database, what recall has read of sessions lies in rows there.

They are caches. Whatever is wrong with one (lost, torn, another's, of another machine's byte order), it is derived
again; whatever an erasure may concern, all of the tenant's are deleted (`DerivedFiles`), unless this process has one
open whose own eraser sees to it.

A `DerivedFile` is one of a session's. It holds words of the session, so it is written for its owner alone, under a code
of the tenant's key (who can write files here, but has no key, cannot make one up), and it is gone with the session: an
erasure makes a new generation of the log, then deletes the files. A writer that did not know of it yet looks once more
behind its own writing, and takes it back.
"""

from __future__ import annotations

import json
import os
import threading
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from sys import byteorder
from typing import Any

from ctxsteward.schemas import StoreError

from .crypto.keyring import AddressKey, code
from .deadline import uncut
from .journal.erasures import Deletion
from .journal.port import SessionKey
from .names import part_of

INDEX_FOLDER = "indexes"
"""What recall has read of sessions."""
DERIVED_FOLDERS = ("ledgers", INDEX_FOLDER)
"""Beside the journal; each has a folder for every tenant."""
_CODE_DIGITS = 64


class DerivedFiles:
    """An eraser of one tenant's derived files, except those that have an eraser of their own."""

    place = "derived files: indexes of recall, ledgers"

    def __init__(self, folder: Path, tenant: str, held: Iterable[Path] = ()) -> None:
        self._folders = [folder / name / part_of(tenant) for name in DERIVED_FOLDERS]
        self._held = tuple(str(path.resolve()) for path in held)

    def __call__(self, gone: Sequence[Deletion]) -> int:
        """Delete them; how many files that were."""
        found = [path for folder in self._folders for path in sorted(folder.rglob("*")) if path.is_file()]
        doomed = [path for path in found if not str(path.resolve()).startswith(self._held)]
        for path in doomed:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(f"{path}: it cannot be deleted: {error}; delete it by hand and repeat") from error
        return len(doomed)


class DerivedFolder:
    """One session's states as files; `OSError` where there is none, or it cannot be written."""

    def __init__(self, folder: Path, tenant: str) -> None:
        self._folder = folder / INDEX_FOLDER / part_of(tenant)

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def write(self, name: str, state: bytes) -> None:
        path = self._folder / name
        new = path.with_name(f"{name}.{os.getpid()}-{threading.get_ident()}")
        try:
            for folder in (self._folder.parent, self._folder):  # not the journal's: where that is gone, nothing is kept
                folder.mkdir(exist_ok=True, mode=0o700)
            with open(new, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(state)
            new.replace(path)
        except OSError:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


Execute = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a statement with its values, once or more often; its rows."""


class DerivedRows:
    """The same in a database that all machines share: any of them goes on where another one was."""

    place = "derived rows: indexes of recall"

    def __init__(self, execute: Execute, tenant: str = "") -> None:
        """`execute` is that of a `PostgresDatabase`."""
        self._execute, self._tenant = execute, tenant

    def of(self, tenant: str) -> DerivedRows:
        return DerivedRows(self._execute, tenant)

    def read(self, name: str) -> bytes:
        query = "SELECT body FROM derived WHERE tenant = %s AND name = %s"
        rows = self._execute(query, (self._tenant, name))
        if not rows:
            raise FileNotFoundError(name)
        return bytes(rows[0][0])

    def write(self, name: str, state: bytes) -> None:
        self._execute(
            "INSERT INTO derived VALUES (%s, %s, %s) ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body",
            (self._tenant, name, state),
        )

    def remove(self, name: str) -> None:
        self._execute(_ROWS_DELETED.format("tenant = %s AND name = %s"), (self._tenant, name))

    def __call__(self, gone: Sequence[Deletion]) -> int:
        """An eraser of all of the tenant's; how many there were."""
        return int(self._execute(_ROWS_DELETED.format("tenant = %s"), (self._tenant,))[0][0])


DerivedPlace = Path | DerivedRows
"""The journal's folder, or a database."""
_ROWS_DELETED = """
WITH gone AS (DELETE FROM derived WHERE {} RETURNING 1), noted AS (
  INSERT INTO unscrubbed SELECT DISTINCT 'derived', '', '' FROM gone ON CONFLICT DO NOTHING
) SELECT count(*) FROM gone
"""


class DerivedFile:
    """What was derived from one session, in as many parts as have a name; safe with threads and processes."""

    def __init__(
        self, place: DerivedPlace, key: SessionKey, address_key: AddressKey, is_current: Callable[[], bool]
    ) -> None:
        """`is_current`: whether the log still is what the caller has read; asked behind each writing."""
        self._states = place.of(key.tenant) if isinstance(place, DerivedRows) else DerivedFolder(place, key.tenant)
        self._key, self._code_key, self._is_current = key, address_key, is_current

    @cached_property
    def _session(self) -> str:
        """Stands for the session's name, which may be personal; most turns neither read nor write."""
        return code(self._code_key, self._key.session.encode())[:32]

    def read(self, name: str) -> list[Any] | None:
        """The state that was written last; None where there is none, or something else."""
        try:
            stored = self._states.read(self._name(name))
        except (OSError, StoreError):
            return None
        body = stored[_CODE_DIGITS:]
        return unpacked(body) if self._code(name, body) == stored[:_CODE_DIGITS] else None

    def write(self, name: str, state: list[Any]) -> bool:
        """Replace it; False where that could not be done, or the log has been replaced meanwhile.

        A state is made of lists, numbers, texts, None, and arrays of numbers.
        """
        body = packed(state)
        try:
            with uncut():
                self._states.write(self._name(name), self._code(name, body) + body)
                if self._is_current():
                    return True
        except (OSError, StoreError):  # the disk's, or the journal's: it is derived again
            pass
        with suppress(OSError, StoreError):
            self._states.remove(self._name(name))
        return False

    def _name(self, name: str) -> str:
        return f"{self._session}.{part_of(name)}"

    def _code(self, name: str, body: bytes) -> bytes:
        return code(self._code_key, f"{self._session}.{name} {byteorder}\0".encode() + body).encode()


def packed(state: list[Any]) -> bytes:
    """A state as bytes: its arrays of numbers as they are, the rest as JSON.

    >>> unpacked(packed([1, "two", None, array("H", (3, 4))]))
    [1, 'two', None, array('H', [3, 4])]
    """
    columns: list[array[int]] = []

    def column(value: array[int]) -> dict[str, Any]:
        columns.append(value)
        return {value.typecode: len(value) * value.itemsize}

    head = json.dumps(state, default=column, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return b"".join((len(head).to_bytes(8, "big"), head, *(column.tobytes() for column in columns)))


def unpacked(data: bytes) -> list[Any]:
    """The inverse of `packed`, of what that has written."""
    at = 8 + int.from_bytes(data[:8], "big")

    def column(value: dict[str, int]) -> array[int]:
        nonlocal at
        ((typecode, size),) = value.items()
        found = array(typecode)
        found.frombytes(data[at : at + size])
        at += size
        return found

    state: list[Any] = json.loads(data[8:at].decode("utf-8", "surrogatepass"), object_hook=column)
    return state
