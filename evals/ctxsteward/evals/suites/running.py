"""Running suites: scenarios one by one, or over several processes; the scores are the same.

    for played in run(suite, drawn("verbatim", "ci", 26), Setup(), workers=2): …

Every scenario is made where it is played, from its draw alone. An exception of the product ends its scenario, which
then counts as broken off (`ScenarioResult.error`); nothing of the run is lost.

Raises `InputError` where a setup cannot be handed to another process, and where such a process dies.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from ctxsteward.schemas import InputError

from .catalogue import suite_named
from .scenario import Draw
from .scoring import ScenarioResult, Tally, add_to
from .setup import Setup
from .suite import CpuSeconds, Stage


def play_one(draw: Draw, setup: Setup, cpu_seconds: CpuSeconds = time.process_time) -> ScenarioResult:
    """Make one scenario, play it, add up its scores."""
    suite = suite_named(draw.suite)
    started = cpu_seconds()
    scenario, stage, error = suite.make(draw), Stage(cpu_seconds=cpu_seconds), None
    known = {metric.name: metric for metric in suite.metrics}
    tallies = {name: Tally() for name in known}
    try:
        add_to(tallies, suite.play(scenario, setup, stage), known)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"[:500]
    return ScenarioResult(
        id=draw.id, turns=scenario.turns, messages=len(scenario.messages), builds=stage.builds,
        cpu_seconds=cpu_seconds() - started, tallies=tallies, error=error,
    )  # fmt: skip


def run(draws: Sequence[Draw], setup: Setup, *, workers: int = 1) -> Iterator[ScenarioResult]:
    """Play scenarios, over so many processes; each as it ends, in any order."""
    if workers == 1 or len(draws) < 2:
        yield from (play_one(draw, setup) for draw in draws)
        return
    try:
        pickle.dumps(setup)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(f"this setup cannot be handed to other processes ({error}); run with one worker") from error
    with ProcessPoolExecutor(min(workers, len(draws)), mp_context=get_context("spawn")) as pool:
        # Long ones first, so that no process ends up alone with one.
        by_length = sorted(draws, key=lambda draw: -draw.turns)
        try:
            for done in as_completed([pool.submit(play_one, draw, setup) for draw in by_length]):
                yield done.result()
        except BrokenProcessPool as error:
            what = "a process that played scenarios died (memory, or a program without its `__main__` guard?)"
            raise InputError(f"{what}; run with one worker") from error


def in_order(played: Sequence[ScenarioResult], draws: Sequence[Draw]) -> list[ScenarioResult]:
    """Results in the order of their draws, whoever was ready first."""
    by_id = {one.id: one for one in played}
    return [by_id[draw.id] for draw in draws]
