"""How `tests.installed` reads a page: which environment a block is for, and which commands are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from .installed import EXTRAS, PAGES, Part, Requirements, commands_of, environments, is_elsewhere, parts_of

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
