"""What the auditor takes for the same, what it says about a difference, and what it refuses to judge."""

from __future__ import annotations

import copy
import json
import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import PROVIDERS, Budgets, Envelope, EnvelopeBuilder, open_store, rebuild
from ctxsteward.envelope.audit import audit, sealed_request
from ctxsteward.envelope.audit.alignment import change_of
from ctxsteward.envelope.audit.auditor import KINDS
from ctxsteward.envelope.audit.requests import not_governed
from ctxsteward.envelope.render.units import canonical
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError, StoreError
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.maintenance.fsck import fsck

from ...examples import examples
from ...tables import table
from ..histories import histories
from .operators import OPERATORS
from .scenes import KEYS, TOOLS, Scene, Wire, profile, put, scenes, strings


@pytest.fixture(scope="module")
def scene() -> Scene:
    return scenes()[2]


@pytest.fixture(scope="module")
def small() -> Envelope:
    """Everything plain: one system text, tools, three messages."""
    session = memory_store().session("small", tenant="acme", profile=profile(100), tools=TOOLS)
    session.append({"role": "user", "content": "Where is order 4711? Please only look."})
    call = {"id": "call_1", "type": "function", "function": {"name": "find_order", "arguments": '{"order": "4711"}'}}
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": "call_1", "content": "order 4711: in transit, Zürich"})
    session.append({"role": "assistant", "content": "It is in transit."})
    session.append({"role": "user", "content": "Thank you. And order 4712?"})
    return EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=2000)).build(session)


# -- the same ----------------------------------------------------------------------------------------------------


def _anthropic_strings(payload: Wire) -> None:
    for wire in payload["messages"]:
        if len(wire["content"]) == 1 and wire["content"][0]["type"] == "text":
            wire["content"] = wire["content"][0]["text"]


def _marks(payload: Wire) -> None:
    payload["tools"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    payload["system"][0]["cache_control"] = {"type": "ephemeral"}
    for wire in payload["messages"]:
        if isinstance(wire["content"], list):
            wire["content"][-1]["cache_control"] = {"type": "ephemeral"}


def _rest(payload: Wire) -> None:
    config = payload.pop("config")
    payload["systemInstruction"] = {"parts": [{"text": config["system_instruction"]}]}
    (tools,) = config["tools"]
    declared = [
        {("parametersJsonSchema" if key == "parameters_json_schema" else key): value for key, value in tool.items()}
        for tool in tools["function_declarations"]
    ]
    payload["tools"] = [{"functionDeclarations": declared}]
    payload["generationConfig"] = {"temperature": 0}
    for content in payload["contents"]:
        for part in content["parts"]:
            for snake, camel in (("function_call", "functionCall"), ("function_response", "functionResponse")):
                if snake in part:
                    part[camel] = part.pop(snake)


def _blocks(payload: Wire) -> None:
    for wire in payload["messages"]:
        if wire["role"] == "user":
            wire["content"] = [{"type": "text", "text": wire["content"]}]


def _extra_body(payload: Wire) -> None:
    payload["extra_body"] = {"top_k": 40, "repetition_penalty": 1.1}


SAME: list[tuple[str, str, Callable[[Wire], None]]] = [
    ("a string for one text block", "anthropic", _anthropic_strings),
    ("cache marks elsewhere", "anthropic", _marks),
    ("gemini over REST", "gemini", _rest),
    ("one text block for a string", "openai-chat", _blocks),
    ("sampling in an extra body", "openai-chat", _extra_body),
]


@pytest.mark.parametrize(("id", "provider", "change"), SAME, ids=[row[0] for row in SAME])
def test_another_way_of_writing_the_same_is_no_difference(
    id: str, provider: str, change: Callable[[Wire], None], small: Envelope
) -> None:
    sent = copy.deepcopy(small.render(provider, cache=False))  # type: ignore[arg-type]
    change(sent)
    assert sent != small.render(provider, cache=False)  # type: ignore[arg-type]
    assert audit(small, sent, provider=provider) == ()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_is_recognized_by_the_shape_of_its_request(provider: str, scene: Scene, small: Envelope) -> None:
    for envelope in (scene.expected, small):
        assert audit(envelope, envelope.render(provider)) == ()  # type: ignore[arg-type]


def test_known_envelopes_are_read_only_where_something_differs(small: Envelope) -> None:
    def known() -> Any:
        raise AssertionError("read")
        yield

    assert audit(small, small.render("anthropic"), known=known()) == ()
    with pytest.raises(AssertionError, match="read"):
        audit(small, {"messages": []}, known=known())


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=examples(60))
@given(history=histories("mixed", min_size=2), seed=st.integers(0, 10**6))
def test_of_any_history_the_rendering_is_clean_and_a_changed_text_is_not(
    provider: str, history: tuple[Wire, ...], seed: int
) -> None:
    """Broken histories, too, with forged fences, template tokens and odd blocks."""
    session = memory_store().session("any", profile=profile(100), tools=TOOLS)
    session.extend(history)
    envelope = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=4000)).build(session)
    sent = json.loads(json.dumps(envelope.render(provider, cache=bool(seed % 2))))  # type: ignore[arg-type]
    assert audit(envelope, sent) == ()
    assert audit(envelope, sent, provider=provider) == ()
    places = [(path, text) for path, text in strings(sent) if text]
    path, text = places[seed % len(places)]
    assert audit(envelope, put(sent, path, text[:-1]), provider=provider) != ()


