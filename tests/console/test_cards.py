"""``ctxsteward cards``: rebuild and ls on a real store, for people and machines, and how they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from ctxsteward.console.cli import cli
from ctxsteward.envelope import open_store
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.schemas.publish import validate

from ..postgres import postgres, postgres_dsn

__all__ = ["postgres", "postgres_dsn"]  # fixtures

LONG = "Refunds above $500 need Dana's sign-off. " + "The weather was discussed at some length. " * 10


def run(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == code, result.output or result.exception
    return result


def value(*args: str, code: int = 0) -> Any:
    (line,) = run(*args, "--json", code=code).stdout.splitlines()
    return json.loads(line)


@pytest.fixture
def store(tmp_path: Path) -> str:
    from ctxsteward.envelope.tokens.tokenizer import Counter

    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri) as opened:
        for name in ("one", "two"):
            session = opened.session(name, counter=Counter(CharTokenizer()))
            session.append({"role": "user", "content": LONG}, phase="research", pin="keep")
            session.append({"role": "assistant", "content": "Noted.\x1b[31m"})
            session.append({"role": "user", "content": "And now?"}, phase="write")
    return uri


def test_cards_are_rebuilt_and_listed(store: str) -> None:
    assert value("cards", "rebuild", "--store", store) == {"sessions": 2, "messages": 6, "cards": 6, "findings": []}
    listed = value("cards", "ls", "one", "--store", store)
    assert [(card["ref"], card["phase_name"], card["generator_model"]) for card in listed] == [
        ("§1", "research", "extractive"),
        ("§2", "research", "fast-path"),
        ("§3", "write", "fast-path"),
    ]
    assert "Refunds above $500 need Dana's sign-off." in listed[0]["summary"]
    for card in listed:
        validate("context_card", card)
    shown = run("cards", "ls", "one", "--store", store, "--phase", "research").stdout
    assert "anchor" in shown
    assert "Noted. [31m" in shown
    assert "§3" not in shown
    assert [card["ref"] for card in value("cards", "ls", "one", "--store", store, "--ref", "3", "--ref", "§9")] == [
        "§3"
    ]


def test_one_session_is_rebuilt_with_another_summarizer(store: str) -> None:
    done = run("cards", "rebuild", "--store", store, "--session", "two", "--summarizer", "leading").stdout
    assert done == "3 cards of 3 messages in 1 sessions\n"
    (card,) = value("cards", "ls", "two", "--store", store, "--ref", "§1")
    assert card["generator_model"] == "leading_sentences"
    missing = run("cards", "ls", "one", "--store", store)
    assert "no cards" in missing.stdout
    assert "carded up to §0 of 3 messages" in missing.stderr


def test_cards_of_postgresql_are_those_of_a_file(store: str, postgres_dsn: str) -> None:
    listed = []
    for index in (("--store", store), ("--store", store, "--cards", postgres_dsn)):
        run("cards", "rebuild", *index)
        listed.append([{**card, "generated_at": ""} for card in value("cards", "ls", "one", *index)])
    assert listed[0] == listed[1] != []


CANARY = "xyzzyplugh"
TOLD = ("--session", "chat", "--who", "ann", "--why", "asked")


def holders(folder: Path) -> list[str]:
    """Files below a folder that hold the canary, their suffixes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path.name for path in files if CANARY.encode() in path.read_bytes()]


@pytest.fixture
def transcript(tmp_path: Path) -> str:
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"role": "user", "content": f"The canary word is {CANARY}."}) + "\n", "utf-8")
    return str(path)


class Place(NamedTuple):
    id: str
    env: dict[str, str]
    cards: str
    """Where they lie below the folder of the test."""


PLACES = [
    Place("in the store", {}, "all/store/cards.sqlite"),
    Place("beside a journal elsewhere", {"CTXSTEWARD_JOURNAL": "{tmp}/all/journal"}, "all/journal/cards.sqlite"),
    Place("where the environment says", {"CTXSTEWARD_CARDS": "sqlite:{tmp}/all/c.db"}, "all/c.db"),
]


@pytest.mark.parametrize("place", PLACES, ids=[place.id for place in PLACES])
def test_making_listing_and_forgetting_find_the_same_cards(place: Place, transcript: str, tmp_path: Path) -> None:
    env = {name: value.format(tmp=tmp_path) for name, value in place.env.items()}
    where = ["--store", f"file:{tmp_path / 'all' / 'store'}"]
    runner = CliRunner()
    for args in (["build", transcript], ["cards", "rebuild"]):
        assert runner.invoke(cli, [*args, *where], env=env).exit_code == 0
    index = tmp_path / place.cards
    assert CANARY.encode() in index.read_bytes()
    assert len(json.loads(runner.invoke(cli, ["cards", "ls", "chat", "--json", *where], env=env).stdout)) == 1

    done = runner.invoke(cli, ["store", "forget", *TOLD, "--json", *where], env=env)
    assert json.loads(done.stdout)["elsewhere"] == 1
    assert holders(tmp_path / "all") == []


def test_forgetting_names_an_index_that_is_not_there_before_anything_is_gone(transcript: str, tmp_path: Path) -> None:
    where = ("--store", f"file:{tmp_path / 'store'}")
    run("build", transcript, *where)
    run("cards", "rebuild", *where)
    refused = run("store", "forget", *TOLD, "--cards", f"sqlite:{tmp_path / 'none'}", *where, code=2)
    assert "no such file" in refused.stderr
    assert len(value("cards", "ls", "chat", *where)) == 1
    other = f"sqlite:{tmp_path / 'other'}"
    run("cards", "rebuild", "--cards", other, *where)
    assert json.loads(run("store", "forget", *TOLD, "--cards", other, "--json", *where).stdout)["elsewhere"] == 2
    assert set(holders(tmp_path)) == {"chat.jsonl"}
