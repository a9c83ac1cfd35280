"""What a phase is shown, case by case: `shown.yaml` holds configurations, what ran before, and what comes of both."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.envelope.cascade.phase import PhaseContext
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas.cascade import Cascade
from ctxsteward.schemas.message import Wire

from ...tables import table
from .runs import PIXELS, cascade, context, kinds, message, past_of, rendered

CASES = table(__file__, "shown.yaml")


def configured(case: dict[str, Any]) -> Cascade:
    if "cascade" in case:
        return cascade(*case["cascade"])
    reader = {"name": "c", "context": {"from": case["sources"], "include_input": False}}
    return cascade({"name": "a"}, {"name": "b"}, reader)


def shown(case: dict[str, Any]) -> PhaseContext:
    example = configured(case)
    rows = [(phase, message(text)) for part in case["ran"] for phase, texts in part.items() for text in texts]
    attempts = {
        (phase, number): [message(text) for text in texts]
        for phase, tries in case.get("attempts", {}).items()
        for number, texts in enumerate(tries, 1)
    }
    past = past_of(rows, case.get("states"), order=example.names, attempts=attempts, chosen=case.get("chosen"))
    return context(example, case.get("phase", "c"), past, **case.get("given", {}))


def as_anthropic(wire: Wire) -> Wire:
    """A user's message as Anthropic's renderer writes it."""
    if isinstance(wire["content"], str):
        return {**wire, "content": [{"type": "text", "text": wire["content"]}]}
    source = {"type": "base64", "media_type": "image/png", "data": PIXELS["red0"]}
    return {**wire, "content": [wire["content"][0], {"type": "image", "source": source}]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_phase_is_shown_what_its_configuration_says(case: dict[str, Any]) -> None:
    found = shown(case)

    assert found.wires == [message(text) for text in case["shown"]]
    assert (kinds(found), found.mode) == (case.get("kinds", []), case.get("mode", found.mode))
    assert found.injected == case.get("injected", found.injected)
    assert {name: getattr(found.log, name) for name in case.get("log", {})} == case.get("log", {})
    if "replayed" in case:
        assert [m.origin for m in found.messages if m.kind == "replay"] == case["replayed"]
    if "origins" in case:
        assert [m.origin for m in found.messages] == case["origins"]
    if "field" in case:
        assert found.findings[0].field == case["field"]
    assert rendered(found, "openai-chat") == found.wires
    assert openai_faults({"messages": rendered(found, "openai-chat")}) == []
    if found.wires and found.wires[0]["role"] == "user":
        assert anthropic_faults({"messages": rendered(found, "anthropic")}) == []
    if "instructions" in case:
        assert found.instructions == case["instructions"]


@pytest.mark.parametrize("case", CASES[:4], ids=lambda case: case["id"])
def test_the_chart_pipeline_is_sent_to_anthropic_in_its_own_form(case: dict[str, Any]) -> None:
    found = shown(case)
    assert rendered(found, "anthropic") == [as_anthropic(wire) for wire in found.wires]


def test_a_clean_phase_saves_what_a_snowball_would_cost() -> None:
    case = CASES[1]
    phases = [{"name": phase["name"]} for phase in case["cascade"]]
    snowball = shown({**case, "cascade": phases, "given": {}})
    assert shown(case).log.tokens_saved == sum(m.tokens for m in snowball.messages)
