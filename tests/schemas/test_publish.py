"""The published schemas: as the models say, true of real values, closed to forged ones."""

import json
from collections.abc import Callable
from functools import cache, reduce
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder
from ctxsteward.envelope.layout.fragments import Kind
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, WordOverlap, memory_store
from ctxsteward.schemas import InputError, SummarizerInput
from ctxsteward.schemas.documents import EnvelopeDocument, FragmentKind, SelectionLog
from ctxsteward.schemas.message import Message
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.schemas.publish import as_text, generate, names, schema, validate, write
from ctxsteward.schemas.summary import SourceMessage

Json = dict[str, Any]


@cache
def compacted() -> Envelope:
    """An envelope of a session with tools, a note, and one compaction behind it."""
    session = memory_store().session("s-1", tenant="acme", system="Be brief.")
    for turn in range(1, 9):
        session.append({"role": "user", "content": f"question {turn} about port {6400 + turn} " * 3})
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        session.append({"role": "assistant", "content": None, "tool_calls": [call]})
        session.append({"role": "tool", "tool_call_id": f"c{turn}", "content": f"port {6400 + turn} is open"})
        session.append({"role": "assistant", "content": f"It is open: {6400 + turn}."})
    session.append({"role": "user", "content": "Which port did question 2 ask about?"})
    session.note("plan", "answer it")
    builder = EnvelopeBuilder(
        tokenizer=CharTokenizer(),
        window_tokens=100_000,
        budgets=Budgets(dynamic_tokens=1_200),
        summarizer=FirstLine(),
    )
    return builder.build(session)


def envelope_document() -> Json:
    return json.loads(json.dumps(compacted().document()))  # type: ignore[no-any-return]


# -- the files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_files_are_what_the_models_say(name: str) -> None:
    shipped = (files("ctxsteward.schemas") / "json" / f"{name}.v1.json").read_text(encoding="utf-8")

    assert shipped == as_text(generate(name)), "run: python -m ctxsteward.schemas.publish"


@pytest.mark.parametrize("name", names())
def test_every_schema_is_valid_and_names_itself_without_pointing_elsewhere(name: str) -> None:
    shipped = schema(name)

    Draft202012Validator.check_schema(shipped)
    assert shipped["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert shipped["$id"] == f"https://ctxsteward.dev/schemas/{name}.v1.json"
    assert all(ref.startswith("#/$defs/") for ref in _values_of("$ref", shipped))


def test_no_file_is_shipped_that_no_model_stands_behind() -> None:
    found = {path.name for path in (files("ctxsteward.schemas") / "json").iterdir()}

    assert found == {f"{name}.v1.json" for name in names()}


def test_writing_twice_changes_nothing_and_an_edited_file_is_restored(tmp_path: Path) -> None:
    assert write(tmp_path) == list(names())
    assert write(tmp_path) == []

    (tmp_path / "finding.v1.json").write_text("{}", encoding="utf-8")
    assert write(tmp_path) == ["finding"]


@pytest.mark.parametrize("name", [name for name in names() if name != "message"])
def test_every_object_of_ours_is_closed(name: str) -> None:
    """But for maps by name (metrics, signals, the seal), which say what their values are."""
    objects = [node for node in _nodes(schema(name)) if node.get("type") == "object" and "properties" in node]

    assert objects
    assert all(node["additionalProperties"] is False for node in objects)


def test_the_contract_s_keys_stand_in_its_order() -> None:
    assert list(schema("envelope")["properties"]) == [
        *("schema_version", "address", "tenant", "session", "profile_version"),
        *("sections", "reports", "findings", "metrics", "seal"),
        "rules",  # which rules the request shows
    ]
    assert list(schema("compression_report")["properties"]) == [
        *("id", "section", "pre_tokens", "post_tokens", "losses", "kept_refs"),
        *("policy", "source_addresses", "artifact", "created_at"),
        "origin",  # where a model was asked
        "observations",  # where an observation log is kept
    ]
    assert list(schema("selection_log")["properties"]) == [
        *("selection_type", "strategy", "full_history_size", "context_size", "masked_count"),
        *("anchor_refs", "selected_refs", "tokens_saved", "candidates", "reasoning", "facts"),
    ]
    assert list(schema("selection_log")["$defs"]["SelectionCandidate"]["properties"]) == [
        *("ref", "score", "signals", "in", "why")
    ]


def test_units_and_meanings_are_in_the_schema() -> None:
    described = schema("envelope")["$defs"]["SectionDocument"]["properties"]["overflow_tokens"]

    assert described["description"] == "Tokens of verbatim text beyond the budget; 0 if the section fits."


def test_fragment_kinds_are_those_that_are_laid_out() -> None:
    assert get_args(FragmentKind) == get_args(Kind)


# -- real values fit ---------------------------------------------------------------------------------------


def test_a_built_envelope_fits_and_reads_back_equal() -> None:
    document = envelope_document()

    validate("envelope", document)

    assert len(document["reports"]) == 1, "the case must hold a compaction"
    assert EnvelopeDocument.model_validate_json(json.dumps(document)).model_dump(mode="json") == document


def test_the_report_of_a_compaction_fits_on_its_own() -> None:
    (report,) = compacted().reports

    validate("compression_report", report.model_dump(mode="json"))


def test_an_empty_session_has_an_envelope_that_fits() -> None:
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), window_tokens=9_000, summarizer=FirstLine())

    validate("envelope", builder.build(memory_store().session("empty")).document())


