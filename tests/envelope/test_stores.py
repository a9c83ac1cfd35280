"""What every store promises: nothing lost, one order, originals unaltered, damage seen, quick reopening."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, Store, open_store
from ctxsteward.schemas import ReferenceNotFound
from ctxsteward.schemas.errors import Conflict
from ctxsteward.store.crypto.keyring import file_keys
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.objects.memory import MemoryObjects

from ..examples import SOAK
from .histories import Wire
from .messages import call, char_builder, opened, result

KEY = SessionKey("default", "s")


def builder(dynamic_tokens: int = 2_000) -> EnvelopeBuilder:
    return char_builder(Budgets(dynamic_tokens=dynamic_tokens))


def say(n: int) -> Wire:
    return {"role": ("user", "assistant")[n % 2], "content": f"message {n} 你好 " + "word " * (n % 40), "x_n": n}


# -- the journal -----------------------------------------------------------------------------------


def test_a_journal_keeps_records_in_order_and_refuses_a_taken_position(store: Store) -> None:
    journal = store.journal
    records = [JournalRecord("note", json.dumps({"n": n})) for n in range(3)]
    journal.append(KEY, 0, records)
    for position in (0, 2, 4):
        with pytest.raises(Conflict):
            journal.append(KEY, position, records)
    assert (journal.length(KEY), journal.read(KEY, 0), journal.read(KEY, 1, 2)) == (3, records, records[1:2])
    assert journal.read(KEY, 9) == []
    assert journal.length(SessionKey("acme", "s")) == 0


def test_two_sessions_on_one_log_interleave_without_loss(store: Store) -> None:
    one, two = opened(store), opened(store)
    for n in range(0, 40, 2):
        one.append(say(n))
        two.append(say(n + 1))
    one.refresh()
    assert [entry.message.wire for entry in one.entries()] == [say(n) for n in range(40)]
    assert one.state == two.state


def test_a_batch_and_single_appends_give_equal_states(store: Store) -> None:
    messages = [say(0), call("a"), result("a", "x"), call("a"), result("a", "y"), result("lost", "z"), say(6)]
    one, two = opened(store), opened(store, "t")
    for message in messages:
        one.append(message)
    two.extend(messages)
    assert [e.event.placement for e in one.entries()] == [e.event.placement for e in two.entries()]


def test_a_fork_shares_the_past_and_counts_on(store: Store) -> None:
    session = opened(store)
    session.extend(say(n) for n in range(6))
    fork = session.fork(at=4)
    fork.append(say(100))
    session.append(say(200))
    assert (len(fork), len(session)) == (5, 7)
    assert fork.resolve("§4") == session.resolve("§4")
    assert (fork.resolve("§5").wire, session.resolve("§5").wire) == (say(100), say(4))
    with pytest.raises(ReferenceNotFound):
        fork.resolve("§6")
    again = fork.fork(at=2)
    again.append(say(300))
    assert [e.message.wire for e in opened(store, again.id).entries()] == [say(0), say(1), say(300)]


def test_tool_outputs_are_numbered_across_forks(store: Store) -> None:
    session = opened(store)
    for n in range(4):
        session.extend([call(f"c{n}"), result(f"c{n}", f"output {n + 1}")])
    fork = session.fork(at=4)
    fork.extend([call("d"), result("d", "fork's third")])
    nested = fork.fork()
    nested.extend([call("e"), result("e", "nested's fourth")])

    def outputs(of: Session) -> list[str]:
        return [of.tool_output(n).tool_results[0].text for n in range(1, of.state.outputs + 1)]

    assert outputs(session) == [f"output {n}" for n in range(1, 5)]
    assert outputs(fork) == ["output 1", "output 2", "fork's third"]
    assert outputs(nested) == ["output 1", "output 2", "fork's third", "nested's fourth"]
    with pytest.raises(ReferenceNotFound):
        fork.tool_output(4)


def test_at_reads_a_session_as_it_was(store: Store) -> None:
    session, maker = opened(store), builder()
    seen = []
    for n in range(60):
        session.append(say(n))
        envelope = maker.build(session)
        seen.append((envelope.position, json.dumps(envelope.render("openai-chat")), session.state.copy()))
    assert session.state.compactions > 1
    for position, then, state in seen:
        before = store.at("default", "s", position)
        assert before.state == state
        assert json.dumps(maker.rebuild(before).render("openai-chat")) == then


def test_a_compaction_is_found_by_its_address(store: Store) -> None:
    session, maker = opened(store), builder()
    for n in range(60):
        session.append(say(n))
        for report in maker.build(session).reports:
            assert store.compaction(report.id).report == report
    with pytest.raises(ReferenceNotFound):
        store.compaction("00" * 32)
    with pytest.raises(ReferenceNotFound):
        store.compaction(session.reports()[0].report.id, tenant="acme")


# -- files -----------------------------------------------------------------------------------------

READER = """
import json, sys
from ctxsteward.envelope import open_store
session = open_store("file:" + sys.argv[1]).session("s")
print(json.dumps([session.resolve(f"§{n}").wire for n in range(1, len(session) + 1)]))
"""
WRITER = """
import sys
from ctxsteward.envelope import open_store
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.envelope.testing import CharTokenizer
session = open_store("file:" + sys.argv[1]).session("s", counter=Counter(CharTokenizer()))
for n in range(100):
    session.append({"role": "user", "content": f"{sys.argv[2]} {n}"}, id=f"{sys.argv[2]}-{n}")
