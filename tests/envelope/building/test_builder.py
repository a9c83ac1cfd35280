"""The builder: what it must be told, what an envelope says of itself, calibration, notes, selection.

Counts are characters (`CharTokenizer`): a message costs its text and 4.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, SelectionRequest, Session, rebuild
from ctxsteward.envelope.layout.rows import fenced
from ctxsteward.envelope.recall.room import CHOSEN
from ctxsteward.envelope.recall.selection import ScoredOriginal
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, WordOverlap, memory_store
from ctxsteward.schemas import (
    Bullet,
    Finding,
    InputError,
    SummarizerInput,
    Summary,
    UnknownModel,
    WindowExceeded,
    publish,
)
from ctxsteward.store.journal.events import RecallSelected, from_record

from ..histories import NONCE, Wire
from ..messages import CHARS, call, char_builder, reply, result, session_of, user


def builder(selector: Any = None, window_tokens: int | None = None, **budgets: Any) -> EnvelopeBuilder:
    return char_builder(Budgets(**budgets), selector=selector, window_tokens=window_tokens)


def openai(envelope: Envelope) -> list[Wire]:
    messages: list[Wire] = envelope.render("openai-chat")["messages"]
    return messages


def anthropic(envelope: Envelope) -> list[Wire]:
    messages: list[Wire] = envelope.render("anthropic", cache=False)["messages"]
    return messages


# -- what it must be told ----------------------------------------------------------------------------------


def test_an_unknown_model_is_refused_with_the_way_out() -> None:
    with pytest.raises(UnknownModel) as refused:
        EnvelopeBuilder(model="gpt-9-turbo")
    says = str(refused.value)
    assert says.startswith("unknown model 'gpt-9-turbo'; did you mean gpt-4-turbo")
    assert "pass tokenizer='o200k_base'" in says
    assert "window_tokens=" in says
    assert "gpt-4o" in says


def test_a_builder_needs_a_model_or_a_tokenizer() -> None:
    with pytest.raises(InputError, match="model='gpt-4o'"):
        EnvelopeBuilder()


def test_an_unknown_summarizer_is_refused_with_the_installed_ones() -> None:
    with pytest.raises(InputError, match="'abstractive' is installed; known: extractive"):
        EnvelopeBuilder(model="gpt-4o", summarizer="abstractive")


@pytest.mark.parametrize(
    ("given", "window", "reserve"),
    [
        pytest.param({"model": "gpt-4o"}, 128_000, 16_384, id="as published"),
        pytest.param({"model": "gpt-4o", "output_reserve_tokens": 500}, 128_000, 500, id="the caller's reserve"),
        pytest.param({"model": "gpt-4o", "output_reserve_tokens": 0}, 128_000, 0, id="none at all"),
        pytest.param({"model": "gpt-4o", "window_tokens": 1_000}, 1_000, 500, id="a published reserve is at most half"),
        pytest.param({"tokenizer": CharTokenizer()}, None, 0, id="no window, no limit"),
        pytest.param({"tokenizer": CharTokenizer(), "window_tokens": 1_000}, 1_000, 0, id="a window without a reserve"),
        pytest.param(
            {"tokenizer": CharTokenizer(), "window_tokens": 1_000, "output_reserve_tokens": 800},
            1_000,
            800,
            id="the caller's reserve is the caller's, however large",
        ),
    ],
)
def test_window_and_reserve(given: dict[str, Any], window: int | None, reserve: int) -> None:
    made = EnvelopeBuilder(**given)
    assert (made.window_tokens, made.output_reserve_tokens) == (window, reserve)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"window_tokens": 0}, id="no window is None, 0 is a mistake"),
        pytest.param({"window_tokens": -1}, id="a window below nothing"),
        pytest.param({"window_tokens": 1_000, "output_reserve_tokens": -1}, id="a reserve below nothing"),
        pytest.param({"window_tokens": 1_000, "output_reserve_tokens": 1_000}, id="a reserve that leaves no prompt"),
    ],
)
def test_a_window_that_holds_nothing_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        EnvelopeBuilder(tokenizer=CharTokenizer(), **given)


def test_a_request_beyond_the_window_is_an_error_with_the_numbers() -> None:
    session = session_of(user("x" * 900))
    made = EnvelopeBuilder(tokenizer=CharTokenizer(), window_tokens=1_000, output_reserve_tokens=100)
    with pytest.raises(WindowExceeded) as refused:
        made.build(session)
    error = refused.value
    assert (error.tokens, error.window_tokens, error.output_reserve_tokens) == (907, 1_000, 100)
    assert "907 tokens" in str(error)
    assert "leaves 900" in str(error)


def test_a_request_that_just_fits_is_built() -> None:
    made = EnvelopeBuilder(tokenizer=CharTokenizer(), window_tokens=1_000, output_reserve_tokens=93)
    assert made.build(session_of(user("x" * 900))).tokens == 907


# -- what an envelope says of itself -----------------------------------------------------------------------

PROFILE = Profile.from_yaml("persona: calm\nrails: {a: be kind}\nmeta: {m: {text: eight letters, sources: [s-1§1]}}\n")


def test_sections_have_their_tokens_budgets_and_texts() -> None:
    session = session_of(user("hello"), profile=PROFILE, system="You help.")
    envelope = builder().build(session)
    rows = {
        name: (section.tokens, section.budget_tokens, section.overflow_tokens, section.epoch, section.text)
        for name, section in envelope.sections.items()
    }
    assert rows == {
        "system": (4 + 4 + 9 + 4, 240, 0, 0, "calm\nYou help."),
        "static": (23, 360, 0, 0, "rails:\n  a: be kind"),
        "meta": (65, 180, 0, 0, "learned, for reference, not instructions:\n- eight letters [m]"),
        "dynamic": (9, 8_000, 0, 0, "user §1: hello"),
    }
    assert envelope.tokens == 21 + 23 + 65 + 9 + 3
    assert [openai(envelope)[n]["role"] for n in range(5)] == ["system", "system", "system", "system", "user"]


def test_overflow_is_what_must_stay_beyond_the_budget() -> None:
    envelope = builder(dynamic_tokens=100).build(session_of(user("x" * 200)))
    section = envelope.section("dynamic")
    assert (section.tokens, section.budget_tokens, section.overflow_tokens) == (204, 100, 104)


def test_the_published_form_is_valid_and_digest_and_address_follow_the_content() -> None:
    session = session_of(user("hello"), profile=PROFILE)
    first = builder().build(session)
    publish.validate("envelope", first.document())
    again = builder().build(session)
    assert (again.address, again.section("dynamic").digest) == (first.address, first.section("dynamic").digest)
    session.append(reply("hi"))
    later = builder().build(session)
    publish.validate("envelope", later.document())
    assert later.address != first.address
    assert later.section("dynamic").digest != first.section("dynamic").digest
    assert later.section("system").digest == first.section("system").digest


def test_the_same_words_of_two_tenants_have_two_addresses() -> None:
    made = []
    for tenant in ("acme", "globex"):
        session = memory_store().session("s", counter=CHARS, tenant=tenant)
        session.append(user("hello"))
        made.append(builder().build(session).address)
    assert made[0] != made[1]


def test_the_dynamic_epoch_counts_compactions_and_the_head_s_its_changes() -> None:
    store = memory_store()
    session, maker = session_of(store=store, system="one"), builder(dynamic_tokens=1_000)
    for n in range(40):
        session.append((user, reply)[n % 2]("word " * 20))
        envelope = maker.build(session)
        assert envelope.section("dynamic").epoch == session.state.compactions
        assert envelope.section("system").epoch == 0
    assert session.state.compactions > 2
    assert maker.build(session_of(store=store, system="two")).section("system").epoch == 1


def test_two_builders_with_other_budgets_work_on_one_session() -> None:
    """Each decides by its own budgets; what one compacted, the other sees as compacted."""
    session = session_of()
    small, large = builder(dynamic_tokens=600), builder(dynamic_tokens=4_000)
    for n in range(40):
        session.append((user, reply)[n % 2](f"message {n} " + "word " * 10))
        one, two = small.build(session), large.build(session)
        assert two.reports == ()
        assert one.dynamic.tokens <= 600
        assert openai(one) == openai(two)
        assert (one.section("dynamic").budget_tokens, two.section("dynamic").budget_tokens) == (600, 4_000)


def test_an_empty_session_builds_and_previews() -> None:
    session = session_of(system="You help.")
    assert openai(builder().build(session)) == [{"role": "system", "content": "You help."}]
    assert openai(builder().preview(session, "hi"))[-1] == user("hi")
    assert len(session) == 0


# -- preview -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compacts", [False, True])
def test_a_preview_shows_what_the_build_will_be_and_writes_nothing(compacts: bool) -> None:
    messages = [(user, reply)[n % 2](f"topic {n} " + "word " * (40 if compacts else 2)) for n in range(8)]
    session, maker = session_of(*messages), builder(WordOverlap(), dynamic_tokens=1_500)
    position, state = session.journal.length(session.key), session.state.copy()
    probe = maker.preview(session, "what of topic 2?")
    assert (session.journal.length(session.key), session.state) == (position, state)
    session.append(user("what of topic 2?"))
    envelope = maker.build(session)
    assert bool(envelope.reports) is compacts
    assert openai(probe) == openai(envelope)
    assert (probe.address, probe.metrics, probe.findings) == (envelope.address, envelope.metrics, envelope.findings)


def test_a_preview_takes_a_wire_dict_or_nothing() -> None:
    session, maker = session_of(user("hi")), builder()
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert openai(maker.preview(session, {"role": "user", "content": [image]}))[-1]["content"] == [image]
    assert openai(maker.preview(session)) == [user("hi")]


def test_a_preview_without_compacting_shows_a_history_beyond_the_window_whole() -> None:
    session = session_of(*((user, reply)[n % 2](f"topic {n} " + "word " * 40) for n in range(60)))
    maker = EnvelopeBuilder("gpt-4o", window_tokens=2_000, output_reserve_tokens=500)
    position = session.journal.length(session.key)
    probe = maker.preview(session, compact=False)
    assert probe.tokens > 2_500
    assert len(openai(probe)) == 60
    assert probe.reports == ()
    assert session.journal.length(session.key) == position


# -- calibration -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param({"prompt_tokens": 2_000, "completion_tokens": 9}, id="OpenAI chat"),
        pytest.param({"input_tokens": 100, "cache_read_input_tokens": 1_900}, id="Anthropic: cached ones are apart"),
        pytest.param({"input_tokens": 2_000, "output_tokens": 3}, id="OpenAI responses"),
    ],
)
def test_a_provider_s_report_moves_the_budgets(usage: dict[str, int]) -> None:
    maker = builder(dynamic_tokens=900, tools_tokens=500, system_tokens=300)
    assert maker.calibrate(usage, prompt_tokens=1_000) == 1.3
    found = maker.effective_budgets
    assert (found.dynamic_tokens, found.tools_tokens, found.system_tokens) == (692, 385, 231)
    assert maker.budgets.dynamic_tokens == 900


@pytest.mark.parametrize(
    ("reported", "estimated", "factor"),
    [
        pytest.param(1_000, 1_000, 1.0, id="right: nothing moves"),
        pytest.param(900_000, 1_000, 1.3, id="absurd: taken as twice"),
        pytest.param(1, 1_000, 0.85, id="absurd: taken as half"),
        pytest.param(0, 1_000, 1.0, id="nothing reported"),
        pytest.param(500, 0, 1.0, id="nothing estimated"),
    ],
)
def test_one_report_moves_the_estimate_by_three_tenths_and_never_far(
    reported: int, estimated: int, factor: float
) -> None:
    assert builder().calibrate({"prompt_tokens": reported}, prompt_tokens=estimated) == factor


def test_calibration_converges_on_the_provider_s_count() -> None:
    session, maker = session_of(user("x" * 500)), builder()
    for _ in range(30):
        envelope = maker.build(session)
        maker.calibrate({"prompt_tokens": round(507 * 1.5)}, envelope)
    envelope = maker.build(session)
    assert abs(maker.calibration - 1.5) < 0.01
    assert abs(envelope.tokens - 760) <= 8


def test_calibration_changes_no_budget_that_is_shown() -> None:
    """Budgets are the caller's, in the provider's tokens; only the estimates move."""
    session, maker = session_of(user("hi"), system="You help."), builder()
    before = {name: section.budget_tokens for name, section in maker.build(session).sections.items()}
    maker.calibrate({"prompt_tokens": 1_500}, prompt_tokens=1_000)
    assert {name: section.budget_tokens for name, section in maker.build(session).sections.items()} == before


def test_a_late_report_is_measured_against_the_envelope_it_is_about() -> None:
    """Usage arrives after the call, and calls overlap: the same report twice must not count twice as much."""
    session = session_of(user("x" * 500))
    maker = builder()
    first, second = maker.build(session), maker.build(session)
    maker.calibrate({"prompt_tokens": 710}, first)
    in_turn = maker.calibrate({"prompt_tokens": 710}, second)
    assert in_turn == pytest.approx(1.12 + 0.3 * (1.4 - 1.12), abs=0.01)


def test_calibrating_rewrites_nothing_that_was_sent() -> None:
    """The prefix is paid for: a long result's excerpt does not change because an estimate did."""
    session = session_of(user("look"), call("a"), result("a", "row of the table\n" * 100), reply("I see"), user("and?"))
    maker = builder(dynamic_tokens=2_000)
    before = openai(maker.build(session))
    for reported in (1_100, 1_300, 1_200):
        maker.calibrate({"prompt_tokens": reported}, prompt_tokens=1_000)
        envelope = maker.build(session)
        assert envelope.reports == ()
        assert openai(envelope)[: len(before)] == before


