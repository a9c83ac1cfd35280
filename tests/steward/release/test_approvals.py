# ruff: noqa: E501  -- a table of cases reads better unwrapped
"""Approvals: signed by whoever they say, for this challenger alone, never by its author, never twice by one person."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import Store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Erased, InputError
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.steward.drift.report import report
from ctxsteward.steward.erasure import StewardRecords
from ctxsteward.steward.release.actors import NOBODY, ActionRefused, Actors, KeySigner, token_signer
from ctxsteward.steward.release.approvals import ApprovalRequest, Approvals, people_needed
from ctxsteward.store.crypto.signatures import is_signed
from ctxsteward.store.journal.erasures import ErasureRequest
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc

from .people import FACT, FIRST, LATER, LOCKED, SALT, SPEAKS, TOKENS, TURNED, WHEN, WORDING, actors, signer


@pytest.fixture
def store() -> Store:
    made = memory_store()
    made.profiles("support", tenant="acme").commit(FIRST, who="ada", why="first", when=WHEN)
    return made


@pytest.fixture
def approvals(store: Store) -> Approvals:
    return Approvals(store, "support", "acme", actors=actors())


def asked(
    approvals: Approvals, challenger: ProfileDocument = LOCKED, *, author: str = "steward", parent: int = 1
) -> ApprovalRequest:
    return approvals.request(challenger, report(FIRST, challenger), parent=parent, author=author, when=WHEN)


# -- who is needed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("challenger", "people"),
    [(FIRST, 0), (FACT, 0), (WORDING, 1), (SPEAKS, 1), (LOCKED, 2), (TURNED, 2)],
    ids=["nothing", "a fact", "wording", "in the operator's name", "locked", "a flip"],
)
def test_tiers(challenger: ProfileDocument, people: int) -> None:
    assert people_needed(report(FIRST, challenger)) == people


def test_a_record_that_gainsays_a_locked_entry_needs_two() -> None:
    meta = (FIRST.meta[0].model_copy(update={"text": "Reveal personal data of one customer to another."}),)

    assert people_needed(report(FIRST, FIRST.model_copy(update={"meta": meta}))) == 2


# -- asking and answering --------------------------------------------------------------------------------------


def test_two_people_approve(approvals: Approvals) -> None:
    request = asked(approvals)
    assert (request.state, request.people, request.touched) == ("waiting", 2, ("policies.refunds",))
    assert [one.id for one in approvals.pending(when=WHEN, head=1)] == [request.id]

    approvals.answer(request.id, "approve", TOKENS["ada"], when=WHEN, head=1)
    assert approvals.find(request.id, when=WHEN, head=1).state == "waiting"
    approvals.answer(request.id[:6], "approve", signer("ben"), when=WHEN, head=1, who="ben", note="read twice")

    found = approvals.find(request.id, when=WHEN, head=1)
    assert (found.state, [each.who for each in found.verdicts]) == ("approved", ["ada", "ben"])
    assert approvals.challenger(found) == LOCKED
    assert approvals.pending(when=WHEN, head=1) == ()


def test_one_rejection_is_enough(approvals: Approvals) -> None:
    request = asked(approvals)
    approvals.answer(request.id, "approve", signer("ada"), when=WHEN, head=1)
    approvals.answer(request.id, "reject", signer("cleo"), when=WHEN, head=1, note="the tone is off")

    assert approvals.find(request.id, when=WHEN, head=1).state == "rejected"
    with pytest.raises(ActionRefused, match="is rejected"):
        approvals.answer(request.id, "approve", signer("ben"), when=WHEN, head=1)


def test_the_same_request_and_the_same_answer_are_written_once(approvals: Approvals, store: Store) -> None:
    request = asked(approvals)
    first = approvals.answer(request.id, "reject", signer("ada"), when=WHEN, head=1)
    keys = [info.key for info in store.objects.list("")]

    assert asked(approvals).id == request.id
    assert [info.key for info in store.objects.list("")] == keys
    assert approvals.valid(request.challenger, author="steward", when=WHEN) == (first,)


class Bad(NamedTuple):
    id: str
    reason: str
    do: Callable[[Approvals, ApprovalRequest], Any]


def _twice(approvals: Approvals, request: ApprovalRequest) -> None:
    approvals.answer(request.id, "approve", signer("ada"), when=WHEN, head=1)
    approvals.answer(request.id, "approve", signer("ada"), when=LATER[:4] + WHEN[4:], head=1)


def _own(approvals: Approvals, _: ApprovalRequest) -> None:
    mine = asked(approvals, TURNED, author="ada")
    approvals.answer(mine.id, "approve", signer("ada"), when=WHEN, head=1)


BAD = (
    Bad(
        "unknown name",
        "unknown_actor",
        lambda a, r: a.answer(r.id, "approve", signer("ada"), when=WHEN, head=1, who="eve"),
    ),
    Bad("unknown token", "wrong_token", lambda a, r: a.answer(r.id, "approve", signer("eve"), when=WHEN, head=1)),
    Bad(
        "somebody else's name",
        "wrong_token",
        lambda a, r: a.answer(r.id, "approve", signer("ada"), when=WHEN, head=1, who="ben"),
    ),
    Bad("no reviewer", "wrong_role", lambda a, r: a.answer(r.id, "approve", signer("otto"), when=WHEN, head=1)),
    Bad("the author", "author", _own),
    Bad("twice", "same_person", _twice),
    Bad(
        "another challenger shown",
        "changed",
        lambda a, r: a.answer(r.id, "approve", signer("ada"), when=WHEN, head=1, challenger="0" * 64),
    ),
    Bad(
        "no such request",
        "unknown_request",
        lambda a, r: a.answer("ffffffff", "approve", signer("ada"), when=WHEN, head=1),
    ),
    Bad("no id", "unknown_request", lambda a, r: a.answer("", "approve", signer("ada"), when=WHEN, head=1)),
    Bad("too late", "expired", lambda a, r: a.answer(r.id, "approve", signer("ada"), when=LATER, head=1)),
    Bad("another version in force", "stale", lambda a, r: a.answer(r.id, "approve", signer("ada"), when=WHEN, head=2)),
)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.id)
def test_refused(bad: Bad, approvals: Approvals) -> None:
    with pytest.raises(ActionRefused) as refused:
        bad.do(approvals, asked(approvals))

    assert refused.value.reason == bad.reason


# -- what counts -----------------------------------------------------------------------------------------------


def test_an_approval_serves_no_other_challenger_parent_author_or_profile(approvals: Approvals, store: Store) -> None:
    request = asked(approvals)
    approvals.answer(request.id, "approve", signer("ada"), when=WHEN, head=1)
    other = Approvals(store, "billing", "acme", actors=actors())

    addresses = {
        approvals.address(LOCKED, 1, "steward"),
        approvals.address(TURNED, 1, "steward"),
        approvals.address(LOCKED, 2, "steward"),
        approvals.address(LOCKED, 1, "otto"),
        other.address(LOCKED, 1, "steward"),
    }

    assert len(addresses) == 5
    assert [len(approvals.valid(address, author="steward", when=WHEN)) for address in sorted(addresses)].count(1) == 1


def test_a_verdict_moved_to_another_challenger_counts_for_nothing(approvals: Approvals, store: Store) -> None:
    """Whoever can write to the chain, but has no person's key, gains nothing."""
    one, other = asked(approvals), asked(approvals, TURNED)
    approvals.answer(one.id, "approve", signer("ada"), when=WHEN, head=1)
    chain = store.chain(approvals.folder, tenant="acme")
    forged = [link for link in chain.links() if link.body["kind"] == "verdict"][-1].body
    for change in ({"challenger": other.challenger, "request": other.id}, {"who": "ben"}, {"verdict": "reject"}):
        chain.append(chain.head(), forged | change)

    assert approvals.valid(other.challenger, author="steward", when=WHEN) == ()
    assert [each.who for each in approvals.valid(one.challenger, author="steward", when=WHEN)] == ["ada"]


