"""Status of every record, updated incrementally: a night judges what was touched, what is due, and what is bound to it.

    drafts that were touched (`unjudged`)                 ┐
    drafts whose verdict time alone has changed (`until`) ├→ with their clusters (`ContestIndex`): judged
    drafts that people reviewed otherwise than before     ┘   → covered by a wider record, or not
                                                              → audiences whose facts changed (`unshelved`)

The tables hold what `DraftJudge` would say of all drafts at once, under the policy, time and reviews of the last
judgement; another policy, or an earlier time, judges everything anew. Of each record that is active and for many the
whole content is kept, and of each audience whether its facts have to be written.

Judging all 140,000 drafts of 100,000 observations anew takes 7 s of CPU, those of a night with 1 % new 2 s.

Call inside a transaction of the database, after the index was refreshed. Times are Unix seconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctxsteward.schemas.recommendation import Review, Status
from ctxsteward.store.profiles.version_codec import canonical

from ..admission import (
    ADMISSION,
    AdmissionPolicy,
    RecordStanding,
    by_person,
    by_support,
    is_subject_to_rules,
    last_confirmed,
    under_rules,
)
from ..reconcile.draft import ClaimSupport, Draft
from .database import LedgerDatabase, drafts_of, standing_of, standing_row
from .judgement import BESIDE, SUPPORTED, ContestIndex, by_component

AT_ONCE = 400
_COUNTS = ClaimSupport.__slots__[3:]
"""Columns of a draft that are fields of its `ClaimSupport`."""
_DRAFTS = (
    "SELECT hidden, component, id, wide, digest, kind, width, trigger, action, last, shelf, "
    f"{', '.join(_COUNTS)} FROM drafts WHERE id IS NOT NULL AND malformed IS NULL AND component IN (…)"
)
_JUDGED = (
    "component",
    "id",
    "status",
    "wide",
    "until",
    "covered_by",
    "shelf",
    "digest",
    "content",
    "standing",
    "names",
    "record",
)
_KEEP = f"INSERT OR REPLACE INTO judged ({', '.join(_JUDGED)}) VALUES ({', '.join('?' * len(_JUDGED))})"
_STANDS = "covered_by IS NULL"
_COVERS = (
    "SELECT o.component, min(w.component) FROM claims o CROSS JOIN said s ON s.claim = o.id AND NOT s.idle "
    "CROSS JOIN said t ON t.seen = s.seen AND NOT t.idle "
    "CROSS JOIN claims w ON w.id = t.claim AND w.component <> o.component "
    "CROSS JOIN judged j ON j.component = w.component AND j.wide AND j.status = 'active' "
    f"WHERE {SUPPORTED} AND o.component IN (…) GROUP BY o.component"
)
"""By component (o), the first wider one (w) that is active and that all of its support supports."""


class _StatusRow(NamedTuple):
    component: str
    id: str
    status: Status
    wide: int
    until: float | None
    covered_by: str | None
    shelf: str | None
    digest: bytes
    content: str | None
    standing: str
    names: str | None
    record: str | None

    @property
    def shown_on(self) -> str | None:
        """The shelf it is a part of."""
        return self.shelf if self.status == "active" and self.covered_by is None else None


Write = Callable[[str, RecordStanding, Review | None], tuple[str, str, str]]
"""The record of a component for many: its address, its names and itself, without stamps."""


class RecordStatuses:
    """The last judgement, in a `LedgerDatabase`."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._db = database

    # -- what has to be judged anew -----------------------------------------------------------------------------

    def leave(self, components: Sequence[str]) -> None:
        """Drafts of these are about to change: they have no standing, and what is bound to them is judged anew."""
        groups = self._db.among("SELECT rivals FROM drafts WHERE rivals <> '' AND component IN (…)", components)
        self._touch(
            self._db.among(
                "SELECT component FROM drafts WHERE rivals <> '' AND rivals IN (…)", sorted({row[0] for row in groups})
            )
        )
        self._touch([(component,) for component in components])
        self._replace(self._rows(components), ())

    def unbind(self, claims: Collection[str]) -> None:
        """These claims are about to go: what they oppose is judged anew."""
        query = "SELECT DISTINCT c.component FROM opposed o JOIN claims c ON c.id = o.other WHERE o.one IN (…)"
        self._touch(self._db.among(query, claims))

    def recount(self, components: Iterable[str]) -> None:
        """The content of these has changed, but not how they stand."""
        self._touch([(component,) for component in components])

    def _touch(self, rows: Sequence[Sequence[object]]) -> None:
        self._db.many("INSERT OR IGNORE INTO unjudged VALUES (?)", rows)

    # -- judging ------------------------------------------------------------------------------------------------

    def judge(
        self, policy: AdmissionPolicy, now_seconds: float | None, reviews: Mapping[str, Review], write: Write
    ) -> int:
        """Bring every standing up to date; how many were looked at."""
        found = by_component(self._db, reviews)
        due = self._due(policy, now_seconds, found)
        contests = ContestIndex(self._db, policy, now_seconds, found)
        judging = _DraftJudgement(self._db, policy, now_seconds, found, write)
        moved: set[str] = set()
        """Own ones that a wider one may cover now, or no longer."""
        looked = 0
        for start in range(0, len(due), AT_ONCE):
            page = due[start : start + AT_ONCE]
            contested = contests.settled(page)
            wanted = sorted({*page, *contested})
            looked += len(wanted)
            before = self._rows(wanted)
            covers = {row.component: row.covered_by for row in before}
            rows = [row._replace(covered_by=covers.get(row.component)) for row in judging.rows(wanted, contested)]
            moved.update(self._shaken(wanted, rows))
            self._replace(before, rows)
        self._cover(sorted(moved))
        self._db.run("DELETE FROM unjudged")
        return looked

    def _due(self, policy: AdmissionPolicy, now_seconds: float | None, reviews: Mapping[str, Review]) -> list[str]:
        """Components to be judged; notes what they are judged by."""
        said = {component: _digest(review.model_dump_json()) for component, review in sorted(reviews.items())}
        basis = canonical([ADMISSION, policy.model_dump(mode="json"), now_seconds is None]).decode()
        before, before_seconds = self._db.noted("judged by"), float(self._db.noted("judged at") or "-inf")
        at_seconds = float("-inf") if now_seconds is None else now_seconds
        if before is not None and (before != basis or at_seconds < before_seconds):
            self._db.run("INSERT OR IGNORE INTO unjudged SELECT component FROM drafts")
        elif now_seconds is not None:
            self._touch(self._db.rows("SELECT component FROM judged WHERE until <= ?", now_seconds + 1))
        known = json.loads(self._db.noted("judged with") or "{}")
        self._touch([(one,) for one in sorted({*said, *known}) if said.get(one) != known.get(one)])
        for name, value in (("judged by", basis), ("judged at", repr(at_seconds)), ("judged with", json.dumps(said))):
            self._db.note(name, value)
        return [row[0] for row in self._db.rows("SELECT component FROM unjudged ORDER BY component")]

    def _shaken(self, wanted: Sequence[str], rows: Sequence[_StatusRow]) -> set[str]:
        """Own components whose cover has to be looked for: these, what these covered, and what these may cover."""
        wide = [row.component for row in rows if row.wide and row.status == "active"]
        found = {row[0] for row in self._db.among("SELECT component FROM judged WHERE covered_by IN (…)", wanted)}
        found |= {row[0] for row in self._db.among(BESIDE, wide)}
        return found | {row.component for row in rows if not row.wide}

    def _cover(self, components: Sequence[str]) -> None:
        """Look for the wider record that says all that each of these own ones says."""
        for start in range(0, len(components), AT_ONCE):
            page = components[start : start + AT_ONCE]
            covers = dict(self._db.among(_COVERS, page))
            query = "SELECT component, covered_by FROM judged WHERE NOT wide AND component IN (…)"
            moved = [component for component, by in self._db.among(query, page) if covers.get(component) != by]
            own = self._rows(moved)
            self._replace(own, [row._replace(covered_by=covers.get(row.component)) for row in own])

    # -- what stands --------------------------------------------------------------------------------------------

    def outcome(self, total: int) -> tuple[dict[str, int], str]:
        """How many records have which status, and a digest of all that they say; `total` is that of all drafts."""
        rows = self._db.rows(f"SELECT status, count(*) FROM judged WHERE {_STANDS} GROUP BY status ORDER BY status")
        total += int(self._db.noted("judged sum") or 0)
        return dict(rows), f"{total % (1 << 256):064x}"

    def for_many(self) -> Iterator[tuple[str, str, str, str, str, str]]:
        """What is active and reaches more than its author, by id: id, component, address, names, record, standing."""
        columns = "id, component, content, names, record, standing"
        return self._db.each(f"SELECT {columns} FROM judged WHERE id > ?1 AND record IS NOT NULL ORDER BY id")

    def on(self, shelf: str) -> Iterator[tuple[Draft, RecordStanding]]:
        """What is active for this audience alone."""
        query = f"SELECT component, standing FROM judged WHERE shelf = ? AND status = 'active' AND {_STANDS}"
        standings = dict(self._db.rows(query, shelf))
        drafts = drafts_of(self._db, standings)
        return ((draft, standing_of(standings[component])) for component, draft in drafts.items())

    def shelves(self) -> list[str]:
        """Audiences of whom anything is known, active or not."""
        return [row[0] for row in self._db.rows("SELECT DISTINCT shelf FROM judged WHERE shelf IS NOT NULL")]

    # -- inside -------------------------------------------------------------------------------------------------

    def _rows(self, components: Iterable[str]) -> list[_StatusRow]:
        return [
            _StatusRow(*row)
            for row in self._db.among(f"SELECT {', '.join(_JUDGED)} FROM judged WHERE component IN (…)", components)
        ]

    def _replace(self, before: Sequence[_StatusRow], now: Sequence[_StatusRow]) -> None:
        """Put these rows in the place of those, and note what they change: shelves, and the sum of all."""
        old, new = ({row.component: row for row in rows} for rows in (before, now))
        changed = [pair for one in {**old, **new} if (pair := (old.get(one), new.get(one)))[0] != pair[1]]
        self._db.many("DELETE FROM judged WHERE component = ?", [(one,) for one in old.keys() - new.keys()])
        self._db.many(_KEEP, [after for _, after in changed if after is not None])
        shelves = {row.shown_on for pair in changed for row in pair if row is not None}
        self._db.many("INSERT OR IGNORE INTO unshelved VALUES (?)", [(one,) for one in shelves if one is not None])
        more = sum(_counted(after) - _counted(one) for one, after in changed)
        if more:
            self._db.note("judged sum", (int(self._db.noted("judged sum") or 0) + more) % (1 << 256))


