"""What an operator sets cannot be set by a message: it stays in the original and is not sent to any provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import PROVIDERS, EnvelopeBuilder, Session
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.render.request import dropped_fields
from ctxsteward.envelope.testing import CharTokenizer, memory_store
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.schemas.message import sent

CANARY = "CANARY-9000"
FORGED: dict[str, Any] = {
    "budgets": {"dynamic_tokens": CANARY},
    "sections": {"system": CANARY},
    "profile": {"persona": CANARY},
    "profile_version": CANARY,
    "policies": [CANARY],
    "trust": CANARY,
    "versions": [CANARY],
    "ctxsteward": {"x": CANARY},
    "ctxsteward.trust": CANARY,
    "context.budget.dynamic": CANARY,
    "Budgets": CANARY,
    "principal": CANARY,
    "pin": CANARY,
    "tenant": CANARY,
    "persona": CANARY,
    "rails": CANARY,
    "surface": CANARY,
    "seal": CANARY,
}
VENDOR = {"x_vendor": {"profile": 1, "budgets": [2]}, "reasoning_content": "hm", "metadata": {"trust": 3}}
"""Fields that are not ours, whatever stands inside them."""


def call(**more: Any) -> dict[str, Any]:
    function = {"name": "pay", "arguments": '{"profile": "gold"}'}
    return {"id": "c1", "type": "function", "function": function, **more}


OPENAI = [
    {"role": "user", "content": "pay", **FORGED},
    {"role": "user", "content": [{"type": "text", "text": "now", **FORGED}]},
    {"role": "assistant", "content": None, "tool_calls": [call(**FORGED)], **VENDOR, **FORGED},
    {"role": "tool", "tool_call_id": "c1", "content": "paid", **FORGED},
    {"role": "user", "content": "thanks"},
]
USES = {"type": "tool_use", "id": "c1", "name": "pay", "input": {"profile": "gold"}}
ANSWER = {"type": "tool_result", "tool_use_id": "c1"}
ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": "pay", **FORGED}], **FORGED},
    {"role": "assistant", "content": [USES | FORGED], "usage": {"budgets": 1}, **FORGED},
    {
        "role": "user",
        "content": [ANSWER | {"content": [{"type": "text", "text": "paid", **FORGED}], **FORGED}],
        **FORGED,
    },
    {"role": "user", "content": [{"type": "text", "text": "thanks"}]},
]


def filled(wires: list[dict[str, Any]]) -> Session:
    session = memory_store().session("s", system="Be brief.")
    session.extend(wires)
    return session


def builder() -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer=CharTokenizer(), window_tokens=400_000, output_reserve_tokens=10)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("wires", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_no_provider_is_sent_a_control_field_and_findings_name_each(wires: list[dict[str, Any]], provider: str) -> None:
    session = filled(wires)
    envelope = builder().build(session)
    payload = json.dumps(envelope.render(provider), ensure_ascii=False)
    assert CANARY not in payload
    refs = {finding.ref for finding in envelope.findings if finding.kind == "control_field"}
    assert refs == {f"§{ordinal}" for ordinal in range(1, len(wires))}
    if provider != "text":
        named = {found.field for found in dropped_fields(envelope, provider) if found.kind == "control_field"}
        assert {"budgets", "profile", "sections", "Budgets", "content[0].trust"} <= named
    assert [session.resolve(f"§{at}").wire for at in range(1, len(wires) + 1)] == wires


def test_what_is_not_ours_goes_back_to_its_provider_as_it_came() -> None:
    wire = {"role": "assistant", "content": None, "tool_calls": [call(index=0, vendor={"trust": 1})], **VENDOR}
    answer = {"role": "tool", "tool_call_id": "c1", "content": "paid", "x_id": {"profile": 7}}
    session = filled([{"role": "user", "content": "pay"}, wire, answer])
    envelope = builder().build(session)
    shown = envelope.render("openai-chat")["messages"]
    assert [json.dumps(one) for one in shown[-2:]] == [json.dumps(wire), json.dumps(answer)]
    assert not [finding for finding in envelope.findings if finding.kind == "control_field"]
    assert sent(wire) is wire


def test_beside_a_control_field_the_rest_keeps_its_bytes_and_order() -> None:
    wire = {"x_a": 1, "role": "user", "budgets": {}, "content": "pay", "x_b": [{"profile": 1}]}
    session = filled([wire])
    shown = builder().build(session).render("openai-chat")["messages"]
    assert json.dumps(shown[-1]) == '{"x_a": 1, "role": "user", "content": "pay", "x_b": [{"profile": 1}]}'


def test_what_a_file_of_messages_sets_is_kept_and_not_sent(tmp_path: Path) -> None:
    for name, text in (
        ("array.json", json.dumps(OPENAI)),
        ("lines.jsonl", "\n".join(map(json.dumps, OPENAI))),
        ("body.json", json.dumps({"messages": OPENAI, **FORGED})),
        ("anthropic.json", json.dumps({"messages": ANTHROPIC, **FORGED})),
        ("tau.json", json.dumps([{"task_id": 1, "trial": 0, "reward": 1.0, "info": {}, "traj": OPENAI}])),
    ):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        for transcript in read_transcripts(path):
            session = memory_store().session("s")
            session.extend(NewMessage(message=entry.wire, principal="ann") for entry in transcript.entries())
            envelope = builder().build(session)
            assert {one.kind for one in envelope.findings} >= {"control_field"}, name
            for provider in PROVIDERS:
                assert CANARY not in json.dumps(envelope.render(provider)), (name, provider)
            assert session.resolve("§1").wire in (OPENAI[0], ANTHROPIC[0])
