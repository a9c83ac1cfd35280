"""What people said of a challenger: requests that wait, and signed verdicts, in a chain of their own.

    steward/<tenant>/<profile>/reviews/   chain of
      {"kind": "request", "request", "challenger", "parent", "author", "level", "people", "touched", "when", "expires",
       "note"?, "profile": {…} inline, "meta": [{"blob", "key"}]}
      {"kind": "verdict", "request", "challenger", "verdict": "approve" | "reject", "who", "when", "expires", "note",
       "signature"}
      {"kind": "canary", "version", "decision", "reasons", "when"}

A challenger's address is an HMAC over the whole profile, the version it was made from, and its author; a verdict is
signed over that address, so it serves no other challenger, parent or profile. How many people must agree: none where
only facts and preferences change; one for any change of persona, policies, rails or surface, and for a record that is
to speak in the operator's name; two for a BLOCK or a locked entry. The author never counts, nobody counts twice under
look-alike names, and whoever is no reviewer in the configuration any more does not count.

Times are ISO 8601. A request and a verdict lose their force at `expires`.
Raises `ActionRefused`, and what `Chain` and `Vault` raise.
Source: the state design (trust is raised by a signed approval of a person, and by nothing else).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from ctxsteward.envelope.store import Store
from ctxsteward.schemas import Erased, InputError
from ctxsteward.schemas.drift import DriftLevel, DriftReport
from ctxsteward.schemas.profile import BLOCKS, ProfileDocument
from ctxsteward.store.crypto.addresses import address_of
from ctxsteward.store.names import skeleton
from ctxsteward.store.profiles.meta_records import MetaRecordVault, RecordRef, canonical
from ctxsteward.store.profiles.text import canonical_json

from .actors import NOBODY, ActionRefused, Actors, Signer
from .signed_log import VERSION, Body, SignedLog
from .signed_log import Verdict as Verdict

EXPIRES_DAYS = 7.0
"""Days that a request waits, and that an approval holds."""
_ID_DIGITS = 16

State = Literal["waiting", "approved", "rejected", "expired", "stale"]
"""stale: another version has come into force since."""


def people_needed(drift: DriftReport) -> int:
    """How many people must approve what this report describes."""
    if drift.level == "BLOCK" or drift.touches_locked:
        return 2
    return 1 if drift.touched or drift.approves else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A verdict of one person, checked."""

    who: str
    verdict: Verdict
    when: str
    expires: str
    note: str
    challenger: str
    """Its address."""
    link: int
    """Number in the chain of reviews."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A challenger that waits for people."""

    id: str
    challenger: str
    parent: int
    author: str
    level: DriftLevel
    people: int
    """How many must approve."""
    touched: tuple[str, ...]
    when: str
    expires: str
    state: State
    verdicts: tuple[Approval, ...]
    """Those that count."""
    note: str = ""
    """Why its author asks."""


def canary_of(store: Store, version: int, *, profile: str, tenant: str = "default") -> str | None:
    """How the canary of a version ended; None: it did not, or it was none."""
    links = Approvals(store, profile, tenant).links()
    return next((b["decision"] for _, b in links if b["kind"] == "canary" and b["version"] == version), None)


