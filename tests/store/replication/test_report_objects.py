"""On S3 a compression report is an object that its address names, encrypted, and as long-lived as its session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Session, open_store
from ctxsteward.envelope.store import Store
from ctxsteward.schemas import BudgetExceeded, CompressionReport, Erased
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc

from ...s3_servers import S3Server
from ..doubles import stored
from ..erasure.scenes import contents_of, hits
from .machines import World, drain, user

pytestmark = pytest.mark.usefixtures("aws_environment")

KEYS = MasterKeys(b"r" * 32)
TOLD = {"who": "dpo", "when": "2026-11-22", "why": "request 7"}
CANARY = "CANARY4711"
LATER = 4e9
"""Behind every grace period."""
META = "".join(f"  m{n}: {{text: Fact number {n} about the shop, sources: [s-1§{n + 1}]}}\n" for n in range(40))
PROFILE = Profile.from_yaml(f"persona: calm\nmeta:\n{META}")


def talk(store: Store, name: str = "chat", turns: int = 12) -> list[CompressionReport]:
    """A conversation in which Ann says the canary and Bob does not; the reports of its builds."""
    return talk_in(store.session(name, system="Be exact."), turns)


def talk_in(session: Session, turns: int = 12) -> list[CompressionReport]:
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=300))
    reports: list[CompressionReport] = []
    for turn in range(turns):
        session.append(user(f"The code {CANARY}-{turn} must be 2{turn}, see /srv/{CANARY}/{turn}.txt"), principal="ann")
        session.append(user(f"And file_{turn}.txt must be {turn} MB"), principal="bob")
        reports += builder.build(session).reports
        session.append({"role": "assistant", "content": f"It is {turn * 7}."})
    assert reports
    return reports


def objects_of(store: Store) -> dict[str, bytes]:
    return {key: body for key, body in stored(store.objects).items() if key.startswith("reports/")}


def test_another_machine_reads_a_report_by_its_address_alone(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = server.uri("team")
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        reports = talk(store)
        assert store.flush(30)
        assert set(objects_of(store)) == {f"reports/default/{one.id[:2]}/{one.id}" for one in reports}
        assert hits(objects_of(store), (CANARY,)) == {}
        assert any(CANARY in loss.text for one in reports for loss in one.losses)
    with open_store(uri, journal=tmp_path / "two", keys=KEYS) as store:
        assert store.report(reports[0].artifact) == reports[0]
        assert store.address(reports[0].id[:16]) == reports[0].id
        assert store.journal.sessions("default") == [], "no session was read in for it"
        found = fsck(store, read_data=True)
        assert (found.damage, found.checked["reports"]) == ((), len(reports))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXSTEWARD_MASTER_KEY", (b"r" * 32).hex())
    for text in (reports[0].id, reports[0].id[:12]):
        shown = CliRunner().invoke(cli, ["report", text, "--json", "--store", uri])
        assert shown.exit_code == 0, shown.output
        assert [one["id"] for one in json.loads(shown.stdout)] == [reports[0].id]


@pytest.mark.parametrize("drains", [False, True], ids=["one folder", "a journal elsewhere"])
def test_reports_are_objects_only_where_a_journal_is_drained_and_are_read_either_way(
    drains: bool, tmp_path: Path
) -> None:
    with open_store(f"file:{tmp_path / 'store'}", journal=tmp_path / "journal" if drains else None) as store:
        reports = talk(store)
        assert store.flush(30)
        assert len(objects_of(store)) == (len(reports) if drains else 0)
        assert [store.report(one.id) for one in reports] == reports


def test_reports_of_meta_and_of_a_head_that_does_not_fit_are_objects_too(server: S3Server, tmp_path: Path) -> None:
    uri = server.uri("heads")
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        session = store.session("cut", profile=PROFILE)
        session.append(user("hello"))
        (meta,) = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(meta_tokens=200)).build(session).reports
        with pytest.raises(BudgetExceeded) as refused:
            EnvelopeBuilder(model="gpt-4o", budgets=Budgets(system_tokens=1)).build(session)
        assert store.flush(30)
    with open_store(uri, journal=tmp_path / "two", keys=KEYS) as store:
        assert store.report(meta.id) == meta
        assert store.report(refused.value.report_id or "").section == "system"
        assert store.journal.sessions("default") == []


def test_a_forgotten_principal_s_words_leave_the_report_objects(server: S3Server, tmp_path: Path) -> None:
    uri = server.uri("person")
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        reports = talk(store)
        assert store.flush(30)
        before = objects_of(store)
        forget(store, principal="ann", **TOLD)
        assert store.flush(30)
        after = objects_of(store)
        assert set(after) == set(before)
        assert all(after[name] != before[name] for name in before), "no object is under a key that was destroyed"
        assert hits(contents_of(store, tmp_path / "one"), (CANARY,)) == {}
        assert fsck(store, read_data=True).damage == ()
    with open_store(uri, journal=tmp_path / "two", keys=KEYS) as store:
        redacted = store.report(reports[0].id)
        assert CANARY not in redacted.model_dump_json()
        assert [loss.ref for loss in redacted.losses] == [loss.ref for loss in reports[0].losses]
        assert any("file_0.txt" in loss.text for one in reports for loss in store.report(one.id).losses)


def test_gc_keeps_a_report_while_its_session_lives_and_removes_it_once_that_is_forgotten(
    server: S3Server, tmp_path: Path
) -> None:
    uri = server.uri("gone")
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        gone, kept = talk(store, "gone"), talk(store, "kept")
        assert store.flush(30)
        assert gc(store, now=LATER).reports == ()
        assert len(objects_of(store)) == len(gone) + len(kept)
        forget(store, session="gone", **TOLD)
        with pytest.raises(Erased):
            store.report(gone[0].id)
        found = fsck(store, read_data=True)
        assert found.damage == ()
        assert sum(note.kind == "report_erased" for note in found.notes) == len(gone)
        removed = gc(store, now=LATER).reports
        assert sorted(removed) == sorted(f"reports/default/{one.id[:2]}/{one.id}" for one in gone)
        assert store.report(kept[0].id) == kept[0]


def test_an_altered_report_object_is_noticed(server: S3Server, tmp_path: Path) -> None:
    uri = server.uri("altered")
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        one, other, *_ = talk(store, turns=24)
        assert store.flush(30)
        name, elsewhere = (f"reports/default/{id[:2]}/{id}" for id in (one.id, other.id))
        body = store.objects.get(elsewhere)
        store.objects.delete(name)
        store.objects.put(name, body)
        assert [(damage.kind, damage.field) for damage in fsck(store, read_data=True).damage] == [
            ("report_altered", name)
        ]
    with open_store(uri, journal=tmp_path / "two", keys=KEYS) as store, pytest.raises(Damaged):
        store.report(one.id)


def test_a_session_that_was_drained_without_report_objects_still_has_its_reports(
    server: S3Server, tmp_path: Path
) -> None:
    uri = server.uri("earlier")
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        reports = talk(store)
        assert store.flush(30)
        for name in objects_of(store):
            store.objects.delete(name)
    with open_store(uri, journal=tmp_path / "two", keys=KEYS) as store:
        assert store.report(reports[0].id) == reports[0]


def test_a_report_that_moved_into_a_fork_is_under_the_fork_s_key(world: World) -> None:
    one, other = world.machine("a"), world.machine("b")
    session = one.session("s")
    session.append(user("shared"))
    drain(one)
    other.session("s").append(user("elsewhere"))
    drain(other)
    reports = talk_in(session)
    drain(one)
    world.settle()
    fork = next(name for name in world.fresh().journal.sessions("default") if "-fork-" in name)
    assert world.fresh().journal.find("default", reports[0].id) is not None
    reader = world.machine("b")
    assert reader.journal.length(SessionKey("default", fork))
    forget(one, session=fork, **TOLD)
    world.settle()
    behind = world.machine("c").write_behind
    assert behind is not None
    with pytest.raises(Erased):
        behind.stored_report("default", reports[0].id)
