"""An answer about a record takes effect at once, and what the answer says to do next can be done."""

from __future__ import annotations

import re
import shlex

import pytest

from ctxsteward.console.steward.context import open_context
from ctxsteward.console.steward.records import records_at
from ctxsteward.console.steward.taking_effect import leased
from ctxsteward.envelope import EnvelopeBuilder, open_store
from ctxsteward.store import Audience

from .scenes import Desk, run, value

PROFILE = "fernhollow-desk"
WISH = "Never use emojis in your messages, please."


def prompts(desk: Desk, principal: str, turns: int = 1) -> list[str]:
    """What a model is sent in a session of this person, turn by turn."""
    sent = []
    with open_store(desk.where[1]) as store:
        session = store.session(f"ask-{principal}", profile=store.profiles(PROFILE).newest().profile)
        for _ in range(turns):
            session.append(
                {"role": "user", "content": "Where do I live, and when do you pick up?"}, principal=principal
            )
            sent.append(str(EnvelopeBuilder(tokenizer="o200k_base").build(session).render("text")))
            session.append({"role": "assistant", "content": "One moment."})
    return sent


def own(desk: Desk, status: str) -> dict[str, str]:
    """A record of one person's own that stands so, with the person's name; an active one says where they live.

    It is none of Ada's, who answers for it: records have no order, and nobody approves their own words.
    """
    with open_context(desk.where[1], "default", PROFILE) as place, records_at(place) as records:
        found = next(
            one
            for one in records
            if one.scope.user not in (None, "ada")
            and one.status == status
            and ("live" in one.text or status == "vetted")
        )
        return {"id": found.id, "text": found.text, "user": str(found.scope.user)}


def answered(desk: Desk, id: str, verdict: str, name: str = "ada") -> str:
    return run("review", id, verdict, "--as", name, *desk.where, **desk.as_(name)).stdout


def shelf(desk: Desk, user: str) -> set[str]:
    with open_store(desk.where[1]) as store:
        return {fact.text for fact in store.facts(PROFILE).active(Audience("user", user)).facts}


def test_a_rejected_fact_leaves_the_next_prompt_of_an_open_session(desk: Desk) -> None:
    fact = own(desk, "active")
    assert fact["text"] in shelf(desk, fact["user"])
    (before,) = prompts(desk, fact["user"])
    assert fact["text"] in before, "else the test could not fail"

    assert "it is used no more" in answered(desk, fact["id"], "--reject")

    assert fact["text"] not in shelf(desk, fact["user"])
    assert not any(fact["text"] in sent for sent in prompts(desk, fact["user"], turns=2))


def test_an_approved_fact_of_one_person_is_used_at_once_and_nobody_is_sent_to_promote_it(desk: Desk) -> None:
    fact = own(desk, "vetted")
    assert fact["text"] not in shelf(desk, fact["user"])

    told = answered(desk, fact["id"], "--approve")

    assert "it is used from the next request on" in told
    assert "promote" not in told
    assert fact["text"] in shelf(desk, fact["user"])


def test_a_rejected_record_for_everybody_leaves_the_version_in_force_at_once(desk: Desk) -> None:
    before = desk.head()
    (id_,) = (entry.id for entry in before.meta if entry.text == WISH)

    assert "it is used no more" in answered(desk, id_, "--reject")

    after = desk.head()
    assert [entry.id for entry in after.meta if entry.id == id_] == []
    assert after.version == before.version + 1
    with open_store(desk.where[1]) as store:
        session = store.session("later", profile=store.profiles(PROFILE).newest().profile)
        session.append({"role": "user", "content": "Hello."})
        assert WISH not in str(EnvelopeBuilder(tokenizer="o200k_base").build(session).render("text"))


@pytest.mark.parametrize("verdict", ["--approve", "--reject"])
def test_while_a_night_writes_the_answer_says_that_the_next_one_does_it(desk: Desk, verdict: str) -> None:
    fact = own(desk, "vetted" if verdict == "--approve" else "active")
    with open_context(desk.where[1], "default", PROFILE) as place, leased(place) as lease:
        assert lease is not None
        told = answered(desk, fact["id"], verdict)
    assert "the next night" in told
    assert (fact["text"] in shelf(desk, fact["user"])) == (verdict == "--reject"), "nothing was written"


def test_the_command_that_an_approval_names_can_be_run(desk: Desk) -> None:
    id_ = desk.record()
    told = answered(desk, id_, "--approve")
    hinted = re.search(r"`ctxsteward steward (promote \w+)`", told)
    assert hinted, told

    done = run(*shlex.split(hinted[1]), "--token", desk.tokens["otto"], *desk.where, code=None)

    waits = value("review", *desk.where, code=None)["requests"]
    assert done.exit_code == 0 or (done.exit_code == 3 and waits), done.output
