"""The gate as an application has it: its budgets, its cases, its margins; and replays that are made once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope.building.builder import EnvelopeBuilder
from ctxsteward.schemas import ContextError, InputError
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.steward.gate.settings import GateSettings, HeadBudgets, configured, with_suites
from ctxsteward.steward.gate.suite import FrozenGate, HeldOutRequest, default_builder, load_suite, shipped


def record(text: str) -> MetaRecord:
    """One that a night has harvested."""
    return MetaRecord(id=f"{len(text):016x}", text=text, sources=("s-1§1",))


def desk(*texts: str, policy: str = "Cite the page for every statement about a price.") -> ProfileDocument:
    policies = (ProfileEntry(id="cite", text=policy),)
    persona = (ProfileEntry(id="voice", text="You are a patient assistant."),)
    return ProfileDocument(name="desk", persona=persona, policies=policies, meta=tuple(map(record, texts)))


FIRST = desk("Keep answers short and put the result first.")
SECOND = desk("Keep answers short and put the result first.", "Name the shelf of each book.")
CASES = """
name: desk/1
cases:
  - id: parcel
    messages: [{role: user, content: My parcel AX-1 is lost.}, {role: assistant, content: I see.}]
    canaries: [{text: AX-1, says: The lost parcel is AX-1.}]
    question: Which parcel was lost?
held:
  - {id: shelf, event: Please name the shelf of the book.}
