"""Tables of cases that lie beside a test file, as YAML: long literal data, read where the file is collected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML


def table(test_file: str, name: str) -> Any:
    """What the file `name` beside this test file holds; `test_file` is the caller's `__file__`."""
    return YAML(typ="safe").load(Path(test_file).with_name(name))
