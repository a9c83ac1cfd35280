"""Eight processes commit to one profile at once: versions 1..N without gaps, every commit once, none lost.

Fewer commits each, on S3 fewest, but 50 with ``CTXSTEWARD_SOAK=1``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import Store, open_store
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.s3 import S3Objects

from ...examples import SOAK
from ...s3_servers import S3Server
from ..processes import run_together

PROCESSES = 8
COMMITS = 50 if SOAK else 8
S3_COMMITS = 50 if SOAK else 2
MASTER = b"m" * 32
PROGRAM = """
import json, sys
from ctxsteward.envelope import Profile, Store, open_store
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.schemas.profile import ProfileEntry
from ctxsteward.store.profiles.versions import ProfileVersions

uri, who, commits = sys.argv[1], sys.argv[2], int(sys.argv[3])
if uri.startswith("s3:"):
    from ctxsteward.store.objects.s3 import S3Objects
    store = Store(MemoryJournal(), S3Objects.open(uri), MasterKeys(b"m" * 32), uri=uri)
else:
    store = open_store(uri)
with store:
    print("ready", flush=True)
    sys.stdin.readline()
    class Unasked(ProfileVersions):  # two writers race for a number: nobody can have approved what follows it
        def _refuse_unapproved(self, *told):
            pass

    versions = Unasked(store, "support")
    for n in range(commits):
        profile = Profile(name="support", policies=(ProfileEntry(id="last", text=f"{who}-{n}"),))
        made = versions.commit(profile, who=who, why="its turn", when="2026-11-22T04:00:00Z")
        print(json.dumps([made.number, made.commit_id, f"{who}-{n}"]), flush=True)
"""


class Acked(NamedTuple):
    number: int
    commit_id: str
    text: str


def race(uri: str, commits: int) -> list[list[Acked]]:
    """What each process was told, in its order."""
    printed = run_together(PROGRAM, [(uri, f"w{n}", commits) for n in range(PROCESSES)])
    return [[Acked(*json.loads(line)) for line in lines.splitlines()] for lines in printed]


def check(store: Store, told: list[list[Acked]], commits: int) -> None:
    history = list(store.profiles("support").history())
    standing = [Acked(version.number, version.commit_id, version.profile.policies[0].text) for version in history]
    total = PROCESSES * commits

    assert [version.number for version in standing] == list(range(1, total + 1))
    assert len({version.commit_id for version in standing}) == total
    assert sorted(acked for one in told for acked in one) == standing
    assert all(one == sorted(one) for one in told), "a process's own commits stand in its order"
    assert len({version.text.partition("-")[0] for version in standing[: total // 2]}) > 1, "they must have raced"


def test_processes_on_a_file_store(tmp_path: Path) -> None:
    uri = f"file:{tmp_path / 'store'}"
    told = race(uri, COMMITS)
    with open_store(uri) as store:
        check(store, told, COMMITS)


def test_processes_on_s3(moto: S3Server, aws_environment: None) -> None:
    server = moto.another_bucket()
    uri = server.uri("team")
    told = race(uri, S3_COMMITS)
    with Store(MemoryJournal(), S3Objects.open(uri), MasterKeys(MASTER), uri=uri) as store:
        check(store, told, S3_COMMITS)
