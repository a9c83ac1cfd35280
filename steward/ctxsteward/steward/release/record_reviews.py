"""What people said of single records: signed verdicts in a chain of their own, the newest of each record counts.

    steward/<tenant>/<profile>/verdicts/   chain of
      {"kind": "record", "record", "says", "verdict": "approve" | "reject", "who", "when", "note", "signature"}

An approval is of a wording: `says` is an HMAC of kind, scope, slot, text and value, so that it does not hold for
whatever the record comes to say later. A rejection holds for the record's id. Neither expires; both end with a newer
verdict, or when whoever gave it is no reviewer any more. No word of the record is in the chain.

How many must approve (`Needed`): one; two different people where the record gainsays a locked entry of the profile in
force, which no slice of its own would be asked about. Whoever said what the record claims is its author, and never
counts; of a tool's fix the words are a template, so that nobody is.

An approved record is active, and fit for the slice (`admission.gates`, `fitting`); the version in which it first speaks
in the operator's name needs people of its own (`approvals`).

Raises `ActionRefused`, and what `Chain` raises. Source: the state design (trust is raised by a signed approval of a
person).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ctxsteward.envelope.store import Store
from ctxsteward.schemas import UnsupportedVersion, VersionTaken
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.schemas.recommendation import MetaRecommendation, Review
from ctxsteward.store.crypto.addresses import address_of
from ctxsteward.store.names import numbered, skeleton, steward_folder
from ctxsteward.store.profiles.meta_records import canonical

from ..drift.rules import against, rules_of
from ..kinds import KINDS
from ..ledger import JudgementContext, Ledger
from ..settings import NightSettings
from .actors import NOBODY, ActionRefused, Actors, Signer, is_signed, token_signer
from .approvals import Verdict

VERSION = 1
_FIELDS = ("record", "says", "verdict", "who", "when", "note")

Needed = Callable[[MetaRecommendation], int]
"""How many must approve a record."""
Find = Callable[[str], MetaRecommendation | None]
"""A record as it is now, by an id that it has or once had."""


class RecordReviews:
    """Verdicts on the records of one profile."""

    def __init__(self, store: Store, profile: str, tenant: str = "default", *, actors: Actors) -> None:
        self.profile, self.tenant, self.actors = profile, tenant, actors
        self.folder = steward_folder(tenant, store.profiles(profile, tenant=tenant).name, "verdicts")
        self._chain = store.chain(self.folder, tenant=tenant)
        self._key = store.keys.address_key(tenant)

    def answer(
        self, record: MetaRecommendation, verdict: Verdict, by: str | Signer, *, when: str, who: str | None = None,
        note: str = "",
    ) -> Review:  # fmt: skip
        """Approve or reject a record, by a token or another signer; `who` is who they say they are."""
        signer = token_signer(by, self.actors.salt) if isinstance(by, str) else by
        name = self.actors.whose(signer, "reviewer", who)
        if verdict == "approve" and skeleton(name) in authors(record):
            raise ActionRefused("author", f"{name!r} said this; somebody else must approve it")
        body: dict[str, Any] = {
            "schema_version": VERSION, "kind": "record", "record": record.id, "says": self.says(record),
            "verdict": verdict, "who": name, "when": when, "note": note,
        }  # fmt: skip
        body["signature"] = signer.sign(self._signed(body))
        self._append(body)
        return _review([body])

    def says(self, record: MetaRecommendation) -> str:
        """The address of what a record says, and to whom."""
        told = record.model_dump(mode="json", include={"kind", "scope", "slot", "text", "value", "unit", "polarity"})
        return address_of(self._key, self.folder, "says", canonical(told))

    def standing(self, find: Find, needed: Needed = lambda record: 1) -> dict[str, Review]:
        """The reviews that count now, by the id that was reviewed."""
        said: dict[str, list[dict[str, Any]]] = {}
        for body in self._links():
            if self._counts(body):
                said.setdefault(body["record"], []).append(body)
        found = {id_: self._review(bodies, find, needed) for id_, bodies in said.items()}
        return {id_: review for id_, review in found.items() if review is not None}

    def approvers(self, record: MetaRecommendation) -> tuple[str, ...]:
        """Who approves what a record says now."""
        review = self.standing(lambda id: record if id == record.id else None).get(record.id)
        return review.who if review is not None and review.state == "approved" else ()

    def _review(self, bodies: list[dict[str, Any]], find: Find, needed: Needed) -> Review | None:
        """What people's verdicts on one record come to; None: nothing, or too few agree yet."""
        if bodies[-1]["verdict"] == "reject":
            return _review(bodies[-1:])
        record = find(bodies[-1]["record"])
        if record is None:
            return None
        says, said_it = self.says(record), authors(record)
        agreed: dict[str, dict[str, Any]] = {}
        for body in bodies:
            if body["verdict"] == "reject":
                agreed.clear()
            elif body["says"] == says and skeleton(body["who"]) not in said_it:
                agreed[skeleton(body["who"])] = body
        return _review(list(agreed.values())) if len(agreed) >= max(1, needed(record)) else None

    def _counts(self, body: dict[str, Any]) -> bool:
        actor = self.actors.actors.get(body["who"])
        known = actor is not None and "reviewer" in actor.roles
        return actor is not None and known and is_signed(actor.key, body["signature"], self._signed(body))

    def _signed(self, body: dict[str, Any]) -> bytes:
        fields = [body[name] for name in _FIELDS]
        return b"ctxsteward record review 1\x00" + canonical([self.tenant, self.profile, *fields])

    def _links(self) -> Iterator[dict[str, Any]]:
        for link in self._chain.links():
            if link.body.get("schema_version") != VERSION:
                raise UnsupportedVersion(numbered(self.folder, link.number), link.body.get("schema_version"), VERSION)
            yield link.body

    def _append(self, body: dict[str, Any]) -> None:
        """Commit a link; the same verdict at the same time is there once."""
        commit_id = address_of(self._key, self.folder, "verdict", json.dumps(body, sort_keys=True).encode())
        while True:
            links = list(self._chain.links())
            if any(link.commit_id == commit_id for link in links):
                return
            try:
                self._chain.append(links[-1] if links else None, body, commit_id=commit_id)
            except VersionTaken:
                continue
            return


