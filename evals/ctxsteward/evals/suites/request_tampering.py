"""Tamper with a request between builder and provider, for the suite ``cache``: the auditor must find each change.

    sent = TAMPERINGS["a message is dropped"](rng, scene, "anthropic")     # None if there is nothing to tamper with

A tampering takes a seeded random source, a `TamperingScene` and a provider. It returns a request as a service would
have logged it (payload, provider, seal), different from the expected one. It works on the provider's wire form,
independently of the auditor.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from ctxsteward.envelope import Envelope
from ctxsteward.envelope.audit.requests import sealed_request
from ctxsteward.envelope.envelope import Provider
from ctxsteward.schemas.message import Wire

PROVIDERS: tuple[Provider, ...] = ("openai-chat", "anthropic", "openai-responses", "gemini", "text")
_TURNS = {"openai-responses": "input", "gemini": "contents"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TamperingScene:
    """An envelope, and the texts that could be sent in its place."""

    expected: Envelope
    earlier: Envelope | None
    """Envelope of an earlier call of the session."""
    neighbour: Envelope
    """Envelope of another session of the tenant."""
    foreigner: Envelope
    """Envelope of a session with the same name in another tenant."""
    other_head: Envelope
    """Envelope of this session's messages under another profile."""
    messages: Sequence[Wire]
    """The session's messages as an application would send them itself."""
    remarks: Sequence[str]
    """Sentences to insert."""


Tampering = Callable[[Random, TamperingScene, Provider], Wire | None]


# -- texts -------------------------------------------------------------------------------------------------------


_PROSE = frozenset(("content", "text", "output", "instructions", "system_instruction", "prompt"))


def slots(payload: Wire) -> list[tuple[Any, Any]]:
    """Return every prose text of a request as its container and its key or index there."""
    return [(owner, key) for owner, key in _slots(payload) if owner[key].strip()]


def _slots(value: Any) -> Iterator[tuple[Any, Any]]:
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in rows:
        if isinstance(inner, str) and key in _PROSE:
            yield value, key
        elif key not in ("tools", "arguments", "input_schema", "parameters"):
            yield from _slots(inner)


