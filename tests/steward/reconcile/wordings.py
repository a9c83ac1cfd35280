"""Facts in three wordings each, and pairs that must never become one: the tables of ``wordings.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ruamel.yaml import YAML

_TABLES = YAML(typ="safe").load((Path(__file__).parent / "wordings.yaml").read_text(encoding="utf-8"))


class Facts(NamedTuple):
    """Five facts of one person, each in three wordings."""

    name: str
    facts: tuple[tuple[str, str, str], ...]


class Pair(NamedTuple):
    """Two claims that are two."""

    one: str
    other: str
    why: str


def _rows(text: str) -> tuple[tuple[str, str, str], ...]:
    rows = [tuple(line.split(" | ")) for line in text.splitlines()]
    return tuple((one, two, three) for one, two, three in rows)


def _facts(name: str) -> tuple[Facts, ...]:
    return tuple(Facts(person, _rows(text)) for person, text in _TABLES[name].items())


SETS, FRESH, LATER = _facts("sets"), _facts("fresh"), _facts("later")
DIFFERENT, FRESH_DIFFERENT = (
    tuple(Pair(*row) for row in _rows(_TABLES[name])) for name in ("different", "fresh_different")
)
