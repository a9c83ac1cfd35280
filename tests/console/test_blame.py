"""``ctxsteward blame``: the source of a reply's words, who said it, how it came, and who else was shown it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, open_store
from ctxsteward.envelope.audit.blame import TermIndex, sources_of

PROFILE = Profile.from_yaml(
    "name: shop\npersona: You help a bicycle shop.\n"
    "policies:\n  refunds: {text: Refunds above 500 dollars need the sign-off of Dana Whitfield., locked: true}\n"
)
TALK = ("Nice weather.", "How are the lights?", "The tests are done.", "Go on with the next step, please.")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A session with three replies, and another one under the same profile."""
    uri = f"file:{tmp_path_factory.mktemp('blame')}"
    with open_store(uri) as opened:
        builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=600))
        opened.session("other", profile=PROFILE).append({"role": "user", "content": "Hello."})
        session = opened.session("s", profile=PROFILE)
        session.append({"role": "user", "content": "Let us begin."}, principal="ada")
        session.append({"role": "assistant", "content": "Fine."})
        session.append(
            {"role": "user", "content": "Our frames come from Marchetti in Treviso, batch 7719."}, principal="ada"
        )
        for turn in range(24):
            session.append({"role": "assistant", "content": f"Step {turn} is done, all is as it was. " * 3})
            session.append({"role": "user", "content": TALK[turn % len(TALK)]}, principal="ada")
            builder.build(session)
        session.append({"role": "user", "content": "What do you know of Marchetti and of refunds?"}, principal="ada")
        builder.build(session)
        reply = (
            "Marchetti makes our frames in Treviso (batch 7719). A refund above 500 dollars needs sign-off from Dana "
            "Whitfield. Penguins of the Antarctic breed on rocky Adelaide beaches."
        )
        session.append({"role": "assistant", "content": reply})
    return uri


def asked(store: str, *arguments: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(cli, ["blame", *arguments, "--json", "--store", store])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


def test_each_sentence_of_a_reply_has_its_source_or_none(store: str) -> None:
    frames, refund, penguins = asked(store, "s")

    assert isinstance(frames["source"], dict)
    assert frames["source"]["refs"] == ["§3"]
    assert frames["said_by"] == "user ada"
    assert frames["calls"]
    assert isinstance(refund["source"], dict)
    assert (refund["source"]["kind"], refund["said_by"], refund["sessions"]) == ("line", "operator", ["other"])
    assert str(refund["gate"]).startswith("profile ")
    assert (penguins["source"], penguins["share"], penguins["why"]) == (
        None,
        0.0,
        "nothing in the prompt has its words",
    )


def test_a_phrase_is_asked_about_by_the_call_s_address(store: str) -> None:
    with open_store(store) as opened:
        newest = opened.journal.manifests(opened.at("default", "s").key)[-1].address

    (found,) = asked(store, newest[:16], "--phrase", "frames of Marchetti, batch 7719")

    assert isinstance(found["source"], dict)
    assert found["source"]["refs"] == ["§3"]


def test_a_call_without_a_reply_says_what_to_do(store: str) -> None:
    with open_store(store) as opened:
        session = opened.session("unanswered")
        session.append({"role": "user", "content": "And now?"})
        EnvelopeBuilder("gpt-4o").build(session)

    result = CliRunner().invoke(cli, ["blame", "unanswered", "--store", store])

    assert result.exit_code == 2
    assert "has no reply with text in the log; append it to the session, or name words of it" in result.output


def test_words_that_stand_everywhere_accuse_nobody() -> None:
    session = open_store("memory:").session("s")
    for turn in range(12):
        role = "assistant" if turn % 2 else "user"
        session.append({"role": role, "content": f"Please check flight and reservation number {turn} again."})

    index = TermIndex(sources_of(EnvelopeBuilder("gpt-4o").build(session)))

    assert index.blame("Check the flight reservation number again, please.").source is None