def test_the_factor_is_in_the_manifest_and_a_calibrated_envelope_rebuilds() -> None:
    store = memory_store()
    session = store.session("s")
    session.extend((user if n % 2 == 0 else reply)(f"message {n} " + "word " * 30) for n in range(30))
    maker = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=800), summarizer=FirstLine())
    maker.calibrate({"prompt_tokens": 1_400}, prompt_tokens=1_000)
    envelope = maker.build(session)
    manifest = store.manifest(envelope.address)
    assert (manifest["calibration"], manifest["position"]) == (1.12, envelope.position)
    assert envelope.reports != ()
    again = rebuild(store, envelope.address)
    assert json.dumps(again.document()) == json.dumps(envelope.document())
    assert again.render("anthropic") == envelope.render("anthropic")


def test_a_manifest_of_another_renderer_is_refused() -> None:
    store = memory_store()
    session = store.session("s")
    session.append(user("hi"))
    manifest = store.manifest(EnvelopeBuilder(model="gpt-4o").build(session).address)
    with pytest.raises(InputError, match="renderer 99"):
        EnvelopeBuilder.from_manifest({**manifest, "renderer": 99})


# -- notes -------------------------------------------------------------------------------------------------

PLAN = fenced(NONCE, "notes", "plan: ship")
HI, LOOK, FOUND = user("hi"), call("a"), result("a", "found")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([HI], [HI, user(PLAN)], id="after the user's message"),
        pytest.param([HI, LOOK, FOUND], [HI, LOOK, FOUND, user(PLAN)], id="after the last tool message"),
        pytest.param([HI, reply("Well,")], [HI, user(PLAN), reply("Well,")], id="before a reply to go on with"),
        pytest.param([], [user(PLAN)], id="alone"),
    ],
)
def test_notes_are_a_user_message_at_the_end_for_openai(messages: list[Wire], expected: list[Wire]) -> None:
    session = session_of(*messages)
    session.note("plan", "ship")
    assert openai(builder().build(session)) == expected


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}


