"""What recall has read of a session is kept in a file beside the journal: a cache that may be lost, torn or forged."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, Store, open_store
from ctxsteward.envelope.recall.heuristic import IndexedSession, Weights
from ctxsteward.envelope.recall.session_index import IndexedUnit, SessionIndex
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.schemas import Message
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.derived_files import DerivedFile, DerivedFiles, packed, unpacked
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.events import RecallSelected
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.summarizers import Reader

from ...examples import examples

THINGS = ("budget", "deadline", "port", "quota", "fee", "limit")
SAID = [f"The {thing} of project P{number} is {number + 10} days." for number in range(60) for thing in THINGS[:2]]
SAID += [
    f"Change of plan: the deadline of project P{number} is {number + 50} days, not {number + 10}."
    for number in range(20)
]
NOTE = {"who": "dpo", "when": "2026-11-24", "why": "request 9"}


def builder() -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=2_000))


def say(session: Session, text: str, **more: Any) -> None:
    session.append({"role": "user", "content": text}, **more)


def ask(maker: EnvelopeBuilder, session: Session, text: str) -> RecallSelected:
    """What is recalled for a question."""
    say(session, text)
    maker.build(session)
    recalled = session.state.recalled
    assert recalled is not None
    session.append({"role": "assistant", "content": "Noted."})
    return recalled


def spoken(store: Store, id: str = "s", count: int = len(SAID)) -> Session:
    session = store.session(id)
    session.extend({"role": "user", "content": text} for text in SAID[:count])
    return session


def parts(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "indexes").rglob("*") if path.is_file())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ordinals that an index was given, one by one."""
    taken: list[int] = []
    add = IndexedSession.add

    def noted(self: IndexedSession, entry: Any) -> None:
        taken.append(entry.ordinal)
        add(self, entry)

    monkeypatch.setattr(IndexedSession, "add", noted)
    return taken


# -- the same as if it had been read anew ---------------------------------------------------------------------------


def test_a_new_process_recalls_as_one_that_went_on_and_reads_only_what_came_since(
    tmp_path: Path, read: list[int]
) -> None:
    with open_store(f"file:{tmp_path / 'a'}") as lasting, open_store(f"file:{tmp_path / 'b'}") as reopened:
        going_on, maker = spoken(lasting), builder()
        spoken(reopened)
        for turn in range(12):
            question = f"What is the deadline of project P{turn}, and its budget?"
            texts = ask(maker, going_on, question)
            read.clear()
            assert ask(builder(), reopened.session("s"), question) == texts
            assert len(read) <= (len(SAID) + 1 if turn == 0 else 24)
    assert [path.suffix for path in parts(tmp_path / "b")] == [".index", ".replaced-chars%2Fopenai-tiles"]


turns = st.lists(
    st.builds(
        IndexedUnit,
        terms=st.lists(st.sampled_from(("ash", "birch", "cedar", "date", "elm")), max_size=8),
        size_tokens=st.integers(0, 300),
        asks=st.booleans(),
        speaker=st.sampled_from([None, "ann", "bob"]),
        passage=st.sampled_from([0, 0, 1]),
        repeated=st.lists(st.sampled_from(("ash", "elm")), max_size=3),
        sitting=st.sampled_from([None, "2026-01-01", "2026-01-02"]),
        date_terms=st.sampled_from([(), ("1", "januari")]),
    ),
    max_size=30,
)


@given(turns, st.lists(st.sampled_from(("ash", "date", "elm", "1")), max_size=5), st.integers(0, 30))
def test_an_index_that_was_taken_up_ranks_as_the_one_it_was(made: list[IndexedUnit], query: list[str], at: int) -> None:
    first, whole = SessionIndex(), SessionIndex()
    for ordinal, turn in enumerate(made, 1):
        whole.add(ordinal, turn)
        if ordinal <= at:
            first.add(ordinal, turn)
    resumed = SessionIndex()
    resumed.resume(unpacked(packed(first.state())))
    for ordinal, turn in enumerate(made[at:], at + 1):
        resumed.add(ordinal, turn)
    ranked, expected = (
        [(one.ref, one.score, dict(one.signals)) for one in index.rank(query, "said Ann", Weights())]
        for index in (resumed, whole)
    )
    assert ranked == expected


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(THINGS), st.integers(1, 4), st.booleans()), max_size=40), st.integers(0, 40))
def test_a_reader_that_was_taken_up_tells_what_the_one_it_was_tells(said: list[tuple[str, int, bool]], at: int) -> None:
    texts = [f"{'Change of plan: the' if anew else 'The'} {thing} is {days} days." for thing, days, anew in said]
    texts += ["```\nthe fee is 3 days\n```\nNever ship on Fridays."]
    whole, first, resumed = Reader(), Reader(), Reader()
    for number, text in enumerate(texts, 1):
        message = SourceMessage(ref=f"§{number}", message=Message.from_wire({"role": "user", "content": text}))
        whole.read(message)
        if number <= at:
            first.read(message)
            if number == min(at, len(texts)):
                assert resumed.resume(unpacked(packed(first.state())))
        else:
            resumed.read(message)
    refs = [f"§{number}" for number in range(1, len(texts) + 1)]
    assert [resumed.replaced_by(ref) for ref in refs] == [whole.replaced_by(ref) for ref in refs]
    if at:
        assert packed(resumed.state()) == packed(whole.state())


