"""An answer about a record takes effect at once, and what the answer says to do next can be done."""

from __future__ import annotations

import re
import shlex

from ctxsteward.console.steward.context import open_context
from ctxsteward.console.steward.taking_effect import leased
from ctxsteward.envelope import EnvelopeBuilder, open_store

from .scenes import Desk, run, value

PROFILE = "fernhollow-desk"
WISH = "Never use emojis in your messages, please."


def answered(desk: Desk, id: str, verdict: str, name: str = "ada") -> str:
    return run("review", id, verdict, "--as", name, *desk.where, **desk.as_(name)).stdout


def test_a_rejected_record_leaves_the_version_in_force_at_once(desk: Desk) -> None:
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


def test_while_a_night_writes_the_answer_says_that_the_next_one_does_it(desk: Desk) -> None:
    (id_,) = (entry.id for entry in desk.head().meta if entry.text == WISH)
    with open_context(desk.where[1], "default", PROFILE) as place, leased(place) as lease:
        assert lease is not None
        assert "the next night" in answered(desk, id_, "--reject")
    assert id_ in [entry.id for entry in desk.head().meta], "nothing was written"


def test_the_command_that_an_approval_names_can_be_run(desk: Desk) -> None:
    id_ = desk.record()
    told = answered(desk, id_, "--approve")
    hinted = re.search(r"`ctxsteward steward (promote \w+)`", told)
    assert hinted, told

    done = run(*shlex.split(hinted[1]), "--token", desk.tokens["otto"], *desk.where, code=None)

    waits = value("review", *desk.where, code=None)["requests"]
    assert done.exit_code == 0 or (done.exit_code == 3 and waits), done.output
