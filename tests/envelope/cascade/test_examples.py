"""The cascades that the designs describe, from their configuration to what providers are sent."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.envelope.cascade import anchors, cascade_of, intra_context, selection
from ctxsteward.envelope.testing import WordOverlap
from ctxsteward.evals.validity import anthropic_faults, openai_faults
from ctxsteward.schemas import Wire
from ctxsteward.schemas.cascade import Cascade

from .runs import (
    PIXELS,
    answers,
    calls,
    cascade,
    context,
    kinds,
    openai_image,
    past_of,
    rendered,
    says,
    texts,
    user,
    with_image,
)

PIPELINE = cascade(
    {"name": "generate_chart", "instructions": "Draw {{ input.data }}.", "tackle": ["create_chart"]},
    {"name": "validate_chart", "instructions": "Is it right?", "context": {"from": ["generate_chart"]}},
    {"name": "process_inventory", "instructions": "Count {{ input.inventory }}.", "context": {"from": []}},
    {"name": "generate_forecast", "instructions": "Look ahead.", "context": {"from": []}},
    {
        "name": "final_report",
        "instructions": "Report.",
        "context": {
            "from": [
                {"phase": "generate_chart", "include": ["images"]},
                {"phase": "validate_chart", "include": ["output"]},
                {"phase": "generate_forecast", "include": ["output"]},
            ]
        },
    },
)
INPUT = {"data": [3, 1], "inventory": "42 pots"}
RAN: list[tuple[str | None, Wire]] = [
    ("generate_chart", user("Draw [3, 1].")),
    ("generate_chart", calls("create_chart")),
    ("generate_chart", answers("drawn")),
    ("generate_chart", with_image("red0")),
    ("generate_chart", says("A chart of two bars.")),
    ("validate_chart", user("Is it right?")),
    ("validate_chart", says("Both bars are right.")),
    ("process_inventory", user("Count 42 pots.")),
    ("process_inventory", says("42.")),
    ("generate_forecast", user("Look ahead.")),
    ("generate_forecast", says("It will grow.")),
]
ORIGINAL_INPUT = '[Original Input]:\n{\n  "data": [\n    3,\n    1\n  ],\n  "inventory": "42 pots"\n}'
IMAGES = {"role": "user", "content": [{"type": "text", "text": "[Images from generate_chart]:"}, openai_image("red0")]}


def blocks(wire: Wire) -> Wire:
    """A text message as Anthropic's renderer writes it."""
    return {**wire, "content": [{"type": "text", "text": wire["content"]}]}


def as_anthropic(wire: Wire) -> Wire:
    if isinstance(wire["content"], str):
        return blocks(wire)
    source = {"type": "base64", "media_type": "image/png", "data": PIXELS["red0"]}
    return {**wire, "content": [wire["content"][0], {"type": "image", "source": source}]}


EXAMPLE_1: dict[str, list[Wire]] = {
    "validate_chart": [user(ORIGINAL_INPUT), IMAGES, user("[Output from generate_chart]:\nA chart of two bars.")],
    "process_inventory": [user(ORIGINAL_INPUT)],
    "generate_forecast": [user(ORIGINAL_INPUT)],
    "final_report": [
        user(ORIGINAL_INPUT),
        IMAGES,
        user("[Output from validate_chart]:\nBoth bars are right."),
        user("[Output from generate_forecast]:\nIt will grow."),
    ],
}


@pytest.mark.parametrize("phase", EXAMPLE_1)
def test_a_phase_of_the_chart_pipeline_sees_what_it_names(phase: str) -> None:
    shown = context(PIPELINE, phase, past_of(RAN), input=INPUT)

    assert shown.wires == EXAMPLE_1[phase]
    assert shown.mode == "selective"
    assert rendered(shown, "openai-chat") == EXAMPLE_1[phase]
    assert rendered(shown, "anthropic") == [as_anthropic(wire) for wire in EXAMPLE_1[phase]]


def test_a_clean_phase_does_not_pay_for_the_chart() -> None:
    shown = context(PIPELINE, "process_inventory", past_of(RAN), input=INPUT)

    assert (shown.log.context_size, shown.log.full_history_size) == (0, 7)
    assert shown.log.tokens_saved == sum(m.tokens for m in context(Cascade.model_validate(
        {"cascade_id": "s", "phases": [{"name": p.name} for p in PIPELINE.phases]}), "process_inventory",
        past_of(RAN)).messages)  # fmt: skip