def test_a_reader_of_other_rules_takes_nothing_up() -> None:
    state = Reader().state()
    assert not Reader().resume(["another digest", *state[1:]])


# -- whatever is wrong with a file, it is derived again -------------------------------------------------------------


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _forged(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"deadlin", b"budgets"))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _swapped(path: Path) -> None:
    """The other part's bytes, with a right code of their own."""
    other = next(one for one in path.parent.iterdir() if one != path)
    path.write_bytes(other.read_bytes())


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "nowhere" / "else")


@pytest.mark.parametrize(
    "harm",
    [_cut, _forged, _empty, _folder, _swapped, _dangling, Path.unlink],
    ids=lambda harm: harm.__name__.strip("_"),
)
def test_whatever_is_wrong_with_the_file_the_session_is_read_again(
    tmp_path: Path, read: list[int], harm: Callable[[Path], None]
) -> None:
    with open_store(f"file:{tmp_path}") as store:
        spoken(store)
        expected = ask(builder(), store.session("s"), "What is the deadline of P3?")
        for path in parts(tmp_path):
            if path.suffix == ".index":
                harm(path)
        read.clear()
        again = store.session("s").draft()
        say(again, "What is the deadline of P3?")
        builder().build(again)
        assert read[:3] == [1, 2, 3]
        assert again.state.recalled is not None
        assert again.state.recalled.refs[:3] == expected.refs[:3]


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "indexes").write_text("in the way")
    with open_store(f"file:{tmp_path}") as store:
        session = spoken(store)
        assert ask(builder(), session, "What is the deadline of project P3?").refs
    assert (tmp_path / "indexes").read_text() == "in the way"


def test_a_state_of_another_form_is_read_again(tmp_path: Path, read: list[int]) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session = spoken(store)
        ask(builder(), session, "What is the deadline of P3?")
        file = session.derived_file()
        assert file is not None
        kept = file.read("index")
        assert kept is not None
        for state in (["short"], [*kept[:-1], None], [*kept[:-1], [1, 2, 3, 4]], [*kept[:2], "other address", kept[3]]):
            assert file.write("index", state)
            read.clear()
            ask(builder(), store.session("s"), "And of P4?")
            assert read[:2] == [1, 2]


@pytest.mark.parametrize("body", [b"", b"\0" * 7, b"\0" * 8, (9).to_bytes(8, "big") + b'[{"Q":99}]'], ids=repr)
def test_bytes_of_another_form_under_a_right_code_are_read_again(tmp_path: Path, read: list[int], body: bytes) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session = spoken(store)
        ask(builder(), session, "What is the deadline of P3?")
        file = session.derived_file()
        assert file is not None
        file._states.write(file._name("index"), file._code("index", body) + body)
        read.clear()
        ask(builder(), store.session("s"), "And of P4?")
        assert read[:2] == [1, 2]


# -- only what the log says -----------------------------------------------------------------------------------------


