"""What a suite is: how its scenarios are made, and how one is played and judged.

    suite = Suite(name="verbatim", about=…, metrics=(…), make=make, play=play)
    scenario = suite.make(Draw("verbatim", "ci", 12))
    scores = list(suite.play(scenario, Setup(), Stage()))

`make` is a function of the draw alone; `play` drives the real builder over the real session and yields scores as it
goes. A suite is a module; `catalogue` has them by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .scenario import Draw, Scenario
from .scoring import Metric, Score, Unscored
from .setup import Setup

SCENARIOS = 26
"""Of a suite in CI; three of them long."""


CpuSeconds = Callable[[], float]


@dataclass(slots=True)
class Stage:
    """What a playing counts as it goes."""

    builds: int = 0
    cpu_seconds: CpuSeconds = time.process_time
    build_cpu_seconds: list[float] = field(default_factory=list)
    """Of each build, in order."""


Scores = Iterator[Score | Unscored]
Make = Callable[[Draw], Scenario]
Play = Callable[[Scenario, Setup, Stage], Scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite."""

    name: str
    about: str
    """One sentence: what it holds to numbers."""
    metrics: tuple[Metric, ...]
    make: Make
    play: Play
    scenarios: int = SCENARIOS
    """How many CI runs."""
