"""The ledger: all observations of one agent's transcripts, and the records they make.

    ledger = Ledger.open(path, store, "acme", "support")
    ledger.absorb(*artifacts)                      a set: order, batches and repeats do not matter
    for record in ledger.records(now="2026-11-22T00:00:00Z", run="night-7", counter=counter): …
    ledger.publish(records)                        remember their stamps, once they are committed
    ledger.withdraw(session="s-42")

The same set of artifacts gives the same records, byte for byte, in whatever order and however many nights it came; what
a night adds costs what it touches. The file is an index: `rebuild` makes it from the store's artifacts. It holds words
of users, so it registers with `store.erasers`, catches up with the tombstones when it is opened, and scrubs itself.

`records` is a function of the set, the policy, the present and the reviews, apart from three stamps: `revision`, `run`
and `recorded_at` say when a record last changed, counted over what was published. `digest` does not cover them.

Raises `StoreError`, and what the store raises.
Source: the layered-envelope design (meta-steward); the state design (erasure, trust).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from ctxsteward.envelope.erasers import Told
from ctxsteward.envelope.keys import AddressKey
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.supports import Support
from ctxsteward.schemas.recommendation import Evidence, MetaRecommendation, Review, Status

from ..admission.policy import AdmissionPolicy
from ..artifacts.artifact import Artifact, Cited
from ..artifacts.keeping import Artifacts
from ..artifacts.spans import Quote, quotes, verified
from ..reconcile.seen import instant
from ..reconcile.sketch import SKETCH
from .database import Database
from .erasing import Leaving
from .form import draft_of, seen_of
from .index import Index
from .judging import Found, Judging
from .voices import support
from .writing import Frame, LineCounter, Stamp, content_of, line, recommendation, stamped

_NO_REVIEWS: Mapping[str, Review] = {}


class Flawed(NamedTuple):
    """A would-be record that fits no record."""

    id: str
    flaw: str


class Judged(NamedTuple):
    """What the gates say of all records."""

    statuses: Mapping[Status, int]
    """How many have which."""
    digest: str
    """Of all that they say: equal for equal records."""
    shared: tuple[MetaRecommendation, ...]
    """Those that are active and reach more than their author, by id."""


class Size(NamedTuple):
    """How much is in a ledger; of observations, those that were harvested."""

    artifacts: int
    observations: int
    claims: int
    components: int


class Ledger:
    """Observations and records of one agent."""

    def __init__(self, database: Database, store: Store, frame: Frame, key: AddressKey) -> None:
        """Use `open`."""
        self._db, self._store, self._frame, self._key = database, store, frame, key
        self._artifacts = Artifacts(store, frame.tenant)
        self._index = Index(database, key, frame)
        self._leaving = Leaving(database, self._index, self._artifacts, frame.tenant)
        self._eraser = self._leaving
        store.erasers.append(self._eraser)

    @classmethod
    def open(cls, path: Path | str, store: Store, tenant: str, agent: str, key: AddressKey | None = None) -> Self:
        """Open a ledger's file, made if missing; what was forgotten meanwhile leaves it. `key`: the tenant's own."""
        key = key or store.keys.address_key(tenant)
        about = f"tenant {tenant!r}, agent {agent!r}, sketches {SKETCH}"
        database = Database(Path(path), about)
        try:
            ledger = cls(database, store, Frame(tenant, agent), key)
        except BaseException:
            database.close()
            raise
        try:
            ledger.catch_up()
        except BaseException:
            ledger.close()
            raise
        return ledger

    # -- the set ------------------------------------------------------------------------------------------------

    def absorb(self, *artifacts: Artifact) -> int:
        """Take artifacts in; how many observations are new. Known, outdated and forgotten ones change nothing."""
        with self._db.writing():
            found = ((self._artifacts.address(one), one) for one in artifacts)
            return self._index.add((address, one) for address, one in found if address is not None)

    def absorb_kept(self, addresses: Iterable[str]) -> tuple[int, int]:
        """Take artifacts of the store in by address; how many observations are new, how many artifacts are gone."""
        known = set(addresses)
        known -= {row[0] for row in self._db.among("SELECT address FROM artifacts WHERE address IN (…)", known)}
        new = gone = 0
        for start in range(0, len(todo := sorted(known)), _PAGE):
            page = {address: self._artifacts.find(address) for address in todo[start : start + _PAGE]}
            gone += sum(artifact is None for artifact in page.values())
            with self._db.writing():
                new += self._index.add((address, found) for address, found in page.items() if found is not None)
        return new, gone

    def withdraw(self, *, session: str | None = None, principal: str | None = None, told: Told | None = None) -> int:
        """Take out what a session, a principal, or a principal in one session gave; how many observations.

        They do not come back. With `told`, their artifacts' keys are destroyed too: for transcripts from outside, of
        which the store knows no session to forget.
        """
        return self._leaving.withdraw(session, principal, told)

    def sessions(self, source: str) -> tuple[str, ...]:
        """Sessions that came out of this source, as artifacts name it; sorted."""
        rows = self._db.rows("SELECT DISTINCT session FROM artifacts WHERE source = ? ORDER BY session", source)
        return tuple(row[0] for row in rows)

    def catch_up(self) -> int:
        """Take out what another process, or another machine, has forgotten; how many observations."""
        return self._leaving.catch_up()

    def rebuild(self, addresses: Iterable[str]) -> tuple[int, int]:
        """Make the index anew from the store's artifacts; what `absorb_kept` says."""
        self._db.empty()
        self._index.forget_memory()
        return self.absorb_kept(addresses)

    # -- records ------------------------------------------------------------------------------------------------

    def records(
        self,
        now: str | None = None,
        policy: AdmissionPolicy | None = None,
        approvals: Mapping[str, Review] = _NO_REVIEWS,
        counter: LineCounter | None = None,
        run: str = "none",
    ) -> Iterator[MetaRecommendation]:
        """Every record, by id. `approvals` are reviews by the id of a record, or one it once had; `now` is ISO 8601."""
        policy = policy or AdmissionPolicy()
        judging = self._judging(now, policy, approvals, counter)
        yield from self._written(judging, judging.each(), policy, now, run)

    def judged(
        self,
        now: str | None = None,
        policy: AdmissionPolicy | None = None,
        approvals: Mapping[str, Review] = _NO_REVIEWS,
        counter: LineCounter | None = None,
        run: str = "none",
    ) -> Judged:
        """What `records` comes to, without writing out what concerns one person alone."""
        policy = policy or AdmissionPolicy()
        judging = self._judging(now, policy, approvals, counter)
        shared = tuple(self._written(judging, judging.for_many(), policy, now, run))
        return Judged(*judging.outcome(self._index.total()), shared)

    def _judging(
        self, now: str | None, policy: AdmissionPolicy, approvals: Mapping[str, Review], counter: LineCounter | None
    ) -> Judging:
        self._refresh(counter)
        return Judging(self._db, policy, None if now is None else instant(now), approvals)

    def _written(
        self, judging: Judging, found: Iterable[Found], policy: AdmissionPolicy, now: str | None, run: str
    ) -> Iterator[MetaRecommendation]:
        is_published = bool(self._db.rows("SELECT 1 FROM published LIMIT 1"))
        for component, draft, standing, tokens in found:
            before = self._stamps(draft.names) if is_published else {}
            merged = tuple(sorted(before.keys() - {draft.id}))
            half_life_days = policy.half_life(draft.kind, session=draft.audience.width == "session")
            record = recommendation(
                draft, standing, self._frame, half_life_days=half_life_days, tokens=tokens, run=run, merged=merged,
                review=judging.review(component),
            )  # fmt: skip
            stamp = before.get(draft.id)
            yield stamped(record, stamp, now, content_of(record, self._key) if stamp else "")

    def record(self, id: str, **judged_by: object) -> MetaRecommendation | None:
        """One record, by its id or one it once had; arguments as for `records`."""
        found = self._db.rows("SELECT d.id FROM claims c JOIN drafts d ON d.component = c.component WHERE c.id = ?", id)
        wanted = found[0][0] if found else id
        return next((one for one in self.records(**judged_by) if one.id == wanted), None)  # type: ignore[arg-type]

    def publish(self, records: Iterable[MetaRecommendation]) -> None:
        """Remember the stamps of records that were committed; of what is left out, nothing is remembered any more."""
        rows = [
            (one.id, content_of(one, self._key), one.revision, one.run, one.validity.recorded_at) for one in records
        ]
        with self._db.writing():
            self._db.run("DELETE FROM published")
            self._db.many("INSERT INTO published VALUES (?, ?, ?, ?, ?)", rows)

    def flawed(self) -> tuple[Flawed, ...]:
        """What fits no record by the published schema, and why; by id."""
        self._refresh(None)
        rows = self._db.rows("SELECT id, malformed FROM drafts WHERE malformed IS NOT NULL ORDER BY id")
        return tuple(Flawed(*row) for row in rows)

    def digest(self) -> str:
        """64 hex digits of all observations and what they make: equal for equal sets of artifacts."""
        self._refresh(None)
        return f"{self._index.total():064x}"

    def size(self) -> Size:
        tables = ("artifacts", "seen", "claims", "drafts")
        self._refresh(None)
        size = Size(*(self._db.rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables))
        return size._replace(observations=size.observations - self._db.rows("SELECT count(*) FROM derived")[0][0])

    # -- spans --------------------------------------------------------------------------------------------------

    def why(self, id: str) -> tuple[Quote, ...]:
        """The spans a record rests on, with their words; empty for an id that is not known."""
        evidence = self._evidence(id)
        return tuple(quotes(evidence, self._cited(evidence)))

    def support(self, record: MetaRecommendation, policy: AdmissionPolicy | None = None) -> Support | None:
        """Everybody behind a record, for whoever forgets; None where it is not known or counts no voices."""
        self._refresh(None)
        rows = self._db.rows("SELECT body FROM drafts WHERE id = ? AND malformed IS NULL", record.id)
        if not rows:
            return None
        draft = draft_of(rows[0][0])
        seen = self._db.among("SELECT body FROM seen WHERE id IN (…)", draft.observations)
        approved = record.review is not None and record.review.state == "approved"
        address = self._store.vault(self._frame.tenant).subject_address
        return support(
            draft, (seen_of(row[0]) for row in seen), policy or AdmissionPolicy(), address, approved=approved
        )

    def broken(self, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """Those of the evidence whose bytes are not what their addresses say, or are gone."""
        told = zip(evidence, self._cited(evidence), strict=True)
        return tuple(one for one, cited in told if not verified(one, cited, self._key))

    def _evidence(self, id: str) -> tuple[Evidence, ...]:
        self._refresh(None)
        rows = self._db.rows(
            "SELECT d.body FROM claims c JOIN drafts d ON d.component = c.component "
            "WHERE c.id = ? AND d.id IS NOT NULL",
            id,
        )
        return tuple(Evidence(**one) for row in rows for one in draft_of(row[0]).evidence)

    def _cited(self, evidence: Sequence[Evidence]) -> list[Cited | None]:
        found: dict[tuple[str, str], dict[str, Cited]] = {}
        for one in evidence:
            place = (one.source, one.session)
            if place not in found:
                rows = self._db.rows("SELECT address FROM artifacts WHERE live AND source = ? AND session = ?", *place)
                kept = [self._artifacts.find(row[0]) for row in rows]
                found[place] = {cited.ref: cited for artifact in kept if artifact for cited in artifact.cited}
        return [found[one.source, one.session].get(one.ref) for one in evidence]

    # -- inside -------------------------------------------------------------------------------------------------

    def _refresh(self, counter: LineCounter | None) -> None:
        with self._db.writing():
            self._index.refresh()
            if counter is not None:
                self._count(counter)

    def _count(self, counter: LineCounter) -> None:
        """Count the lines of drafts that this counter has not counted."""
        stale = self._db.rows(
            "SELECT component, body FROM drafts WHERE (counter IS NULL OR counter < ?1 OR counter > ?1) "
            "AND id IS NOT NULL", counter.name
        )  # fmt: skip
        counts = [(counter.name, counter.text(line(draft_of(body))), component) for component, body in stale]
        self._db.many("UPDATE drafts SET counter = ?, tokens = ? WHERE component = ?", counts)

    def _stamps(self, names: Sequence[str]) -> dict[str, Stamp]:
        rows = self._db.among("SELECT id, content, revision, run, recorded_at FROM published WHERE id IN (…)", names)
        return {id_: Stamp(*rest) for id_, *rest in rows}

    def close(self) -> None:
        """Let go of the file, and of the store's erasures."""
        if self._eraser in self._store.erasers:
            self._store.erasers.remove(self._eraser)
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_PAGE = 200
"""Artifacts read at once."""
