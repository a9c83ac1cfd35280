"""A draft that grew night by night is the draft of all its observations at once, byte for byte."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Store
from ctxsteward.schemas import StoreError
from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.artifact import Artifact, build_artifact
from ctxsteward.steward.artifacts.storage import ArtifactStore
from ctxsteward.steward.harvest.tools.errors import tool_errors
from ctxsteward.steward.ledger.database import VERSION
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.store.crypto.keyring import memory_keys

from ...examples import examples
from ..harvest.tools.scenes import call, scene
from ..scenes import AGENT, TENANT, artifact, memory_store, same_keys_store
from .test_set import NOW, SESSIONS, artifacts_of

FAILED = "Error: payment method not found"
SCENES = tuple(product(("recovers", "fails", "works"), ("book", "change", "refund")))
"""What happens in a session (a tool recovers, fails, or just works), and the tool."""


def tool_artifact(store: Store, number: int, does: str, tool: str, revision: int = 0) -> Artifact:
    bad, good = (
        call(tool, FAILED, order="A17", payment_id="card_1"),
        call(tool, "{}", order="A17", payment_id="c_88121"),
    )
    looks = call("get_user", '"c_88121"', user_id="ann")
    lines: dict[str, list[Any]] = {"recovers": [bad, looks, good], "fails": [bad], "works": [good]}
    transcript = scene(*lines[does], session=f"s{number}", principal=f"u{number}")
    key = store.keys.address_key(TENANT)
    (one,) = build_artifact(transcript, tool_errors(transcript), extractor="harvest/1", key=key, revision=revision)
    return one


NIGHTS = st.lists(
    st.tuples(
        SESSIONS,
        st.lists(st.sampled_from(SCENES), max_size=4),
        st.lists(st.integers(0, 99), max_size=3),
        st.sampled_from([None, None, "s0", "s1", "s10"]),
    ),
    min_size=2,
    max_size=5,
)
"""What people said, what tools did, which claims the sessions were shown, and which session is withdrawn then."""


def opened(store: Store, path: Path | str = ":memory:") -> Ledger:
    return Ledger.open(path, store, TENANT, AGENT)


def told(ledger: Ledger) -> tuple[Any, ...]:
    records = [record.model_dump_json() for record in ledger.records(JudgementContext(now=NOW))]
    return records, ledger.digest(), ledger.judged(JudgementContext(now=NOW))


def one_by_one(ledger: Ledger, artifacts: Iterable[Artifact]) -> None:
    for one in artifacts:
        ledger.absorb(one)
        ledger.components()


@settings(max_examples=examples(80))
@given(NIGHTS, st.integers(0, 2**32 - 1))
def test_grown_drafts_are_those_of_all_observations(nights: list[tuple[Any, ...]], keys: int) -> None:
    """People and tools speak, sessions were shown what is claimed, or will be, come anew and are withdrawn."""
    with (
        same_keys_store(memory_keys(Random(keys).randbytes)) as store,
        opened(store) as grown,
        opened(store) as whole,
        opened(store) as foreseen,
    ):
        news: list[list[Artifact]] = []
        for night, (rows, scenes, _, _) in enumerate(nights):
            new = artifacts_of(store, [(*row, 3 * night + revision) for *row, revision in rows])
            news.append(new + [tool_artifact(store, 10 * night + at + 10, *one) for at, one in enumerate(scenes)])
            foreseen.absorb(*news[-1])
        names = [row[0] for row in foreseen._db.rows("SELECT DISTINCT claim FROM seen ORDER BY claim")]
        came: list[Artifact] = []
        for new, (_, _, picked, gone) in zip(news, nights, strict=True):
            shown = tuple(sorted({names[at % len(names)] for at in picked})) if names else ()
            new = [replace(one, shown=shown) for one in new]
            one_by_one(grown, new)
            came += new
            if gone:
                grown.withdraw(session=gone)
        whole.absorb(*reversed(came))
        for session, _ in grown._db.rows("SELECT * FROM erased"):
            whole.withdraw(session=session)
        assert told(grown) == told(whole)


def aged(path: Path, version: int) -> None:
    """Make a file what an older version might have left."""
    with sqlite3.connect(path) as file:
        for statement in (
            "DROP TABLE seen",
            "CREATE TABLE claims (id TEXT, seen TEXT)",
            "DROP TABLE batches",
            "CREATE TABLE batches (batch TEXT)",
            "CREATE TABLE olden (words TEXT)",
            "INSERT INTO olden VALUES ('secret')",
            f"PRAGMA user_version = {version}",
        ):
            file.execute(statement)
    file.close()


@pytest.fixture
def store() -> Any:
    with memory_store() as opened:
        yield opened


def filled(store: Store, path: Path) -> tuple[Any, ...]:
    """A ledger whose artifacts are in the store, one of them withdrawn."""
    with opened(store, path) as ledger:
        kept = ArtifactStore(store, TENANT)
        came = [artifact(store, f"s{n}", ["Keep your answers short."], principal=f"u{n}") for n in range(4)]
        ledger.absorb_kept([address for one in came if (address := kept.put(one)) is not None])
        ledger.withdraw(session="s3")
        return told(ledger)


def test_a_file_of_an_older_version_is_made_anew_from_the_store(store: Store, tmp_path: Path) -> None:
    before = filled(store, path := tmp_path / "ledger.sqlite")
    aged(path, VERSION - 1)
    with opened(store, path) as ledger:
        assert told(ledger) == before
        assert "olden" not in {row[0] for row in ledger._db.rows("SELECT name FROM sqlite_master")}
    with opened(store, path) as ledger:
        assert told(ledger) == before
    assert b"secret" not in path.read_bytes()


def test_a_file_of_a_newer_version_or_of_another_agent_is_not_touched(store: Store, tmp_path: Path) -> None:
    filled(store, path := tmp_path / "ledger.sqlite")
    aged(path, VERSION + 1)
    with pytest.raises(StoreError, match="update"):
        opened(store, path)
    aged_path = tmp_path / "other.sqlite"
    filled(store, aged_path)
    aged(aged_path, VERSION - 1)
    with pytest.raises(StoreError, match="not of tenant 'acme', agent 'sales'"):
        Ledger.open(aged_path, store, TENANT, "sales")
    for file in (path, aged_path):
        with sqlite3.connect(file) as left:
            assert left.execute("SELECT words FROM olden").fetchall() == [("secret",)]
        left.close()
