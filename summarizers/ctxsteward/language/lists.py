"""The loader of word and phrase lists: YAML files beside this module, each read when it is first asked for.

A file has some of these sections, each a mapping from a list's name to a block of text:

    words      parted by white space
    phrases    parted by ``;``; they may hold blanks
    classes    a class a line, its words parted by white space; the first word names the class
    rows       a row a line, for tables that are read by their own module
    patterns   regular expressions: a line is an alternative, or (`WordLists.lines`) an expression of its own

``{NAME}`` in rows and patterns stands for the fragment of that name in the section `parts`. `lists.schema.json` is the
published shape; `tests/language` holds every file to it and compiles every pattern.

>>> lists("words").words("stop")[:3], lists("units").classes("english")[0]
(('a', 'an', 'the'), ('ms', 'millisecond', 'milliseconds'))
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

_PART = re.compile(r"\{([A-Z][A-Z_]*)\}")


class WordLists(NamedTuple):
    """The lists of one file."""

    sections: dict[str, dict[str, str]]

    def words(self, name: str) -> tuple[str, ...]:
        """The words of a list, in its order."""
        return tuple(self.sections["words"][name].split())

    def phrases(self, name: str) -> tuple[str, ...]:
        """The phrases of a list, in its order."""
        text = " ".join(self.sections["phrases"][name].split())
        return tuple(phrase.strip() for phrase in text.split(";") if phrase.strip())

    def classes(self, name: str) -> tuple[tuple[str, ...], ...]:
        """The classes of a list: words of which the first stands for all."""
        return tuple(tuple(line.split()) for line in self.sections["classes"][name].splitlines())

    def rows(self, name: str) -> tuple[str, ...]:
        """The rows of a table, fragments filled in."""
        return self._filled("rows", name)

    def lines(self, name: str) -> tuple[str, ...]:
        """Regular expressions, each of its own."""
        return self._filled("patterns", name)

    def pattern(self, name: str, flags: int = 0) -> re.Pattern[str]:
        """The alternatives of a list as one regular expression."""
        return re.compile("|".join(self.lines(name)), flags)

    def _filled(self, section: str, name: str) -> tuple[str, ...]:
        parts = self.sections.get("parts", {})
        text = _PART.sub(lambda match: parts[match[1]], self.sections[section][name])
        return tuple(text.splitlines())


@lru_cache(maxsize=32)
def lists(name: str) -> WordLists:
    """The lists of ``data/NAME.yaml``."""
    from importlib.resources import files  # both on first use: `ctxsteward.envelope` imports this and reads no list yet

    from ruamel.yaml import YAML

    text = files(__package__).joinpath(f"data/{name}.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = YAML(typ="safe").load(text)
    return WordLists({section: lists for section, lists in document.items() if section != "about"})
