"""A store, and whatever it holds, behind a fork: nothing acknowledged is lost, nobody hangs, nothing is shared.

Everything that forks runs in a process of its own (`rounds`, `children`, gunicorn), which has no thread of a test's.
`CTXSTEWARD_SOAK=1` plays 100 rounds of each scenario instead of one.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.store.process_forks import _imports, _pause

from ...examples import SOAK
from ...postgres import postgres, postgres_dsn
from ...s3_servers import S3Server

__all__ = ["postgres", "postgres_dsn"]  # fixtures
ROOT = Path(__file__).resolve().parents[3]
ROUNDS = 100 if SOAK else 1
REFUSED = (
    "StoreError: it was in use in process 0 when this process was forked from it, so nothing is read or written here; "
    "open the store after the fork (uWSGI: lazy-apps = true), or fork while nothing is under way"
)


def run(*command: object, **environment: str) -> str:
    """What a Python process prints."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600 + 20 * ROUNDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- rounds ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    printed = run("-m", "tests.store.forks.rounds", ROUNDS, tmp_path_factory.mktemp("rounds"))
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.parametrize("scenario", ["parent_exits", "parent_closes", "parent_appends", "pool", "daemonize"])
def test_nothing_acknowledged_is_lost_behind_a_fork_and_nobody_hangs(
    rounds: list[dict[str, Any]], scenario: str
) -> None:
    played = [one for one in rounds if one["scenario"] == scenario]
    print(f"{scenario}: {sum(one['told'] for one in played)} turns acknowledged in {len(played)} rounds")
    whole = {"lost": [], "errors": [], "died": [], "hung": False, "damage": []}
    assert [{**one, **whole} for one in played] == played
    assert len(played) == ROUNDS
    assert all(one["told"] >= 30 for one in played)


# -- what children find ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(
        run("-m", "tests.store.forks.children", tmp_path_factory.mktemp("children")).splitlines()[-1]
    )
    return answers


def test_a_child_that_python_did_not_see_being_forked_is_refused_and_harms_nothing(found: dict[str, Any]) -> None:
    """To append, to read, to open; closing does nothing; another store may be opened."""
    assert found["behind_python"] == [REFUSED, REFUSED, REFUSED, [None, None], "§1", ["a", "d"]]


def test_a_child_forked_in_the_midst_of_a_transaction_is_refused_that_file_alone(found: dict[str, Any]) -> None:
    assert found["in_the_midst"] == [REFUSED, REFUSED, "2", "2"]


def test_a_file_that_is_gone_when_it_is_opened_again_is_not_made_anew(found: dict[str, Any]) -> None:
    assert found["gone_meanwhile"] == [*["journal.sqlite was removed while it was in use"] * 3, False]


def test_a_log_that_is_gone_when_its_file_is_opened_again_is_named_to_everybody(found: dict[str, Any]) -> None:
    """And none is made in its place: what another process has acknowledged is in the one that it holds."""
    missing = "Damaged: journal.sqlite-wal is missing"
    assert found["log_gone_meanwhile"] == [missing, missing, "journal.sqlite-wal was removed"]


def test_a_reader_that_waits_for_a_fork_does_not_keep_the_child_waiting(found: dict[str, Any]) -> None:
    assert found["a_waiting_reader"] == 1


def test_a_ledger_is_opened_anew(found: dict[str, Any]) -> None:
    assert found["a_ledger"] == [["1", "2"], ["1", "2"], "2"]


def test_a_session_that_another_thread_was_using_is_read_anew(found: dict[str, Any]) -> None:
    assert found["a_held_session"] == ["§2", 2]


def test_a_fork_waits_for_ten_seconds_in_total_whatever_holds_it_up(found: dict[str, Any]) -> None:
    """Here 0.3 of them: one thread opens the journal for reading and holds all its readers up, another one forks."""
    assert found["a_fork_held_up"] == [True, REFUSED, True]


