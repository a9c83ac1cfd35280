"""Check the approvals that a version names: when it is committed, and whenever a store is checked.

An approval names a link in the log of reviews, `steward/<tenant>/<profile>/reviews/` (the steward's
`release.approvals` writes it). It counts for a version if

    the link is there and is a verdict "approve" by this person at this time;
    it is signed with a present or past key of this person as a reviewer enrolled in the store (`people`);
    it is about this text, made from the previous version, by this author: one address in the verdict covers all three;
    the person is not the author, and was not counted before;
    it had not expired.

A version needs one such approval, two if it touches a locked entry, and as many as the request for reviews asked for.
If a version was committed before people were enrolled in the store, the keys of its reviewers may never have been
stored. Such reviewers are reported separately (`unknown`), because only the log can be checked then.

Source: the state design (trust is raised by a signed approval of a person, and by nothing else).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.profile import BLOCKS, ProfileDocument, instant

from ..backend import Backend
from ..crypto.keyring import address_of
from ..crypto.signatures import is_signed, signed_data
from ..names import skeleton, steward_folder
from .people import PeopleRegister, PeopleRoll
from .text import canonical_json
from .version_codec import canonical, stored_blocks

REVIEW_PURPOSE = b"ctxsteward review 1"
REVIEW_FIELDS = ("challenger", "verdict", "who", "when", "expires", "note")
"""Signed fields of a verdict."""
REVIEWS = "reviews"


def challenger_address(
    key: Any, folder: str, profile: str, document: ProfileDocument, *, parent: int, author: str
) -> str:
    """Return the address of the whole text, its parent version and its author; a signed verdict contains it."""
    plain = ProfileDocument.model_validate(document.model_dump() | {"version": None, "name": profile})
    return address_of(key, folder, "challenger", canonical([parent, author, canonical_json(plain)]))


class ProposedVersion(NamedTuple):
    """A version whose approvals are checked."""

    number: int
    author: str
    when: str
    body: Mapping[str, Any]
    """Content of the version, as stored."""
    before: Mapping[str, Any] | None
    """Content of the previous version, or None for the first."""
    document: ProfileDocument | None
    """The whole profile, or None if records were erased, so that its address cannot be computed again."""


class ApprovalCheck(NamedTuple):
    """The result of checking a version's approvals."""

    problems: tuple[str, ...]
    """Problems, one line each; empty if enough people have approved."""
    unknown: tuple[str, ...]
    """Reviewers from before people were enrolled, whose keys are not in the store."""


