"""Forgetting takes facts away everywhere: from shelves, from old envelopes, from every byte that is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Store, open_store, rebuild
from ctxsteward.envelope.testing import FirstLine, memory_store
from ctxsteward.schemas import InputError
from ctxsteward.store import Audience, FactSource
from ctxsteward.store.erasure.forget import apply_tombstones, forget
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc

from ..erasure.scenes import STORES, contents_of, hits, two_machines
from .desk import ANN, BOB, GONE, HERS, PROFILE, TOLD, ask, fact, kinds, known, lines, opened

CANARY = "CANARYann8472"
SECRET = fact("r-secret", f"Her seat is number {CANARY}.", session="s-7", at=1)
ELSEWHERE = fact("r-else", "Her seat is by the window.", session="s-9", at=1)
BOTH = SECRET.model_copy(
    update={
        "id": "r-both",
        "text": "Her seat is in row seven.",
        "sources": (*ELSEWHERE.sources, FactSource(session="s-8", ref="§1", principal="bob")),
    }
)


def made() -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer="o200k_base", summarizer=FirstLine())


def fill(store: Store) -> str:
    """Ann and Bob speak in sessions of their own; Ann is shown three facts in s-1. The address of that envelope."""
    ask(opened(store, "s-7", tenant="acme"), f"my seat is {CANARY}")
    ask(opened(store, "s-8", tenant="acme"), "she sits in row seven", "bob")
    ask(opened(store, "s-9", tenant="acme"), "by the window")
    store.facts("support", tenant="acme").commit(ANN, (SECRET, ELSEWHERE, BOTH), **TOLD)
    envelope = made().build(ask(opened(store, "s-1", tenant="acme"), "Which seat is mine?"))
    assert len(lines(envelope)) == 3
    return envelope.address


@pytest.mark.parametrize("kind", ["memory", "file", "drained"])
def test_with_a_session_go_the_facts_that_rest_on_it(tmp_path: Path, kind: str) -> None:
    with STORES[kind](tmp_path) as (store, root):
        address = fill(store)
        running = opened(store, "s-1", tenant="acme")
        assert len(lines(made().build(running))) == 3
        done = forget(store, tenant="acme", session="s-7", **GONE)

        assert done.recommendations == 1
        assert store.facts("support", tenant="acme").active(ANN).facts == (ELSEWHERE, BOTH)
        again = rebuild(store, address, tenant="acme")
        assert (lines(again), "fact_erased" in kinds(again)) == (["r-both", "r-else"], True)
        assert "rebuilt_differs" in kinds(again)
        assert lines(made().build(running)) == ["r-both", "r-else"], "in this process at once"
        assert store.flush(10.0)
        assert hits(contents_of(store, root), (CANARY,)) == {}


def test_with_anybody_it_rests_on_a_fact_goes() -> None:
    store = memory_store()
    fill(store)
    assert forget(store, tenant="acme", session="s-8", principal="bob", **GONE).recommendations == 1
    assert store.facts("support", tenant="acme").active(ANN).facts == (SECRET, ELSEWHERE)
    assert forget(store, tenant="acme", session="s-8", principal="bob", **GONE).recommendations == 0


def test_with_a_user_goes_all_that_is_known_about_them_whatever_it_rests_on() -> None:
    store = memory_store()
    address = fill(store)
    sales = store.facts("sales", tenant="acme")
    sales.commit(ANN, (fact("r-file", "From a file that no session has", session="runs/7", principal="ann"),), **TOLD)
    store.facts("support", tenant="acme").commit(
        BOB, (fact("r-bob", "Bob knows Ann's birthday", session="s-8", principal="bob"),), **TOLD
    )
    store.facts("support", tenant="other").commit(ANN, HERS, **TOLD)
    done = forget(store, tenant="acme", principal="ann", **GONE)

    assert done.recommendations == 4
    assert store.facts("support", tenant="acme").active(ANN).facts == sales.active(ANN).facts == ()
    assert [one.id for one in store.facts("support", tenant="acme").active(BOB).facts] == ["r-bob"]
    assert store.facts("support", tenant="other").active(ANN).facts == HERS, "another tenant's Ann is somebody else"
    assert lines(rebuild(store, address, tenant="acme")) == []


def test_one_who_said_nothing_here_can_be_forgotten_where_something_is_known_about_them() -> None:
    store = known()
    assert forget(store, principal="ann", **GONE).recommendations == len(HERS)
    assert forget(store, principal="ann", **GONE).recommendations == 0
    with pytest.raises(InputError, match="has said nothing"):
        forget(store, principal="bob", **GONE)


def test_with_a_session_goes_what_is_known_about_it() -> None:
    store = memory_store()
    ask(opened(store, "s-7"))
    about = Audience("session", "s-7")
    store.facts("support").commit(about, (fact("r-1", "Rests on another session", session="s-9"),), **TOLD)
    assert forget(store, session="s-7", **GONE).recommendations == 1
    assert store.facts("support").active(about).facts == ()


def test_a_forgotten_fact_cannot_come_back() -> None:
    store = memory_store()
    fill(store)
    forget(store, tenant="acme", session="s-7", **GONE)
    done = store.facts("support", tenant="acme").commit(ANN, (SECRET, ELSEWHERE), **TOLD)
    assert done.facts == (ELSEWHERE,)
    assert [finding.kind for finding in done.findings] == ["fact_refused"]


def test_an_operator_can_destroy_single_facts() -> None:
    store = memory_store()
    address = fill(store)
    shelves = store.facts("support", tenant="acme")
    shelves.commit(ANN, (ELSEWHERE,), **TOLD)
    assert shelves.erase(lambda one: CANARY in one.text, **GONE) == 1, "of an older link"
    assert lines(rebuild(store, address, tenant="acme")) == ["r-both", "r-else"]
    assert shelves.erase(lambda one: True, audience=BOB, **GONE) == 0
    assert shelves.erase(lambda one: True, audience=ANN, **GONE) == 2


def test_another_machine_shows_it_no_more() -> None:
    with two_machines() as (one, two):
        fill(one)
        assert one.flush(10.0)
        assert len(two.facts("support", tenant="acme").active(ANN).facts) == 3
        forget(one, tenant="acme", session="s-7", **GONE)
        apply_tombstones(two, "acme")
        assert two.facts("support", tenant="acme").active(ANN).facts == (ELSEWHERE, BOTH)
        assert lines(made().build(ask(two.session("s-2", tenant="acme", profile=PROFILE), "Which seat?"))) == [
            "r-both",
            "r-else",
        ]


# -- care ----------------------------------------------------------------------------------------------------------


def test_fsck_and_gc_know_shelves() -> None:
    store = memory_store()
    fill(store)
    store.facts("support", tenant="acme").commit(ANN, (ELSEWHERE,), **TOLD)
    assert fsck(store, read_data=True).damage == ()
    assert gc(store, now=1e12, grace_seconds=0).blobs == ()
    assert len(store.facts("support", tenant="acme").active(ANN).facts) == 1

    forget(store, tenant="acme", session="s-7", **GONE)
    assert fsck(store, read_data=True).damage == ()


def remove(store: Store, prefix: str) -> None:
    keys = [info.key for info in store.objects.list(prefix)]
    store.objects.delete(keys[0])


@pytest.mark.parametrize(
    ("prefix", "says"), [("blobs/", "blob_missing"), ("keys/", "key_missing"), ("facts/", "link_missing")]
)
def test_fsck_names_what_is_missing_of_a_shelf(prefix: str, says: str) -> None:
    store = memory_store()
    shelves = store.facts("support")
    for one in HERS:
        shelves.commit(ANN, (one,), **TOLD)
    remove(store, prefix)
    assert says in [finding.kind for finding in fsck(store).damage]


def test_fsck_names_a_shelf_that_lost_its_tail(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        shelves = store.facts("support")
        shelves.commit(ANN, HERS, **TOLD)
        shelves.commit(ANN, (), **TOLD)
        (_, last) = [info.key for info in store.objects.list("facts/")]
        store.objects.delete(last)
        assert [finding.kind for finding in fsck(store).damage] == ["tail_missing"]


def test_an_orphan_of_a_commit_that_died_is_garbage() -> None:
    store = memory_store()
    shelves = store.facts("support")
    put: Any = store.objects.put

    def dying(key: str, body: bytes) -> Any:
        if key.startswith("facts/"):
            raise KeyboardInterrupt
        return put(key, body)

    store.objects.put = dying  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        shelves.commit(ANN, HERS, **TOLD)
    store.objects.put = put  # type: ignore[method-assign]
    assert len(gc(store, now=1e12, grace_seconds=0).blobs) == 3
    assert shelves.commit(ANN, HERS, **TOLD).facts == HERS
    assert shelves.active(ANN).facts == HERS
