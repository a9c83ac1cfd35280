"""Records out of an index: drafts as they stand, written out with the stamps of when they last changed.

`AsOf` says at what time, under which policy, with which reviews, in which run. The index must be refreshed; call
`judged` and `publish` inside one of its transactions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxsteward.envelope.keys import AddressKey
from ctxsteward.schemas.profile import instant
from ctxsteward.schemas.publish import validate
from ctxsteward.schemas.recommendation import MetaRecommendation, Review, Status

from ..admission.contest import Standing
from ..admission.policy import AdmissionPolicy
from .contests import by_component
from .database import Database
from .form import draft_of, standing_of
from .judging import Found, Judging
from .standings import Standings
from .writing import Frame, LineCounter, Stamp, content_of, recommendation, stamped


class Judged(NamedTuple):
    """What the gates say of all records."""

    statuses: Mapping[Status, int]
    """How many have which."""
    digest: str
    """Of all that they say: equal for equal records."""
    shared: tuple[MetaRecommendation, ...]
    """Those that are active and reach more than their author, by id."""
    looked_at: int
    """Drafts that were judged anew: what was touched since the last judgement, what is due, and their rivals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """At what time, under which policy, with which reviews records are judged."""

    now: str | None = None
    """ISO 8601; None: nothing fades."""
    policy: AdmissionPolicy = field(default_factory=AdmissionPolicy)
    reviews: Mapping[str, Review] = field(default_factory=dict)
    """By the id of a record, or one it once had."""
    counter: LineCounter | None = None
    """Counts the line of each record; None: as it was counted last."""
    run: str = "none"
    """That writes them."""

    @property
    def now_seconds(self) -> float | None:
        return None if self.now is None else instant(self.now)


class Records:
    """Writes the records of a `Database`."""

    def __init__(self, database: Database, frame: Frame, key: AddressKey) -> None:
        self._db, self._frame, self._key = database, frame, key
        self._standings = Standings(database)
        self._read: dict[str, tuple[str, MetaRecommendation]] = {}
        """Those for many as they were read last, by id, with their addresses: a night asks more than once."""

    def each(self, as_of: AsOf, component: str | None = None) -> Iterator[MetaRecommendation]:
        """Every record, by id; or that of one component."""
        judging = Judging(self._db, as_of.policy, as_of.now_seconds, as_of.reviews, component)
        stamps = self._stamps()
        for found in judging.each():
            merged = tuple(sorted(stamps.keys() & set(found.draft.names) - {found.draft.id})) if stamps else ()
            record = self._recommendation(found, as_of.policy, judging.review(found.component), merged, as_of.run)
            stamp = stamps.get(found.draft.id)
            yield stamped(record, stamp, as_of.now, content_of(record, self._key) if stamp else "")

    def one(self, as_of: AsOf, id: str) -> MetaRecommendation | None:
        """By its id, or one it once had."""
        rows = self._db.rows("SELECT component FROM claims WHERE id = ?", id)
        return next(self.each(as_of, rows[0][0]), None) if rows else None

    def judged(self, as_of: AsOf, total: int) -> Judged:
        """What `each` comes to, without writing out what concerns one person alone; `total` is that of all drafts."""
        looked_at = self._standings.judge(
            as_of.policy, as_of.now_seconds, as_of.reviews,
            lambda component, standing, review: self._unstamped(component, standing, as_of.policy, review),
        )  # fmt: skip
        statuses, digest = self._standings.outcome(total)
        return Judged(statuses, digest, tuple(self._for_many(as_of)), looked_at)

    def publish(self, records: Iterable[MetaRecommendation]) -> None:
        """Remember the stamps of these; of what is left out, nothing is remembered any more."""
        before = self._stamps()
        for one in records:
            stamp = before.pop(one.id, None)
            said = (one.revision, one.run, one.validity.recorded_at)
            if stamp is None or stamp[1:] != said:  # a record that says something else has another revision
                content = content_of(one, self._key)
                self._db.run("INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?, ?)", one.id, content, *said)
        self._db.many("DELETE FROM published WHERE id = ?", [(id_,) for id_ in before])

    def _unstamped(
        self, component: str, standing: Standing, policy: AdmissionPolicy, review: Review | None,
        merged: tuple[str, ...] = (),
    ) -> tuple[str, str, str]:  # fmt: skip
        """A record without its stamps: its address, its names and itself, as they are kept."""
        body, tokens = self._db.rows("SELECT body, tokens FROM drafts WHERE component = ?", component)[0]
        record = self._recommendation(
            Found(component, draft := draft_of(body), standing, tokens), policy, review, merged
        )
        return content_of(record, self._key), json.dumps(draft.names), record.model_dump_json()

    def _for_many(self, as_of: AsOf) -> Iterator[MetaRecommendation]:
        """What is active and for many, with its stamps."""
        stamps = self._stamps()
        reviews = by_component(self._db, as_of.reviews) if stamps else {}
        before, self._read = self._read, {}
        for id_, component, content, names, body, standing in self._standings.for_many():
            known = before.get(id_)
            read = known[1] if known and known[0] == content else MetaRecommendation.model_validate_json(body)
            self._read[id_] = content, read
            merged = tuple(sorted(stamps.keys() & set(json.loads(names)) - {read.id})) if stamps else ()
            if merged:
                content, _, body = self._unstamped(
                    component, standing_of(standing), as_of.policy, reviews.get(component), merged
                )
                read = MetaRecommendation.model_validate_json(body)
            stamp = stamps.get(read.id)
            record = stamped(read.model_copy(update={"run": as_of.run}), stamp, as_of.now, content)
            if stamp is None or stamp.content != content:  # one that stands unchanged has been checked
                validate("meta_recommendation", record.model_dump(mode="json", warnings=False), f"record {record.id}")
            yield record

    def _recommendation(
        self, found: Found, policy: AdmissionPolicy, review: Review | None, merged: tuple[str, ...], run: str = "none"
    ) -> MetaRecommendation:
        draft = found.draft
        half_life_days = policy.half_life(draft.kind, session=draft.audience.width == "session")
        return recommendation(
            draft, found.standing, self._frame, half_life_days=half_life_days, tokens=found.tokens, run=run,
            merged=merged, review=review,
        )  # fmt: skip

    def _stamps(self) -> dict[str, Stamp]:
        """Of all that was published, by id."""
        rows = self._db.rows("SELECT id, content, revision, run, recorded_at FROM published")
        return {id_: Stamp(*rest) for id_, *rest in rows}
