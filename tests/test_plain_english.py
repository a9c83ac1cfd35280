"""Some riddles of our prose are found by their words: entry pages have none, and the rest of the tree gets no more.

The figures are of all pages, docstrings and strings of the product. A lower figure is written here when it is reached.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from .named_things import ROOMS, ROOT, facts, tracked

RIDDLES = {
    "whoever": r"\b[Ww]ho(?:m)?ever\b",
    "of which": r"\bof which\b",
    "None: it is": r"\bNone: (?:it|there|nothing|nobody)\b",
    "is none": r"\b(?:is|are|it's) none\b(?! of)",
}
ENTRY_PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md")
AT_MOST = {"whoever": 84, "of which": 52, "None: it is": 42, "is none": 78}


@cache
def said() -> dict[str, str]:
    """Pages, and docstrings and strings of each module of the product."""
    texts = {}
    for path in tracked():
        if path.endswith(".md") and path != "CHANGELOG.md":
            texts[path] = (ROOT / path).read_text(encoding="utf-8")
        elif path.endswith(".py") and path.startswith(tuple(f"{room}/" for room in ROOMS)):
            texts[path] = "\n".join([*(text for _, text in facts(path).docstrings), *facts(path).strings])
    return texts


def found(pattern: str, *, pages: tuple[str, ...] | None = None) -> list[str]:
    texts = {page: said()[page] for page in pages} if pages else said()
    return [f"{path}: {match[0]}" for path, text in texts.items() for match in re.finditer(pattern, text)]


@pytest.mark.parametrize("riddle", RIDDLES)
def test_entry_pages_have_no_riddles(riddle: str) -> None:
    assert found(RIDDLES[riddle], pages=ENTRY_PAGES) == []


@pytest.mark.parametrize("riddle", RIDDLES)
def test_the_tree_gets_no_more_riddles(riddle: str) -> None:
    count = len(found(RIDDLES[riddle]))
    assert len(said()) > 400
    assert count <= AT_MOST[riddle], "write it plainly: subject, verb, object"
    print(f"{riddle}: {count} of at most {AT_MOST[riddle]}")


@pytest.mark.parametrize(
    ("riddle", "text"),
    [
        ("whoever", "Whoever loses it has lost the store."),
        ("of which", "The price of a prompt of which nothing was cached."),
        ("None: it is", "None: it is none, or it has ended."),
        ("is none", "store 'x' is none; write file:PATH"),
    ],
)
def test_a_riddle_is_found(riddle: str, text: str) -> None:
    assert re.search(RIDDLES[riddle], text)
    assert not re.search(RIDDLES[riddle], "Return the open canary for this version, or None if there is none of them.")
