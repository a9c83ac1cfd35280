"""Any history, valid or broken, gives a provider-valid, bounded, deterministic envelope at every step.

Two judges: `tessera.inspect`, which is not ours, and the rules of `ctxsteward.evals.prompt_cost` with stricter ones
below, read from the providers' published references (OpenAI chat completions, Anthropic messages).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
import tessera  # type: ignore[import-untyped]
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, Envelope, Session
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.prompt_cost import anthropic_faults, openai_faults
from ctxsteward.schemas import InvalidMessage

from ...examples import examples
from ...tables import table
from ..histories import PIXEL, Wire, histories
from ..messages import CHARS, char_builder

WIDE = Budgets(dynamic_tokens=1_000_000, arrival_cap_tokens=100_000)
EMPTY = tessera.Defect.EMPTY_ASSISTANT_TURN
REPAIRS = {
    "tool_call_without_result",
    "tool_result_without_call",
    "tool_call_id_replaced",
    "empty_assistant_message",
    "untrusted_system_message",
}


def run(
    messages: Sequence[Wire], budgets: Budgets, look: Callable[[Session, Envelope], None] | None = None
) -> list[Envelope]:
    """Append one by one, build after each."""
    session = memory_store().session("s", counter=CHARS)
    builder = char_builder(budgets)
    envelopes: list[Envelope] = []
    for message in messages:
        try:
            session.append(message)
        except InvalidMessage:
            continue
        envelopes.append(builder.build(session))
        if look is not None:
            look(session, envelopes[-1])
    return envelopes


# -- the judges ------------------------------------------------------------------------------------


def openai_problems(messages: list[Wire]) -> list[str]:
    """What OpenAI's chat completions endpoint would refuse, its rules on fields and blocks included."""
    found = openai_faults({"messages": messages})
    for at, message in enumerate(messages):
        role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
        where = f"[{at}] {role}"
        if content is not None and not isinstance(content, (str, list)):
            found.append(f"{where}: content is {type(content).__name__}")
        if isinstance(content, list):
            found += _openai_blocks(where, role, content)
        if calls == [] or (calls and role != "assistant"):
            found.append(f"{where}: tool_calls is an empty list, or not the assistant's")
        for call in calls or ():
            _openai_call(where, call, found)
    return found


def _openai_call(where: str, call: Any, found: list[str]) -> None:
    id = call.get("id")
    if not isinstance(id, str) or not 1 <= len(id) <= 40:
        found.append(f"{where}: call id {id!r} is not a text of 1 to 40 characters")
    if call.get("type") not in ("function", "custom"):
        found.append(f"{where}: a call of type {call.get('type')!r}")
    if call.get("type") == "function" and not isinstance(call["function"].get("arguments"), str):
        found.append(f"{where}: arguments are no text")


_OPENAI_BLOCKS = {
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
    "system": {"text"},
}


def _openai_blocks(where: str, role: Any, content: list[Any]) -> list[str]:
    if not content:
        return [f"{where}: content is an empty list"]
    kinds = [block.get("type") if isinstance(block, dict) else type(block).__name__ for block in content]
    found = [f"{where}: a block of type {kind!r}" for kind in kinds if kind not in _OPENAI_BLOCKS[role]]
    for block in content:
        if isinstance(block, dict) and "cache_control" in block:
            found.append(f"{where}: cache_control is another provider's")
        url = block["image_url"]["url"] if isinstance(block, dict) and "image_url" in block else "data:"
        if not url.startswith(("data:", "https://", "http://")):
            found.append(f"{where}: an image at {url!r}")
    return found


_NOT_ANTHROPIC = {"name", "tool_calls", "tool_call_id", "refusal", "annotations", "audio", "function_call"}


def anthropic_problems(payload: Wire) -> list[str]:
    """What Anthropic's messages endpoint would refuse, its rules on fields and blocks included."""
    found = anthropic_faults(payload) if payload["messages"] else []
    for at, message in enumerate(payload["messages"]):
        role, content = message["role"], message["content"]
        where = f"[{at}] {role}"
        found += [f"{where}: field {key!r} is another provider's" for key in sorted(_NOT_ANTHROPIC & message.keys())]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kinds = [block["type"] for block in blocks]
        if role != "user" and "tool_result" in kinds:
            found.append(f"{where}: results of an {role}")
        if role != "assistant" and "tool_use" in kinds:
            found.append(f"{where}: calls of a {role}")
        if role == "assistant" and kinds[-1:] in (["thinking"], ["redacted_thinking"]):
            found.append(f"{where}: ends in a thinking block")
        found += [f"{where}: {text}" for block in blocks for text in _anthropic_block(block)]
    return found


def _anthropic_block(block: Wire) -> list[str]:
    match block["type"]:
        case "text":
            return [] if str(block.get("text", "")).strip() else ["an empty text block"]
        case "tool_result" if isinstance(block.get("content"), list):
            return [f"in a result: {text}" for part in block["content"] for text in _anthropic_block(part)]
        case "image_url" | "input_audio" | "input_text" | "output_text" | "refusal":
            return [f"a block of type {block['type']!r}"]
    return []


