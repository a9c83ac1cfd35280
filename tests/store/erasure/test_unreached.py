"""A session that cannot be read stops nobody: it is named, passed over, and no erasure calls itself complete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import open_store
from ctxsteward.envelope.store import Store
from ctxsteward.schemas import Erased, InputError, ReferenceNotFound
from ctxsteward.schemas.errors import ObjectMissing
from ctxsteward.store.crypto.keyring import MasterKeys, subject_of
from ctxsteward.store.erasure.forget import apply_tombstones, forget
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.names import data_key_name, session_folder
from ctxsteward.store.objects.memory import MemoryObjects

from ..doubles import LyingObjects, copied
from .scenes import ANN, BOB, CHARS, TOLD, builder, say

KEYS = MasterKeys(b"k" * 32)
Harm = Callable[[MemoryObjects, str], None]


def lost(objects: MemoryObjects, folder: str) -> None:
    objects.delete(f"{folder}/000000000001.json")


def altered(objects: MemoryObjects, folder: str) -> None:
    key = f"{folder}/000000000001.json"
    body = objects.get(key)
    objects.delete(key)
    objects.put(key, body.replace(b'"segment"', b'"sediment"'))


def emptied(objects: MemoryObjects, folder: str) -> None:
    objects.delete(f"{folder}/000000000001.json")
    objects.put(f"{folder}/000000000001.json", b"")


def page(objects: MemoryObjects, folder: str) -> None:
    objects.delete(f"{folder}/000000000001.json")
    objects.put(f"{folder}/000000000001.json", b"<html></html>")


HARMS: dict[str, Harm] = {"lost": lost, "altered": altered, "emptied": emptied, "a page": page}


def machine(objects: MemoryObjects, journal: MemoryJournal | None = None) -> Store:
    background = {"background": False}
    return Store(journal or MemoryJournal(drains=True), objects, KEYS, uri="x", write_behind=True, behind=background)


@pytest.fixture(scope="module")
def written() -> tuple[MemoryObjects, dict[str, str]]:
    """s-1 and s-2 with Ann and Bob, s-3 with Bob, several links each; addresses of an envelope of each."""
    objects, addresses = MemoryObjects(), {}
    store = machine(objects)
    assert store.write_behind is not None
    for name, speakers in (("s-1", ("ann", "bob")), ("s-2", ("ann", "bob")), ("s-3", ("bob",))):
        session = store.session(name, tenant="acme", counter=CHARS)
        for turn in range(2):
            for speaker in speakers:
                say(session, speaker, {"ann": ANN, "bob": BOB}[speaker], turn)
            addresses[name] = builder().build(session).address
            store.write_behind.drainer.run_once()
    assert store.journal.waiting() == []
    return objects, addresses


@pytest.fixture(scope="module")
def forked() -> MemoryObjects:
    """s with Ann and Bob; a fork of it, and a fork of that, in which Bob alone speaks of what is in their bullets."""
    objects = MemoryObjects()
    store = machine(objects)
    assert store.write_behind is not None
    session = store.session("s", tenant="acme", counter=CHARS)
    for turn in range(4):
        say(session, "ann", ANN, turn)
        say(session, "bob", BOB, turn)
    for name in ("child", "grandchild"):
        session = session.fork(id=name)
        for turn in range(4):
            say(session, "bob", BOB, 50 + turn)
            builder(1_200).build(session)
    store.write_behind.drainer.run_once()
    assert store.journal.waiting() == []
    assert words_in(machine(objects), "grandchild", ANN)
    return objects


@pytest.fixture
def objects(written: tuple[MemoryObjects, dict[str, str]]) -> MemoryObjects:
    return copied(written[0])


def folder_of(store: Store, session: str) -> str:
    return session_folder("acme", store.vault("acme").subject_address(session))


def has_key(store: Store, session: str, principal: str | None) -> bool:
    try:
        name = store.vault("acme").subject_address(subject_of(session, principal))
        store.objects.get(data_key_name("acme", name))
    except ObjectMissing:
        return False
    return True


def words_in(store: Store, session: str, words: tuple[str, ...]) -> bool:
    """Whether a session as it is read in from the object store, or what it was forked from, has one of these words."""
    for name in ("s", session):
        store.at("acme", name)
    rows = [row for name in ("s", session) for row in store.journal.read(SessionKey("acme", name), 0)]
    return any(word in f"{row.body}{row.wire}" for row in rows for word in words)


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_sessions_are_listed_but_for_the_one_that_cannot_be_read(objects: MemoryObjects, harm: Harm) -> None:
    store = machine(objects)
    folder = folder_of(store, "s-2")
    harm(objects, folder)

    assert store.sessions(tenant="acme") == ["s-1", "s-3"]
    assert [(finding.kind, finding.field) for finding in store.unreached] == [("session_unreachable", folder)]
    assert folder in store.unreached[0].text


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_an_address_is_looked_up_in_all_others(
    objects: MemoryObjects, written: tuple[MemoryObjects, dict[str, str]], harm: Harm
) -> None:
    store, addresses = machine(objects), written[1]
    harm(objects, folder_of(store, "s-2"))

    assert store.manifest(addresses["s-3"], tenant="acme")["session"] == "s-3"
    with pytest.raises(ReferenceNotFound, match=r"among those that could be read; 1 could not: sessions/acme/"):
        machine(objects).manifest(addresses["s-2"], tenant="acme")


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_somebody_else_is_forgotten_and_what_was_not_reached_is_named(objects: MemoryObjects, harm: Harm) -> None:
    store = machine(objects)
    folder = folder_of(store, "s-2")
    harm(objects, folder)

    done = forget(store, tenant="acme", principal="ann", **TOLD)

    assert (done.sessions, done.complete) == (("s-1",), False)
    assert {(finding.kind, finding.field) for finding in done.findings} == {("session_unreachable", folder)}
    assert (has_key(store, "s-1", "ann"), has_key(store, "s-1", "bob")) == (False, True)


def test_a_damaged_link_in_the_middle_costs_the_principal_s_key_and_says_what_is_left(objects: MemoryObjects) -> None:
    store = machine(objects)
    key = f"{folder_of(store, 's-1')}/000000000002.json"
    objects.delete(key)
    objects.put(key, b"{}")

    done = forget(store, tenant="acme", principal="ann", **TOLD)

    assert (set(done.sessions), done.complete) == ({"s-1", "s-2"}, False)
    assert [finding.field for finding in done.findings] == ["s-1"]
    assert "the key of records derived from them there is not" in done.findings[0].text
    assert (has_key(store, "s-1", "ann"), has_key(store, "s-2", "ann")) == (False, False)


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_session_whose_first_link_is_gone_is_erased_as_far_as_its_links_tell(
    objects: MemoryObjects, harm: Harm
) -> None:
    store = machine(objects)
    harm(objects, folder_of(store, "s-2"))

    done = forget(store, tenant="acme", session="s-2", **TOLD)

    assert done.complete is False
    keys = [has_key(store, "s-2", principal) for principal in (None, "ann", "bob")]
    assert keys == [False, False, False]


def test_an_erasure_that_reached_all_is_complete(objects: MemoryObjects) -> None:
    done = forget(machine(objects), tenant="acme", principal="ann", **TOLD)

    assert (set(done.sessions), done.complete, done.findings) == ({"s-1", "s-2"}, True, ())


def test_who_may_have_spoken_where_nobody_can_read_is_not_called_unknown_without_a_word(objects: MemoryObjects) -> None:
    store = machine(objects)
    lost(objects, folder_of(store, "s-2"))

    with pytest.raises(InputError, match="said nothing in tenant 'acme' that could be read"):
        forget(store, tenant="acme", principal="carol", **TOLD)


def test_a_session_that_a_listing_leaves_out_is_forgotten_too_where_it_was_seen_before(objects: MemoryObjects) -> None:
    journal = MemoryJournal(drains=True)
    assert machine(objects, journal).sessions(tenant="acme") == ["s-1", "s-2", "s-3"]
    hidden = folder_of(machine(objects), "s-2")
    store = machine(LyingObjects(objects, lambda key: key.startswith(hidden)), journal)

    assert store.sessions(tenant="acme") == ["s-1", "s-2", "s-3"]
    done = forget(store, tenant="acme", principal="ann", **TOLD)

    assert (set(done.sessions), done.complete) == ({"s-1", "s-2"}, False)
    assert [finding.kind for finding in done.findings] == ["listing_incomplete"]
    assert store.exists("s-2", tenant="acme")


@pytest.mark.parametrize("session", [None, "s"])
def test_of_forks_that_only_the_object_store_has_what_was_derived_goes_too(
    forked: MemoryObjects, session: str | None
) -> None:
    objects = copied(forked)

    done = forget(machine(objects), tenant="acme", principal="ann", session=session, **TOLD)

    assert (set(done.sessions), set(done.forks), done.complete) == (
        {"s", "child", "grandchild"},
        {"child", "grandchild"},
        True,
    )
    assert not words_in(machine(objects), "child", ANN)
    assert not words_in(machine(objects), "grandchild", ANN)
    assert words_in(machine(objects), "grandchild", BOB)


def test_forks_that_only_the_object_store_has_are_forgotten_with_their_session(forked: MemoryObjects) -> None:
    objects = copied(forked)

    done = forget(machine(objects), tenant="acme", session="s", **TOLD)

    assert (set(done.sessions), done.complete) == ({"s", "child", "grandchild"}, True)
    fresh = machine(objects)
    assert fresh.sessions(tenant="acme") == []
    assert not any(has_key(fresh, name, who) for name in done.sessions for who in (None, "ann", "bob"))
    with pytest.raises(Erased):
        fresh.at("acme", "grandchild")


def test_a_machine_whose_session_was_taken_over_and_forgotten_says_that_it_was(forked: MemoryObjects) -> None:
    objects = copied(forked)
    store = machine(objects)
    store.at("acme", "child")
    forget(machine(objects), tenant="acme", session="s", **TOLD)
    apply_tombstones(store, "acme")

    for name in ("s", "child"):
        with pytest.raises(Erased):
            store.at("acme", name)


@pytest.mark.parametrize("principal", [None, "ann"])
def test_a_fork_that_was_not_drained_yet_does_not_carry_what_was_forgotten_meanwhile(
    forked: MemoryObjects, principal: str | None
) -> None:
    objects = copied(forked)
    store = machine(objects)
    late = store.session("s", tenant="acme", counter=CHARS).fork(id="late")
    for turn in range(4):
        say(late, "bob", BOB, 70 + turn)
        builder(1_200).build(late)
    session = None if principal else "s"
    forget(machine(objects), tenant="acme", session=session, principal=principal, **TOLD)
    assert store.write_behind is not None

    store.write_behind.drainer.run_once()

    assert (store.write_behind.status().last_error, store.journal.waiting()) == (None, [])
    fresh = machine(objects)
    if principal is None:
        assert fresh.sessions(tenant="acme") == []
    else:
        assert words_in(fresh, "late", BOB)
        assert not words_in(fresh, "late", ANN)


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_session_that_may_be_a_fork_and_cannot_be_read_is_named(forked: MemoryObjects, harm: Harm) -> None:
    """And so is a fork of it; of a session whose only link is gone nothing tells."""
    objects = copied(forked)
    folder = folder_of(machine(objects), "child")
    harm(objects, folder)

    done = forget(machine(objects), tenant="acme", session="s", **TOLD)

    assert (set(done.sessions), done.complete) == ({"s"}, False)
    assert {finding.field for finding in done.findings} == {"grandchild"} | ({folder} if harm is not lost else set())


def test_a_fork_whose_later_links_cannot_be_read_is_forgotten_with_its_session(forked: MemoryObjects) -> None:
    objects = copied(forked)
    writer = machine(objects)
    say(writer.session("child", tenant="acme", counter=CHARS), "bob", BOB, 90)
    assert writer.write_behind is not None
    writer.write_behind.drainer.run_once()
    folder = folder_of(writer, "child")
    newest = max(info.key for info in objects.list(f"{folder}/"))
    assert newest > f"{folder}/000000000001.json"
    objects.delete(newest)
    objects.put(newest, b"cut off")

    done = forget(machine(objects), tenant="acme", session="s", **TOLD)

    assert {"s", "child"} <= set(done.sessions)
    assert ("child" in done.forks, done.complete) == (True, False)
    assert "child" in {finding.field for finding in done.findings}
    assert not any(has_key(machine(objects), "child", who) for who in (None, "bob"))
    with pytest.raises(Erased):
        machine(objects).at("acme", "child")


def test_a_listing_that_is_empty_makes_no_session_missing(objects: MemoryObjects) -> None:
    store = machine(LyingObjects(objects, lambda key: True))

    assert store.exists("s-2", tenant="acme")
    assert store.at("acme", "s-2").resolve("§1").role == "user"


def test_the_command_says_so_and_exits_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri, journal=tmp_path / "one") as store:
        for name in ("s-1", "s-2"):
            say(store.session(name, tenant="acme", counter=CHARS), "ann", ANN, 1)
        assert store.flush(30)
        folder = tmp_path / "store" / "objects" / folder_of(store, "s-2")
    (folder / "000000000001.json").unlink()
    (folder / "000000000002.json").write_bytes(b"cut off")
    monkeypatch.setenv("CTXSTEWARD_JOURNAL", str(tmp_path / "two"))
    options = ["--store", uri, "--tenant", "acme", "--who", "dpo", "--why", "7"]

    result = CliRunner().invoke(cli, ["store", "forget", "--principal", "ann", *options])

    assert result.exit_code == 1, result.output
    assert "forgot principal ann in 1 sessions" in result.output
    assert "session_unreachable: sessions/acme/" in result.output
    assert "not everything is forgotten: sessions/acme/" in result.output
