"""What people say, with what it is: the lists of ``said.en.yaml`` and ``said.zh.yaml``, a sentence a line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from ruamel.yaml import YAML


def _sets(language: str) -> SimpleNamespace:
    text = (Path(__file__).parent / f"said.{language}.yaml").read_text(encoding="utf-8")
    return SimpleNamespace(**{name.upper(): lines.splitlines() for name, lines in YAML(typ="safe").load(text).items()})


said_en, said_zh = _sets("en"), _sets("zh")