def judge(envelope: Envelope) -> list[str]:
    """Both providers, both judges."""
    openai, anthropic = envelope.render("openai-chat")["messages"], envelope.render("anthropic")
    found = [f"openai {problem}" for problem in openai_problems(openai)]
    found += [f"anthropic {problem}" for problem in anthropic_problems(anthropic)]
    found += [f"tessera openai {f.defect}" for f in _tessera(openai, "openai")]
    found += [f"tessera anthropic {f.defect}" for f in _tessera(anthropic["messages"], "anthropic")]
    return found


def _tessera(messages: list[Wire], adapter: str) -> list[tessera.Finding]:
    """Its findings, but for empty turns that are not: it does not read lists (OpenAI) or thinking."""
    findings = tessera.inspect(messages, adapter=adapter).findings
    return [f for f in findings if f.defect != EMPTY or not isinstance(messages[f.message_index]["content"], list)]


# -- properties ------------------------------------------------------------------------------------

BUDGETS = st.sampled_from(
    (WIDE, Budgets(), Budgets(dynamic_tokens=400), Budgets(dynamic_tokens=2_000, recall_fraction=0.0))
)
ANY = st.one_of(*map(histories, ("openai", "anthropic", "gemini", "mixed")))
VALID = st.one_of(*(histories(dialect, broken=False) for dialect in ("openai", "anthropic", "gemini", "mixed")))


@settings(max_examples=examples(1_000), derandomize=True, database=None)
@given(messages=ANY, budgets=BUDGETS)
def test_every_build_of_any_history_is_valid_for_both_providers(messages: tuple[Wire, ...], budgets: Budgets) -> None:
    given = deepcopy(messages)

    def look(session: Session, envelope: Envelope) -> None:
        assert judge(envelope) == [], json.dumps(messages, ensure_ascii=False)
        for provider in ("openai-responses", "gemini", "text"):
            envelope.render(provider)

    run(messages, budgets, look)
    assert messages == given


@settings(max_examples=examples(200), derandomize=True, database=None)
@given(messages=VALID, budgets=BUDGETS)
def test_a_valid_history_is_valid_at_every_step_and_needs_no_repair(
    messages: tuple[Wire, ...], budgets: Budgets
) -> None:
    def look(session: Session, envelope: Envelope) -> None:
        assert judge(envelope) == []
        if not session.state.open_calls:  # a call that still waits is shown with a placeholder, and said so
            assert not {finding.kind for finding in envelope.findings} & REPAIRS

    run(messages, budgets, look)


@settings(max_examples=examples(200), derandomize=True, database=None)
@given(messages=ANY)
def test_a_repaired_history_carries_a_finding(messages: tuple[Wire, ...]) -> None:
    session = memory_store().session("s", counter=CHARS)
    kept: list[Wire] = []
    for message in messages:
        try:
            session.append(message)
        except InvalidMessage:
            continue
        kept.append(message)
    if not kept or any(_is_anthropic(message) for message in kept):
        return
    envelope = char_builder(WIDE).build(session)
    faults = openai_faults({"messages": [_with_ids(message) for message in kept]})
    if any("answer" in fault or "used twice" in fault or "says and calls nothing" in fault for fault in faults):
        assert {finding.kind for finding in envelope.findings} & REPAIRS


def _with_ids(message: Wire) -> Wire:
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [{"id": None, **call} for call in calls]} if calls else message


def _is_anthropic(message: Wire) -> bool:
    blocks = message.get("content")
    kinds = {b.get("type") for b in blocks if isinstance(b, dict)} if isinstance(blocks, list) else set()
    return bool(kinds & {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "x_new_block"})


@settings(max_examples=examples(100), derandomize=True, database=None)
@given(messages=ANY, budgets=BUDGETS)
def test_the_same_log_gives_the_same_bytes(messages: tuple[Wire, ...], budgets: Budgets) -> None:
    def bytes_of(envelopes: list[Envelope]) -> list[str]:
        return [json.dumps(envelope.render(p)) for envelope in envelopes for p in ("openai-chat", "anthropic", "text")]

    assert bytes_of(run(messages, budgets)) == bytes_of(run(messages, budgets))


@settings(max_examples=examples(150), derandomize=True, database=None)
@given(messages=histories("openai", broken=False))
def test_openai_dicts_go_back_to_openai_as_they_came(messages: tuple[Wire, ...]) -> None:
    assert run(messages, WIDE)[-1].render("openai-chat")["messages"] == list(messages)


