"""Forgetting a session or a principal: what goes, what stays, what is said, in every kind of store."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Store, open_store, rebuild
from ctxsteward.envelope.history.state import State
from ctxsteward.envelope.recall.model_tools import resolve_reference
from ctxsteward.envelope.testing import FirstLine
from ctxsteward.schemas import ContextError, Erased, InputError, StoreError
from ctxsteward.store.crypto.keyring import subject_of
from ctxsteward.store.crypto.vault import derived_subject
from ctxsteward.store.erasure.forget import Deletion, Erasure, apply_tombstones, forget
from ctxsteward.store.erasure.steps import Lineage
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.replication.segment_log import SessionLog

from ..doubles import copied_store
from ..profiles.agreed import agreed
from .scenes import (
    ANN,
    BOB,
    CHARS,
    NOTE,
    OWN,
    STORES,
    TOLD,
    builder,
    contents_of,
    fill,
    forms_of,
    hits,
    say,
    two_machines,
)

Placed = tuple[Store, Path | None]
TURNS = 4


@pytest.fixture(scope="module", params=STORES)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Store, Path]:
    """The kind of a store, the store itself, full and closed, and its folder."""
    folder = tmp_path_factory.mktemp("filled")
    with STORES[request.param](folder) as (store, _):
        fill(store, turns=TURNS)
        assert store.flush(30)
    return request.param, store, folder


@pytest.fixture
def placed(filled: tuple[str, Store, Path], tmp_path: Path) -> Iterator[Placed]:
    """A copy of it."""
    kind, full, folder = filled
    if kind == "memory":
        yield copied_store(full), None
    else:
        shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
        with STORES[kind](tmp_path) as opened:
            yield opened


def rows(store: Store, session: str, tenant: str = "acme") -> str:
    return json.dumps(store.journal.read(SessionKey(tenant, session), 0), ensure_ascii=False)


def scan(store: Store, root: Path | None, words: tuple[str, ...]) -> dict[str, list[str]]:
    """Words found in files and objects, and in the rows of tenant acme where nothing is in a file."""
    contents = contents_of(store, root)
    for session in store.journal.sessions("acme"):
        contents[f"rows of {session}"] = rows(store, session).encode()
        for manifest in store.journal.manifests(SessionKey("acme", session)):
            contents[manifest.address] = manifest.body.encode()
    return hits(contents, words)


# -- a session --------------------------------------------------------------------------------------------------------


def test_a_forgotten_session_and_its_forks_are_gone_to_the_last_byte(placed: Placed) -> None:
    store, root = placed
    forget(store, tenant="other", session="s-1", **TOLD)
    for other in ("s-2", "s-3"):
        forget(store, tenant="acme", session=other, **TOLD)
    assert set(scan(store, root, (*ANN, *BOB, *OWN, *NOTE))) == {*ANN, *BOB, *OWN, *NOTE}  # s-1 of acme has them all
    done = forget(store, tenant="acme", session="s-1", **TOLD)
    assert done.sessions == ("s-1", "s-1-child", "s-1-grandchild")
    assert done.forks == ("s-1-child", "s-1-grandchild")
    assert scan(store, root, (*ANN, *BOB, *OWN, *NOTE)) == {}
    assert done.messages == 3 * 5 * TURNS + 10
    assert done.derived > 10
    assert done.manifests == 3 * TURNS + 1


def test_a_forgotten_session_s_id_stays_burned_and_says_by_whom(placed: Placed) -> None:
    store, _ = placed
    session = store.session("s-1", tenant="acme", counter=CHARS)
    address = builder().build(session).address
    forget(store, tenant="acme", session="s-1", **TOLD)
    refused = (
        lambda: store.session("s-1", tenant="acme"),
        lambda: store.session("s-1-child", tenant="acme"),
        lambda: session.append({"role": "user", "content": "back"}),
        lambda: session.note("plan", "back"),
        lambda: session.extend([{"role": "user", "content": "back"}]),
        lambda: builder().build(session),
        lambda: store.at("acme", "s-1", 5),
    )
    for act in refused:
        with pytest.raises(Erased, match="was erased by dpo on 2026-11-22: request 7"):
            act()
    with pytest.raises(ContextError):
        rebuild(store, address, tenant="acme")
    assert store.journal.length(SessionKey("acme", "s-1")) == 0
    assert "s-1" not in store.sessions(tenant="acme")


def test_other_sessions_and_tenants_build_the_same_bytes_as_before(placed: Placed) -> None:
    store, _ = placed
    others = [("acme", "s-2"), ("acme", "s-3"), ("other", "s-1"), ("other", "s-1-child")]
    made = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=900), summarizer=FirstLine())
    before = [made.build(store.session(name, tenant=tenant, counter=CHARS)) for tenant, name in others]
    forget(store, tenant="acme", session="s-1", **TOLD)
    after = [made.build(store.session(name, tenant=tenant, counter=CHARS)) for tenant, name in others]
    assert [e.render("anthropic") for e in after] == [e.render("anthropic") for e in before]
    assert [rebuild(store, e.address, tenant=e.tenant).address for e in before] == [e.address for e in before]


# -- a principal ------------------------------------------------------------------------------------------------------


def test_a_forgotten_principal_s_words_are_gone_to_the_last_byte_and_nobody_else_s(placed: Placed) -> None:
    store, root = placed
    forget(store, tenant="other", session="s-1", **TOLD)
    assert set(scan(store, root, (*ANN, *NOTE))) == {*ANN, *NOTE}
    done = forget(store, tenant="acme", principal="ann", **TOLD)
    assert set(done.sessions) == {"s-1", "s-1-child", "s-1-grandchild", "s-2"}
    assert set(done.forks) == {"s-1-child", "s-1-grandchild"}
    assert store.flush(30)
    assert scan(store, root, (*ANN, *NOTE)) == {}
    for word in (*BOB, *OWN):
        assert word in rows(store, "s-1")
    assert done.messages == 2 * 5 * TURNS
    assert done.derived > 4


def test_everything_the_others_said_still_resolves_and_hers_say_who_erased_them(placed: Placed) -> None:
    store, _ = placed
    session = store.session("s-1-child", tenant="acme", counter=CHARS)
    whose = [session.entry(n).event.principal for n in range(1, len(session) + 1)]
    before = [session.entry(n).event.wire for n in range(1, len(session) + 1)]
    forget(store, tenant="acme", principal="ann", **TOLD)
    session = store.session("s-1-child", tenant="acme", counter=CHARS)
    for ordinal, (principal, wire) in enumerate(zip(whose, before, strict=True), 1):
        if principal == "ann":
            with pytest.raises(Erased, match="erased by dpo on 2026-11-22: request 7"):
                session.resolve(ordinal)
            assert "was erased by dpo" in resolve_reference(session, f"§{ordinal}")
            assert session.entry(ordinal).event.erased
        else:
            assert session.entry(ordinal).event.wire == wire
            assert session.resolve(ordinal).wire == json.loads(wire)
    with pytest.raises(Erased):
        session.tool_output(2)  # hers
    assert session.tool_output(3).text == "" != session.tool_output(3).tool_results[0].text


def test_sessions_with_a_forgotten_principal_go_on_without_her(placed: Placed) -> None:
    store, root = placed
    live = store.session("s-1", tenant="acme", counter=CHARS)
    made = builder()
    made.build(live)
    forget(store, tenant="acme", principal="ann", **TOLD)
    text = json.dumps(made.build(live).render("openai-chat"), ensure_ascii=False)
    assert not any(word in text for word in (*ANN, *NOTE))
    for turn in range(50, 60):  # through more compactions
        say(live, "bob", BOB, turn)
        text = json.dumps(made.build(live).render("anthropic"), ensure_ascii=False)
        assert not any(word in text for word in (*ANN, *NOTE))
    for name in ("s-1", "s-1-child", "s-1-grandchild", "s-2"):
        session = store.session(name, tenant="acme", counter=CHARS)
        with pytest.raises(Erased):
            session.append({"role": "user", "content": "back"}, principal="ann")
    with pytest.raises(Erased):
        live.append({"role": "user", "content": "back"}, principal="ann")
    store.session("s-3", tenant="acme").append({"role": "user", "content": "elsewhere"}, principal="ann")
    store.session("s-9", tenant="acme").append({"role": "user", "content": "anew"}, principal="ann")
    assert store.flush(30)
    assert scan(store, root, ()) == {}


def test_a_bullet_that_waits_for_room_is_forgotten_too(placed: Placed) -> None:
    store, root = placed
    session = store.session("s-6", tenant="acme", counter=CHARS)
    made = builder()
    for turn in range(8):
        say(session, "ann" if turn == 2 else "bob", ANN if turn == 2 else BOB, turn)
        made.build(session)
    long_story = {"role": "user", "content": "a long story, " * 200}
    session.append(long_story, principal="bob")
    made.build(session)
    assert any(word in bullet.text for bullet in session.state.reserve for word in ANN)
    forget(store, tenant="acme", session="s-6", principal="ann", **TOLD)
    again = store.session("s-6", tenant="acme", counter=CHARS)
    assert again.state.reserve
    assert not any(word in bullet.text for bullet in again.state.reserve for word in ANN)
    assert store.flush(30)
    assert scan(store, root, ()) == {}


def test_a_note_from_before_she_spoke_stays_in_force(placed: Placed) -> None:
    store, _ = placed
    session = store.session("s-5", tenant="acme", counter=CHARS)
    session.note("locale", "de-AT")
    session.note("plan", "first")
    for turn in range(12):
        say(session, "ann" if turn == 2 else "bob", ANN if turn == 2 else BOB, turn)
        if turn == 4:
            session.note("plan", f"call {ANN[0]}")
        builder().build(session)
    forget(store, tenant="acme", session="s-5", principal="ann", **TOLD)
    again = store.session("s-5", tenant="acme", counter=CHARS)
    assert again.state.compactions > 1
    assert again.state.notes == {"locale": "de-AT"}


def test_reading_a_redacted_log_from_its_newest_compaction_or_its_beginning_is_the_same(placed: Placed) -> None:
    store, _ = placed
    forget(store, tenant="acme", principal="ann", **TOLD)
    session = store.session("s-2", tenant="acme", counter=CHARS)
    scratch = State("s-2")
    for position, record in enumerate(store.journal.read(session.key, 0)):
        scratch.apply(session._verified(record, position) if hasattr(session, "_verified") else _event(record))
    assert scratch == session.state


def _event(record: object) -> object:
    from ctxsteward.store.journal.events import from_record

    return from_record(record)  # type: ignore[arg-type]


def test_one_session_of_a_principal_can_be_forgotten_alone(placed: Placed) -> None:
    store, _ = placed
    before = rows(store, "s-2")
    done = forget(store, tenant="acme", session="s-1", principal="ann", **TOLD)
    assert set(done.sessions) == {"s-1", "s-1-child", "s-1-grandchild"}
    assert rows(store, "s-2") == before
    assert ANN[0] not in rows(store, "s-1")
    before = rows(store, "s-1")
    forget(store, tenant="acme", session="s-1-child", principal="bob", **TOLD)  # what he said in the fork
    assert rows(store, "s-1") == before
    records = store.journal.read(SessionKey("acme", "s-1-child"), 0)
    assert not any(BOB[0] in (record.wire or "") for record in records)


def test_the_store_is_whole_afterwards(placed: Placed) -> None:
    store, _ = placed
    forget(store, tenant="acme", principal="ann", **TOLD)
    forget(store, tenant="acme", session="s-3", **TOLD)
    forget(store, tenant="other", session="s-1", **TOLD)
    assert store.flush(30)
    assert fsck(store, read_data=True).damage == ()


# -- repeating, refusing ----------------------------------------------------------------------------------------------


def test_repeating_changes_nothing_and_the_first_words_stay(placed: Placed) -> None:
    store, _ = placed
    for what in ({"principal": "ann"}, {"session": "s-1"}, {"session": "s-1"}):
        first = forget(store, tenant="acme", **what, **TOLD)
        assert store.flush(30)
        left = {name: rows(store, name) for name in store.journal.sessions("acme")}
        again = forget(store, tenant="acme", **what, who="x", when="y", why="z")
        assert set(again.sessions) == set(first.sessions)
        assert (again.messages, again.derived) == (0, 0)
        assert {name: rows(store, name) for name in store.journal.sessions("acme")} == left
    assert {note.who for note in store.journal.forgotten("acme")} == {"dpo"}


@pytest.mark.parametrize(
    "what",
    [
        {},
        {"session": "s-0"},
        {"principal": "zoe"},
        {"session": "s-3", "principal": "ann"},
        {"session": "s-0", "principal": "ann"},
    ],
    ids=["nothing", "no such session", "no such principal", "not in this session", "no such session of hers"],
)
def test_a_subject_that_is_not_known_is_refused_and_nothing_is_erased(what: dict[str, str]) -> None:
    with STORES["memory"](Path()) as (store, _):
        fill(store, turns=1)
        with pytest.raises(InputError):
            forget(store, tenant="acme", **what, **TOLD)
        with pytest.raises(InputError):
            forget(store, tenant="nobody", session="s-1", **TOLD)
        assert list(store.vault("acme").erased()) == []
        assert store.journal.forgotten("acme") == []


@pytest.mark.parametrize("field", ["who", "when", "why"])
@pytest.mark.parametrize("value", ["", "  ", "x" * 201, None])
def test_who_when_and_why_have_to_be_told(field: str, value: str | None) -> None:
    with STORES["memory"](Path()) as (store, _), pytest.raises(InputError):
        forget(store, session="s-1", **{**TOLD, field: value})


# -- others who hold derived text -------------------------------------------------------------------------------------


def test_erasers_are_told_what_is_gone_and_a_failing_one_is_named_once_all_else_is_done() -> None:
    told: list[tuple[Deletion, ...]] = []

    def cards(gone: object) -> int:
        told.append(gone)  # type: ignore[arg-type]
        return 3

    def broken(gone: object) -> int:
        raise OSError("the index is read-only")

    with STORES["memory"](Path()) as (store, _):
        fill(store, turns=3)
        with pytest.raises(StoreError, match=r"broken: the index is read-only.*repeat"):
            forget(store, tenant="acme", principal="ann", erasers=(broken, cards), **TOLD)
        assert ANN[0] not in rows(store, "s-1")
        done = forget(store, tenant="acme", principal="ann", erasers=(cards,), **TOLD)
        assert done.elsewhere == 3
        assert told[0] == told[1] == told[2]  # each erasure asks twice
        by_session = {gone.session: gone for gone in told[0]}
        assert by_session["s-2"].ordinals == frozenset({1, 2, 3, 4, 5, 11, 12, 13, 14, 15, 21, 22, 23, 24, 25})
        assert by_session["s-1-child"].ordinals
        forget(store, tenant="acme", session="s-1", erasers=(cards,), **TOLD)
        forget(
            store, tenant="acme", session="s-1", erasers=(cards,), **TOLD
        )  # forks are known though their rows are gone
        assert {(gone.session, gone.ordinals) for gone in told[4]} == {
            ("s-1", None),
            ("s-1-child", None),
            ("s-1-grandchild", None),
        }
        assert set(told[6]) == set(told[4])


# -- recommendations ---------------------------------------------------------------------------------------------------

HERS = f"Prefers short answers {ANN[0]}"
RECORDS = """
name: support
persona: You are a calm assistant.
meta:
  hers: {text: "HERS", sources: ["s-2§1", "s-2§2"]}
  shared: {text: Asks for sources, sources: ["s-2§1", "s-3§1"]}
  his: {text: Writes at night, sources: ["s-2§6"]}
  far: {text: Lives abroad, sources: ["s-99§1"]}
