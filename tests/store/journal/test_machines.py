"""Machines that share nothing but a PostgreSQL and a master key: processes that chat, build, are killed, and a server
that is killed under them. Nothing acknowledged is lost, doubled or out of order.

`CTXSTEWARD_SOAK=1` plays all of it long.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import IO, Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store, rebuild
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter as TokenCounter
from ctxsteward.store import MasterKeys
from ctxsteward.store.journal.events import MessageAppended, from_record
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.journal.postgres import PostgresJournal
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.postgres_database import PostgresDatabase, PostgresUri

from ...examples import SOAK
from ...postgres import PostgresServer, running
from ..processes import ROOT, run_together
from .journals import KILLER, WRITERS

PROCESSES, SESSIONS = 8, 64 if SOAK else 32
ROUNDS = 10 if SOAK else 1
KILLS = 300 if SOAK else 12
SERVER_KILLS = 40 if SOAK else 2
TURNS = 200 if SOAK else 12
KEYS = MasterKeys(b"k" * 32)
CHARS = TokenCounter(CharTokenizer())

CHATTER = """
import json, random, sys
from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.store import MasterKeys

uri, name, sessions, rounds = sys.argv[1:]
store = open_store(uri, keys=MasterKeys(b"k" * 32))
builder = EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=1500))
order, told = random.Random(name), []
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(rounds)):
    ids = [f"s{number}" for number in range(int(sessions))]
    order.shuffle(ids)
    for id in ids:
        session = store.session(id, tenant="acme")  # any machine takes any turn
        asked = session.append({"role": "user", "content": f"{name} asks {n}: what is {n} times 7?"}, id=f"{name}-{n}")
        envelope = builder.build(session)
        text = f"{name}, that is {n * 7}; the file is at /srv/{name}/{n}.txt. " + "And so on. " * 20
        said = session.append({"role": "assistant", "content": text}, id=f"{name}-{n}-reply")
        told.append([id, n, asked.ordinal, said.ordinal, envelope.address])
store.close()
print(json.dumps(told))
"""


def test_eight_machines_chat_in_the_same_sessions_and_nothing_is_lost_or_out_of_order(
    shared_postgres: PostgresServer,
) -> None:
    uri = shared_postgres.uri("chat")
    told = [
        json.loads(line) for line in run_together(CHATTER, [(uri, f"m{n}", SESSIONS, ROUNDS) for n in range(PROCESSES)])
    ]
    with open_store(uri, keys=KEYS) as store:
        for number in range(SESSIONS):
            key = SessionKey("acme", f"s{number}")
            events = [from_record(record) for record in store.journal.read(key, 0)]
            messages = [event for event in events if isinstance(event, MessageAppended)]
            assert [event.ordinal for event in messages] == list(range(1, 2 * PROCESSES * ROUNDS + 1))
            place = {event.id: event.ordinal for event in messages}
            assert len(place) == len(messages)
            for n, turns in enumerate(told):
                mine = [turn for turn in turns if turn[0] == key.session]
                assert [(place[f"m{n}-{turn[1]}"], place[f"m{n}-{turn[1]}-reply"]) for turn in mine] == [
                    (turn[2], turn[3]) for turn in mine
                ]
                acknowledged = [ordinal for turn in mine for ordinal in turn[2:4]]
                assert acknowledged == sorted(acknowledged)
                assert len(acknowledged) == 2 * ROUNDS
        for turn in random.Random(1).sample([turn for turns in told for turn in turns], 20):
            assert store.manifest(turn[4], tenant="acme")["session"] == turn[0]
        assert any(len(store.at("acme", f"s{number}").reports()) for number in range(SESSIONS))
        assert not fsck(store).damaged


BUILDER = """
import json, os, sys
from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.store import MasterKeys

store = open_store(sys.argv[1], keys=MasterKeys.from_environment(os.environ))
builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=300))
session = None
for line in sys.stdin:
    said = json.loads(line)
    if session is None or said["anew"]:
        session = store.session("shared", tenant="acme", system="You plan trips.")
    if said["message"]:
        session.append(said["message"])
    envelope = builder.build(session)
    print(json.dumps([envelope.address, envelope.render("openai-chat"), envelope.render("anthropic")]), flush=True)
