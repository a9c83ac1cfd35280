"""Rounds of forks, in a process of its own that has no threads and no store when a round begins.

    python -m tests.store.forks.rounds ROUNDS FOLDER [SCENARIO …]       # one JSON line a round

A round is a process that opens a store, uses it, and forks. Whoever is acknowledged a turn says so over a pipe, which
outlives it; the pipe ends when the last of them has. Then a new store looks for what was acknowledged.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxsteward.envelope import Session, Store, open_store
from ctxsteward.envelope.tokens.tokenizer import load_tokenizer
from ctxsteward.store.maintenance.fsck import fsck

LIMIT_SECONDS = 60.0
TURNS = 6
SHARED = "shared"

Say = Callable[[str], None]


def opened(folder: Path, number: int) -> Store:
    """Every other store is drained into another folder; it has a thread of its own."""
    if number % 2:
        return open_store(f"file:{folder}/store")
    return open_store(f"file:{folder}/store", journal=folder / "journal")


class Round:
    """What the processes of a round do, and the pipe they tell it by."""

    def __init__(self, folder: Path, number: int, pipe: int) -> None:
        self.folder, self.number, self._pipe = folder, number, pipe
        self.random = random.Random(number)
        self.store = opened(folder, number)
        self.shared = self.store.session(SHARED)
        self.append(self.shared, "first", TURNS)

    def say(self, line: str) -> None:
        os.write(self._pipe, f"{line}\n".encode())

    def append(self, session: Session, who: str, turns: int = TURNS) -> None:
        for n in range(turns):
            id = f"{session.id} {who}-{n}"
            session.append({"role": "user", "content": f"{who} says {n} {'x' * self.random.randrange(400)}"}, id=id)
            self.say(f"told {id}")
            time.sleep(self.random.random() * 0.004)

    def child(self, who: str, *, daemon: bool = False) -> int:
        """Fork one that writes to a session of its own and to one that all share, the object it inherited."""
        pid = os.fork()
        if pid:
            return pid
        try:
            self.random.seed(who)
            if daemon:
                os.setsid()
                if os.fork():
                    os._exit(0)
            self.say(f"born {os.getpid()}")
            self.append(self.store.session(who), who)
            self.append(self.shared, who)
            if self.random.random() < 0.5:
                self.store.close(flush_seconds=0.2)
            self.drop()
            self.say(f"ended {os.getpid()}")
        except BaseException:
            self.say(f"error {json.dumps(traceback.format_exc())}")
        os._exit(0)

    def drop(self) -> None:
        """As the end of an interpreter does."""
        del self.store, self.shared
        gc.collect()


def parent_exits(round: Round) -> None:
    for n in range(2):
        round.child(f"child-{n}")
    round.append(round.shared, "parent", round.number % 3)
    if round.number % 4 > 1:
        round.drop()


def parent_closes(round: Round) -> None:
    children = [round.child(f"child-{n}") for n in range(2)]
    round.append(round.shared, "parent", round.number % 3)
    round.store.close(flush_seconds=0.1)
    with opened(round.folder, round.number) as again:
        round.append(again.session(SHARED), "again", 2)
    _wait(children)


def parent_appends(round: Round) -> None:
    def work(name: str) -> None:
        round.append(round.store.session(name), name, 2 * TURNS)
        round.append(round.shared, name)

    threads = [threading.Thread(target=work, args=(f"thread-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    children = []
    for n in range(4):
        time.sleep(round.random.random() * 0.02)
        children.append(round.child(f"child-{n}"))
    for thread in threads:
        thread.join()
    _wait(children)


def pool(round: Round) -> None:
    global _POOLED
    _POOLED = round
    with multiprocessing.get_context("fork").Pool(4) as workers:
        for number in workers.imap_unordered(_pooled, range(8)):
            round.append(round.shared, f"beside-{number}", 1)


def daemonize(round: Round) -> None:
    for n in range(2):
        _wait([round.child(f"daemon-{n}", daemon=True)])


_POOLED: Round


def _pooled(number: int) -> int:
    _POOLED.append(_POOLED.store.session(f"pool-{number % 4}"), f"job-{number}")
    _POOLED.append(_POOLED.shared, f"job-{number}", 2)
    return number


def _wait(children: list[int]) -> None:
    for pid in children:
        os.waitpid(pid, 0)


SCENARIOS: dict[str, Callable[[Round], None]] = {
    one.__name__: one for one in (parent_exits, parent_closes, parent_appends, pool, daemonize)
}


_KINDS = ("told ", "born ", "ended ")
ORPHANED = ("parent_exits", "daemonize")


def play(scenario: str, number: int, folder: Path) -> dict[str, Any]:
    """One round, and what was found after it."""
    folder.mkdir()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.setpgid(0, 0)
        try:
            SCENARIOS[scenario](Round(folder, number, writing))
        except BaseException:
            os.write(writing, f"error {json.dumps(traceback.format_exc())}\n".encode())
        os._exit(0)
    if scenario in ORPHANED:  # the parent has gone, its children write on: somebody else comes and goes
        os.waitpid(pid, 0)
        _visit(folder, number, writing)
    os.close(writing)
    lines, hung = _listened(reading, pid)
    if scenario not in ORPHANED:
        os.waitpid(pid, 0)
    told, born, ended = ([line[len(kind) :] for line in lines if line.startswith(kind)] for kind in _KINDS)
    return {
        "scenario": scenario,
        "number": number,
        "told": len(told),
        "died": sorted({*born}.difference(ended)),
        "lost": _lost(told, folder, number),
        "errors": [json.loads(line.removeprefix("error ")) for line in lines if line.startswith("error ")],
        "hung": hung,
        "damage": _damage(folder, number),
    }


def _visit(folder: Path, number: int, pipe: int) -> None:
    with opened(folder, number) as store:
        session = store.session(SHARED)
        for n in range(2):
            session.append({"role": "user", "content": f"visit {n}"}, id=f"visit-{n}")
            os.write(pipe, f"told visit-{n}\n".encode())


def _listened(reading: int, pid: int) -> tuple[list[str], bool]:
    """What was said until nobody was left who could; those who hang are ended."""
    until, data, hung = time.monotonic() + LIMIT_SECONDS, b"", False
    while True:
        if not hung and not select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
            hung = True
            os.killpg(pid, signal.SIGKILL)  # those of this round but daemons, who have told their ids
            for line in data.decode().splitlines():
                if line.startswith("born "):
                    try:
                        os.kill(int(line[5:]), signal.SIGKILL)
                    except ProcessLookupError:
                        continue
        more = os.read(reading, 1 << 16)
        if not more:
            os.close(reading)
            return data.decode().splitlines(), hung
        data += more


def _lost(told: list[str], folder: Path, number: int) -> list[str]:
    with opened(folder, number) as store:
        there = {
            record.id
            for name in store.sessions()
            for record in store.journal.read(store.session(name).key, 0)
            if record.id is not None
        }
    return [id for id in told if id not in there]


def _damage(folder: Path, number: int) -> list[str]:
    with opened(folder, number) as store:
        store.flush(10)
        result = fsck(store, read_data=True)
        return [f"{finding.kind}: {finding.text}" for finding in result.damage]


if __name__ == "__main__":
    load_tokenizer("o200k_base")
    for name in sys.argv[3:] or SCENARIOS:
        for number in range(int(sys.argv[1])):
            print(json.dumps(play(name, number, Path(sys.argv[2]) / f"{name}-{number}")), flush=True)
