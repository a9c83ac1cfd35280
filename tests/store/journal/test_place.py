"""A journal whose files are taken away, emptied or changed, while it is open and while it is closed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ctxsteward.envelope import Store, open_store
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas import Erased, InputError, StoreError
from ctxsteward.schemas.errors import Damaged
from ctxsteward.steward.ledger.database import LedgerDatabase
from ctxsteward.store.crypto.keyring import memory_keys, subject_of
from ctxsteward.store.erasure.forget import apply_tombstones, forget
from ctxsteward.store.journal.database import LAYOUT_VERSION, NAME
from ctxsteward.store.journal.port import DrainMark, ForgottenSubject, SessionKey
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.maintenance.fsck import fsck

from .journals import KEY, OTHER, note

CHARS = Counter(CharTokenizer())
KEYS = memory_keys()
TOLD = {"who": "dpo", "why": "asked", "when": "2026-11-22"}


def say(store: Store, text: str, session: str = "s", principal: str | None = None) -> None:
    store.session(session, tenant="acme", counter=CHARS).append({"role": "user", "content": text}, principal=principal)


def files(root: Path) -> list[Path]:
    return sorted(root.glob("journal.sqlite*"))


# -- while it is open ----------------------------------------------------------------------------------------


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


LOSSES: list[tuple[str, Callable[[Path], None], str]] = [
    ("", removed, "was removed"),
    ("-wal", removed, "was removed"),
    ("-shm", removed, "was removed"),
    ("", replaced, "was replaced"),
    ("-wal", replaced, "was replaced"),
    ("", emptied, "was emptied"),
    ("-wal", emptied, "was emptied"),
]
SQLITE = "-wal was replaced|-wal is missing|not a database|disk I/O"
"""Behind the first refusal a new connection looks, and refuses to be the first."""
WRITES: dict[str, Callable[[FileJournal], None]] = {
    "append": lambda journal: journal.append(KEY, 1, [note("lost")]),
    "put_manifest": lambda journal: journal.put_manifest(KEY, "ab", "{}"),
    "rewrite": lambda journal: journal.rewrite(KEY, {0: note("other")}),
    "truncate": lambda journal: journal.truncate(KEY, 0),
    "set_drained": lambda journal: journal.set_drained(KEY, DrainMark(1, 1, 1)),
    "see": lambda journal: journal.see("x", 1),
    "forget": lambda journal: journal.forget("acme", ForgottenSubject("s", None, "ann", "now", "asked")),
}


@pytest.mark.parametrize(("suffix", "lose", "what"), LOSSES, ids=lambda part: getattr(part, "__name__", part))
def test_nothing_is_acknowledged_into_a_file_that_is_gone(
    tmp_path: Path, suffix: str, lose: Callable[[Path], None], what: str
) -> None:
    with closing(FileJournal(tmp_path)) as journal:
        journal.append(KEY, 0, [note("kept")])
        lose(tmp_path / f"journal.sqlite{suffix}")
        for write in WRITES.values():
            with pytest.raises(StoreError, match=f"journal.sqlite{suffix} {what} while it was in use|{SQLITE}"):
                write(journal)


def test_a_new_reader_makes_no_file_where_the_journal_was(tmp_path: Path) -> None:
    with closing(FileJournal(tmp_path)) as journal:
        (tmp_path / "journal.sqlite").unlink()
        with pytest.raises(StoreError, match="was removed"):
            journal.read(KEY, 0)
        assert not (tmp_path / "journal.sqlite").exists()


def test_a_journal_that_is_put_back_is_written_to_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(FileJournal(tmp_path)) as journal:
        path.rename(tmp_path / "aside")
        with pytest.raises(StoreError, match="was removed"):
            journal.append(KEY, 0, [note("a")])
        (tmp_path / "aside").rename(path)
        journal.append(KEY, 0, [note("a")])
    with closing(FileJournal(tmp_path)) as reopened:
        assert reopened.read(KEY, 0) == [note("a")]


def test_an_old_writer_leaves_the_log_of_a_new_journal_alone(tmp_path: Path) -> None:
    old = FileJournal(tmp_path)
    old.append(KEY, 0, [note("old")])
    for path in files(tmp_path):
        path.unlink()
    with closing(FileJournal(tmp_path)) as new:
        new.append(KEY, 0, [note("new")])
        old.close()
        new.append(KEY, 1, [note("newer")])
    with closing(FileJournal(tmp_path)) as reopened:
        assert reopened.read(KEY, 0) == [note("new"), note("newer")]


def test_scrubbing_and_other_writers_are_no_loss(tmp_path: Path) -> None:
    with closing(FileJournal(tmp_path)) as one, closing(FileJournal(tmp_path)) as two:
        for n in range(0, 20, 2):
            one.append(KEY, n, [note("x" * 5_000)])
            two.append(KEY, n + 1, [note("y" * 5_000)])
            (one if n % 4 else two).scrub()
        one.truncate(KEY, 1)
        two.scrub()
        one.append(OTHER, 0, [note("z")])
        assert one.length(OTHER) == two.length(OTHER) == 1


def test_nothing_is_acknowledged_under_a_key_that_is_gone(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session = store.session("s", tenant="acme", counter=CHARS)
        session.append({"role": "user", "content": "kept"})
        (tmp_path / "keys").rename(tmp_path / "aside")
        for call in (lambda: session.append({"role": "user", "content": "lost"}), lambda: say(store, "lost", "t")):
            with pytest.raises(StoreError, match="key of tenant 'acme' is gone"):
                call()
        (tmp_path / "aside").rename(tmp_path / "keys")
        session.append({"role": "user", "content": "kept, too"})
        assert [entry.message.text for entry in session.entries()] == ["kept", "kept, too"]


@pytest.mark.parametrize("lose", [removed, replaced, emptied])
def test_a_ledger_is_not_written_into_a_file_that_is_gone(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    with closing(LedgerDatabase(tmp_path / "ledger", "tests")) as ledger:
        ledger.run("INSERT INTO about VALUES ('x', '1')")
        lose(tmp_path / "ledger")
        with pytest.raises(StoreError), ledger.writing():
            ledger.run("INSERT INTO about VALUES ('y', '2')")


# -- while it is closed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("drains", [False, True], ids=["file", "drained"])
@pytest.mark.parametrize("lose", [removed, emptied])
def test_a_lost_journal_is_no_new_one(tmp_path: Path, drains: bool, lose: Callable[[Path], None]) -> None:
    folder = tmp_path / "journal" if drains else tmp_path / "store"

    def opened() -> Store:
        return open_store(f"file:{tmp_path / 'store'}", journal=folder if drains else None)

    with opened() as store:
        say(store, "kept?")
        store.flush(10)
    lose(folder / "journal.sqlite")

    for _ in range(2):
        with opened() as store:
            assert [finding.kind for finding in store.findings] == ["journal_missing"]
            session = store.session("t", tenant="acme", counter=CHARS)
            assert "journal_missing" in {finding.kind for finding in session.findings}
            found = fsck(store)
            assert (found.damaged, found.first) == (True, "journal_missing")

    (folder / NAME).unlink()
    with opened() as store:
        assert (store.findings, fsck(store).damage) == ((), ())


def test_a_journal_of_a_release_without_its_name_beside_it_is_missed_all_the_same(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        say(store, "kept?")
    (tmp_path / NAME).unlink()
    with open_store(f"file:{tmp_path}") as store:
        assert store.findings == ()  # it is there
    (tmp_path / NAME).unlink()
    (tmp_path / "journal.sqlite").unlink()
    with open_store(f"file:{tmp_path}") as store:
        assert fsck(store).first == "journal_missing"


def test_a_new_machine_has_no_journal_to_miss(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path / 'store'}", journal=tmp_path / "one") as store:
        say(store, "here")
        assert store.flush(10)
    with open_store(f"file:{tmp_path / 'store'}", journal=tmp_path / "two") as store:
        assert (store.findings, store.sessions(tenant="acme")) == ((), ["s"])


def test_a_backup_that_is_put_back_is_the_journal_again(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        say(store, "kept")
    shutil.copy(tmp_path / "journal.sqlite", tmp_path / "backup")
    (tmp_path / "journal.sqlite").unlink()
    with open_store(f"file:{tmp_path}") as store:
        assert store.findings != ()
    os.replace(tmp_path / "backup", tmp_path / "journal.sqlite")
    with open_store(f"file:{tmp_path}") as store:
        assert store.findings == ()
        assert store.at("acme", "s").resolve("§1").text == "kept"


def crashed(root: Path) -> Path:
    """A folder as a killed process leaves it: with the write-ahead log."""
    with closing(FileJournal(root / "running")) as journal:
        journal.append(KEY, 0, [note("a")])
        return Path(shutil.copytree(root / "running", root / "crashed"))


@pytest.mark.parametrize("lose", [removed, emptied])
def test_a_log_without_its_journal_is_not_thrown_away(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    root = crashed(tmp_path)
    lose(root / "journal.sqlite")
    kept = (root / "journal.sqlite-wal").read_bytes()
    with pytest.raises(Damaged, match="acknowledged: end every process"):
        FileJournal(root)
    assert (root / "journal.sqlite-wal").read_bytes() == kept


def test_a_crashed_journal_without_its_log_is_damaged(tmp_path: Path) -> None:
    root = crashed(tmp_path)
    (root / "journal.sqlite-wal").unlink()
    with pytest.raises(Damaged, match="what was acknowledged last"):
        FileJournal(root)
    (root / "journal.sqlite-shm").unlink()
    with closing(FileJournal(root)) as journal:  # the operator has said to go on
        assert journal.length(KEY) == 0


def test_the_advice_on_a_missing_log_saves_what_a_running_process_still_holds(tmp_path: Path) -> None:
    with closing(FileJournal(tmp_path)) as running:
        running.append(KEY, 0, [note("kept")])
        (tmp_path / "journal.sqlite-wal").unlink()
        with pytest.raises(Damaged, match=r"last: end every process that has it open, without killing it, and try"):
            FileJournal(tmp_path)
    with closing(FileJournal(tmp_path)) as journal:
        assert (journal.missing, journal.read(KEY, 0)) == (None, [note("kept")])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version":1}', '{"schema_version":1,"journal":7}'])
def test_a_spoiled_name_is_refused_in_plain_words(tmp_path: Path, text: str) -> None:
    FileJournal(tmp_path).close()
    (tmp_path / NAME).write_text(text)
    with pytest.raises(Damaged, match="which journal belongs here"):
        FileJournal(tmp_path)


# -- codes of its own rows -----------------------------------------------------------------------------------

ALTERATIONS = {
    "length": "UPDATE logs SET length = length - 1 WHERE session = 's'",
    "generation": "UPDATE logs SET generation = generation + 1 WHERE session = 's'",
    "drained": "UPDATE logs SET drained = 2, number = 1 WHERE session = 's'",
    "waiting": "UPDATE logs SET since = 7 WHERE session = 's'",
    "another's": "UPDATE logs SET mac = (SELECT mac FROM logs WHERE session = 't') WHERE session = 's'",
    "text": "UPDATE logs SET length = 'x' WHERE session = 's'",
    "no code": "UPDATE logs SET mac = '' WHERE session = 's'",
}


def altered(root: Path, statement: str) -> None:
    with closing(sqlite3.connect(root / "journal.sqlite")) as db, db:
        db.execute(statement)


@pytest.fixture
def talked(tmp_path: Path) -> Path:
    """A closed store in which ann and bob have talked."""
    with open_store(f"file:{tmp_path}", keys=KEYS) as store:
        for session in "st":
            say(store, "from ann", session, "ann")
            say(store, "from bob", session, "bob")
    return tmp_path


@pytest.mark.parametrize("statement", ALTERATIONS.values(), ids=ALTERATIONS)
def test_an_altered_log_is_refused_by_its_readers_named_by_fsck_and_counted_anew(talked: Path, statement: str) -> None:
    altered(talked, statement)
    with open_store(f"file:{talked}", keys=KEYS) as store:
        for read in (lambda: store.at("acme", "s"), lambda: say(store, "more")):
            with pytest.raises(Damaged, match="'s'"):
                read()
        assert store.at("acme", "t").resolve("§2").text == "from bob"
        found = fsck(store, read_data=True)
        assert [(one.kind, one.field) for one in found.damage] == [("log_altered", "journal/acme/s")]
        assert fsck(store, repair=True).damage == ()
        assert [entry.message.text for entry in store.at("acme", "s").entries()] == ["from ann", "from bob"]
        say(store, "more")
    with open_store(f"file:{talked}", keys=KEYS) as store:
        assert store.at("acme", "s").resolve("§3").text == "more"


def test_a_drained_log_that_was_altered_is_counted_anew_and_goes_on_draining(tmp_path: Path) -> None:
    uri, folder = f"file:{tmp_path / 'store'}", tmp_path / "journal"
    with open_store(uri, journal=folder, keys=KEYS) as store:
        say(store, "one")
        assert store.flush(10)
        before = store.journal.drained(SessionKey("acme", "s"))
    altered(folder, "UPDATE logs SET drained = 0, number = 0 WHERE session = 's'")
    with open_store(uri, journal=folder, keys=KEYS) as store:
        assert fsck(store, repair=True).damage == ()
        assert store.journal.drained(SessionKey("acme", "s")) == before
        say(store, "two")
        assert store.flush(10)
    with open_store(uri, journal=tmp_path / "fresh", keys=KEYS) as store:
        assert [entry.message.text for entry in store.at("acme", "s").entries()] == ["one", "two"]


NOTES = {
    "another name": "UPDATE forgotten SET principal = 'bob'",
    "another session": "UPDATE forgotten SET session = 't' WHERE session = 's'",
    "who": "UPDATE forgotten SET who = 'nobody'",
    "taken out": "DELETE FROM forgotten WHERE session = 's'",
    "made up": (
        "INSERT INTO forgotten (tenant, session, whole, principal, who, at, why) "
        "VALUES ('acme', 's', 0, 'bob', 'x', 'x', 'x')"
    ),
}


@pytest.mark.parametrize("statement", NOTES.values(), ids=NOTES)
def test_an_altered_note_of_who_was_forgotten_is_refused_and_named(talked: Path, statement: str) -> None:
    with open_store(f"file:{talked}", keys=KEYS) as store:
        forget(store, tenant="acme", principal="ann", session="s", who="dpo", why="asked", when="2026-11-22")
    altered(talked, statement)
    with open_store(f"file:{talked}", keys=KEYS) as store:
        with pytest.raises(Damaged, match="who was forgotten"):
            store.at("acme", "s")
        found = fsck(store)
        assert "forgotten_altered" in {one.kind for one in found.damage}
        assert {one.field for one in found.damage} <= {"journal/acme/s", "journal/acme/t"}


def said(store: Store, session: str) -> list[str]:
    return [row.wire or "" for row in store.journal.read(SessionKey("acme", session), 0) if row.kind == "message"]


DAMAGED = {
    "log": ("UPDATE logs SET length = length + 1 WHERE session = 's'", "s"),
    "row gone": ("DELETE FROM logs WHERE session = 's'", "s"),
    "record gone": ("DELETE FROM records WHERE session = 's' AND ordinal = 1", "s"),
    "another's": ("UPDATE records SET body = replace(body, 'ann', 'eve') WHERE session = 's'", "s"),
    "who was forgotten": ("DELETE FROM forgotten", "u"),
}


@pytest.mark.parametrize(("statement", "named"), DAMAGED.values(), ids=DAMAGED)
def test_damage_in_one_log_stops_no_erasure_in_the_others_and_none_is_called_complete(
    talked: Path, statement: str, named: str
) -> None:
    with open_store(f"file:{talked}", keys=KEYS) as store:
        say(store, "from carl", "u", "carl")
        say(store, "ann again", "s", "ann")
        forget(store, tenant="acme", principal="carl", session="u", **TOLD)
    altered(talked, statement)
    with open_store(f"file:{talked}", keys=KEYS) as store:
        before = said(store, "s")
        done = forget(store, tenant="acme", principal="ann", **TOLD)
        assert (done.complete, {finding.field for finding in done.findings}) == (False, {named})
        assert not any("ann" in text for text in said(store, "t"))
        assert [text for text in said(store, "s") if "bob" in text] == [text for text in before if "bob" in text]
        forget(store, tenant="acme", session="t", **TOLD)
        with pytest.raises(Erased):
            store.at("acme", "t")


@pytest.mark.parametrize("statement", [*ALTERATIONS.values(), NOTES["taken out"]], ids=[*ALTERATIONS, "taken out"])
def test_rows_that_have_codes_are_not_taken_at_their_word_again(talked: Path, statement: str) -> None:
    with open_store(f"file:{talked}", keys=KEYS) as store:
        forget(store, tenant="acme", principal="ann", session="s", **TOLD)
    altered(talked, "DELETE FROM meta WHERE name = 'row_codes'")
    altered(talked, statement)
    with open_store(f"file:{talked}", keys=KEYS) as store:
        with pytest.raises(Damaged, match="'s'"):
            say(store, "more", "s", "ann")
        assert {finding.field for finding in fsck(store).damage} == {"journal/acme/s"}


def test_a_log_whose_row_is_gone_is_named_and_counted_anew_and_then_forgotten(talked: Path) -> None:
    altered(talked, "DELETE FROM logs WHERE session = 's'")
    with open_store(f"file:{talked}", keys=KEYS) as store:
        assert ("log_altered", "journal/acme/s") in {(found.kind, found.field) for found in fsck(store).damage}
        with pytest.raises(InputError, match="there is no session 's'"):
            forget(store, tenant="acme", session="s", **TOLD)
        assert fsck(store, repair=True).damage == ()
        assert forget(store, tenant="acme", session="s", **TOLD).complete
        assert said(store, "s") == []


SEEN = {
    "tombstones": "INSERT INTO seen VALUES ('tombstones/acme', 1000)",
    "erased": "INSERT INTO seen SELECT 'erased/acme/' || value, 1 FROM json_each('{names}')",
}


@pytest.mark.parametrize("statement", SEEN.values(), ids=SEEN)
def test_what_was_forgotten_elsewhere_is_erased_here_whatever_the_journal_says_it_has_seen(
    tmp_path: Path, statement: str
) -> None:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        for session in "st":
            say(store, "from ann", session, "ann")
        assert store.flush(10)
        names = json.dumps([store.vault("acme").subject_address(subject_of(name, "ann")) for name in "st"])
    with open_store(uri, journal=tmp_path / "two", keys=KEYS) as store:
        forget(store, tenant="acme", principal="ann", **TOLD)
    altered(tmp_path / "one", statement.replace("{names}", names))
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        done = apply_tombstones(store, "acme")
        assert done is not None
        assert (set(done.sessions), done.complete) == ({"s", "t"}, statement != SEEN["tombstones"])
        assert not any("ann" in text for name in "st" for text in said(store, name))


def test_a_damaged_log_keeps_no_other_tombstone_from_being_applied(tmp_path: Path) -> None:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        for session in "st":
            say(store, "from ann", session, "ann")
        assert store.flush(10)
    with open_store(uri, journal=tmp_path / "two", keys=KEYS) as store:
        for session in "st":
            forget(store, tenant="acme", session=session, **TOLD)
    altered(tmp_path / "one", "UPDATE logs SET mac = '' WHERE session = 's'")
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        done = apply_tombstones(store, "acme")
        assert done is not None
        assert (done.complete, {finding.field for finding in done.findings}) == (False, {"s"})
        assert [bool(said(store, session)) for session in "st"] == [True, False]
        assert {found.kind for found in fsck(store, repair=True).damage} == {"content_after_erasure"}
        apply_tombstones(store, "acme")
        assert [said(store, session) for session in "st"] == [[], []]


def test_a_number_that_is_none_is_damage(talked: Path) -> None:
    altered(talked, "INSERT INTO seen VALUES ('tombstones/acme', 'x')")
    with open_store(f"file:{talked}", keys=KEYS) as store, pytest.raises(Damaged, match="notes 'x' where a number"):
        apply_tombstones(store, "acme")


def as_version_2(root: Path) -> None:
    """What the release before has left."""
    with closing(sqlite3.connect(root / "journal.sqlite", isolation_level=None)) as db:
        for statement in (
            "ALTER TABLE logs DROP COLUMN mac",
            "ALTER TABLE logs DROP COLUMN forgotten",
            "ALTER TABLE forgotten DROP COLUMN mac",
            "DELETE FROM meta WHERE name = 'row_codes'",
            "PRAGMA user_version = 2",
        ):
            db.execute(statement)


def test_a_journal_of_the_version_before_gets_its_codes_when_it_is_opened(talked: Path) -> None:
    with open_store(f"file:{talked}", keys=KEYS) as store:
        forget(store, tenant="acme", principal="ann", session="s", who="dpo", why="asked", when="2026-11-22")
        forget(store, tenant="acme", session="t", who="dpo", why="asked", when="2026-11-22")
    as_version_2(talked)
    for _ in range(2):
        with open_store(f"file:{talked}", keys=KEYS) as store:
            assert fsck(store, read_data=True).damage == ()
            assert store.at("acme", "s").resolve("§2").text == "from bob"
            for call in (lambda: say(store, "again", "s", "ann"), lambda: store.session("t", tenant="acme")):
                with pytest.raises(Erased):
                    call()
    with closing(sqlite3.connect(talked / "journal.sqlite")) as db:
        assert db.execute("PRAGMA user_version").fetchall() == [(LAYOUT_VERSION,)]
    altered(talked, ALTERATIONS["length"])
    with open_store(f"file:{talked}", keys=KEYS) as store, pytest.raises(Damaged):
        store.at("acme", "s")


def test_other_keys_give_an_older_journal_no_codes(talked: Path) -> None:
    as_version_2(talked)
    with open_store(f"file:{talked}", keys=memory_keys()) as store, pytest.raises(StoreError, match="keys"):
        store.session("s", tenant="acme")
    with open_store(f"file:{talked}", keys=KEYS) as store:
        assert fsck(store, read_data=True).damage == ()
