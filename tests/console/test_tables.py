"""Lists of findings for people: many rules out of sight make one line, and nothing else is joined."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ctxsteward.console.terminal.tables import finding_list
from ctxsteward.schemas import Finding

OTHER = Finding(kind="loss", ref="§2", text="a figure left the window")


def hidden(number: int) -> Finding:
    return Finding(kind="rule_not_visible", ref=f"§{number}", text=f"the rule user:§{number} (§{number}) stands")


def printed(*findings: Finding) -> list[str]:
    console = Console(file=io.StringIO(), width=160)
    console.print(finding_list(findings))
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("count", [1, 3])
def test_a_few_rules_out_of_sight_have_a_line_each(count: int) -> None:
    rows = [f"rule_not_visible §{number} the rule user:§{number} (§{number}) stands" for number in range(1, count + 1)]

    assert printed(*(hidden(number) for number in range(1, count + 1)), OTHER) == [
        *rows,
        "loss §2 a figure left the window",
    ]


def test_many_rules_out_of_sight_are_counted_and_the_first_three_are_named() -> None:
    assert printed(OTHER, *(hidden(number) for number in range(1, 41))) == [
        "loss §2 a figure left the window",
        "rule_not_visible the request does not show 40 standing rules: §1, §2, §3, … (--json: all)",
    ]
