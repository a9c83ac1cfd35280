"""The versions of a profile: an append-only chain, in which each object is an atomic commit of the whole head.

    profiles/<tenant>/<profile>/versions/000000000001.json   a link (`hash_chain`), its body: `version_codec`

The link has number, commit id, writer epoch and the code of the previous link. Blobs are written first, the version
last, so a stored version is complete. A reader sees one version or another, never a mix.

The person who makes the chain commits the first version. Every later commit, except a rollback to a text that people
had approved, needs a `promotion`, which names its drift report, gate report and approvals. A change of persona,
policies, rails or surface, or a record that speaks in the operator's name, needs approvals. Each approval is checked
here (`approval_check`): it must be a verdict on exactly this text in the profile's log of reviews, signed by a reviewer
who is enrolled in the store (`people`). The steward's `release` makes promotions; a commit raises `Unapproved` if one
is not valid.

Reading the head costs one listing from the highest known number on, one request for a new link, and two for each meta
record. A commit costs as much, and one request each for the version and for every new blob.

Epochs and leases (`WriterLease`) let one writer of a profile work while the others wait.

    profiles/<tenant>/<profile>/writers/   chain of {"schema_version": 1, "kind": "take" | "renew" | "release",
                                                     "owner", "token", "expires_seconds"}

A link's `epoch` counts the takes. A writer passes its epoch to `ProfileVersions.commit`, which refuses it (`Fenced`)
after another writer has taken a later one. Times are Unix seconds by the clock of the writer, and only say when another
writer should take over. With wrong clocks two writers may hold a lease at once; the compare-and-swap on the versions
still gives each number to only one commit.

Raises `Unapproved`, `VersionTaken`, `Fenced`, `OutcomeUnknown`, `Erased`, `ReferenceNotFound`, `InputError`, `Damaged`,
`UnsupportedVersion`, `StoreUnavailable`. Source: the state design (committing governed state); Gray and Cheriton 1989
(leases for liveness, fencing by what is written).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from ctxsteward.schemas import InputError, ReferenceNotFound, Unapproved
from ctxsteward.schemas.errors import Damaged, Fenced, ObjectMissing, UnsupportedVersion, VersionTaken
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.schemas.profile_changes import ChangelogEntry

from .. import process_forks as forking
from ..backend import Backend
from ..crypto.hash_chain import Link, follows
from ..memory_spans import memory_span
from ..names import checked_name, checked_profile_name, numbered, part_of, versions_folder, writers_folder
from ..objects.port import ObjectStore, folders_in
from .approval_check import ApprovalCheck, ApprovalChecker, ProposedVersion
from .stored_promotion import readable_promotion
from .version_codec import Content, MetaRecordVault, Version, VersionForm, content_of, stored_blocks

__all__ = ["ProfileVersions", "Version", "profile_names"]


class ProfileVersions:
    """The chain of one profile of one tenant."""

    def __init__(
        self,
        store: Backend,
        name: str,
        tenant: str = "default",
    ) -> None:
        self.name: str = checked_profile_name(name)
        self.tenant: str = tenant
        self.folder: str = versions_folder(tenant, name)
        self._chain = store.chain(self.folder, tenant=tenant)
        self._writers = store.chain(writers_folder(tenant, name), tenant=tenant)
        key = store.keys.address_key(tenant)
        self._shelf = MetaRecordVault(store.vault(tenant), key, name)
        self._form = VersionForm(self.folder, name, tenant, key, self._shelf)
        self._newest: Link | None = None
        self._store = store

    # -- reading ------------------------------------------------------------------------------------------------

    def head(self, after: int = 0) -> Version | None:
        """Return the newest version, whose number is at least `after`, or None if there is none."""
        link = self._head_link(after)
        return None if link is None else self._form.version(link)

    def newest(self) -> Version:
        """Return the newest version. Raises `ReferenceNotFound` if there is none."""
        found = self.head()
        if found is None:
            raise self._not_found(f"profile {self.name!r}", 0)
        return found

    def at(self, number: int) -> Version:
        """Return the version with this number. Raises `ReferenceNotFound`."""
        return self._form.version(self._link(number))

    def history(self, limit: int | None = None) -> Iterator[Version]:
        """Yield all versions, oldest first; with a limit, the newest ones, newest first. Each link is checked."""
        if limit is None:
            yield from map(self._form.version, self._chain.links())
            return
        after: Link | None = None
        head = self._head_link()
        for number in range(head.number if head else 0, max(0, (head.number if head else 0) - limit), -1):
            link = self._link(number)
            if after is not None and not follows(after, link):
                raise Damaged(f"{self.folder}: version {number + 1} does not follow {number}; run store fsck")
            yield self._form.version(link)
            after = link

    def changelog(self) -> Iterator[ChangelogEntry]:
        """Yield the changelog entries of all versions, oldest first. Reads no meta record."""
        return map(self._form.entry, self._chain.links())

    def told(self, start: int = 1) -> Iterator[ChangelogEntry]:
        """Yield the changelog entries from a version on, oldest first, with the readable parts of their promotions."""
        for link in self._chain.links(start):
            promotion = readable_promotion(link.body.get("promotion"))
            yield self._form.entry(link).model_copy(update={"promotion": promotion})

    def slice_text(self, version: Version) -> str:
        """Return the meta slice as it was rendered at the commit, without erased lines; labels stay."""
        return self._form.slice_text(version)

    # -- committing ---------------------------------------------------------------------------------------------

    def commit(
        self,
        profile: ProfileDocument,
        *,
        who: str,
        why: str,
        when: str,
        parent: int | None = None,
        epoch: int | None = None,
        commit_id: str | None = None,
        promotion: Mapping[str, Any] | None = None,
    ) -> Version:
        """Commit this profile after version `parent`; 0 means as the first, None after the current head.

        If the content equals the head's, write nothing and return the head. After `OutcomeUnknown`, the same call with
        the error's `commit_id` commits only once. `epoch` is that of a `WriterLease`, or None without a lease.
        `promotion` is JSON of names, keys and addresses, without users' text. Without one only the first version can be
        committed; else `Unapproved` is raised.
        """
        wanted, note = self._form.named(profile), self._form.noted(who, why, when)

        def content(head: Version | None) -> Content:
            earlier = wanted.version is not None and head is not None and 0 < wanted.version < head.number
            return self._form.content(wanted, self.at(wanted.version) if earlier and wanted.version else head)

        with memory_span("upsert_memory", self.name) as written:
            return self._commit(content, note, parent, epoch, commit_id, written, promotion)

    def rollback(
        self,
        to: int,
        *,
        who: str,
        why: str,
        when: str,
        parent: int | None = None,
        epoch: int | None = None,
        commit_id: str | None = None,
    ) -> Version:
        """Commit the content of version `to` as a new version, without records that were erased since.

        Raises `Unapproved` if that changes persona, policies, rails or surface to a text that nobody approved.
        """
        content = self._form.restored(self.at(to))
        note = self._form.noted(who, why, when)
        with memory_span("upsert_memory", self.name) as written:
            return self._commit(lambda head: content, note, parent, epoch, commit_id, written)

    def erase(self, unfit: Callable[[MetaRecord], bool], *, who: str, when: str, why: str) -> int:
        """Destroy the key of every record of every version that is `unfit`; return their number."""
        doomed = {record for version in self.history() for record, _ in version.records if unfit(record)}
        for record in doomed:
            self._shelf.erase(record, who=who, when=when, why=why)
        return len(doomed)

    def _commit(
        self,
        make: Callable[[Version | None], Content],
        note: dict[str, str],
        parent: int | None,
        epoch: int | None,
        commit_id: str | None,
        written: Callable[[int], None],
        promotion: Mapping[str, Any] | None = None,
    ) -> Version:
        chosen = commit_id or secrets.token_hex(16)
        while True:
            link = self._head_link()
            if commit_id is not None and (earlier := self._repeated(commit_id, link, parent)):
                return self._form.version(earlier)
            if parent is not None and parent != (link.number if link else 0):
                raise VersionTaken(self.folder, parent + 1)
            if epoch is not None:
                writer = self._writers.head()
                newest = max(link.epoch if link else 0, writer.epoch if writer else 0)
                if epoch < newest:
                    raise Fenced(self.folder, epoch, newest)
                if epoch > newest:
                    raise InputError(f"{self.folder}: nobody has taken writer epoch {epoch}, the newest is {newest}")
            head = None if link is None else self._form.version(link)
            content = make(head)
            if head is not None and content.fields == content_of(head.link.body):
                return head
            if head is not None:
                self._refuse_unapproved(head, content, promotion, note)
            under = epoch if epoch is not None else (link.epoch if link else 0)
            body = self._form.body(content, head, note, promotion)
            if head is None:  # of a tenant without sessions, this is the only check of its keys
                self._store.check_keys(self.tenant, write=True)
            try:
                landed = self._chain.append(link, body, epoch=under, commit_id=chosen)
            except VersionTaken:
                continue  # with a `parent`, the check against the new head raises
            self._newest = landed
            written(sum(change["kind"] in ("added", "changed") for change in body["changelog"]["changes"]))
            self._form.body(content, head, note)  # put blobs again: gc may have collected one that was there already
            return self._form.committed(landed, content) if landed.body == body else self._form.version(landed)

    def _repeated(self, commit_id: str, head: Link | None, parent: int | None) -> Link | None:
        """Return the link of an earlier attempt with this commit id. With a parent only one number is possible."""
        last = head.number if head else 0
        numbers = range(last, 0, -1) if parent is None else range(parent + 1, min(parent + 1, last) + 1)
        return next((link for number in numbers if (link := self._link(number)).commit_id == commit_id), None)

    def _refuse_unapproved(
        self, head: Version, content: Content, promotion: Mapping[str, Any] | None, note: Mapping[str, str]
    ) -> None:
        """Raise `Unapproved` for a change without the promotion and approvals that it needs."""
        changes = _governed(content.fields) != _governed(head.link.body)
        if content.restores is not None:
            if changes and not self._is_agreed(content.restores):
                raise Unapproved(self.name, head.number, f"nobody has agreed to what version {content.restores} says")
            return
        if promotion is None:
            raise Unapproved(self.name, head.number, "this is another text, with neither drift report nor approvals")
        speaks = changes or bool(_operators(content.profile) - _operators(head.profile))
        approvals = promotion.get("approvals")
        if speaks and not approvals:
            raise Unapproved(self.name, head.number, "nobody has approved this change of it")
        if approvals:
            proposed = ProposedVersion(
                number=head.number + 1,
                author=note["who"],
                when=note["when"],
                body=content.fields,
                before=head.link.body,
                document=content.profile,
            )
            check = ApprovalChecker(self._store, self.name, self.tenant).check(proposed, approvals)
            wrong = [*check.problems, *(f"{who!r} is no reviewer enrolled in this store" for who in check.unknown)]
            if wrong:
                raise Unapproved(
                    self.name, head.number, f"the approvals given for another text do not hold: {wrong[0]}"
                )

    def approval_checks(self) -> Iterator[tuple[int, ApprovalCheck]]:
        """Yield number and check of each version with wrong or unknown approvals, oldest first.

        A version that changes text which people must approve, or claims to restore another version, is checked even if
        it names no approval.
        """
        checker = ApprovalChecker(self._store, self.name, self.tenant)
        before: Version | None = None
        bodies: dict[int, Mapping[str, Any]] = {}
        for link in self._chain.links():
            version = self._form.version(link)
            bodies[version.number] = link.body
            check = self._approval_check(checker, before, version, bodies)
            if check.problems or check.unknown:
                yield version.number, check
            before = version

    def _approval_check(
        self,
        checker: ApprovalChecker,
        before: Version | None,
        version: Version,
        bodies: Mapping[int, Mapping[str, Any]],
    ) -> ApprovalCheck:
        body, restores = version.link.body, version.changelog.restores
        promotion = body.get("promotion")
        approvals = promotion.get("approvals") if isinstance(promotion, Mapping) else promotion
        if restores is not None:
            old = bodies.get(restores)
            if old is None or _governed(old) != _governed(body) or not _blobs(body) <= _blobs(old):
                return ApprovalCheck((f"it says that it restores version {restores}, and says something else",), ())
            return ApprovalCheck((), ())
        if before is None:
            if not approvals:
                return ApprovalCheck((), ())  # the founder of the chain answers for its first version
        else:
            speaks = _governed(body) != _governed(before.link.body)
            speaks = speaks or bool(_operators(version.profile) - _operators(before.profile))
            if not speaks and not approvals:
                return ApprovalCheck((), ())
        if not approvals and (promotion is None and checker.was_before_people(version.number)):
            return ApprovalCheck((), ("nobody",))  # earlier programs committed by hand
        proposed = ProposedVersion(
            number=version.number,
            author=version.changelog.who,
            when=version.changelog.when,
            body=body,
            before=before.link.body if before else None,
            document=None if version.findings else version.profile,
        )
        return checker.check(proposed, approvals or ())

    def _is_agreed(self, number: int) -> bool:
        """Return whether people approved a version's persona, policies, rails and surface when they came into force."""
        link = self._link(number)
        while link.number > 1 and not (readable_promotion(link.body.get("promotion")) or {}).get("approvals"):
            restores = link.body["changelog"]["restores"]
            before = self._link(link.number - 1 if restores is None else restores)
            if _governed(before.body) != _governed(link.body):
                return False
            link = before
        return True

    # -- links --------------------------------------------------------------------------------------------------

    def _head_link(self, after: int = 0) -> Link | None:
        known = self._newest
        last = self._chain.last_number(max(after, known.number if known else 0))
        if known is None or last != known.number:
            self._newest = known = self._chain.present(last) if last else None
        return known

    def _link(self, number: int) -> Link:
        with suppress(ObjectMissing):
            if number > 0:
                return self._chain.read(number)
        last = self._chain.last_number()
        if 0 < number <= last:
            return self._chain.present(number)
        raise self._not_found(f"version {number} of profile {self.name!r}", last)

    def _not_found(self, what: str, last: int) -> ReferenceNotFound:
        has = (
            f"it has versions 1 to {last}"
            if last
            else (
                f"tenant {self.tenant!r} has committed no version of it; commit one "
                f"(`ctxsteward backfill --snapshot --profile FILE --tenant {self.tenant}`), or name another profile"
            )
        )
        return ReferenceNotFound(what, "", has)


