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
from ctxsteward.envelope.cascade.intra_phase import intra_policy
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.summary import SourceMessage

from ...tables import table
from .runs import CHARS, PIXELS, ROOMY, answers, calls, message, says, user, with_image

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


@pytest.mark.parametrize("provider", SENT["providers"])
def test_what_is_injected_is_sent_in_each_provider_s_own_form(provider: str) -> None:
    expected = json.loads(json.dumps(SENT["providers"][provider]).replace("RED", PIXELS["red0"]))
    cascade = reading(context={"from": ["generate_chart"], "include_input": False})
    store = ran(cascade, *cascade.names[:3])
    found = request(store, cascade, "last", provider)
    assert {key: found[key][: len(rows)] for key, rows in expected.items()} == expected


# -- beside the sources ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tackle", [["create_chart"], "manifest"])
def test_tools_and_rules_of_a_phase_are_the_application_s_and_change_nothing_that_is_sent(tackle: object) -> None:
    plain, tooled = reading(context={}), reading(context={}, tackle=tackle, rules={"max_turns": 5, "max_attempts": 2})
    assert sent(plain, "last") == sent(tooled, "last")


def answering(reply: str, prompts: list[str]) -> Any:
    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return reply

    return ask


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
    strategies = Strategies(models={"m": answering('{"selected": ["§5"], "reasoning": ""}', prompts)}, cards=forbidden)
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


def forbidden(source: SourceMessage) -> str:
    raise SystemExit("cards were made")


def test_without_any_block_nothing_of_it_is_on() -> None:
    cascade = reading()
    assert sent(cascade, "last") == [*SNOWBALL, user("Go on.")]
    for bare in (cascade, phases(THREE[0], auto_context={"inter_phase": {}})):
        assert intra_context(bare, bare.phases[0]) is None
    switched_on = phases({**THREE[0], "intra_context": {"enabled": True}})
    assert intra_context(switched_on, switched_on.phases[0]) is not None