def _rewritten(change: Callable[[Random, TamperingScene, str], str]) -> Tampering:
    """Make a tampering that changes one text of the request."""

    def tamper(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
        sent = _logged(scene.expected, provider)
        for owner, key in rng.sample(places := slots(sent["payload"]), len(places)):
            text = change(rng, scene, owner[key])
            if text != owner[key]:
                owner[key] = text
                return sent
        return None

    return tamper


def _word(rng: Random, scene: TamperingScene, text: str) -> str:
    words = list(re.finditer(r"[A-Za-z]{4,}|[\u4e00-\u9fff]{2}", text))
    if not words:
        return text
    word = rng.choice(words)
    return text[: word.start()] + rng.choice(("granted", "refused", "批准", "拒绝")) + text[word.end() :]


def _digit(rng: Random, scene: TamperingScene, text: str) -> str:
    digits = list(re.finditer(r"[0-9]", text))
    if not digits:
        return text
    digit = rng.choice(digits)
    return text[: digit.start()] + str((int(digit[0]) + rng.randint(1, 9)) % 10) + text[digit.end() :]


def _negation(rng: Random, scene: TamperingScene, text: str) -> str:
    gaps = [gap.end() for gap in re.finditer(r" |[，。]", text)]
    at = rng.choice(gaps) if gaps else len(text)
    return text[:at] + rng.choice(("not ", "never ", "不", "别")) + text[at:]


def _cut(rng: Random, scene: TamperingScene, text: str) -> str:
    if len(text) < 40:
        return text
    at = rng.randint(len(text) // 4, len(text) - 12)
    return text[:at] + rng.choice(("", "…", " [truncated]")) if rng.random() < 0.7 else text[at:]


def _remark(rng: Random, scene: TamperingScene, text: str) -> str:
    return rng.choice((f"{text}\n{rng.choice(scene.remarks)}", f"{rng.choice(scene.remarks)} {text}"))


def _unseen(rng: Random, scene: TamperingScene, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice("\u200b\u2060\ufeff\u202e\U000e0041") + text[at:]


# -- messages ----------------------------------------------------------------------------------------------------


def _turns(sent: Wire, provider: Provider) -> list[Wire]:
    """Return messages, items or contents; empty for a text prompt."""
    turns: list[Wire] = sent["payload"].get(_TURNS.get(provider, "messages"), [])
    return turns


def _dropped(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    sent = _logged(scene.expected, provider)
    turns = _turns(sent, provider)
    if len(turns) < 2:
        return None
    del turns[rng.randrange(len(turns))]
    return sent


def _swapped(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    sent = _logged(scene.expected, provider)
    turns = _turns(sent, provider)
    places = [at for at in range(len(turns) - 1) if turns[at] != turns[at + 1]]
    if not places:
        return None
    at = rng.choice(places)
    turns[at], turns[at + 1] = turns[at + 1], turns[at]
    return sent


def _inserted(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    sent = _logged(scene.expected, provider)
    turns, remark = _turns(sent, provider), rng.choice(scene.remarks)
    if not turns:
        return None
    role = rng.choice(("user", "assistant") if provider != "gemini" else ("user", "model"))
    turn: Wire = (
        {"role": role, "parts": [{"text": remark}]} if provider == "gemini" else {"role": role, "content": remark}
    )
    turns.insert(rng.randrange(len(turns) + 1), turn)
    return sent


def _another_role(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    sent = _logged(scene.expected, provider)
    turns = [turn for turn in _turns(sent, provider) if turn.get("role") in ("user", "assistant", "model")]
    if not turns:
        return None
    turn = rng.choice(turns)
    others = {"user": ("assistant", "model")[provider == "gemini"], "assistant": "user", "model": "user"}
    turn["role"] = others[turn["role"]]
    return sent


def _as_system(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    """Insert a rule or a meta record into the head."""
    sent = _logged(scene.expected, provider)
    payload, remark = sent["payload"], rng.choice(scene.remarks)
    line = rng.choice((f"- {remark} [s-7§12]", f"learned, for reference, not instructions:\n  hint: {remark}", remark))
    if provider == "anthropic":
        payload.setdefault("system", []).insert(
            rng.randrange(len(payload.get("system", [])) + 1), {"type": "text", "text": line}
        )
    elif provider == "openai-chat":
        role = rng.choice(("system", "developer"))
        payload["messages"].insert(rng.randrange(len(payload["messages"]) + 1), {"role": role, "content": line})
    elif provider == "openai-responses":
        payload["instructions"] = f"{payload.get('instructions', '')}\n{line}"
    elif provider == "text":
        payload["prompt"] = f"<{scene.expected.nonce} meta>\n{line}\n{payload['prompt']}"
    else:
        config = payload.setdefault("config", {})
        config["system_instruction"] = f"{config.get('system_instruction', '')}\n{line}"
    return sent


def _tools(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    """Add an undeclared tool."""
    if provider not in ("openai-chat", "anthropic"):
        return None
    sent = _logged(scene.expected, provider)
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    about = {"name": "transfer_money", "description": rng.choice(scene.remarks)}
    tool: Wire = {"type": "function", "function": {**about, "parameters": schema}}
    sent["payload"]["tools"] = [
        *sent["payload"].get("tools", []),
        {**about, "input_schema": schema} if provider == "anthropic" else tool,
    ]
    return sent


def _argument(choose: Callable[[Random, TamperingScene, Provider], Wire | None]) -> Tampering:
    """Make a tampering that adds an argument to the request."""

    def tamper(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
        sent = _logged(scene.expected, provider)
        added = choose(rng, scene, provider)
        if added is None:
            return None
        wrapped = provider == "gemini" and "config" in sent["payload"] and rng.random() < 0.5
        target = sent["payload"]["config"] if wrapped else sent["payload"]
        target |= added
        return sent

    return tamper


def _forced_tool(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    """Force or forbid a tool call."""
    name = "transfer_money"
    forms: dict[Provider, tuple[Wire, ...]] = {
        "openai-chat": (
            {"tool_choice": {"type": "function", "function": {"name": name}}},
            {"tool_choice": "required"},
            {"tool_choice": "none"},
            {"function_call": {"name": name}},
        ),
        "openai-responses": (
            {"tool_choice": {"type": "function", "name": name}},
            {"tool_choice": "required"},
            {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": []}},
        ),
        "anthropic": ({"tool_choice": {"type": "tool", "name": name}}, {"tool_choice": {"type": "any"}}),
        "gemini": (
            {"tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": [name]}}},
            {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
        ),
        "text": ({"tool_choice": "required"},),
    }
    return copy.deepcopy(rng.choice(forms[provider]))


def _forced_form(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    """Force a schema for the answer, since providers show its descriptions to the model."""
    schema = {"type": "object", "properties": {"answer": {"type": "string", "description": rng.choice(scene.remarks)}}}
    named = {"type": "json_schema", "name": "answer", "schema": schema}
    forms: dict[Provider, Wire] = {
        "openai-chat": {"response_format": {"type": "json_schema", "json_schema": named}},
        "openai-responses": {"text": {"format": named}},
        "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        "gemini": {"response_schema": schema},
        "text": {"json_schema": schema},
    }
    return forms[provider]


def _more_context(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    """Add context outside the messages: a stored conversation, a search, text in an unknown argument."""
    return rng.choice(
        (
            {"previous_response_id": "resp_0123"},
            {"web_search_options": {"search_context_size": "high"}},
            {"guidance": rng.choice(scene.remarks)},
            {"extra_body": {"policy": {"note": rng.choice(scene.remarks)}}},
        )
    )


# -- whole envelopes ---------------------------------------------------------------------------------------------


def _instead(choose: Callable[[TamperingScene], Envelope | None], *, keep_seal: bool) -> Tampering:
    """Make a tampering that sends another envelope's request, with the expected seal or its own."""

    def tamper(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
        other = choose(scene)
        if other is None or other.render(provider, cache=False) == scene.expected.render(provider, cache=False):
            return None
        sent = _logged(other, provider)
        return {**sent, "seal": _logged(scene.expected, provider)["seal"]} if keep_seal else sent

    return tamper


def _bypassed(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    """Send the application's own history, with or without the builder's head."""
    if provider != "openai-chat":
        return None
    sent = _logged(scene.expected, provider)
    messages = sent["payload"]["messages"]
    head = [message for message in messages if message["role"] in ("system", "developer")]
    own = [*(head if rng.random() < 0.5 else ()), *scene.messages[-rng.choice((10, len(scene.messages))) :]]
    sent["payload"]["messages"] = copy.deepcopy(own)
    return None if own == messages else sent


def _no_seal(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    sent = _logged(scene.expected, provider)
    return {**sent, "seal": None} if rng.random() < 0.5 else {name: sent[name] for name in ("payload", "provider")}


def _forged_seal(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    sent = _logged(scene.expected, provider)
    if sent["seal"] is None:
        return None
    mac = sent["seal"]["mac"]
    sent["seal"]["mac"] = mac[:-1] + ("0" if mac[-1] != "0" else "1")
    return sent


def _other_seal(rng: Random, scene: TamperingScene, provider: Provider) -> Wire | None:
    sent = _logged(scene.expected, provider)
    other = rng.choice(
        [envelope for envelope in (scene.earlier, scene.neighbour, scene.foreigner, scene.other_head) if envelope]
    )
    seal = _logged(other, provider)["seal"]
    return None if seal == sent["seal"] or seal is None else {**sent, "seal": seal}


def _logged(envelope: Envelope, provider: Provider) -> Wire:
    return copy.deepcopy(sealed_request(envelope, provider, cache=False))


TAMPERINGS: dict[str, Tampering] = {
    "a word is another": _rewritten(_word),
    "a digit is another": _rewritten(_digit),
    "a negation is put in": _rewritten(_negation),
    "a text is cut": _rewritten(_cut),
    "a remark is added to a text": _rewritten(_remark),
    "an invisible character is put in": _rewritten(_unseen),
    "a message is dropped": _dropped,
    "two messages change places": _swapped,
    "a message is put in": _inserted,
    "a message has another role": _another_role,
    "meta is slipped in": _as_system,
    "a tool is slipped in": _tools,
    "a tool is forced": _argument(_forced_tool),
    "a form of the answer is forced": _argument(_forced_form),
    "context is put beside the messages": _argument(_more_context),
    "the head is another version's": _instead(lambda scene: scene.other_head, keep_seal=True),
    "it is an earlier call's": _instead(lambda scene: scene.earlier, keep_seal=True),
    "it is another session's": _instead(lambda scene: scene.neighbour, keep_seal=True),
    "it is another session's, seal and all": _instead(lambda scene: scene.neighbour, keep_seal=False),
    "it is another tenant's": _instead(lambda scene: scene.foreigner, keep_seal=True),
    "it is another tenant's, seal and all": _instead(lambda scene: scene.foreigner, keep_seal=False),
    "the application sends its own history": _bypassed,
    "the seal is missing": _no_seal,
    "the seal is forged": _forged_seal,
    "the seal is another envelope's": _other_seal,
}
