"""Where facts lie: for each audience of a profile a chain of its own, one link one atomic set.

    facts/<tenant>/<profile>/<audience address>/000000000001.json   a link whose body is a set (`fact`)

The audience is the only way to its facts: the folder is an HMAC of profile, kind and name. The newest link is what is
known now; older ones say what a past envelope was shown. Committing the set that stands already writes nothing, even
with another note. Without a caller's commit id, one is made from the set and the link before it, so a commit that is
repeated after a kill lands on the same bytes. A fact that rests on something forgotten is refused: that is checked
before it is kept, and again once the link has landed.

When somebody is forgotten, facts whose link names an erased subject are withdrawn (`withdraw_facts`), and so is all
that is known about one user or session (`forget_audience`): destroying a fact's key takes it from every link and
envelope.

Reading a set costs one listing, one request for its newest link and three for each fact (content, key, tombstone);
withdrawing a listing of tombstones and all fact links of the tenant.

Sessions ask through a `FactLookup`, without a build waiting for a dead store. Where the journal lies in the store,
asking is reading a local file. Where it does not, a thread asks and a build waits `wait_seconds` at most: what comes
later is there for the next user turn. After failures the store is not asked for a while (`drain.Breaker`), so a
dead store costs a build nothing but a finding. `epoch` grows with each erasure, by whichever process: what sessions
hold of facts is void then.

Two functions keep withdrawn meta records out of sessions' heads. A session's log holds the profile it is pinned to,
records included; a record is withdrawn when its key in the vault is destroyed. An erasure cleans the logs that were
written before (`withdrawn_heads`): a head keeps its place, its other records and its version's number, and gets a valid
code only where it had one. A profile read before the erasure is checked when it is about to be written
(`without_withdrawn_records`), with a request for each record; where the store does not answer in time, the profile is
taken as it is, with a finding.

Raises `InputError`, `OutcomeUnknown`, `Damaged`, `UnsupportedVersion`, `StoreUnavailable`; a lookup also what its
question raises. Source: the state design (committing governed state; erasure).
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from pydantic import ValidationError

from ctxsteward.schemas import Erased, Finding, StoreError
from ctxsteward.schemas.errors import ObjectMissing, VersionTaken
from ctxsteward.schemas.profile import MetaRecord

from ..backend import Backend
from ..crypto.hash_chain import Chain, Link
from ..crypto.keyring import AddressKey, address_of, subject_of
from ..crypto.vault import Vault
from ..journal.erasures import note_erasure
from ..journal.events import encoded_body
from ..journal.log import body_of, code_of
from ..journal.port import JournalRecord, SessionKey
from ..names import checked_note, checked_profile_name, facts_folder, number_of, part_of
from ..objects.port import folders_in
from ..profiles.pointers import Sessions
from ..profiles.version_codec import MetaRecordVault, RecordRef, canonical, of_known_fields, record_subject
from ..replication.drain import Asker
from .fact import (
    KIND,
    VERSION,
    Audience,
    Fact,
    FactRecord,
    checked_audience,
    checked_facts,
    fact_data,
    fact_subject,
    kept_in,
    read_fact,
    records_of,
)

_RETIRED = re.compile(r"night |.* decided about record ")
"""The notes of sets that nights of earlier versions wrote: they are not shown any more. Past envelopes still are."""
Each = Callable[[Callable[[RecordRef], Fact | None], Iterable[RecordRef]], Iterable[Fact | None]]
"""`map`, or one that asks several at a time."""


class StoredFact(NamedTuple):
    """A fact and where it lies."""

    fact: Fact
    kept: RecordRef


@dataclass(frozen=True, slots=True, kw_only=True)
class AudienceFacts:
    """What is known of an audience now."""

    number: int
    """Of the link; 0: there never was one."""
    held: tuple[StoredFact, ...]
    """In order of value."""
    findings: tuple[Finding, ...] = ()

    @property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(held.fact for held in self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCommit:
    """What a commit has left."""

    number: int
    """Of the link that holds the set; 0: nothing was ever known."""
    facts: tuple[Fact, ...]
    """As committed: what was erased since is not looked for where nothing was written."""
    written: bool
    findings: tuple[Finding, ...] = ()
    """Facts that were not taken in."""


class FactStore:
    """What is known of the audiences of one profile of one tenant."""

    def __init__(self, store: Backend, profile: str, tenant: str = "default") -> None:
        self.profile: str = checked_profile_name(profile)
        self.tenant: str = tenant
        self._store, self._journal = store, store.journal
        self.vault: Vault = store.vault(tenant)
        self._key = store.keys.address_key(tenant)
        self._shelf = MetaRecordVault(self.vault, self._key, profile)

    # -- reading ------------------------------------------------------------------------------------------------

    def folder(self, audience: Audience) -> str:
        """Where an audience's facts lie."""
        kind, name = checked_audience(audience)
        return facts_folder(self.tenant, self.profile, address_of(self._key, self.profile, f"{kind}s", name.encode()))

    def active(self, audience: Audience, each: Each = map) -> AudienceFacts:
        """What is known of an audience now, without what was erased since; `each` may read several facts at a time."""
        folder = self.folder(audience)
        link = self._chain(folder).head()
        if link is None or _RETIRED.match(link.body["why"]):
            return AudienceFacts(number=link.number if link else 0, held=())
        references = kept_in(link, folder)
        read = list(zip(each(self.fact, references), references, strict=True))
        held = tuple(StoredFact(fact, kept) for fact, kept in read if fact is not None)
        findings = tuple(erased_fact(kept) for fact, kept in read if fact is None)
        return AudienceFacts(number=link.number, held=held, findings=findings)

    def fact(self, kept: RecordRef) -> Fact | None:
        """A fact out of the vault; None where it was erased. Fields of later versions are left out."""
        data = self._shelf.content(kept)
        return None if data is None else read_fact(kept, data)

    def any(self) -> bool:
        """Whether there is a shelf at all; one request."""
        prefix = facts_folder(self.tenant, self.profile) + "/"
        return next(iter(self._store.objects.list(prefix)), None) is not None

    def folders(self) -> dict[str, int]:
        """Every shelf with the number of its newest link; costs one listing of all links."""
        found: dict[str, int] = {}
        for info in self._store.objects.list(facts_folder(self.tenant, self.profile) + "/"):
            number = number_of(info.key)
            if number is not None:
                found[info.key.rpartition("/")[0]] = number
        return found

    def links(self, folder: str) -> Iterator[Link]:
        """All links of a shelf, oldest first."""
        return self._chain(folder).links()

    def _chain(self, folder: str) -> Chain:
        return self._store.chain(folder, tenant=self.tenant)

    # -- committing ---------------------------------------------------------------------------------------------

    def commit(
        self,
        audience: Audience,
        facts: Iterable[Fact],
        *,
        who: str,
        why: str,
        when: str,
        commit_id: str | None = None,
    ) -> FactCommit:
        """Make this the set of an audience, the most valuable first; the same set again writes nothing.

        What rests on something forgotten is left out, with a finding. After `OutcomeUnknown` the same call commits
        once. With a `commit_id` that has landed before, nothing is committed, whatever stands there by now.
        """
        folder = self.folder(audience)
        checked = checked_audience(audience), folder, checked_facts(facts), checked_note(who, why, when)
        return self._commit(*checked, commit_id)

    def _commit(
        self,
        audience: Audience,
        folder: str,
        facts: tuple[Fact, ...],
        note: dict[str, str],
        commit_id: str | None,
    ) -> FactCommit:
        chain = self._chain(folder)
        entries = [self._entry(audience, fact) for fact in facts]
        findings: list[Finding] = []
        while True:
            head = chain.head()
            known = [] if head is None else kept_in(head, folder)
            if commit_id is not None and (earlier := _repeated(chain, head, commit_id)):
                stored = tuple(fact for kept in kept_in(earlier, folder) if (fact := self.fact(kept)) is not None)
                return FactCommit(number=earlier.number, facts=stored, written=False, findings=tuple(findings))
            if known == [entry.kept for entry in entries]:
                return _done(head, entries, findings, written=False)
            fresh = [entry for entry in entries if entry.kept not in known]
            gone = [entry for entry in fresh if self._is_gone(entry) or not self._kept(audience, entry)]
            gone += [entry for entry in entries if entry not in fresh and self.vault.tombstone(entry.kept.key)]
            if gone:
                findings += map(refused, gone)
                entries = [entry for entry in entries if entry not in gone]
                continue
            records = [{**entry.kept._asdict(), "rests": self._resting(entry)} for entry in entries]
            body = {"schema_version": VERSION, **note, "records": records}
            chosen = commit_id or self._commit_id(folder, head, entries)
            try:
                link = chain.append(head, body, epoch=head.epoch if head else 0, commit_id=chosen)
            except VersionTaken:
                continue
            gone = [entry for entry in fresh if not self._still(audience, entry, note)]
            findings += map(refused, gone)
            return _done(link, [entry for entry in entries if entry not in gone], findings, written=True)

    def _entry(self, audience: Audience, fact: Fact) -> FactRecord:
        """A fact with the reference it has, or would have; asks nothing of the store."""
        subject = fact_subject(self.profile, audience, fact)
        kept = RecordRef(address_of(self._key, subject, KIND, fact_data(fact)), self.vault.subject_address(subject))
        named = {source.session for source in fact.sources}
        named |= {subject_of(source.session, source.principal) for source in fact.sources}
        return FactRecord(fact, kept, tuple(sorted(map(self.vault.subject_address, named))))

    def _kept(self, audience: Audience, entry: FactRecord) -> bool:
        """Put a fact into the vault; False where it, or its session, was forgotten."""
        self.vault.forget_secret(entry.kept.key)
        try:
            self.vault.put(fact_subject(self.profile, audience, entry.fact), KIND, fact_data(entry.fact))
        except Erased:
            return False
        return True

    def _still(self, audience: Audience, entry: FactRecord, note: dict[str, str]) -> bool:
        """Whether a fact stands once its link has landed: its blob may have been collected, a source forgotten."""
        if self._is_gone(entry):
            self.vault.destroy_key_at(entry.kept.key, **note)
            return False
        self.vault.forget_secret(entry.kept.key)
        try:
            self.vault.get(entry.kept.blob)
        except (Erased, ObjectMissing):
            return self._kept(audience, entry)
        return True

    def _commit_id(self, folder: str, head: Link | None, entries: list[FactRecord]) -> str:
        told = [head.mac if head else "", [entry.kept for entry in entries]]
        return address_of(self._key, folder, "facts", canonical(told))

    # -- what it rests on ---------------------------------------------------------------------------------------

    def _is_gone(self, entry: FactRecord) -> bool:
        """Whether something that a fact rests on was forgotten, as far as this machine knows."""
        return any(self.vault.tombstone(name) is not None for name in entry.rests) or any(
            self._journal_body(source.session, source.ordinal).get("erased") for source in entry.fact.sources
        )

    def _resting(self, entry: FactRecord) -> list[str]:
        """What a fact rests on, with the principals that the local log names for its sources."""
        said = ((source.session, source.ordinal) for source in entry.fact.sources)
        spoke = ((session, self._journal_body(session, at).get("principal")) for session, at in said)
        names = {subject_of(session, who) for session, who in spoke if isinstance(who, str)}
        return sorted({*entry.rests, *map(self.vault.subject_address, names)})

    def _journal_body(self, session: str, ordinal: int) -> dict[str, Any]:
        """What is known here of a message; empty where that is nothing."""
        record = self._journal.message(SessionKey(self.tenant, session), ordinal)
        return {} if record is None else body_of(record) or {}

    # -- erasing ------------------------------------------------------------------------------------------------

    def erase(
        self, unfit: Callable[[Fact], bool], *, who: str, when: str, why: str, audience: Audience | None = None
    ) -> int:
        """Destroy every fact that is `unfit`, of one audience or all, wherever it is shown; how many there were."""
        folders = self.folders() if audience is None else [self.folder(audience)]
        seen = {kept for folder in folders for link in self.links(folder) for kept in kept_in(link, folder)}
        doomed = {kept.key for kept in seen if (fact := self.fact(kept)) is not None and unfit(fact)}
        for key in sorted(doomed):
            self.vault.destroy_key_at(key, who=who, when=when, why=why)
        note_erasure(self._journal, self.tenant)
        return len(doomed)