@settings(max_examples=examples(150), derandomize=True, database=None)
@given(messages=histories("anthropic", broken=False))
def test_anthropic_dicts_go_back_to_anthropic_as_they_came(messages: tuple[Wire, ...]) -> None:
    def listed(message: Wire) -> Wire:
        if message["role"] == "user" and isinstance(message["content"], str):
            return {**message, "content": [{"type": "text", "text": message["content"]}]}
        return message

    shown = run(messages, WIDE)[-1].render("anthropic", cache=False)["messages"]
    assert shown == [listed(message) for message in messages]


@settings(max_examples=examples(300), derandomize=True, database=None)
@given(
    messages=st.one_of(VALID, ANY),
    budgets=st.sampled_from([Budgets(dynamic_tokens=n) for n in (1_500, 3_000)]),  # a fence takes 115 characters
)
def test_the_budget_holds_but_for_what_stays_verbatim(messages: tuple[Wire, ...], budgets: Budgets) -> None:
    def look(session: Session, envelope: Envelope) -> None:
        budget, tokens = budgets.dynamic_tokens, envelope.section("dynamic").tokens
        verbatim = verbatim_tokens(session, envelope, budgets)
        limit = budget if verbatim <= budget else verbatim + budget * 0.1
        if verbatim > budget and session.state.refused is not None:
            limit = max(limit, verbatim / 0.9)  # a cut would save less than a tenth, so none is made
        assert tokens <= limit, f"{tokens} tokens, budget {budget}, verbatim {verbatim}, {envelope.dynamic.fragments}"

    run(messages, budgets, look)


def verbatim_tokens(session: Session, envelope: Envelope, budgets: Budgets) -> int:
    """What never leaves: newest user and assistant text (the groups they are in), text of the live turn, a
    short task, pinned groups, and the groups whose results the model has not seen."""
    state = session.state
    users = [e for g in state.groups for e in g.entries if e.message.role == "user" and e.message.text.strip()]
    total = 0
    for group, fragment in zip(state.groups, _group_fragments(envelope), strict=True):
        live = bool(users) and group.last >= users[-1].ordinal
        head = group.entries[0].message
        unseen = group is state.groups[-1] or (
            group.last > state.last_reply and any(e.message.tool_results for e in group.entries)
        )
        newest = state.last_user in group.ordinals or state.last_text in group.ordinals
        task = state.task in group.ordinals and fragment.tokens <= budgets.task_tokens
        if unseen or newest or task or any(n in state.pins for n in group.ordinals):
            total += fragment.tokens
        elif live and head.text.strip():
            total += CHARS.text(head.text) + 4
    return total


def _group_fragments(envelope: Envelope) -> list[Any]:
    return list(envelope.dynamic.strip.fragments[: envelope.dynamic.stop])


# -- single cases ----------------------------------------------------------------------------------

HI: Wire = {"role": "user", "content": "hi"}


def _tool_use(id: str, **more: Any) -> Wire:
    return {"type": "tool_use", "id": id, "name": "look_up", "input": {}, **more}


def _call(id: str, arguments: Any = "{}") -> Wire:
    return {"id": id, "type": "function", "function": {"name": "look_up", "arguments": arguments}}


CASES: dict[str, list[Wire]] = table(__file__, "odd.yaml")


@pytest.mark.parametrize("messages", CASES.values(), ids=CASES.keys())
def test_an_odd_message_is_rendered_valid_or_refused_at_append(messages: list[Wire]) -> None:
    for envelope in run(messages, WIDE):
        assert judge(envelope) == []


def test_an_image_in_a_result_follows_the_results_where_a_tool_message_is_text_alone() -> None:
    (*_, envelope) = run(CASES["an image in a result"], WIDE)
    messages = envelope.render("openai-chat")["messages"]
    at = next(index for index, message in enumerate(messages) if message["role"] == "tool")
    assert messages[at + 1]["role"] == "user"
    assert PIXEL in json.dumps(messages[at + 1])


def test_results_the_model_has_not_seen_stay_when_a_person_speaks_after_them() -> None:
    """Pending = the model has not yet seen the results, whatever was appended behind them."""
    session = memory_store().session("s", counter=CHARS)
    builder = char_builder(Budgets())
    for message in ({"role": "user", "content": "look it up"}, {"role": "assistant", "tool_calls": [_call("c1")]}):
        session.append(message)
    builder.build(session)
    session.append({"role": "tool", "tool_call_id": "c1", "content": "r" * 200})
    session.append({"role": "user", "content": "p" * 700})
    shown = builder.build(session).render("openai-chat")["messages"]
    assert any(message["role"] == "tool" and message["content"] == "r" * 200 for message in shown)


def test_a_huge_block_inside_a_result_does_not_enter_the_prefix_whole() -> None:
    """The arrival cap judges the result, not only its text blocks."""
    block = {"type": "search_result", "source": "x", "title": "t", "content": "word " * 2_000}
    messages = [
        HI,
        {"role": "assistant", "content": [_tool_use("c1")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [block]}]},
    ]
    envelope = run(messages, Budgets())[-1]
    assert len(json.dumps(envelope.render("anthropic"))) < 3_000
