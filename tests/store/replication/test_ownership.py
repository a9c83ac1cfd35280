"""Sessions that move from machine to machine: one order everywhere, nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, rebuild
from ctxsteward.envelope.history.session import Session
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.testing import FirstLine
from ctxsteward.evals.suites.kit.faulty_objects import PASS, Crashed, StoreFault
from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import Adoption, DrainMark, SessionKey

from .machines import TENANT, World, drain, said, user

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

    def adopt(self, key: SessionKey, adoption: Adoption) -> None:
        act, self.before_adopting = self.before_adopting, None
        if act is not None:
            act()
        super().adopt(key, adoption)


def test_a_fork_made_while_its_turns_move_goes_with_them(world: World) -> None:
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
    drain(a)
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
    assert again.session == fork
    assert again.render("openai-chat") == sent.render("openai-chat")
    assert fresh.compaction(sent.reports[0].id).report.losses == sent.reports[0].losses
    assert fresh.manifest(sent.address)["session"] == fork
    late = fresh.at(TENANT, child.id)
    assert late.parent() is not None
    assert late.parent().id == fork
    assert texts(late)[-2:] == ["turn 6: the total is 42 and it stays so", "a fork of the turns"]
    reopened = world.machine("a").session(fork)
    assert builder().build(reopened).render("openai-chat") == sent.render("openai-chat")


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