def erased_fact(kept: RecordRef) -> Finding:
    """Says that a fact was left out."""
    return Finding(kind="fact_erased", field="dynamic", text=f"fact {kept.blob[:16]}… was erased and is left out")


def refused(entry: FactRecord) -> Finding:
    """Says that a fact was not taken in."""
    text = f"fact {entry.fact.id} rests on something that was forgotten; it was not taken in"
    return Finding(kind="fact_refused", field="facts", text=text)


def _done(link: Link | None, entries: list[FactRecord], findings: list[Finding], *, written: bool) -> FactCommit:
    facts = tuple(entry.fact for entry in entries)
    return FactCommit(number=link.number if link else 0, facts=facts, written=written, findings=tuple(findings))


def _repeated(chain: Chain, head: Link | None, commit_id: str) -> Link | None:
    """An earlier try of this commit that landed."""
    numbers = range(head.number if head else 0, 0, -1)
    return next((link for number in numbers if (link := chain.present(number)).commit_id == commit_id), None)


def withdraw_facts(store: Backend, tenant: str, *, who: str, when: str, why: str) -> int:
    """Destroy the keys of facts that rest on a forgotten subject; how many there were."""
    vault, withdrawn = store.vault(tenant), 0
    shelves = list(_shelves(store, tenant))
    if not shelves:
        return 0
    erased = frozenset(vault.erased())
    keys: dict[str, bool] = {}
    for shelf in shelves:
        for folder in shelf.folders():
            for link in shelf.links(folder):
                for record in records_of(link, folder):
                    keys[record["key"]] = keys.get(record["key"], False) or not erased.isdisjoint(record["rests"])
    for key, rests_on_erased in keys.items():
        if key in erased:
            vault.finish_destroying(key)
        elif rests_on_erased:
            vault.destroy_key_at(key, who=who, when=when, why=why)
            withdrawn += 1
    return withdrawn


