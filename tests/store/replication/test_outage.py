"""A chat service while its S3 endpoint is dead, silent or slow, and when it is killed in the middle of that.

A fault proxy between boto3 and a real S3 server; the load is short here and long with CTXSTEWARD_SOAK=1, which also
holds latencies to their bar (`python -m benchmarks.bench outage` prints them). Times in seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import outage
from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.store import Store
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.journal.port import SessionKey

from ...fault_proxy import FaultProxy, Mode
from ...s3_servers import S3Server
from .machines import said, user

SOAK = bool(os.environ.get("CTXSTEWARD_SOAK"))
SESSIONS = 50 if SOAK else 6
SECONDS = 60.0 if SOAK else 1.5
RECOVERY_SECONDS = 60.0
KEYS = MasterKeys(b"s" * 32)


pytestmark = pytest.mark.usefixtures("aws_environment")


def stored(server: S3Server, journal: Path) -> Counter[str]:
    """Texts that a machine finds which has only the object store."""
    with open_store(server.uri("team"), journal=journal, keys=KEYS) as store:
        assert store.write_behind is not None
        store.write_behind.all_readable("default")
        assert not [session for session in store.journal.sessions("default") if "-fork-" in session]
        return Counter({text: len(places) for text, places in said(store).items()})


def load(store: Store, seconds: float) -> tuple[list[str], list[BaseException]]:
    """What was acknowledged, and what went wrong, while every session appends and builds."""
    acknowledged: list[str] = []
    failures: list[BaseException] = []
    until = time.monotonic() + seconds

    def chat(number: int) -> None:
        try:
            session = store.session(f"s{number}")
            builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=300))
            while time.monotonic() < until:
                text = f"{session.id}: message {len(session)}, and some words that fill the window up"
                session.append(user(text))
                acknowledged.append(text)
                builder.build(session)
                time.sleep(0.05)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=chat, args=(number,)) for number in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return acknowledged, failures


@pytest.mark.parametrize("mode", ["dead", "black_hole", "slow", *(["unavailable_503", "lost_reply"] if SOAK else [])])
def test_every_build_succeeds_and_all_is_drained_once_when_the_store_is_back(
    server: S3Server, tmp_path: Path, mode: Mode
) -> None:
    with FaultProxy(server.url, slow_seconds=3.0) as proxy:
        uri = server.uri("team", url=proxy.url)
        with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
            before, failures = load(store, SECONDS / 3)
            proxy.mode = mode
            during, more = load(store, SECONDS)
            assert failures + more == []
            proxy.mode = "healthy"
            started = time.monotonic()
            assert store.flush(RECOVERY_SECONDS), store.write_behind_status()
            assert time.monotonic() - started < RECOVERY_SECONDS
    assert stored(server, tmp_path / "two") == Counter([*before, *during])


@pytest.mark.parametrize("mode", ["dead", "slow"])
def test_a_kill_in_the_outage_loses_no_acknowledged_turn(server: S3Server, tmp_path: Path, mode: Mode) -> None:
    with FaultProxy(server.url, slow_seconds=0.3) as proxy:
        uri = server.uri("team", url=proxy.url)
        command = [sys.executable, str(Path(__file__).with_name("chatting.py")), uri, str(tmp_path / "one"), "4"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONWARNINGS": ""})
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().strip() for _ in range(40)]
        proxy.mode = mode
        acknowledged += [process.stdout.readline().strip() for _ in range(400 if SOAK else 60)]
        process.kill()
        acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]
        process.stdout.close()
        process.wait(10)
        assert all(acknowledged)
        assert len(acknowledged) >= 100
        proxy.mode = "healthy"
        with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
            assert store.flush(RECOVERY_SECONDS), store.write_behind_status()
    found = stored(server, tmp_path / "two")
    assert set(found.values()) == {1}
    assert set(acknowledged) <= set(found), "an acknowledged message is missing"
    assert len(found) <= len(acknowledged) + 4, "one a session may be there unacknowledged"


def test_two_processes_that_fight_over_sessions_lose_nothing(tmp_path: Path) -> None:
    uri = f"file:{tmp_path / 'store'}"
    command = [sys.executable, str(Path(__file__).with_name("chatting.py")), uri, str(tmp_path / "one"), "3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().strip() for _ in range(30)]
    with open_store(uri, journal=tmp_path / "two", keys=KEYS) as store:
        for turn in range(4):
            acknowledged += [process.stdout.readline().strip() for _ in range(30)]
            for number in range(3):
                session = store.session(f"s{number}")
                session.append(user(f"s{number}: turn {turn} on the other machine"))
                acknowledged.append(f"s{number}: turn {turn} on the other machine")
            store.flush(20)
        acknowledged += [process.stdout.readline().strip() for _ in range(30)]
        process.kill()
        acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]
        process.stdout.close()
        process.wait(10)
        with open_store(uri, journal=tmp_path / "one", keys=KEYS) as other:
            assert other.flush(RECOVERY_SECONDS), other.write_behind_status()
            other.write_behind.all_readable("default")  # type: ignore[union-attr]
            store.flush(20)
            store.write_behind.all_readable("default")  # type: ignore[union-attr]
            sessions = store.journal.sessions("default")
            assert any("-fork-e" in session for session in sessions), "they did not meet"
            logs = [
                {name: one.journal.read(SessionKey("default", name), 0) for name in sessions} for one in (store, other)
            ]
            assert logs[0] == logs[1]
            places = said(store)
    assert {text: len(places[text]) for text in acknowledged} == dict.fromkeys(acknowledged, 1)


if SOAK:  # takes minutes, and a quiet machine

    def test_latencies_stay_where_they_were() -> None:
        found = outage.measure(120.0)
        bar = max(1.2 * found.p99_ms["healthy"], 50.0)
        assert (found.failed, found.lost, found.doubled) == (0, 0, 0)
        assert found.recovery_seconds < RECOVERY_SECONDS
        assert {mode: p99 for mode, p99 in found.p99_ms.items() if p99 > bar} == {}
