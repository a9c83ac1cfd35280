"""A PostgreSQL for tests: Debian's programs, a cluster in a temporary folder, stopped and removed at the end.

    from ...postgres import postgres, postgres_dsn      # fixtures; both names are needed

`postgres` starts the cluster once a test module, on a unix socket in its folder, never on a port; `postgres_dsn` gives
each test an empty schema of its own. Skips visibly where the programs are missing (`apt-get install postgresql`).
The server refuses to run as root: under root everything of it runs as the package's user, `postgres`.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

SECONDS = 60
"""Any one step: making, starting or stopping the cluster."""
_SETTINGS = "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=40 -c shared_buffers=16MB"
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


@pytest.fixture(scope="module")
def postgres() -> Iterator[Path]:
    """A running cluster: the folder of its data and its socket."""
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    if os.geteuid() == 0 and (_RUNUSER is None or "postgres" not in {u.pw_name for u in pwd.getpwall()}):
        pytest.skip("PostgreSQL does not run as root, and there is no user `postgres` to run it as")
    home = Path(tempfile.mkdtemp(prefix="ctxpg-"))  # short: a socket's path has at most 107 characters
    try:
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")
        data = home / "data"
        _command(
            folder / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
        )
        start = ("-l", home / "log", "-o", f"{_SETTINGS} -c unix_socket_directories={home}")
        _command(folder / "pg_ctl", "-D", data, "-w", "-t", str(SECONDS // 2), *start, "start")
        try:
            yield home
        finally:
            _command(folder / "pg_ctl", "-D", data, "-w", "-t", str(SECONDS // 2), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


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