def forget_audience(store: Backend, tenant: str, audience: Audience, *, who: str, when: str, why: str) -> int:
    """Destroy all that is known about this audience, in every profile; how many facts there were."""
    vault, forgotten = store.vault(tenant), 0
    for shelf in _shelves(store, tenant):
        folder = shelf.folder(audience)
        keys = {record["key"] for link in shelf.links(folder) for record in records_of(link, folder)}
        for key in sorted(keys):
            forgotten += vault.tombstone(key) is None
            vault.destroy_key_at(key, who=who, when=when, why=why)
    return forgotten


def has_shelf(store: Backend, tenant: str, audience: Audience) -> bool:
    """Whether anything was ever known about this audience, in any profile."""
    return any(next(shelf.links(shelf.folder(audience)), None) is not None for shelf in _shelves(store, tenant))


def _shelves(store: Backend, tenant: str) -> Iterator[FactStore]:
    """Of every profile that has facts."""
    names = folders_in(store.objects, f"facts/{part_of(tenant)}/")
    return (FactStore(store, unquote(name), tenant) for name in names)


def withdrawn_heads(
    key: AddressKey, session: str, rows: Sequence[JournalRecord], is_gone: Callable[[str], bool]
) -> dict[int, JournalRecord]:
    """The head records that change, by position; `is_gone` judges the subject of a meta record."""
    changed: dict[int, JournalRecord] = {}
    for position, record in enumerate(rows):
        body = _without(record, is_gone) if record.kind == "head" and '"meta":[{' in record.body else None
        if body is not None:
            rewritten = record._replace(body=body)
            valid = hmac.compare_digest(record.mac, code_of(key, session, position, record))
            changed[position] = rewritten._replace(mac=code_of(key, session, position, rewritten) if valid else "")
    return changed


