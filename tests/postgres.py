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
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

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


def _command(*command: str | Path) -> None:
    """Run one of its programs, as a user it accepts; its output goes to a file, as a server would hold a pipe open."""
    as_user = (_RUNUSER or "runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [*as_user, *map(str, command)], stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=SECONDS,
            check=False, cwd="/",
        )  # fmt: skip
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
        workers = [int(pid) for pid in Path(f"/proc/{main}/task/{main}/children").read_text().split()]
        for pid in (main, *workers):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + SECONDS
        while any(Path(f"/proc/{pid}/cmdline").exists() and _is_running(pid) for pid in (main, *workers)):
            assert time.monotonic() < until, "the killed server is still there"
            time.sleep(0.01)
        (self.home / "data" / "postmaster.pid").unlink(missing_ok=True)

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
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    if os.geteuid() == 0 and (_RUNUSER is None or "postgres" not in {u.pw_name for u in pwd.getpwall()}):
        pytest.skip("PostgreSQL does not run as root, and there is no user `postgres` to run it as")
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
            folder / "initdb", "-D", home / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
            "--no-sync",
        )  # fmt: skip
        server = PostgresServer(home, settings)
        server.start()
        try:
            yield server
        finally:
            with suppress(AssertionError):  # a test may have ended it
                server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


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
