"""``ctxsteward blame``: the source of a reply's words, who said it, how it came, and who else was shown it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.console.pages import Site, inspect_call
from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, open_store, rebuild
from ctxsteward.envelope.audit.blame import TermIndex, bisect, sources_of
from ctxsteward.schemas.message import Wire

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


def test_the_page_of_a_call_shows_the_source_of_each_sentence_of_its_reply(store: str) -> None:
    with open_store(store) as opened:
        frames, refund, penguins = inspect_call(opened, "s").reply
        answer = Site(store=opened, root="/view").answer(f"sessions/s/calls/{inspect_call(opened, 's').count}", {})
        first = inspect_call(opened, "s", 1).reply

    assert (frames.kind, frames.refs, frames.said_by) == ("bullet", ("§3",), "user ada")
    assert "Marchetti in Treviso" in frames.source
    assert (refund.kind, refund.said_by, penguins.kind) == ("line", "operator", "")
    for text in ("Marchetti makes our frames in Treviso", "user ada", "Penguins of the Antarctic", "cannot tell"):
        assert text in answer.body.decode()
    assert [sentence.text for sentence in first] == ["Step 1 is done, all is as it was."] * 3


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


# -- with a model --------------------------------------------------------------------------------------------------

MODEL = '''
from ctxsteward.schemas import ChatReply

class Model:
    """Says what its prompt says of frames."""
    name = "scripted"
    def reply(self, request):
        assert request.prefix["messages"][-1]["content"].startswith("What do you know"), "the question stays"
        knows = "batch 7719" in str(request.prefix)
        return ChatReply(text="They are Italian: Treviso makes frames." if knows else "I know nothing of them.")
    async def reply_async(self, request):
        return self.reply(request)

model = Model()
'''


def test_a_model_is_asked_again_without_half_of_the_sources_until_one_is_left(store: str, tmp_path: Path) -> None:
    path = tmp_path / "scripted.py"
    path.write_text(MODEL)

    (found,) = asked(store, "s", "--phrase", "Italian frames", "--model-url", f"{path}:model")

    assert isinstance(found["source"], dict)
    assert found["source"]["refs"] == ["§3"], "its words do not say so; what the model says without it does"
    assert found["reply_without"] == "I know nothing of them."
    assert found["said_by"] == "user ada"
    result = CliRunner().invoke(
        cli, ["blame", "s", "--phrase", "Italian frames", "--model-url", f"{path}:model", "--store", store]
    )
    assert f"the model was asked {found['model_calls']} times; without it it says: I know nothing" in result.output


def test_a_model_needs_a_phrase(store: str) -> None:
    result = CliRunner().invoke(cli, ["blame", "s", "--model-url", "openai:gpt-4o", "--store", store])
    assert result.exit_code == 2
    assert "--model-url needs --phrase TEXT" in result.output


@pytest.fixture(scope="module")
def envelope(store: str) -> Envelope:
    with open_store(store) as opened:
        return rebuild(opened, opened.journal.manifests(opened.at("default", "s").key)[-1].address)


def says_if(holds: Callable[[Wire], bool]) -> Callable[[Wire], str]:
    return lambda request: "zebra crossing" if holds(request) else "nothing"


def test_every_source_is_found_by_a_model_in_two_calls_for_each_halving(envelope: Envelope) -> None:
    request = envelope.render("openai-chat", cache=False)
    sources = [source for source in sources_of(envelope)[:-1] if _texts(request).count(source.piece) == 1]
    assert {source.kind for source in sources} >= {"line", "bullet", "message"}
    for source in sources:
        says = says_if(lambda asked, piece=source.piece: piece in _texts(asked))
        found = bisect(envelope, "openai-chat", "zebra crossing", says)
        assert found.blame.source == source
        assert found.calls <= 1 + 2 * math.ceil(math.log2(len(sources_of(envelope))))


def _texts(request: Wire) -> str:
    return "\n".join(message["content"] for message in request["messages"])


def test_what_the_model_says_anyway_or_by_either_of_two_has_no_source(envelope: Envelope) -> None:
    always = bisect(envelope, "openai-chat", "zebra crossing", says_if(lambda asked: True))
    assert (always.blame.source, always.blame.why) == (None, "the model says it without any of these sources")
    either = bisect(
        envelope,
        "openai-chat",
        "zebra crossing",
        says_if(lambda asked: "bicycle shop" in str(asked) or "batch 7719" in str(asked)),
    )
    assert either.blame.source is None
    assert either.blame.why.endswith("several of them suffice")
    never = bisect(envelope, "openai-chat", "zebra crossing", says_if(lambda asked: False))
    assert (never.calls, never.blame.why) == (1, "asked again with the same prompt, the model does not say it")
