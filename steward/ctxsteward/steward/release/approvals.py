"""Signed logs of people's decisions, and the log of challengers: requests for approval, and verdicts on them.

`SignedLog` is a chain whose verdicts are signed. It has two kinds: the log of challengers (`Approvals`) and the log of
single records (`record_reviews.RecordReviews`). A signature covers a purpose, the tenant, the profile and the fields
that the kind of log names, so it cannot be used elsewhere.

`promotion` writes requests and reads verdicts, the command line writes verdicts, and `canary` writes how a canary
ended:

    steward/<tenant>/<profile>/reviews/   chain of
      {"kind": "request", "request", "challenger", "parent", "author", "level", "people", "touched", "when", "expires",
       "note"?, "profile": {…} inline, "meta": [{"blob", "key"}]}
      {"kind": "verdict", "request", "challenger", "verdict": "approve" | "reject", "who", "when", "expires", "note",
       "signature"}
      {"kind": "canary", "version", "decision", "reasons", "when"}

A challenger's address is an HMAC over the whole profile, its parent version and its author. A verdict is signed over
that address, so it holds for no other challenger, parent or profile. Nobody must agree if only meta records change; one
person must agree to a change of persona, policies, rails or surface, and to a record that is to speak in the operator's
name; two people must agree to a BLOCK or a change of a locked entry. The author does not count, look-alike names count
once, and a person who is no longer a reviewer in the configuration does not count.

Times are ISO 8601. Requests and verdicts expire at `expires`.
Raises `ActionRefused`, and what `Chain` and `Vault` raise.
Source: the state design (trust is raised by a signed approval of a person, and by nothing else); RFC 8032 (Ed25519).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

from ctxsteward.envelope import Store
from ctxsteward.schemas import Erased, InputError
from ctxsteward.schemas.errors import UnsupportedVersion, VersionTaken
from ctxsteward.schemas.profile import BLOCKS, ProfileDocument
from ctxsteward.schemas.profile_changes import DriftLevel, DriftReport
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.crypto.signatures import is_signed, signed_data
from ctxsteward.store.names import numbered, skeleton, steward_folder
from ctxsteward.store.profiles.approval_check import REVIEW_FIELDS, REVIEW_PURPOSE, REVIEWS, challenger_address
from ctxsteward.store.profiles.people import EnrolledPerson, PeopleRegister, PeopleRoll
from ctxsteward.store.profiles.version_codec import MetaRecordVault, RecordRef

from .actors import NOBODY, ActionRefused, Actors, Signer, statements, token_signer

if TYPE_CHECKING:  # a chat service imports this through `assignment`, and needs nothing else of the steward
    from ..settings import NightSettings

VERSION = 1

Verdict = Literal["approve", "reject"]
Body = dict[str, Any]


class SignedLog:
    """A chain of one profile with people's signed verdicts; subclasses name the signed fields and the folder."""

    purpose: bytes
    """Purpose of a signature; signed with the fields."""
    fields: tuple[str, ...]
    """Names of the signed fields of a body."""
    folder_name: str
    link_name: str
    """Part of a commit's id, so that two kinds of log never share one."""
    versions: tuple[int, ...] = (VERSION,)
    """Versions of bodies that can be read."""

    def __init__(self, store: Store, profile: str, tenant: str = "default", *, actors: Actors = NOBODY) -> None:
        self.profile: str = profile
        self.tenant: str = tenant
        self.actors: Actors = actors
        self.folder: str = steward_folder(tenant, store.profiles(profile, tenant=tenant).name, self.folder_name)
        self._chain = store.chain(self.folder, tenant=tenant)
        self._key = store.keys.address_key(tenant)
        self._register = PeopleRegister(store, profile, tenant)
        self._versions = store.profiles(profile, tenant=tenant)
        self._enrolled: PeopleRoll | None = None

    @classmethod
    def of(cls, store: Store, settings: NightSettings) -> Self:
        """Open the log of the settings' profile with the settings' actors."""
        actors = NOBODY if settings.actors is None else Actors.load(settings.actors)
        return cls(store, settings.profile, settings.tenant, actors=actors)

    def links(self) -> Iterator[tuple[int, Body]]:
        """Yield number and body of every link; reads again who is enrolled."""
        self._enrolled = self._register.read()
        for link in self._chain.links():
            version = link.body.get("schema_version")
            if version not in self.versions:
                raise UnsupportedVersion(numbered(self.folder, link.number), version, self.versions[-1])
            yield link.number, link.body

    def enrol(self) -> PeopleRoll:
        """Copy the valid changes of the actors' file into the store; see `ctxsteward.store` `people`.

        If nobody is enrolled yet, the people of the file become the first. Later only changes that an enrolled reviewer
        has signed are copied; the rest of the file has no effect.
        """
        enrolled = self._register.read()
        if not enrolled.is_founded:
            if any("reviewer" in actor.roles for actor in self.actors.actors.values()):
                people = {name: EnrolledPerson(actor.roles, actor.key) for name, actor in self.actors.actors.items()}
                head = self._versions.head()
                spent = [actor.key for actor in self.actors.removed.values()]
                enrolled = self._register.found(
                    self.actors.salt, people, versions=head.number if head else 0, spent=spent
                )
        else:
            for statement in enrolled.take_over(statements(self.actors)):
                enrolled = self._register.state(statement)
        self._enrolled = enrolled
        return enrolled

    def is_enrolled(self, name: str) -> bool:
        """Whether the store has the person with the file's key and roles; True if the store has nobody yet."""
        enrolled = self._enrolled or self._register.read()
        actor = self.actors.actors.get(name)
        if actor is None or not enrolled.is_founded:
            return actor is not None
        known = enrolled.now.get(name)
        return known is not None and known.key == actor.key and set(known.roles) >= set(actor.roles)

    def reviewer(self, by: str | Signer, who: str | None) -> tuple[str, Signer]:
        """Return name and signer of a reviewer, from a token or a signer; `who` is the name that they claim.

        Writes nothing, because the verdict may still be refused: `append` enrols people when it commits.
        """
        signer = token_signer(by, self.actors.salt) if isinstance(by, str) else by
        name = self.actors.whose(signer, "reviewer", who)
        self._enrolled = self._register.read()
        self._enrolled.take_over(statements(self.actors))
        if not self.is_enrolled(name):
            text = f"{name!r} is in the file of actors, but no reviewer of profile {self.profile} has signed that"
            raise ActionRefused("not_enrolled", f"{text}; `steward actors --add {name} --role reviewer --as REVIEWER`")
        return name, signer

    def signed(self, body: Body, signer: Signer) -> Body:
        """Return the body with its signature."""
        whole = {"schema_version": VERSION, **body}
        return {**whole, "signature": signer.sign(self._data(whole))}

    def is_by_reviewer(self, body: Body) -> bool:
        """Whether a current reviewer signed the body."""
        actor = self.actors.actors.get(body["who"])
        if actor is None or "reviewer" not in actor.roles or not self.is_enrolled(body["who"]):
            return False
        return is_signed(actor.key, body["signature"], self._data(body))

    def append(self, body: Body, same: Callable[[Body], bool] | None = None) -> int:
        """Commit a link and return its number, or the number of an equal link (`same`; None: equal bytes).

        People are enrolled right before the commit (`enrol`), so that a refused call enrols nobody.
        """
        data = json.dumps(body, sort_keys=True).encode()
        commit_id = address_of(self._key, self.folder, self.link_name, data)
        while True:
            links = list(self._chain.links())
            for link in links:
                if same(link.body) if same else link.commit_id == commit_id:
                    return link.number
            self.enrol()
            try:
                return self._chain.append(links[-1] if links else None, body, commit_id=commit_id).number
            except VersionTaken:
                continue

    def _data(self, body: Body) -> bytes:
        return signed_data(self.purpose, self.tenant, self.profile, [body[name] for name in self.fields])


