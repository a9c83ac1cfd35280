"""A PostgreSQL for tests: Debian's programs, a cluster in a temporary folder, stopped and removed at the end.

    from ...postgres import postgres, postgres_dsn      # fixtures; both names are needed

`postgres` starts the cluster once a test module, on a unix socket in its folder, never on a port; `postgres_dsn` gives
each test an empty schema of its own. Tests of stores share one cluster a run (`shared_postgres`, in `tests/conftest`),
and those that stop or kill their server have one of their own (`running`). Skips visibly where the programs are
missing (`apt-get install postgresql`).
The server refuses to run as root: under root everything of it runs as the package's user, `postgres`.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from .needs import PGBOUNCER, POSTGRESQL

SECONDS = 60
"""Any one step: making, starting or stopping the cluster."""
_SETTINGS = "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=100 -c shared_buffers=16MB"
_RUNUSER = shutil.which("runuser", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")  # root's, not everybody's
_schemas = itertools.count(1)


def programs() -> Path | None:
    """The folder of the newest installed server's programs."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0,
    )
    return found[-1].parent if found else None


def _as_user() -> tuple[str, ...]:
    """What runs a program as a user that it accepts."""
    return (_RUNUSER or "runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()


def _command(*command: str | Path) -> None:
    """Run one of its programs, as a user it accepts; its output goes to a file, as a server would hold a pipe open."""
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [*_as_user(), *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=SECONDS,
            check=False,
            cwd="/",
        )
        output.seek(0)
        assert done.returncode == 0, output.read().decode(errors="replace")


@dataclass
class PostgresServer:
    """A cluster in a folder: its data, its socket, its log."""

    home: Path
    settings: str = _SETTINGS

    def start(self) -> None:
        options = f"{self.settings} -c unix_socket_directories={self.home}"
        self._control("-l", self.home / "log", "-o", options, "start")

    def stop(self, how: str = "immediate") -> None:
        self._control("-m", how, "stop")

    def kill(self) -> None:
        """SIGKILL to the server and all of its processes, as when the machine loses its power."""
        main = int((self.home / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(main, signal.SIGSTOP)  # it starts no more of them
        workers = [int(pid) for pid in Path(f"/proc/{main}/task/{main}/children").read_text().split()]
        for pid in (main, *workers):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + SECONDS
        while any(Path(f"/proc/{pid}/cmdline").exists() and _is_running(pid) for pid in (main, *workers)):
            assert time.monotonic() < until, "the killed server is still there"
            time.sleep(0.01)
        for left in ("data/postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
            (self.home / left).unlink(missing_ok=True)

    def uri(self, schema: str, **more: str) -> str:
        """Of a store in it."""
        query = "".join(f"&{name}={quote(value, safe='')}" for name, value in more.items())
        return f"postgresql://postgres@/postgres?host={quote(str(self.home), safe='')}&schema={schema}{query}"

    def _control(self, *arguments: str | Path) -> None:
        _command(_programs() / "pg_ctl", "-D", self.home / "data", "-w", "-t", str(SECONDS // 2), *arguments)


def _is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _programs() -> Path:
    folder = programs()
    if folder is None:
        pytest.skip(POSTGRESQL)
    if os.geteuid() == 0 and (_RUNUSER is None or "postgres" not in {u.pw_name for u in pwd.getpwall()}):
        pytest.skip(POSTGRESQL)  # root needs the user `postgres` of the package
    return folder


@contextmanager
def running(settings: str = _SETTINGS) -> Iterator[PostgresServer]:
    """A new cluster; skips the test where it cannot be."""
    folder = _programs()
    home = Path(tempfile.mkdtemp(prefix="ctxpg-"))  # short: a socket's path has at most 107 characters
    try:
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")
        _command(
            folder / "initdb",
            "-D",
            home / "data",
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        )
        server = PostgresServer(home, settings)
        server.start()
        try:
            yield server
        finally:
            with suppress(AssertionError):  # a test may have ended it
                server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


POOLED = """
[databases]
* = host={home}
[pgbouncer]
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
unix_socket_dir = {folder}
listen_addr =
auth_type = any
logfile = {folder}/log
pidfile = {folder}/pid
"""
"""As it comes, but for where things are; `auth_type = any` logs everybody in as the user of the database line."""


@contextmanager
def pooled(server: PostgresServer) -> Iterator[str]:
    """PgBouncer before a server, two connections for all clients, a transaction each; its socket's folder."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip(PGBOUNCER)
    folder = Path(tempfile.mkdtemp(prefix="ctxpb-"))
    try:
        text = POOLED.format(home=server.home, folder=folder).replace("* = ", "* = user=postgres ")
        (folder / "pgbouncer.ini").write_text(text)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
            (folder / "pgbouncer.ini").chmod(0o644)
        with subprocess.Popen(
            [*_as_user(), program, "-q", folder / "pgbouncer.ini"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as running_pooler:
            try:
                until = time.monotonic() + SECONDS
                while not (folder / ".s.PGSQL.6432").exists():
                    assert running_pooler.poll() is None, (folder / "log").read_text()
                    assert time.monotonic() < until, "PgBouncer does not listen"
                    time.sleep(0.01)
                yield str(folder)
            finally:
                try:
                    os.kill(int((folder / "pid").read_text()), signal.SIGTERM)  # what runs it would wait for 2 s
                except OSError:
                    running_pooler.terminate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


SYNC = b"S\0\0\0\4"
"""How an implicit transaction ends, in PostgreSQL's protocol."""


class CuttingProxy:
    """A socket before a server's. It cuts the next connection that sends something after `cut` was called."""

    def __init__(self, server: PostgresServer) -> None:
        self._target = str(server.home / ".s.PGSQL.5432")
        self.home = Path(tempfile.mkdtemp(prefix="ctxpx-"))
        self.cuts = 0
        """So many connections were cut."""
        self._armed: str | None = None
        self._passed = 0
        self.refuses = False
        """New connections are closed at once."""
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.home / ".s.PGSQL.5432"))
        self._listening.listen()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self, what: str, after: int = 0) -> None:
        """`request`: it never arrives; `answer`: it arrives, and what the server says to it is lost; `wait`: it
        arrives, and nobody waits for what the server says; `commit`: the same, once the transaction is sent to its
        end; `silence`: the connection stays, and no answer comes. `after`: so many requests pass before."""
        self._armed, self._passed = what, after

    def close(self) -> None:
        for one in (self._listening, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(SECONDS)
        for one in (self._listening, *self._sockets):
            one.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self._threads[-1].start()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.refuses:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                told: list[str] = []
                self._sockets += (client, server)
                self._start(self._pump, client, server, True, told)
                self._start(self._pump, server, client, False, told)

    def _pump(self, source: socket.socket, sink: socket.socket, asks: bool, told: list[str]) -> None:
        """One direction of a connection; `told` is how it was cut."""
        try:
            while data := source.recv(1 << 20):
                if not asks and told:
                    if told == ["answer"]:
                        break
                    continue
                how = self._how(data) if asks else None
                if how is not None:
                    told.append(how)
                if how == "request":
                    break
                sink.sendall(data)
                if how in ("wait", "commit"):
                    break
        except OSError:
            pass
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _how(self, data: bytes) -> str | None:
        """How the connection is cut that this is sent over; None: it is not."""
        if self._armed is None or data[:1] == b"X" or (self._armed == "commit" and SYNC not in data[-10:]):
            return None
        self._passed -= 1
        if self._passed >= 0:
            return None
        how, self._armed = self._armed, None
        self.cuts += 1
        return how


@pytest.fixture(scope="module")
def postgres() -> Iterator[Path]:
    """A running cluster: the folder of its data and its socket."""
    with running() as server:
        yield server.home


def dsn_of(home: Path, schema: str) -> str:
    """Where a cluster's schema is found; made if missing."""
    import psycopg

    plain = f"postgresql://postgres@/postgres?host={quote(str(home), safe='')}"
    with psycopg.connect(plain, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")  # type: ignore[arg-type]  # a name of ours
    return f"{plain}&options={quote(f'-csearch_path={schema}')}"


@pytest.fixture
def postgres_dsn(postgres: Path) -> str:
    """An empty schema."""
    return dsn_of(postgres, f"s{next(_schemas)}")
