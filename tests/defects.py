"""Seeded defects: mistakes that an engineer could make, each put into a copy of the product, and the gates they trip.

    python -m tests.defects                                   # each at its suite's gates, with the scenarios it names
    python -m tests.defects --full                            # with all that CI plays
    python -m tests.defects --only NAME --only NAME
    python -m tests.defects --write benchmarks/discrimination.md

A suite whose gates cannot fail proves nothing. `tests/evals/suites/defects.yaml` names for each defect a text of one
source file and what stands there instead, the suite that is there for it, and the gates that must turn red. The room
with the defect is put before the installed one, in another process; without the defect the same scenarios pass. Exit
code 1 where a gate stays green that should not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from ruamel.yaml import YAML

from ctxsteward.evals.documents import check_markers, table, write_blocks
from ctxsteward.evals.suites.catalogue import suite_named
from ctxsteward.evals.suites.gates import shipped_gates

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "evals" / "suites" / "defects.yaml"
ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
SHARED_ROOTS = {"store": "envelope", "language": "summarizers"}
"""Rooms that lie in another's source root."""
BLOCK = "defects"
"""Of the document, between its markers."""
Text = Annotated[str, Field(min_length=1)]


class PlantedMistake(BaseModel):
    """A mistake in a copy of the product."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: Text
    """Room and file, without ``ctxsteward``: ``store/journal/log.py``."""
    was: Text
    """Stands once in the file."""
    now: str

    @property
    def source(self) -> Path:
        """The file."""
        room, _, inside = self.file.partition("/")
        return ROOT / SHARED_ROOTS.get(room, room) / "ctxsteward" / room / inside

    def places(self) -> int:
        """How often its text stands in the file."""
        return self.source.read_text(encoding="utf-8").count(self.was)

    def seeded(self, folder: Path) -> Path:
        """A source root with the mistake in it, to be put before the others."""
        room = self.file.partition("/")[0]
        root = ROOT / SHARED_ROOTS.get(room, room)
        copy = folder / root.name
        shutil.copytree(root / "ctxsteward" / room, copy / "ctxsteward" / room, ignore=shutil.ignore_patterns("*.pyc"))
        file = copy / self.source.relative_to(root)
        file.write_text(file.read_text(encoding="utf-8").replace(self.was, self.now), encoding="utf-8")
        return copy


class Defect(PlantedMistake):
    """What is broken, and the gates that notice."""

    suite: Text
    scenarios: Annotated[tuple[int, ...], Field(min_length=1)] | None = None
    """Numbers of its split ci, a part of what CI plays; None: all of that, since in less its gates are undecided."""
    gates: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Figures of the suite that must all fall."""
    everyday: bool = False
    """Tried in every run of the tests."""


def read_defects(path: Path = FILE) -> dict[str, Defect]:
    """All of the file, by name."""
    read: Mapping[str, object] = YAML(typ="safe").load(path)
    return TypeAdapter(dict[str, Defect]).validate_python(read)


def python_path(first: Sequence[Path] = ()) -> str:
    """Return a PYTHONPATH with these source roots before those of the product."""
    return os.pathsep.join(map(str, (*first, *(ROOT / room for room in ROOMS))))


class Verdict(NamedTuple):
    """What a suite's gates say of the product, with a defect or without."""

    passed: dict[str, bool]
    """By gate."""
    errors: dict[str, str]
    """By scenario, why it broke off."""

    @property
    def red(self) -> list[str]:
        return [gate for gate, passed in self.passed.items() if not passed]


def played(suite: str, scenarios: Iterable[int] | None, first: Sequence[Path] = (), split: str = "ci") -> Verdict:
    """Play scenarios of a suite, all that CI plays for None, with these source roots before the installed ones."""
    path = python_path(first)
    only = [arg for number in scenarios or () for arg in ("--only", f"{suite}/{split}-{number}")]
    program = "from ctxsteward.console.cli import main; main()"
    options = ["--gate", "--workers", "1", "--json", "--split", split]
    done = subprocess.run(
        [sys.executable, "-c", program, "evals", "run", suite, *options, *only],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=3_600,
    )
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"{suite}: {done.stderr[-3_000:]}")
    result = json.loads(done.stdout)
    passed: dict[str, bool] = {}
    for gate in result["gates"]:
        passed[gate["metric"]] = passed.get(gate["metric"], True) and gate["verdict"] != "failed"
    return Verdict(passed, result["errors"])