def test_the_selection_that_a_build_records_fits() -> None:
    session = memory_store().session("s-1")
    for turn in range(1, 30):
        session.append({"role": "user", "content": f"port {6400 + turn} " * 5})
        session.append({"role": "assistant", "content": f"noted {turn}"})
    session.append({"role": "user", "content": "port 6402"})
    EnvelopeBuilder(
        tokenizer=CharTokenizer(),
        window_tokens=100_000,
        budgets=Budgets(dynamic_tokens=1_200),
        summarizer=FirstLine(),
        selector=WordOverlap(),
    ).build(session)

    assert session.state.selection is not None
    log = session.state.selection.log
    assert log["candidates"], "the case must hold candidates"
    validate("selection_log", log)
    assert SelectionLog.model_validate(log).model_dump(mode="json") == log


def test_a_summary_fits_with_the_contract_s_keys_alone() -> None:
    turn = {"user": {"ref": "§13", "text": "ok"}, "assistant": {"ref": "§14", "text": "ok"}}
    bullets = [{"text": "The port is 6432.", "citations": ["§12"]}]
    validate("summary", {"bullets": bullets, "last_raw_turn": turn})


def test_what_a_summarizer_returns_fits() -> None:
    message = Message.from_wire({"role": "user", "content": "The port is 6432."})
    summary = FirstLine()(SummarizerInput(messages=(SourceMessage(ref="§1", message=message),)), budget_tokens=100)

    assert summary.bullets
    validate("summary", summary.model_dump(mode="json"))


def test_a_profile_fits_with_and_without_its_defaults() -> None:
    profile = ProfileDocument(
        policies=(ProfileEntry(id="refunds", text="Up to 50.", modality="may", value=50, unit="EUR"),),
        meta=(MetaRecord(id="pool", text="Pool exhaustion precedes 504s.", sources=("s-1§4",)),),
    )

    validate("profile", profile.model_dump(mode="json"))
    validate("profile", profile.model_dump(mode="json", exclude_defaults=True))


# -- forged values do not ----------------------------------------------------------------------------------