"""


def test_a_new_process_resolves_every_original_byte_for_byte(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session, maker = opened(store), builder()
        for n in range(60):
            session.append(say(n))
            maker.build(session)
        assert session.state.compactions
    out = subprocess.run([sys.executable, "-c", READER, str(tmp_path)], capture_output=True, check=True, text=True)
    assert out.stdout.strip() == json.dumps([say(n) for n in range(60)])


def test_two_processes_append_a_hundred_each_and_nothing_is_lost(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name], stderr=subprocess.PIPE) for name in "ab"
    ]
    assert [(writer.communicate(timeout=120)[1], writer.returncode) for writer in writers] == [(b"", 0), (b"", 0)]
    with open_store(f"file:{tmp_path}") as store:
        texts = [entry.message.text for entry in opened(store).entries()]
    assert len(texts) == 200
    for name in "ab":
        assert [text for text in texts if text.startswith(name)] == [f"{name} {n}" for n in range(100)]


OPENER = """
import sys
from ctxsteward.envelope import open_store
with open_store("file:" + sys.argv[1]) as store:
    store.sessions()
"""


def test_many_processes_open_a_new_store_at_once(tmp_path: Path) -> None:
    for round_ in range(3 if SOAK else 1):
        root = str(tmp_path / str(round_))
        openers = [
            subprocess.Popen([sys.executable, "-c", OPENER, root], stderr=subprocess.PIPE)
            for _ in range(6 if SOAK else 4)
        ]
        assert [(opener.communicate(timeout=120)[1], opener.returncode) for opener in openers] == [(b"", 0)] * len(
            openers
        )


class CountingJournal(FileJournal):
    """Counts the records it hands out."""

    rows = 0

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]:
        return self._counted(super().read(key, start, stop))

    def message(self, key: SessionKey, ordinal: int) -> JournalRecord | None:
        found = super().message(key, ordinal)
        self.rows += found is not None
        return found

    def _counted(self, records: Sequence[JournalRecord]) -> list[JournalRecord]:
        self.rows += len(records)
        return list(records)


def over(journal: FileJournal, root: Path) -> Store:
    """The store of this folder, with this journal."""
    return Store(journal, MemoryObjects(), file_keys(root / "keys"), uri="file:")


def reopening_costs(
    root: Path, write: Callable[[Session, EnvelopeBuilder, int], None], ages: Sequence[int]
) -> list[int]:
    costs, n = [], 0
    for age in ages:
        with open_store(f"file:{root}") as store:
            session, maker = opened(store), builder()
            while n < age:
                write(session, maker, n)
                n += 1
        journal = CountingJournal(root)
        with over(journal, root) as store:
            assert len(opened(store)) == age
        costs.append(journal.rows)
    return costs


def test_reopening_reads_the_window_and_not_the_session(tmp_path: Path) -> None:
    def write(session: Session, maker: EnvelopeBuilder, n: int) -> None:
        session.append(say(n))
        maker.build(session)

    costs = reopening_costs(tmp_path, write, (200, 1_000, 2_000) if SOAK else (100, 300))
    assert max(costs) <= 40, costs


def test_reopening_a_fork_of_an_old_session_reads_its_window(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        session, maker = opened(store), builder()
        for n in range(200):
            session.append(say(n))
            maker.build(session)
        session.fork(id="child")
    journal = CountingJournal(tmp_path)
    with over(journal, tmp_path) as store:
        assert len(opened(store, "child")) == 200
    assert journal.rows <= 40