def tried(defect: Defect, *, full: bool = False) -> Verdict:
    """Play a defect's scenarios, or all of its suite, with the defect."""
    with tempfile.TemporaryDirectory() as folder:
        first = defect.seeded(Path(folder))
        return played(defect.suite, None if full else defect.scenarios, (first,))


def is_sure(suite: str, gate: str) -> bool:
    """Whether one check that fails turns the gate red, however many more are made."""
    bounds = {("at_least", 1.0), ("at_most", 0.0)}
    return all((rule.rule, rule.bound) in bounds for rule in shipped_gates()[suite][gate])


# -- the table -------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A defect and what came of it."""

    name: str
    defect: Defect
    verdict: Verdict
    sound: Verdict
    """What the same scenarios come to without it."""

    @property
    def red(self) -> list[str]:
        """Gates that the defect turned red, those that it must first."""
        found = [gate for gate in self.verdict.red if gate not in self.sound.red]
        return sorted(found, key=lambda gate: gate not in self.defect.gates)

    @property
    def missed(self) -> list[str]:
        """Gates that it should have turned red."""
        return [gate for gate in self.defect.gates if gate not in self.red]


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """The table of the document; the gates that a defect must trip are bold."""
    made = []
    for row in rows:
        named = [f"**{gate}**" if gate in row.defect.gates else gate for gate in row.red]
        broke = [f"({len(row.verdict.errors)} scenarios broke off)"] if row.verdict.errors else []
        made.append((row.name, row.defect.suite, ", ".join([*named, *broke]) or "none"))
    yield ""
    yield from table(("defect", "suite", "gates that turn red"), sorted(made, key=lambda row: row[1]), texts=3)
    yield ""


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.defects", description="Try the seeded defects.")
    parser.add_argument("--only", action="append", metavar="NAME", help="this defect; repeatable")
    parser.add_argument("--suite", help="defects of one suite")
    parser.add_argument("--full", action="store_true", help="all scenarios that CI plays")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table into this document")
    asked = parser.parse_args(arguments)
    unknown = sorted(set(asked.only or ()) - set(read_defects()))
    if unknown:
        parser.error(f"no such defect: {', '.join(unknown)}; {FILE.relative_to(ROOT)} names them")
    if asked.suite:
        suite_named(asked.suite)
    if asked.write and (asked.only or asked.suite):
        parser.error("--write writes the whole table; leave out --only and --suite")
    return asked


def main(arguments: Sequence[str] | None = None) -> int:
    """Try them, show and write the table."""
    asked = _asked(arguments)
    if asked.write:
        check_markers(asked.write, BLOCK)
    chosen = {
        name: defect
        for name, defect in read_defects().items()
        if name in (asked.only or (name,)) and defect.suite in (asked.suite or defect.suite)
    }
    if not chosen:
        print(f"no defect of {asked.suite} among those of --only: nothing was tried", file=sys.stderr)
        return 2
    from rich.progress import MofNCompleteColumn, Progress, TextColumn

    rows = []
    sound: dict[tuple[str, tuple[int, ...] | None], Verdict] = {}
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TextColumn("{task.fields[now]}")) as progress:
        bar = progress.add_task("defects", total=len(chosen), now="")
        for name, defect in chosen.items():
            progress.update(bar, now=name)
            key = defect.suite, None if asked.full else defect.scenarios
            if key not in sound:
                sound[key] = played(*key)
            rows.append(row := Row(name, defect, tried(defect, full=asked.full), sound[key]))
            sign = "✗" if row.missed else "✓"
            progress.print(f"{sign} {name}: {defect.suite}: {', '.join(row.red) or 'all green'}")
            progress.advance(bar)
    if asked.write:
        write_blocks(asked.write, {BLOCK: lines(rows)})
    return int(any(row.missed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
