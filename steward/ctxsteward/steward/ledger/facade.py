"""The ledger: all observations of one agent's transcripts, the records they make, and how much use each record was.

    ledger = Ledger.open(path, store, "acme", "support")
    ledger.absorb(*artifacts)                      a set: order, batches and repeats do not matter
    for record in ledger.records(JudgementContext(now="2026-11-22T00:00:00Z", run="night-7")): …
    ledger.withdraw(session="s-42")
    ledger.uses.catch_up(addresses, read, gone)    read batches that were not read; a repeat or a kill does not matter
    ledger.uses.of_records()                       {id of a record: `RecordUse`}, under the id that the record has now

The same set of artifacts gives the same records, byte for byte, in whatever order and however many nights it came.
`records` is a function of the set, the policy, the present and the reviews. All drafts are made and judged anew
whenever the set has changed; nothing of them is kept in the file.

The file is an index: `absorb_kept` makes it from the store's artifacts. It holds words of users. So it registers with
`store.erasers`, takes out what was forgotten elsewhere when it is opened (a process that does not have it open deletes
the file), and is rewritten after each erasure, so that no deleted row is left in it.

Raises `StoreError`, and what the store raises.
Source: the layered-envelope design (meta-steward); the state design (erasure, trust).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from ctxsteward.envelope import Store
from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.schemas.publish import validate
from ctxsteward.schemas.recommendation import Evidence
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.journal.erasures import Deletion, ErasureRequest
from ctxsteward.store.profiles.version_codec import canonical
from ctxsteward.store.sqlite_file import IN_MEMORY

from ..admission import AdmissionPolicy, AdmittedRecords
from ..artifacts.artifact import Artifact, CitedText, EvidenceQuote, quotes, verified
from ..artifacts.storage import ArtifactStore, possible_speakers
from ..erasure import RecordSupport, tell_ledger
from ..observations.observation import KINDS
from ..observations.transcript import in_order
from ..reconcile.draft import Draft
from .database import LedgerDatabase, observations
from .index import ObservationIndex
from .judgement import RecordBasis, basis_of, judged, support
from .reconciliation import Reconciliation
from .records import (
    PLAIN,
    JudgementContext,
    LedgerIdentity,
    line,
    recommendation,
)
from .usage_table import UsageTable

_EVERYBODY = ""
"""In the list of what was erased: the whole session."""


class LedgerSize(NamedTuple):
    """How much is in a ledger; of observations, those that were harvested."""

    artifacts: int
    observations: int
    claims: int
    components: int


class Ledger:
    """Observations and records of one agent."""

    place = "ledger of the steward"

    def __init__(self, database: LedgerDatabase, store: Store, frame: LedgerIdentity, key: AddressKey) -> None:
        """Use `open`."""
        self._db, self._store = database, store
        self._artifacts = ArtifactStore(store, frame.tenant)
        self._index = ObservationIndex(database, key, frame)
        self.uses: UsageTable = UsageTable(database, self._reconciled)
        self._frame, self._key, self._tenant = frame, key, frame.tenant
        self._made: tuple[int, Reconciliation] | None = None
        """What the observations make, and the version of the file it was made of; None: to be worked out."""
        store.erasers.append(self)

    @classmethod
    def open(cls, path: Path | str, store: Store, tenant: str, agent: str, key: AddressKey | None = None) -> Self:
        """Open a ledger's file: made if missing, made anew from the store where an older version made it.

        What was forgotten meanwhile leaves it. `key`: the tenant's own.
        """
        key = key or store.keys.address_key(tenant)
        about = f"tenant {tenant!r}, agent {agent!r}"
        database = LedgerDatabase(Path(path), about)
        try:
            ledger = cls(database, store, LedgerIdentity(tenant, agent), key)
        except BaseException:
            database.close()
            raise
        try:
            tombstones = sum(1 for _ in store.vault(tenant).erased())
            ledger.catch_up()
            if Path(path) != IN_MEMORY:
                tell_ledger(store.journal, tenant, agent, tombstones)
            ledger.absorb_kept(database.left)
        except BaseException:
            ledger.close()
            raise
        return ledger

    # -- the set ------------------------------------------------------------------------------------------------

    def absorb(self, *artifacts: Artifact) -> int:
        """Take artifacts in; how many observations are new. Known, outdated and forgotten ones change nothing."""
        with self._db.writing():
            self._made = None
            found = ((self._artifacts.address(one), one) for one in artifacts)
            return self._index.add((address, one) for address, one in found if address is not None)

    def absorb_kept(self, addresses: Iterable[str]) -> tuple[int, int]:
        """Take artifacts of the store in by address; how many observations are new, how many artifacts are gone."""
        known = set(addresses)
        known -= {row[0] for row in self._db.among("SELECT address FROM artifacts WHERE address IN (…)", known)}
        new = gone = 0
        todo = sorted(known)
        for start in range(0, len(todo), _AT_ONCE):
            with self._db.writing():
                self._made = None
                for first in range(start, min(start + _AT_ONCE, len(todo)), _PAGE):
                    page = {address: self._artifacts.find(address) for address in todo[first : first + _PAGE]}
                    gone += sum(artifact is None for artifact in page.values())
                    new += self._index.add((address, found) for address, found in page.items() if found is not None)
        return new, gone

    def sessions(self, source: str) -> tuple[str, ...]:
        """Sessions that came out of this source, as artifacts name it; sorted."""
        rows = self._db.rows("SELECT DISTINCT session FROM artifacts WHERE source = ? ORDER BY session", source)
        return tuple(row[0] for row in rows)

    def cites(self, session: str, ref: str) -> bool:
        """Whether this message of a session was harvested, and can still be read."""
        rows = self._db.rows("SELECT address FROM artifacts WHERE live AND session = ?", session)
        found = (self._artifacts.find(row[0]) for row in rows)
        return any(cited.ref == ref for artifact in found if artifact for cited in artifact.cited)

    # -- what was forgotten -------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The file that is in order once the ledger was told of an erasure."""
        return self._db.path

    def __call__(self, gone: Sequence[Deletion]) -> int:
        """Take out what was forgotten, as `store.erasers` ask it; how many observations left."""
        pairs = [(one.session, one.principal) for one in gone if one.tenant == self._tenant]
        return self._take_out(pairs) if pairs else 0

    def withdraw(
        self, *, session: str | None = None, principal: str | None = None, told: ErasureRequest | None = None
    ) -> int:
        """Take out what a session, a principal, or a principal in one session gave; how many observations.

        They do not come back. With `told`, their artifacts' keys are destroyed too: for transcripts from outside, of
        which the store knows no session to forget.
        """
        if session is None and principal is None:
            raise InputError("nothing to withdraw: name a session, a principal, or both")
        held = [
            (name, people)
            for _, name, people in self._held(session)
            if principal is None or principal in possible_speakers(name, people)
        ]
        pairs = [(name, principal) for name, _ in held] or ([(session, principal)] if session else [])
        if told is not None:
            for name in sorted({name for name, _ in pairs}):
                everybody = {who for other, people in held if other == name for who in people}
                if principal is not None:
                    everybody &= {principal, None} if principal == name else {principal}
                subjects = in_order(everybody, name)
                self._artifacts.erase(name, subjects, **told._asdict())
                if principal is None:
                    self._artifacts.erase(name, (), **told._asdict())
        return self._take_out(sorted(set(pairs), key=repr))

    def catch_up(self) -> int:
        """Take out what another process, or another machine, has forgotten; how many observations."""
        forgotten = self._artifacts.forgotten()
        if not forgotten:
            return 0
        pairs = {
            (session, principal)
            for _, session, people in self._held(None)
            for principal in (None, *possible_speakers(session, people))
            if self._artifacts.subject(session, principal) in forgotten
        }
        self.uses.withdraw(forgotten)
        return self._take_out(sorted(pairs, key=repr)) if pairs else 0

    def _take_out(self, pairs: Collection[tuple[str, str | None]]) -> int:
        left = 0
        with self._db.writing():
            self._made = None
            for session, principal in pairs:
                self._db.run("INSERT OR IGNORE INTO erased VALUES (?, ?)", session, principal or _EVERYBODY)
                held = self._held(session)
                if principal == session:  # an unknown speaker's words lie under the session's key, which stays
                    for address, _, people in held:
                        if None in people:
                            self._artifacts.discard(address)
                left += self._index.drop(
                    [
                        address
                        for address, name, people in held
                        if principal is None or principal in possible_speakers(name, people)
                    ]
                )
            self.uses.withdraw({self._artifacts.subject(*pair) for pair in pairs})
        self._db.scrub()
        return left

    def _held(self, session: str | None) -> list[tuple[str, str, list[str | None]]]:
        """Artifacts of a session, or of all: address, session, principals."""
        rows = self._db.rows(
            "SELECT address, session, principals FROM artifacts WHERE ?1 IS NULL OR session = ?1", session
        )
        return [(address, name, json.loads(people)) for address, name, people in rows]

    # -- records ------------------------------------------------------------------------------------------------

    def records(self, as_of: JudgementContext = PLAIN) -> Iterator[MetaRecommendation]:
        """Every record, by id."""
        for one in self._judged(as_of):
            yield self._record(one, as_of)

    def judged(self, as_of: JudgementContext = PLAIN) -> AdmittedRecords:
        """The active records, and what all of them come to."""
        every = self._judged(as_of)
        active = tuple(self._record(one, as_of) for one in every if one.standing.status == "active")
        for record in active:
            validate("meta_recommendation", record.model_dump(mode="json", warnings=False), f"record {record.id}")
        said = [[one.id, *one.standing, one.review.text if one.review else None] for one in every]
        return AdmittedRecords(
            active=active,
            digest=hashlib.sha256(canonical([self.digest(), said])).hexdigest(),
            now=as_of.now or "",
            reviews=as_of.reviews,
            statuses=dict(sorted(Counter(one.standing.status for one in every).items())),
            refused=len(self.flawed()),
        )

    def record(self, id: str, as_of: JudgementContext = PLAIN) -> MetaRecommendation | None:
        """One record, by its id or one it once had."""
        found = (one for one in self._judged(as_of) if id in one.names)
        return next((self._record(one, as_of) for one in found), None)

    def flawed(self) -> dict[str, str]:
        """Why would-be records fit no record by the published schema, by id."""
        found = self._reconciled()
        return dict(sorted((found.drafts[label].id, flaw) for label, flaw in found.flaws.items()))

    def digest(self) -> str:
        """64 hex digits of all observations: equal for equal sets of artifacts."""
        ids = self._db.rows("SELECT id FROM seen ORDER BY id")
        return hashlib.sha256("".join(row[0] for row in ids).encode()).hexdigest()

    def observations(self) -> int:
        """How many were harvested."""
        return int(self._db.rows("SELECT count(*) FROM seen")[0][0])

    def components(self) -> int:
        """How many different claims there are."""
        return len(set(self._reconciled().labels.values()))

    def size(self) -> LedgerSize:
        artifacts = self._db.rows("SELECT count(*) FROM artifacts")[0][0]
        return LedgerSize(artifacts, self.observations(), len(self._reconciled().labels), self.components())

    # -- spans --------------------------------------------------------------------------------------------------

    def why(self, id: str) -> tuple[EvidenceQuote, ...]:
        """The spans a record rests on, with their words; empty for an id that is not known."""
        draft = self._reconciled().draft(id)
        evidence = [Evidence(**one) for one in draft.evidence] if draft else []
        return tuple(quotes(evidence, self._cited(evidence), self._key))

    def support(self, record: MetaRecommendation, policy: AdmissionPolicy | None = None) -> RecordSupport | None:
        """Everybody behind a record, for whoever forgets; None where it is not known or counts no voices."""
        found = self._reconciled()
        draft = found.draft(record.id)
        if draft is None:
            return None
        approved = record.review is not None and record.review.state == "approved"
        seen = observations(self._db, [brief.id for brief in found.lending(draft)]).values()
        address = self._store.vault(self._tenant).subject_address
        return support(draft, seen, policy or AdmissionPolicy(), address, approved=approved)

    def basis(self, id: str) -> RecordBasis | None:
        """What stands behind the record of this id, counted; None where it is not known."""
        found = self._reconciled()
        draft = found.draft(id)
        if draft is None:
            return None
        read = self._db.rows("SELECT count(DISTINCT session) FROM artifacts WHERE live")[0][0]
        return basis_of(draft, read, found.lending(draft), self._db)

    def recurring(self, since_seconds: float, until_seconds: float) -> list[tuple[str, int]]:
        """Errors that came up in this time (Unix seconds): id of the record, number of transcripts, the most first."""
        found, sessions = self._reconciled(), defaultdict[str, set[str]](set)
        errors = [kind for kind, spec in KINDS.items() if spec.is_template and spec.gate != "seen"]
        query = "SELECT claim, session, seconds FROM seen WHERE kind IN (…)"
        for claim, session, seconds in self._db.among(query, errors):
            label = found.labels[claim]
            if since_seconds <= seconds < until_seconds and label in found.drafts and label not in found.flaws:
                sessions[found.drafts[label].id].add(session)
        return sorted(((id_, len(many)) for id_, many in sessions.items()), key=lambda one: (-one[1], one[0]))

    def broken(self, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """Those of the evidence whose bytes are not what their addresses say, or are gone."""
        told = zip(evidence, self._cited(evidence), strict=True)
        return tuple(one for one, cited in told if not verified(one, cited, self._key))

    def _cited(self, evidence: Sequence[Evidence]) -> list[CitedText | None]:
        found: dict[tuple[str, str], dict[str, CitedText]] = {}
        for one in evidence:
            place = (one.source, one.session)
            if place not in found:
                rows = self._db.rows("SELECT address FROM artifacts WHERE live AND source = ? AND session = ?", *place)
                kept = [self._artifacts.find(row[0]) for row in rows]
                found[place] = {cited.ref: cited for artifact in kept if artifact for cited in artifact.cited}
        return [found[one.source, one.session].get(one.ref) for one in evidence]

    # -- inside -------------------------------------------------------------------------------------------------

    def _reconciled(self) -> Reconciliation:
        made, version = self._made, self._db.version()
        if made is None or made[0] != version:
            made = self._made = version, Reconciliation(self._db, self._frame)
        return made[1]

    def _judged(self, as_of: JudgementContext) -> list[Draft]:
        return judged(self._reconciled(), as_of.policy, as_of.now_seconds, as_of.reviews)

    def _record(self, draft: Draft, as_of: JudgementContext) -> MetaRecommendation:
        """A judged draft as a record."""
        words = line(draft, draft.review.text if draft.review is not None else None)
        tokens = as_of.counter.text(words) if as_of.counter is not None else 0
        return recommendation(draft, self._frame, as_of, tokens)

    def close(self) -> None:
        """Let go of the file, and of the store's erasures."""
        if self in self._store.erasers:
            self._store.erasers.remove(self)
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_PAGE = 200
"""Artifacts read at once."""
_AT_ONCE = 10 * _PAGE
"""Artifacts of one transaction: keys are hashes, so each writes a page of the file for almost every row."""
