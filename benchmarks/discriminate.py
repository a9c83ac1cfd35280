"""Does each gate of each suite turn red for those who deserve it? Suites × subjects, each gate green, red or unscored.

    rows = list(discriminated(("verbatim",), ("ours", "window"), scenarios=6))
    print("\\n".join(discrimination_block(rows, …)))

A gate that no subject turns red is a gate that nobody needs, or one that cannot fail; a gate that is red for everybody
but ours may be made to win. So both are told beside the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ctxsteward.evals.documents import table
from ctxsteward.evals.subjects.registry import BASELINES, OURS, subject_named
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.gates import Gate, shipped_gates
from ctxsteward.evals.suites.kit.suite import ScenarioResult, Setup, drawn
from ctxsteward.evals.suites.results import result, run_all

from .libraries import LibrarySubject
from .peer_adapter import PEERS
from .report import progress, publish, script

NAME = "baselines"
SCENARIOS = 6
SPLIT: Literal["docs"] = "docs"
Colour = Literal["green", "red", "unscored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateColours:
    """One gate, and its colour for each subject."""

    suite: str
    metric: str
    rule: str
    colours: Mapping[str, Colour]
    """Colour by subject."""
    values: Mapping[str, float | None]

    @property
    def reds(self) -> list[str]:
        return [name for name, colour in self.colours.items() if colour == "red"]

    @property
    def is_asked(self) -> bool:
        """Whether the gate applies to any subject but ours."""
        return any(colour != "unscored" for name, colour in self.colours.items() if name != OURS)


def discriminated(
    suites: Sequence[str],
    subjects: Sequence[str],
    *,
    scenarios: int = SCENARIOS,
    setup: Setup | None = None,
    workers: int = 1,
    tell: Callable[[str], object] = lambda text: None,
) -> Iterator[GateColours]:
    """Play the first scenarios of each suite with each subject; yield a row per gate. Skip `ours_only` suites."""
    judged = {name: LibrarySubject(name) if name in PEERS else subject_named(name) for name in subjects}
    setups = {name: replace(setup or Setup(), subject=subject) for name, subject in judged.items()}
    draws = {suite: tuple(drawn(suite, SPLIT, scenarios)) for suite in suites if suite_named(suite).ours_only is None}
    jobs = [(suite, subject, draw) for suite in draws for subject in subjects for draw in draws[suite]]
    played: dict[tuple[str, str], dict[str, ScenarioResult]] = {}
    running = run_all([(draw, setups[subject]) for _, subject, draw in jobs], workers=workers)
    for done, (place, scenario) in enumerate(running, 1):
        suite, subject, draw = jobs[place]
        played.setdefault((suite, subject), {})[draw.id] = scenario
        tell(f"{done} of {len(jobs)} scenarios")
    for suite in suites:
        asked = subjects if suite in draws else ()
        each = {name: [played[suite, name][draw.id] for draw in draws[suite]] for name in asked}
        yield from _rows(suite, each, setups)


def _rows(name: str, played: Mapping[str, list[ScenarioResult]], setups: Mapping[str, Setup]) -> Iterator[GateColours]:
    """Yield the gates of one suite with each subject's results."""
    ended = {
        subject: result(suite_named(name), scenarios, split=SPLIT, setup=setups[subject], gates={}, when="")
        for subject, scenarios in played.items()
    }
    for metric, gates in shipped_gates()[name].items():
        values = {
            subject: next(one.value for one in each.metrics if one.name == metric) for subject, each in ended.items()
        }
        for gate in gates:
            colours = {subject: _colour(gate, values[subject], bool(each.errors)) for subject, each in ended.items()}
            yield GateColours(suite=name, metric=metric, rule=str(gate), colours=colours, values=values)


def _colour(gate: Gate, value: float | None, broke_off: bool) -> Colour:
    if value is None:
        return "red" if broke_off else "unscored"
    return "green" if gate.holds(value) and not broke_off else "red"


def discrimination_block(rows: Sequence[GateColours], subjects: Sequence[str], scenarios: int) -> Iterator[str]:
    """Yield the table, and its summary of the gates."""
    yield (
        f"The first {scenarios} scenarios of the split `{SPLIT}` of each suite, at the shipped gates. "
        f"Played: {', '.join(subjects)}."
    )
    yield ""
    asked = [row for row in rows if row.is_asked]
    yield from table(
        ("suite", "gate", "red for"),
        (
            [row.suite, f"`{row.metric}` {row.rule.removesuffix(f' over {scenarios} scenarios')}", _red(row, subjects)]
            for row in asked
        ),
        texts=3,
    )
    yield ""
    yield from findings(rows)


def _red(row: GateColours, subjects: Sequence[str]) -> str:
    scored = [name for name in subjects if row.colours[name] != "unscored"]
    if row.reds == [name for name in scored if name != OURS]:
        return "all others" if len(scored) == len(subjects) else f"all {len(row.reds)} others that can be asked"
    return ", ".join(row.reds) or "nobody"


def findings(rows: Sequence[GateColours]) -> Iterator[str]:
    """Yield the faults of the gates, or ours: gates that are never red, and gates that we miss."""
    asked = [row for row in rows if row.is_asked]
    blind = [row for row in asked if not row.reds]
    ours = [row for row in rows if row.colours.get(OURS) == "red"]
    beaten = [row for row in asked if _is_beaten(row)]
    own = len(rows) - len(asked)
    yield f"- {len(asked)} gates can be asked of others, {own} look behind the messages at what only our product has."
    yield f"- Red for nobody: {_named(blind)}. Red for ours: {_named(ours)}."
    yield f"- A figure that some baseline has better than ours within its budget: {_named(beaten)}."


def _is_beaten(row: GateColours) -> bool:
    ours = row.values.get(OURS)
    if ours is None:
        return False
    lower = row.rule.startswith(("below", "at most"))
    others = [value for name, value in row.values.items() if name in BOUNDED and value is not None]
    return any(value < ours if lower else value > ours for value in others)


BOUNDED = ("window", "newest-tokens", "bm25", "retrieval", "random", "summary")
"""Baselines that send no more tokens than ours may."""


def _named(rows: Sequence[GateColours]) -> str:
    return ", ".join(f"{row.suite} `{row.metric}`" for row in rows) or "none"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, or write it into the page."""
    parser = script(__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=[], help=f"default: {', '.join(NAMES)}")
    parser.add_argument(
        "--subjects",
        nargs="+",
        metavar="NAME",
        default=[OURS, *BASELINES],
        help="who is judged",
    )
    parser.add_argument("--scenarios", type=int, default=SCENARIOS, help="of each suite; default: %(default)s")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes; default: one a core")
    options = parser.parse_args(argv)

    def block() -> Iterator[str]:
        names = [suite_named(name).name for name in options.suites or NAMES]
        rows = discriminated(
            names, options.subjects, scenarios=options.scenarios, workers=options.workers, tell=progress
        )
        return discrimination_block(list(rows), options.subjects, options.scenarios)

    return publish(parser, options, {NAME: block})


if __name__ == "__main__":
    raise SystemExit(main())
