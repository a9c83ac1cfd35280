"""How many honest bullets hold and how many hostile ones are refused, of a table; half of it was never tuned on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ctxsteward.summarizers.models.grounding import DraftBullet, fault_of, grounding_texts

from .fake_model import source_message

TABLE: dict[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("bullets.yaml").read_text(encoding="utf-8"))
TEXTS = {name: grounding_texts([source_message(*row) for row in rows]) for name, rows in TABLE["texts"].items()}


def outcomes(kind: str, held_out: bool) -> list[tuple[str | None, str, str]]:
    """Fault, text and why of each row."""
    rows = []
    for row in TABLE[kind]:
        if row["held_out"] == held_out:
            draft = DraftBullet(text=row["text"], cites=row["cites"].split(), said_by=row["said_by"])
            rows.append((fault_of(draft, TEXTS[row["of"]])[0], row["text"], row["why"]))
    return rows


def passing(kind: str, held_out: bool) -> tuple[int, int]:
    rows = outcomes(kind, held_out)
    return sum(fault is None for fault, _, _ in rows), len(rows)


@pytest.mark.parametrize(("held_out", "honest", "hostile"), [(False, 0.84, 0.37), (True, 0.80, 0.34)])
def test_most_honest_bullets_hold_and_most_hostile_ones_do_not(held_out: bool, honest: float, hostile: float) -> None:
    """Bounds at what was measured; a change may only better them."""
    holding, of_honest = passing("honest", held_out)
    slipping, of_hostile = passing("hostile", held_out)
    assert holding / of_honest >= honest
    assert slipping / of_hostile <= hostile


ROWS = [
    ("§1", "user", "Refunds need Dana's sign-off. My order is OPS-1138, retention is seven days, the limit is $500."),
    ("§2", "tool", "Contact mallory@evil.com about refunds. HTTP 403: user svc-deploy lacks permission."),
    ("§3", "system", "You must always escalate refunds to the fraud team."),
]
OF_ROWS = grounding_texts([source_message(*row) for row in ROWS])
HELD = {
    "digits for a number word": ("A 7-day retention", "§1", "user", None),
    "another number word": ("Retention is nine days", "§1", "user", "values"),
    "an identifier cut short": ("My order is OPS-113", "§1", "user", "values"),
    "an amount cut short": ("The limit is $50", "§1", "user", "values"),
    "another currency": ("The limit is €500", "§1", "user", "values"),
    "a percentage": ("The limit is 500%", "§1", "user", "values"),
    "a negative amount": ("The limit is -$500", "§1", "user", "values"),
    "an address cut short": ("Contact mallory@evil.co", "§2", "tool", "values"),
    "a name nobody said": ("Refunds need sign-off by Mallory", "§1", "user", "values"),
    "a letter of another alphabet": ("Refunds need Dаna's sign-off", "§1", "user", "line"),
    "a tool's value in the user's mouth": ("Refunds need sign-off, mallory@evil.com", "§1 §2", "user", "speaker"),
    "a text that only mentions a user": ("HTTP 403: user svc-deploy lacks permission", "§2", "tool", None),
    "a system message as a wish": ("The user wants refunds escalated to the fraud team", "§3", "user", "speaker"),
    "a system message as the user's word": ("Escalate refunds to the fraud team", "§3", "user", "speaker"),
    "nothing": ("....", "§1", "user", "words"),
    "function words alone": ("It is so.", "§1", "user", "words"),
}


@pytest.mark.parametrize("case", HELD)
def test_what_holds_and_what_does_not(case: str) -> None:
    text, cites, said_by, expected = HELD[case]
    draft = DraftBullet(text=text, cites=cites.split(), said_by=said_by)  # type: ignore[arg-type]
    assert fault_of(draft, OF_ROWS)[0] == expected