def without_withdrawn_records(
    lookup: FactLookup | None, tenant: str, profile: dict[str, Any]
) -> tuple[dict[str, Any], list[Finding]]:
    """A profile, as JSON, without the records that were withdrawn since it was read."""
    records: list[dict[str, Any]] = profile.get("meta") or []
    if lookup is None or not records:
        return profile, []
    gone: dict[str, bool] = {}

    def look() -> None:
        vault = lookup.shelves(profile["name"], tenant).vault
        names = [vault.subject_address(_subject(profile["name"], record)) for record in records]
        are_gone = lookup.each(lambda name: vault.tombstone(name) is not None, names)
        gone.update({record["id"]: is_gone for record, is_gone in zip(records, are_gone, strict=True)})

    try:
        lookup.ask(look)
    except StoreError as error:
        text = f"it is not known whether records of the profile were withdrawn: {type(error).__name__}: {error}"
        return profile, [Finding(kind="withdrawals_unknown", field="meta", text=text[:500])]
    kept = [record for record in records if not gone[record["id"]]]
    if len(kept) == len(records):
        return profile, []
    text = f"the profile in memory is out of date: {len(records) - len(kept)} of its meta records were withdrawn since"
    return {**profile, "meta": kept}, [Finding(kind="meta_record_withdrawn", field="meta", text=text)]


