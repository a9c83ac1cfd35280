"""Word lists: every file has the published shape, every pattern compiles, no list is there for nobody."""

import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from ctxsteward.language.words import lists

PACKAGE = files("ctxsteward.language")
NAMES = sorted(Path(str(file)).stem for file in (PACKAGE / "data").iterdir())
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_the_published_shape(name: str) -> None:
    schema = json.loads((PACKAGE / "lists.schema.json").read_text(encoding="utf-8"))
    document = tomllib.loads((PACKAGE / "data" / f"{name}.toml").read_text(encoding="utf-8"))

    jsonschema.validate(document, schema)
    assert " ".join(re.findall(r"\S+", document["about"])) == document["about"].strip()


@pytest.mark.parametrize("name", NAMES)
def test_every_pattern_compiles_and_every_fragment_is_used(name: str) -> None:
    found = lists(name)

    for pattern in found.sections.get("patterns", {}):
        assert all(re.compile(line) for line in found.lines(pattern)), pattern
    for row in (row for table in found.sections.get("rows", {}) for row in found.rows(table)):
        assert re.search(r"\{[A-Z]", row) is None
    text = json.dumps([found.sections.get("rows", {}), found.sections.get("patterns", {})])
    assert {part for part in found.sections.get("parts", {}) if f"{{{part}}}" not in text} == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_list_has_a_reader(name: str) -> None:
    """Lists whose names are built of parts (``en.rule.3``) are read together."""
    code = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("*/ctxsteward/**/*.py"))
    named = [key for section in lists(name).sections for key in lists(name).sections[section] if section != "parts"]

    assert f'lists("{name}")' in code
    unread = [key for key in named if not any(f'"{name}"' in code for name in (key, key.removeprefix("zh_")))]
    assert [key for key in unread if "." not in key] == []
