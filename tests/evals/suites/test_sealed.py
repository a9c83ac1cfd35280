"""The sealed split: every suite makes its scenarios, always the same, of words, tools and formats of its own."""

from __future__ import annotations

import json
from random import Random

import pytest

from ctxsteward.evals.canaries import normalize, shows
from ctxsteward.evals.phrasings import canary_phrasings, goal_phrasings
from ctxsteward.evals.steward_gate import SuiteGate
from ctxsteward.evals.suites.attacks import wrappings
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.goal_continuity import MANY, draw_aims
from ctxsteward.evals.suites.kit import pasted_content, sealed_formats
from ctxsteward.evals.suites.kit.suite import Draw, Scenario, drawn
from ctxsteward.schemas import InputError

from ...examples import SOAK

THINGS = ("the kiln", "a ledger", "rope", "lamp oil", "the ferry", "chalk")


def scenario(suite: str, split: str, number: int) -> Scenario:
    made: Scenario = suite_named(suite).make(Draw.parse(f"{suite}/{split}-{number}"))
    return made


@pytest.mark.parametrize("suite", NAMES)
def test_a_sealed_scenario_is_the_same_each_time_and_no_other_splits(suite: str) -> None:
    for number in (0, 1) if SOAK else (1, 2):  # number 0 is a long one
        made = scenario(suite, "sealed", number)
        assert made == scenario(suite, "sealed", number)
        assert made.id == f"{suite}/sealed-{number}"
        assert made.messages != scenario(suite, "ci", number).messages


@pytest.mark.parametrize("suite", NAMES)
def test_nothing_that_a_user_says_at_length_is_said_in_another_split(suite: str) -> None:
    def said(split: str) -> set[str]:
        wires = [
            wire for number in range(not SOAK, 6 if SOAK else 4) for wire in scenario(suite, split, number).messages
        ]
        texts = [str(wire["content"]) for wire in wires if wire["role"] == "user"]
        return {line for text in texts for line in text.splitlines() if len(line) > 20}

    sealed = said("sealed")
    assert sealed
    assert {line for line in sealed & (said("docs") | said("ci")) if "_" not in line} == set()


def test_a_sealed_draw_is_read_from_its_id() -> None:
    assert Draw.parse("cache/sealed-7") == Draw("cache", "sealed", 7)
    with pytest.raises(InputError, match="ids look like"):
        Draw.parse("cache/seal-7")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sealed_aims_are_never_ambiguous_and_each_stage_shows_its_own_mark(language: str) -> None:
    phrasings, slots = goal_phrasings(language).sealed, canary_phrasings(language).of("sealed").slots  # type: ignore[arg-type]
    for seed in range(60):
        for aim in draw_aims(Random(f"{language} {seed}"), phrasings, slots, MANY):
            marks = [stage.mark for stage in aim.stages]
            assert len(set(marks)) == len(marks), aim
            assert all(shows(normalize(stage.text), stage.mark) and len(stage.mark) > 2 for stage in aim.stages), aim


def test_what_is_planted_stands_in_no_message_that_does_not_plant_it() -> None:
    for draw in drawn("compression", "sealed", 4):
        made = suite_named("compression").make(draw)
        shown = [normalize(str(wire["content"])) for wire in made.messages]
        for canary, _ in made.asks[-1].planted:  # type: ignore[attr-defined]
            at = {n for n, text in enumerate(shown, 1) if shows(text, canary.value)}
            assert at == {canary.ordinals[-1]}, canary


def test_tools_and_formats_are_others() -> None:
    rng = Random(3)
    sealed = [pasted_content.tool_output(rng, THINGS, split="sealed") for _ in range(60)]
    assert {name for name, _, _ in sealed} == {name for name, _ in sealed_formats.TOOLS}
    assert {name for name, _ in sealed_formats.TOOLS}.isdisjoint({name for name, _ in pasted_content.TOOLS})
    for name, make in sealed_formats.FORMATS.items():
        few, many = (make(Random(name), THINGS, rows).count("\n") for rows in (3, 30))
        assert many > few, name
        json.dumps(make(Random(name), THINGS, 5))


def test_attacks_are_wrapped_in_other_ways() -> None:
    assert set(wrappings("sealed")).isdisjoint({*wrappings("docs"), *wrappings("ci")})


def test_the_steward_s_gate_does_not_open_it() -> None:
    with pytest.raises(InputError, match="is opened on record only"):
        SuiteGate(split="sealed")
