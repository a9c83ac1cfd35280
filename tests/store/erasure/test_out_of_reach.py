"""Files of the application that hold words of a session: `store forget` leaves them and names each kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.store.erasure.receipt import verified_receipt
from ctxsteward.summarizers.models.recordings import RecordingTransport

from ...model_server import ModelServer, Reply

WORD = "MARKERann4711q"
SAID = f"{WORD} is my number, please keep it."


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def exported_pages(folder: Path) -> None:
    run("view", "s", "--static", str(folder / "pages"))


def reports(folder: Path) -> None:
    (folder / "replay.jsonl").write_text(run("replay", "talk.jsonl", "--json", "--store", "memory:"))
    (folder / "call.json").write_text(run("view", "s", "--json"))


def transcript(folder: Path) -> None:
    (folder / "talk.jsonl").write_text(Path("talk.jsonl").read_text())


def recording(folder: Path) -> None:
    with ModelServer(lambda request: Reply(text="fine")) as server:
        transport = RecordingTransport(folder / "calls.jsonl")
        with httpx2.Client(transport=transport) as client:
            body = {"model": "gpt-4o", "messages": [{"role": "user", "content": SAID}]}
            client.post(f"{server.url}/v1/chat/completions", json=body)


def handoff(folder: Path) -> None:
    (folder / "handoff.json").write_text(run("handoff", "s", "--json"))


def suite(folder: Path) -> None:
    run("evals", "from-transcripts", "talk.jsonl", "--out", str(folder / "suite.yaml"), "--min-turns", "1")


def holds(place: Path) -> bool:
    return any(WORD.encode() in path.read_bytes() for path in place.rglob("*") if path.is_file())


FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "exported pages": (exported_pages, "exported pages, reports, timelines"),
    "what view and replay print": (reports, "exported pages, reports, timelines"),
    "transcripts outside the store": (transcript, "transcripts outside the store"),
    "recordings of model calls": (recording, "recordings of model calls and of cascade runs; handoffs"),
    "handoffs": (handoff, "recordings of model calls and of cascade runs; handoffs"),
    "suites drafted from transcripts": (suite, "suites drafted from transcripts, kept eval runs, replay reports"),
}


@pytest.mark.parametrize(("write", "named"), FILES.values(), ids=FILES)
def test_forgetting_leaves_a_file_of_the_application_and_names_its_kind(
    write: Callable[[Path], None], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"role": "user", "content": SAID}, {"role": "assistant", "content": f"Noted: {WORD}."}]
    rows += [{"role": "user", "content": "Which number?"}, {"role": "assistant", "content": f"{WORD}."}]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("build", "talk.jsonl", "--session", "s")
    folder = tmp_path / "application"
    folder.mkdir()
    write(folder)
    Path("talk.jsonl").unlink()

    assert holds(folder)
    told = ("--who", "dpo", "--why", "request 7", "--when", "2026-11-22", "--receipt", "receipt.json")
    text = run("store", "forget", "--session", "s", *told)
    assert holds(folder)
    assert not holds(tmp_path / ".ctxsteward")
    assert f"out of reach: {named}: delete " in text
    done = verified_receipt(Path("receipt.json").read_bytes())
    assert {left.place: left.remedy for left in done.remains}[named].startswith("delete ")


def test_a_session_that_was_started_with_a_handoff_is_forgotten_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("talk.jsonl").write_text(json.dumps({"role": "user", "content": SAID}) + "\n")
    run("build", "talk.jsonl", "--session", "s")
    Path("talk.jsonl").unlink()
    run("handoff", "s", "--start", "next")
    forget = ("store", "forget", "--who", "dpo", "--why", "request 7", "--session")
    run(*forget, "s")
    assert holds(tmp_path / ".ctxsteward")
    run(*forget, "next")
    assert not holds(tmp_path / ".ctxsteward")