EXPIRES_DAYS = 7.0
"""Days after which a request or an approval expires."""
_ID_DIGITS = 16

State = Literal["waiting", "approved", "rejected", "expired", "stale"]
"""stale: another version came into force after the request."""


def people_needed(drift: DriftReport) -> int:
    """Return how many people must approve the changes of a drift report."""
    if drift.level == "BLOCK" or drift.touches_locked:
        return 2
    return 1 if drift.touched or drift.approves else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A checked verdict of one person."""

    who: str
    verdict: Verdict
    when: str
    expires: str
    note: str
    challenger: str
    """Address of the challenger."""
    link: int
    """Number of the verdict's link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A request that people approve a challenger."""

    id: str
    challenger: str
    parent: int
    author: str
    level: DriftLevel
    people: int
    """Number of people who must approve."""
    touched: tuple[str, ...]
    when: str
    expires: str
    state: State
    verdicts: tuple[Approval, ...]
    """Verdicts that count."""
    note: str = ""
    """The author's reason."""


def canary_of(store: Store, version: int, *, profile: str, tenant: str = "default") -> str | None:
    """Return how the canary of a version ended; None if it is open or was no canary."""
    links = Approvals(store, profile, tenant).links()
    return next((b["decision"] for _, b in links if b["kind"] == "canary" and b["version"] == version), None)


