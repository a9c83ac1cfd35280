"""A dry run: the same night over a store in memory, and nothing below has changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ctxsteward.envelope.store import open_store
from ctxsteward.schemas.errors import ObjectMissing
from ctxsteward.steward.night.environment import DraftObjects, draft_store
from ctxsteward.steward.night.run import run_night
from ctxsteward.store.objects.memory import MemoryObjects

from .doubles import SETTINGS, TENANT, Lines, shell, some, write


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith("journal.sqlite")  # its write-ahead log moves when it is opened
    }


@pytest.mark.parametrize("nights", [0, 1])
def test_a_dry_run_decides_as_the_night_would_and_writes_nothing(tmp_path: Path, nights: int) -> None:
    write(tmp_path / "in", some(8))
    with open_store(f"file:{tmp_path / 'store'}") as store:
        for _ in range(nights):
            lines = Lines(store, tmp_path / "in")
            run_night(shell(store, lines))
        write(tmp_path / "in", some(12))
        before = tree(tmp_path)
        draft = draft_store(store, TENANT)
        lines = Lines(draft, tmp_path / "in")
        dry = run_night(shell(draft, lines, SETTINGS.model_copy(update={"dry_run": True})))
        assert tree(tmp_path) == before
        lines = Lines(store, tmp_path / "in")
        wet = run_night(shell(store, lines))
    assert (dry.dry_run, dry.outcome, dry.version, dry.stages) == (True, wet.outcome, wet.version, wet.stages)
    assert (dry.final == wet.final) == bool(nights), "a new tenant has keys of its own"


def test_draft_objects_read_through_and_keep_writes_and_deletions_to_themselves() -> None:
    below = MemoryObjects()
    below.put("a/1", b"one")
    below.put("a/3", b"three")
    draft = DraftObjects(below)
    assert draft.put("a/1", b"other") == "conflicted"
    assert draft.put("a/2", b"two") == "committed"
    assert [(info.key, draft.get(info.key)) for info in draft.list("a/")] == [
        ("a/1", b"one"),
        ("a/2", b"two"),
        ("a/3", b"three"),
    ]
    draft.delete("a/1")
    with pytest.raises(ObjectMissing):
        draft.get("a/1")
    assert [info.key for info in draft.list("a/", after="a/0")] == ["a/2", "a/3"]
    assert draft.put("a/1", b"new") == "committed"
    assert [draft.get(info.key) for info in draft.list("a/")] == [b"new", b"two", b"three"]
    assert [info.key for info in below.list("a/")] == ["a/1", "a/3"]
    assert below.get("a/1") == b"one"
