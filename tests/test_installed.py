"""How `tests.installed` reads a page: which environment a block is for, and which commands are run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .installed import (
    DOUBLES,
    EXTRAS,
    PAGES,
    ROOT,
    Part,
    Requirements,
    blocks_of,
    commands_of,
    environments,
    is_elsewhere,
    parts_of,
)

BARE, STEWARD = Requirements(), Requirements(("steward",))
PAGE = """
```python
one = 1
```

    pip install 'ctxsteward[steward]'        nights by hand
    pip install 'ctxsteward[flows]'          the same with Prefect

```console
$ ctxsteward steward status
nothing yet
$ ctxsteward resolve §9
ctxsteward: §9 names nothing
```

`pip install ctxsteward 'litellm>=1.109'` and `pip install other` are two.

```python no-run
import litellm  # pip install 'ctxsteward[s3]'
```
"""


def parts(text: str) -> list[Part]:
    return list(parts_of(Path("page.md"), text))


def test_the_nearest_install_line_above_says_what_a_block_needs_and_of_alternatives_the_smallest() -> None:
    found = [(part.needs, len(part.blocks), part.own) for part in parts(PAGE)]
    assert found == [
        (BARE, 1, 1),
        (STEWARD, 2, 1),
        (Requirements((), ("litellm>=1.109",)), 3, 1),
        (Requirements(("s3",)), 3, 1),
    ]


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        ("ctxsteward", BARE),
        ("'ctxsteward[openai,console]'", Requirements(("console", "openai"))),
        ("'./ctxsteward[steward]'", STEWARD),
        ("'ctxsteward[openai]' google-genai", Requirements(("openai",), ("google-genai",))),
        ("boto3", None),
    ],
)
def test_what_an_install_line_asks_for(words: str, needs: Requirements | None) -> None:
    assert Requirements.read(words) == needs


def test_a_command_may_fail_only_where_the_page_shows_that_it_does() -> None:
    (console,) = (block for block in parts(PAGE)[1].blocks if block.kind == "console")
    assert [(one["command"], one["fails"]) for one in commands_of(console, "page.md")] == [
        ("ctxsteward steward status", False),
        ("ctxsteward resolve §9", True),
    ]


def test_every_extra_has_an_environment_of_its_own_that_has_something_to_play() -> None:
    found = environments()
    assert {needs.extras for needs in found} >= {(), *((extra,) for extra in EXTRAS), ("console", "openai")}
    assert [needs.name for needs, shown in found.items() if not any(part.blocks for part in shown)] == []


def test_no_command_that_is_left_out_hides_another() -> None:
    """A page whose commands are all left out would be green whatever they say."""
    left_out, played = 0, 0
    for page in PAGES:
        for part in parts(page.read_text(encoding="utf-8")):
            for block in part.blocks:
                if block.kind != "python":
                    lines = [line.removeprefix("$ ") for line in block.text.splitlines()]
                    left_out += sum(line.startswith("ctxsteward ") and is_elsewhere(line) for line in lines)
                    played += len(list(commands_of(block, page.name)))
    assert played > 2 * left_out


def block(code: str, *, run: bool = True, own: bool = True, double: str | None = None) -> dict[str, Any]:
    return {"where": "page.md:1", "code": code, "run": run, "own": own, "double": double}


def read(folder: Path, *blocks: dict[str, Any]) -> dict[str, Any]:
    """What a reader of these blocks tells."""
    asked = {"modules": [], "python": blocks, "commands": [], "absent": [], "environment": {}}
    (folder / "blocks.json").write_text(json.dumps(asked), encoding="utf-8")
    command = [sys.executable, str(ROOT / "tests" / "reader.py"), "blocks.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == bool(told["failed"])
    return told


def test_only_what_was_run_is_counted(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text("def play(names): names['kept'].append(1)")
    told = read(
        tmp_path,
        block("kept = []"),
        block("import json\nno_such_name", run=False),
        block("import no_such_module", run=False, own=False),
        block("kept = [0]", run=False, double="service"),
        block("assert kept == [0, 1]"),
    )
    assert told == {"played": 4, "failed": []}
    assert read(tmp_path, block("import no_such_module", run=False, own=False)) == {"played": 0, "failed": []}
    assert read(tmp_path, block("no_such_name"))["failed"] == [
        "page.md:1: NameError: name 'no_such_name' is not defined"
    ]


def test_every_block_that_needs_a_framework_is_run_where_that_is() -> None:
    """`test_clients` or `tests/envelope/integrations/guide_run.py` runs it, or this file with a scripted double."""
    page = (ROOT / "docs" / "guide-integrations.md").read_text(encoding="utf-8")
    apart = [one.text for one in blocks_of(page) if one.kind == "python no-run"]
    of_others = re.compile(
        r"^(?:from|import) (openai|anthropic|litellm|langchain|pydantic_ai|agents|agent_framework)\b", re.MULTILINE
    )
    doubled = [text for text in apart if any(code in text for code in DOUBLES)]
    assert len(doubled) == len(DOUBLES)
    assert [text for text in apart if text not in doubled and not of_others.search(text)] == []