FIELDS = "schema_version, address, tenant, session, profile_version, sections, reports, findings, metrics, seal, rules"
DROPPED = object()
FORGED = [
    ("a field of its own", ["admin"], True, f'envelope: at $: found the unknown field "admin"; allowed are {FIELDS}'),
    (
        "a fifth section",
        ["sections", "root"],
        {},
        'envelope: at $.sections: found the unknown field "root"; allowed are system, static, meta, dynamic',
    ),
    (
        "a section that sets its own trust",
        ["sections", "dynamic", "trusted"],
        True,
        'envelope: at $.sections.dynamic: found the unknown field "trusted"; '
        "allowed are tokens, budget_tokens, overflow_tokens, epoch, content",
    ),
    (
        "content that carries a role",
        ["sections", "dynamic", "content", 0, "role"],
        "system",
        'envelope: at $.sections.dynamic.content[0]: found the unknown field "role"; '
        "allowed are kind, name, refs, tokens, text",
    ),
    (
        "a loss that hides",
        ["reports", 0, "losses"],
        [{"kind": "fact", "text": "x", "ref": "§1", "span": None, "hidden": 1}],
        'found the unknown field "hidden"; allowed are kind, text, ref, span',
    ),
    (
        "no dynamic section",
        ["sections", "dynamic"],
        DROPPED,
        "envelope: at $.sections: found no 'dynamic'; expected system, static, meta, dynamic",
    ),
    ("a later version", ["schema_version"], 2, "envelope: at $.schema_version: found 2; expected 1"),
    (
        "a budget below nothing",
        ["sections", "system", "budget_tokens"],
        -1,
        "envelope: at $.sections.system.budget_tokens: found -1; expected minimum 0",
    ),
    (
        "tokens as text",
        ["sections", "meta", "tokens"],
        "12",
        'envelope: at $.sections.meta.tokens: found "12"; expected integer',
    ),
    (
        "a kind of fragment that we do not lay out",
        ["sections", "dynamic", "content", 0, "kind"],
        "system",
        'found "system"; expected text, tools, observations, bullets, group, context, notes',
    ),
    (
        "a reference that breaks out of its line",
        ["sections", "dynamic", "content", 0, "refs"],
        ["§1\n"],
        'envelope: at $.sections.dynamic.content[0].refs[0]: found "§1\\n"; expected text that matches ^§',
    ),
    (
        "a metric that is not a number",
        ["metrics", "prompt_tokens"],
        "all",
        'envelope: at $.metrics.prompt_tokens: found "all"; expected number',
    ),
    ("a metric that is no JSON", ["metrics", "prompt_tokens"], float("nan"), "at $: Out of"),
    ("a value that is no JSON", ["tenant"], b"acme", "at $: Object of type bytes"),
    ("text that is no Unicode", ["tenant"], "\ud800", "surrogates not allowed"),
]
"""What is forged, the place of it, what stands there, and what the schema says."""


@pytest.mark.parametrize(("place", "value", "says"), [case[1:] for case in FORGED], ids=[case[0] for case in FORGED])
def test_a_forged_envelope_is_refused_with_its_place(place: list[Any], value: object, says: str) -> None:
    document = envelope_document()
    *above, key = place
    owner = reduce(lambda node, step: node[step], above, document)
    owner[key] = value
    if value is DROPPED:
        del owner[key]

    with pytest.raises(InputError) as refused:
        validate("envelope", document)

    assert says in str(refused.value)


def test_a_bullet_without_a_citation_is_refused() -> None:
    with pytest.raises(InputError, match=r"summary: at \$\.bullets\[0\]\.citations: found \[\]; expected minItems 1"):
        validate("summary", {"bullets": [{"text": "x", "citations": []}]})


def test_an_endless_or_bottomless_value_is_refused_not_followed() -> None:
    bottomless: list[Any] = []
    for _ in range(100_000):
        bottomless = [bottomless]
    endless: Json = {"role": "user"}
    endless["content"] = [{"type": "tool_result", "content": [endless]}]

    for value in ({"role": "user", "content": bottomless}, endless):
        with pytest.raises(InputError, match=r"at \$"):
            validate("message", value)


@pytest.mark.parametrize("ask", [schema, lambda name: validate(name, {})], ids=["schema", "validate"])
@pytest.mark.parametrize("name", ["envelop", "", "../message", "message.v1"])
def test_an_unknown_name_is_refused_with_the_known_ones(ask: Callable[[str], object], name: str) -> None:
    with pytest.raises(InputError, match="names: message, envelope, compression_report, summary"):
        ask(name)


def _nodes(node: object) -> list[Json]:
    if isinstance(node, dict):
        return [node, *(found for child in node.values() for found in _nodes(child))]
    if isinstance(node, list):
        return [found for child in node for found in _nodes(child)]
    return []


def _values_of(key: str, node: object) -> list[str]:
    return [found[key] for found in _nodes(node) if isinstance(found.get(key), str)]
