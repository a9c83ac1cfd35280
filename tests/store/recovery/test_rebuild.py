"""A past envelope: byte for byte from an unharmed journal; from a harmed one never other bytes without a word."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope import EnvelopeBuilder, open_store, rebuild
from ctxsteward.envelope.building.builder import RENDERERS
from ctxsteward.envelope.envelope import RENDERER_VERSION, verify_seal
from ctxsteward.schemas import InputError, ReferenceNotFound
from ctxsteward.schemas.errors import Damaged

from .spoiling import PLANTED, SPOILS, WORDS, builder, faults, kinds, opened, positions, reply, spoil, user


class Built(NamedTuple):
    address: str
    shown: str


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built]:
    """A session with several compactions, and its last envelope; the builder's tokenizer has a name."""
    root = tmp_path_factory.mktemp("original")
    with open_store(f"file:{root}") as store:
        session, maker = store.session("s", system="Be brief."), named()
        for n in range(40):
            session.append((user if n % 2 == 0 else reply)(f"message {n} " + "some words to fill it " * 3))
            envelope = maker.build(session)
        assert session.state.compactions > 1
        assert verify_seal(store.keys, envelope.seal, envelope)
        return root, Built(envelope.address, str(envelope.render("anthropic")))


@pytest.fixture
def built(original: tuple[Path, Built], tmp_path: Path) -> Built:
    """A copy of it below `tmp_path`."""
    shutil.copytree(original[0], tmp_path, dirs_exist_ok=True)
    return original[1]


def named() -> EnvelopeBuilder:
    made = builder(400)
    return EnvelopeBuilder(tokenizer="o200k_base", budgets=made.budgets, summarizer=made._decider.compactor.summarizer)


def test_from_an_unharmed_journal_it_is_the_same_and_its_seal_holds(tmp_path: Path, built: Built) -> None:
    with open_store(f"file:{tmp_path}") as store:
        again = rebuild(store, built.address)
        assert (again.address, str(again.render("anthropic"))) == built
        assert again.metrics["degraded"] == 0
        assert verify_seal(store.keys, again.seal, again)


@pytest.mark.parametrize("way", [*SPOILS, *WORDS])
def test_from_a_harmed_journal_it_says_that_it_differs(tmp_path: Path, built: Built, way: str) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session = store.session("s")
        shown = session.state.groups[-1].first
        where = store.journal.position(session.key, shown) or 0
        compaction = positions(store, "compaction")[-1]
    spoil(tmp_path, where if way in WORDS else compaction, {**SPOILS, **WORDS}[way])
    with open_store(f"file:{tmp_path}") as store:
        again = rebuild(store, built.address)
        assert again.address != built.address
        assert "rebuilt_differs" in kinds(again)
        assert again.metrics["degraded"] == 1
        assert faults(again) == []
        assert verify_seal(store.keys, again.seal, again), "it is sealed as what it is"


def change_manifest(root: Path, statement: str) -> None:
    with closing(sqlite3.connect(root / "journal.sqlite", timeout=30)) as db, db:
        assert db.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE manifests SET body = replace(body, 'o200k_base', 'cl100k_base')", id="another tokenizer"),
        pytest.param("UPDATE manifests SET body = replace(body, 'position\":', 'position\":1')", id="another place"),
        pytest.param("UPDATE manifests SET body = '{}'", id="empty"),
        pytest.param("UPDATE manifests SET body = substr(body, 1, 40)", id="half of it"),
        pytest.param("UPDATE manifests SET body = body || ' '", id="a byte more"),
        pytest.param(f"UPDATE manifests SET body = replace(body, 'mac\":\"', '{PLANTED}')", id="no code"),
        pytest.param(
            "UPDATE manifests SET body = (SELECT body FROM manifests ORDER BY seq LIMIT 1) "
            "WHERE seq = (SELECT max(seq) FROM manifests)",
            id="another envelope's",
        ),
    ],
)
def test_a_manifest_that_is_not_what_was_written_is_refused(tmp_path: Path, built: Built, statement: str) -> None:
    change_manifest(tmp_path, statement)
    with open_store(f"file:{tmp_path}") as store, pytest.raises(Damaged, match="build the session anew"):
        rebuild(store, built.address)


def test_a_manifest_that_is_not_there_is_not_found(tmp_path: Path, built: Built) -> None:
    change_manifest(tmp_path, "DELETE FROM manifests")
    with open_store(f"file:{tmp_path}") as store, pytest.raises(ReferenceNotFound, match="no envelope of tenant"):
        rebuild(store, built.address)


def test_a_manifest_is_of_its_tenant(tmp_path: Path, built: Built) -> None:
    with open_store(f"file:{tmp_path}") as store, pytest.raises(ReferenceNotFound):
        rebuild(store, built.address, tenant="beta")


@pytest.mark.parametrize("version", [0, RENDERER_VERSION + 1, 99, None, "1", -1])
def test_an_envelope_of_another_renderer_is_refused_by_name(tmp_path: Path, built: Built, version: object) -> None:
    with open_store(f"file:{tmp_path}") as store:
        manifest = store.manifest(built.address)
        with pytest.raises(InputError, match="this version has 2, 3, 4"):
            EnvelopeBuilder.from_manifest({**manifest, "renderer": version})


def test_this_renderer_is_kept() -> None:
    assert RENDERER_VERSION in RENDERERS
    assert set(RENDERERS) <= {RENDERER_VERSION, RENDERER_VERSION - 1, RENDERER_VERSION - 2}


def test_a_seal_changes_neither_address_nor_digest_and_a_preview_has_none(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session = opened(store)
        session.append(user("hi"))
        envelope = builder().build(session)
        before = envelope.seal
        store.keys.rotate_seal_key("default")  # type: ignore[attr-defined]
        again = builder().build(session)
        assert before is not None
        assert again.seal is not None
        assert (again.address, again.seal.key_id != before.key_id) == (envelope.address, True)
        assert verify_seal(store.keys, before, envelope)
        assert envelope.document()["seal"]["address"] == envelope.address
        assert builder().preview(session, "and now?").seal is None
