"""``ctxsteward cards``: rebuild and ls on a real store, for people and machines, and how they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import open_store
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.schemas.publish import validate

from .commands import run, value

LONG = "Refunds above $500 need Dana's sign-off. " + "The weather was discussed at some length. " * 10


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
    (card,) = value("cards", "ls", "two", "--store", store, "--ref", "§1", "--summarizer", "leading")
    assert card["generator_model"] == "leading_sentences"


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


@pytest.mark.parametrize("journal", ["", "all/journal"], ids=["in the store", "with a journal elsewhere"])
def test_cards_are_kept_beside_the_journal_and_forgotten(journal: str, transcript: str, tmp_path: Path) -> None:
    env = {"CTXSTEWARD_JOURNAL": str(tmp_path / journal)} if journal else {}
    where = ["--store", f"file:{tmp_path / 'all' / 'store'}"]
    runner = CliRunner()
    for args in (["build", transcript], ["cards", "rebuild"]):
        assert runner.invoke(cli, [*args, *where], env=env).exit_code == 0
    assert any("cards" in name for name in holders(tmp_path / (journal or "all/store")))
    assert len(json.loads(runner.invoke(cli, ["cards", "ls", "chat", "--json", *where], env=env).stdout)) == 1

    assert runner.invoke(cli, ["store", "forget", *TOLD, *where], env=env).exit_code == 0
    assert holders(tmp_path / "all") == []
