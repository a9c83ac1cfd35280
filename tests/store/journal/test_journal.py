"""What every journal promises, case by case; `test_model.py` has the invariants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Conflict
from ctxsteward.store.journal.draft import DraftJournal
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import DrainMark, ForgottenSubject, Journal, JournalRecord, Manifest, WaitingLog

from .journals import FOREIGN, JOURNALS, KEY, OTHER, compaction, message, note, serve


@pytest.fixture(params=JOURNALS)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    serve(request, request.param)
    opened = JOURNALS[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=["memory, drains", "file, drains"])
def draining(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    opened = JOURNALS[request.param](tmp_path)
    yield opened
    opened.close()


# -- logs --------------------------------------------------------------------------------------------------


def test_a_record_comes_back_as_it_was_written(journal: Journal) -> None:
    records = [
        JournalRecord("opened", '{"nonce":"n"}'),
        JournalRecord("message", '{"a":"你好"}', 1, 2, "id-1", '{"content":"§ 🙂 \\u0000"}', "mac"),
        JournalRecord("note", "x\x00y", mac="other"),
    ]
    journal.append(KEY, 0, records)
    assert journal.read(KEY, 0) == records
    assert [journal.read(KEY, 1), journal.read(KEY, 0, 1), journal.read(KEY, 3), journal.read(KEY, 0, 0)] == [
        records[1:],
        records[:1],
        [],
        [],
    ]


@pytest.mark.parametrize(
    ("position", "generation"),
    [
        pytest.param(0, 0, id="taken"),
        pytest.param(1, 0, id="taken, the last one"),
        pytest.param(3, 0, id="would leave a gap"),
        pytest.param(2, 1, id="a generation to come"),
        pytest.param(-1, 0, id="before the first"),
    ],
)
def test_an_append_elsewhere_is_a_conflict_and_writes_nothing(journal: Journal, position: int, generation: int) -> None:
    journal.append(KEY, 0, [note("a"), note("b")])
    with pytest.raises(Conflict):
        journal.append(KEY, position, [note("c")], generation=generation)
    assert journal.read(KEY, 0) == [note("a"), note("b")]


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param([note("x"), message(2, id="id-1")], id="an id of the log"),
        pytest.param([note("x"), message(1)], id="an ordinal of the log"),
        pytest.param([message(2, id="new"), message(3, id="new")], id="an id of the batch"),
        pytest.param([message(2), message(2)], id="an ordinal of the batch"),
        pytest.param([note("x"), compaction("ab")], id="the address of a compaction"),
        pytest.param([compaction("cd"), compaction("cd")], id="an address of the batch"),
        pytest.param([note("x"), JournalRecord("compaction", "{}")], id="a compaction without a report"),
    ],
)
def test_an_append_is_written_whole_or_not_at_all(journal: Journal, batch: list[JournalRecord]) -> None:
    journal.append(KEY, 0, [message(1, id="id-1"), compaction("ab")])
    with pytest.raises(StoreError):
        journal.append(KEY, 2, batch)
    assert (journal.length(KEY), journal.find("acme", "cd"), journal.by_id(KEY, "new")) == (2, None, None)
    journal.append(KEY, 2, [message(2, id="new"), compaction("cd")])
    assert journal.length(KEY) == 4


def test_records_are_found_by_what_names_them(journal: Journal) -> None:
    records = [
        note("head"),
        message(1, id="one"),
        message(2, outputs=2),
        compaction("ab"),
        message(3, outputs=3),
        compaction("ac"),
    ]
    journal.append(KEY, 0, records)
    assert [journal.message(KEY, n) for n in range(5)] == [None, records[1], records[2], records[4], None]
    assert [journal.position(KEY, n) for n in range(5)] == [None, 1, 2, 4, None]
    assert [journal.by_id(KEY, id) for id in ("one", "two", "")] == [records[1], None, None]
    assert [journal.by_output(KEY, n) for n in range(1, 5)] == [records[2], records[2], records[4], None]
    assert [journal.checkpoint(KEY), journal.checkpoint(KEY, 5), journal.checkpoint(KEY, 3)] == [5, 3, 0]
    assert [journal.find("acme", "ab"), journal.find("acme", "zz"), journal.find("globex", "ab")] == [
        ("s", 3),
        None,
        None,
    ]


def test_a_log_that_was_never_written_is_empty(journal: Journal) -> None:
    journal.append(KEY, 0, [])
    assert (journal.length(KEY), journal.generation(KEY), journal.checkpoint(KEY), journal.read(KEY, 0)) == (
        0,
        0,
        0,
        [],
    )
    assert (journal.drained(KEY), journal.manifests(KEY)) == (DrainMark(), [])
    assert (journal.sessions("acme"), journal.tenants(), journal.forgotten("acme")) == ([], [], [])


def test_logs_of_other_sessions_and_tenants_are_apart(journal: Journal) -> None:
    for key in (OTHER, FOREIGN, KEY):
        journal.append(key, 0, [message(1, f"{key}", id="one")])
    assert [journal.message(key, 1) for key in (KEY, OTHER, FOREIGN)] == [
        message(1, f"{key}", id="one") for key in (KEY, OTHER, FOREIGN)
    ]
    assert (journal.sessions("acme"), journal.sessions("globex"), journal.tenants()) == (
        ["s", "t"],
        ["s"],
        ["acme", "globex"],
    )


def test_two_journals_have_two_names(journal: Journal, tmp_path: Path) -> None:
    other = MemoryJournal()
    assert len({journal.id, other.id}) == 2
    assert journal.id == journal.id
    assert len(journal.id) == 32


# -- manifests ---------------------------------------------------------------------------------------------


def test_a_manifest_is_kept_once_and_in_order(journal: Journal) -> None:
    for address in ("b1", "a1", "c1"):
        journal.put_manifest(KEY, address, f"body of {address}")
    journal.put_manifest(KEY, "a1", "another body")
    journal.put_manifest(FOREIGN, "a1", "of somebody else")
    kept = [Manifest(address, f"body of {address}") for address in ("b1", "a1", "c1")]
    assert (journal.manifests(KEY), journal.manifests(KEY, limit=2), journal.manifests(OTHER)) == (kept, kept[:2], [])
    assert [journal.get_manifest(tenant, "a1") for tenant in ("acme", "globex", "x")] == [
        "body of a1",
        "of somebody else",
        None,
    ]


def test_a_prefix_matches_envelopes_and_compactions_at_most_three(journal: Journal) -> None:
    journal.append(KEY, 0, [compaction("abc1"), compaction("abd1")])
    for address in ("abc2", "abe1", "abe2", "b"):
        journal.put_manifest(KEY, address, "{}")
    assert set(journal.matching("acme", "abc")) == {"abc1", "abc2"}
    assert len(journal.matching("acme", "ab")) == 3
    assert (journal.matching("acme", "x"), journal.matching("globex", "ab")) == ([], [])


# -- replacing ---------------------------------------------------------------------------------------------


def test_a_rewritten_record_is_another_one_everywhere(journal: Journal) -> None:
    journal.append(KEY, 0, [message(1, "secret", id="one"), message(2, outputs=1), compaction("ab")])
    journal.append(OTHER, 0, [message(1)])
    erased = JournalRecord("erased", "{}", 1, mac="new")
    journal.rewrite(KEY, {0: erased, 2: JournalRecord("erased", "{}")})
    assert journal.read(KEY, 0) == [erased, message(2, outputs=1), JournalRecord("erased", "{}")]
    assert (journal.message(KEY, 1), journal.by_id(KEY, "one"), journal.find("acme", "ab")) == (erased, None, None)
    assert (journal.checkpoint(KEY), journal.by_output(KEY, 1)) == (0, message(2, outputs=1))
    assert (journal.generation(KEY), journal.generation(OTHER)) == (1, 0)


@pytest.mark.parametrize("position", [-1, 2, 9])
def test_only_what_stands_there_is_rewritten(journal: Journal, position: int) -> None:
    journal.append(KEY, 0, [note("a"), note("b")])
    with pytest.raises(StoreError, match="no record at position"):
        journal.rewrite(KEY, {0: note("x"), position: note("x")})
    assert (journal.read(KEY, 0), journal.generation(KEY)) == ([note("a"), note("b")], 0)


def test_a_truncated_log_goes_on_where_it_was_cut(journal: Journal) -> None:
    journal.append(KEY, 0, [message(1), message(2, id="two"), compaction("ab")])
    journal.truncate(KEY, 1)
    assert (journal.read(KEY, 0), journal.length(KEY), journal.generation(KEY)) == ([message(1)], 1, 1)
    assert (journal.by_id(KEY, "two"), journal.find("acme", "ab"), journal.checkpoint(KEY)) == (None, None, 0)
    with pytest.raises(Conflict):
        journal.append(KEY, 1, [message(2)])
    journal.append(KEY, 1, [message(2, id="two"), compaction("ab")], generation=1)
    assert (journal.length(KEY), journal.find("acme", "ab")) == (3, ("s", 2))
    journal.truncate(KEY, 0)
    assert (journal.sessions("acme"), journal.generation(KEY)) == ([], 2)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda journal: journal.truncate(KEY, 2), id="cut at its end"),
        pytest.param(lambda journal: journal.truncate(KEY, 9), id="cut behind it"),
        pytest.param(lambda journal: journal.rewrite(KEY, {}), id="rewrite nothing"),
        pytest.param(lambda journal: journal.drop_manifests(KEY), id="drop what is not there"),
        pytest.param(lambda journal: journal.scrub(), id="scrub"),
    ],
)
def test_what_replaces_nothing_leaves_the_generation(journal: Journal, change: Callable[[Journal], None]) -> None:
    journal.append(KEY, 0, [note("a"), note("b")])
    change(journal)
    journal.append(KEY, 2, [note("c")], generation=0)
    assert (journal.generation(KEY), journal.length(KEY)) == (0, 3)


def test_manifests_are_dropped_by_session(journal: Journal) -> None:
    for key in (KEY, OTHER, FOREIGN):
        journal.append(key, 0, [note("a")])
        journal.put_manifest(key, f"a{key.session}", "{}")
    journal.drop_manifests(KEY)
    assert [len(journal.manifests(key)) for key in (KEY, OTHER, FOREIGN)] == [0, 1, 1]
    assert (journal.get_manifest("acme", "as"), journal.generation(KEY), journal.length(KEY)) == (None, 1, 1)
    journal.put_manifest(KEY, "as", "anew")
    assert journal.manifests(KEY) == [Manifest("as", "anew")]


def test_a_manifest_built_on_records_that_were_replaced_since_is_refused(journal: Journal) -> None:
    with pytest.raises(Conflict):
        journal.put_manifest(KEY, "aa", "{}", generation=1)
    journal.append(KEY, 0, [note("a"), note("b")])
    journal.put_manifest(KEY, "aa", "{}", generation=0)
    journal.put_manifest(KEY, "aa", "again", generation=0)
    journal.truncate(KEY, 0)
    with pytest.raises(Conflict):
        journal.put_manifest(KEY, "bb", "{}", generation=0)
    journal.put_manifest(KEY, "cc", "{}", generation=1)
    assert [manifest.address for manifest in journal.manifests(KEY)] == ["aa", "cc"]
    assert (journal.generation(KEY), journal.length(KEY)) == (1, 0)


def test_manifests_are_replaced_at_once_and_none_in_an_empty_log(journal: Journal) -> None:
    changed = [Manifest("aa", "changed"), Manifest("cc", "{}")]
    journal.append(KEY, 0, [note("a")])
    journal.put_manifest(KEY, "aa", "{}")
    journal.put_manifest(KEY, "bb", "{}")
    journal.drop_manifests(KEY, changed)
    assert (journal.manifests(KEY), journal.generation(KEY)) == (changed, 1)
    journal.truncate(KEY, 0)
    journal.drop_manifests(KEY, changed)
    assert journal.manifests(KEY) == []


# -- beside the logs ---------------------------------------------------------------------------------------


def test_drained_goes_forward_only(journal: Journal) -> None:
    journal.append(KEY, 0, [note(str(n)) for n in range(9)])
    for given in (DrainMark(4, 2, 7), DrainMark(9, 1, 8), DrainMark(5, 2, 9)):
        journal.set_drained(KEY, given)
    assert journal.drained(KEY) == DrainMark(5, 2, 9)
    journal.truncate(KEY, 3)
    assert journal.drained(KEY) == DrainMark(3, 2, 9)
    assert journal.drained(OTHER) == DrainMark()


def test_what_was_seen_grows_only(journal: Journal) -> None:
    for number in (3, 9, 4):
        journal.see("profiles/x", number)
    assert (journal.seen("profiles/x"), journal.seen("profiles/y")) == (9, 0)


def test_a_subject_is_forgotten_once(journal: Journal) -> None:
    whole = ForgottenSubject("s", None, "ann", "2026-11-01", "asked")
    one = ForgottenSubject("s", "", "ann", "2026-11-01", "asked")
    other = ForgottenSubject("t", "bob", "ann", "2026-11-02", "asked")
    for forgotten in (whole, one, other, whole._replace(when="later"), one):
        journal.forget("acme", forgotten)
    assert journal.forgotten("acme") == [whole, one, other]
    assert (journal.forgotten("acme", "s"), journal.forgotten("acme", "x")) == ([whole, one], [])
    assert journal.forgotten("globex") == []


@pytest.mark.parametrize("kind", ["memory", "file", "postgres"])
def test_nothing_waits_where_nothing_is_drained(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    serve(request, kind)
    journal = JOURNALS[kind](tmp_path)
    journal.append(KEY, 0, [note("a")])
    journal.put_manifest(KEY, "ab", "{}")
    assert (journal.waiting(), journal.waiting_bytes(), journal.manifests(KEY, waiting=True)) == ([], 0, [])
    journal.close()


def test_what_waits_is_named_with_its_size_and_in_order(draining: Journal) -> None:
    journal = draining
    assert (journal.waiting(), journal.waiting_bytes()) == ([], 0)
    journal.append(OTHER, 0, [message(1, "€")])
    journal.append(KEY, 0, [note("a"), note("b")])
    journal.put_manifest(KEY, "ab", "12345")
    records_bytes = sum(len((r.body + (r.wire or "")).encode()) for r in (message(1, "€"), note("a"), note("b")))
    assert journal.waiting() == [WaitingLog(OTHER, DrainMark(), 1, 0), WaitingLog(KEY, DrainMark(), 2, 1)]
    assert journal.waiting(limit=1) == [WaitingLog(OTHER, DrainMark(), 1, 0)]
    assert journal.waiting_bytes() == records_bytes + 5
    journal.set_drained(OTHER, DrainMark(1, 1, 1))
    journal.set_drained(KEY, DrainMark(1, 1, 1))
    assert journal.waiting() == [WaitingLog(KEY, DrainMark(1, 1, 1), 2, 1)]
    assert journal.waiting_bytes() == len(note("b").body) + 5
    assert journal.manifests(KEY, waiting=True) == [Manifest("ab", "12345")]
    journal.set_drained(KEY, DrainMark(2, 2, 1), ["ab", "unknown"])
    assert (journal.waiting(), journal.waiting_bytes(), journal.manifests(KEY, waiting=True)) == ([], 0, [])
    assert journal.manifests(KEY) == [Manifest("ab", "12345")]


def test_a_log_that_was_partly_drained_waits_behind_the_others(draining: Journal) -> None:
    """One that grows without end must not keep the others from their turn."""
    for key in (KEY, OTHER):
        draining.append(key, 0, [note("a"), note("b")])
    draining.set_drained(KEY, DrainMark(1, 1, 1))
    draining.append(OTHER, 2, [note("c")])
    assert [waiting.key for waiting in draining.waiting()] == [OTHER, KEY]


def test_records_fetched_from_the_object_store_do_not_wait(draining: Journal) -> None:
    draining.set_drained(KEY, DrainMark(3, 5, 2))
    draining.append(KEY, 0, [note("a"), note("b")])
    assert (draining.waiting(), draining.waiting_bytes()) == ([], 0)
    draining.append(KEY, 2, [note("c"), note("d")])
    assert draining.waiting() == [WaitingLog(KEY, DrainMark(3, 5, 2), 4, 0)]
    assert draining.waiting_bytes() == len(note("d").body)


# -- drafts ------------------------------------------------------------------------------------------------


def test_a_draft_reads_through_and_keeps_its_writes(journal: Journal) -> None:
    journal.append(KEY, 0, [message(1, id="one"), compaction("ab"), message(2)])
    draft = DraftJournal(journal, KEY, 3)
    journal.append(KEY, 3, [message(3, "of the base", id="later")])
    draft.append(KEY, 3, [message(3, "of the draft"), compaction("cd")])
    assert draft.read(KEY, 0) == [
        message(1, id="one"),
        compaction("ab"),
        message(2),
        message(3, "of the draft"),
        compaction("cd"),
    ]
    assert (draft.length(KEY), draft.message(KEY, 3), draft.by_id(KEY, "later")) == (
        5,
        message(3, "of the draft"),
        None,
    )
    assert (draft.position(KEY, 3), draft.message(KEY, 1)) == (3, message(1, id="one"))
    assert journal.read(KEY, 3) == [message(3, "of the base", id="later")]


def test_nothing_that_a_draft_is_told_reaches_its_base(journal: Journal) -> None:
    journal.append(KEY, 0, [note("a")])
    draft = DraftJournal(journal, KEY, 1)
    forgotten = ForgottenSubject("s", None, "ann", "now", "asked")
    draft.put_manifest(KEY, "ab", "{}")
    draft.see("x", 4)
    draft.forget("acme", forgotten)
    draft.scrub()
    draft.close()
    calls: list[Callable[[], None]] = [
        lambda: draft.truncate(KEY, 0),
        lambda: draft.rewrite(KEY, {}),
        lambda: draft.drop_manifests(KEY),
        lambda: draft.set_drained(KEY, DrainMark(1, 1, 1)),
    ]
    for call in calls:
        with pytest.raises(StoreError, match=r"draft|nothing is drained"):
            call()
    assert (draft.seen("x"), draft.forgotten("acme"), draft.id) == (4, [forgotten], journal.id)
    assert (journal.seen("x"), journal.forgotten("acme"), journal.manifests(KEY)) == (0, [], [])
    assert (journal.drained(KEY), journal.length(KEY)) == (DrainMark(), 1)


def test_a_draft_of_a_rewritten_log_takes_nothing_more(journal: Journal) -> None:
    journal.append(KEY, 0, [note("a"), note("b")])
    draft = DraftJournal(journal, KEY, 2)
    draft.append(KEY, 2, [note("c")])
    journal.rewrite(KEY, {0: note("x")})
    with pytest.raises(Conflict):
        draft.append(KEY, 3, [note("d")], generation=0)
