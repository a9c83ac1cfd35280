"""Approvals that hold, for tests that need a version people have agreed to; and what older programs wrote."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.envelope import Profile
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.steward.release.actors import KeySigner
from ctxsteward.store.backend import Backend
from ctxsteward.store.crypto.signatures import signed_data
from ctxsteward.store.names import steward_folder
from ctxsteward.store.profiles.approval_check import (
    REVIEW_FIELDS,
    REVIEW_PURPOSE,
    REVIEWS,
    ApprovalCheck,
    ApprovalChecker,
    challenger_address,
)
from ctxsteward.store.profiles.people import EnrolledPerson, PeopleRegister
from ctxsteward.store.profiles.versions import ProfileVersions

SALT = "0b" * 16
PEOPLE = {name: KeySigner(name.encode().ljust(32, b"\x01")) for name in ("bo", "di")}
"""Reviewers whose private keys tests have."""
EXPIRES = "2099-01-01T00:00:00+00:00"


def agreed(
    store: Backend,
    document: ProfileDocument,
    *,
    who: str,
    when: str,
    tenant: str = "default",
    parent: int | None = None,
    name: str = "support",
    by: tuple[str, ...] = ("bo", "di"),
) -> dict[str, Any]:
    """What a commit of this document rests on, after these reviewers have signed it.

    Where people are enrolled already whose keys this module has not, they stay, and the commit is refused.
    """
    head = ProfileVersions(store, name, tenant).head()
    parent = (head.number if head else 0) if parent is None else parent
    register = PeopleRegister(store, name, tenant)
    register.found(
        SALT, {each: EnrolledPerson(("reviewer",), one.key) for each, one in PEOPLE.items()}, versions=parent
    )
    folder = steward_folder(tenant, name, REVIEWS)
    named = Profile.from_document(document.model_copy(update={"name": name}))
    address = challenger_address(store.keys.address_key(tenant), folder, name, named, parent=parent, author=who)
    approvals = []
    for each in by:
        body: dict[str, Any] = {
            "schema_version": 1,
            "kind": "verdict",
            "request": address[:16],
            "challenger": address,
            "verdict": "approve",
            "who": each,
            "when": when,
            "expires": EXPIRES,
            "note": "",
        }
        data = signed_data(REVIEW_PURPOSE, tenant, name, [body[field] for field in REVIEW_FIELDS])
        body["signature"] = PEOPLE[each].sign(data)
        chain = store.chain(folder, tenant=tenant)
        link = chain.append(chain.head(), body)
        approvals.append({"who": each, "when": when, "link": link.number})
    return {"approvals": approvals}


INVENTED: dict[str, Any] = {"approvals": [{"who": "bo", "when": "2026-11-22T04:00:00+00:00", "link": 2}]}
"""Approvals that nobody has given."""


@pytest.fixture
def approvals_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests about chains, whose subject is not who agreed: whatever names an approval has one."""
    monkeypatch.setattr(ApprovalChecker, "check", lambda *told: ApprovalCheck((), ()))


class EarlierVersions(ProfileVersions):
    """Commits by hand, as it was possible before a change had to rest on approvals: such chains must stay readable."""

    def _refuse_unapproved(self, *told: object) -> None:
        """Let it pass."""
