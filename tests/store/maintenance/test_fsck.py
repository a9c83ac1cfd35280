"""The check of a store: each class of damage by its name, what is mended, what is only noted, and no false alarm."""

from __future__ import annotations

import base64
import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Profile, open_store
from ctxsteward.envelope.store import Store
from ctxsteward.schemas import InputError, ReferenceNotFound
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.crypto.keyring import file_keys, memory_keys, subject_of
from ctxsteward.store.journal.events import NoteSet, to_record
from ctxsteward.store.journal.log import coded
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import ForgottenSubject, SessionKey
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.maintenance.damage import DAMAGE, NOTES
from ctxsteward.store.maintenance.fsck import Fsck, fsck
from ctxsteward.store.names import data_key_name, numbered, report_name, session_folder, versions_folder
from ctxsteward.store.objects.file import FileObjects
from ctxsteward.store.profiles.versions import ProfileVersions
from ctxsteward.store.replication.segment_log import Segment, SessionLog

from ...examples import SOAK
from ...s3_servers import S3Server
from ..doubles import holding, stored
from ..profiles.agreed import INVENTED, EarlierVersions
from .furnished import CHARS, GONE, Original, commit, converse, talk
from .operators import kind_of

VERSIONS = versions_folder("acme", "support")
S = SessionKey("acme", "s")
CHECKS = 20 if SOAK else 6
"""While a store is written to; 20 with CTXSTEWARD_SOAK=1."""


def check(store: Store, **how: Any) -> Fsck:
    return fsck(store, **{"read_data": True, **how})


# -- each class by its name ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A class of damage, and something that leads to it: other objects, statements on the journal, or anything."""

    id: str
    kind: str
    objects: Callable[[Original, dict[str, bytes]], None] | None = None
    journal: tuple[str, ...] = ()
    anything: Callable[[Original, Store], Store | None] | None = None

    def store(self, original: Original) -> Store:
        bodies = original.bodies()
        if self.objects is not None:
            self.objects(original, bodies)
        file = original.journal_file()
        with closing(sqlite3.connect(file)) as db, db:
            for statement in self.journal:
                db.execute(statement)
        store = original.with_journal(file, bodies)
        return store if self.anything is None else self.anything(original, store) or store


def remove(pick: Callable[[list[str]], str]) -> Callable[[Original, dict[str, bytes]], None]:
    def act(original: Original, bodies: dict[str, bytes]) -> None:
        del bodies[pick(sorted(bodies))]

    return act


def spoil(pick: Callable[[list[str]], str]) -> Callable[[Original, dict[str, bytes]], None]:
    def act(original: Original, bodies: dict[str, bytes]) -> None:
        key = pick(sorted(bodies))
        bodies[key] = bodies[key][:-2]

    return act


def first(kind: str, tenant: str = "acme") -> Callable[[list[str]], str]:
    return lambda keys: next(key for key in keys if kind_of(key) == kind and key.split("/")[1] == tenant)


def last(kind: str) -> Callable[[list[str]], str]:
    return lambda keys: [key for key in keys if kind_of(key) == kind and key.split("/")[1] == "acme"][-1]


def add(key: str, body: bytes = b"x") -> Callable[[Original, dict[str, bytes]], None]:
    return lambda original, bodies: bodies.update({key: body})


def whole_chain(original: Original, bodies: dict[str, bytes]) -> None:
    for key in [key for key in bodies if key.startswith(VERSIONS)]:
        del bodies[key]


def wanted_key(original: Original, bodies: dict[str, bytes]) -> None:
    """The key of a record that a version shows."""
    version = ProfileVersions(original.store, "support", "acme").newest()
    del bodies[data_key_name("acme", version.records[0][1].key)]


def wanted_blob(original: Original, bodies: dict[str, bytes]) -> None:
    version = ProfileVersions(original.store, "support", "acme").newest()
    blob = version.records[0][1].blob
    del bodies[f"blobs/acme/{blob[:2]}/{blob}"]


def dead_key(original: Original, bodies: dict[str, bytes]) -> None:
    name = original.store.vault("acme").subject_address(GONE)
    bodies[data_key_name("acme", name)] = b"{}"


