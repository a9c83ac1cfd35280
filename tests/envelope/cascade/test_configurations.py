"""Blocks of configuration that `shown.yaml` leaves over: each from its text, through a run in a store, to the wire.

Here a phase is opened as an application opens it, and what its session sends is compared, the operator's system text
and the phase's own instructions included.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Store
from ctxsteward.envelope.cascade import open_phase, parse_cascade, record_state
from ctxsteward.envelope.cascade.auto_selection import Strategies
from ctxsteward.envelope.cascade.config import intra_context
from ctxsteward.envelope.cascade.intra_phase import RefusedAttempt, intra_policy, retry_messages
from ctxsteward.envelope.cascade.run import close_phase
from ctxsteward.envelope.cascade.runner import sub_input, sub_state
from ctxsteward.envelope.testing import CharTokenizer, HashEmbedder, memory_store
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.errors import InvalidCascade
from ctxsteward.schemas.message import Wire

from ...tables import table
from .runs import CHARS, PIXELS, ROOMY, answers, calls, message, openai_image, says, user, with_image

SYSTEM = {"role": "system", "content": "You assist."}
INPUT = {"data": "pots"}
ASKED = user('[Original Input]:\n{\n  "data": "pots"\n}')
LEFT: dict[str, list[Wire]] = {
    "generate_chart": [with_image("red0"), says("a chart")],
    "validate_chart": [says("it is right")],
    "research": [user("one"), calls("look"), answers("seen"), says("two"), user("three"), says("four")],
}
"""What each phase says when it runs."""


def phases(*configured: Mapping[str, Any], **more: Any) -> Cascade:
    """A cascade from JSON text, as from a file."""
    return parse_cascade(json.dumps({"cascade_id": "c", "phases": configured, **more}))


def request(store: Store, cascade: Cascade, phase: str, provider: Any = "openai-chat", **more: Any) -> Wire:
    """What a provider is sent when a phase opens."""
    opened = open_phase(store, cascade, phase, run="r", input=INPUT, system="You assist.", counter=CHARS, **more)
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=ROOMY)
    return builder.build(opened.session).render(provider, cache=False)


def ran(cascade: Cascade, *names: str, left: Mapping[str, Sequence[Wire]] = LEFT, store: Store | None = None) -> Store:
    store = store or memory_store()
    for name in names:
        opened = open_phase(store, cascade, name, run="r", input=INPUT, system="You assist.", counter=CHARS)
        for wire in left[name]:
            opened.session.append(wire, phase=name)
    return store


def sent(cascade: Cascade, phase: str, **more: Any) -> list[Wire]:
    """The messages after all earlier phases ran; those of the operator are checked and left out."""
    store = ran(cascade, *cascade.names[: cascade.names.index(phase)])
    found = request(store, cascade, phase, **more)
    assert openai_faults(found) == []
    assert anthropic_faults(request(store, cascade, phase, "anthropic")) == []
    messages: list[Wire] = found["messages"]
    assert messages[0] == SYSTEM
    return messages[1:]


def label(text: str, *images: str) -> Wire:
    return {"role": "user", "content": [{"type": "text", "text": text}, *map(openai_image, images)]}


CHART = label("[Images from generate_chart]:", "red0")
THREE = [
    {"name": "generate_chart", "instructions": "Draw."},
    {"name": "validate_chart", "instructions": "Check."},
    {"name": "research", "instructions": "Study."},
]


def reading(**last: Any) -> Cascade:
    return phases(*THREE, {"name": "last", "instructions": "Go on.", **last})


# -- the three ways in -----------------------------------------------------------------------------------------

SNOWBALL = [
    user("Draw."),
    *LEFT["generate_chart"],
    user("Check."),
    *LEFT["validate_chart"],
    user("Study."),
    *LEFT["research"],
]
SENT = table(__file__, "sent.yaml")


@pytest.mark.parametrize("case", SENT["ways"], ids=lambda case: case["id"])
def test_a_way_in_is_sent_in_its_order(case: dict[str, Any]) -> None:
    cascade = phases(*case.get("phases", THREE), {"name": "last", "instructions": "Go on.", **case["last"]})
    texts = [text for part in case["sent"] for text in (part if isinstance(part, list) else [part])]
    assert sent(cascade, "last") == [*map(message, texts), user("Go on.")]


# -- every field of a source -----------------------------------------------------------------------------------

SOURCES = table(__file__, "sources.yaml")


@pytest.mark.parametrize("case", SOURCES, ids=lambda case: case["id"])
@pytest.mark.parametrize("way", ["context", "inject_from"])
def test_each_field_of_a_source_reaches_the_wire_both_ways(case: dict[str, Any], way: str) -> None:
    source, expected = case["source"], [message(text) for text in case["shown"]]
    last = {"inject_from": [source]} if way == "inject_from" else {"context": {"from": [source]}}
    cascade = reading(**last)
    store = ran(cascade, *cascade.names[:3])
    record_state(store, "r", "research", {"n": 1})
    messages = request(store, cascade, "last")["messages"][1:]
    if way == "inject_from":  # a call that stands in the history already goes by another id the second time
        messages = json.loads(json.dumps(messages).replace("call_16_1", "call_1"))
    before = SNOWBALL if way == "inject_from" else [ASKED]

    assert messages == [*before, *expected, user("Go on.")]


def test_a_source_that_the_caller_vouches_for_speaks_as_system() -> None:
    cascade = reading(context={"from": [{"phase": "validate_chart", "as_role": "system"}]})
    store = ran(cascade, *cascade.names[:3])
    assert request(store, cascade, "last", trusted={"validate_chart"})["messages"] == [
        SYSTEM,
        {"role": "system", "content": "[Output from validate_chart]:\nit is right"},
        ASKED,
        user("Go on."),
    ]


@pytest.mark.parametrize("provider", SENT["providers"])
def test_what_is_injected_is_sent_in_each_provider_s_own_form(provider: str) -> None:
    expected = json.loads(json.dumps(SENT["providers"][provider]).replace("RED", PIXELS["red0"]))
    cascade = reading(context={"from": ["generate_chart"], "include_input": False})
    store = ran(cascade, *cascade.names[:3])
    found = request(store, cascade, "last", provider)
    assert {key: found[key][: len(rows)] for key, rows in expected.items()} == expected


# -- beside the sources ----------------------------------------------------------------------------------------


def test_what_is_extracted_from_an_output_is_state_of_the_next_phase() -> None:
    counting = {
        "name": "count",
        "instructions": "Count.",
        "output_extraction": {"pattern": "total: (\\d+)", "store_as": "total", "required": True},
    }
    cascade = phases(
        counting,
        {
            "name": "last",
            "instructions": "There are {{ state.total }} {{ input.data }}.",
            "context": {
                "include_input": False,
                "from": [{"phase": "count", "include": ["state"], "if": "state.total"}],
            },
        },
    )
    store = ran(cascade, "count", left={"count": [says("total: 42")]})
    close_phase(store, cascade, "count", run="r")

    assert request(store, cascade, "last")["messages"] == [
        SYSTEM,
        user('[State from count]:\n{\n  "total": "42"\n}'),
        user("There are 42 pots."),
    ]


def test_both_ways_in_at_once_are_refused() -> None:
    with pytest.raises(InvalidCascade, match="keep one"):
        reading(context={"from": []}, inject_from=["research"])


@pytest.mark.parametrize("tackle", [["create_chart"], "manifest"])
def test_tools_and_rules_of_a_phase_are_the_application_s_and_change_nothing_that_is_sent(tackle: object) -> None:
    plain, tooled = reading(context={}), reading(context={}, tackle=tackle, rules={"max_turns": 5, "max_attempts": 2})
    assert sent(plain, "last") == sent(tooled, "last")


def test_a_source_that_did_not_run_is_left_out_of_what_is_sent() -> None:
    cascade = reading(context={"from": ["generate_chart", "validate_chart"]})
    store = ran(cascade, "validate_chart")
    assert request(store, cascade, "last")["messages"] == [
        SYSTEM,
        ASKED,
        user("[Output from validate_chart]:\nit is right"),
        user("Go on."),
    ]


def test_every_attempt_is_sent_the_same_sources_and_its_images_carry_its_number() -> None:
    cascade = phases(
        THREE[0],
        {"name": "try", "instructions": "Try.", "soundings": {"factor": 2}, "context": {"from": ["generate_chart"]}},
        {"name": "last", "instructions": "Go on.", "context": {"from": [{"phase": "try", "include": ["images"]}]}},
    )
    store = ran(cascade, "generate_chart")
    tries = [request(store, cascade, "try", attempt=n)["messages"] for n in (1, 2)]
    for number, name in ((1, "blue"), (2, "gold")):
        opened = open_phase(store, cascade, "try", run="r", input=INPUT, attempt=number, counter=CHARS)
        opened.session.append(with_image(name), phase="try")

    assert tries[0] == tries[1] == [SYSTEM, ASKED, CHART, user("[Output from generate_chart]:\na chart"), user("Try.")]
    texts = [block.get("text", "image") for block in request(store, cascade, "last")["messages"][2]["content"]]
    assert texts == ["[Images from try]:", "[Attempt 1, image 1]:", "image", "[Attempt 2, image 1]:", "image"]


def test_a_sub_cascade_is_sent_what_flows_in_and_sends_back_what_flows_out() -> None:
    inner = {
        "cascade_id": "inner",
        "phases": [
            {
                "name": "dig",
                "context": {},
                "instructions": "Dig for {{ input.what }}, {{ state.depth }}{{ state.secret }}.",
            }
        ],
    }
    sub = {"ref": "inner", "input_map": {"what": "{{ input.data }}"}, "context_in": ["depth"], "context_out": ["found"]}
    outer = phases(
        {"name": "plan", "sub_cascades": [sub]},
        {"name": "last", "instructions": "{{ state.found }} {{ state.scratch }}.", "context": {"include_input": False}},
        cascades=[inner],
    )
    store, state = memory_store(), {"depth": 3, "secret": "!"}
    called = outer.phases[0].sub_cascades[0]
    given = sub_input(called, input=INPUT, state=state)
    dug = open_phase(
        store,
        outer.cascades[0],
        "dig",
        run="r.inner",
        input=given,
        counter=CHARS,
        state=sub_state(called.context_in, state),
    )

    messages = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=ROOMY).build(dug.session).render("openai-chat")
    assert messages["messages"] == [user('[Original Input]:\n{\n  "what": "pots"\n}'), user("Dig for pots, 3.")]
    record_state(store, "r", "plan", sub_state(called.context_out, {"found": "a shard", "scratch": "mud"}))
    assert request(store, outer, "last")["messages"] == [SYSTEM, user("a shard .")]


# -- automatic context -----------------------------------------------------------------------------------------

AUTO = {
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


def answering(reply: str, prompts: list[str]) -> Any:
    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return reply

    return ask


def auto(store: Store, cascade: Cascade, phase: str, **more: Any) -> list[Wire]:
    messages: list[Wire] = request(store, cascade, phase, **more)["messages"][1:]
    return messages


def test_the_cascade_s_block_selects_by_hybrid_with_its_model() -> None:
    cascade = phases(*THREE, {"name": "last", "instructions": "Go on.", "context": {"mode": "auto"}}, auto_context=AUTO)
    store, prompts = ran(cascade, *cascade.names[:3]), list[str]()
    ask = answering('{"selected": ["§5"], "reasoning": "it says so"}', prompts)
    strategies = Strategies(embedder=HashEmbedder(64), models={"a/cheap-model": ask, "dear": pytest.fail})

    assert auto(store, cascade, "last", strategies=strategies) == [
        ASKED,
        user("[Output from research]:\nfour"),
        user("[Conversation from validate_chart]:"),
        says("it is right"),
        user("Go on."),
    ]
    assert len(prompts) == 1


def test_a_block_of_the_cascade_s_is_overridden_by_the_phase_field_by_field() -> None:
    own = {
        "mode": "auto",
        "anchors": {"include": []},
        "selection": {"strategy": "heuristic", "max_messages": 1, "recency_weight": 1.0, "keyword_weight": 0.0},
    }
    cascade = phases(*THREE, {"name": "last", "instructions": "Go on.", "context": own}, auto_context=AUTO)
    store = ran(cascade, *cascade.names[:3])
    assert auto(store, cascade, "last") == [user("[Conversation from research]:"), says("four"), user("Go on.")]


def test_the_synthesis_block_shows_the_outputs_it_names_and_what_is_similar() -> None:
    cascade = phases(
        {"name": "research", "instructions": "Study the old kiln again."},
        {"name": "analysis", "instructions": "Weigh it."},
        {"name": "chatter", "instructions": "Talk of lunch."},
        {
            "name": "synthesis",
            "instructions": "Study the old kiln again.",
            "context": {
                "mode": "auto",
                "anchors": {"window": 5, "from_phases": ["research", "analysis"], "include": ["output", "callouts"]},
                "selection": {"strategy": "semantic", "max_tokens": 40_000},
            },
        },
    )
    said = {
        "research": [says("Again: study the old kiln."), says("found")],
        "analysis": [says("weighed")],
        "chatter": [says("soup")],
    }
    store = ran(cascade, "research", "analysis", "chatter", left=said)

    assert auto(store, cascade, "synthesis", strategies=Strategies(embedder=HashEmbedder(512))) == [
        user("[Output from research]:\nfound"),
        user("[Output from analysis]:\nweighed"),
        user("[Conversation from research]:"),
        user("Study the old kiln again."),
        says("Again: study the old kiln."),
        user("Study the old kiln again."),
    ]


def test_a_long_phase_with_a_block_of_its_own_masks_what_is_older_than_it_says() -> None:
    cascade = phases(
        {
            "name": "long_research",
            "instructions": "Study.",
            "rules": {"max_turns": 30},
            "intra_context": {"window": 3, "mask_observations_after": 2},
        },
        auto_context=AUTO,
    )
    settings = intra_context(cascade, cascade.phases[0])
    assert settings is not None
    assert (settings.window, settings.mask_observations_after, settings.loop_history_limit) == (3, 2, 3)
    session = open_phase(memory_store(), cascade, "long_research", run="r", counter=CHARS).session
    builder = EnvelopeBuilder(
        tokenizer=CharTokenizer(),
        budgets=ROOMY.model_copy(update={"dynamic_tokens": 5_000, "recall_fraction": 0.0}),
        policy=intra_policy(settings),
        selector=None,
    )
    for step in range(1, 21):
        session.append(calls("look", f"c{step}"), phase="long_research")
        session.append(answers(f"seen {step} " + "much " * 40, f"c{step}"), phase="long_research")
        messages = builder.build(session).render("openai-chat")["messages"]
    results = [m["content"] for m in messages if m["role"] == "tool"]

    assert openai_faults({"messages": messages}) == []
    assert any(content.startswith("[text result, ") for content in results)
    assert [content.split()[1] for content in results[-3:]] == ["18", "19", "20"]


def test_a_loop_s_block_bounds_what_the_next_attempt_is_sent() -> None:
    cascade = phases(
        {
            "name": "iterative_fix",
            "instructions": "Mend the {{ input.data }}.",
            "rules": {"loop_until": "tests_pass_validator", "max_attempts": 10},
            "intra_context": {"compress_loops": True, "loop_history_limit": 2},
        }
    )
    settings = intra_context(cascade, cascade.phases[0])
    assert settings is not None
    assert (settings.loop_history_limit, settings.window, settings.enabled) == (2, 5, True)
    assert cascade.phases[0].rules.loop_until == "tests_pass_validator"
    store = memory_store()
    task = open_phase(store, cascade, "iterative_fix", run="r", input=INPUT, counter=CHARS).context.instructions
    again = store.session("r.iterative_fix.retry-4", system="You assist.", counter=CHARS)
    again.extend(retry_messages(settings, task, [RefusedAttempt(f"patch {n}", f"{n} fail") for n in (1, 2, 3)]))

    assert EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=ROOMY).build(again).render("openai-chat")["messages"] == [
        SYSTEM,
        user("[Original Task]\nMend the pots."),
        says("[Attempt #2]\npatch 2"),
        user("[Validation Failed]\n2 fail"),
        says("[Attempt #3]\npatch 3"),
        user("[Validation Failed]\n3 fail"),
        user("Attempt #4: mend what the validation found."),
    ]


# -- switches --------------------------------------------------------------------------------------------------

SWITCHES: dict[str, dict[str, Any]] = {
    "inter_phase": {"inter_phase": {"strategy": "llm", "enabled": False}},
    "intra_phase": {"intra_phase": {"enabled": False}},
    "cards": {"cards": False},
    "llm_selection": {"llm_selection": False},
}


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_part_can_be_switched_off(switch: str) -> None:
    block = {"inter_phase": {"strategy": "llm"}, **SWITCHES[switch]}
    cascade = phases(
        *THREE, {"name": "last", "instructions": "Go on.", "context": {"mode": "auto"}}, auto_context=block
    )
    store, prompts = ran(cascade, *cascade.names[:3]), list[str]()
    strategies = Strategies(
        models={"m": answering('{"selected": ["§5"], "reasoning": ""}', prompts)}, cards=Forbidden()
    )
    opened = open_phase(store, cascade, "last", run="r", input=INPUT, counter=CHARS, strategies=strategies)
    kinds = [finding.kind for finding in opened.context.findings]

    match switch:
        case "inter_phase":
            assert (opened.context.wires, kinds, prompts) == ([ASKED], ["auto_context_disabled"], [])
        case "intra_phase":
            assert intra_policy(intra_context(cascade, cascade.phases[0])) == intra_policy(None)
        case "cards":
            assert (opened.context.log.strategy, kinds) == ("llm", [])
        case _:
            assert (opened.context.log.strategy, kinds, prompts) == ("heuristic", ["selection_fell_back"], [])
            assert "llm_selection is switched off" in opened.context.findings[0].text


class Forbidden:
    """An index that nobody may read."""

    def of_session(self, *key: Any, **which: Any) -> Any:
        raise AssertionError("the index was read")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def test_without_any_block_nothing_of_it_is_on() -> None:
    cascade = reading()
    assert sent(cascade, "last") == [*SNOWBALL, user("Go on.")]
    for bare in (cascade, phases(THREE[0], auto_context={"inter_phase": {}})):
        assert intra_context(bare, bare.phases[0]) is None
    switched_on = phases({**THREE[0], "intra_context": {"enabled": True}})
    assert intra_context(switched_on, switched_on.phases[0]) is not None
