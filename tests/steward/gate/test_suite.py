"""The eval gate: a challenger that is no worse passes, and one seeded defect a guard is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.steward.gate.port import Guard, GuardScores, judge_guards
from ctxsteward.steward.gate.suite import (
    GUARDS,
    FrozenGate,
    HeldOutRequest,
    anticipates,
    default_builder,
    load_suite,
    persona_consistency,
    shipped,
)


def record(id: str, text: str) -> MetaRecord:
    return MetaRecord(id=id, text=text, sources=("s-1§1",))


CHAMPION = ProfileDocument(
    name="desk",
    persona=(
        ProfileEntry(id="voice", text="You are a patient assistant who answers in plain words."),
        ProfileEntry(id="pace", text="Take one step at a time and wait for the answer."),
    ),
    policies=(
        ProfileEntry(id="privacy", text="Never reveal personal data of one customer to another.", locked=True),
        ProfileEntry(id="cite", text="Cite the page for every statement\nabout a price."),
    ),
    rails=(ProfileEntry(id="harm", text="Refuse requests that could harm a person.", locked=True),),
    surface=(ProfileEntry(id="length", text="Write at most 120 words per answer."),),
    meta=(
        record("brief", "Keep answers short and put the result first."),
        record("plain", "Write plain text, do not use tables in answers."),
        record("metric", "Give lengths in metric units, not in feet."),
    ),
)
LONG = " ".join(f"Somebody said on day {day} that the blue folder is the one to look into first." for day in range(12))


def changed(**update: object) -> ProfileDocument:
    return CHAMPION.model_copy(update=update)


def policies(*entries: ProfileEntry) -> ProfileDocument:
    return changed(policies=entries)


SHORT = shipped().model_copy(update={"cases": (shipped().cases[0], shipped().cases[2])})
"""One case in English and one in Chinese: enough to see a defect."""


def gate(**more: Any) -> FrozenGate:
    return FrozenGate(**{"suite": SHORT} | more)


class Defect(NamedTuple):
    guard: str
    challenger: ProfileDocument


PRIVACY, CITE = CHAMPION.policies
SLICE = tuple(
    record(f"r{n}", f"On day {n} somebody asked for the blue folder, and it was found at once.") for n in range(6)
)
DEFECTS = (
    Defect("policies_verbatim", policies(PRIVACY, CITE.model_copy(update={"text": "Cite pages now and then."}))),
    Defect("locked_present", changed(rails=())),
    Defect("canary_facts", changed(meta=(*CHAMPION.meta, record("wrong", "The new reading room opens on 20 March.")))),
    Defect("prefix_stable", changed(meta=SLICE)),
    Defect("section_budgets", changed(surface=(ProfileEntry(id="length", text=LONG * 3),))),
    Defect(
        "contradictions",
        changed(meta=(*CHAMPION.meta, record("leak", "Reveal personal data of one customer to another."))),
    ),
    Defect(
        "persona_consistency",
        changed(persona=(ProfileEntry(id="voice", text="You are an impatient assistant who answers in riddles."),)),
    ),
    Defect("hit_rate", changed(meta=())),
)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.guard)
def test_one_seeded_defect_is_refused_by_its_guard(defect: Defect) -> None:
    found = gate()(CHAMPION, defect.challenger)

    assert not found.passed
    assert defect.guard in found.failed


def test_every_guard_has_a_seeded_defect() -> None:
    assert [defect.guard for defect in DEFECTS] == [guard.name for guard in GUARDS]


def test_the_champion_itself_passes_and_every_guard_was_measured() -> None:
    found = FrozenGate()(CHAMPION, CHAMPION)

    assert found.passed
    assert {result.guard: (result.champion, result.fall) for result in found.results} == {
        "policies_verbatim": (1.0, 0.0),
        "locked_present": (1.0, 0.0),
        "canary_facts": (1.0, 0.0),
        "prefix_stable": (1.0, 0.0),
        "section_budgets": (1.0, 0.0),
        "contradictions": (0.0, 0.0),
        "persona_consistency": (1.0, 0.0),
        "hit_rate": (0.6, 0.0),
    }
    assert {pair.case for pair in found.pairs} == {"archive", "tour", "corner", "visit", "profile"} | {
        held.id for held in shipped().held
    }


def test_a_better_challenger_passes() -> None:
    more = record("cite", "引用资料时请注明出处，回答请简短。")

    found = gate()(CHAMPION, changed(meta=(*CHAMPION.meta, more)))

    assert found.passed
    assert found.results[-1].challenger == 1.0


def test_what_people_are_asked_about_counts_as_it_will_be() -> None:
    new = policies(PRIVACY, CITE.model_copy(update={"text": "Cite the page for each statement about a price."}))

    assert gate()(CHAMPION, new).failed == ("policies_verbatim",)
    assert gate(reviewed=frozenset(("policies.cite",)))(CHAMPION, new).passed


def test_the_first_version_is_measured_against_nothing() -> None:
    assert gate()(None, CHAMPION).passed
    assert gate()(None, changed(surface=(ProfileEntry(id="length", text=LONG * 3),))).failed[-1] == "section_budgets"


def test_the_same_replay_has_the_same_report() -> None:
    one, other = (gate()(CHAMPION, DEFECTS[0].challenger) for _ in range(2))

    assert one == other
    assert json.loads(json.dumps(one.document())) == json.loads(json.dumps(other.document()))
    assert "reading room" not in json.dumps(one.document())


def test_cases_are_long_enough_for_a_slice_to_be_cut() -> None:
    """Meta over its trigger is cut after more than four compactions: each case must get there."""
    for case in shipped().cases:
        session = memory_store().session(case.id, profile=Profile.from_document(CHAMPION))
        builder = default_builder()
        for message in case.messages:
            session.append(message.model_dump())
            if message.role == "user":
                envelope = builder.build(session)
        assert envelope.metrics["compactions"] > 4, case.id
        early = " ".join(message.content for message in case.messages[:12])
        assert {canary.text in early for canary in case.canaries} == {True}


def test_cases_and_builder_can_be_somebody_elses() -> None:
    suite = SHORT.holding([HeldOutRequest(id="mine", event="Mention the blue folder.")])
    mine = gate(
        suite=suite,
        guards=(Guard("hit_rate", "higher", 0.0),),
        builder=lambda: EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=2_000)),
    )

    assert mine(changed(meta=SLICE), CHAMPION).failed == ("hit_rate",)


# -- pieces ----------------------------------------------------------------------------------------------------


class Fall(NamedTuple):
    id: str
    guard: Guard
    values: tuple[tuple[float, float], ...]
    passed: bool


@pytest.mark.parametrize(
    "fall",
    [
        Fall("equal", Guard("g", "higher", 0.0), ((1.0, 1.0),), True),
        Fall("within the margin", Guard("g", "higher", 0.1), ((1.0, 0.9),), True),
        Fall("beyond the margin", Guard("g", "higher", 0.1), ((1.0, 0.8),), False),
        Fall("one case makes up for another", Guard("g", "higher", 0.0), ((1.0, 0.5), (0.5, 1.0)), True),
        Fall("lower is better", Guard("g", "lower", 0.0), ((0.0, 1.0),), False),
        Fall("lower and better", Guard("g", "lower", 0.0), ((1.0, 0.0),), True),
        Fall("no case", Guard("g", "higher", 0.0), (), True),
    ],
    ids=lambda fall: fall.id,
)
def test_margins(fall: Fall) -> None:
    pairs = [GuardScores(f"c{n}", "g", *values) for n, values in enumerate(fall.values)]

    assert judge_guards("s", (fall.guard,), pairs, None, CHAMPION).passed is fall.passed


def test_a_turned_persona_is_not_consistent_whatever_its_wording() -> None:
    turned = changed(persona=(CHAMPION.persona[0].model_copy(update={"text": "Never answer in plain words."}),))

    assert persona_consistency(CHAMPION, turned, frozenset()) == 0.0
    assert persona_consistency(CHAMPION, CHAMPION, frozenset()) == 1.0


@pytest.mark.parametrize(
    ("event", "hit"),
    [
        ("Please keep your answers short and put the result first.", 1.0),
        ("请简短回答。", 0.0),
        ("What is the weather like?", 0.0),
        (" … ", 0.0),
    ],
)
def test_anticipated_events(event: str, hit: float) -> None:
    assert anticipates(CHAMPION, HeldOutRequest(id="x", event=event)) == hit


@pytest.mark.parametrize(
    "break_it",
    [
        lambda tree: tree.update(schema_version=2),
        lambda tree: tree.pop("name"),
        lambda tree: tree["cases"][0].pop("question"),
        lambda tree: tree.update(held=[1]),
    ],
    ids=["version", "no name", "no question", "no held case"],
)
def test_a_suite_that_is_none_is_refused(break_it: Callable[[dict[str, object]], object], tmp_path: Path) -> None:
    tree = {
        "schema_version": 1,
        "name": "n",
        "held": [],
        "cases": [
            {
                "id": "a",
                "language": "en",
                "messages": [{"role": "user", "content": "Hello."}],
                "canaries": [],
                "question": "q",
            }
        ],
    }
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    assert load_suite(str(path)).name == "n"
    break_it(tree)
    path.write_text(json.dumps(tree), encoding="utf-8")

    with pytest.raises(InputError, match=r"cases\.json"):
        load_suite(str(path))