def forgotten_report(original: Original, bodies: dict[str, bytes]) -> None:
    name = original.store.vault("acme").subject_address(GONE)
    fields = {"schema_version": 1, "key": name, "data": base64.b64encode(b"x" * 40).decode()}
    bodies[report_name("acme", "ab" * 32)] = json.dumps(fields).encode()


def other_history(original: Original, bodies: dict[str, bytes]) -> None:
    """A sound third link of another chain of the same name and keys: somebody has rewritten history."""
    aside = Store(MemoryJournal(), holding({}), original.keys, uri="memory:")
    commit(aside, 1, 2, 3)
    bodies[numbered(VERSIONS, 3)] = aside.objects.get(numbered(VERSIONS, 3))


def later_link(original: Original, bodies: dict[str, bytes]) -> None:
    key = numbered(VERSIONS, 1)
    bodies[key] = bodies[key].replace(b'"schema_version":1}', b'"schema_version":9}')


def commit_segment(start: int | None, body: dict[str, Any] | None = None) -> Callable[[Original, Store], None]:
    """A link with a right code and a wrong place, or no sense at all."""

    def act(original: Original, store: Store) -> None:
        log = SessionLog(store.objects, store.keys, store.vault("acme"), S)
        number = log.tail(0)
        parent = log.link(number)
        if body is not None:
            store.chain(log.folder, tenant="acme").append(parent, body, epoch=parent.epoch)
        else:
            assert start is not None
            log.commit(parent, Segment(owner=store.journal.id, start=start, records=()), epoch=parent.epoch)

    return act


def other_record(original: Original, store: Store) -> None:
    """A record that is right in itself, and is not the one that was drained."""
    address_key = store.keys.address_key("acme")
    position = next(n for n, record in enumerate(store.journal.read(S, 0)) if record.kind == "note")
    record = to_record(NoteSet(name="plan", text="- another plan"))
    store.journal.rewrite(S, {position: coded(address_key, "s", position, record)})


def unfinished_erasure(original: Original, store: Store) -> None:
    store.vault("acme").destroy_key(subject_of("t", "ann"), who="dpo", when="2026-11-22", why="asked")


def invented_approvals(original: Original, store: Store) -> None:
    head = ProfileVersions(store, "support", "acme").newest()
    changed = head.profile.model_copy(update={"policies": (), "version": None})
    told = {"who": "eve", "why": "x", "when": "2026-11-22"}
    EarlierVersions(store, "support", "acme").commit(changed, **told, promotion=INVENTED)


def invented_reviewer(original: Original, store: Store) -> None:
    chain = store.chain("steward/acme/support/people", tenant="acme")
    body = {"schema_version": 1, "kind": "enrolled", "who": "eve", "roles": ["reviewer"], "key": "0" * 64}
    chain.append(chain.head(), body | {"replaces": None, "by": "bo", "signature": "0" * 128})


def by_hand(original: Original, store: Store) -> None:
    versions = EarlierVersions(store, "older", "acme")
    for text in ("Be brief.", "Be exact."):
        versions.commit(Profile.from_text(text, name="older"), who="ops", why="x", when="2026-11-22")


def unknown_form(original: Original, store: Store) -> None:
    """A version whose form this program does not know."""
    store.chain("profiles/acme/odd/versions", tenant="acme").append(None, {"persona": "x"})


def _overwritten(path: Path) -> None:
    path.write_bytes(b"x" * 32)


def with_seal_key(change: Callable[[Path], object]) -> Callable[[Original, Store], Store]:
    """The same store with keys in files, of which the seal key was changed."""

    def act(original: Original, store: Store) -> Store:
        folder = original.folder / "keyfiles" / f"{id(change)}"
        keys = file_keys(folder)
        keys.seal_key("acme")
        (path,) = folder.rglob("*.seal-1.key")
        change(path)
        made = Store(MemoryJournal(), holding({}), keys, uri="memory:")
        made.vault("acme").put("s", "note", b"said")
        return made

    return act


def other_keys(original: Original, store: Store) -> Store:
    return Store(store.journal, store.objects, memory_keys(), uri="memory:")


