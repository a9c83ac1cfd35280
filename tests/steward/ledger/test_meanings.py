"""What several people mean alike: asked of a person, whatever their words; alone it is nothing."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import is_asked
from ctxsteward.steward.artifacts.artifact import build_artifact
from ctxsteward.steward.harvest.harvester import harvest, lasting

from ..harvest.tools.scenes import scene, tells
from ..scenes import AGENT, TENANT, memory_store

WORDINGS = Path(__file__).parents[1] / "reconcile"
FOUND, NONSENSE = 0.8, 0.2
MOST = 0.6
"""Of the quotes of one question, those of one group."""


def records(texts: list[tuple[str, str]]) -> list[MetaRecommendation]:
    """What comes of so many talks, each of one person who says one thing."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        for number, (who, text) in enumerate(texts):
            lines = ("Hello, can you help?", tells(2, "Of course, what is it?", who, "assistant"), tells(3, text, who))
            one = scene(*lines, session=f"s{number}", principal=who)
            key = store.keys.address_key(TENANT)
            ledger.absorb(*build_artifact(one, lasting(harvest(one)), extractor="harvest/1", key=key))
        return list(ledger.records())


@pytest.mark.parametrize("half", ["dev", "held_out"])
def test_four_of_five_groups_reach_a_person_and_little_else_does(half: str) -> None:
    tables = YAML(typ="safe").load((WORDINGS / f"several_people_{half}.yaml").read_text(encoding="utf-8"))
    groups = [row.split(" | ") for row in tables["groups"].splitlines()]
    noise = tables["noise"].splitlines()
    texts = [(f"p{at}-{n}", text) for at, group in enumerate(groups) for n, text in enumerate(group)]
    made = records([*texts, *((f"n{n}", text) for n, text in enumerate(noise))])
    asked = [one for one in made if one.status == "active" or is_asked(one)]
    quoted = [Counter(f"{place.principal}".partition("-")[0] for place in one.evidence) for one in asked]
    mostly = [who.most_common(1)[0] for who in quoted]
    right = {who for (who, times), all_ in zip(mostly, quoted, strict=True) if times >= MOST * all_.total()}
    assert (len(groups), len(noise)) == (30, 30)
    assert len(right) >= FOUND * len(groups)
    assert len(asked) - len(right) <= NONSENSE * len(asked)


def test_what_is_asked_has_its_count_its_quotes_and_why_it_is_not_in_force() -> None:
    (one,) = records(
        [("ann", "Metric units please."), ("ben", "Use metric units."), ("cleo", "Only metric units for me.")]
    )
    assert (one.status, one.reasons, one.support.principals) == ("vetted", ("alike",), 3)
    assert {place.principal for place in one.evidence} == {"ann", "ben", "cleo"}


def test_two_people_are_too_few_and_one_person_thrice_is_one() -> None:
    assert records([("ann", "Metric units please."), ("ben", "Use metric units.")]) == []
    assert records([("ann", "Metric units please."), ("Ann", "Use metric units."), ("аnn", "Just metric units.")]) == []


def test_what_most_people_say_is_a_move_of_talk() -> None:
    assert (
        records([(f"p{n}", ("Splendid idea, go ahead.", "Splendid, go ahead then.")[n % 2]) for n in range(30)]) == []
    )


def test_the_groups_depend_neither_on_the_order_nor_on_a_tenant_s_keys() -> None:
    tables = YAML(typ="safe").load((WORDINGS / "several_people_dev.yaml").read_text(encoding="utf-8"))
    rows = [row.split(" | ") for row in tables["groups"].splitlines()]
    texts = [(f"p{at}-{n}", text) for at, row in enumerate(rows) for n, text in enumerate(row)]
    once = {(one.text, one.support.principals) for one in records(texts)}
    mixed = random.Random(1).sample(texts, len(texts))
    assert once == {(one.text, one.support.principals) for one in records(mixed)}
    assert len(once) >= 24