RESEARCH = cascade(
    {"name": "initial_research", "instructions": "Study {{ input.topic }}.", "rules": {"max_turns": 5}},
    {
        "name": "fact_check",
        "context": {"from": [{"phase": "initial_research", "include": ["messages"]}]},
        "tackle": ["web_search"],
    },
    {
        "name": "synthesize",
        "context": {
            "from": [
                {"phase": "initial_research", "include": ["messages"]},
                {"phase": "fact_check", "include": ["messages"]},
            ]
        },
    },
)
RESEARCHED: list[tuple[str | None, Wire]] = [
    ("initial_research", user("Study tea.")),
    ("initial_research", calls("web_search", "a")),
    ("initial_research", answers("tea is a leaf", "a")),
    ("initial_research", says("Tea is a leaf.")),
    ("fact_check", user("Verify.")),
    ("fact_check", calls("web_search", "b")),
    ("fact_check", answers("confirmed", "b")),
    ("fact_check", says("It is.")),
]


def test_a_later_phase_replays_whole_conversations_in_their_own_roles() -> None:
    shown = context(RESEARCH, "synthesize", past_of(RESEARCHED), input={"topic": "tea"})
    replayed = [wire for _, wire in RESEARCHED]

    assert shown.wires == [
        user('[Original Input]:\n{\n  "topic": "tea"\n}'),
        user("[Conversation from initial_research]:"),
        *replayed[:4],
        user("[Conversation from fact_check]:"),
        *replayed[4:],
    ]
    assert rendered(shown, "openai-chat") == shown.wires
    assert openai_faults({"messages": rendered(shown, "openai-chat")}) == []
    assert anthropic_faults({"messages": rendered(shown, "anthropic")}) == []
    assert [message.origin for message in shown.messages if message.kind == "replay"] == [f"s§{n}" for n in range(1, 9)]


def test_the_first_of_two_readers_sees_one_conversation() -> None:
    shown = context(RESEARCH, "fact_check", past_of(RESEARCHED[:4]))
    assert shown.wires == [user("[Conversation from initial_research]:"), *(wire for _, wire in RESEARCHED[:4])]


REFINEMENT = cascade(
    {"name": "generate_v1"},
    {"name": "critique"},
    {"name": "generate_v2"},
    {"name": "compare", "inject_from": [{"phase": "generate_v1", "include": ["images"]}]},
)
REFINED: list[tuple[str | None, Wire]] = [
    ("generate_v1", with_image("blue", text="Draw.")),
    ("generate_v1", says("v1")),
    ("critique", user("Judge.")),
    ("critique", says("too blue")),
    ("generate_v2", user("Again.")),
    ("generate_v2", says("v2")),
]


def test_injections_come_before_the_snowball() -> None:
    shown = context(REFINEMENT, "compare", past_of(REFINED), input={"x": 1})

    image = [{"type": "text", "text": "[Images from generate_v1]:"}, openai_image("blue")]
    assert shown.wires == [{"role": "user", "content": image}, *(wire for _, wire in REFINED)]
    assert (shown.mode, shown.injected) == ("inject", 1)
    assert rendered(shown, "openai-chat") == shown.wires


def test_without_context_everything_earlier_flows_on() -> None:
    shown = context(REFINEMENT, "generate_v2", past_of(REFINED))
    assert shown.wires == [wire for _, wire in REFINED[:4]]
    assert (shown.mode, shown.log.strategy, shown.log.tokens_saved) == ("snowball", "snowball", 0)


def test_a_clean_slate_sees_the_input_and_nothing_else() -> None:
    clean = cascade(
        {"name": "before"},
        {
            "name": "fresh_perspective",
            "instructions": "Solve {{ input.problem }}.",
            "context": {"from": [], "include_input": True},
        },
    )
    shown = context(clean, "fresh_perspective", past_of([("before", says("noise"))]), input={"problem": "a leak"})

    assert shown.wires == [user('[Original Input]:\n{\n  "problem": "a leak"\n}')]
    assert shown.instructions() == "Solve a leak."


def test_a_phase_may_be_named_twice_with_other_filters() -> None:
    twice = cascade(
        {"name": "generate"},
        {
            "name": "use",
            "context": {
                "from": [
                    {"phase": "generate", "include": ["images"], "images_filter": "last"},
                    {"phase": "generate", "include": ["output"]},
                ],
                "include_input": False,
            },
        },
    )
    past = past_of([("generate", with_image("red0", "blue")), ("generate", says("done"))])
    shown = context(twice, "use", past, input={"x": 1})

    assert shown.wires == [
        {"role": "user", "content": [{"type": "text", "text": "[Images from generate]:"}, openai_image("blue")]},
        user("[Output from generate]:\ndone"),
    ]


def test_the_long_form_with_three_sources_and_an_alias() -> None:
    final = cascade(
        {"name": "generate_chart"},
        {"name": "validate_chart"},
        {"name": "research"},
        {
            "name": "final_analysis",
            "context": {
                "from": [
                    "generate_chart",
                    {"phase": "validate_chart", "include": ["output"]},
                    {"phase": "research", "include": ["messages"], "filter": "last_turn"},
                ],
                "include_input": True,
            },
        },
    )
    rows = [*RAN[:7], ("research", user("one")), ("research", says("1")), ("research", user("two")),
            ("research", says("2"))]  # fmt: skip
    shown = context(final, "final_analysis", past_of(rows), input={})

    assert texts(shown) == [
        "[Original Input]:\n{}",
        "[Images from generate_chart]:",
        "[Output from generate_chart]:\nA chart of two bars.",
        "[Output from validate_chart]:\nBoth bars are right.",
        "[Conversation from research]:",
        "two",
        "2",
    ]


