"""What people said of single records: signed verdicts in a chain of their own, the newest of each record counts.

    steward/<tenant>/<profile>/verdicts/   chain of
      {"kind": "record", "record", "says", "verdict": "approve" | "reject", "who", "when", "note", "signature"}

An approval is of a wording: `says` is an HMAC of kind, scope, slot, text and value, so that it does not hold for
whatever the record comes to say later. A rejection holds for the record's id. Neither expires; both end with a newer
verdict, or when the person who gave it is no reviewer any more. No word of the record is in the chain.

How many must approve (`Needed`): one; two different people where the record contradicts a locked entry of the profile
in force, because no slice would ask about that entry. A person who said what the record claims is its author and never
counts; a template has no author. An approved record is active and may enter the slice (`admission`, `slice`); the
version in which it first speaks in the operator's name needs people of its own (`approvals`).

Raises `ActionRefused`, and what `Chain` raises.
Source: the state design (trust is raised by a signed approval of a person).
"""

from __future__ import annotations

from collections.abc import Callable

from ctxsteward.envelope import Store
from ctxsteward.schemas import MetaRecommendation, ProfileDocument, Review
from ctxsteward.store import address_of, canonical, skeleton

from ..drift import against, rules_of
from ..ledger import JudgementContext, Ledger
from ..observations import KINDS
from ..settings import NightSettings
from .actors import ActionRefused, Signer
from .approvals import Body, SignedLog, Verdict

Needed = Callable[[MetaRecommendation], int]
"""How many must approve a record."""
Find = Callable[[str], MetaRecommendation | None]
"""A record as it is now, by an id that it has or once had."""


class RecordReviews(SignedLog):
    """Verdicts on the records of one profile."""

    purpose, folder_name, link_name = b"ctxsteward record review 1", "verdicts", "verdict"
    fields = ("record", "says", "verdict", "who", "when", "note")

    def answer(
        self, record: MetaRecommendation, verdict: Verdict, by: str | Signer, *, when: str, who: str | None = None,
        note: str = "",
    ) -> Review:  # fmt: skip
        """Approve or reject a record, by a token or another signer; `who` is who they claim to be."""
        name, signer = self.reviewer(by, who)
        if verdict == "approve" and skeleton(name) in authors(record):
            raise ActionRefused("author", f"{name!r} said this; somebody else must approve it")
        fields = {"record": record.id, "says": self.says(record), "verdict": verdict, "who": name, "when": when}
        body = self.signed({"kind": "record", **fields, "note": note}, signer)
        self.append(body)
        return _review([body])

    def says(self, record: MetaRecommendation) -> str:
        """The address of what a record says, and to whom."""
        said = record.model_dump(mode="json", include={"kind", "scope", "slot", "text", "value", "unit", "polarity"})
        return address_of(self._key, self.folder, "says", canonical(said))

    def standing(self, find: Find, needed: Needed = lambda record: 1) -> dict[str, Review]:
        """The reviews that count now, by the id that was reviewed."""
        said: dict[str, list[Body]] = {}
        for _, body in self.links():
            if self.is_by_reviewer(body):
                said.setdefault(body["record"], []).append(body)
        found = {id_: self._review(bodies, find, needed) for id_, bodies in said.items()}
        return {id_: review for id_, review in found.items() if review is not None}

    def approvers(self, record: MetaRecommendation) -> tuple[str, ...]:
        """Who approves what a record says now."""
        review = self.standing(lambda id: record if id == record.id else None).get(record.id)
        return review.who if review is not None and review.state == "approved" else ()

    def _review(self, bodies: list[Body], find: Find, needed: Needed) -> Review | None:
        """What people's verdicts on one record come to; None: nothing, or too few agree yet."""
        if bodies[-1]["verdict"] == "reject":
            return _review(bodies[-1:])
        record = find(bodies[-1]["record"])
        if record is None:
            return None
        says, said_it = self.says(record), authors(record)
        agreed: dict[str, Body] = {}
        for body in bodies:
            if body["verdict"] == "reject":
                agreed.clear()
            elif body["says"] == says and skeleton(body["who"]) not in said_it:
                agreed[skeleton(body["who"])] = body
        return _review(list(agreed.values())) if len(agreed) >= max(1, needed(record)) else None


def authors(record: MetaRecommendation) -> frozenset[str]:
    """Skeletons of the names of those who said what a record claims; none, where its words are a template."""
    if KINDS[record.kind].is_template:  # who was there did not say its words
        return frozenset()
    said = (span for span in record.evidence if span.relation == "supports" and span.role == "user")
    return frozenset(skeleton(span.principal) for span in said if span.principal is not None)


def people_for(profile: ProfileDocument | None) -> Needed:
    """How many must approve a record under this profile: two where it gainsays or touches a locked line, else one."""
    locked = [rule for rule in rules_of(profile) if rule.locked]

    def needed(record: MetaRecommendation) -> int:
        return 2 if against(locked, record.text) is not None else 1

    return needed


def reviews_of(store: Store, settings: NightSettings, ledger: Ledger, now: str) -> dict[str, Review]:
    """What people said of the records of a ledger, under the profile in force."""
    head = store.profiles(settings.profile, tenant=settings.tenant).head()
    return RecordReviews.of(store, settings).standing(
        lambda id: ledger.record(id, JudgementContext(now=now)), people_for(head.profile if head else None)
    )


def _review(bodies: list[Body]) -> Review:
    newest = bodies[-1]
    state = "approved" if newest["verdict"] == "approve" else "rejected"
    who = tuple(body["who"] for body in bodies)
    return Review.model_validate({"state": state, "who": who, "when": newest["when"], "note": newest["note"] or None})