def test_an_approval_lapses_and_a_former_reviewer_counts_no_more(approvals: Approvals, store: Store) -> None:
    request = asked(approvals)
    approvals.answer(request.id, "approve", signer("ada"), when=WHEN, head=1)
    left = Approvals(store, "support", "acme", actors=Actors(salt=SALT, actors={"ben": actors().actors["ben"]}))

    assert len(approvals.valid(request.challenger, author="steward", when=WHEN)) == 1
    assert approvals.valid(request.challenger, author="steward", when=LATER) == ()
    assert approvals.valid(request.challenger, author="ada", when=WHEN) == ()
    assert left.valid(request.challenger, author="steward", when=WHEN) == ()
    assert approvals.find(request.id, when=LATER, head=1).state == "expired"


def test_a_request_and_an_approval_whose_time_of_expiry_cannot_be_read_have_expired(
    approvals: Approvals, store: Store
) -> None:
    """One damaged link blocks no other request."""
    request, other = asked(approvals), asked(approvals, TURNED)
    approvals.answer(other.id, "approve", signer("ada"), when=WHEN, head=1)
    chain = store.chain(approvals.folder, tenant="acme")
    links = [link.body for link in chain.links()]
    (verdict,) = (body for body in links if body["kind"] == "verdict")
    damaged = verdict | {"request": request.id, "challenger": request.challenger, "expires": "never"}
    chain.append(chain.head(), approvals.signed(damaged, signer("ada")))
    (asked_for,) = (body for body in links if body["challenger"] == request.challenger)
    chain.append(chain.head(), asked_for | {"expires": "never"})

    assert approvals.valid(request.challenger, author="steward", when=WHEN) == ()
    states = {each.id: each.state for each in approvals.requests(when=WHEN, head=1)}
    assert states == {request.id: "expired", other.id: "waiting"}


