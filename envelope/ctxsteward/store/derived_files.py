"""Caches derived from sessions: files ``<journal's folder>/<kind>/<tenant>/…``, or, with a journal in a database, rows
that have the indexes of recall and the summaries of cards.

A cache that is lost, torn, of another session or of another byte order is derived again. An erasure deletes all caches
of the tenant (`DerivedFiles`), except those that this process has open, which have an eraser of their own.

A `DerivedFile` belongs to one session. It contains words of the session, so its mode is 0600. It carries a code under
the tenant's key, so that a program which can write files but has no key cannot forge one. An erasure makes a new
generation of the log, then deletes the files. A writer that has not seen the erasure yet checks the generation again
after writing, and removes its file.
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
"""Folder of what recall and cards derive from sessions."""
DERIVED_FOLDERS = ("ledgers", INDEX_FOLDER)
"""Folders in the journal's folder; each has one folder per tenant."""
_CODE_DIGITS = 64


class DerivedFiles:
    """Eraser of one tenant's derived files, except the `held` ones, which have an eraser of their own."""

    place = "derived files: indexes of recall, cards, ledgers"

    def __init__(self, folder: Path, tenant: str, held: Iterable[Path] = ()) -> None:
        self._folders = [folder / name / part_of(tenant) for name in DERIVED_FOLDERS]
        self._held = tuple(str(path.resolve()) for path in held)

    def __call__(self, gone: Sequence[Deletion]) -> int:
        """Delete the files and return their number."""
        found = [path for folder in self._folders for path in sorted(folder.rglob("*")) if path.is_file()]
        doomed = [path for path in found if not str(path.resolve()).startswith(self._held)]
        for path in doomed:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(f"{path}: it cannot be deleted: {error}; delete it by hand and repeat") from error
        return len(doomed)


class DerivedFolder:
    """Files of one tenant's session states. Raises `OSError` if a file is missing or cannot be written."""

    def __init__(self, folder: Path, tenant: str) -> None:
        self._folder = folder / INDEX_FOLDER / part_of(tenant)

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def write(self, name: str, state: bytes) -> None:
        path = self._folder / name
        new = path.with_name(f"{name}.{os.getpid()}-{threading.get_ident()}")
        try:
            for folder in (self._folder.parent, self._folder):  # not the journal's folder: if that is gone, fail
                with suppress(FileExistsError):
                    folder.mkdir()
                    folder.chmod(0o700)  # under any umask
            with open(new, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(state)
            new.replace(path)
        except OSError:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


Execute = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Run a statement with its values, possibly several times, and return its rows."""


class DerivedRows:
    """Session states in a database that all machines share, so that each can continue another's work."""

    place = "derived rows: indexes of recall, cards"

    def __init__(self, execute: Execute, tenant: str = "") -> None:
        """`execute` is the method of a `PostgresDatabase`."""
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
        """Delete all rows of the tenant and return their number."""
        return int(self._execute(_ROWS_DELETED.format("tenant = %s"), (self._tenant,))[0][0])


DerivedPlace = Path | DerivedRows
"""Place of derived data: the journal's folder, or a database."""
_ROWS_DELETED = """
WITH gone AS (DELETE FROM derived WHERE {} RETURNING 1), noted AS (
  INSERT INTO unscrubbed SELECT DISTINCT 'derived', '', '' FROM gone ON CONFLICT DO NOTHING
) SELECT count(*) FROM gone
"""


class DerivedFile:
    """Named states derived from one session. Safe with threads and processes."""

    def __init__(
        self, place: DerivedPlace, key: SessionKey, address_key: AddressKey, is_current: Callable[[], bool]
    ) -> None:
        """`is_current` returns whether the log is unchanged since the caller read it; it is called after each write."""
        self._states = place.of(key.tenant) if isinstance(place, DerivedRows) else DerivedFolder(place, key.tenant)
        self._key, self._code_key, self._is_current = key, address_key, is_current

    @cached_property
    def _session(self) -> str:
        """Code in place of the session's name, which may be personal. Made on demand: most turns need none."""
        return code(self._code_key, self._key.session.encode())[:32]

    def read(self, name: str) -> list[Any] | None:
        """Return the state written last, or None if there is no valid one."""
        try:
            stored = self._states.read(self._name(name))
        except (OSError, StoreError):
            return None
        body = stored[_CODE_DIGITS:]
        return unpacked(body) if self._code(name, body) == stored[:_CODE_DIGITS] else None

    def write(self, name: str, state: list[Any]) -> bool:
        """Replace the state; return False if that failed, or the log was replaced meanwhile.

        A state consists of lists, numbers, texts, None, and arrays of numbers.
        """
        body = packed(state)
        try:
            with uncut():
                self._states.write(self._name(name), self._code(name, body) + body)
                if self._is_current():
                    return True
        except (OSError, StoreError):  # of the disk or the journal; the state will be derived again
            pass
        with suppress(OSError, StoreError):
            self._states.remove(self._name(name))
        return False

    def _name(self, name: str) -> str:
        return f"{self._session}.{part_of(name)}"

    def _code(self, name: str, body: bytes) -> bytes:
        return code(self._code_key, f"{self._session}.{name} {byteorder}\0".encode() + body).encode()


def packed(state: list[Any]) -> bytes:
    """Encode a state: the arrays of numbers as raw bytes, everything else as JSON.

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
    """Decode the bytes that `packed` returned."""
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
