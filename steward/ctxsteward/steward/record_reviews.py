"""What people said of single records: signed verdicts in a chain of their own, the newest of each record counts.

    steward/<tenant>/<profile>/verdicts/   chain of
      {"kind": "record", "record", "says", "verdict": "approve" | "reject", "who", "when", "note", "signature"}

An approval is of a wording: `says` is an HMAC of kind, scope, slot, text and value, so that it does not hold for
whatever the record comes to say later. A rejection holds for the record's id. Neither expires; both end with a newer
verdict, or when their author is no reviewer any more. No word of the record is in the chain.

An approved record is active, and fit for the slice (`admission.gates`, `fitting`); the version in which it first speaks
in the operator's name needs a person of its own (`approvals`).

Raises `Refused`, and what `Chain` raises. Source: the state design (trust is raised by a signed approval of a person).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ctxsteward.envelope.keys import address_of
from ctxsteward.envelope.objects.names import numbered, steward_folder
from ctxsteward.envelope.slices import canonical
from ctxsteward.envelope.store import Store
from ctxsteward.schemas import UnsupportedVersion, VersionTaken
from ctxsteward.schemas.recommendation import MetaRecommendation, Review

from .actors import Actors, Signer, is_signed, token_signer
from .approvals import Verdict
from .ledger import Ledger

VERSION = 1
_FIELDS = ("record", "says", "verdict", "who", "when", "note")

Find = Callable[[str], MetaRecommendation | None]
"""A record as it is now, by an id that it has or once had."""


def found_in(ledger: Ledger, now: str) -> Find:
    """Looks a record up in a ledger: what is for many at once, what is for one person by going through all."""
    shared: dict[str, MetaRecommendation] = {}
    asked = False

    def find(id: str) -> MetaRecommendation | None:
        nonlocal asked
        if not asked:
            shared.update((record.id, record) for record in ledger.judged(now=now).shared)
            asked = True
        return shared.get(id) or ledger.record(id, now=now)

    return find


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
        body: dict[str, Any] = {
            "schema_version": VERSION, "kind": "record", "record": record.id, "says": self.says(record),
            "verdict": verdict, "who": name, "when": when, "note": note,
        }  # fmt: skip
        body["signature"] = signer.sign(self._signed(body))
        self._append(body)
        return _review(body)

    def says(self, record: MetaRecommendation) -> str:
        """The address of what a record says, and to whom."""
        told = record.model_dump(mode="json", include={"kind", "scope", "slot", "text", "value", "unit", "polarity"})
        return address_of(self._key, self.folder, "says", canonical(told))

    def standing(self, find: Find) -> dict[str, Review]:
        """The reviews that count now, by the id that was reviewed."""
        newest: dict[str, dict[str, Any]] = {}
        for body in self._links():
            if self._counts(body):
                newest[body["record"]] = body
        return {id_: _review(body) for id_, body in newest.items() if self._holds(body, find)}

    def _holds(self, body: dict[str, Any], find: Find) -> bool:
        if body["verdict"] == "reject":
            return True
        record = find(body["record"])
        return record is not None and self.says(record) == body["says"]

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


def _review(body: dict[str, Any]) -> Review:
    state = "approved" if body["verdict"] == "approve" else "rejected"
    return Review.model_validate(
        {"state": state, "who": (body["who"],), "when": body["when"], "note": body["note"] or None}
    )
