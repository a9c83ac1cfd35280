"""Plays one page's blocks and commands, as a reader would; run by `tests.installed` in a fresh environment.

    python reader.py blocks.json

It stands beside `shell.py` and `scripted_providers.py` in a folder of its own, where nothing else of the checkout is.
The file says what to play; how much was played and what went wrong is printed as JSON.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

MISSING = re.compile(r"^Traceback|needs the extra|which the extra|^ctxsteward: .*pip install", re.MULTILINE)
"""What a command says that lacks a package, or does not end as a command should."""
TOLD = (0, 1, 3, 4)
"""Exit codes with which a command tells what it found (`ctxsteward --help`); others are failures."""
ID = re.compile(r"\b[0-9a-f]{12,64}\b")
LISTENS = "serve_forever"


def imports_alone(code: str) -> str:
    """The import statements of a block."""
    nodes = [node for node in ast.parse(code).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in nodes)


def play_python(blocks: list[dict[str, Any]]) -> Iterator[str | None]:
    """Run blocks in order, with the names of those before; of one that is not to be run, its imports.

    A block with a double is run, and then the double with the names that it left. Yields None for each block of which
    something was run, and a line for each fault.
    """
    names: dict[str, Any] = {"__name__": "reader"}
    import_module("scripted_providers").install()
    for block in blocks:
        where, code = block["where"], block["code"]
        try:
            if block["run"] and LISTENS in code:
                failed: list[str] = []
                threading.Thread(target=_listen, args=(code, where, failed), daemon=True).start()
                time.sleep(1)
                yield None
                yield from failed
                continue
            if not block["run"] and not (block["own"] and block["double"]):
                lines = imports_alone(code).splitlines() if block["own"] else []
                if lines:
                    yield None
                    exec(compile("\n".join(lines), where, "exec"), names)
                continue
            yield None
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, where, "exec"), names)
                if block["double"]:
                    import_module(block["double"]).play(names)
        except BaseException as error:
            told = traceback.format_exception_only(error)[-1].strip()
            yield f"{where}: {told}"


def _listen(code: str, where: str, failed: list[str]) -> None:
    try:
        exec(compile(code, where, "exec"), {"__name__": "reader"})
    except BaseException as error:
        failed.append(f"{where}: {type(error).__name__}: {error}")


def play_commands(commands: list[dict[str, Any]], environment: dict[str, str]) -> Iterator[str]:
    """Run commands in order; ids of a page stand for those that were printed at their place."""
    from shell import Shell  # type: ignore[import-not-found]  # it lies beside this file

    shell = Shell(Path.cwd(), environment)
    ids: dict[str, str] = {}

    def known(found: re.Match[str]) -> str:
        return ids.get(found[0], found[0])

    for one in commands:
        command = ID.sub(known, one["command"])
        try:
            done = shell.run(command)
        except BaseException as error:
            yield f"{one['where']}: {command}: {type(error).__name__}: {error}"
            continue
        said = done.stdout + done.stderr
        if MISSING.search(said):
            yield f"{one['where']}: {command}: {said[-600:]}"
        elif done.code not in TOLD and not one["fails"]:
            yield f"{one['where']}: {command}: exit code {done.code}: {said[-600:]}"
        ids.update(zip(ID.findall(one["printed"]), ID.findall(said), strict=False))


def main(path: str) -> int:
    asked = json.loads(Path(path).read_text(encoding="utf-8"))
    sys.path[:0] = [str(Path(__file__).parent), str(Path.cwd())]
    failed: list[str] = []
    for module in asked["modules"]:
        try:
            import_module(module)
        except Exception as error:
            failed.append(f"import {module}: {type(error).__name__}: {error}")
    told = list(play_python(asked["python"]))
    failed += [fault for fault in told if fault is not None]
    failed += play_commands(asked["commands"], asked["environment"])
    print(json.dumps({"played": told.count(None) + len(asked["commands"]), "failed": failed}))
    sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stderr.flush()
    sys.exit(code)