def test_a_file_that_another_thread_was_about_to_open_is_refused(found: dict[str, Any]) -> None:
    assert found["about_to_open"] == [REFUSED, "§1", 1]


def test_locks_that_threads_of_the_parent_hold_are_free(found: dict[str, Any]) -> None:
    assert found["held_locks"] == [True, ["a", "b"]]


def test_a_child_has_threads_of_its_own_once_it_writes(found: dict[str, Any]) -> None:
    assert found["a_child_s_own_threads"] == [True, ["MainThread", "ctxsteward write-behind"]]


def test_a_lease_is_held_by_one_process(found: dict[str, Any]) -> None:
    fenced = "Fenced: writer epoch 0 has been superseded by 1; read the head and take over anew"
    assert found["a_lease"] == [None, fenced, 1]


def test_two_children_draw_different_names(found: dict[str, Any]) -> None:
    assert found["numbers_drawn"] == 4


def test_a_child_does_not_keep_the_drainer_s_turn(found: dict[str, Any]) -> None:
    assert found["the_drainers_turn"] == [True, True, True]


def test_governed_state_and_content_are_the_same_in_a_child(found: dict[str, Any]) -> None:
    assert found["governed"] == [[2, "said", True], 2]


# -- servers -----------------------------------------------------------------------------------------------

# Two children and a thread of the parent read at once, over connections that the parent had opened.
ON_S3 = """
import os, sys, threading
from ctxsteward.store.objects.s3 import S3Objects

objects = S3Objects.open(sys.argv[1])
for n in range(10):
    objects.put(f"x/{n}", str(n).encode() * 1000)
def read(rounds):
    return all(objects.get(f"x/{n}") == str(n).encode() * 1000 for _ in range(rounds) for n in range(10))
answers, over = [], []
thread = threading.Thread(target=lambda: answers.append(all([read(1) for _ in iter(lambda: bool(over), True)])))
thread.start()
children = []
for n in range(2):
    pid = os.fork()
    if pid == 0:
        good = read(10) and objects.put(f"y/{n}", b"child") == "committed"
        os._exit(0 if good else 1)
    children.append(pid)
answers += [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
over.append(True)
thread.join()
print(*answers, [info.key for info in objects.list("y/")])
"""


def test_children_talk_to_s3_by_connections_of_their_own(moto: S3Server, aws_environment: None) -> None:
    assert run("-c", ON_S3, moto.uri("forks")).split(maxsplit=3) == ["0", "0", "True", "['y/0', 'y/1']\n"]


ON_POSTGRES = """
import os, sys, threading
from ctxsteward.store.postgres_database import PostgresDatabase, PostgresUri

database = PostgresDatabase(PostgresUri.parse(sys.argv[1]))
database.execute("CREATE TABLE written (who text)")
held, over = threading.Event(), threading.Event()
def hold():
    with database._lock:
        held.set()
        over.wait(30)
thread = threading.Thread(target=hold)
thread.start()
held.wait(30)
children = []
for n in range(2):
    pid = os.fork()
    if pid == 0:
        for ordinal in range(1, 21):
            database.execute("INSERT INTO written VALUES (%s)", (f"child-{n}",))
        database.close()
        del database
        os._exit(0)
    children.append(pid)
over.set()
thread.join()
for ordinal in range(1, 21):
    database.execute("INSERT INTO written VALUES ('parent')")
print(*[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children])
print(*database.execute("SELECT who, count(*) FROM written GROUP BY who ORDER BY who"))
database.close()
"""


def test_children_talk_to_postgresql_by_connections_of_their_own(postgres_dsn: str) -> None:
    printed = run("-c", ON_POSTGRES, postgres_dsn).splitlines()
    assert printed == ["0 0", "('child-0', 20) ('child-1', 20) ('parent', 20)"]


# -- before a fork -----------------------------------------------------------------------------------------


