"""What a store holds: counted without reading it, and listed in order."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.maintenance.inventory import ListingRow, ls, stats

from .furnished import CHARS, Original, talk


def test_counts_are_those_of_the_rows(original: Original) -> None:
    found = stats(original.store)
    ((messages, compactions),) = original.rows("SELECT sum(kind = 'message'), sum(kind = 'compaction') FROM records")

    assert (found.tenants, found.sessions, found.stored_sessions) == (2, 6, 6)
    assert (found.messages, found.compactions, found.versions) == (messages, compactions, 6)
    assert compactions > 0
    assert sum(kept.objects for kept in found.kinds.values()) == len(original.bodies())
    assert sum(kept.bytes for kept in found.kinds.values()) == sum(map(len, original.bodies().values()))
    assert (found.waiting_sessions, found.oldest_waiting, found.waiting_bytes) == (0, None, 0)


def test_one_tenant_alone_is_half_of_it(original: Original) -> None:
    both, one = stats(original.store), stats(original.store, tenant="beta")

    assert (one.tenants, one.sessions * 2, one.versions * 2) == (1, both.sessions, both.versions)
    assert one.messages * 2 == both.messages


@pytest.mark.parametrize("messages", [0, 1, 2, 3, 4, 7, 8, 9, 33])
def test_messages_are_counted_by_a_few_questions(messages: int) -> None:
    with open_store("memory:") as store:
        session = store.session("s", counter=CHARS)
        session.extend([{"role": "user", "content": str(n)} for n in range(messages)])
        fork = session.fork(id="f")
        fork.extend([{"role": "user", "content": "more"}] * 5)

        assert stats(store).messages == messages + 5


def test_what_waits_is_counted_and_the_longest_is_named(original: Original) -> None:
    store = original.with_journal(original.journal_file(), drains=True)
    talk(store.session("t", tenant="acme", counter=CHARS), 1)
    talk(store.session("s", tenant="beta", counter=CHARS), 2)
    found, mine = stats(store), stats(store, tenant="beta")
    store.journal.close()

    assert (found.waiting_sessions, found.oldest_waiting) == (2, "t")
    assert (mine.waiting_sessions, mine.oldest_waiting) == (1, "s")
    assert found.waiting_bytes > 0


def test_names_come_in_order_and_once(original: Original) -> None:
    names = [one.name for one in ls(original.store)]
    logs = list(ls(original.store, "journal/"))

    assert names == sorted({*original.bodies(), *(log.name for log in logs)})
    assert [log.name for log in logs] == [f"journal/{t}/{s}" for t in ("acme", "beta") for s in ("s", "s-branch", "t")]
    length = original.journal.length(SessionKey("acme", "s"))
    assert logs[0] == ListingRow("journal/acme/s", "log", length, None)


def test_a_prefix_and_a_tenant_choose(original: Original) -> None:
    assert [one.kind for one in ls(original.store, "profiles/acme/support/versions/")] == ["profiles"] * 3
    assert {one.name.split("/")[1] for one in ls(original.store, tenant="beta")} == {"beta"}
    assert list(ls(original.store, "nothing/")) == []
