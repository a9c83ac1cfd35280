"""The shipped demo: a long run that holds what the demo wants to show, at places that docs may point at.

The place of a message is its index in the file. The system message is index 0 and takes no ordinal when a
session is opened with it, so index 23 is ``§23`` there.
"""

import json
import re
from importlib.resources import files
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope.tokens.encodings import load_encoding
from ctxsteward.schemas import Message
from ctxsteward.store.profiles.text import Profile, meta_text, static_blocks, system_blocks

DATA = files("ctxsteward.console") / "data"
LINES = (DATA / "demo.jsonl").read_text(encoding="utf-8").splitlines()
WIRES: list[dict[str, Any]] = [json.loads(line) for line in LINES]
MESSAGES = [Message.from_wire(wire) for wire in WIRES]


def _tokens(text: str) -> int:
    return len(load_encoding("o200k_base").encode_ordinary(text))


class Place(NamedTuple):
    what: str
    at: int
    role: str
    text: str


PLACES = [
    Place("safety rule", 6, "user", "nothing gets written to production"),
    Place("near-duplicate hosts and ports", 8, "user", "port 6432, staging is pg-stg.internal.example.com port 5433"),
    Place("constraint, stated once", 10, "user", "customer emails never go into tickets"),
    Place("refused query", 12, "tool", "permission denied"),
    Place("figure, first value", 15, "assistant", "37 orders are stuck"),
    Place("large log, decisive line in the middle", 22, "tool", "pool exhausted: 20/20 connections held"),
    Place("figure, second value", 71, "assistant", "41 now, up from 37"),
    Place("Chinese question", 72, "user", "事务和支付调用要怎么拆"),
    Place("Chinese answer", 73, "assistant", "幂等键只用订单号"),
    Place("decision, old value", 81, "user", "Retry budget in the new version: keep it at 5"),
    Place("error", 95, "tool", "No module named 'freezegun'"),
    Place("fix that worked", 97, "tool", "31 passed"),
    Place("preference", 135, "user", "I like numbers in tables"),
    Place("release day, old value", 143, "user", "Thursday, 12 November"),
    Place("figure, last value", 163, "assistant", "43. It was 37 at 07:58 and 41 after the rollback"),
    Place("open question", 184, "user", "Park it: do we refund the FX difference"),
    Place("decision, new value", 196, "user", "retry budget is 2, not 5"),
    Place("the same error again", 204, "tool", "No module named 'freezegun'"),
    Place("release day, new value", 216, "user", "Monday, 16 November"),
    Place("small talk", 246, "user", "robot potter"),
    Place("question about the constraint", 248, "user", "What did I say this morning about customer data"),
    Place("question about the decision", 250, "user", "what did I say about the retry budget"),
    Place("question about the ports", 252, "user", "Which port was staging's database"),
    Place("question about what is open", 254, "user", "what's still open"),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.what)
def test_what_the_demo_shows_is_where_docs_say(place: Place) -> None:
    wire = WIRES[place.at]
    assert wire["role"] == place.role
    assert place.text in wire["content"]


def test_the_constraint_is_stated_once_and_kept() -> None:
    stated = [i for i, wire in enumerate(WIRES) if wire["role"] == "user" and "emails never go" in wire["content"]]
    assert stated == [10]
    tickets = [
        call.arguments
        for message in MESSAGES
        for call in message.tool_calls
        if call.name in {"create_ticket", "update_ticket"}
    ]
    assert len(tickets) >= 8
    assert not [ticket for ticket in tickets if re.search(r"[\w.]+@[\w.]+\.\w+", ticket)]


def test_production_changes_only_after_a_go() -> None:
    said, goes = "", []
    for wire, message in zip(WIRES, MESSAGES, strict=True):
        said = wire["content"] if wire["role"] == "user" else said
        patches = [json.loads(call.arguments) for call in message.tool_calls if call.name == "apply_patch"]
        goes += ["go:" in said for patch in patches if patch["env"] == "production"]
    assert goes
    assert all(goes)


def test_the_decisive_line_stands_in_the_middle_of_a_large_result() -> None:
    log = WIRES[22]["content"]
    place = log.index("pool exhausted") / len(log)
    assert 2_500 <= _tokens(log) <= 3_500
    assert 0.35 <= place <= 0.65
    assert log.count("ERROR") == 1


def test_names_of_machines_and_people_are_reserved_for_examples() -> None:
    text = "\n".join(LINES)
    hosts = re.findall(r"[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|de|ch)\b", text)
    assert hosts
    assert {host for host in hosts if not re.search(r"(^|\.)example\.(com|net)$", host)} == set()
    assert not re.findall(r"\b(?:\d[ -]?){13,19}\b", text)  # a card number
    assert not re.findall(r"sk-\w{8}|ghp_|AKIA|BEGIN [A-Z ]*PRIVATE KEY|://[^/\s\"]+:[^/\s\"]+@", text)


def test_the_head_fits_the_default_budgets_together_with_the_system_message() -> None:
    profile = Profile.from_yaml((DATA / "demo-profile.yaml").read_text(encoding="utf-8"))
    assert _tokens("\n".join(block.text for block in system_blocks(profile))) <= 90
    assert _tokens(WIRES[0]["content"]) <= 140
    assert _tokens("\n".join(block.text for block in static_blocks(profile))) <= 360
    assert 2 <= len(profile.meta) <= 3
    assert _tokens(meta_text(profile)) <= 144  # under the trigger: 0.8 of 180


def test_sending_everything_costs_about_eighteen_thousand_tokens() -> None:
    assert 17_000 <= sum(_tokens(line) for line in LINES) <= 26_000