class Held:
    """A `Pausable` that threads hold by its lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def pause(self, timeout_seconds: float) -> bool:
        return self.lock.acquire(timeout=timeout_seconds)

    def resume(self) -> None:
        self.lock.release()


def test_whoever_uses_one_file_and_waits_for_another_does_not_hold_a_fork_up() -> None:
    one, other = Held(), Held()
    has_one, waits = threading.Event(), threading.Event()

    def use_both() -> None:
        with one.lock:
            has_one.set()
            waits.wait(30)
            with other.lock:
                pass

    thread = threading.Thread(target=use_both)
    thread.start()
    has_one.wait(30)
    waits.set()
    paused = _pause([other, one], time.monotonic() + 30)
    thread.join(30)
    assert (sorted(map(id, paused)), thread.is_alive()) == (sorted((id(one), id(other))), False)
    for each in paused:
        each.resume()


def test_a_child_can_import_what_another_thread_was_importing(tmp_path: Path) -> None:
    """A fork in the middle of an import waits: the interpreter's lock of that module is never freed in a child."""
    (tmp_path / "slow_module.py").write_text("import time\nbegun = True\ntime.sleep(0.3)\nwhole = True\n")
    program = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(tmp_path)!r})
from ctxsteward.envelope import open_store
with open_store("file:{tmp_path}/store") as store:
    store.session("s").append({{"role": "user", "content": "hello"}})
    importing = threading.Thread(target=__import__, args=("slow_module",))
    importing.start()
    while "slow_module" not in sys.modules:
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that hangs ends
        import slow_module, wave
        os._exit(0 if slow_module.whole else 1)
    importing.join()
    import colorsys
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run("-c", program) == "0\n"


def test_a_fork_waits_for_a_thread_that_is_just_about_to_take_a_module_s_lock() -> None:
    """The lock has no owner yet; a child would find the lock of that lock taken."""
    module_lock = importlib._bootstrap._get_module_lock("a_module")
    held, over = threading.Event(), threading.Event()

    def take() -> None:
        with module_lock.lock:
            held.set()
            over.wait(30)

    thread = threading.Thread(target=take)
    thread.start()
    held.wait(30)
    assert not _imports.pause(0.01)
    over.set()
    thread.join()
    assert _imports.pause(30)
    _imports.resume()


def test_a_child_can_complete_models_though_another_thread_was_completing_one(tmp_path: Path) -> None:
    """Models whose schema is built at first use share one lock of pydantic's."""
    program = f"""
import os, signal, threading, time
from pydantic import BaseModel, ConfigDict
from ctxsteward.envelope import open_store
begun = threading.Event()
class Slow:
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        begun.set()
        time.sleep(0.3)
        return handler(int)
class First(BaseModel):
    model_config = ConfigDict(defer_build=True)
    value: Slow
class Second(BaseModel):
    model_config = ConfigDict(defer_build=True)
    value: int
with open_store("file:{tmp_path}/store") as store:
    store.session("s").append({{"role": "user", "content": "hello"}})
    completing = threading.Thread(target=lambda: First.model_validate({{"value": 1}}))
    completing.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that hangs ends
        os._exit(Second.model_validate({{"value": 0}}).value)
    completing.join()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run("-c", program) == "0\n"


# -- imports -----------------------------------------------------------------------------------------------

BACKGROUND = """
import sys, threading

from ctxsteward.envelope import open_store

store = open_store(f"file:{sys.argv[1]}/store", journal=f"{sys.argv[1]}/journal")
session = store.session("s-1")


class Threads:
    def find_spec(self, name, path=None, target=None):
        thread = threading.current_thread()
        if thread is not threading.main_thread():
            print(thread.name, name)


sys.meta_path.insert(0, Threads())
session.append({"role": "user", "content": "What about order 7?"})
assert store.flush(30)
"""


def test_background_threads_import_nothing(tmp_path: Path) -> None:
    """A module's lock that a thread holds at a fork is never given back in the child, which then waits for ever."""
    assert run("-c", BACKGROUND, tmp_path) == ""
