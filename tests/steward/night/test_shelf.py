"""What a night learns of one person is shown to that person, cited, and to nobody else; forgetting takes it back."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ctxsteward.envelope import EnvelopeBuilder, Profile, Store, open_store
from ctxsteward.store import Audience
from ctxsteward.store.erasure.forget import forget

from .desk import NOON, PERSONAL, night, say, settings_of


def shown(store: Store, principal: str, name: str) -> str:
    """The turn context of somebody who asks."""
    profile = Profile.from_text("You book flights.", name="support")
    session = store.session(name, tenant="acme", profile=profile)
    session.append({"role": "user", "content": "Which aisle seats are left on flights?"}, principal=principal)
    context = EnvelopeBuilder(tokenizer="o200k_base").build(session).dynamic.context
    return context.text if context else ""


def test_a_wish_is_shown_to_who_said_it_alone_until_it_is_forgotten(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    say(tmp_path / "in", "s-7", PERSONAL[0], principal="ann", session="s-7")
    night(settings)
    with open_store(settings.store) as store:
        assert PERSONAL[0] in shown(store, "ann", "a1")
        assert "s-7§3" in shown(store, "ann", "a2")
        assert shown(store, "ben", "b1") == ""
    again = night(settings.model_copy(update={"night": "2026-11-23"}))
    assert again.outcome == "unchanged"
    with open_store(settings.store) as store:
        forget(store, tenant="acme", session="s-7", who="dpo", when="2026-11-24T00:00:00Z", why="asked")
    with open_store(settings.store) as store:
        assert PERSONAL[0] not in shown(store, "ann", "a3")


def test_a_fact_is_found_by_the_question_that_it_answered(tmp_path: Path) -> None:
    """None of the words of the later question stands in the fact."""
    folder = tmp_path / "in"
    folder.mkdir()
    texts = (
        "Hello",
        "Where did you grow up, and which town was your childhood in?",
        "I was born in Porto in 1984.",
        "Anything else?",
        "I have two cats, Mia and Leo, since 2019.",
        "Thank you.",
    )
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    path = folder / "talk.json"
    path.write_text(json.dumps({"messages": messages, "ctxsteward": {"principal": "ann"}}))
    os.utime(path, (NOON, NOON))
    settings = settings_of(tmp_path)
    night(settings)
    with open_store(settings.store) as store:
        known = {fact.text: fact.answers for fact in store.facts("support", tenant="acme").active(ANN).facts}
        assert known["I was born in Porto in 1984."] == texts[1]
        context = asked(store, "a1", "Tell me a song from the town of my childhood")
        assert texts[2] in context
        assert texts[1] not in context, "an index key, never shown"
        assert texts[2] not in asked(store, "a2", "Tell me a song")


ANN = Audience("user", "ann")


def asked(store: Store, name: str, question: str) -> str:
    profile = Profile.from_text("You sing.", name="support")
    session = store.session(name, tenant="acme", profile=profile)
    session.append({"role": "user", "content": question}, principal="ann")
    context = EnvelopeBuilder(tokenizer="o200k_base").build(session).dynamic.context
    return context.text if context else ""