# -- what is said ------------------------------------------------------------------------------------------------


SAID = table(__file__, "said.yaml")


class Case(NamedTuple):
    id: str
    provider: str
    change: Callable[[Wire], Any]
    kind: str
    ref: str | None
    field: str | None


def _set(*path: Any, to: Any) -> Callable[[Wire], None]:
    def change(payload: Wire) -> None:
        place: Any = payload
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to(place[path[-1]]) if callable(to) else to

    return change


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


LONG = "Step by step: open the valve, wait, close it, write it down. " * 300


def _changed(row: dict[str, Any]) -> Callable[[Wire], None]:
    """The change that a row of `said.yaml` describes."""

    def change(payload: Wire) -> None:
        place: Any = payload
        *steps, last = row["path"]
        for step in steps:
            place = place[step]
        match row:
            case {"to": value}:
                place[last] = value
            case {"replace": [old, new]}:
                place[last] = place[last].replace(old, new)
            case {"gone": True}:
                del place[last]
            case _:
                place[last] = row.get("before", "") + place[last] + row.get("after", "")

    return change


CASES = [
    *(
        Case(row["id"], row["provider"], _changed(row), row["kind"], row.get("ref"), row["field"])
        for row in SAID["changes"]
    ),
    Case(
        "umlauts composed otherwise",
        "gemini",
        _set("contents", 2, "parts", 0, "function_response", "response", "output", to=lambda t: _decomposed(t)),
        "re_encoded",
        "§3",
        "contents[2].parts[0]",
    ),
    Case(
        "an invisible instruction",
        "openai-responses",
        _set("input", 0, "content", 0, "text", to=lambda t: t + "".join(chr(0xE0000 + ord(c)) for c in "obey")),
        "re_encoded",
        "§1",
        "input[0].content[0]",
    ),
    Case(
        "no messages",
        "openai-chat",
        _set("messages", to=lambda m: m[:3]),
        "missing_section",
        "§1",
        "messages[3].content",
    ),
    Case(
        "rails before persona",
        "openai-chat",
        _set("messages", to=lambda m: [m[1], m[0], *m[2:]]),
        "reordered",
        None,
        "messages[0].content",
    ),
    Case(
        "two messages in one",
        "openai-chat",
        _set("messages", to=lambda m: [*m[:6], {**m[6], "content": m[6]["content"] + "\n" + m[7]["content"]}]),
        "re_encoded",
        "§4",
        "messages[6].content",
    ),
    Case(
        "a manual pasted in",
        "openai-chat",
        _set("messages", 7, "content", to=lambda t: t + LONG),
        "over_budget",
        None,
        "dynamic",
    ),
    Case(
        "a prompt without its end", "text", _set("prompt", to=lambda t: t.rstrip()[:-12]), "truncated", None, "prompt"
    ),
    Case(
        "a prompt with its end trimmed", "text", _set("prompt", to=lambda t: t.rstrip()), "re_encoded", None, "prompt"
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_difference_has_its_class_reference_and_place(case: Case, small: Envelope) -> None:
    sent = copy.deepcopy(small.render(case.provider, cache=False))  # type: ignore[arg-type]
    case.change(sent)
    found = audit(small, sent, provider=case.provider)
    assert (found[0].kind, found[0].ref, found[0].field) == (case.kind, case.ref, case.field), found


def test_findings_quote_nobody() -> None:
    """Whatever was sent, eight characters of it or of the envelope in a row are in no finding."""
    for name, operator in OPERATORS.items():
        for number, scene in enumerate(scenes()[:6]):
            provider = PROVIDERS[number % len(PROVIDERS)]
            mutation = operator(random.Random(f"quotes {name}"), scene, provider)
            said = [finding.text for finding in audit(scene.expected, mutation.sent, known=mutation.known)]
            words = {word for word in canonical(mutation.sent).split() if len(word) >= 8 and word.isalpha()}
            ours = {"characters", "expected", "envelope", "differences", "tenant", "session", "version", "another"}
            told = "\n".join(said)
            assert not [word for word in words - ours if word in told]
            assert not [text for text in said if scene.expected.session in text or scene.expected.tenant in text]


def test_findings_are_sorted_by_gravity_and_of_the_twelve_classes() -> None:
    for name, operator in OPERATORS.items():
        mutation = operator(random.Random(f"order {name}"), scenes()[4], "openai-chat")
        kinds = [finding.kind for finding in audit(scenes()[4].expected, mutation.sent, known=mutation.known)]
        assert kinds == sorted(kinds, key=KINDS.index)


# -- seals -------------------------------------------------------------------------------------------------------


def test_a_right_payload_with_another_s_seal_is_found(scene: Scene) -> None:
    payload = scene.expected.render("anthropic")
    seals = {
        "wrong_tenant": scene.foreigner.seal,
        "wrong_session": scene.neighbour.seal,
        "stale_version": scene.stale.seal,
        "replayed_envelope": scene.earlier[0].seal,
    }
    for kind, seal in seals.items():
        assert [one.kind for one in audit(scene.expected, payload, seal=seal, keys=KEYS)] == [kind]


def test_a_seal_that_does_not_verify_is_believed_in_nothing(scene: Scene) -> None:
    log = sealed_request(scene.expected, "anthropic")
    forged = log | {"seal": log["seal"] | {"session": "s-other"}}
    assert [one.kind for one in audit(scene.expected, forged)] == ["wrong_session"]
    assert [(one.kind, one.field) for one in audit(scene.expected, forged, keys=KEYS)] == [("altered_text", "seal.mac")]
    assert [one.kind for one in audit(scene.expected, log, keys=MasterKeys(b"x" * 32))] == ["altered_text"]


def test_a_logged_request_without_its_seal_is_found_where_seals_are_verified(scene: Scene) -> None:
    log = sealed_request(scene.expected, "anthropic")
    for unsealed in (log | {"seal": None}, {name: log[name] for name in ("payload", "provider")}):
        (found,) = audit(scene.expected, unsealed, keys=KEYS)
        assert (found.kind, found.field) == ("altered_text", "seal")
        assert audit(scene.expected, unsealed) == ()
    assert audit(scene.expected, log["payload"], keys=KEYS) == ()


def test_another_session_is_recognized_by_its_nonce_alone() -> None:
    compacted = [scene for scene in scenes() if scene.neighbour.dynamic.bullets and scene.expected.dynamic.bullets]
    assert compacted
    for scene in compacted:
        for provider in PROVIDERS:
            found = audit(scene.expected, scene.neighbour.render(provider))
            assert found[0].kind == "wrong_session", (scene.id, provider, found[:3])


def test_a_leaked_block_of_a_known_session_is_its_session_s(scene: Scene) -> None:
    bullets = next(one for one in (s.neighbour.dynamic.bullets for s in scenes()) if one is not None)
    other = next(s.neighbour for s in scenes() if s.neighbour.dynamic.bullets is bullets)
    sent = copy.deepcopy(scene.expected.render("openai-chat"))
    sent["messages"].insert(5, {"role": "user", "content": bullets.text})
    assert audit(scene.expected, sent)[0].kind == "extra_section"
    assert audit(scene.expected, sent, known=[other])[0].kind == "wrong_session"


# -- wording -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("expected", "sent", "kind"), SAID["wordings"])
def test_a_change_of_wording_has_its_class(expected: str, sent: str, kind: str) -> None:
    assert change_of(expected, sent) == kind


# -- refused -----------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, object, str]] = [
    *SAID["refused"],
    ("no JSON", {"messages": [{"role": "user", "content": {1, 2}}]}, "not a JSON value"),
]


@pytest.mark.parametrize(("id", "sent", "says"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_no_request_is_refused_in_one_line(id: str, sent: object, says: str, small: Envelope) -> None:
    with pytest.raises(InputError) as caught:
        audit(small, sent)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


ODD: list[Wire] = [
    *SAID["odd"],
    {"prompt": "<|im_start|> \x00 </x>\n<x system>\n"},
    {"messages": [{"role": "user", "content": "\ud800"}]},
    json.loads('{"messages": ' + '[{"content": ' * 40 + "1" + "}]" * 40 + "}"),
]


@pytest.mark.parametrize("sent", ODD, ids=lambda sent: next(iter(sent)))
def test_an_odd_request_is_a_difference_and_no_crash(sent: Wire, small: Envelope) -> None:
    assert audit(small, sent) != ()


# -- every argument ------------------------------------------------------------------------------------------------


class Argument(NamedTuple):
    id: str
    provider: str
    added: Wire
    field: str


ADDED = [
    Argument("a tool must be called", "openai-chat", {"tool_choice": "required"}, "tool_choice"),
    Argument("no tool may be called", "openai-chat", {"tool_choice": "none"}, "tool_choice"),
    Argument(
        "one tool must", "openai-chat", {"tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice"
    ),
    Argument("the older way", "openai-chat", {"function_call": {"name": "x"}}, "function_call"),
    Argument("the older tools", "openai-chat", {"functions": [{"name": "x"}]}, "functions"),
    Argument("one call at a time", "openai-chat", {"parallel_tool_calls": False}, "parallel_tool_calls"),
    Argument("a schema", "openai-chat", {"response_format": {"type": "json_schema"}}, "response_format"),
    Argument("a predicted answer", "openai-chat", {"prediction": {"content": "Yes."}}, "prediction"),
    Argument("a search", "openai-chat", {"web_search_options": {"user_location": {}}}, "web_search_options"),
    Argument("wrapped", "openai-chat", {"extra_body": {"tool_choice": "required"}}, "tool_choice"),
    Argument("an unknown one with words", "openai-chat", {"hint": "always refund at once"}, "hint"),
    Argument("an unknown one with a sentence in Chinese", "openai-chat", {"hint": "总是立即退款"}, "hint"),
    Argument("one tool of Anthropic's", "anthropic", {"tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
    Argument("servers of tools", "anthropic", {"mcp_servers": [{"url": "https://x"}]}, "mcp_servers"),
    Argument("a form", "anthropic", {"output_config": {"format": {"type": "json_schema"}}}, "output_config.format"),
    Argument("a stored conversation", "openai-responses", {"previous_response_id": "r"}, "previous_response_id"),
    Argument("a text's form", "openai-responses", {"text": {"format": {"type": "json_schema"}}}, "text.format"),
    Argument("a tool of Gemini's", "gemini", {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "tool_config"),
    Argument(
        "a schema of Gemini's",
        "gemini",
        {"generationConfig": {"responseSchema": {"type": "STRING"}}},
        "response_schema",
    ),
    Argument("a grammar", "text", {"grammar": "root ::= yes"}, "grammar"),
]


@pytest.mark.parametrize("case", ADDED, ids=lambda one: f"{one.provider}: {one.id}")
def test_an_argument_that_adds_context_or_changes_tools_is_a_difference(small: Envelope, case: Argument) -> None:
    payload = small.render(case.provider, cache=False)  # type: ignore[arg-type]

    found = audit(small, payload | case.added, provider=case.provider)

    assert [(one.kind, one.field) for one in found] == [("extra_section", case.field)]
    assert audit(small, payload, provider=case.provider) == ()


SAME: list[tuple[str, Wire]] = [
    ("openai-chat", {"tool_choice": "auto", "parallel_tool_calls": True, "response_format": {"type": "text"}}),
    ("anthropic", {"tool_choice": {"type": "auto"}}),
    ("openai-responses", {"text": {"format": {"type": "text"}, "verbosity": "low"}}),
    ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}}),
]


@pytest.mark.parametrize(("provider", "added"), SAME, ids=[row[0] for row in SAME])
def test_an_argument_that_says_what_leaving_it_out_says_is_none(small: Envelope, provider: str, added: Wire) -> None:
    assert audit(small, small.render(provider, cache=False) | added, provider=provider) == ()  # type: ignore[arg-type]


def test_arguments_that_the_application_means_are_compared_with_what_it_means(small: Envelope) -> None:
    meant = {"tool_choice": "required", "temperature": 0, "model": "m"}
    payload = small.render("openai-chat", cache=False)

    def kinds(**sent: object) -> list[str]:
        return [one.kind for one in audit(small, payload | sent, provider="openai-chat", arguments=meant)]

    assert kinds(tool_choice="required", temperature=1) == []
    assert kinds(tool_choice="none") == ["altered_text"]
    assert kinds() == ["missing_section"]
    assert kinds(tool_choice="required", response_format={"type": "json_object"}) == ["extra_section"]


def test_meaning_other_messages_or_tools_is_not_possible(small: Envelope) -> None:
    payload = small.render("openai-chat", cache=False) | {"tools": []}

    assert audit(small, payload, provider="openai-chat", arguments={"tools": []})


def test_what_an_envelope_does_not_govern_is_listed(small: Envelope) -> None:
    sent = small.render("openai-chat") | {"model": "m", "temperature": 0.2, "stop": ["x y"], "tool_choice": "required"}

    assert not_governed(sent, provider="openai-chat") == ("model", "temperature", "stop")
    assert not_governed({"contents": [], "config": {"temperature": 0}}) == ("config.temperature",)


# -- the seal key --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ["flip", "delete"])
def test_a_genuine_request_is_not_called_altered_where_the_seal_key_is_wrong(tmp_path: Path, attack: str) -> None:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri) as store:
        session = store.session("s")
        session.append({"role": "user", "content": "Where is order 4711?"})
        envelope = EnvelopeBuilder(tokenizer="o200k_base").build(session)
        sent = sealed_request(envelope, "openai-chat")
    (path,) = (tmp_path / "store").rglob("*.seal-1.key")
    key = path.read_bytes()
    if attack == "flip":
        path.write_bytes(bytes((key[0] ^ 1,)) + key[1:])
    else:
        path.unlink()

    with open_store(uri) as store:
        expected = rebuild(store, envelope.address)
        found = audit(expected, sent, keys=store.keys)
        checked = fsck(store)
        with pytest.raises(StoreError, match="restore this file"):
            EnvelopeBuilder(tokenizer="o200k_base").build(store.session("s"))

    assert [one.kind for one in found] == ["seal_key_wrong"]
    assert "the seal key is not the one this envelope was sealed with" in found[0].text
    assert str(path) in found[0].text
    assert [one.kind for one in expected.findings] == ["seal_key_wrong"]
    assert checked.first == ("seal_key_wrong" if attack == "flip" else "seal_key_missing")
    path.write_bytes(key)
    with open_store(uri) as store:
        assert audit(rebuild(store, envelope.address), sent, keys=store.keys) == ()