""".replace("HERS", HERS)
FIRST_PROFILE = Profile.from_yaml(RECORDS)
SECOND_PROFILE = Profile.from_yaml(RECORDS.replace("calm", "brief"))
NIGHT: dict[str, Any] = {"who": "steward", "why": "night", "when": "2026-11-21"}


def recommendations(store: Store) -> set[str]:
    return {record.text for record in store.profiles("support", tenant="acme").newest().profile.meta}


def lines_of_the_steward(done: Erasure) -> tuple[int, int]:
    (place,) = [place for place in done.places if place.place == "lines and drafts of the steward, facts"]
    return place.before, place.after


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_recommendation_goes_with_the_last_of_its_sources_from_all_versions(tmp_path: Path, kind: str) -> None:
    with STORES[kind](tmp_path) as (store, root):
        fill(store, turns=2)
        versions = store.profiles("support", tenant="acme")
        versions.commit(FIRST_PROFILE, **NIGHT)
        rests_on = agreed(store, SECOND_PROFILE, who="steward", when=NIGHT["when"], tenant="acme")
        versions.commit(SECOND_PROFILE, **NIGHT, promotion=rests_on)
        assert len(recommendations(store)) == 4

        done = forget(store, tenant="acme", principal="ann", **TOLD)
        assert (done.recommendations, lines_of_the_steward(done)) == (1, (1, 0))
        assert recommendations(store) == {"Asks for sources", "Writes at night", "Lives abroad"}
        assert HERS not in {record.text for record in versions.at(1).profile.meta}
        assert hits(contents_of(store, root), (HERS,)) == {}

        done = forget(store, tenant="acme", session="s-2", **TOLD)
        assert done.recommendations == 1
        assert recommendations(store) == {"Asks for sources", "Lives abroad"}

        done = forget(store, tenant="acme", session="s-3", **TOLD)
        assert done.recommendations == 1
        assert recommendations(store) == {"Lives abroad"}  # of a session that this machine knows nothing of
        again = forget(store, tenant="acme", session="s-3", **TOLD)
        assert (again.recommendations, lines_of_the_steward(again)) == (0, (3, 0))  # all for this request


def test_a_withdrawn_recommendation_cannot_come_back(tmp_path: Path) -> None:
    with STORES["memory"](tmp_path) as (store, _):
        fill(store, turns=1)
        versions = store.profiles("support", tenant="acme")
        versions.commit(FIRST_PROFILE, **NIGHT)
        forget(store, tenant="acme", session="s-2", **TOLD)
        with pytest.raises(StoreError):
            versions.commit(SECOND_PROFILE, **NIGHT, promotion={"approvals": []})
        assert HERS not in recommendations(store)


# -- several machines -------------------------------------------------------------------------------------------------


def test_what_one_machine_forgets_another_erases_from_its_own_journal() -> None:
    with two_machines() as (one, two):
        fill(one, turns=3)
        assert one.flush(30)
        for name in ("s-1", "s-2"):
            two.session(name, tenant="acme", counter=CHARS)  # taken over: both journals hold it now
        assert two.flush(30)
        assert ANN[0] in rows(one, "s-2")
        forget(two, tenant="acme", session="s-2", **TOLD)
        done = apply_tombstones(one, "acme")
        assert done is not None
        assert done.sessions == ("s-2",)
        assert (done.who, done.when, done.why) == ("dpo", "2026-11-22", "request 7")
        assert one.journal.length(SessionKey("acme", "s-2")) == 0
        assert apply_tombstones(one, "acme") is None
        with pytest.raises(Erased):
            one.session("s-2", tenant="acme")
        forget(two, tenant="acme", principal="ann", **TOLD)
        apply_tombstones(one, "acme")
        for store in (one, two):
            for name in store.journal.sessions("acme"):
                assert not any(word in rows(store, name) for word in (*ANN, *NOTE)), name
        assert apply_tombstones(one, "acme") is None
        for store in (one, two):
            session = store.session("s-1", tenant="acme", counter=CHARS)
            builder().build(session)


def test_a_principal_is_forgotten_on_a_machine_that_has_not_heard_of_a_forgotten_session() -> None:
    with two_machines() as (one, two):
        fill(one, turns=3)
        assert one.flush(30)
        forget(two, tenant="acme", session="s-2", **TOLD)

        done = forget(one, tenant="acme", principal="ann", **TOLD)

        assert one.journal.length(SessionKey("acme", "s-2")) == 0
        for name in (*done.sessions, *one.journal.sessions("acme")):
            assert not any(word in rows(one, name) for word in (*ANN, *NOTE)), name


def test_what_another_machine_derives_after_an_erasure_that_was_cut_off_is_drained_without_the_words() -> None:
    """The erasure has destroyed keys and redacted nothing; the machine that writes has not heard of it."""
    with two_machines() as (one, two):
        fill(one, turns=3)
        assert one.flush(30)
        session = one.session("s-2", tenant="acme", counter=CHARS)
        for subject in (subject_of("s-2", "ann"), derived_subject("s-2")):
            two.vault("acme").destroy_key(subject, **TOLD)
            one.vault("acme").forget_secret(one.vault("acme").subject_address(subject))  # as after a restart
        session.note("plan", f"{NOTE[0]} {ANN[0]}")

        assert one.flush(30)

        log = SessionLog(two.objects, two.keys, two.fresh_vault("acme"), SessionKey("acme", "s-2"))
        stored = "".join(repr(part) for _, part in log.entries())
        assert not any(word in stored for word in (*ANN, *NOTE))


def test_a_principal_s_sessions_that_only_the_object_store_has_are_forgotten_too() -> None:
    with two_machines() as (one, two):
        fill(one, turns=3)
        assert one.flush(30)
        done = forget(two, tenant="acme", principal="ann", **TOLD)  # this machine has none of them yet
        assert {"s-1", "s-2"} <= set(done.sessions)
        assert two.flush(30)
        name = two.vault("acme").subject_address(subject_of("s-2", "ann"))
        assert name in set(two.vault("acme").erased())
        session = two.session("s-2", tenant="acme", counter=CHARS)
        assert BOB[0] in json.dumps(builder().build(session).render("openai-chat"))
        assert not any(word in rows(two, "s-2") for word in (*ANN, *NOTE))


def test_a_session_that_only_the_object_store_has_is_forgotten_with_every_key_in_it() -> None:
    with two_machines() as (one, two):
        fill(one, turns=3)
        assert one.flush(30)
        done = forget(two, tenant="acme", session="s-2", **TOLD)
        assert done.subjects >= 4  # its own, Ann's, Bob's, the derived one
        erased = set(two.vault("acme").erased())
        for subject in (subject_of("s-2", None), subject_of("s-2", "ann"), subject_of("s-2", "bob")):
            assert two.vault("acme").subject_address(subject) in erased
        left = {info.key for info in two.objects.list("keys/acme/")}
        assert not {f"keys/acme/{name}.json" for name in erased} & left


# -- the scan itself --------------------------------------------------------------------------------------------------


def test_the_scan_finds_a_word_in_every_form_it_looks_for(tmp_path: Path) -> None:
    for word in ANN:
        for form in forms_of(word):
            assert hits({"f": b"\x01" + form + b"\x02"}, (word,)) == {word: ["f"]}
    database = sqlite3.connect(tmp_path / "x.sqlite")
    database.execute("create table t (x text)")
    database.execute("insert into t values (?)", (f"a {ANN[1]} b",))
    database.commit()
    database.close()
    assert hits({"x": (tmp_path / "x.sqlite").read_bytes()}, ANN) == {ANN[1]: ["x"]}


def test_lineage_knows_forks_of_forks() -> None:
    with STORES["memory"](Path()) as (store, _):
        fill(store, turns=2)
        lineage = Lineage(store.journal, "acme")
        assert lineage.line("s-1-grandchild") == ["s-1", "s-1-child", "s-1-grandchild"]
        assert lineage.forks_of(["s-1"]) == ["s-1-child"]
        shares = lineage.shares("ann", None)
        assert list(shares) == ["s-1", "s-2", "s-1-child", "s-1-grandchild"]
        assert shares["s-1-grandchild"].inherited == shares["s-1-child"].inherited


def test_nothing_is_forgotten_where_the_records_of_the_steward_would_be_missed(
    placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = placed
    session = store.journal.sessions("acme")[0]
    before = rows(store, session)
    monkeypatch.setattr("ctxsteward.store.erasure.forget.ENTRY_POINTS", "ctxsteward.not_installed")
    with pytest.raises(StoreError, match="nothing was forgotten: install ctxsteward again"):
        forget(store, tenant="acme", session=session, **TOLD)
    assert rows(store, session) == before


def test_a_rule_that_compactions_carry_goes_with_the_person_who_stated_it() -> None:
    with open_store("memory:") as store:
        session = store.session("s")
        for turn in range(20):
            said = {0: "Let us begin.", 1: "Never deploy on Fridays.", 2: "Never mail the auditors."}.get(
                turn, "Go on."
            )
            session.append({"role": "user", "content": said}, principal="bob" if turn == 2 else "ann")
            session.append({"role": "assistant", "content": f"Step {turn} is done, all lights are green. " * 4})
            builder().build(session)
        assert [rule.text for rule in session.state.rules] == ["Never deploy on Fridays.", "Never mail the auditors."]

        forget(store, tenant="default", session="s", principal="ann", **TOLD)

        left = store.at("default", "s").state
        assert [rule.text for rule in left.rules] == ["Never mail the auditors."]
        assert "Fridays" not in rows(store, "s", "default")