# -- what is kept ----------------------------------------------------------------------------------------------


def test_requests_hold_no_word_of_a_record_and_survive_care(approvals: Approvals, store: Store) -> None:
    challenger = FACT.model_copy(update={"persona": WORDING.persona, "policies": WORDING.policies})
    request = asked(approvals, challenger)
    bytes_ = b"".join(store.objects.get(info.key) for info in store.objects.list("steward/"))

    assert b"euro" not in bytes_
    assert b"Always cite" in bytes_
    gc(store, now=4e9, grace_seconds=0)
    assert approvals.challenger(request) == challenger
    assert fsck(store, read_data=True).damage == ()


def test_a_forgotten_record_takes_its_request_with_it(approvals: Approvals, store: Store) -> None:
    request = asked(approvals, FACT)
    session = store.session("s-2", tenant="acme")
    vault = store.vault("acme")
    vault.destroy_key(session.id, who="ada", when=WHEN, why="asked for")

    assert StewardRecords(store, "acme").withdraw(ErasureRequest("ada", WHEN, "asked for")) == 1
    with pytest.raises(Erased):
        approvals.challenger(request)


# -- the configuration -----------------------------------------------------------------------------------------


def test_actors_are_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "actors.yaml"
    path.write_text(f"salt: {SALT}\nactors:\n  ada: {{roles: [reviewer], key: {signer('ada').key}}}\n")

    assert Actors.load(path).whose(signer("ada"), "reviewer") == "ada"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("salt: 12\nactors: {}", "salt"),
        (f'salt: "{SALT}"\nactors: {{ada: {{roles: [king], key: "{"a" * 64}"}}}}', "actors.ada.roles"),
        (f'salt: "{SALT}"\nactors: {{ada: {{roles: [], key: "{"a" * 64}"}}}}', "actors.ada.roles"),
        (f'salt: "{SALT}"\nactors: {{ada: {{roles: [reviewer], key: short}}}}', "actors.ada.key"),
        (f'salt: "{SALT}"\nactors: {{ada: {{roles: [reviewer], key: "{"a" * 64}", admin: true}}}}', "actors.ada.admin"),
        (f'salt: "{SALT}"\nadmins: {{}}\nactors: {{}}', "admins"),
        (
            f'salt: "{SALT}"\nactors: {{a: {{roles: [reviewer], key: "{"a" * 64}"}}, b: {{roles: [reviewer], key: "{"a" * 64}"}}}}',
            "key of 'a'",
        ),
        (
            f'salt: "{SALT}"\nactors: {{ada: {{roles: [reviewer], key: "{"a" * 64}"}}, Ada: {{roles: [reviewer], key: "{"b" * 64}"}}}}',
            "'Ada' looks like 'ada'",
        ),
        (
            f'salt: "{SALT}"\nactors: {{ada: {{roles: [reviewer], key: "{"a" * 64}"}}, ａda : {{roles: [reviewer], key: "{"b" * 64}"}}}}',
            "looks like 'ada'",
        ),
    ],
)
def test_a_wrong_configuration_is_refused_by_key(text: str, found: str) -> None:
    with pytest.raises(InputError, match=found):
        Actors.from_yaml(text)


def test_a_token_signs_and_a_weak_one_is_refused() -> None:
    mine = token_signer(TOKENS["ada"], SALT)

    assert mine.key == signer("ada").key != token_signer(TOKENS["ada"], "00" * 16).key
    assert is_signed(mine.key, mine.sign(b"x"), b"x")
    assert not is_signed(mine.key, mine.sign(b"x"), b"y")
    assert not is_signed(mine.key, "zz", b"x")
    assert KeySigner(b"k" * 32).key != mine.key
    with pytest.raises(InputError, match="at least 16"):
        token_signer("short", SALT)
    assert json.loads(NOBODY.model_dump_json())["actors"] == {}
