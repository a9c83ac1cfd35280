"""What people say, with what it is: lists of ``said.en.yaml`` and ``said.zh.yaml``, and tables of ``cases.yaml``."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from ruamel.yaml import YAML


def _sets(name: str) -> SimpleNamespace:
    """A text is a list of its lines; what is no text is a table."""
    tables = YAML(typ="safe").load(Path(__file__).with_name(name))
    return SimpleNamespace(
        **{name.upper(): table.splitlines() if isinstance(table, str) else table for name, table in tables.items()}
    )


said_en, said_zh, cases = _sets("said.en.yaml"), _sets("said.zh.yaml"), _sets("cases.yaml")
