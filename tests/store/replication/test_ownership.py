"""Sessions that move from machine to machine: one order everywhere, nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, rebuild, verify_seal
from ctxsteward.envelope.history.session import Session
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.testing import FirstLine
from ctxsteward.evals.suites.kit.faulty_objects import PASS, Crashed, Method, StoreFault
from ctxsteward.schemas import Erased, StoreError, StoreUnavailable
from ctxsteward.schemas.errors import Damaged, ObjectMissing
from ctxsteward.store.crypto.keyring import MasterKeys, subject_of
from ctxsteward.store.crypto.vault import derived_subject
from ctxsteward.store.erasure.forget import apply_tombstones, forget
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import Adoption, DrainMark, JournalRecord, SessionKey
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.replication.report_objects import read_report
from ctxsteward.store.replication.segment_log import SessionLog

from .machines import KEYS, TENANT, World, drain, said, user

S = SessionKey(TENANT, "s")


def texts(session: Session) -> list[str]:
    return [entry.message.text for entry in session.entries()]


def builder() -> EnvelopeBuilder:
    return EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=120), summarizer=FirstLine())


def kinds(session: Session) -> list[str]:
    return [finding.kind for finding in session.findings]


def test_a_session_goes_from_a_to_b_and_back_in_one_order(world: World) -> None:
    for number, name in enumerate("abaab"):
        session = world.machine(name).session("s")
        assert kinds(session) == []
        session.append(user(f"{number} at {name}"))
        drain(world.machine(name))
    assert texts(world.fresh().at(TENANT, "s")) == ["0 at a", "1 at b", "2 at a", "3 at a", "4 at b"]
    world.check({f"{number} at {name}": "s" for number, name in enumerate("abaab")})
    assert world.journals["b"].drained(S).epoch == 4


def test_the_owner_opens_again_without_a_takeover(world: World) -> None:
    for _ in range(3):
        world.machine("a").session("s").append(user("hello"))
        drain(world.machine("a"))
    assert world.journals["a"].drained(S) == DrainMark(5, 3, 1)


def test_turns_of_a_machine_that_was_cut_off_end_in_a_fork_that_a_finding_names(world: World) -> None:
    a = world.machine("a")
    session = a.session("s")
    session.append(user("shared"))
    drain(a)
    world.cut("a")
    session.append(user("alone at a"))
    b = world.machine("b").session("s")
    b.append(user("at b"))
    drain(world.machine("b"))
    world.cut("a", up=True)
    drain(a)
    assert a.journal.sessions(TENANT) == ["s", "s-fork-e1-3"]
    assert world.journals["a"].drained(S).epoch == -2, "the session is b's"
    again = a.session("s")
    assert kinds(again) == ["fenced"]
    assert "'s-fork-e1-3'" in again.findings[0].text
    assert texts(again) == ["shared", "at b"]
    assert texts(a.session("s-fork-e1-3")) == ["shared", "alone at a"]
    world.check({"shared": "s", "alone at a": "s", "at b": "s"})


def test_a_live_session_goes_on_behind_what_the_other_machine_wrote(world: World) -> None:
    a = world.machine("a")
    live = a.session("s")
    live.append(user("one"))
    drain(a)
    other = world.machine("b").session("s")
    other.append(user("two"))
    drain(world.machine("b"))
    live.append(user("late"))
    drain(a)
    live.append(user("later"))
    assert texts(live) == ["one", "two", "later"], "it has read the log again"
    drain(a)
    live.refresh()
    assert texts(live) == ["one", "two"]
    world.check({"one": "s", "two": "s", "late": "s", "later": "s"})


def test_turns_written_to_a_session_that_is_another_machines_gather_into_one_fork(world: World) -> None:
    a = world.machine("a")
    live = a.session("s")
    drain(a)
    world.machine("b").session("s").append(user("at b"))
    drain(world.machine("b"))
    live.append(user("late"))
    drain(a)
    for number in range(50):
        live.append(user(f"later {number}"))
        drain(a, hurry=False)
        world.clock.seconds += 0.5
    drain(a, hurry=False)
    world.clock.seconds += 10
    drain(a, hurry=False)
    drain(a, hurry=False)
    assert a.journal.sessions(TENANT) == ["s", "s-fork-e1-2", "s-fork-e2-3-aaaaaaaa"]
    assert a.journal.waiting() == []
    world.check(dict.fromkeys(("at b", "late", *(f"later {number}" for number in range(50))), "s"))


def test_a_session_that_two_machines_created_while_the_store_was_dead_is_the_first_ones(world: World) -> None:
    for name in "ab":
        world.machine(name)
        world.cut(name)
        session = world.machine(name).session("s")
        assert kinds(session) == ["ownership_unchecked"]
        session.append(user(f"at {name}"))
    world.cut("b", up=True)
    drain(world.machine("b"))
    world.cut("a", up=True)
    drain(world.machine("a"))
    assert world.journals["a"].sessions(TENANT) == ["s", "s-fork-e0-0-aaaaaaaa"]
    fork = world.machine("a").session("s-fork-e0-0-aaaaaaaa")
    assert texts(fork) == ["at a"]
    assert fork.parent() is None
    world.check({"at a": "s", "at b": "s"})


def test_a_session_opened_while_the_store_was_dead_is_claimed_where_nobody_has_written_since(world: World) -> None:
    for name in "ab":
        world.machine(name).session("s").append(user(f"at {name}"))
        drain(world.machine(name))
    world.cut("a")
    world.machine("a").session("s").append(user("again at a"))
    world.cut("a", up=True)
    drain(world.machine("a"))
    assert world.journals["a"].sessions(TENANT) == ["s", "s-fork-e1-3"], "b has written behind what a knew"
    world.machine("a").session("s")
    world.cut("b")
    world.machine("b").session("s").append(user("again at b"))
    world.cut("b", up=True)
    drain(world.machine("b"))
    assert world.journals["b"].drained(S).epoch == -3, "a has taken it over before"
    world.check(dict.fromkeys(("at a", "at b", "again at a", "again at b"), "s"))


def test_turns_of_a_session_that_was_opened_again_before_it_drained_end_in_a_fork(world: World) -> None:
    a = world.machine("a")
    a.session("s").append(user("shared"))
    drain(a)
    world.cut("a")
    a.session("s").append(user("alone at a"))
    world.machine("b").session("s").append(user("at b"))
    drain(world.machine("b"))
    world.cut("a", up=True)
    again = world.machine("a").session("s")
    assert texts(again) == ["shared", "at b"]
    again.append(user("again at a"))
    assert a.journal.sessions(TENANT) == ["s", "s-fork-e1-3"]
    assert texts(a.at(TENANT, "s-fork-e1-3")) == ["shared", "alone at a"]
    world.check({"shared": "s", "alone at a": "s", "at b": "s", "again at a": "s"})


def test_turns_of_a_machine_that_lost_the_session_end_in_a_fork_though_nothing_was_written_since(world: World) -> None:
    a = world.machine("a")
    session = a.session("s")
    session.append(user("shared"))
    drain(a)
    world.machine("b").session("s")
    session.append(user("late"))
    drain(a)
    assert a.journal.sessions(TENANT) == ["s", "s-fork-e1-3"]
    assert a.journal.drained(S).epoch == -2
    world.check({"shared": "s", "late": "s"})


def test_turns_of_an_unchecked_session_stay_in_it_when_it_is_read_before_it_drains(world: World) -> None:
    a = world.machine("a")
    world.machine("b").session("s").append(user("at b"))
    drain(world.machine("b"))
    assert texts(a.at(TENANT, "s")) == ["at b"]
    world.cut("a")
    a.session("s").append(user("at a"))
    assert a.journal.drained(S).epoch == 0, "not claimed yet"
    builder().build(world.machine("c").at(TENANT, "s"))
    drain(world.machine("c"))
    world.cut("a", up=True)
    world.clock.seconds += 60
    reader = world.machine("a")
    reader.write_behind.all_readable(TENANT)  # type: ignore[union-attr]
    assert (reader.journal.drained(S).number, reader.journal.drained(S).epoch) == (2, 0), "c's manifest came in"
    assert reader.journal.sessions(TENANT) == ["s"]
    assert texts(reader.at(TENANT, "s")) == ["at b", "at a"]
    drain(reader)
    assert reader.journal.drained(S).epoch == 2
    world.check({"at b": "s", "at a": "s"})


@pytest.mark.parametrize("crash", [False, True], ids=["noted", "not noted"])
def test_turns_that_wait_stay_in_a_session_that_is_taken_back(world: World, crash: bool) -> None:
    a = world.machine("a")
    live = a.session("s")
    live.append(user("one"))
    drain(a)
    world.machine("b").session("s").append(user("at b"))
    drain(world.machine("b"))
    live.append(user("lost"))
    drain(a)
    live.append(user("late"))
    assert (a.journal.drained(S).epoch, a.journal.sessions(TENANT)) == (-2, ["s", "s-fork-e1-3"])
    if crash:
        world.networks["a"].plan = lambda method, key: StoreFault("crash_after") if method == "put" else PASS
        with pytest.raises(Crashed):
            world.machine("a").session("s")
        world.networks["a"].plan = lambda method, key: PASS
        assert a.journal.drained(S).epoch == -2
        assert texts(world.machine("a").at(TENANT, "s")) == ["one", "at b", "late"]
    else:
        world.machine("a").session("s")
    assert (a.journal.drained(S).epoch, a.journal.sessions(TENANT)) == (3, ["s", "s-fork-e1-3"])
    world.check({"one": "s", "at b": "s", "lost": "s", "late": "s"})
    assert texts(world.fresh().at(TENANT, "s")) == ["one", "at b", "late"]


class ForkedAtTheLastMoment(MemoryJournal):
    """A journal in which something happens just before records of another machine are put in."""

    before_adopting: Callable[[], object] | None = None
    dies = False
    """Whether the process dies once they are in."""

    def adopt(self, key: SessionKey, adoption: Adoption) -> None:
        act, self.before_adopting = self.before_adopting, None
        if act is not None:
            act()
        super().adopt(key, adoption)
        if act is not None and self.dies:
            raise Crashed("a")


@pytest.mark.parametrize("dies", [False, True])
def test_a_fork_made_while_its_turns_move_goes_with_them(world: World, dies: bool) -> None:
    journal = ForkedAtTheLastMoment(drains=True, draw_id=lambda: "a" * 8)
    world.journals["a"] = journal
    a = world.machine("a")
    live = a.session("s")
    live.append(user("shared"))
    drain(a)
    live.append(user("late"))
    world.machine("b").session("s").append(user("at b"))
    drain(world.machine("b"))
    journal.before_adopting = lambda: live.fork(id="child").append(user("in the child"))
    journal.dies = dies
    with pytest.raises(Crashed) if dies else nullcontext():
        drain(a)
    a = world.machine("a")
    assert journal.sessions(TENANT) == ["child", "s", "s-fork-e1-3"]
    assert texts(a.at(TENANT, "child")) == ["shared", "late", "in the child"]
    drain(a)
    fresh = world.fresh()
    assert texts(fresh.at(TENANT, "child")) == ["shared", "late", "in the child"]
    assert texts(fresh.at(TENANT, "s")) == ["shared", "at b"]


def test_what_was_forgotten_on_another_machine_goes_here_with_the_next_reading(world: World) -> None:
    a = world.machine("a")
    session = a.session("s")
    session.append(user("mine"))
    session.append(user("secret"), principal="ann")
    drain(a)
    b = world.machine("b")
    b.session("s").append(user("at b"))
    forget(b, tenant=TENANT, principal="ann", who="dpo", why="request 7", when="2026-11-22")
    drain(b)
    assert "secret" in str(a.journal.read(S, 0))
    world.machine("a").write_behind.readable(S)  # type: ignore[union-attr]
    assert "secret" not in str(a.journal.read(S, 0))
    assert a.journal.read(S, 0) == world.fresh().journal.read(S, 0)
    assert [note.principal for note in a.journal.forgotten(TENANT, "s")] == ["ann"]


def decrypted(world: World) -> str:
    """Everything in chains and reports that a key still opens."""
    fresh, texts = world.fresh(), []
    for session in fresh.journal.sessions(TENANT):
        log = SessionLog(fresh.objects, KEYS, fresh.vault(TENANT), SessionKey(TENANT, session))
        texts += [repr(part) for _, part in log.entries()]
    for info in fresh.objects.list("reports/"):
        with suppress(Erased, ObjectMissing):
            texts.append(str(read_report(fresh.objects, fresh.vault(TENANT), info.key.rpartition("/")[2])))
    return "".join(texts)


def talk(session: Session) -> None:
    for number in range(6):
        for name in ("ann", "bob"):
            session.append(user(f"{name.upper()}{number}00X is the ticket of which I speak"), principal=name)


REQUEST = {"who": "dpo", "why": "request 7", "when": "2026-11-22"}


def test_words_that_were_forgotten_elsewhere_are_not_drained_in_what_was_derived_from_them_before(world: World) -> None:
    a = world.machine("a")
    talk(a.session("s"))
    drain(a)
    world.cut("a")
    assert "ANN100X" in str(builder().build(a.session("s")).reports)
    forget(world.machine("b"), tenant=TENANT, principal="ann", **REQUEST)
    world.cut("a", up=True)
    world.clock.seconds += 60
    a.write_behind.readable(S)  # notes that she was forgotten
    a.session("s").append(user("later"))
    drain(a)
    world.settle()
    assert "BOB" in decrypted(world)
    assert "ANN" not in decrypted(world)


@pytest.mark.parametrize("is_fork", [False, True], ids=["session", "fork"])
def test_an_erasure_drains_nothing_derived_from_words_whose_erasure_was_cut_off_elsewhere(
    world: World, is_fork: bool
) -> None:
    """The other machine has destroyed keys and redacted nothing yet."""
    a, b = world.machine("a"), world.machine("b")
    talk(a.session("s"))
    session = a.session("s").fork(id="fork") if is_fork else a.session("s")
    assert "BOB100X" in str(builder().build(session).reports)
    drain(a)
    for subject in (subject_of("s", "bob"), subject_of(session.id, "bob"), derived_subject(session.id)):
        b.vault(TENANT).destroy_key(subject, **REQUEST)
    forget(a, tenant=TENANT, principal="ann", **REQUEST)
    world.settle()
    for name in "ab":
        apply_tombstones(world.machine(name), TENANT, thorough=True)
    world.settle()
    assert "ANN" not in decrypted(world)
    assert "BOB" not in decrypted(world)
    assert texts(world.fresh().at(TENANT, session.id)) == ["[erased]"] * 12


class ForgottenBehindTheReading(MemoryJournal):
    """A journal in which something happens once records that wait were read."""

    behind: Callable[[], object] | None = None

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]:
        records = super().read(key, start, stop)
        if self.behind is not None and any(record.kind == "compaction" for record in records):
            act, self.behind = self.behind, None
            act()
        return records


def test_what_is_forgotten_behind_the_reading_of_what_is_drained_is_not_drained(world: World) -> None:
    """By another process of the same host: it redacts the journal, and this one has read the records before."""
    journal = ForgottenBehindTheReading(drains=True, draw_id=lambda: "a" * 8)
    world.journals["a"] = journal
    a = world.machine("a")
    talk(a.session("s"))
    drain(a)
    assert "ANN100X" in str(builder().build(a.session("s")).reports)
    other = world.machine("a")
    journal.behind = lambda: forget(other, tenant=TENANT, principal="ann", **REQUEST)
    drain(a)
    world.settle()
    assert journal.behind is None
    assert "BOB" in decrypted(world)
    assert "ANN" not in decrypted(world)


@pytest.mark.parametrize("restarts", [False, True])
def test_hearing_of_an_erasure_that_was_cut_off_is_finished_by_the_drainer(
    world: World, restarts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = world.machine("a"), world.machine("b")
    talk(a.session("s"))
    a.session("s").fork(id="branch").append(user("from ann in the branch"), principal="ann")
    drain(a)
    folder, listed = a.vault(TENANT).subject_address("branch"), world.wires["b"].list
    with monkeypatch.context() as stale:
        stale.setattr(
            world.wires["b"],
            "list",
            lambda prefix, **more: (info for info in listed(prefix, **more) if folder not in info.key),
        )
        forget(b, tenant=TENANT, principal="ann", **REQUEST)
    delete, lost = world.wires["a"].delete, [a.vault(TENANT).subject_address(derived_subject("branch"))]

    def without_answer(key: str) -> None:
        delete(key)
        if lost and lost[0] in key:
            lost.clear()
            raise StoreUnavailable("no answer")

    monkeypatch.setattr(world.wires["a"], "delete", without_answer)
    with pytest.raises(StoreUnavailable):
        apply_tombstones(a, TENANT, thorough=True)
    assert lost == []
    if restarts:
        a = world.machine("a")
    world.clock.seconds += 60
    drain(a)
    fresh = world.fresh()
    assert {name: len(fresh.at(TENANT, name)) for name in fresh.journal.sessions(TENANT)} == {"s": 12, "branch": 13}


@pytest.mark.parametrize("speakers", ["ab", "b"])
@pytest.mark.parametrize("at", ["the link of a", "the first tombstone of b"])
def test_records_whose_key_an_erasure_destroys_while_they_are_drained_are_drained_again(
    world: World, at: str, speakers: str
) -> None:
    """Both machines have begun a session of this name, so the one that erases has not read what the other drains."""
    a, b = world.machine("a"), world.machine("b")
    for name in "ab":
        world.cut(name)
        session = world.machine(name).session("s")
        session.append(user(f"at {name}"))
        if name in speakers:
            session.append(user(f"ann at {name}"), principal="ann")
        world.cut(name, up=True)
    world.clock.seconds += 60
    meanwhile = [lambda: forget(b, tenant=TENANT, principal="ann", **REQUEST)]
    where, what = ("a", "/log/") if at == "the link of a" else ("b", "tombstones/")

    def plan(method: Method, key: str) -> StoreFault:
        if method == "put" and what in key and meanwhile:
            meanwhile.pop()()
        return PASS

    if where == "b":
        meanwhile = [lambda: drain(a)]
    world.networks[where].plan = plan
    drain(a) if where == "a" else forget(b, tenant=TENANT, principal="ann", **REQUEST)
    assert meanwhile == []
    world.networks[where].plan = lambda method, key: PASS
    if where == "b":
        apply_tombstones(a, TENANT)
    world.settle()
    fresh = world.fresh()
    stood = [texts(fresh.at(TENANT, name)) for name in fresh.journal.sessions(TENANT)]
    assert sorted(text for one in stood for text in one) == ["[erased]"] * len(speakers) + ["at a", "at b"]


@pytest.mark.parametrize("late", [False, True], ids=["before the erasure", "after the erasure"])
def test_a_segment_that_landed_without_an_answer_is_written_anew_after_an_erasure(world: World, late: bool) -> None:
    a = world.machine("a")
    a.session("s").append(user("from ann"), principal="ann")
    a.session("s").append(user("from bob"), principal="bob")
    world.networks["a"].plan = lambda method, key: (
        StoreFault("late" if late else "lost_reply", operations=500)
        if method == "put" and "/log/" in key
        else StoreFault("error_before")
        if "/log/" in key
        else PASS
    )
    drain(a)
    assert world.journals["a"].drained(S) == DrainMark()
    world.networks["a"].plan = lambda method, key: PASS
    forget(world.machine("a"), tenant=TENANT, principal="ann", who="dpo", why="request 7", when="2026-11-22")
    world.wires["a"].settle()
    assert [info.key for info in world.objects.list("sessions/")] != [], "the segment landed"
    world.settle()
    assert texts(world.fresh().at(TENANT, "s")) == ["[erased]", "from bob"]


def test_turns_that_were_forgotten_before_they_move_can_be_read_in_the_fork(world: World) -> None:
    a = world.machine("a")
    a.session("s").append(user("shared"))
    drain(a)
    world.cut("a")
    a.session("s").append(user("from ann"), principal="ann")
    world.machine("b").session("s").append(user("at b"))
    drain(world.machine("b"))
    world.cut("a", up=True)
    world.clock.seconds += 60
    forget(a, tenant=TENANT, principal="ann", who="dpo", why="request 7", when="2026-11-22")
    world.settle()
    assert texts(world.fresh().at(TENANT, "s-fork-e1-3")) == ["shared", "[erased]"]


def test_a_session_is_forgotten_with_the_turns_that_have_moved_out_of_it_from_the_first_one_on(world: World) -> None:
    for name in "ab":
        world.machine(name)
        world.cut(name)
        world.machine(name).session("s").append(user(f"at {name}"))
    for name in "ab":
        world.cut(name, up=True)
        world.clock.seconds += 60
        drain(world.machine(name))
    world.settle()
    assert world.journals["b"].sessions(TENANT) == ["s", "s-fork-e0-0-bbbbbbbb"]
    forget(world.machine("a"), tenant=TENANT, session="s", who="dpo", why="request 7", when="2026-11-22")
    assert world.journals["a"].sessions(TENANT) == []
    assert said(world.fresh()) == {}


def test_a_fork_of_what_others_drained_keeps_its_parent_when_turns_of_the_same_place_move(world: World) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.session("s").append(user("shared"))
    drain(a)
    world.cut("a")
    a.session("s").append(user("alone at a"))
    session = b.session("s")
    session.append(user("at b"))
    session.fork(id="branch").append(user("in the branch"))
    drain(b)
    world.cut("a", up=True)
    world.clock.seconds += 60
    assert texts(a.at(TENANT, "branch")) == ["shared", "at b", "in the branch"]
    world.check({"shared": "s", "alone at a": "s", "at b": "s", "in the branch": "branch"})
    assert texts(a.at(TENANT, "branch")) == ["shared", "at b", "in the branch"]


@pytest.mark.parametrize("opening", [lambda b: b.session("branch"), lambda b: b.at(TENANT, "branch")])
def test_a_fork_without_its_parents_records_waits_for_a_store_that_does_not_answer(
    world: World, opening: Callable[[Store], Session]
) -> None:
    a = world.machine("a")
    session = a.session("s")
    session.append(user("shared"))
    session.fork(id="branch").append(user("in the branch"))
    drain(a)
    b = world.machine("b")
    b.write_behind.ownership.catch_up(SessionKey(TENANT, "branch"), claim="never")
    assert b.journal.length(S) == 0, "its parent was not read in before the cut"
    world.cut("b")
    with pytest.raises(StoreUnavailable, match="'branch' is a fork of 's', whose records are not on this machine"):
        opening(b)
    world.cut("b", up=True)
    world.clock.seconds += 60
    assert texts(opening(b)) == ["shared", "in the branch"]


def test_an_open_session_waits_for_the_parent_of_another_machine_s_fork_of_its_name(world: World) -> None:
    a, b = world.machine("a"), world.machine("b")
    world.cut("b")
    live = b.session("branch")
    live.append(user("at b"))
    a.session("s").append(user("shared"))
    a.session("s").fork(id="branch").append(user("in the branch"))
    drain(a)
    world.cut("b", up=True)
    world.clock.seconds += 60
    drain(b)
    world.cut("b")
    with pytest.raises(StoreUnavailable, match="session 's' is not on this machine"):
        live.append(user("later at b"))
    world.cut("b", up=True)
    world.clock.seconds += 60
    live.append(user("later at b"))
    assert texts(live) == ["shared", "in the branch", "later at b"]


@pytest.mark.parametrize("opening", [lambda b: b.session("branch"), lambda b: b.at(TENANT, "branch")])
def test_a_fork_does_not_take_turns_that_wait_here_for_those_that_it_shares(
    world: World, opening: Callable[[Store], Session]
) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.session("s").append(user("shared"))
    drain(a)
    b.at(TENANT, "s")
    world.cut("b")
    b.session("s").note("plan", "written here alone")
    session = a.session("s")
    session.append(user("at a"))
    session.fork(id="branch")
    drain(a)
    world.cut("b", up=True)
    world.clock.seconds += 60
    b.write_behind.ownership.catch_up(SessionKey(TENANT, "branch"), claim="never")
    world.cut("b")
    with pytest.raises(StoreUnavailable, match="'branch' is a fork of 's', whose records are not on this machine"):
        opening(b).append(user("in the branch"))
    world.cut("b", up=True)
    world.clock.seconds += 60
    assert texts(opening(b)) == ["shared", "at a"]
    assert world.machine("b").session("branch").append(user("in the branch")).ordinal == 3
    world.check({"shared": "s", "at a": "s", "in the branch": "branch"})


def test_compactions_manifests_and_forks_move_with_the_turns(world: World) -> None:
    a = world.machine("a")
    session = a.session("s")
    for number in range(8):
        session.append(user(f"shared {number}: we take plan {number} and keep to it for now"))
    drain(a)
    world.cut("a")
    session = a.session("s", system="The total is never to be rounded.")
    for number in range(12):
        session.append(user(f"turn {number}: the total is {number * 7} and it stays so"), principal="ann")
    sent = builder().build(session)
    assert sent.reports
    child = session.fork(at=15)
    child.append(user("a fork of the turns"))
    b = world.machine("b").session("s")
    b.append(user("at b"))
    drain(world.machine("b"))
    world.check({})
    fresh = world.fresh()
    fork = "s-fork-e1-10"
    again = rebuild(fresh, sent.address)
    assert "never to be rounded" in str(again.render("openai-chat"))
    assert again.render("openai-chat") == sent.render("openai-chat")
    assert again.document() | {"reports": []} == sent.document() | {"reports": []}
    assert verify_seal(KEYS, sent.seal, again)
    assert fresh.compaction(sent.reports[0].id).report.losses == sent.reports[0].losses
    assert fresh.manifest(sent.address)["session"] == fork
    late = fresh.at(TENANT, child.id)
    assert late.parent() is not None
    assert late.parent().id == fork
    assert texts(late)[-2:] == ["turn 6: the total is 42 and it stays so", "a fork of the turns"]
    reopened = world.machine("a").session(fork)
    assert builder().build(reopened).render("openai-chat") == sent.render("openai-chat")


def test_a_compaction_that_two_machines_made_alike_is_no_damage_in_the_fork(world: World) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.session("s").append(user("shared"))
    drain(a)
    b.session("s")
    reports = []
    for name in "ab":
        world.cut(name)
        session = world.machine(name).session("s")
        for n in range(12):
            session.append(user(f"TICKET{n}00X is what we speak of"), id=f"m{n}")
        reports += builder().build(session).reports
    assert reports[0].id == reports[1].id
    for name in "ab":
        world.cut(name, up=True)
    world.clock.seconds += 60
    world.settle()
    fresh = world.fresh()
    sessions = fresh.journal.sessions(TENANT)
    assert len(sessions) == 2
    for store in (fresh, world.machine("a"), world.machine("b")):
        assert fsck(store, tenant=TENANT, read_data=True).damage == ()
        assert [len(store.at(TENANT, name).reports()) for name in sessions] == [1, 1]


def test_a_commit_that_the_machine_did_not_live_to_note_is_found_again(world: World) -> None:
    world.machine("a").session("s").append(user("one"))
    for text in ("two", "three"):
        world.networks["a"].plan = lambda method, key: StoreFault("crash_after" if "/log/" in key else "pass")
        with pytest.raises(Crashed):
            drain(world.machine("a"))
        world.networks["a"].plan = lambda method, key: PASS
        world.machine("a").session("s").append(user(text))
    drain(world.machine("a"))
    assert world.journals["a"].sessions(TENANT) == ["s"], "nothing was taken for somebody else's"
    world.check({"one": "s", "two": "s", "three": "s"})


def test_a_fork_is_drained_behind_what_it_shares_with_its_parent(world: World) -> None:
    a = world.machine("a")
    session = a.session("s")
    session.append(user("shared"))
    drain(a)
    session.append(user("undrained"))
    child = session.fork()
    a.journal.set_drained(S, a.journal.drained(S))  # now the fork waits longer
    assert [waiting.key.session for waiting in a.journal.waiting()] == [child.id, "s"]
    puts: list[str] = []
    world.networks["a"].plan = lambda method, key: (puts.append(key) if method == "put" else None) or PASS
    drain(a)
    folders = [key.split("/")[2] for key in puts if "/log/" in key]
    vault = a.vault()
    assert folders == [vault.subject_address("s"), vault.subject_address(child.id)]


def test_reading_on_another_machine_takes_nothing_over(world: World) -> None:
    a = world.machine("a")
    session = a.session("s", system="Be kind.")
    session.append(user("hello"))
    sent = builder().build(session)
    fork = session.fork()
    fork.append(user("in the fork"))
    drain(a)
    links = sum("/log/" in info.key for info in world.objects.list(""))
    b = world.machine("b")
    assert b.sessions() == sorted(["s", fork.id])
    assert b.exists("s")
    assert not b.exists("t")
    assert texts(b.at(TENANT, fork.id)) == ["hello", "in the fork"]
    c = world.machine("c")
    assert c.address(sent.address[:10]) == sent.address
    assert rebuild(c, sent.address).document() == sent.document()
    assert c.manifest(sent.address, session="s")["session"] == "s"
    assert b.journal.drained(S).epoch == -1
    drain(b), drain(c)
    assert sum("/log/" in info.key for info in world.objects.list("")) == links
    session.append(user("still a's"))
    drain(a)
    assert a.journal.sessions(TENANT) == sorted(["s", fork.id])


def test_a_manifest_built_by_who_does_not_own_the_session_is_kept_and_fences_nobody(world: World) -> None:
    a, b = world.machine("a"), world.machine("b")
    owner = a.session("s")
    owner.append(user("hello"))
    drain(a)
    reader = b.at(TENANT, "s")
    sent = builder().build(reader)
    drain(b)
    owner.append(user("more"))
    drain(a)
    assert world.fresh().manifest(sent.address)["position"] == 3
    assert a.journal.sessions(TENANT) == ["s"]
    assert texts(world.fresh().at(TENANT, "s")) == ["hello", "more"]


def test_an_older_copy_of_the_journal_that_goes_on_is_one_more_writer(world: World) -> None:
    a = world.machine("a")
    a.session("s").append(user("one"))
    drain(a)
    copy = MemoryJournal(drains=True, draw_id=lambda: a.journal.id)
    records = a.journal.read(S, 0)
    copy.adopt(S, Adoption(0, records, 0, a.journal.drained(S)))
    a.session("s").append(user("two"))
    drain(a)
    world.journals["a"] = copy
    restored = world.machine("a")
    session = restored.session("s")
    assert texts(session) == ["one", "two"]
    session.append(user("three"))
    drain(restored)
    world.check({"one": "s", "two": "s", "three": "s"})


def test_other_keys_are_refused_in_plain_words(world: World) -> None:
    a = world.machine("a")
    a.session("s").append(user("hello"))
    drain(a)
    other = Store(
        MemoryJournal(drains=True),
        world.objects,
        MasterKeys(b"o" * 32),
        uri="memory:",
        write_behind=True,
        behind={"background": False},
    )
    for ask in (lambda: other.session("t"), lambda: other.at(TENANT, "s"), lambda: other.exists("s")):
        with pytest.raises(StoreError, match=r"written with other keys .* bring the key folder, or the master key"):
            ask()


def test_a_tail_that_is_gone_is_damage_and_not_a_new_session(world: World) -> None:
    a = world.machine("a")
    a.session("s").append(user("one"))
    drain(a)
    (link,) = [info.key for info in world.objects.list("sessions/")]
    world.objects.delete(link)
    with pytest.raises(Damaged, match="missing though it was committed"):
        a.session("s")


def test_a_record_that_is_damaged_here_is_read_from_the_object_store(world: World) -> None:
    a = world.machine("a")
    a.session("s").extend(user(f"number {number}") for number in range(5))
    drain(a)
    damaged = a.journal.read(S, 4, 5)[0]
    a.journal.rewrite(S, {4: damaged._replace(wire='{"role":"user","content":"forged"}')})
    session = world.machine("a").session("s")
    assert session.resolve("3").text == "number 2"
    world.cut("a")
    assert world.machine("a").session("s").findings


def test_texts_of_the_chain_are_only_ciphertext(world: World) -> None:
    a = world.machine("a")
    session = a.session("meeting with Ann", system="Never say Rosebud")
    session.append(user("my number is 555 1234"), principal="Ann Smith")
    session.note("plan", "call Bob")
    drain(a)
    stored = b"".join(world.objects.get(info.key) for info in world.objects.list(""))
    assert not [word for word in (b"with Ann", b"Ann Smith", b"555 1234", b"call Bob", b"Rosebud") if word in stored]
    assert said(world.fresh()) == {"my number is 555 1234": ["meeting with Ann"]}
