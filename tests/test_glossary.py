"""Each word of the glossary has one entry, and the type that it names is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

GLOSSARY = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([a-z][a-z ]*) \| .+ \| `(ctxsteward\.[\w.]+)` \|$", re.MULTILINE)
ROOMS = GLOSSARY.split("\n## ")[1:]


def test_the_type_behind_a_word_is_there() -> None:
    types = {path: path.rpartition(".") for _, path in ROW.findall(GLOSSARY)}

    assert [path for path, (module, _, name) in types.items() if not hasattr(import_module(module), name)] == []


def test_every_row_names_a_type() -> None:
    assert len(ROW.findall(GLOSSARY)) == len(re.findall(r"^\| [a-z]", GLOSSARY, re.MULTILINE)) - len(ROOMS)


def test_a_word_has_one_entry_and_each_room_is_in_alphabetical_order() -> None:
    words = [[word for word, _ in ROW.findall(room)] for room in ROOMS]

    assert words == [sorted(room) for room in words]
    assert len({word for room in words for word in room}) == sum(map(len, words))
