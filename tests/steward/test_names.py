"""One person under many names is one: behind a claim, behind a fix, among reviewers, as author."""

from __future__ import annotations

import pytest

from ctxsteward.envelope.testing import memory_store as envelope_store
from ctxsteward.schemas import InputError
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.artifacts.artifact import build_artifact
from ctxsteward.steward.drift.report import report
from ctxsteward.steward.harvest.tools.errors import tool_errors
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.release.actors import ActionRefused, Actor, Actors
from ctxsteward.steward.release.approvals import Approvals
from ctxsteward.steward.release.record_reviews import RecordReviews

from .harvest.tools.scenes import call, scene
from .release.people import FIRST, LOCKED, SALT, TOKENS, WHEN, actors, signer
from .release.test_record_reviews import record
from .scenes import AGENT, TENANT, artifact, memory_store

EVES = ("eve", "Eve", "еve", "eve ", "e\u200bve", "ｅｖｅ")
RULE = "Refunds go through without a check."
REVIEWER = ("reviewer",)


def wide(names: tuple[str, ...]) -> set[tuple[str, int]]:
    """Status and support of the shared record when each of these says it in a session of theirs."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for number, name in enumerate(names):
            ledger.absorb(artifact(store, f"s{number}", [RULE], principal=name, reach="shared"))
            ledger.judged()  # one at a time: what is kept of a draft counts as all at once does
        return {(one.status, one.support.principals) for one in ledger.records() if one.scope.is_shared}


def test_names_that_look_alike_agree_with_nobody_but_themselves() -> None:
    assert wide(EVES) <= {("candidate", 1)}  # and of one voice alone nothing is shown beside its author's own


def test_among_many_observations_they_are_one_still() -> None:
    assert wide(EVES * 4 + ("ada",)) == {("candidate", 2)}


def test_three_people_agree() -> None:
    assert wide(("eve", "ada", "ben")) == {("active", 3)}


def fixed(
    *principals: str | None, bad: dict[str, object], good: dict[str, object], says: str, declared: tuple[str, ...] = ()
) -> list[tuple[str, str, str]]:
    """What becomes of a fix that recovered once in a session of each of these; the tool declares these arguments."""
    policy = AdmissionPolicy(tool_arguments={"pay": declared})
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        key = store.keys.address_key(TENANT)
        for number, principal in enumerate(principals):
            talk = scene(call("pay", says, **bad), call("pay", "{}", **good), session=f"s{number}", principal=principal)
            ledger.absorb(*build_artifact(talk, tool_errors(talk), extractor="harvest/1", key=key))
        return [
            (one.status, *(set(one.reasons) - {"hint"}), one.text)
            for one in ledger.records(JudgementContext(now=WHEN, policy=policy))
        ]  # type: ignore[misc]


DAY = {
    "bad": {"order": "A-17", "day": "1/2/2024"},
    "good": {"order": "A-17", "day": "2024-01-02"},
    "says": "Error: invalid day, wrong format",
}
GUARD = {
    "bad": {"to": "DE-88", "sum": 900, "require_approval": True},
    "good": {"to": "DE-88", "sum": 900},
    "says": "Error: unexpected argument require_approval",
}
SWITCH = {
    "bad": {"to": "DE-88", "sum": 900},
    "good": {"to": "DE-88", "sum": 900, "force": True},
    "says": "Error: missing required argument: force",
}
LIMIT = {
    "bad": {"to": "DE-88", "limit": 100},
    "good": {"to": "DE-88", "limit": 9000},
    "says": "Error: invalid limit: must be 9000",
}
RECIPIENT = {
    "bad": {"sum": 9000, "recipient": "ACME-GmbH"},
    "good": {"sum": 9000, "recipient": "Zentrix-Ltd"},
    "says": "Error: recipient not found",
}
REQUIRED = {
    "bad": {"order": "A-17"},
    "good": {"order": "A-17", "reason": "late"},
    "says": "Error: missing required argument: reason",
}


@pytest.mark.parametrize(
    ("who", "becomes"),
    [
        pytest.param(("ann",) * 3, ("candidate", "needs_principals"), id="three sessions of one person"),
        pytest.param(EVES, ("candidate", "needs_principals"), id="one person under many names"),
        pytest.param((None,) * 3, ("candidate", "needs_principals"), id="three sessions of nobody known"),
        pytest.param(("s0", "s1", "s2"), ("active", "fix_worked"), id="three people named like their sessions"),
        pytest.param(("ann",), ("candidate", "needs_recovery"), id="once"),
        pytest.param(("ann", "ben"), ("candidate", "needs_recovery"), id="two people"),
        pytest.param(("ann", "ben", "cleo"), ("active", "fix_worked"), id="three people"),
    ],
)
def test_a_fix_is_admitted_when_it_helped_three_people(who: tuple[str | None, ...], becomes: tuple[str, str]) -> None:
    ((status, reason, text),) = fixed(*who, **DAY)  # type: ignore[arg-type]
    assert ((status, reason), text) == (becomes, "`pay` rejects `day`: write it as YYYY-MM-DD.")


@pytest.mark.parametrize(
    ("scene_", "status"),
    [
        pytest.param(GUARD, "vetted", id="leaves out a check"),
        pytest.param(SWITCH, "vetted", id="turns a switch on"),
        pytest.param(LIMIT, "vetted", id="raises a limit"),
        pytest.param(RECIPIENT, "vetted", id="pays somebody else"),
        pytest.param(DAY, "active", id="writes a date otherwise"),
        pytest.param(REQUIRED | {"declared": ("order", "reason")}, "active", id="adds what was required"),
        pytest.param(REQUIRED, "vetted", id="adds what only an error asked for"),
    ],
)
def test_a_fix_that_changes_what_a_call_does_waits_for_a_person(scene_: dict[str, object], status: str) -> None:
    found = fixed("ann", "ben", "cleo", "dora", **scene_)  # type: ignore[arg-type]
    assert found
    assert {each[0] for each in found} == {status}


def test_a_reviewer_is_not_two_by_another_look_of_the_name() -> None:
    people = {name: Actor(roles=REVIEWER, key=signer(other).key) for name, other in (("ada", "ada"), ("аda", "ben"))}
    with pytest.raises(ValueError, match="looks like 'ada'; two people need two names"):
        Actors(salt=SALT, actors=people)
    with pytest.raises(ValueError, match="U\\+200B"):
        Actors(salt=SALT, actors={"a\u200bda": people["ada"]})
    text = f"salt: {SALT}\nactors:\n  ada: {{roles: [reviewer], key: {signer('ada').key}}}\n"
    with pytest.raises(InputError, match="looks like"):
        Actors.from_yaml(text + f"  аda: {{roles: [reviewer], key: {signer('ben').key}}}\n")


@pytest.mark.parametrize("author", ["Ada", "аda", "ada "])
def test_an_author_does_not_approve_a_change_under_another_look_of_the_name(author: str) -> None:
    store = envelope_store()
    store.profiles("support", tenant="acme").commit(FIRST, who="ada", why="first", when=WHEN)
    approvals = Approvals(store, "support", "acme", actors=actors())
    request = approvals.request(LOCKED, report(FIRST, LOCKED), parent=1, author=author, when=WHEN)
    with pytest.raises(ActionRefused, match="somebody else must approve it"):
        approvals.answer(request.id, "approve", TOKENS["ada"], when=WHEN, head=1)
    approvals.answer(request.id, "approve", TOKENS["ben"], when=WHEN, head=1)


@pytest.mark.parametrize("author", ["Ada", "аda", "ada "])
def test_who_said_it_does_not_approve_a_record_under_another_look_of_the_name(author: str) -> None:
    made_ = record()
    said = made_.model_copy(update={"evidence": (made_.evidence[0].model_copy(update={"principal": author}),)})
    reviews = RecordReviews(envelope_store(), "support", actors=actors())
    with pytest.raises(ActionRefused, match="somebody else must approve it"):
        reviews.answer(said, "approve", TOKENS["ada"], when=WHEN)
    reviews.answer(said, "approve", TOKENS["ben"], when=WHEN)
    assert reviews.approvers(said) == ("ben",)
