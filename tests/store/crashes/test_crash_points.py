"""A process that dies at any write leaves a store that is whole, and whose next run comes to the same end.

Every labelled crash point (`points`) of every scenario, at every kind of store it makes sense at. At each: a child runs
to the crash; the place is opened again and all of it is read, which changes nothing (first run); the scenario runs
there again to its end (second run); a third run changes nothing. Before the second run, at every other point, garbage
is collected and what waits is drained.

`make attacks` takes a seeded sample of the labels; with ``CTXSTEWARD_SOAK=1`` it is all of them. How many, and how long
recovery took, is printed with ``-s``.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from ...examples import SOAK
from ...s3_servers import S3Server
from .buckets import close_buckets
from .forkserver import ForkServer, Ran, fork_server
from .invariants import collected, picture, recovered, stands_once
from .outcomes import OUTCOMES
from .places import Place
from .points import KILLED
from .scenarios import SCENARIOS

SAMPLE = {"file": 3, "drained": 3, "s3": 1}
"""Labels of one scenario in a run that is no soak: a third of them of the disk, where there are many of one effect."""
ALWAYS = {("forget-principal", "file"): "objects.delete", ("forget-principal", "drained"): "journal.forget"}
"""Where two defects were: between a tombstone and its key, between words redacted here and drained again.

Before each of these writes; what is left behind one is what is there before the next.
"""
CASES = [(name, kind) for name, scenario in SCENARIOS.items() for kind in scenario.places]


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    with fork_server() as server:
        yield server
    close_buckets()


@dataclass
class Runs:
    """Runs of one scenario at places of one kind, all of which begin as the prepared one."""

    name: str
    kind: str
    folder: Path
    server: S3Server | None
    forks: ForkServer
    count: int = 0

    def __post_init__(self) -> None:
        self.prepared = self._place("prepared")
        Path(self.prepared.folder).mkdir()
        self.forks.finished(self.name, self.prepared, given="prepare")

    def fresh(self) -> Place:
        self.count += 1
        return self.prepared.copied_to(self._place(f"run{self.count}"))

    def run(self, place: Place, stop: str | None = None) -> Ran:
        return self.forks.run(self.name, place, stop=stop)

    def finish(self, place: Place) -> Ran:
        return self.forks.finished(self.name, place)

    def _place(self, name: str) -> Place:
        uri = "" if self.kind != "s3" or self.server is None else self.server.uri(f"{name}-{secrets.token_hex(4)}")
        return Place(self.kind, str(self.folder / name), uri)


@pytest.fixture(params=CASES, ids=["-".join(case) for case in CASES])
def runs(request: pytest.FixtureRequest, tmp_path: Path, forks: ForkServer) -> Runs:
    name, kind = request.param
    server = request.getfixturevalue("moto").another_bucket() if kind == "s3" else None
    return Runs(name, kind, tmp_path, server, forks)


def test_a_process_that_dies_at_any_write_is_followed_by_one_that_finishes(runs: Runs) -> None:
    labels = dry_run(runs)
    chosen = labels if SOAK else sample(labels, runs)
    slowest = max(crash(runs, label, tidy=bool(n % 2)) for n, label in enumerate(chosen))
    print(f"\n{runs.name} {runs.kind}: {len(chosen)} of {len(labels)} points, recovery in at most {slowest:.3f} s")


def sample(labels: list[str], runs: Runs) -> list[str]:
    """The same labels in every run, in their order."""
    random, count = Random(f"{runs.name} {runs.kind}"), SAMPLE[runs.kind]
    disk = [label for label in labels if label.startswith("disk.")]
    ports = [label for label in labels if not label.startswith("disk.")]
    always = ALWAYS.get((runs.name, runs.kind))
    chosen = {label for label in ports if always and label.startswith(always) and label.endswith("before")}
    chosen |= set(random.sample(disk, min(count // 3, len(disk))))
    chosen |= set(random.sample(ports, min(count - count // 3, len(ports))))
    return [label for label in labels if label in chosen]


def dry_run(runs: Runs) -> list[str]:
    """All labels there are; what must hold after a crash holds without one."""
    place, outcome = runs.fresh(), OUTCOMES[runs.name]
    ran = runs.finish(place)
    assert len(set(ran.labels)) == len(ran.labels) > 5
    with place.open() as machines:
        recovered(machines)
        outcome.finished(machines, ran.told, repeated=False)
        collected(machines())
    return ran.labels


def crash(runs: Runs, label: str, *, tidy: bool) -> float:
    """A crash at this label and what comes after it; how long recovery took, in seconds."""
    place = runs.fresh()
    ran = runs.run(place, stop=label)
    assert ran.status == KILLED, (label, ran.error or "the point was not passed")
    try:
        seconds = first_run(runs, place, ran, tidy=tidy)
        second_run(runs, place, ran)
    except BaseException as error:
        error.add_note(f"{runs.name} at a {runs.kind} place, {label!r}{', tidied' if tidy else ''}")
        raise
    place.remove()
    return seconds


def first_run(runs: Runs, place: Place, ran: Ran, *, tidy: bool) -> float:
    """Open and read what the crash has left."""
    outcome = OUTCOMES[runs.name]
    if place.drains and outcome.moves:  # what came in from other machines is read in once
        with place.open() as machines:
            recovered(machines, unfinished=outcome.unfinished)
    left = picture(place)
    with place.open() as machines:
        seconds = recovered(machines, unfinished=outcome.unfinished)
        outcome.survived(machines, ran.told)
    assert picture(place) == left, "recovery has changed what it read"
    if tidy and not outcome.unfinished:
        with place.open() as machines:
            if place.drains:
                stands_once(machines, ran.told if outcome.talks else [], repeated=False)
            collected(machines())
            outcome.survived(machines, ran.told)
    return seconds


def second_run(runs: Runs, place: Place, ran: Ran) -> None:
    """Run to the end, and once more."""
    outcome = OUTCOMES[runs.name]
    again = runs.finish(place)
    with place.open() as machines:
        recovered(machines)
        outcome.finished(machines, [*ran.told, *again.told], repeated=True)
        collected(machines())
    done = picture(place)
    runs.finish(place)
    if not (place.drains and outcome.moves):  # else it takes the session over once more
        assert picture(place) == done, "a third run has changed something"
