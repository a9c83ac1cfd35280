"""A command uses every option that it takes: one that is ignored misleads a user."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

CONSOLE = Path(__file__).resolve().parents[2] / "console" / "ctxsteward" / "console"


def commands() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(CONSOLE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(".command(" in ast.unparse(d) for d in node.decorator_list):
                yield f"{path.stem}.{node.name}", node


def test_every_command_uses_every_option_that_it_takes() -> None:
    ignored = []
    read = 0
    for name, command in commands():
        used = {node.id for part in command.body for node in ast.walk(part) if isinstance(node, ast.Name)}
        arguments = [argument.arg for argument in (*command.args.args, *command.args.kwonlyargs)]
        read += len(arguments)
        ignored += [f"{name}: {argument}" for argument in arguments if argument not in used]
    assert read > 150
    assert ignored == []
