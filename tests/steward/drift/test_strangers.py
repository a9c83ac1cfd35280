"""A locked line is taken back in words that are not its own: no reading finds that, so two people are always asked.

The share that is blocked stands in ``docs/design/009-drift.md``; run this file as a program to print it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry
from ctxsteward.steward.admission import AdmissionPolicy, RecordStanding, under_rules
from ctxsteward.steward.drift.report import report
from ctxsteward.steward.release.approvals import people_needed

from ..test_admission import claimed

RULES = YAML(typ="safe").load(Path(__file__).with_name("strangers.yaml").read_text(encoding="utf-8"))
DESK = ProfileDocument(
    name="desk",
    policies=tuple(ProfileEntry(id=f"rule-{at}", text=rule["line"], locked=True) for at, rule in enumerate(RULES)),
)
FLIPS = tuple(text for rule in RULES for text in rule["flips"])
ACTIVE = RecordStanding("active", ("confirmed",))


def with_line(text: str) -> ProfileDocument:
    return DESK.model_copy(update={"surface": (ProfileEntry(id="new", text=text),)})


def blocked() -> Iterator[str]:
    """Lines that the drift report calls a contradiction."""
    return (text for text in FLIPS if report(DESK, with_line(text)).level == "BLOCK")


def test_there_are_enough_of_them() -> None:
    assert len(FLIPS) == len(set(FLIPS)) >= 30


def test_a_line_in_other_words_asks_two_people() -> None:
    assert {text: people_needed(report(DESK, with_line(text))) for text in FLIPS} == dict.fromkeys(FLIPS, 2)


def test_a_claim_in_other_words_comes_into_force_by_no_number_of_voices() -> None:
    made = {text: claimed(text, kind="correction", attribute="correction:other") for text in FLIPS}
    statuses = {text: under_rules(ACTIVE, one, AdmissionPolicy().under(DESK)).status for text, one in made.items()}
    assert [text for text in FLIPS if statuses[text] == "active"] == []


if __name__ == "__main__":
    found = list(blocked())
    asked = [text for text in FLIPS if people_needed(report(DESK, with_line(text))) == 2]
    print(f"blocked {len(found)} of {len(FLIPS)}; two people asked {len(asked)} of {len(FLIPS)}")
