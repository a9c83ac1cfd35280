"""What leaves a ledger: sessions and principals that were forgotten, here or elsewhere, and do not come back.

It is told by `store.erasers` when something is forgotten in this process, and asks the tombstones when it is opened.
A process that has it not open deletes its file (`envelope.derived_files`), and it is made anew from artifacts.
Deleted rows are overwritten, and the file is rewritten at the end (`Database.scrub`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope.erasers import Gone, Told
from ctxsteward.schemas import InputError

from ..artifacts.keeping import Artifacts
from .database import Database
from .index import Index
from .uses import Uses

_EVERYBODY = ""
"""In the list of what was erased: the whole session."""


class _Held(NamedTuple):
    address: str
    session: str
    principals: tuple[str, ...]


class Leaving:
    """Takes out what was forgotten."""

    def __init__(self, database: Database, index: Index, uses: Uses, artifacts: Artifacts, tenant: str) -> None:
        self._db, self._index, self._uses, self._artifacts, self._tenant = database, index, uses, artifacts, tenant

    @property
    def path(self) -> Path:
        """The file that is in order once this was told."""
        return self._db.path

    def __call__(self, gone: Sequence[Gone]) -> int:
        """An eraser, as `store.erasers` has them; how many observations left."""
        pairs = [(one.session, one.principal) for one in gone if one.tenant == self._tenant]
        return self._take_out(pairs) if pairs else 0

    def withdraw(self, session: str | None, principal: str | None, told: Told | None) -> int:
        if session is None and principal is None:
            raise InputError("nothing to withdraw: name a session, a principal, or both")
        held = [one for one in self._held(session) if principal is None or principal in one.principals]
        pairs = [(one.session, principal) for one in held] or ([(session, principal)] if session else [])
        if told is not None:
            for name in sorted({name for name, _ in pairs}):
                people = {who for one in held if one.session == name for who in one.principals}
                self._artifacts.bury(
                    name, tuple(sorted(people)) if principal is None else (principal,), **told._asdict()
                )
                if principal is None:
                    self._artifacts.bury(name, (), **told._asdict())
        return self._take_out(sorted(set(pairs), key=repr))

    def catch_up(self) -> int:
        forgotten = self._artifacts.forgotten()
        if not forgotten:
            return 0
        pairs = {
            (one.session, principal)
            for one in self._held(None)
            for principal in (None, *one.principals)
            if self._artifacts.is_among(forgotten, one.session, principal)
        }
        self._uses.withdraw(forgotten)
        return self._take_out(sorted(pairs, key=repr)) if pairs else 0

    def _take_out(self, pairs: Collection[tuple[str, str | None]]) -> int:
        left = 0
        with self._db.writing():
            for session, principal in pairs:
                self._db.run("INSERT OR IGNORE INTO erased VALUES (?, ?)", session, principal or _EVERYBODY)
                going = [one.address for one in self._held(session) if principal is None or principal in one.principals]
                left += self._index.drop(going)
            self._uses.withdraw({self._artifacts.subject(*pair) for pair in pairs})
            self._index.refresh()
        self._db.scrub()
        return left

    def _held(self, session: str | None) -> list[_Held]:
        rows = self._db.rows(
            "SELECT address, session, principals FROM artifacts WHERE ?1 IS NULL OR session = ?1", session
        )
        return [_Held(address, name, tuple(json.loads(people))) for address, name, people in rows]