class _DraftJudgement:
    """Makes the rows of drafts, out of what the tables hold of them."""

    def __init__(
        self,
        database: LedgerDatabase,
        policy: AdmissionPolicy,
        now_seconds: float | None,
        reviews: Mapping[str, Review],
        write: Write,
    ) -> None:
        self._db, self._policy, self._now_seconds = database, policy, now_seconds
        self._reviews, self._write = reviews, write

    def rows(self, components: Sequence[str], contested: Mapping[str, RecordStanding]) -> Iterator[_StatusRow]:
        """Those of these components that make a record, as they stand; covered by nothing."""
        for hidden, component, id_, wide, digest, kind, width, trigger, action, last, shelf, *counts in self._db.among(
            _DRAFTS, components
        ):
            review = self._reviews.get(component)
            if hidden and review is None:
                continue
            since = last_confirmed(kind, self._policy, self._now_seconds)
            standing = contested.get(component) or by_person(review)
            if standing is None and last is not None and last < since:
                standing = RecordStanding("expired", ("faded",))
            if standing is None:
                backing = ClaimSupport(events=0, sessions=0, principals=0, **dict(zip(_COUNTS, counts, strict=True)))
                standing = by_support(kind, width, backing, self._policy, (trigger, action))
                if self._policy.rules and is_subject_to_rules(standing):
                    standing = under_rules(standing, drafts_of(self._db, (component,))[component], self._policy)
            told = standing_row(standing)
            is_for_many = wide and standing.status == "active"
            written = self._write(component, standing, review) if is_for_many else (None, None, None)
            words = b"" if review is None or review.text is None else review.text.encode()
            yield _StatusRow(
                component=component,
                id=id_,
                status=standing.status,
                wide=wide,
                until=self._until(last, review, since),
                covered_by=None,
                shelf=shelf,
                digest=hashlib.sha256(digest + told.encode() + words).digest(),
                content=written[0],
                standing=told,
                names=written[1],
                record=written[2],
            )

    def _until(self, last: float | None, review: Review | None, since: float) -> float | None:
        """When time alone changes what its own verdict is; None: never."""
        if last is None or self._now_seconds is None or by_person(review) or last < since:
            return None
        until = last + (self._now_seconds - since)
        return until if until != float("inf") else None


def _digest(text: str) -> str:
    """Tells two reviews apart, and holds none of their words: what is noted outlives an erasure."""
    return hashlib.sha256(text.encode()).hexdigest()


def _counted(row: _StatusRow | None) -> int:
    return int.from_bytes(row.digest, "big") if row is not None and row.covered_by is None else 0
