"""Fixtures that several folders share: S3 servers, one of each a test run. Files of tests lie in memory if they may."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from . import network_guard
from .examples import SEED, SOAK, examples
from .needs import skip_line
from .postgres import PostgresServer, running
from .process_state import changes, state_of_process
from .run_order import shuffled
from .s3_servers import CREDENTIALS, Ministack, S3Server, ministack_server, moto_server

network_guard.install()

MEMORY = Path("/dev/shm")
ROOM_BYTES = 2 << 30
"""A whole run leaves some hundred megabytes."""


def lies_in_memory() -> bool:
    """Whether there is a file system in memory with room, whose programs may be run; a soak writes to the disk."""
    if SOAK or "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return False
    return not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC and shutil.disk_usage(MEMORY).free >= ROOM_BYTES


if lies_in_memory():
    # A store makes each of its small files durable: on a disk a third of a run was waiting for it, and no test can cut
    # the power. What would be left after a cut is tested on a double of the disk (`tests/store/objects/crash_disk.py`).
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

# No test speaks TLS, and every client of a model would read the machine's certificates: a folder without one is quick.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).with_name("golden"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts a background job with interrupts ignored, and processes that tests interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "counted",
    settings.default,
    max_examples=examples(settings.default.max_examples),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("counted")
"""Property tests that name no number of examples: a tenth of hypothesis's own on every run, as those that do. None is
timed: on a machine that does other work, too, a single example may take seconds."""

LONG = (
    "tests/flows/",
    "tests/console/service/test_attacks.py",
    "tests/store/crashes/",
    "tests/console/steward/",
    "tests/steward/",
    "tests/store/replication/",
    "tests/evals/",
    "tests/test_guide_",
    "tests/test_docs.py",
    "tests/test_linear",
    "tests/store/",
)
"""Where few tests take long: they begin first, so that no process is left alone with one at the end."""


TOGETHER = ("tests/flows/", "tests/store/objects/", "tests/browser/", "tests/envelope/audit/", "tests/console/steward/")
"""Folders whose files share what is long in starting: all of them go to one process."""
APART = (
    "tests/store/crashes/test_crash_points.py",
    "tests/store/replication/test_outage.py",
    "tests/steward/ingest/test_worker_pool.py",
)
"""Long files whose tests share little: each test goes to a process by itself."""
OF_THE_CODE = (
    "tests/test_house.py",
    "tests/test_architecture.py",
    "tests/test_extras.py",
    "tests/schemas/test_findings.py",
    "tests/test_named_things.py",
    "tests/test_plain_english.py",
)
"""Files that share what was parsed: all modules of the product."""


class Shared(LoadFileScheduling):
    """Files to one process each, some folders whole, and some files test by test."""

    def _split_scope(self, nodeid: str) -> str:
        scope = super()._split_scope(nodeid)
        if scope in OF_THE_CODE:
            return OF_THE_CODE[0]
        if scope in APART:
            return nodeid
        return next((folder for folder in TOGETHER if scope.startswith(folder)), scope)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Shared | None:
    """Instead of `--dist loadfile`."""
    return Shared(config, log) if config.getoption("dist") == "loadfile" else None


class DoctestsThatExist:
    """Python files without a doctest are not looked through for one: each test file would be read twice.

    A plug-in of its own, since hooks of a conftest hold for its folder alone.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        collectors = yield
        if file_path.suffix != ".py" or b">>>" in file_path.read_bytes():
            return collectors
        return [collector for collector in collectors if not isinstance(collector, DoctestModule)]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(DoctestsThatExist())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without the garbage collector: it would go over the ten thousand tests again and again, and finds nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        # By default it runs at every 700 new objects: a twelfth of the time of all tests.
        gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Long files first, files of one rank and the tests of a file shuffled; tests marked `soak` in a soak alone.

    Needs ``--no-loadscope-reorder`` where processes share the files out.
    """

    def rank(item: pytest.Item) -> int:
        return next((place for place, start in enumerate(LONG) if item.nodeid.startswith(start)), len(LONG))

    if not SOAK:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("soak")])
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    items[:] = shuffled(items, lambda item: item.nodeid.partition("::")[0], SEED)
    # pytest then brings the tests of one parametrized fixture together, so that it is made once.
    outcome = yield
    items.sort(key=rank)
    return outcome


AGAIN = f"CTXSTEWARD_DRAW={SEED}"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print the seed of this run; as a header of pytest it would be missing under `-q`."""
    if reporter := session.config.pluginmanager.get_plugin("terminalreporter"):
        reporter.ensure_newline()
        reporter.write_line(f"order and cases are drawn with {AGAIN}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int
) -> Generator[None, object, object]:
    """Last of all: what skipped tests need, and with what a run that failed has the same order and cases again."""
    outcome = yield
    if line := skip_line(str(report.longrepr[-1]) for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)
    if exitstatus:
        terminalreporter.write_line(f"order and cases were drawn with {AGAIN}; it makes them the same again")
    return outcome


@pytest.fixture(autouse=True, scope="module")
def _leaves_the_process_as_it_was() -> Iterator[None]:
    before = state_of_process()
    yield
    left_behind = changes(before, state_of_process())
    assert left_behind == [], "this file changes what the files after it find:\n" + "\n".join(left_behind)


IMPORT_PATH = pytest.StashKey[list[str]]()


# Hooks and no fixtures: over ten thousand tests, a fixture around each costs ten seconds.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    network_guard.reached.clear()
    item.stash[IMPORT_PATH] = list(sys.path)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """No test reaches a network or leaves a folder to import from: `--subject FILE.py:name` puts the file's first."""
    # Before fixtures end: behind the last test of a file, one of them compares the process with what it was.
    sys.path[:] = item.stash[IMPORT_PATH]
    outcome = yield
    assert network_guard.reached == []
    return outcome


@pytest.fixture(scope="session")
def moto() -> Iterator[S3Server]:
    """moto in this process; `moto.another_bucket()` to be alone."""
    with moto_server() as server:
        yield server


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    """ministack in a process of its own, for tests that leave it running; skips where it is not installed."""
    with ministack_server(tmp_path_factory.mktemp("ministack")) as server:
        yield server


@pytest.fixture(scope="session")
def shared_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that stays up, for tests that name a schema of their own each; skips where it is not installed."""
    with running() as server:
        yield server


@pytest.fixture
def aws_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials of the test servers where boto3 looks for them, for code that makes its own session."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
