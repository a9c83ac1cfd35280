"""The ledger: all observations of one agent's transcripts, the records made from them, and the use of each record.

    ledger = Ledger.open(path, store, "acme", "support")
    ledger.absorb(*artifacts)                      in any order and batches; repeats change nothing
    for record in ledger.records(JudgementContext(now="2026-11-22T00:00:00Z", run="night-7")): …
    ledger.withdraw(session="s-42")
    ledger.uses.catch_up(addresses, read, gone)    reads new batches; a repeat or a kill does not matter
    ledger.uses.of_records()                       `RecordUse` by the record's present id

The same set of artifacts gives the same records, byte for byte, in whatever order and number of nights. `records`
depends on the set, the policy, the time and the reviews. Drafts are made and judged again whenever the set changes, and
are not stored in the file.

The file is an index: `absorb_kept` makes it from the store's artifacts. It holds words of users. So an open ledger
registers with `store.erasers`, removes words that were forgotten elsewhere when it is opened, and rewrites the file
after each erasure, so that no deleted row is left. An erasure in a process without the ledger deletes the file.

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
from .records import PLAIN, JudgementContext, LedgerIdentity, line, recommendation
from .usage_table import UsageTable

_EVERYBODY = ""
"""Principal in the table of erasures that stands for the whole session."""


class LedgerSize(NamedTuple):
    """Numbers of a ledger's parts."""

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
        """The version of the file and the reconciliation made from it; None if it must be computed."""
        store.erasers.append(self)

    @classmethod
    def open(cls, path: Path | str, store: Store, tenant: str, agent: str, key: AddressKey | None = None) -> Self:
        """Open a ledger's file, or make it from the store if it is missing or of an older version.

        Removes words that were forgotten meanwhile. `key` is the tenant's address key by default.
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
        """Add artifacts, except known, outdated and forgotten ones; return the number of new observations."""
        with self._db.writing():
            self._made = None
            addressed = ((self._artifacts.address(artifact), artifact) for artifact in artifacts)
            return self._index.add((address, artifact) for address, artifact in addressed if address is not None)

    def absorb_kept(self, addresses: Iterable[str]) -> tuple[int, int]:
        """Add artifacts of the store by address; return the numbers of new observations and of missing artifacts."""
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
        """Return the sessions whose artifacts name this source, sorted."""
        rows = self._db.rows("SELECT DISTINCT session FROM artifacts WHERE source = ? ORDER BY session", source)
        return tuple(row[0] for row in rows)

    def cites(self, session: str, ref: str) -> bool:
        """Whether an artifact cites this message of a session, and can still be read."""
        rows = self._db.rows("SELECT address FROM artifacts WHERE live AND session = ?", session)
        artifacts = (self._artifacts.find(row[0]) for row in rows)
        return any(cited.ref == ref for artifact in artifacts if artifact for cited in artifact.cited)

    # -- forgetting ---------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The file that an erasure need not delete, because this open ledger removes the words."""
        return self._db.path

    def __call__(self, gone: Sequence[Deletion]) -> int:
        """Remove forgotten words when `store.erasers` are called; return the number of removed observations."""
        pairs = [(deletion.session, deletion.principal) for deletion in gone if deletion.tenant == self._tenant]
        return self._take_out(pairs) if pairs else 0

    def withdraw(
        self, *, session: str | None = None, principal: str | None = None, told: ErasureRequest | None = None
    ) -> int:
        """Remove for good the observations of a session, a principal, or a principal in one session; return how many.

        With `told`, also destroy the keys of their artifacts, for transcripts from outside whose sessions the store
        does not know.
        """
        if session is None and principal is None:
            raise InputError("nothing to withdraw: name a session, a principal, or both")
        artifacts = [
            (name, people)
            for _, name, people in self._held(session)
            if principal is None or principal in possible_speakers(name, people)
        ]
        pairs = [(name, principal) for name, _ in artifacts] or ([(session, principal)] if session else [])
        if told is not None:
            for name in sorted({name for name, _ in pairs}):
                everybody = {who for other, people in artifacts if other == name for who in people}
                if principal is not None:
                    everybody &= {principal, None} if principal == name else {principal}
                subjects = in_order(everybody, name)
                self._artifacts.erase(name, subjects, **told._asdict())
                if principal is None:
                    self._artifacts.erase(name, (), **told._asdict())
        return self._take_out(sorted(set(pairs), key=repr))

    def catch_up(self) -> int:
        """Remove words that another process or machine has forgotten; return the number of removed observations."""
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
                if principal == session:  # words of an unknown speaker are under the session's key, which stays
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
        """Return address, session and principals of the artifacts of a session, or of all."""
        rows = self._db.rows(
            "SELECT address, session, principals FROM artifacts WHERE ?1 IS NULL OR session = ?1", session
        )
        return [(address, name, json.loads(people)) for address, name, people in rows]

    # -- records ------------------------------------------------------------------------------------------------

    def records(self, as_of: JudgementContext = PLAIN) -> Iterator[MetaRecommendation]:
        """Yield every record, sorted by id."""
        for draft in self._judged(as_of):
            yield self._record(draft, as_of)

    def judged(self, as_of: JudgementContext = PLAIN) -> AdmittedRecords:
        """Return the active records, and counts of all records."""
        drafts = self._judged(as_of)
        active = tuple(self._record(draft, as_of) for draft in drafts if draft.standing.status == "active")
        for record in active:
            validate("meta_recommendation", record.model_dump(mode="json", warnings=False), f"record {record.id}")
        verdicts = [[draft.id, *draft.standing, draft.review.text if draft.review else None] for draft in drafts]
        return AdmittedRecords(
            active=active,
            digest=hashlib.sha256(canonical([self.digest(), verdicts])).hexdigest(),
            now=as_of.now or "",
            reviews=as_of.reviews,
            statuses=dict(sorted(Counter(draft.standing.status for draft in drafts).items())),
            refused=len(self.flawed()),
        )

    def record(self, id: str, as_of: JudgementContext = PLAIN) -> MetaRecommendation | None:
        """Return a record by its id or an earlier id."""
        return next((self._record(draft, as_of) for draft in self._judged(as_of) if id in draft.names), None)

    def flawed(self) -> dict[str, str]:
        """Return why the schema of records refuses drafts, by id."""
        reconciliation = self._reconciled()
        return dict(sorted((reconciliation.drafts[label].id, flaw) for label, flaw in reconciliation.flaws.items()))

    def digest(self) -> str:
        """Return a digest of all observations, equal for equal sets of artifacts."""
        ids = self._db.rows("SELECT id FROM seen ORDER BY id")
        return hashlib.sha256("".join(row[0] for row in ids).encode()).hexdigest()

    def observations(self) -> int:
        """Return the number of observations."""
        return int(self._db.rows("SELECT count(*) FROM seen")[0][0])

    def components(self) -> int:
        """Return the number of different claims."""
        return len(set(self._reconciled().labels.values()))

    def size(self) -> LedgerSize:
        artifacts = self._db.rows("SELECT count(*) FROM artifacts")[0][0]
        return LedgerSize(artifacts, self.observations(), len(self._reconciled().labels), self.components())

    # -- spans --------------------------------------------------------------------------------------------------

    def why(self, id: str) -> tuple[EvidenceQuote, ...]:
        """Return the evidence of a record with its words; empty for an unknown id."""
        draft = self._reconciled().draft(id)
        evidence = [Evidence(**one) for one in draft.evidence] if draft else []
        return tuple(quotes(evidence, self._cited(evidence), self._key))

    def support(self, record: MetaRecommendation, policy: AdmissionPolicy | None = None) -> RecordSupport | None:
        """Return the support of a record for erasures; None if it is unknown or its gate counts no voices."""
        reconciliation = self._reconciled()
        draft = reconciliation.draft(record.id)
        if draft is None:
            return None
        approved = record.review is not None and record.review.state == "approved"
        seen = observations(self._db, [brief.id for brief in reconciliation.supporting(draft)]).values()
        address = self._store.vault(self._tenant).subject_address
        return support(draft, seen, policy or AdmissionPolicy(), address, approved=approved)

    def basis(self, id: str) -> RecordBasis | None:
        """Return the counts behind a record; None for an unknown id."""
        reconciliation = self._reconciled()
        draft = reconciliation.draft(id)
        if draft is None:
            return None
        read = self._db.rows("SELECT count(DISTINCT session) FROM artifacts WHERE live")[0][0]
        return basis_of(draft, read, reconciliation.supporting(draft), self._db)

    def recurring(self, since_seconds: float, until_seconds: float) -> list[tuple[str, int]]:
        """Return record id and number of transcripts of each error in a time (Unix seconds), most frequent first."""
        reconciliation, sessions = self._reconciled(), defaultdict[str, set[str]](set)
        errors = [kind for kind, spec in KINDS.items() if spec.is_template and spec.gate != "seen"]
        query = "SELECT claim, session, seconds FROM seen WHERE kind IN (…)"
        for claim, session, seconds in self._db.among(query, errors):
            label = reconciliation.labels[claim]
            if (
                since_seconds <= seconds < until_seconds
                and label in reconciliation.drafts
                and label not in reconciliation.flaws
            ):
                sessions[reconciliation.drafts[label].id].add(session)
        return sorted(((id_, len(many)) for id_, many in sessions.items()), key=lambda one: (-one[1], one[0]))

    def broken(self, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """Return the evidence whose bytes are missing or do not match their address."""
        texts = zip(evidence, self._cited(evidence), strict=True)
        return tuple(span for span, cited in texts if not verified(span, cited, self._key))

    def _cited(self, evidence: Sequence[Evidence]) -> list[CitedText | None]:
        """Return the cited text of each span, or None if no live artifact has it."""
        texts: dict[tuple[str, str], dict[str, CitedText]] = {}
        for span in evidence:
            place = (span.source, span.session)
            if place not in texts:
                rows = self._db.rows("SELECT address FROM artifacts WHERE live AND source = ? AND session = ?", *place)
                artifacts = [self._artifacts.find(row[0]) for row in rows]
                texts[place] = {cited.ref: cited for artifact in artifacts if artifact for cited in artifact.cited}
        return [texts[span.source, span.session].get(span.ref) for span in evidence]

    # -- inside -------------------------------------------------------------------------------------------------

    def _reconciled(self) -> Reconciliation:
        made, version = self._made, self._db.version()
        if made is None or made[0] != version:
            made = self._made = version, Reconciliation(self._db, self._frame)
        return made[1]

    def _judged(self, as_of: JudgementContext) -> list[Draft]:
        return judged(self._reconciled(), as_of.policy, as_of.now_seconds, as_of.reviews)

    def _record(self, draft: Draft, as_of: JudgementContext) -> MetaRecommendation:
        """Write a judged draft as a record."""
        words = line(draft, draft.review.text if draft.review is not None else None)
        tokens = as_of.counter.text(words) if as_of.counter is not None else 0
        return recommendation(draft, self._frame, as_of, tokens)

    def close(self) -> None:
        """Close the file, and leave the store's erasers."""
        if self in self._store.erasers:
            self._store.erasers.remove(self)
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_PAGE = 200
"""Artifacts in memory at once."""
_AT_ONCE = 10 * _PAGE
"""Artifacts in one transaction: keys are hashes, so a transaction writes a page of the file for almost every row."""