def test_a_draft_leaves_no_file_and_a_session_in_memory_has_none(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session = spoken(store)
        builder().preview(session, "What is the deadline of P3?")
        assert session.draft().derived_file() is None
        assert parts(tmp_path) == []
    with open_store("memory:") as memory:
        assert memory.session("s").derived_file() is None


def test_a_session_as_it_was_knows_nothing_of_what_came_later(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session = spoken(store)
        ask(builder(), session, "What is the deadline of P3?")
        early = store.at("default", "s", 100).draft()
        say(early, "What is the deadline of P3?")
        builder().build(early)
        assert early.state.recalled is not None
        assert max(early.state.recalled.refs) < 100


def test_a_fork_has_a_file_of_its_own(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session = spoken(store)
        ask(builder(), session, "What is the deadline of P3?")
        child = session.fork(at=100, id="child")
        for number in range(20):
            say(child, f"The fee of the child is {number} days.")
        ask(builder(), child, "What is the fee of the child?")
        assert len(parts(tmp_path)) == 4


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        ask(builder(), spoken(store), "What is the deadline of P3?")
    assert {path.stat().st_mode & 0o777 for path in parts(tmp_path)} == {0o600}
    assert not [path for path in parts(tmp_path) if path.name.startswith("s.")]  # a session's name may be personal


# -- what was forgotten ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whom", [{"session": "s"}, {"principal": "ann"}])
def test_what_was_forgotten_leaves_the_files(tmp_path: Path, whom: dict[str, str]) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session = spoken(store)
        for number in range(20):
            say(session, f"My canary number {number} is CANARYann.", principal="ann")
        ask(builder(), session, "Which canary was it?")
        assert any(b"canaryann" in path.read_bytes().lower() for path in parts(tmp_path))
        forget(store, **whom, **NOTE)
        assert parts(tmp_path) == []


def test_a_writer_that_has_not_heard_of_an_erasure_takes_its_file_back(tmp_path: Path) -> None:
    """It has read the session, and is stopped before it writes; meanwhile another process forgets."""
    with open_store(f"file:{tmp_path}") as store, open_store(f"file:{tmp_path}") as elsewhere:
        session = spoken(store)
        say(session, "My canary is CANARYann.", principal="ann")
        file = session.derived_file()
        assert file is not None
        assert file.write("index", ["CANARYann"])
        forget(elsewhere, principal="ann", **NOTE)
        assert parts(tmp_path) == []
        assert not file.write("index", ["CANARYann"])
        assert parts(tmp_path) == []
        forget(elsewhere, session="s", **NOTE)
        assert not file.write("index", ["CANARYann"])
        assert parts(tmp_path) == []


@pytest.mark.parametrize("held", [(), ("ledgers/acme/open.sqlite",)])
def test_an_erasure_deletes_all_files_of_its_tenant_but_those_with_an_eraser_of_their_own(
    tmp_path: Path, held: tuple[str, ...]
) -> None:
    names = (
        "ledgers/acme/open.sqlite",
        "ledgers/acme/open.sqlite-wal",
        "ledgers/acme/shut.sqlite",
        "indexes/acme/1.index",
    )
    for name in (*names, "indexes/other/1.index", "journal.sqlite"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    deleted = DerivedFiles(tmp_path, "acme", [tmp_path / name for name in held])(())
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    kept = {name for name in names if name.startswith(held)} if held else set()
    assert (deleted, left) == (4 - len(kept), {"indexes/other/1.index", "journal.sqlite"} | kept)


def test_a_killed_writer_leaves_nothing_that_is_taken_for_a_state(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from ctxsteward.store.derived_files import DerivedFile
from ctxsteward.store.journal.port import SessionKey
file = DerivedFile(Path(sys.argv[1]), SessionKey("default", "s"), b"k" * 32, lambda: True)
file.write("index", ["first"])
Path.replace = lambda self, other: os._exit(9)
file.write("index", ["second"])
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, timeout=60)
    file = DerivedFile(tmp_path, SessionKey("default", "s"), AddressKey(b"k" * 32), lambda: True)
    assert (done.returncode, file.read("index")) == (9, ["first"])


# -- the form -------------------------------------------------------------------------------------------------------

numbers = st.one_of(
    st.lists(st.integers(0, 2**32 - 1)).map(lambda held: array("I", held)),
    st.lists(st.integers(-(2**31), 2**31 - 1)).map(lambda held: array("i", held)),
    st.lists(st.integers(0, 255)).map(lambda held: array("B", held)),
)
states = st.recursive(st.one_of(st.none(), st.text(), st.integers(), numbers), st.lists, max_leaves=12)


@given(st.lists(states))
def test_a_state_is_read_back_as_it_was_written(state: list[Any]) -> None:
    assert unpacked(packed(state)) == state


def test_a_lone_surrogate_is_kept_as_it_is() -> None:
    assert unpacked(packed(["\ud800"])) == ["\ud800"]