def test_the_short_form_equals_the_long_form() -> None:
    short = cascade({"name": "a"}, {"name": "b"}, {"name": "c", "context": {"from": ["a", "b"]}})
    spelled = [{"phase": name, "include": ["images", "output"]} for name in ("a", "b")]
    long = cascade({"name": "a"}, {"name": "b"}, {"name": "c", "context": {"from": spelled}})
    past = past_of([("a", with_image("red0")), ("a", says("1")), ("b", says("2"))])

    assert context(short, "c", past).wires == context(long, "c", past).wires


# -- the auto-context design ---------------------------------------------------------------------------------

CASCADE_LEVEL: dict[str, Any] = {
    "intra_phase": {
        "enabled": True,
        "window": 5,
        "mask_observations_after": 3,
        "compress_loops": True,
        "loop_history_limit": 3,
    },
    "inter_phase": {
        "enabled": True,
        "strategy": "hybrid",
        "selector_model": "a/cheap-model",
        "anchors": {"window": 3, "from_phases": ["previous"], "include": ["output", "callouts", "input"]},
        "selection": {"max_tokens": 30_000, "recency_weight": 0.3, "keyword_weight": 0.4, "callout_weight": 0.3},
    },
}


def test_the_cascade_level_block_holds_for_every_phase() -> None:
    example = cascade({"name": "a"}, {"name": "b", "context": {"mode": "auto"}}, auto_context=CASCADE_LEVEL)
    intra = intra_context(example, example.phases[0])
    chosen = selection(example, example.phases[1])

    assert intra is not None
    assert (intra.window, intra.mask_observations_after, intra.loop_history_limit) == (5, 3, 3)
    assert (chosen.strategy, chosen.selector_model, chosen.max_messages) == ("hybrid", "a/cheap-model", 50)
    assert anchors(example, example.phases[1]).from_phases == ("previous",)


def test_the_phase_level_block_overrides_field_by_field() -> None:
    example = cascade(
        {"name": "long_research", "rules": {"max_turns": 30},
         "intra_context": {"window": 3, "mask_observations_after": 2}},
        auto_context={"intra_phase": {"loop_history_limit": 9, "window": 8}},
    )  # fmt: skip
    intra = intra_context(example, example.phases[0])

    assert intra is not None
    assert (intra.window, intra.mask_observations_after, intra.loop_history_limit) == (3, 2, 9)


def test_the_synthesis_block_anchors_two_phases_and_limits_the_selection() -> None:
    example = cascade(
        {"name": "research"},
        {"name": "analysis"},
        {"name": "chatter"},
        {
            "name": "synthesis",
            "instructions": "teapot",
            "context": {
                "mode": "auto",
                "anchors": {"window": 5, "from_phases": ["research", "analysis"], "include": ["output", "callouts"]},
                "selection": {"strategy": "semantic", "max_tokens": 40_000},
            },
        },
    )
    rows: list[tuple[str | None, Wire]] = [
        ("research", user("about the teapot")),
        ("research", says("found")),
        ("analysis", says("weighed")),
        ("chatter", user("hello")),
        ("chatter", says("world")),
    ]
    shown = context(example, "synthesis", past_of(rows), input={"x": 1}, selector=WordOverlap())

    assert shown.wires == [
        user("[Output from research]:\nfound"),
        user("[Output from analysis]:\nweighed"),
        user("[Conversation from research]:"),
        user("about the teapot"),
    ]
    assert (shown.log.anchor_refs, shown.log.selected_refs) == (("§2", "§3"), ("§1",))
    assert kinds(shown) == []


def test_the_loop_block_reads() -> None:
    example = cascade_of(
        {
            "cascade_id": "loop",
            "phases": [
                {
                    "name": "iterative_fix",
                    "instructions": "Mend it.",
                    "rules": {"loop_until": "tests_pass_validator", "max_attempts": 10},
                    "intra_context": {"compress_loops": True, "loop_history_limit": 2},
                }
            ],
        }
    )
    intra = intra_context(example, example.phases[0])

    assert intra is not None
    assert (intra.loop_history_limit, intra.window, intra.enabled) == (2, 5, True)
    assert example.phases[0].rules.loop_until == "tests_pass_validator"


def test_intra_context_is_off_until_some_level_has_a_block() -> None:
    bare = cascade({"name": "a"}, auto_context={"inter_phase": {}})
    opted = cascade({"name": "a", "intra_context": {"enabled": True}})

    assert intra_context(bare, bare.phases[0]) is None
    assert intra_context(opted, opted.phases[0]) is not None