class ApprovalChecker:
    """Checker of one profile's approvals against its log of reviews and the people enrolled in the store."""

    def __init__(self, store: Backend, profile: str, tenant: str = "default") -> None:
        self._profile, self._tenant = profile, tenant
        self._folder = steward_folder(tenant, profile, REVIEWS)
        self._chain = store.chain(self._folder, tenant=tenant)
        self._key = store.keys.address_key(tenant)
        self._register = PeopleRegister(store, profile, tenant)
        self._links: dict[int, Mapping[str, Any]] | None = None

    def was_before_people(self, number: int) -> bool:
        """Return whether this version was committed before people were enrolled in the store, or nobody is enrolled."""
        enrolled = self._register.read()
        return not enrolled.is_founded or number <= enrolled.versions

    def check(self, version: ProposedVersion, approvals: object) -> ApprovalCheck:
        """Check all approvals that the version names."""
        if not isinstance(approvals, list | tuple):
            return ApprovalCheck((f"its approvals are {type(approvals).__name__}, not a list",), ())
        enrolled = self._register.read()
        problems: list[str] = []
        unknown: list[str] = []
        counted: dict[str, Mapping[str, Any]] = {}
        for at, named in enumerate(approvals, 1):
            verdict = self._verdict(named)
            if isinstance(verdict, str):
                problems.append(f"approval {at}: {verdict}")
                continue
            who = skeleton(verdict["who"])
            if who in counted:
                problems.append(f"approval {at}: {verdict['who']!r} is named twice")
            counted[who] = verdict
            problems += (f"approval {at}: {why}" for why in self._obstacles(version, verdict))
            why = self._unsigned(enrolled, version, verdict)
            if why is None:
                unknown.append(verdict["who"])
            elif why:
                problems.append(f"approval {at}: {why}")
        needed = self._needed(version, list(counted.values()))
        if len(counted) < needed and not problems:
            problems.append(f"{needed} people must have approved it, and {len(counted)} have")
        return ApprovalCheck(tuple(problems), tuple(unknown))

    def _verdict(self, named: object) -> Mapping[str, Any] | str:
        """Return the verdict that an approval names, or a text with the reason why there is none."""
        if not isinstance(named, Mapping):
            return f"it is {type(named).__name__}, not an object with who, when and link"
        who, link = named.get("who"), named.get("link")
        if not isinstance(who, str) or not isinstance(link, int) or isinstance(link, bool):
            return "it names no person (`who`) or no verdict (`link`)"
        body = self._reviews().get(link)
        if body is None or body.get("kind") != "verdict":
            return f"{who!r:.80} has given no verdict at {self._folder} {link}"
        if not all(isinstance(body.get(name), str) for name in (*REVIEW_FIELDS, "signature")):
            return f"link {link} of {self._folder} is no verdict that this program can read"
        if body["who"] != who or body["when"] != named.get("when"):
            return f"link {link} of {self._folder} is the verdict of {body['who']!r}, of another time or person"
        return body

    def _obstacles(self, version: ProposedVersion, verdict: Mapping[str, Any]) -> Iterator[str]:
        who = verdict["who"]
        if verdict["verdict"] != "approve":
            yield f"the verdict of {who!r} is {verdict['verdict']!r}"
        if skeleton(who) == skeleton(version.author):
            yield f"{who!r} made the change; somebody else must approve it"
        if not self._is_about(version, verdict["challenger"]):
            yield f"{who!r} approved another text, parent or author"
        committed, expires, no_time = instant(version.when), instant(verdict["expires"]), instant(None)
        if committed == no_time:
            yield f"the version was committed at {version.when!r:.40}, which is no ISO 8601 time"
        if expires == no_time:
            yield f"the approval of {who!r} expires at {verdict['expires']!r:.40}, which is no ISO 8601 time"
        elif committed >= expires:
            yield f"the approval of {who!r} expired on {verdict['expires']}"

    def _is_about(self, version: ProposedVersion, challenger: str) -> bool:
        parent = version.number - 1
        if version.document is not None:
            address = challenger_address(
                self._key, self._folder, self._profile, version.document, parent=parent, author=version.author
            )
            return address == challenger
        # a record was erased, but the request for reviews still has the operator's blocks inline
        asked = self._requests(challenger)
        blocks = stored_blocks(version.body)
        return any(
            one.get("parent") == parent
            and one.get("author") == version.author
            and all(list(one["profile"].get(block, ())) == list(blocks[block]) for block in BLOCKS)
            for one in asked
        )

    def _unsigned(self, enrolled: PeopleRoll, version: ProposedVersion, verdict: Mapping[str, Any]) -> str | None:
        """Return why a verdict is not signed, "" if it is, or None if the keys of that time are not known."""
        who = verdict["who"]
        values = [verdict[name] for name in REVIEW_FIELDS]
        data = signed_data(REVIEW_PURPOSE, self._tenant, self._profile, values)
        keys = enrolled.keys.get(who, [])
        if any(is_signed(key, verdict["signature"], data) for key in keys):
            return ""
        if version.number <= enrolled.versions and not keys:
            return None
        if not keys:
            return f"{who!r} is no reviewer enrolled in this store"
        return f"the verdict is not signed with a key of {who!r}"

    def _needed(self, version: ProposedVersion, verdicts: Sequence[Mapping[str, Any]]) -> int:
        asked = (request for verdict in verdicts for request in self._requests(verdict["challenger"]))
        people: list[int] = [request["people"] for request in asked if isinstance(request.get("people"), int)]
        if version.before is None:  # the founder of the chain answers for the first version
            return max(0, *people) if people else 0
        return max(1, 2 if touches_locked(version.before, version.body) else 1, *people)

    def _requests(self, challenger: str) -> list[Mapping[str, Any]]:
        found = (body for body in self._reviews().values() if body.get("kind") == "request")
        return [body for body in found if body.get("challenger") == challenger]

    def _reviews(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the readable links of the log of reviews, which is read once."""
        if self._links is None:
            links = self._chain.readable()
            self._links = {link.number: link.body for link in links if not isinstance(link, Damaged)}
        return self._links


def touches_locked(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a locked entry of either version was changed, added, moved or removed."""
    old, new = _locked(before), _locked(after)
    return any(old.get(name) != new.get(name) for name in {*old, *new})


def _locked(body: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    return {
        (block, entry["id"]): entry
        for block, entries in stored_blocks(body).items()
        for entry in entries
        if entry.get("locked")
    }
