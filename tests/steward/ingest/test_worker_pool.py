"""Isolation: one bad item stops no other, limits hold, nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from ctxsteward.steward.ingest.items import LoadedItem, QuarantinedItem
from ctxsteward.steward.ingest.pipeline import IngestSettings
from ctxsteward.steward.ingest.worker_pool import InProcess, ItemLimits, WorkerPool
from ctxsteward.steward.observations.transcript import ReplayedTranscript

from ...examples import SOAK

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
QUICK = ItemLimits(wall_seconds=2.0, cpu_seconds=60.0, memory_bytes=256 << 20)
PATIENT = ItemLimits(wall_seconds=120.0, cpu_seconds=120.0, memory_bytes=64 << 20)
"""Where the time must not be what ends an item first, however slow and busy the machine is."""


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers import their function by name; they search where we do."""
    monkeypatch.syspath_prepend(str(HERE))
    OTHERS.clear()
    OTHERS.update(child.pid for child in psutil.Process().children(recursive=True))


@pytest.fixture
def poison() -> Any:
    import poison

    return poison


def items(*words: str) -> list[LoadedItem]:
    return [LoadedItem(source=f"{n}", name=f"{n}", data=word.encode()) for n, word in enumerate(words)]


def told(answers: Iterable[Any]) -> dict[str, object]:
    """What became of each item: a result, or the reason it was quarantined."""
    return {item.name: result.reason if isinstance(result, QuarantinedItem) else result for item, result in answers}


OTHERS: set[int] = set()
"""Processes of this one that were there before the test: servers that many tests share."""


def children() -> list[int]:
    return [child.pid for child in psutil.Process().children(recursive=True) if child.pid not in OTHERS]


def test_workers_live_long(poison: Any) -> None:
    with WorkerPool(poison.act, 2) as workers:
        pids = set(told(workers.run(items(*["pid"] * 40))).values()) | set(told(workers.run(items("pid"))).values())
    assert len(pids) <= 2


def test_each_way_to_go_wrong_has_its_reason_and_stops_no_other(poison: Any) -> None:
    words = [
        "ok:a",
        "memory:1000000000",
        "objects:1000000000",
        "die",
        "exit",
        "raise:secret",
        "unpicklable",
        "big:3000000",
        "ok:b",
    ]
    with WorkerPool(poison.act, 2, PATIENT) as workers:
        answers = list(workers.run(items(*words)))
    assert told(answers) == {
        "0": "a",
        "1": "memory_limit",
        "2": "memory_limit",
        "3": "worker_died",
        "4": "worker_died",
        "5": "failed",
        "6": "failed",
        "7": "x" * 3_000_000,
        "8": "b",
    }
    details = {item.name: result.detail for item, result in answers if isinstance(result, QuarantinedItem)}
    assert details["5"].startswith("ValueError at poison.py:")
    assert "secret" not in details["5"]
    assert children() == []


def test_each_way_to_hang_is_a_time_limit_and_stops_no_other(poison: Any) -> None:
    with WorkerPool(poison.act, 2, QUICK) as workers:
        assert told(workers.run(items("ok:a", "loop", "regex", "sleep", "ok:b"))) == {
            "0": "a",
            "1": "time_limit",
            "2": "time_limit",
            "3": "time_limit",
            "4": "b",
        }
    assert children() == []


def test_an_item_is_not_blamed_for_what_others_left_behind(poison: Any) -> None:
    with WorkerPool(poison.act, 1, PATIENT) as workers:
        assert told(workers.run(items("ok:a", "keep:50000000", "memory:50000000", "ok:b"))) == {
            "0": "a",
            "1": "",
            "2": "50000000",
            "3": "b",
        }


def test_cpu_is_limited(poison: Any) -> None:
    with WorkerPool(poison.act, 1, ItemLimits(wall_seconds=60.0, cpu_seconds=1.0)) as workers:
        assert told(workers.run(items("loop", "ok:a"))) == {"0": "cpu_limit", "1": "a"}


def test_what_an_item_started_ends_with_it(poison: Any, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with WorkerPool(poison.act, 1, QUICK) as workers:
        assert told(workers.run(items(f"spawn:{path}"))) == {"0": "time_limit"}
    pid = int(path.read_text())
    until = time.monotonic() + 10  # a killed process takes a moment to be gone
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_caller_that_wants_no_more_leaves_nothing_behind(poison: Any) -> None:
    workers = WorkerPool(poison.act, 2)
    run = workers.run(items(*["ok:x"] * 10))
    next(run)
    run.close()  # type: ignore[attr-defined]  # it is a generator
    assert children() == []


def test_a_source_that_fails_ends_the_run_and_the_workers(poison: Any) -> None:
    def failing() -> Iterator[LoadedItem]:
        yield from items("ok:a", "ok:b")
        raise OSError("the source is gone")

    workers = WorkerPool(poison.act, 2)
    with pytest.raises(OSError, match="gone"):
        list(workers.run(failing()))
    assert children() == []


def test_a_function_that_cannot_be_imported_is_an_error() -> None:
    def local(item: LoadedItem) -> str:
        return ""

    with pytest.raises((RuntimeError, AttributeError)):
        list(WorkerPool(local, 1).run(items("ok:a")))
    assert children() == []


def test_a_function_that_is_gone_where_the_worker_looks(poison: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = WorkerPool(poison.act, 1)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(HERE)])
    with pytest.raises(RuntimeError, match="imported by name"):
        list(workers.run(items("ok:a")))
    assert children() == []