def _without(record: JournalRecord, is_gone: Callable[[str], bool]) -> str | None:
    """The body without withdrawn records; None where it holds none, or cannot be read."""
    try:
        body: dict[str, Any] = json.loads(record.body)
        profile = body["profile"]
        kept = [meta_record for meta_record in profile["meta"] if not is_gone(_subject(profile["name"], meta_record))]
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None
    if len(kept) == len(profile["meta"]):
        return None
    profile["meta"] = kept
    return encoded_body(body)


def _subject(profile: str, fields: dict[str, Any]) -> str:
    return record_subject(profile, of_known_fields(MetaRecord, fields))


WAIT_SECONDS = 0.25
"""That a build waits for facts of a store that is not near."""
MAX_ASKING = 8
"""Questions under way at one time."""
MAX_AT_A_TIME = 8
"""Requests of one question."""
_LATE = "the object store did not answer in time"


A = TypeVar("A")
B = TypeVar("B")


class FactLookup:
    """Safe with threads."""

    def __init__(
        self,
        shelves: Callable[[str, str], FactStore],
        *,
        wait_seconds: float | None = None,
        erasures: Callable[[str], int] = lambda tenant: 0,
        sessions: Sessions | None = None,
    ) -> None:
        """`shelves` are those of a profile and tenant; with `wait_seconds`, questions are asked aside; `erasures` are
        those of a tenant so far, by whichever process."""
        self.shelves = shelves
        self.sessions = sessions
        """Where profiles and the sources of their records are looked up; None: nowhere."""
        self.epoch = erasures
        """Of what was read of a tenant's facts."""
        self._wait_seconds = wait_seconds
        self._asker = Asker("facts", MAX_ASKING, late=_LATE)

    def ask(self, question: Callable[[], None]) -> None:
        """Run this question, waiting `wait_seconds` at most; it keeps its answer itself, perhaps after the wait."""
        if self._wait_seconds is None:
            question()
        else:
            self._asker.ask(lambda _: question(), self._wait_seconds)

    def each(self, read: Callable[[A], B], items: Iterable[A]) -> Iterable[B]:
        """`map`; of a store that is not near, several at a time."""
        if self._wait_seconds is None:
            return map(read, items)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(MAX_AT_A_TIME, thread_name_prefix="ctxsteward facts") as pool:
            return list(pool.map(read, items))