def authors(record: MetaRecommendation) -> frozenset[str]:
    """Skeletons of the names of those who said what a record claims; none, where its words are a template."""
    if KINDS[record.kind].is_template:  # who was there did not say its words
        return frozenset()
    said = (one for one in record.evidence if one.relation == "supports" and one.role == "user")
    return frozenset(skeleton(one.principal) for one in said if one.principal is not None)


def people_for(profile: ProfileDocument | None) -> Needed:
    """How many must approve a record under this profile: two where it gainsays or touches a locked line, else one."""
    locked = [rule for rule in rules_of(profile) if rule.locked]

    def needed(record: MetaRecommendation) -> int:
        return 2 if against(locked, record.text) is not None else 1

    return needed


def reviews_of(store: Store, settings: NightSettings, ledger: Ledger, now: str) -> dict[str, Review]:
    """What people said of the records of a ledger, under the profile in force."""
    head = store.profiles(settings.profile, tenant=settings.tenant).head()
    actors = NOBODY if settings.actors is None else Actors.load(settings.actors)
    reviews = RecordReviews(store, settings.profile, settings.tenant, actors=actors)
    return reviews.standing(
        lambda id: ledger.record(id, JudgementContext(now=now)), people_for(head.profile if head else None)
    )


def _review(bodies: list[dict[str, Any]]) -> Review:
    newest = bodies[-1]
    state = "approved" if newest["verdict"] == "approve" else "rejected"
    who = tuple(body["who"] for body in bodies)
    return Review.model_validate({"state": state, "who": who, "when": newest["when"], "note": newest["note"] or None})
