"""The versions of a profile: an append-only chain, one object one atomic commit of the whole head.

    profiles/<tenant>/<profile>/versions/000000000001.json   a link (`hash_chain`), its body: `version_codec`

The link carries number, commit id, writer epoch and the code of the link before. Blobs are written first, the version
last, so a version that is there is complete. A reader sees one version or another, never a mix.

The first version is committed by the person who makes the chain. After it nothing changes by hand: a commit says what
it rests on (its `promotion`), and one that changes persona, policies, rails or surface, or has a record speak in the
operator's name, rests on approvals. Each of them is checked here (`approval_check`): it must be a verdict in the
profile's log of reviews, on this very text, signed by a reviewer who is enrolled in the store (`people`). A rollback
brings back what people had agreed to. The steward's `release` makes promotions; `Unapproved` is raised here where one
does not hold.

Reading the head costs one listing from the highest number known on, one request for a link not seen before, and two for
each meta record; so does a commit, and one request each for the version and for whatever is new in it.

Who writes a profile now is told by epochs and leases (`WriterLease`), so that one writer works and the others wait.

    profiles/<tenant>/<profile>/writers/   chain of {"schema_version": 1, "kind": "take" | "renew" | "release",
                                                     "owner", "token", "expires_seconds"}

A link's `epoch` counts the takes. A writer passes its epoch to `ProfileVersions.commit`, which refuses it (`Fenced`)
once somebody has taken a later one. Times are Unix seconds of whoever wrote them and only say when it is polite to take
over: with clocks that lie two writers may hold a lease at once, and then the compare-and-swap on the versions still
gives each number to one commit.

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
from ..names import checked_name, checked_profile_name, numbered, part_of, versions_folder, writers_folder
from ..objects.port import ObjectStore, folders_in
from .approval_check import ApprovalCheck, ApprovalChecker, ProposedVersion
from .stored_promotion import readable_promotion
from .version_codec import Content, MetaRecordVault, Version, VersionForm, content_of, stored_blocks

__all__ = ["ProfileVersions", "Version", "profile_names"]


class ChangeSummary(NamedTuple):
    """What a version says of its own commit."""

    entry: ChangelogEntry
    promotion: Mapping[str, Any] | None
    """What it rested on, as far as it can be read (`readable_promotion`): drift, evals, approvals, by address.

    None: the first, a rollback, or from before it had to."""


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

    def head(self) -> Version | None:
        """The newest version; None where there is none."""
        link = self._head_link()
        return None if link is None else self._form.version(link)

    def newest(self) -> Version:
        """The newest version; raises `ReferenceNotFound` where there is none."""
        found = self.head()
        if found is None:
            raise self._not_found(f"profile {self.name!r}", 0)
        return found

    def at(self, number: int) -> Version:
        """The version with this number; raises `ReferenceNotFound`."""
        return self._form.version(self._link(number))

    def history(self, limit: int | None = None) -> Iterator[Version]:
        """All versions, oldest first; with a limit, the newest, newest first. Each is checked against its neighbour."""
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
        """The entries of all versions, oldest first; reads no meta record."""
        return map(self._form.entry, self._chain.links())

    def told(self, start: int = 1) -> Iterator[ChangeSummary]:
        """The changelog from a version on, oldest first, each entry with what its commit rested on."""
        links = self._chain.links(start)
        return (ChangeSummary(self._form.entry(link), readable_promotion(link.body.get("promotion"))) for link in links)

    def slice_text(self, version: Version) -> str:
        """The meta slice as it was rendered at the commit; erased lines are left out, labels are not."""
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
        """Commit this profile after version `parent` (0: as the first); None: after whatever the head is by then.

        The head's own content writes nothing and gives the head. After `OutcomeUnknown`, the same call with the
        error's `commit_id` commits once, whatever had landed. `epoch` is that of a `WriterLease`; None: no lease.
        `promotion` is what the commit rests on, as JSON with names, keys and addresses: no text of users. None makes a
        chain, and changes none: `Unapproved`.
        """
        wanted, note = self._form.named(profile), self._form.noted(who, why, when)

        def content(head: Version | None) -> Content:
            earlier = wanted.version is not None and head is not None and 0 < wanted.version < head.number
            return self._form.content(wanted, self.at(wanted.version) if earlier and wanted.version else head)

        return self._commit(content, note, parent, epoch, commit_id, promotion)

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

        Raises `Unapproved` where that changes persona, policies, rails or surface to what nobody ever agreed to.
        """
        content = self._form.restored(self.at(to))
        return self._commit(lambda head: content, self._form.noted(who, why, when), parent, epoch, commit_id)

    def erase(self, unfit: Callable[[MetaRecord], bool], *, who: str, when: str, why: str) -> int:
        """Destroy every record of every version that is `unfit`, wherever it is shown; how many there were."""
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
            try:
                landed = self._chain.append(link, body, epoch=under, commit_id=chosen)
            except VersionTaken:
                continue  # with a parent, the new head settles it
            self._newest = landed
            self._form.body(content, head, note)  # a blob that stood there already may have been collected meanwhile
            return self._form.committed(landed, content) if landed.body == body else self._form.version(landed)

    def _repeated(self, commit_id: str, head: Link | None, parent: int | None) -> Link | None:
        """An earlier try of this commit that landed. With a parent there is one place it can be at."""
        last = head.number if head else 0
        numbers = range(last, 0, -1) if parent is None else range(parent + 1, min(parent + 1, last) + 1)
        return next((link for number in numbers if (link := self._link(number)).commit_id == commit_id), None)

    def _refuse_unapproved(
        self, head: Version, content: Content, promotion: Mapping[str, Any] | None, note: Mapping[str, str]
    ) -> None:
        """Refuse a change of what is in force that does not rest on what it must."""
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
        """What is wrong, or not known, of the approvals of each version, oldest first; versions that hold are left out.

        A version that changes what people must agree to, or says that it restores one, is checked though it names no
        approval at all.
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
        """Whether people answer for persona, policies, rails and surface of a version: where they came into force."""
        link = self._link(number)
        while link.number > 1 and not (readable_promotion(link.body.get("promotion")) or {}).get("approvals"):
            restores = link.body["changelog"]["restores"]
            before = self._link(link.number - 1 if restores is None else restores)
            if _governed(before.body) != _governed(link.body):
                return False
            link = before
        return True

    # -- links --------------------------------------------------------------------------------------------------

    def _head_link(self) -> Link | None:
        known = self._newest
        last = self._chain.last_number(known.number if known else 0)
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
    """What is inline of a version: the operator's blocks."""
    return list(stored_blocks(body).values())


