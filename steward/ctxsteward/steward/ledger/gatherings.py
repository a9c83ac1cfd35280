"""What is kept of drafts with many observations, so that one more costs one more (`reconcile.gathered`).

    gathered    first and last, greatest, choosable; counts and the sum of all
    voices      places, sessions, principals: each once, as a hash, with how it was heard
    phrases     texts, in the order in which they are worth showing

Kept of drafts from `MANY` observations on, where each can be weighed by itself: not of what was shown to sessions it
came from under names that may change. Whatever leaves, or moves from one component to another, drops what was kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..reconcile.draft import Quoting
from ..reconcile.gathered import Gathered, Phrase, Phrases, rank, together
from ..reconcile.seen import Brief
from ..reconcile.support import Counts, Voice, counted
from .database import Database
from .form import brief_of, brief_row, gathered_of, gathered_row

MANY = 16
"""Observations from which on it is worth it."""
_TABLES = ("gathered", "voices", "phrases")


class Kept(NamedTuple):
    """Of one component."""

    found: Gathered
    counts: Counts
    quoted: Quoting
    total: int
    """Sum of all its pairs of claim and observation."""


class Gatherings:
    """Gathered drafts in a `Database`; call inside one of its transactions."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def among(self, components: Iterable[str]) -> set[str]:
        """Those of which something is kept."""
        return {row[0] for row in self._db.among("SELECT component FROM gathered WHERE component IN (…)", components)}

    def of(self, components: Iterable[str]) -> dict[str, Kept]:
        """What is kept of them, by component."""
        rows = self._db.among("SELECT component, body FROM gathered WHERE component IN (…)", components)
        return {component: _kept(body) for component, body in rows}

    def drop(self, components: Collection[str]) -> None:
        """Keep nothing of these."""
        kept = [(component,) for component in sorted(self.among(components))]
        for table in _TABLES:
            self._db.many(f"DELETE FROM {table} WHERE component = ?", kept)

    def keep(self, component: str, kept: Kept) -> None:
        """Keep this; voices and phrases are added for themselves."""
        found, counts, quoted, total = kept
        body = json.dumps([gathered_row(found), counts, quoted, f"{total:x}"], ensure_ascii=False)
        self._db.run("INSERT OR REPLACE INTO gathered VALUES (?, ?)", component, body)

    def hear(self, component: str, voices: Mapping[Voice, int]) -> Counts:
        """Add voices; what they add to the counts."""
        heard = {_hash(voice): bits for voice, bits in voices.items()}
        rows = self._those("SELECT voice, heard FROM voices WHERE component = ? AND voice IN (…)", component, [*heard])
        before: dict[bytes, int] = dict(rows)
        more = {voice: bits & ~before.get(voice, 0) for voice, bits in heard.items()}
        self._db.many(
            "INSERT OR REPLACE INTO voices VALUES (?, ?, ?)",
            [(component, voice, bits | before.get(voice, 0)) for voice, bits in more.items() if bits],
        )
        return counted({(voice,): bits for voice, bits in more.items()})

    def phrase(self, component: str, phrases: Phrases) -> Brief:
        """Add phrases; the best of all."""
        query = "SELECT text, times, brief FROM phrases WHERE component = ? AND text IN (…)"
        rows = self._those(query, component, [*phrases])
        before = {text: Phrase(times, brief_of(brief)) for text, times, brief in rows}
        now = {text: together(before[text], phrase) if text in before else phrase for text, phrase in phrases.items()}
        self._db.many(
            "INSERT OR REPLACE INTO phrases VALUES (?, ?, ?, ?, ?, ?)",
            [(component, text, times, rank(best), best.score, brief_row(best)) for text, (times, best) in now.items()],
        )
        query = "SELECT brief FROM phrases WHERE component = ? ORDER BY rank, times DESC, score DESC, text LIMIT 1"
        return brief_of(self._db.rows(query, component)[0][0])

    def _those(self, query: str, component: str, keys: Sequence[object], size: int = 400) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(keys), size):
            page = keys[start : start + size]
            found += self._db.rows(query.replace("(…)", f"({', '.join('?' * len(page))})"), component, *page)
        return found


def _kept(body: str) -> Kept:
    found, counts, (spoken, holder, chosen), total = json.loads(body)
    return Kept(gathered_of(found), Counts(*counts), Quoting(spoken, holder, tuple(chosen)), int(total, 16))


def _hash(voice: Voice) -> bytes:
    return hashlib.blake2b(json.dumps(voice).encode(), digest_size=16).digest()