def _governed(body: Mapping[str, Any]) -> list[Any]:
    """Return the inline part of a version: the operator's blocks."""
    return list(stored_blocks(body).values())


def _blobs(body: Mapping[str, Any]) -> set[str]:
    """Return the addresses of the meta records of a version."""
    return {reference["blob"] for reference in body["meta"]}


def _operators(document: ProfileDocument) -> set[tuple[str, str]]:
    """Return the records that speak in the operator's name."""
    return {(record.id, record.text) for record in document.meta if record.approved}


def profile_names(objects: ObjectStore, tenant: str) -> Iterator[str]:
    """Yield the names of the tenant's profiles that have a version, in byte order of their keys."""
    folder = f"profiles/{part_of(tenant)}/"
    for name in folders_in(objects, folder):
        if next(iter(objects.list(f"{folder}{name}/versions/")), None) is not None:
            yield unquote(name)


VERSION = 1


class Lease(NamedTuple):
    """A claim to write one profile."""

    epoch: int
    owner: str
    expires_seconds: float
    """Unix time by the owner's clock."""


class WriterLease:
    """One writer's claim to a profile. `clock` gives Unix seconds."""

    def __init__(
        self,
        store: Backend,
        name: str,
        tenant: str = "default",
        *,
        owner: str,
        clock: Callable[[], float],
        new_token: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.owner: str = checked_name("owner", owner)
        self.folder: str = writers_folder(tenant, checked_profile_name(name))
        self._chain = store.chain(self.folder, tenant=tenant)
        self._clock = clock
        self._new_token = new_token
        self.forked()
        forking.renew_in_child(self)

    def forked(self) -> None:
        """Become another writer in a child process, without the parent's lease."""
        self._token = self._new_token()
        """Distinguishes this writer from another one with the same name."""
        self._epoch = 0

    def holder(self) -> Lease | None:
        """Return the current lease, expired or not, or None if it was never taken or was released."""
        link = self._head()
        return None if link is None or link.body["kind"] == "release" else _lease(link)

    def take(self, ttl_seconds: float, *, force: bool = False) -> Lease | None:
        """Take the lease under the next epoch if it is free, released or expired, or with `force`.

        Return None if another writer holds it. If this writer holds it already, renew it.
        """
        moment = self._moment(ttl_seconds)
        while True:
            link = self._head()
            if link is not None and link.body["kind"] != "release":
                if link.body["token"] == self._token:
                    return self.renew(ttl_seconds)
                if link.body["expires_seconds"] > moment and not force:
                    return None
            taken = self._write(link, "take", (link.epoch if link else 0) + 1, moment + ttl_seconds)
            if taken is not None:
                return taken

    def renew(self, ttl_seconds: float) -> Lease:
        """Prolong the lease, even if it has expired. Raises `Fenced` if another writer has taken it."""
        moment = self._moment(ttl_seconds)
        while True:
            link = self._head()
            if link is None or link.body["token"] != self._token or link.body["kind"] == "release":
                raise Fenced(self.folder, self._epoch, link.epoch if link else 0)
            renewed = self._write(link, "renew", link.epoch, moment + ttl_seconds)
            if renewed is not None:
                return renewed

    def release(self) -> None:
        """Release the lease so that others can take it at once; do nothing if this writer does not hold it."""
        while True:
            link = self._head()
            if link is None or link.body["token"] != self._token or link.body["kind"] == "release":
                return
            if self._write(link, "release", link.epoch, 0.0) is not None:
                return

    def _write(
        self, after: Link | None, kind: Literal["take", "renew", "release"], epoch: int, expires_seconds: float
    ) -> Lease | None:
        """Write the next link; return None if another writer was first."""
        body = {
            "schema_version": VERSION,
            "kind": kind,
            "owner": self.owner,
            "token": self._token,
            "expires_seconds": expires_seconds,
        }
        try:
            link = self._chain.append(after, body, epoch=epoch)
        except VersionTaken:
            return None
        self._epoch = epoch
        return _lease(link)

    def _head(self) -> Link | None:
        link = self._chain.head()
        if link is not None and link.body.get("schema_version") != VERSION:
            raise UnsupportedVersion(numbered(self.folder, link.number), link.body.get("schema_version"), VERSION)
        return link

    def _moment(self, ttl_seconds: float) -> float:
        if not (math.isfinite(ttl_seconds) and ttl_seconds > 0):
            raise InputError(f"lease: a time to live of {ttl_seconds} s; give a positive number of seconds")
        moment = self._clock()
        if not math.isfinite(moment):
            raise InputError(f"lease: the clock says {moment}; give Unix seconds")
        return moment


def _lease(link: Link) -> Lease:
    body: dict[str, Any] = link.body
    return Lease(link.epoch, body["owner"], body["expires_seconds"])
