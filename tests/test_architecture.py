"""ARCHITECTURE.md and CONTRIBUTING.md name folders, functions and tests that are there, and the picture is new."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from .house import ROOT, modules, tracked
from .rooms import PAGE, picture

PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")
TEXT = {name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}
NAME = re.compile(r"`([A-Za-z_]\w*)(?:\.([a-z_]\w*))?(?:\(\))?`")


@cache
def defined() -> set[str]:
    """Classes, functions and their methods; names that modules and classes assign."""
    names: set[str] = set()
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return names


def test_the_picture_of_the_rooms_is_new() -> None:
    """Else: python -m tests.rooms"""
    assert picture() in PAGE.read_text(encoding="utf-8")


def test_each_folder_has_a_line() -> None:
    """In the rooms that have many."""
    read = modules()
    parents = {module.name.rpartition(".")[0] for module in read}
    folders = {module.name for module in read if module.is_package} & parents
    for room in ("store", "envelope", "steward"):
        section = TEXT["ARCHITECTURE.md"].partition(f"### {room}\n")[2].partition("\n#")[0]
        told = re.findall(r"^\| `([\w/]+)/` \|", section, re.MULTILINE)

        assert sorted(f"{room}.{name.replace('/', '.')}" for name in told) == sorted(
            folder for folder in folders if folder.startswith(f"{room}.")
        )


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page: str) -> None:
    known = defined() | set(
        re.findall(r"def (test_\w+)", "".join(path.read_text("utf-8") for path in tracked("tests/*.py")))
    )
    missing = [
        ".".join(filter(None, match))
        for match in NAME.findall(TEXT[page])
        if (match[0][:1].isupper() or "_" in match[0]) and not set(filter(None, match)) <= known
    ]
    paths = re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", TEXT[page])

    assert missing == []
    assert [
        path for path in paths if path.startswith(("tests/", "docs/", "evals/")) and not (ROOT / path).exists()
    ] == []