store.close()
"""


def test_two_machines_that_take_turns_of_one_session_build_the_same_bytes(
    shared_postgres: PostgresServer, tmp_path: Path
) -> None:
    uri = shared_postgres.uri("turns")
    paths = ":".join(sys.path)
    machines = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        machines.append(
            subprocess.Popen(
                [sys.executable, "-c", BUILDER, uri],
                cwd=tmp_path / name,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={"PYTHONPATH": paths, "CTXSTEWARD_MASTER_KEY": "6b" * 32},
            )
        )
    try:
        built = []
        for turn in range(TURNS):
            text = f"Question {turn}: what did I say about city {turn // 3}, budget {turn}?"
            message = {"role": "user", "content": text}
            if turn % 2:
                text = f"City {turn // 3} costs {turn * 31} EUR; see /srv/{turn}.txt. " + "A long reply. " * 25
                message = {"role": "assistant", "content": text}
            anew = turn % 5 == 4
            first = ask(machines[turn // 2 % 2], message=message, anew=anew)
            second = ask(machines[1 - turn // 2 % 2], message=None, anew=anew)
            assert first == second
            built.append(first[0])
    finally:
        for machine in machines:
            assert machine.stdin is not None
            machine.stdin.close()
            assert machine.wait(60) == 0
            assert machine.stdout is not None
            machine.stdout.close()
    assert [sorted(path.name for path in (tmp_path / name).rglob("*")) for name in ("one", "two")] == [[], []]
    with open_store(uri, keys=KEYS) as store:
        assert store.at("acme", "shared").reports()
        assert [rebuild(store, address, tenant="acme").address for address in built] == built


def ask(machine: subprocess.Popen[str], **said: Any) -> Any:
    stdin, stdout = machine.stdin, machine.stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write(json.dumps(said) + "\n")
    stdin.flush()
    return json.loads(stdout.readline())


def test_a_turn_costs_no_more_as_its_session_grows_whichever_machine_takes_it(
    shared_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that a machine reads which has never seen the session: what recall has read lies in the database, too."""
    uri, read = shared_postgres.uri("grows"), [0]
    execute = PostgresDatabase.execute

    def counted(self: PostgresDatabase, *arguments: Any, **named: Any) -> Any:
        rows = execute(self, *arguments, **named)
        read[0] += len(rows)
        return rows

    monkeypatch.setattr(PostgresDatabase, "execute", counted)
    costs = []
    for age in (100, 200, 400):
        with open_store(uri, keys=KEYS) as one:
            session, builder = one.session("s", tenant="acme", counter=CHARS), chars_builder()
            for n in range(len(session), age, 20):
                session.extend(
                    {
                        "role": ("user", "assistant")[at % 2],
                        "content": f"Number {at} of project P{at % 7} is {at * 31}.",
                    }
                    for at in range(n, n + 20)
                )
                session.append({"role": "user", "content": f"What is number {n}?"})
                builder.build(session)
        most = 0
        for n in range(3):
            with open_store(uri, keys=KEYS) as another:  # with caches of its own
                read[0] = 0
                session, builder = another.session("s", tenant="acme", counter=CHARS), chars_builder()
                session.append({"role": "user", "content": f"And what is number {n * 9}?"})
                builder.build(session)
                session.append({"role": "assistant", "content": "As said."})
                most = max(most, read[0])
        costs.append(most)
    assert max(costs) < 100
    with open_store(uri, keys=KEYS) as another:
        another.derived_rows = another.folder = None  # nothing is kept: it would have to read all of it
        session, read[0] = another.session("s", tenant="acme", counter=CHARS), 0
        session.append({"role": "user", "content": "And number 3?"})
        chars_builder().build(session)
        assert read[0] > 400


def chars_builder() -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=1500))


