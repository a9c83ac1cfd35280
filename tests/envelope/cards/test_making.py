"""What a card says of each kind of message, which messages have none, and what a failing helper costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope.cards import (
    CardSummarizer,
    SessionCards,
    card_summarizer,
    cards_of,
    keywords,
    leading_sentences,
)
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas.cards import ContextCard
from ctxsteward.schemas.message import Message
from ctxsteward.schemas.publish import validate
from ctxsteward.schemas.summary import SourceMessage

from ...examples import examples
from .conversations import LONG, call, result, say, session_of

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def made(
    items: Sequence[Any],
    summarize: CardSummarizer = leading_sentences,
    pins: Sequence[tuple[str, Any, str | None]] = (),
) -> SessionCards:
    session = session_of(memory_store())
    session.extend(items)
    for ref, strength, name in pins:
        session.pin(ref, strength, name=name)
    return cards_of(session, summarize)


def one(item: Any, summarize: CardSummarizer = leading_sentences) -> ContextCard:
    return made([item], summarize).cards[0]


def test_a_card_has_every_field_of_its_message() -> None:
    items = [
        say("system", "not the operator's"),
        say("user", "Where is the order 4711 of billing_eu?", phase="research", ts="2026-03-01T09:00:00Z"),
        call("c1"),
        result("c1", '{"error": null, "rows": [], "took_ms": 3, "a": 1, "b": 2, "c": 3}'),
        say("assistant", LONG, pin="keep"),
        say("user", "injected", origin="other-session"),
        say("user", "Go on.", phase="write"),
    ]
    cards, findings = made(items, pins=[("§2", "soft", "the question")])

    assert findings == []
    assert cards[0].model_dump(exclude={"address", "keywords", "generated_at"}) == {
        "tenant": "default",
        "session": "s",
        "ref": "§2",
        "summary": "Where is the order 4711 of billing_eu?",
        "embedding": None,
        "embedding_model": None,
        "estimated_tokens": cards[0].estimated_tokens,
        "role": "user",
        "phase_name": "research",
        "turn_number": 1,
        "is_anchor": False,
        "is_callout": True,
        "callout_name": "the question",
        "generator_model": "fast-path",
        "message_timestamp": "2026-03-01T09:00:00Z",
    }
    assert [(c.ref, c.role, c.phase_name, c.turn_number, c.is_anchor, c.generator_model) for c in cards] == [
        ("§2", "user", "research", 1, False, "fast-path"),
        ("§3", "assistant", "research", 1, False, "fast-path"),
        ("§4", "tool", "research", 1, False, "fast-path"),
        ("§5", "assistant", "research", 1, True, "leading_sentences"),
        ("§7", "user", "write", 1, False, "fast-path"),
    ]
    assert cards[2].summary == "Tool result with keys: error, rows, took_ms, a, b"
    assert cards[3].summary.startswith("The deploy of service billing-7 failed at step 4. We decided to roll back.")
    assert {"order", "4711", "billing_eu"} <= set(cards[0].keywords)
    assert all(len(card.address) == 64 and card.estimated_tokens > 0 for card in cards)
    for card in cards:
        validate("context_card", card.model_dump(mode="json"))


class Case(NamedTuple):
    id: str
    item: Any
    summary: str


SUMMARIES = [
    Case("short text is its own", say("user", "Ship it on Friday."), "Ship it on Friday."),
    Case("199 characters are short", say("user", "x" * 199), "x" * 199),
    Case("line breaks become blanks", say("user", "a\n\n b\x07\tc"), "a b c"),
    Case("a call by name and arguments", call("c"), 'look {"q": "port"}'),
    Case("an error's text", result("c", '{"error": "no such table", "code": 7}'), "Tool error: no such table"),
    Case("an error's message", result("c", json.dumps({"error": {"message": "late"}})), "Tool error: late"),
    Case("an error's first 100", result("c", json.dumps({"error": "e" * 400})), "Tool error: " + "e" * 100),
    Case("an error that is none", result("c", '{"error": null, "ok": 1}'), "Tool result with keys: error, ok"),
    Case("images by count", result("c", [IMAGE, IMAGE]), "Tool returned 2 images"),
    Case("images in an object", result("c", '{"images": ["a.png"]}'), "Tool returned 1 image"),
    Case("the first 5 keys", result("c", json.dumps(dict.fromkeys("abcdefg"))), "Tool result with keys: a, b, c, d, e"),
    Case("short output whole", result("c", "x" * 99), "Tool result: " + "x" * 99),
    Case("first 100 and size", result("c", "y" * 100), "Tool result: " + "y" * 100 + "... (100 characters)"),
    Case("no output", result("c", ""), "Tool result: (empty)"),
    Case("a list is text", result("c", "[1, 2]"), "Tool result: [1, 2]"),
    Case("broken JSON is text", result("c", '{"a": '), 'Tool result: {"a":'),
    Case("deep JSON is text", result("c", '{"a":' * 3000), "Tool result: " + '{"a":' * 20 + "... (15000 characters)"),
    Case("an empty object is text", result("c", "{}"), "Tool result: {}"),
    Case("an image", say("user", [IMAGE]), "[1 image]"),
    Case("a block of another kind", say("user", [{"type": "document", "x": 1}]), "[document]"),
    Case(
        "Anthropic results in a user message",
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "boom", "is_error": True},
                {"type": "tool_result", "tool_use_id": "b", "content": "fine"},
            ],
        },
        "Tool error: boom; Tool result: fine",
    ),
]


@pytest.mark.parametrize("case", SUMMARIES, ids=[case.id for case in SUMMARIES])
def test_rules_summarize_tool_results_and_short_texts(case: Case) -> None:
    def never(source: SourceMessage) -> str:
        raise AssertionError("a rule covers this")

    card = one(case.item, never)
    assert (card.summary, card.generator_model) == (case.summary, "fast-path")
    wire = case.item if isinstance(case.item, dict) else case.item.message
    results = wire["role"] == "tool" or "tool_result" in str(wire)
    assert card.role == ("tool" if results else wire["role"])


def test_a_long_original_is_never_in_its_card() -> None:
    secret = "The vault code is 7719-QX."
    card = one(say("user", f"{LONG} {LONG} {secret}"))
    assert secret not in card.model_dump_json()
    assert len(card.summary) <= 300
    huge = one(say("assistant", " ".join(f"word{n}" for n in range(60_000))))
    assert len(huge.model_dump_json()) < 3_000
    assert len(huge.keywords) == 20


def test_the_extractive_summarizer_fits_the_port() -> None:
    text = "Hello there. " * 20 + "Refunds above $500 need Dana's sign-off."
    card = one(say("user", text), card_summarizer("extractive"))
    assert "Refunds above $500 need Dana's sign-off." in card.summary
    assert card.generator_model == "extractive"


class Failing(NamedTuple):
    id: str
    summarize: Callable[[SourceMessage], Any]


def _raises(error: BaseException) -> Callable[[SourceMessage], str]:
    def summarize(source: SourceMessage) -> str:
        raise error

    return summarize


FAILING = [
    Failing("raises", _raises(RuntimeError("no quota\nleft"))),
    Failing("exits", _raises(SystemExit(3))),
    Failing("recurses", _raises(RecursionError())),
    Failing("says nothing", lambda source: " \n"),
    Failing("gives None", lambda source: None),
    Failing("gives bytes", lambda source: b"x"),
    Failing("gives a lone surrogate", lambda source: "\ud800"),
]


@pytest.mark.parametrize("case", FAILING, ids=[case.id for case in FAILING])
def test_a_failing_summarizer_costs_its_summary_and_leaves_a_finding(case: Failing) -> None:
    cards, findings = made([say("user", LONG), say("user", "short")], case.summarize)
    assert [card.generator_model for card in cards] == ["fast-path", "fast-path"]
    assert LONG.startswith(cards[0].summary[:-1])
    assert len(cards[0].summary) == 300
    assert [finding.kind for finding in findings] == ["card_not_summarized"]


def test_a_long_winded_summarizer_is_cut() -> None:
    card = one(say("user", LONG), lambda source: "so\x00 " + "very " * 200)
    assert (len(card.summary), card.summary[:8]) == (300, "so very ")


@settings(max_examples=examples(150))
@given(text=st.text(max_size=700), keys=st.lists(st.text(max_size=200), max_size=7))
def test_every_text_makes_a_card_that_holds_together(text: str, keys: list[str]) -> None:
    for item in (
        say("user", text, phase="p\x00", ts="2026-11-20"),
        result("c", text),
        result("c", json.dumps(dict.fromkeys(keys))),
    ):
        for card in made([item]).cards:
            assert ContextCard.model_validate(card.model_dump()) == card
            assert len(card.summary) <= 300


@settings(max_examples=examples(200))
@given(st.text(max_size=300))
def test_keywords_are_few_short_and_lower_case(text: str) -> None:
    found = keywords(text)
    assert len(found) <= 20
    assert len(set(found)) == len(found)
    assert all(0 < len(word) <= 64 and word == word.lower() for word in found)


def test_leading_sentences_are_whole_where_they_fit() -> None:
    def lead(text: str) -> str:
        message = Message.from_wire({"role": "user", "content": text})
        return leading_sentences(SourceMessage(ref="§1", message=message))

    assert lead("One. Two? " + "x" * 400) == "One. Two?"
    assert lead("第一句。" + "字" * 400) == "第一句。"
    assert lead("x" * 400) == "x" * 299 + "…"
    assert lead("v1.2.3 is out. " * 40).endswith("out.")
