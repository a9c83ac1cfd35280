"""On `s3://` the builder's code and the commands are the same: build, report, resolve, replay, here and elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store, rebuild
from ctxsteward.envelope.store import Store
from ctxsteward.schemas import InputError
from ctxsteward.store.crypto.keyring import MasterKeys

from ...fault_proxy import FaultProxy
from ...postgres import PostgresServer
from ...s3_servers import S3Server
from .machines import user

KEYS = MasterKeys(b"s" * 32)
WHEN = "2026-11-22T04:00:00+00:00"
"""When every report is made: its time is part of an envelope, and stores are filled one after the other."""


pytestmark = pytest.mark.usefixtures("aws_environment")


def chat(store: Store, turns: int = 40) -> tuple[str, dict[str, object], list[str]]:
    """A conversation with a build before every answer: address and document of the last envelope, its reports."""
    session = store.session("chat", tenant="acme", system="Be exact.")
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=300), now=lambda: WHEN)
    reports: list[str] = []
    for turn in range(turns):
        session.append(user(f"question {turn}: what is {turn} times 7, and where is file_{turn}.txt?"), principal="ann")
        envelope = builder.build(session)
        reports += [report.id for report in envelope.reports]
        session.append({"role": "assistant", "content": f"{turn * 7}; the file is at /srv/data/file_{turn}.txt"})
    return envelope.address, envelope.document(), reports


def test_an_envelope_is_byte_identical_on_another_machine(server: S3Server, tmp_path: Path) -> None:
    uri = server.uri("team")
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        address, document, reports = chat(store)
        assert reports
        assert rebuild(store, address, tenant="acme").document() == document
        assert store.flush(30)
    with open_store(uri, journal=tmp_path / "two", keys=KEYS) as store:
        again = rebuild(store, address, tenant="acme")
        assert again.document() == document
        assert store.compaction(reports[0], tenant="acme").report.id == reports[0]
        session = store.at("acme", "chat")
        assert session.resolve("§1").text == "question 0: what is 0 times 7, and where is file_0.txt?"
        assert [event.report.id for event in session.reports()] == reports
        moved = store.session("chat", tenant="acme")
        assert moved.findings == []
        assert len(moved) == 80
        moved.append(user("and here?"))
        assert store.flush(30)
    with open_store(uri, journal=tmp_path / "one", keys=KEYS) as store:
        assert len(store.session("chat", tenant="acme")) == 81


def test_the_same_transcript_gives_the_same_bytes_on_every_kind_of_store(
    server: S3Server, shared_postgres: PostgresServer, tmp_path: Path
) -> None:
    sent = []
    for uri in (server.uri("same"), shared_postgres.uri("same"), f"file:{tmp_path / 'store'}", "memory:"):
        journal = tmp_path / "journal" if uri.startswith("s3:") else None
        with open_store(uri, journal=journal, keys=KEYS) as store:
            store._draw_nonce = lambda: "123456789"
            address, document, _ = chat(store, 12)
            sent.append((address, document))
    assert sent == [sent[0]] * 4


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "chat.jsonl"
    rows = []
    for turn in range(30):
        rows.append({"role": "user", "content": f"Please note {turn}: the limit is {turn * 13} and must hold."})
        rows.append({"role": "assistant", "content": f"Noted: {turn * 13}."})
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_the_commands_work_on_s3_and_on_a_second_machine(
    server: S3Server, tmp_path: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ["--store", server.uri("commands"), "--json"]

    def run(machine: str, *arguments: str) -> dict[str, object] | list[dict[str, object]]:
        (tmp_path / machine).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / machine)
        result = CliRunner().invoke(cli, [*arguments, *store])
        assert result.exit_code == 0, (result.output, result.exception)
        found: dict[str, object] | list[dict[str, object]] = json.loads(result.stdout)
        return found

    built = run("one", "build", str(transcript), "--budget", "dynamic_tokens=300", "--model", "gpt-4o")
    assert isinstance(built, dict)
    address, session = str(built["address"]), str(built["session"])
    keys = tmp_path / "two/.ctxsteward/journal/keys"
    keys.parent.mkdir(parents=True)
    keys.symlink_to(tmp_path / "one/.ctxsteward/journal/keys")
    for machine in ("one", "two"):
        assert run(machine, "replay", "--from", address) == built, machine
        assert run(machine, "resolve", "§1", "--session", session) == run("one", "resolve", "1", "--session", session)
        assert run(machine, "report", session) == run("one", "report", address)


def test_an_endpoint_that_overwrites_is_refused_at_the_start(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxsteward.store.objects.s3 import S3Objects

    original = S3Objects.put
    monkeypatch.setattr(S3Objects, "put", lambda self, key, body: original(self, key, body) and "committed")
    with pytest.raises(InputError, match="accepts If-None-Match and overwrites"):
        open_store(server.uri("bad"), journal=tmp_path, keys=KEYS)


def test_a_store_that_does_not_answer_opens_and_drains_when_it_does(server: S3Server, tmp_path: Path) -> None:
    with FaultProxy(server.url) as proxy:
        proxy.mode = "dead"
        with open_store(server.uri("later", url=proxy.url), journal=tmp_path, keys=KEYS) as store:
            session = store.session("s")
            assert [finding.kind for finding in session.findings] == ["ownership_unchecked"]
            session.append(user("kept"))
            EnvelopeBuilder(model="gpt-4o").build(session)
            proxy.mode = "healthy"
            assert store.flush(60)
    with open_store(server.uri("later"), journal=tmp_path / "two", keys=KEYS) as store:
        assert store.at("default", "s").resolve("1").text == "kept"