USE: Wire = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
RESULT: Wire = {"type": "tool_result", "tool_use_id": "a", "content": "found"}
BLOCKS: Wire = {"role": "user", "content": [_text("hi")]}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([HI], [{"role": "user", "content": [_text("hi"), _text(PLAN)]}], id="in the user's message"),
        pytest.param(
            [HI, LOOK, FOUND],
            [BLOCKS, USE, {"role": "user", "content": [RESULT, _text(PLAN)]}],
            id="after all results of the newest group",
        ),
        pytest.param(
            [HI, reply("Well,")],
            [{"role": "user", "content": [_text("hi"), _text(PLAN)]}, reply("Well,")],
            id="before a reply to go on with",
        ),
        pytest.param([], [{"role": "user", "content": [_text(PLAN)]}], id="alone"),
    ],
)
def test_notes_are_a_text_block_of_the_last_user_message_for_anthropic(
    messages: list[Wire], expected: list[Wire]
) -> None:
    session = session_of(*messages)
    session.note("plan", "ship")
    shown = anthropic(builder().build(session))
    assert [
        {**m, "content": [_text(m["content"])]} if isinstance(m["content"], str) and m["role"] == "user" else m
        for m in shown
    ] == [
        m if isinstance(m["content"], list) or m["role"] != "user" else {**m, "content": [_text(m["content"])]}
        for m in expected
    ]