"""


@pytest.fixture
def cases(tmp_path: Path) -> str:
    (tmp_path / "gate.yaml").write_text(CASES)
    return str(tmp_path / "gate.yaml")


# -- cases ---------------------------------------------------------------------------------------------------


def test_own_cases_are_replayed_beside_the_shipped_ones(cases: str) -> None:
    found = configured(GateSettings(cases=cases))(FIRST, SECOND)

    by_case = {pair.case for pair in found.pairs}
    assert {"parcel", "shelf", "archive"} <= by_case
    assert found.suite == "frozen/1 + desk/1"
    assert [(p.champion, p.challenger) for p in found.pairs if p.case == "shelf"] == [(0.0, 1.0)]
    assert [(p.champion, p.challenger) for p in found.pairs if p[:2] == ("parcel", "canary_facts")] == [(1.0, 1.0)]


def test_a_json_file_says_the_same(tmp_path: Path, cases: str) -> None:
    import json

    whole = load_suite(cases)
    tree = {
        "name": whole.name,
        "held": [one.model_dump() for one in whole.held],
        "cases": [one.model_dump() for one in whole.cases],
    }
    (tmp_path / "gate.json").write_text(json.dumps(tree, indent=1))
    assert load_suite(str(tmp_path / "gate.json")) == whole


def test_evals_that_failed_are_held_cases() -> None:
    held = (HeldOutRequest(id="failure-1", event="name the shelf of the book"),)

    assert configured(GateSettings(margins={"hit_rate": 0.0}), held)(SECOND, FIRST).failed == ("hit_rate",)
    assert configured(GateSettings(margins={"hit_rate": 0.0}))(SECOND, FIRST).passed


class Bad(NamedTuple):
    id: str
    text: str
    names: str


def case(**more: Any) -> str:
    import json

    told = {"id": "a", "messages": [{"role": "user", "content": "Hello."}], "question": "q"} | more
    return json.dumps({"name": "n", "cases": [told]})


BAD = (
    Bad("no name", "cases: []", "name: found nothing"),
    Bad(
        "unknown key",
        "name: n\ncasses: []",
        "gate.yaml:2: casses: no such key; allowed: schema_version, name, cases, held",
    ),
    Bad("unknown key of a case", case(question_="x"), "cases.0.question_: no such key; allowed: id, language"),
    Bad("another version", "name: n\nschema_version: 2", "schema_version"),
    Bad(
        "no question",
        '{"name": "n", "cases": [{"id": "a", "messages": [{"role": "user", "content": "x"}]}]}',
        "cases.0.question: found nothing",
    ),
    Bad("no message", case(messages=[]), "cases.0.messages: found a list"),
    Bad(
        "a role that is none",
        case(messages=[{"role": "system", "content": "x"}]),
        "cases.0.messages.0.role: found the text 'system'",
    ),
    Bad(
        "an empty text",
        case(messages=[{"role": "user", "content": ""}]),
        "cases.0.messages.0.content: found the text ''",
    ),
    Bad(
        "a canary that nobody says", case(canaries=[{"text": "AX-1", "says": "x"}]), "no message says the canary 'AX-1'"
    ),
    Bad("an id that is none", case(id="A b"), "cases.0.id: found the text 'A b'"),
    Bad("an id twice", "name: n\nheld: [{id: a, event: x}, {id: a, event: y}]", "the id 'a' is there twice"),
    Bad("a held case without words", "name: n\nheld: [{id: a}]", "held.0.event: found nothing"),
    Bad("a list", "- a", "a list; write a mapping with: name, cases, held"),
    Bad("no YAML", "a: [", "no YAML"),
    Bad("too large", "name: " + "x" * (1 << 20), "bytes"),
)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.id)
def test_a_file_of_cases_that_is_wrong_is_refused_by_key(bad: Bad, tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text(bad.text)
    with pytest.raises(ContextError) as refused:
        load_suite(str(tmp_path / "gate.yaml"))

    assert bad.names in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_id_of_a_shipped_case_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text(f"name: n\nheld: [{{id: {shipped().cases[0].id}, event: x}}]")
    with pytest.raises(ContextError, match="is in 'frozen/1' already"):
        GateSettings(cases=str(tmp_path / "gate.yaml")).suite()


# -- budgets -------------------------------------------------------------------------------------------------


def test_budgets_of_the_application_decide_what_fits() -> None:
    long = desk(policy=" ".join(f"Page {n} is cited for every price." for n in range(30)))
    roomy = GateSettings(budgets=HeadBudgets(system_tokens=600))

    assert configured(GateSettings())(long, long).results[4].champion == 0.0
    assert configured(roomy)(long, long).results[4].champion == 1.0
    assert roomy.builder().budgets.fixed("system")
    assert not roomy.builder().budgets.fixed("meta")


def test_the_models_tokenizer_counts() -> None:
    assert GateSettings(model="gpt-4").builder().counter.tokenizer.name == "cl100k_base"
    assert GateSettings().builder().counter.tokenizer.name == "o200k_base"
    assert GateSettings(model="gpt-4", tokenizer="o200k_base").builder().counter.tokenizer.name == "o200k_base"


# -- replays -------------------------------------------------------------------------------------------------


ONE_CASE = shipped().model_copy(update={"cases": shipped().cases[:1]})


def test_a_champion_is_replayed_once_for_both_where_it_is_the_challenger() -> None:
    made: list[EnvelopeBuilder] = []

    def builder() -> EnvelopeBuilder:
        made.append(default_builder())
        return made[-1]

    assert FrozenGate(builder=builder, suite=ONE_CASE)(FIRST, FIRST).passed
    assert len(made) == 2, "two builders a replay"


# -- suites beside the cases ---------------------------------------------------------------------------------


CHAMPION = ProfileDocument(persona=(ProfileEntry(id="who", text="You help the people of a library."),))
TOO_LONG = ProfileDocument(persona=(ProfileEntry(id="who", text="You help. " * 400),))


def test_without_suites_the_frozen_gate_stands_alone() -> None:
    frozen = configured(GateSettings())
    assert with_suites(GateSettings(), frozen) is frozen


def test_a_report_has_the_guards_of_both() -> None:
    settings = GateSettings(suites=("verbatim",))
    gate = with_suites(settings, FrozenGate(suite=ONE_CASE))
    report = gate(CHAMPION, TOO_LONG)
    names = [result.guard for result in report.results]
    assert {"policies_verbatim", "verbatim.last_assistant", "verbatim.finished"} <= set(names)
    assert report.suite.endswith(" and verbatim, 2 scenarios of docs")
    assert "verbatim.finished" in report.failed


def test_a_suite_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="unknown eval suite 'verbatm'"):
        with_suites(GateSettings(suites=("verbatm",)), configured(GateSettings()))