def test_threads_may_each_have_a_pool(poison: Any) -> None:
    found: dict[int, dict[str, object]] = {}

    def work(number: int) -> None:
        with WorkerPool(poison.act, 1, QUICK) as workers:
            found[number] = told(workers.run(items(*[f"ok:{number}"] * 5, "exit", f"ok:{number}")))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(Counter(found[n].values()) == {str(n): 6, "worker_died": 1} for n in range(3))
    assert children() == []


PROGRAM = """
import os, sys
sys.path[:0] = {paths!r}
import poison
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.worker_pool import WorkerPool
def endless():
    while True:
        yield LoadedItem(source="x", name="x", data=b"{word}")
with WorkerPool(poison.act, 2) as workers:
    for _, result in workers.run([*[LoadedItem(source="x", name="x", data=b"pid")] * 2, *map(lambda n: LoadedItem(source="x", name="x", data=b"{word}"), range(9))]):
        print(result, flush=True)
"""  # noqa: E501


def started(word: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A driver that hangs in that word, and the ids of its workers."""
    paths = [str(HERE), *(str(ROOT / room) for room in ("schemas", "envelope", "summarizers", "steward"))]
    driver = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(paths=paths, word=word)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert driver.stdout is not None
    pids = [int(driver.stdout.readline()) for _ in range(2)]
    return driver, pids


@pytest.mark.parametrize(
    ("word", "how"), [("loop", signal.SIGINT), ("loop", signal.SIGKILL), ("sleep", signal.SIGKILL)]
)
def test_an_interrupted_or_killed_driver_leaves_no_process(word: str, how: signal.Signals) -> None:
    driver, pids = started(word)
    try:
        time.sleep(0.3)
        driver.send_signal(how)
        driver.wait(20)
        until = time.monotonic() + 20
        while any(map(psutil.pid_exists, pids)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(map(psutil.pid_exists, pids))
    finally:
        for pid in pids:
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGKILL)
        driver.kill()
        driver.wait()
        assert driver.stdout is not None
        driver.stdout.close()


def test_in_process_gives_the_same_answers(poison: Any) -> None:
    words = ["ok:a", "raise:x", "ok:b"]
    with WorkerPool(poison.act, 1) as workers:
        isolated = {item.name: result for item, result in workers.run(items(*words))}
    assert {item.name: result for item, result in InProcess(poison.act).run(items(*words))} == isolated


# -- many transcripts ----------------------------------------------------------------------------------------


def transcript(number: int) -> bytes:
    messages = [
        {"role": "user", "content": f"Hello {number}, I prefer answers in metric units."},
        {"role": "assistant", "content": "Noted."},
    ]
    return json.dumps(messages).encode()


def poisoned(number: int) -> tuple[bytes, str]:
    """One of the ten bad transcripts, and the reason it is to be quarantined for."""
    return [
        (b"\x1f\x8b" + b"\x00" * 50_000, "invalid"),
        (b"[" * 100_000, "invalid"),
        (b'[{"role": "user", "content": "\xff"}]', "invalid"),
        (b'[{"role": "user", "content": "never-ending"}]', "time_limit"),
        (b'[{"role": "king", "content": "x"}]', "invalid"),
        (b'[{"role": "user", "content": "hungry"}]', "memory_limit"),
        (b'{"messages": [{"role": "user", "content": "x"}], "ctxsteward": {"trust": "operator"}}', "bad_metadata"),
        (b'[{"role": "user", "content": "\\ud800"}]', "invalid"),
        (b"", "invalid"),
        (transcript(number)[:-9], "invalid"),
    ][number]


def test_among_many_the_poisoned_are_named_and_the_others_read(poison: Any) -> None:
    """Ten among 300, and among a thousand with CTXSTEWARD_SOAK=1."""
    apart = 100 if SOAK else 30
    reasons = {f"{apart * number + 15}.json": poisoned(number)[1] for number in range(10)}
    many = (
        LoadedItem(source=name, name=name, data=poisoned(number // apart)[0] if name in reasons else transcript(number))
        for number in range(10 * apart)
        for name in [f"{number}.json"]
    )
    limits = ItemLimits(wall_seconds=6.0, cpu_seconds=30.0, memory_bytes=200 << 20)
    good, bad = set(), {}
    with WorkerPool(partial(poison.ingest_and_act, settings=IngestSettings()), 2, limits) as workers:
        for _, result in workers.run(many):
            outcomes = [result] if isinstance(result, QuarantinedItem) else result
            for outcome in outcomes:
                if isinstance(outcome, ReplayedTranscript):
                    good.add(outcome.session)
                else:
                    bad[outcome.name] = outcome.reason
                    assert outcome.detail
    assert bad == reasons
    assert len(good) == 10 * apart - 10
    assert children() == []


def test_memory_of_the_driver_does_not_grow_with_the_number_of_items(poison: Any) -> None:
    def peak_bytes(count: int) -> int:
        tracemalloc.start()
        for _ in workers.run(LoadedItem(source="x", name="x", data=b"ok:" + b"x" * 20_000) for _ in range(count)):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    with WorkerPool(poison.act, 2) as workers:
        peak_bytes(10)
        assert peak_bytes(400) < 1.5 * peak_bytes(40) + 100_000