def _blobs(body: Mapping[str, Any]) -> set[str]:
    """Addresses of the meta records of a version."""
    return {reference["blob"] for reference in body["meta"]}


def _operators(document: ProfileDocument) -> set[tuple[str, str]]:
    """Records that speak in the operator's name."""
    return {(record.id, record.text) for record in document.meta if record.approved}


def profile_names(objects: ObjectStore, tenant: str) -> Iterator[str]:
    """Profiles of this tenant that have a version, in byte order of their keys."""
    folder = f"profiles/{part_of(tenant)}/"
    for name in folders_in(objects, folder):
        if next(iter(objects.list(f"{folder}{name}/versions/")), None) is not None:
            yield unquote(name)


VERSION = 1


class Lease(NamedTuple):
    """A claim to write."""

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
        """A child is another writer: it does not hold what its parent holds."""
        self._token = self._new_token()
        """Tells this writer from another one of the same name."""
        self._epoch = 0

    def holder(self) -> Lease | None:
        """Who holds the lease, expired or not; None where it was never taken or was released."""
        link = self._head()
        return None if link is None or link.body["kind"] == "release" else _lease(link)

    def take(self, ttl_seconds: float, *, now: float | None = None, force: bool = False) -> Lease | None:
        """Take the lease under the next epoch where it is free, released or expired, or by `force`.

        None where somebody else holds it. A lease that this writer holds already is renewed.
        """
        moment = self._moment(ttl_seconds, now)
        while True:
            link = self._head()
            if link is not None and link.body["kind"] != "release":
                if link.body["token"] == self._token:
                    return self.renew(ttl_seconds, now=now)
                if link.body["expires_seconds"] > moment and not force:
                    return None
            taken = self._write(link, "take", (link.epoch if link else 0) + 1, moment + ttl_seconds)
            if taken is not None:
                return taken

    def renew(self, ttl_seconds: float, *, now: float | None = None) -> Lease:
        """Prolong the lease, also an expired one that is still free; raises `Fenced` where another writer took it."""
        moment = self._moment(ttl_seconds, now)
        while True:
            link = self._head()
            if link is None or link.body["token"] != self._token or link.body["kind"] == "release":
                raise Fenced(self.folder, self._epoch, link.epoch if link else 0)
            renewed = self._write(link, "renew", link.epoch, moment + ttl_seconds)
            if renewed is not None:
                return renewed

    def release(self) -> None:
        """Let others in at once; nothing happens where this writer does not hold it."""
        while True:
            link = self._head()
            if link is None or link.body["token"] != self._token or link.body["kind"] == "release":
                return
            if self._write(link, "release", link.epoch, 0.0) is not None:
                return

    def _write(
        self, after: Link | None, kind: Literal["take", "renew", "release"], epoch: int, expires_seconds: float
    ) -> Lease | None:
        """Write the next link; None where another writer was first."""
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

    def _moment(self, ttl_seconds: float, now: float | None) -> float:
        if not (math.isfinite(ttl_seconds) and ttl_seconds > 0):
            raise InputError(f"lease: a time to live of {ttl_seconds} s; give a positive number of seconds")
        moment = self._clock() if now is None else now
        if not math.isfinite(moment):
            raise InputError(f"lease: the clock says {moment}; give Unix seconds")
        return moment


def _lease(link: Link) -> Lease:
    body: dict[str, Any] = link.body
    return Lease(link.epoch, body["owner"], body["expires_seconds"])