class Approvals(SignedLog):
    """Requests and verdicts of one profile."""

    purpose: bytes = REVIEW_PURPOSE
    folder_name: str = REVIEWS
    link_name: str = "review"
    fields: tuple[str, ...] = REVIEW_FIELDS

    def __init__(self, store: Store, profile: str, tenant: str = "default", *, actors: Actors = NOBODY) -> None:
        super().__init__(store, profile, tenant, actors=actors)
        self._shelf = MetaRecordVault(store.vault(tenant), self._key, profile)

    def address(self, challenger: ProfileDocument, parent: int, author: str) -> str:
        """Return the address that verdicts on this challenger are signed over."""
        return challenger_address(self._key, self.folder, self.profile, challenger, parent=parent, author=author)

    # -- asking -------------------------------------------------------------------------------------------------

    def request(
        self,
        challenger: ProfileDocument,
        drift: DriftReport,
        *,
        parent: int,
        author: str,
        when: str,
        people: int | None = None,
        note: str = "",
    ) -> ApprovalRequest:
        """Ask the reviewers to approve a challenger; an open request for the same challenger is returned.

        `people` is a higher number of approvers than the report asks for; `note` is a reason, stored unencrypted.
        """
        address = self.address(challenger, parent, author)
        plain = challenger.model_dump(mode="json")
        records = [self._shelf.keep_record(record, frozenset())._asdict() for record in challenger.meta]
        body = {
            "schema_version": VERSION,
            "kind": "request",
            "request": address[:_ID_DIGITS],
            "challenger": address,
            "parent": parent,
            "author": author,
            "level": drift.level,
            "people": max(people or 0, people_needed(drift)),
            "touched": list(drift.touched),
            "when": when,
            "expires": _expiry(when),
            "profile": {"name": self.profile} | {block: plain[block] for block in BLOCKS},
            "meta": records,
        }
        body |= {"note": note} if note else {}
        asked_at = _moment(when)
        self.append(
            body,
            lambda stands: (
                stands["kind"] == "request"
                and stands["challenger"] == address
                and not _has_expired(stands["expires"], asked_at)
            ),
        )
        return self.find(address[:_ID_DIGITS], when=when, head=parent)

    def requests(self, *, when: str, head: int) -> tuple[ApprovalRequest, ...]:
        """Return all requests, oldest first, with their state at a time and under a version in force."""
        links = list(self.links())
        newest = {body["challenger"]: body for _, body in links if body["kind"] == "request"}
        return tuple(self._request(body, links, when, head) for body in newest.values())

    def pending(self, *, when: str, head: int) -> tuple[ApprovalRequest, ...]:
        """Return the requests that still wait for a person."""
        return tuple(asked for asked in self.requests(when=when, head=head) if asked.state == "waiting")

    def find(self, request: str, *, when: str, head: int) -> ApprovalRequest:
        """Return one request by its id or the first digits of its id; raises `ActionRefused`."""
        matches = [asked for asked in self.requests(when=when, head=head) if request and asked.id.startswith(request)]
        if len(matches) != 1:
            what = f"{len(matches)} requests begin with" if matches else "there is no request"
            raise ActionRefused("unknown_request", f"{what} {request!r:.40}; see `steward review` for those that wait")
        return matches[0]

    def challenger(self, request: ApprovalRequest) -> ProfileDocument:
        """Return the challenger of a request; raises `Erased` if one of its records was forgotten."""
        body = next(b for _, b in self.links() if b["kind"] == "request" and b["challenger"] == request.challenger)
        records = [self._shelf.record(RecordRef(kept["blob"], kept["key"])) for kept in body["meta"]]
        if None in records:
            raise Erased(f"a record of request {request.id}", who="", when="", why="stage it anew")
        challenger = ProfileDocument.model_validate(body["profile"] | {"meta": records})
        if self.address(challenger, request.parent, request.author) != request.challenger:
            raise ActionRefused("changed", f"request {request.id} has changed since people were asked; stage it anew")
        return challenger

    # -- answering ----------------------------------------------------------------------------------------------

    def answer(
        self,
        request: str,
        verdict: Verdict,
        by: str | Signer,
        *,
        when: str,
        head: int,
        who: str | None = None,
        challenger: str | None = None,
        note: str = "",
    ) -> Approval:
        """Approve or reject a request, with a token or a signer; `who` is the name that the person claims.

        `challenger` is the address that the person saw; a request for another one is refused. Raises `ActionRefused`.
        """
        name, signer = self.reviewer(by, who)
        asked = self.find(request, when=when, head=head)
        if challenger is not None and challenger != asked.challenger:
            raise ActionRefused(
                "changed", f"request {asked.id} is about another challenger than the one shown; look again"
            )
        self._refuse_unfit(asked, name, verdict)
        fields = {
            "challenger": asked.challenger,
            "verdict": verdict,
            "who": name,
            "when": when,
            "expires": _expiry(when),
            "note": note,
        }
        body = self.signed({"kind": "verdict", "request": asked.id, **fields}, signer)
        number = self.append(
            body,
            lambda stands: (
                stands["kind"] == "verdict"
                and [stands[each] for each in ("challenger", "verdict", "who", "when")]
                == [asked.challenger, verdict, name, when]
            ),
        )
        return _approval(number, body)

    def _refuse_unfit(self, asked: ApprovalRequest, name: str, verdict: Verdict) -> None:
        if asked.state in ("stale", "expired", "rejected"):
            raise ActionRefused(asked.state, f"request {asked.id} is {asked.state}; it can be staged anew")
        if skeleton(name) == skeleton(asked.author) and verdict == "approve":
            raise ActionRefused("author", f"{name!r} made this change; somebody else must approve it")
        if verdict == "approve" and any(skeleton(each.who) == skeleton(name) for each in asked.verdicts):
            raise ActionRefused("same_person", f"{name!r} has approved this already; somebody else must, too")

    def valid(self, challenger: str, *, author: str, when: str) -> tuple[Approval, ...]:
        """Return the verdicts that count at this time: signed by current reviewers, the newest of each person."""
        return self._valid(list(self.links()), challenger, author, when)

    def settle_canary(self, version: int, decision: str, reasons: Sequence[str], *, when: str) -> None:
        """Store how a canary ended; the first settlement of a version stays."""
        fields = {"version": version, "decision": decision, "reasons": list(reasons), "when": when}
        body = {"schema_version": VERSION, "kind": "canary", **fields}
        self.append(body, lambda stands: stands["kind"] == "canary" and stands["version"] == version)

    def _request(self, body: Body, links: Sequence[tuple[int, Body]], when: str, head: int) -> ApprovalRequest:
        verdicts = self._valid(links, body["challenger"], body["author"], when)
        request = ApprovalRequest(
            id=body["request"],
            challenger=body["challenger"],
            parent=body["parent"],
            author=body["author"],
            level=body["level"],
            people=body["people"],
            touched=tuple(body["touched"]),
            when=body["when"],
            expires=body["expires"],
            state="waiting",
            verdicts=verdicts,
            note=body.get("note", ""),
        )
        return replace(request, state=_state(request, when, head))

    def _valid(
        self, links: Sequence[tuple[int, Body]], challenger: str, author: str, when: str
    ) -> tuple[Approval, ...]:
        newest: dict[str, Approval] = {}
        for number, body in links:
            if body["kind"] == "verdict" and body["challenger"] == challenger and self._counts(body, author, when):
                newest[skeleton(body["who"])] = _approval(number, body)
        return tuple(newest.values())

    def _counts(self, body: Body, author: str, when: str) -> bool:
        if not self.is_by_reviewer(body):
            return False
        if body["verdict"] == "reject":
            return True
        return skeleton(body["who"]) != skeleton(author) and not _has_expired(body["expires"], _moment(when))


def _state(request: ApprovalRequest, when: str, head: int) -> State:
    if any(each.verdict == "reject" for each in request.verdicts):
        return "rejected"
    if request.parent != head:
        return "stale"
    if _has_expired(request.expires, _moment(when)):
        return "expired"
    return "approved" if len(request.verdicts) >= request.people else "waiting"


def _approval(number: int, body: Body) -> Approval:
    fields = {name: body[name] for name in ("who", "verdict", "when", "expires", "note", "challenger")}
    return Approval(link=number, **fields)


def _has_expired(expires: str, now: datetime) -> bool:
    """Whether a request or a verdict has expired; an unreadable time counts as expired."""
    try:
        return now >= _moment(expires)
    except InputError:
        return True


def _moment(when: str) -> datetime:
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        raise InputError(f"review: {when[:40]!r} is not an ISO 8601 time; pass one") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _expiry(when: str) -> str:
    return (_moment(when) + timedelta(days=EXPIRES_DAYS)).isoformat()