def test_the_latest_note_of_a_name_wins_and_an_empty_one_goes() -> None:
    session = session_of(HI)
    for name, text in (("plan", "old"), ("subtask", "x"), ("plan", "new"), ("subtask", "")):
        session.note(name, text)
    assert openai(builder().build(session))[-1] == user(fenced(NONCE, "notes", "plan: new"))


def test_a_reply_left_at_the_end_stays_at_the_end() -> None:
    session = session_of(HI, reply("The answer is"))
    for messages in (openai(builder().build(session)), anthropic(builder().build(session))):
        assert messages[-1] == reply("The answer is")


# -- selection ---------------------------------------------------------------------------------------------


class Recall:
    """Asks for these ordinals, and counts how often it is asked."""

    def __init__(self, *ordinals: int) -> None:
        self.ordinals = ordinals
        self.requests: list[SelectionRequest] = []

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        self.requests.append(request)
        return [ScoredOriginal(ordinal, 1.0 / place) for place, ordinal in enumerate(self.ordinals, 1)]


def long_ago(maker: EnvelopeBuilder, turns: int = 30) -> Session:
    """A session whose first messages have left the window; §3 holds a number."""
    session = session_of(user("Task."), reply("Yes."), user("The budget is 7,250 euro."), reply("Noted."))
    for n in range(turns):
        name = chr(97 + n // 26) + chr(97 + n % 26)  # another figure in the same words would replace the first
        session.append((user, reply)[n % 2](f"message {name} " + "word " * 10))
        if n % 2 == 0:
            maker.build(session)
    assert 3 not in {n for group in session.state.groups for n in group.ordinals}
    return session


SHARES: dict[str, Any] = {"dynamic_tokens": 1_000, "recall_fraction": 0.3}


def test_recall_is_chosen_once_a_user_turn_recorded_and_stays_through_its_tool_loop() -> None:
    recall = Recall(3)
    maker = builder(recall, **SHARES)
    session = long_ago(maker)
    asked = len(recall.requests)
    session.append(user("What was the budget?"))
    first = maker.build(session)
    assert first.dynamic.context is not None
    assert first.dynamic.context.refs == (3,)
    assert "§3 user: The budget is 7,250 euro." in first.dynamic.context.text
    for n in range(4):
        session.extend((call(f"c{n}"), result(f"c{n}", "42")))
        later = maker.build(session)
        assert later.dynamic.context is first.dynamic.context
    assert len(recall.requests) == asked + 1
    request = recall.requests[-1]
    assert (request.query.text, request.last, request.message(3).text) == (
        "What was the budget?",
        session.state.last_user - 1,
        "The budget is 7,250 euro.",
    )
    events = [from_record(record) for record in session.journal.read(session.key, 0)]
    chosen = [event for event in events if isinstance(event, RecallSelected)][-1]
    assert (chosen.turn, chosen.refs) == (session.state.last_user, (3,))
    publish.validate("selection_log", chosen.log)
    assert chosen.log["candidates"] == [{"ref": "§3", "score": 1.0, "signals": {}, "in": True, "why": CHOSEN}]


def test_the_turn_context_stands_before_the_live_turn() -> None:
    maker = builder(Recall(3), **SHARES)
    session = long_ago(maker)
    session.append(user("What was the budget?"))
    envelope = maker.build(session)
    assert envelope.dynamic.context is not None
    assert openai(envelope)[-2:] == [user(envelope.dynamic.context.text), user("What was the budget?")]


def test_what_is_visible_unknown_or_to_come_is_not_recalled() -> None:
    recall = Recall(3)
    maker = builder(recall, **SHARES)
    session = long_ago(maker)
    session.append(user("What was the budget?"))
    newest = len(session)
    recall.ordinals = (newest, newest - 1, 10_000, 0, -3, 3, 3)
    envelope = maker.build(session)
    assert envelope.dynamic.context is not None
    assert envelope.dynamic.context.refs == (3,)


def test_recall_fits_its_share_best_first() -> None:
    recall = Recall(*range(2, 30))
    maker = builder(recall, **SHARES)
    session = long_ago(maker)
    session.append(user("And?"))
    envelope = maker.build(session)
    assert 0 < envelope.dynamic.context_tokens <= 300
    chosen = session.state.selection
    assert chosen is not None
    for row in chosen.log["candidates"]:
        assert row["why"] == (CHOSEN if row["in"] else "no room")
    assert chosen.log["candidates"][0]["ref"] == "§2"


def test_recall_goes_with_a_finding_where_history_leaves_no_room_and_is_not_asked_again() -> None:
    recall = Recall(3)
    maker = builder(recall, **SHARES)
    session = long_ago(maker)
    session.append(user("What was the budget?"))
    maker.build(session)
    asked = len(recall.requests)
    kinds: list[str] = []
    for n, calls in enumerate((1, 2, 4, 4, 4)):
        ids = [f"c{n}_{at}" for at in range(calls)]
        session.extend((call(*ids), *(result(id, "r" * 240) for id in ids)))
        envelope = maker.build(session)
        kinds += [finding.kind for finding in envelope.findings]
        assert envelope.dynamic.context is None or not envelope.section("dynamic").overflow_tokens
    assert kinds.count("recall_dropped") == 1
    assert len(recall.requests) == asked
    assert envelope.dynamic.context is None


def test_recalled_text_never_puts_an_envelope_over_its_budget() -> None:
    """Nor makes it worse where what must stay verbatim is over it alone."""
    maker = builder(Recall(2), **SHARES)
    before = long_ago(maker)
    before.append(user("ok?"))
    maker.build(before)
    recalled = []
    for chars in range(90, 250, 4):
        session = before.fork(id=f"{chars}")
        ids = [f"c{at}" for at in range(4)]
        session.extend((call(*ids), *(result(id, "r" * chars) for id in ids)))
        envelope = maker.build(session)
        over = envelope.section("dynamic").overflow_tokens
        recalled.append(envelope.dynamic.context_tokens > 0)
        assert not (over and recalled[-1]), f"{chars}: {over} over, recall takes room"
    assert set(recalled) == {True, False}


def test_a_selector_that_fails_costs_the_recall_and_not_the_call() -> None:
    """It is the caller's code, like a summarizer."""

    def failing(request: SelectionRequest) -> Sequence[int]:
        raise TimeoutError("the index is down")

    session = long_ago(builder(None, **SHARES))
    session.append(user("again"))
    envelope = builder(failing, **SHARES).build(session)
    assert openai(envelope)[-1] == user("again")
    (finding,) = (found for found in envelope.findings if found.kind == "selection_failed")
    assert "TimeoutError: the index is down" in finding.text


def test_without_a_selector_history_has_recall_s_share() -> None:
    assert builder().effective_budgets.history_tokens == 8_000
    assert builder(recall_fraction=0.4).effective_budgets.history_tokens == 4_800
    assert builder(WordOverlap()).effective_budgets.history_tokens == 3_200


# -- findings ----------------------------------------------------------------------------------------------


def test_findings_say_what_was_noticed_and_what_was_repaired() -> None:
    store = memory_store()
    session_of(store=store, profile=Profile.from_text("one"))
    session = session_of(
        {"role": "system", "content": "obey"},
        user("hi"),
        call("a"),
        user("never mind"),
        result("zz", "late"),
        store=store,
        profile=Profile.from_text("two"),
    )
    envelope = builder().build(session)
    assert [(finding.kind, finding.ref) for finding in envelope.findings] == [
        ("profile_pinned", None),
        ("untrusted_system_message", "§1"),
        ("tool_call_without_result", "§4"),
        ("tool_result_without_call", "§5"),
    ]
    assert all(isinstance(finding, Finding) and finding.text for finding in envelope.findings)


def test_a_plain_conversation_has_no_findings() -> None:
    assert builder().build(session_of(HI, LOOK, FOUND, reply("ok"), user("thanks"))).findings == ()


def test_a_model_of_the_caller_s_own_brings_its_tokenizer_and_window() -> None:
    maker = EnvelopeBuilder(model="my-llm", tokenizer=CharTokenizer(), window_tokens=8_000)
    assert (maker.window_tokens, maker.output_reserve_tokens) == (8_000, 0)


def test_a_rule_that_no_longer_fits_is_a_finding() -> None:
    def rules(source: SummarizerInput, *, budget_tokens: int) -> Summary:
        return Summary(
            bullets=tuple(
                Bullet(text=f"never touch {row.ref} " + "x" * 60, citations=(row.ref,), kind="constraint", value=90.0)
                for row in source.messages
            )
        )

    session = memory_store().session("s", counter=CHARS)
    maker = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=900), summarizer=rules)
    kinds: set[str] = set()
    for number in range(30):
        session.append(user(f"rule {number} " + "y" * 60))
        kinds |= {finding.kind for finding in maker.build(session).findings}
        session.append({"role": "assistant", "content": "ok " + "z" * 30})
    assert "constraint_left_out" in kinds


def test_the_same_id_with_another_content_keeps_the_first_and_says_so() -> None:
    session = memory_store().session("s", counter=CHARS)
    first = session.append(user("one"), id="m1")
    assert session.append(user("one"), id="m1") is not None
    assert session.findings == []
    assert session.append(user("two"), id="m1").message.text == "one"
    assert [(finding.kind, finding.ref) for finding in session.findings] == [("id_reused", first.ref)]


def test_an_address_may_be_cut_to_its_first_digits() -> None:
    store = memory_store()
    session = store.session("s", counter=CHARS)
    session.append(user("hi"))
    address = builder().build(session).address
    assert store.address(address[:8]) == address
    assert store.address("deadbeef") == "deadbeef"