class Approvals(SignedLog):
    """Requests and verdicts of one profile."""

    purpose, folder_name, link_name = b"ctxsteward review 1", "reviews", "review"
    fields = ("challenger", "verdict", "who", "when", "expires", "note")

    def __init__(self, store: Store, profile: str, tenant: str = "default", *, actors: Actors = NOBODY) -> None:
        super().__init__(store, profile, tenant, actors=actors)
        self._shelf = MetaRecordVault(store.vault(tenant), self._key, profile)

    def address(self, challenger: ProfileDocument, parent: int, author: str) -> str:
        """What a verdict on this challenger is signed over."""
        plain = ProfileDocument.model_validate(challenger.model_dump() | {"version": None, "name": self.profile})
        return address_of(self._key, self.folder, "challenger", canonical([parent, author, canonical_json(plain)]))

    # -- asking -------------------------------------------------------------------------------------------------

    def request(
        self, challenger: ProfileDocument, drift: DriftReport, *, parent: int, author: str, when: str,
        people: int | None = None, note: str = "", expires_days: float = EXPIRES_DAYS,
    ) -> ApprovalRequest:  # fmt: skip
        """Put a challenger before the reviewers; the same one again is the same request, until that has expired.

        `people`: how many must approve, where that is more than the report asks for. `note`: why, kept in plain.
        """
        address = self.address(challenger, parent, author)
        plain = challenger.model_dump(mode="json")
        records = [self._shelf.keep_record(record, frozenset())._asdict() for record in challenger.meta]
        body = {
            "schema_version": VERSION, "kind": "request", "request": address[:_ID_DIGITS], "challenger": address,
            "parent": parent, "author": author, "level": drift.level, "people": max(people or 0, people_needed(drift)),
            "touched": list(drift.touched), "when": when, "expires": _later(when, expires_days),
            "profile": {"name": self.profile} | {block: plain[block] for block in BLOCKS}, "meta": records,
        }  # fmt: skip
        body |= {"note": note} if note else {}
        asked_at = _moment(when)
        self.append(
            body,
            lambda stands: (
                stands["kind"] == "request"
                and stands["challenger"] == address
                and asked_at < _moment(stands["expires"])
            ),
        )
        return self.find(address[:_ID_DIGITS], when=when, head=parent)

    def requests(self, *, when: str, head: int) -> tuple[ApprovalRequest, ...]:
        """All requests, oldest first, as they stand at a time and under a version in force."""
        links = list(self.links())
        newest = {body["challenger"]: body for _, body in links if body["kind"] == "request"}
        return tuple(self._request(body, links, when, head) for body in newest.values())

    def pending(self, *, when: str, head: int) -> tuple[ApprovalRequest, ...]:
        """Requests that wait for a person still."""
        return tuple(one for one in self.requests(when=when, head=head) if one.state == "waiting")

    def find(self, request: str, *, when: str, head: int) -> ApprovalRequest:
        """One request, by its id or the first digits of it; raises `ActionRefused`."""
        found = [one for one in self.requests(when=when, head=head) if request and one.id.startswith(request)]
        if len(found) != 1:
            what = f"{len(found)} requests begin with" if found else "there is no request"
            raise ActionRefused("unknown_request", f"{what} {request!r:.40}; see `steward review` for those that wait")
        return found[0]

    def challenger(self, request: ApprovalRequest) -> ProfileDocument:
        """The profile that a request is about; raises `Erased` where a record of it was forgotten since."""
        body = next(b for _, b in self.links() if b["kind"] == "request" and b["challenger"] == request.challenger)
        records = [self._shelf.record(RecordRef(kept["blob"], kept["key"])) for kept in body["meta"]]
        if None in records:
            raise Erased(f"a record of request {request.id}", who="", when="", why="stage it anew")
        made = ProfileDocument.model_validate(body["profile"] | {"meta": records})
        if self.address(made, request.parent, request.author) != request.challenger:
            raise ActionRefused("changed", f"request {request.id} is not what was asked for; stage it anew")
        return made

    # -- answering ----------------------------------------------------------------------------------------------

    def answer(
        self, request: str, verdict: Verdict, by: str | Signer, *, when: str, head: int, who: str | None = None,
        challenger: str | None = None, note: str = "", expires_days: float = EXPIRES_DAYS,
    ) -> Approval:  # fmt: skip
        """Approve or reject a request, by a token or another signer; `who` is who they say they are.

        `challenger`: the address that was shown to them, where it is known; another one is refused. Raises
        `ActionRefused`.
        """
        name, signer = self.reviewer(by, who)
        asked = self.find(request, when=when, head=head)
        if challenger is not None and challenger != asked.challenger:
            raise ActionRefused(
                "changed", f"request {asked.id} is about another challenger than the one shown; look again"
            )
        self._refuse_unfit(asked, name, verdict)
        fields = {
            "challenger": asked.challenger, "verdict": verdict, "who": name, "when": when,
            "expires": _later(when, expires_days), "note": note,
        }  # fmt: skip
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
        """Verdicts on a challenger that count at this time: signed, of reviewers of now, the newest of each person."""
        return self._valid(list(self.links()), challenger, author, when)

    def settle_canary(self, version: int, decision: str, reasons: Sequence[str], *, when: str) -> None:
        """Write down how a canary ended; the first settlement of a version stays."""
        fields = {"version": version, "decision": decision, "reasons": list(reasons), "when": when}
        body = {"schema_version": VERSION, "kind": "canary", **fields}
        self.append(body, lambda stands: stands["kind"] == "canary" and stands["version"] == version)

    def _request(self, body: Body, links: Sequence[tuple[int, Body]], when: str, head: int) -> ApprovalRequest:
        verdicts = self._valid(links, body["challenger"], body["author"], when)
        made = ApprovalRequest(
            id=body["request"], challenger=body["challenger"], parent=body["parent"], author=body["author"],
            level=body["level"], people=body["people"], touched=tuple(body["touched"]), when=body["when"],
            expires=body["expires"], state="waiting", verdicts=verdicts, note=body.get("note", ""),
        )  # fmt: skip
        return replace(made, state=_state(made, when, head))

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
        return bool(skeleton(body["who"]) != skeleton(author) and _moment(when) < _moment(body["expires"]))


def _state(request: ApprovalRequest, when: str, head: int) -> State:
    if any(each.verdict == "reject" for each in request.verdicts):
        return "rejected"
    if request.parent != head:
        return "stale"
    if _moment(when) >= _moment(request.expires):
        return "expired"
    return "approved" if len(request.verdicts) >= request.people else "waiting"


def _approval(number: int, body: Body) -> Approval:
    fields = {name: body[name] for name in ("who", "verdict", "when", "expires", "note", "challenger")}
    return Approval(link=number, **fields)


def _moment(when: str) -> datetime:
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        raise InputError(f"review: {when[:40]!r} is no ISO 8601 time; pass one") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _later(when: str, days: float) -> str:
    return (_moment(when) + timedelta(days=days)).isoformat()
