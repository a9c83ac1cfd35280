"""How much of the promised Python is fully typed, as a type checker of a user sees it.

    python -m tests.typed_names            # what `make types` prints; exit code 1 while a room is below the bar
    python -m tests.typed_names --missing  # with what lacks a type, and where

basedpyright (of `.venv-docs`; it brings its own node) judges a copy of the packages as they are installed. Counted is
every public name of a room and what it leads to; a type is unknown where it is written nowhere and checkers may infer
it each in its own way: an attribute is given one where it is set first (``self.limit: int = limit``), a model's
configuration is a ``ClassVar[ConfigDict]``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from .house import ROOMS, ROOT

JUDGED = ("envelope", "schemas", "store", "summarizers", "steward")
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
    """Copy the packages of all rooms as a wheel lays them out."""
    for room in ROOMS:
        shutil.copytree(
            ROOT / room / "ctxsteward", folder / "ctxsteward", dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", "*.json", "*.jsonl", "*.yaml"),
        )  # fmt: skip


def judge(room: str, folder: Path) -> RoomTypes:
    """Judge one room of what `install` laid out."""
    command = [CHECKER, "--pythonpath", sys.executable, "--verifytypes", f"ctxsteward.{room}", "--ignoreexternal",
               "--outputjson"]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder.parent, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    try:
        found = json.loads(done.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        raise SystemExit(f"{room}: {done.stdout}{done.stderr}") from None
    counts = found["exportedSymbolCounts"]
    missing = tuple(sorted(set(_missing(found["symbols"], folder))))
    return RoomTypes(room, counts["withKnownType"], sum(counts.values()), missing)


def _missing(symbols: Sequence[dict[str, Any]], folder: Path) -> Iterator[str]:
    for symbol in symbols:
        for told in symbol.get("diagnostics", ()):
            if "missing type annotation" in told["message"] and "file" in told:
                line = told["range"]["start"]["line"] + 1
                yield f"{Path(told['file']).relative_to(folder)}:{line}: {symbol['name'].rpartition('.')[2]}"


def judged(rooms: Sequence[str] = JUDGED) -> list[RoomTypes]:
    """All rooms, two at a time."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        installed = Path(folder).resolve() / "site-packages"
        install(installed)
        return list(pool.map(lambda room: judge(room, installed), rooms))


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
