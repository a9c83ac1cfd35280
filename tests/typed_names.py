"""How much of the promised Python is fully typed, as a type checker of a user sees it.

    python -m tests.typed_names            # what `make types` prints; exit code 1 while a room is below the bar
    python -m tests.typed_names --missing  # with what lacks a type, and where

basedpyright (of `.venv-docs`; it brings its own node) judges a copy of the packages as they are installed, all at once:
what rooms have in common is read once. Counted is every public name of a room; a type is unknown where it is written
nowhere and checkers may infer it each in its own way: an attribute is given one where it is set first
(``self.limit: int = limit``), a model's configuration is a ``ClassVar[ConfigDict]``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .house import ROOT

PACKAGE = "ctxsteward"
JUDGED = ("envelope", "schemas", "store", "summarizers", "steward")
FOLDERS = ("schemas", "envelope", "summarizers", "steward")
"""Where the judged rooms and what they import lie."""
BAR = 0.99
CHECKER = ROOT / ".venv-docs" / "bin" / "basedpyright"


class RoomTypes(NamedTuple):
    """One room, judged."""

    room: str
    known: int
    names: int
    missing: tuple[str, ...]
    """Names without a known type that lack an annotation of their own, and where."""

    @property
    def fraction(self) -> float:
        return self.known / self.names

    @property
    def is_met(self) -> bool:
        return self.names > 0 and self.fraction >= BAR


def install(folder: Path) -> None:
    """Copy packages as a wheel lays them out; the folder over them is a package as well, which one run can judge."""
    for room in FOLDERS:
        shutil.copytree(
            ROOT / room / PACKAGE,
            folder / PACKAGE,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", "*.json", "*.jsonl", "*.yaml"),
        )
    (folder / PACKAGE / "__init__.py").touch()
    (folder / PACKAGE / "py.typed").touch()


def judge(rooms: Sequence[str], folder: Path) -> list[RoomTypes]:
    """Judge these rooms of the packages in a folder."""
    command = [CHECKER, "--pythonpath", sys.executable, "--verifytypes", PACKAGE, "--ignoreexternal", "--outputjson"]
    done = subprocess.run(
        command,
        cwd=folder.parent,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    try:
        found = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    except (ValueError, KeyError):
        raise SystemExit(f"{done.stdout}{done.stderr}") from None
    return [
        _room(room, [one for one in found if one["name"].startswith(f"{PACKAGE}.{room}.")], folder) for room in rooms
    ]


def _room(room: str, symbols: Sequence[dict[str, Any]], folder: Path) -> RoomTypes:
    promised = [one for one in symbols if one["isExported"]]
    known = sum(one["isTypeKnown"] for one in promised)
    return RoomTypes(room, known, len(promised), tuple(sorted(set(_missing(symbols, folder)))))


def _missing(symbols: Sequence[dict[str, Any]], folder: Path) -> Iterator[str]:
    for symbol in symbols:
        for told in symbol.get("diagnostics", ()):
            if "missing type annotation" in told["message"] and "file" in told:
                line = told["range"]["start"]["line"] + 1
                yield f"{Path(told['file']).relative_to(folder)}:{line}: {symbol['name'].rpartition('.')[2]}"


def judged(rooms: Sequence[str] = JUDGED) -> list[RoomTypes]:
    """These rooms, with what they import."""
    with tempfile.TemporaryDirectory() as folder:
        installed = Path(folder).resolve() / "site-packages"
        install(installed)
        return judge(rooms, installed)


def main(argv: Sequence[str] = ()) -> int:
    if not CHECKER.exists():
        raise SystemExit(f"no {CHECKER.name}: `make linters` installs it")
    rooms = judged()
    for room in rooms:
        print(f"{room.room:<12}{room.known:>6} of {room.names:<6}{100 * room.fraction:>6.2f} %")
        if "--missing" in argv or not room.is_met:
            print(*(f"  {line}" for line in room.missing), sep="\n")
    return 0 if all(room.is_met for room in rooms) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