def temporary(original: Original, store: Store) -> Store:
    folder = original.folder / "objects"
    folder.mkdir(exist_ok=True)
    (folder / f"x.{'0' * 16}.tmp").write_bytes(b"half")
    return Store(MemoryJournal(), FileObjects(folder), original.keys, uri="file:")


def another_journal(original: Original, store: Store) -> Store:
    """The one that was here is gone: a new one stands in its folder."""
    folder = original.journal_file().parent
    FileJournal(folder).close()
    (folder / "journal.sqlite").unlink()
    return Store(FileJournal(folder), store.objects, original.keys, uri="memory:")


def note_taken_out(original: Original, store: Store) -> Store:
    assert isinstance(store.journal, FileJournal)
    store.journal.forget("acme", ForgottenSubject("x", None, "dpo", "2026-11-22", "asked"))
    store.journal._group.submit(lambda transaction: transaction.execute("DELETE FROM forgotten", ()))
    return store


OF_S = "tenant='acme' AND session='s'"
CASES = (
    Broken(id="another journal", kind="journal_missing", anything=another_journal),
    Broken(id="a note of who was forgotten gone", kind="forgotten_altered", anything=note_taken_out),
    Broken(id="a log without its row", kind="journal_damaged", journal=("DELETE FROM logs WHERE session='t'",)),
    Broken(id="a manifest of no log", kind="journal_damaged", journal=("UPDATE manifests SET session='x'",)),
    Broken(id="a shortened log", kind="log_altered", journal=(f"UPDATE logs SET length=length-1 WHERE {OF_S}",)),
    Broken(id="a lengthened log", kind="record_missing", journal=(f"UPDATE logs SET length=length+1 WHERE {OF_S}",)),
    Broken(id="a record gone", kind="record_missing", journal=(f"DELETE FROM records WHERE {OF_S} AND position=9",)),
    Broken(id="other words", kind="record_altered", journal=("UPDATE records SET wire='{}' WHERE position=9",)),
    Broken(
        id="a compaction that is not found by its address",
        kind="record_altered",
        journal=("UPDATE records SET address='x' || tenant || position WHERE kind='compaction'",),
    ),
    Broken(id="another manifest", kind="manifest_altered", journal=("UPDATE manifests SET body='{}'",)),
    Broken(
        id="manifests of two sessions swapped",
        kind="manifest_altered",
        journal=("UPDATE manifests SET session='t' WHERE session='s'",),
    ),
    Broken(id="a drained manifest gone", kind="manifest_missing", journal=("DELETE FROM manifests WHERE seq=2",)),
    Broken(
        id="a fork without its parent",
        kind="parent_missing",
        journal=(
            f"DELETE FROM records WHERE {OF_S}",
            f"DELETE FROM manifests WHERE {OF_S}",
            f"DELETE FROM logs WHERE {OF_S}",
        ),
    ),
    Broken(id="drained further than it is", kind="drain_altered", journal=(f"UPDATE logs SET drained=5 WHERE {OF_S}",)),
    Broken(id="a link of the middle gone", kind="link_missing", objects=remove(first("versions"))),
    Broken(id="a link cut short", kind="link_altered", objects=spoil(first("writers"))),
    Broken(id="history rewritten", kind="link_misplaced", objects=other_history),
    Broken(id="the newest version gone", kind="tail_missing", objects=remove(last("versions"))),
    Broken(id="the newest snapshot gone", kind="tail_missing", objects=remove(last("snapshots"))),
    Broken(id="a whole chain gone", kind="tail_missing", objects=whole_chain),
    Broken(id="the newest segment gone", kind="tail_missing", objects=remove(last("sessions"))),
    Broken(id="a segment for another place", kind="segment_missing", anything=commit_segment(3)),
    Broken(id="a segment without records", kind="segment_altered", anything=commit_segment(None, {"kind": "segment"})),
    Broken(id="two copies that differ", kind="original_altered", anything=other_record),
    Broken(id="a blob cut short", kind="blob_altered", objects=spoil(first("blobs", "beta"))),
    Broken(id="a blob gone", kind="blob_missing", objects=wanted_blob),
    Broken(id="a report cut short", kind="report_altered", objects=spoil(last("reports"))),
    Broken(id="a forgotten session's report", kind="report_erased", objects=forgotten_report),
    Broken(id="a key cut short", kind="key_damaged", objects=spoil(first("keys"))),
    Broken(id="a key gone", kind="key_missing", objects=wanted_key),
    Broken(id="another key folder", kind="keys_wrong", anything=other_keys),
    Broken(id="the check of keys cut short", kind="check_altered", objects=spoil(first("tenants"))),
    Broken(id="a tombstone cut short", kind="tombstone_altered", objects=spoil(first("tombstones"))),
    Broken(id="a tombstone gone", kind="tombstone_missing", objects=remove(first("tombstones"))),
    Broken(id="a dead key back", kind="key_after_tombstone", objects=dead_key),
    Broken(id="an erasure that did not finish", kind="content_after_erasure", anything=unfinished_erasure),
    Broken(id="a later program's link", kind="later_version", objects=later_link),
    Broken(id="a version of an unknown form", kind="later_version", anything=unknown_form),
    Broken(id="a folder of nobody", kind="tenant_unknown", objects=add(f"blobs/~{'0' * 64}/aa/aa{'0' * 62}")),
    Broken(id="a forgotten subject's blob", kind="blob_erased"),
    Broken(id="an unfinished write", kind="temporary_left", anything=temporary),
    Broken(id="a version with invented approvals", kind="approval_forged", anything=invented_approvals),
    Broken(id="a reviewer that nobody vouches for", kind="people_forged", anything=invented_reviewer),
    Broken(id="a version of before anybody was enrolled", kind="approval_unknown", anything=by_hand),
    Broken(id="a seal key that was changed", kind="seal_key_wrong", anything=with_seal_key(_overwritten)),
    Broken(id="a seal key that is gone", kind="seal_key_missing", anything=with_seal_key(Path.unlink)),
    Broken(id="a try of the endpoint", kind="probe_left", objects=add("probe/0123")),
    Broken(id="somebody's file", kind="foreign_object", objects=add("blobs/acme/readme")),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_each_class_has_its_name(original: Original, case: Broken) -> None:
    store = case.store(original)
    try:
        found = check(store)
    finally:
        store.journal.close()

    assert case.kind in {finding.kind for finding in (*found.damage, *found.notes)}
    assert found.damaged is (case.kind in DAMAGE)
    if found.damaged:
        assert found.closing.startswith(f"damaged: {found.damage[0].kind} at {found.damage[0].field}; ")


def test_every_class_is_shown_above() -> None:
    assert {case.kind for case in CASES} == {*DAMAGE, *NOTES}


def test_damage_says_what_to_do(original: Original) -> None:
    found = check(Broken(id="", kind="", objects=remove(last("versions"))).store(original))

    assert [(one.kind, one.field, one.text) for one in found.damage] == [
        (
            "tail_missing",
            f"{VERSIONS}/000000000003.json",
            f"{VERSIONS}/000000000003.json: it is not there; the chain ends at 2, not at 3; restore it from a backup",
        )
    ]


def test_a_version_of_an_unknown_form_is_named_where_it_lies(original: Original) -> None:
    found = check(Broken(id="", kind="", anything=unknown_form).store(original))

    assert [(one.kind, one.field) for one in found.damage] == [
        ("later_version", "profiles/acme/odd/versions/000000000001.json")
    ]


# -- no false alarm ------------------------------------------------------------------------------------------


def fill(store: Store) -> None:
    converse(store, "acme")
    commit(store, 100, 200)


@pytest.mark.parametrize("kind", ["memory", "file", "file with a journal elsewhere"])
def test_an_untouched_store_is_whole(kind: str, tmp_path: Path) -> None:
    uri = "memory:" if kind == "memory" else f"file:{tmp_path / 'store'}"
    journal = tmp_path / "journal" if kind.endswith("elsewhere") else None
    with open_store(uri, journal=journal) as store:
        fill(store)
        assert store.flush(20.0)
        found = check(store)

    assert (found.damage, found.notes) == ((), ())
    assert found.checked["sessions"] == 3
    assert found.checked["records"] > 60
    assert found.checked["references"] > 0
    assert found.checked.get("drained_records", 0) == (found.checked["records"] if journal else 0)


@pytest.mark.usefixtures("aws_environment")
def test_an_untouched_bucket_is_whole(moto: S3Server, tmp_path: Path) -> None:
    with open_store(moto.uri("care"), journal=tmp_path / "journal") as store:
        fill(store)
        assert store.flush(30.0)
        found = check(store)

    assert (found.damage, found.notes) == ((), ())
    assert found.checked["drained_records"] == found.checked["records"]


def test_checking_writes_nothing(original: Original) -> None:
    rows = "SELECT * FROM records ORDER BY 1, 2, 3"
    before = original.bodies(), original.rows(rows), original.rows("SELECT * FROM logs")
    check(original.store)

    assert (original.bodies(), original.rows(rows), original.rows("SELECT * FROM logs")) == before


def test_a_store_that_is_written_to_meanwhile_is_whole(original: Original) -> None:
    store = original.with_journal(original.journal_file(), drains=True)
    stop = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        try:
            session = store.session("s", tenant="acme", counter=CHARS)
            n = 1000
            while not stop.is_set() and n < 1200:
                talk(session, n)
                drain_once(store)
                n += 1
        except BaseException as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = [check(store).damage for _ in range(CHECKS)]
    finally:
        stop.set()
        writer.join(20)
        store.journal.close()
    assert failed == []
    assert found == [()] * CHECKS


def drain_once(store: Store) -> None:
    from ctxsteward.store.replication.write_behind import WriteBehind

    WriteBehind(store.journal, store.objects, store.keys, store.vault).drainer.run_once()


# -- shares --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_all_shares_together_are_everything(original: Original, parts: int) -> None:
    bodies = original.bodies()
    for key in list(bodies):
        if kind_of(key) in ("blobs", "keys", "snapshots", "sessions") and "beta" in key:
            bodies[key] = bodies[key][:-1]
    store = original.with_objects(bodies)
    whole = check(store)
    shares = [check(store, subset=f"{part}/{parts}") for part in range(1, parts + 1)]

    assert {finding.field for share in shares for finding in share.damage} == {one.field for one in whole.damage}
    for kind in ("sessions", "records", "links", "blobs", "keys", "tombstones"):
        assert sum(share.checked.get(kind, 0) for share in shares) == whole.checked[kind], kind
    assert shares[0].closing.endswith(f"of share 1/{parts}")


@pytest.mark.parametrize("text", ["8/7", "0/7", "7", "1/0", "a/b", "-1/7", "1/7/7", "1/99999", " 1/7", "١/٧"])
def test_what_is_no_share_is_refused(original: Original, text: str) -> None:
    with pytest.raises(InputError, match="write K/N"):
        check(original.store, subset=text)


def test_one_tenant_alone_is_checked(original: Original) -> None:
    bodies = original.bodies()
    del bodies[f"profiles/beta/support/versions/{1:012d}.json"]
    store = original.with_objects(bodies)

    assert not check(store, tenant="acme").damaged
    assert check(store, tenant="beta").first == "link_missing"
    assert check(store, tenant="acme").checked["sessions"] == 3


# -- repair --------------------------------------------------------------------------------------------------

HELD_ELSEWHERE = ("a record gone", "other words", "a drained manifest gone", "a dead key back")
MENDED = (
    *(case for case in CASES if case.id in HELD_ELSEWHERE),
    Broken(
        id="a compaction",
        kind="record_altered",
        journal=("UPDATE records SET body=replace(body, 'bullets', 'bullots') WHERE kind='compaction'",),
    ),
    Broken(id="all of a session", kind="record_missing", journal=("DELETE FROM records WHERE session='s'",)),
    Broken(id="another manifest", kind="manifest_altered", journal=("UPDATE manifests SET body='{}' WHERE seq=2",)),
)


@pytest.mark.parametrize("case", MENDED, ids=lambda case: case.id)
def test_what_the_store_holds_elsewhere_is_put_back(original: Original, case: Broken) -> None:
    store = case.store(original)
    try:
        found = check(store, repair=True)
        again = check(store)
        rows = {key: store.journal.read(key, 0) for key in (S, SessionKey("acme", "s-branch"))}
        manifests = {one.address: one.body for one in store.journal.manifests(S)}
    finally:
        store.journal.close()

    assert (found.damage, again.damage) == ((), ())
    assert case.kind in {finding.kind for finding in found.repaired}
    assert rows == {key: original.journal.read(key, 0) for key in rows}
    assert manifests == {one.address: one.body for one in original.journal.manifests(S)}


def test_what_is_nowhere_else_stays_damaged_and_is_not_touched(tmp_path: Path) -> None:
    """A store with its journal inside has one copy of a record: the backup's is the other."""
    with open_store(f"file:{tmp_path}") as store:
        converse(store, "acme")
        with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as db, db:
            db.execute(f"UPDATE records SET wire='{{}}' WHERE {OF_S} AND position=9")
        found = check(store, repair=True)

        assert [one.kind for one in found.damage] == ["record_altered"]
        assert found.repaired == ()
        assert "restore the journal from a backup" in found.damage[0].text
        assert store.journal.read(S, 9, 10)[0].wire == "{}"


def test_an_altered_manifest_that_is_nowhere_else_is_dropped(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        converse(store, "acme")
        first_one, *others = store.journal.manifests(S)
        with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as db, db:
            db.execute("UPDATE manifests SET body='{}' WHERE address=?", (first_one.address,))
        with pytest.raises(Damaged):
            store.manifest(first_one.address, tenant="acme")
        found = check(store, repair=True)

        assert (found.damage, [one.kind for one in found.repaired]) == ((), ["manifest_altered"])
        assert store.journal.manifests(S) == others
        with pytest.raises(ReferenceNotFound):
            store.manifest(first_one.address, tenant="acme")


def test_nothing_is_taken_from_a_chain_that_is_not_sound(original: Original) -> None:
    """A link that cannot be read might have replaced, or erased, what an earlier one holds."""

    def spoil_newest_segment(original: Original, bodies: dict[str, bytes]) -> None:
        folder = session_folder("acme", original.store.vault("acme").subject_address("s"))
        key = numbered(folder, original.journal.drained(S).number)
        bodies[key] = bodies[key][:-2]

    gone = f"DELETE FROM records WHERE {OF_S} AND position=9"
    store = Broken(id="", kind="", journal=(gone,), objects=spoil_newest_segment).store(original)
    try:
        found = check(store, repair=True)
        left = store.journal.read(S, 9, 10)
    finally:
        store.journal.close()

    assert {"record_missing", "link_altered"} <= {one.kind for one in found.damage}
    assert left == []


# -- the witness ---------------------------------------------------------------------------------------------


def test_a_lost_tail_is_seen_by_the_machine_that_has_seen_it_and_by_no_other(original: Original) -> None:
    """What the module says cannot be seen from inside, it does not see."""
    bodies = original.bodies()
    del bodies[numbered(VERSIONS, 3)]
    here = original.with_objects(bodies)
    elsewhere = Store(MemoryJournal(), holding(bodies), original.keys, uri="memory:")

    assert [one.kind for one in check(here).damage] == ["tail_missing"]
    assert not check(elsewhere).damaged
    with pytest.raises(Damaged):
        ProfileVersions(here, "support", "acme").head()


def test_a_whole_store_put_back_to_an_older_copy_is_whole(tmp_path: Path) -> None:
    """The documented limit: journal, objects and keys of yesterday are a store of yesterday."""
    objects, journal, keys = holding({}), MemoryJournal(), memory_keys()
    store = Store(journal, objects, keys, uri="memory:")
    fill(store)
    yesterday = stored(objects)
    commit(store, 300)
    rolled_back = Store(MemoryJournal(), holding(yesterday), keys, uri="memory:")

    assert not check(rolled_back).damaged
    assert check(Store(journal, holding(yesterday), keys, uri="memory:")).first == "tail_missing"