OPENED = (
    WRITERS
    + """
from ctxsteward.store.journal.postgres import PostgresJournal
from ctxsteward.store.postgres_database import PostgresDatabase, PostgresUri
from ctxsteward.store import MasterKeys

def opened():
    database = PostgresDatabase(PostgresUri.parse(sys.argv[1]))
    return PostgresJournal(database, address_key=MasterKeys(b"k" * 32).address_key)
"""
)


def check_order(uri: str, acknowledged: list[tuple[str, int]]) -> Counter[str]:
    """Everything acknowledged stands where it was said to; nothing is torn, doubled or missing in between."""
    database = PostgresDatabase(PostgresUri.parse(uri))
    with closing(PostgresJournal(database, address_key=KEYS.address_key)) as journal:
        present: dict[str | None, int] = {}
        for session in ("s", "t", "u"):
            key = SessionKey("t", session)
            ids = [record.id for record in journal.read(key, 0)]
            assert len(ids) == len(set(ids)) == journal.length(key)
            assert [f"{id}+" for id in ids[::2]] == ids[1::2]
            present |= {id: position for position, id in enumerate(ids)}
        assert {id: present.get(id) for id, _ in acknowledged} == dict(acknowledged)
        for writer in {id.rpartition(":")[0] for id, _ in acknowledged}:
            places = [position for id, position in acknowledged if id.rpartition(":")[0] == writer]
            assert places == sorted(places)
        assert (journal.altered("t"), journal.integrity()) == ([], [])
    return Counter(id.split(":")[0] for id, _ in acknowledged)


def test_killed_writers_lose_nothing_that_they_had_acknowledged(shared_postgres: PostgresServer) -> None:
    uri = shared_postgres.uri("killed")
    acknowledged: list[tuple[str, int]] = []
    with subprocess.Popen(
        [sys.executable, "-c", OPENED + KILLER, uri, "0.2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as killer:
        assert killer.stdin is not None
        assert killer.stdout is not None
        for run in count():
            killer.stdin.write(f"{run}\n")
            killer.stdin.flush()
            for line in iter(killer.stdout.readline, "killed\n"):
                assert line, "the killer is gone"
                acknowledged.append(read_line(line))
            if run >= KILLS and {id[0] for id, _ in acknowledged} == {"s", "t", "u"}:
                break
        killer.stdin.close()
    assert killer.returncode == 0
    assert set(check_order(uri, acknowledged)) == {"s", "t", "u"}


def test_a_killed_server_loses_nothing_and_its_writers_go_on_by_themselves() -> None:
    """SIGKILL to all of its processes, again and again, while two machines write."""
    with running() as server:
        uri = server.uri("killed")
        program = f"{OPENED}\nwrite(opened(), sys.argv[2])"
        writers = [
            subprocess.Popen([sys.executable, "-c", program, uri, f"{n}"], stdout=subprocess.PIPE, text=True, cwd=ROOT)
            for n in range(2)
        ]
        acknowledged: list[tuple[str, int]] = []
        try:
            for _ in range(SERVER_KILLS):
                acknowledged += some_lines(writers, 40)
                server.kill()
                time.sleep(0.1)
                server.start()
            acknowledged += some_lines(writers, 40)  # behind the last one
            assert [writer.poll() for writer in writers] == [None, None]
        finally:
            for writer in writers:
                writer.kill()
                writer.wait(60)
        for writer in writers:
            assert writer.stdout is not None
            *lines, _ = (writer.stdout.read() + "\n").split("\n")  # without what the kill has torn
            acknowledged += [read_line(line) for line in lines if line.count(" ") == 1][:-1]
            writer.stdout.close()
        counts = check_order(uri, acknowledged)
        assert sum(counts.values()) > 80 * SERVER_KILLS


def some_lines(writers: list[subprocess.Popen[str]], count: int) -> list[tuple[str, int]]:
    """So many acknowledgements of each writer."""
    streams: list[IO[str]] = [writer.stdout for writer in writers if writer.stdout is not None]
    return [read_line(stream.readline()) for stream in streams for _ in range(count)]


def read_line(line: str) -> tuple[str, int]:
    id, position = line.split()
    return id, int(position)
