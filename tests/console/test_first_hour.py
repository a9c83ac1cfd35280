"""What a new user types first: paths for stores, `python -m`, listings with times, and a demo service that is full."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward import envelope
from ctxsteward.console.cli import cli
from ctxsteward.console.commands.serve import _demo_store
from ctxsteward.console.steward.context import context_of
from ctxsteward.console.terminal.failures import STEWARD, missing
from ctxsteward.envelope import Store, aio, open_store
from ctxsteward.evals.result_history import read
from ctxsteward.schemas import ContextError, InputError, StoreError, WindowExceeded
from ctxsteward.steward import of_this_process

STORES = {
    "./desk": "desk",
    "data/desk": "data/desk",
    "file:desk": "desk",
    "../here/desk": "desk",
}


@pytest.mark.parametrize("given", STORES)
def test_a_path_is_taken_for_a_folder(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    with open_store(given) as store:
        store.session("s").append({"role": "user", "content": "Hello."})
    assert (here / STORES[given] / "journal.sqlite").is_file()
    listed = CliRunner().invoke(cli, ["store", "ls", "journal/", "--store", given])
    assert listed.output.split()[-1] == "journal/default/s"


def test_a_service_with_streams_tools_and_tenants_takes_at_most_30_lines() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide-fastapi.md").read_text(encoding="utf-8")
    service = guide.partition("```python\n")[2].partition("```")[0]
    needed = ("StreamingResponse", "tools=[", "tenant=", 'open_store("file:', "id=id")
    assert [part for part in needed if part not in service] == []
    assert len([line for line in service.splitlines() if line.strip()]) <= 30


def test_a_bare_word_is_no_store_and_the_error_says_how_to_name_a_folder() -> None:
    with pytest.raises(InputError, match=r"unknown store URI 'desk'; use \./PATH, file:PATH"):
        open_store("desk")


def test_a_listing_shows_the_newest_time_that_a_log_names(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        session = store.session("dated")
        session.append({"role": "user", "content": "Hello."}, ts="2026-11-20T10:00:00Z")
        session.append({"role": "user", "content": "And?"}, ts="2026-11-21T11:30:00Z")
        session.append({"role": "assistant", "content": "Well."})
        store.session("timeless").append({"role": "user", "content": "Hello."})
    lines = CliRunner().invoke(cli, ["store", "ls", "journal/", "--store", str(tmp_path)]).output.splitlines()
    assert [(line.split()[0].strip("-"), line.split()[-1]) for line in lines] == [
        ("2026-11-21T11:30:00Z", "journal/default/dated"),
        ("", "journal/default/timeless"),
    ]


def test_the_version_is_told_by_command_module_and_package() -> None:
    run = [sys.executable, "-m", "ctxsteward", "--version"]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert told == f"ctxsteward {envelope.__version__}\n"
    assert CliRunner().invoke(cli, ["--version"]).output == told


HELLO = {"role": "user", "content": "Hello."}


def _streamed(store: Store, chunks: object) -> None:
    with store.chat("s", model="gpt-4o").turn("Hello?") as turn:
        list(turn.stream(chunks))


MISTAKES: dict[str, tuple[Callable[[Store], object], str]] = {
    "a model that is nearly one": (
        lambda store: store.chat("s", model="gpt4o"),
        "model 'gpt4o' is not known, so its provider is not either; did you mean gpt-4o or",
    ),
    "a model in capitals": (
        lambda store: envelope.EnvelopeBuilder("GPT-4o"),
        "unknown model 'GPT-4o'; did you mean gpt-4o or",
    ),
    "what was dropped of a chat": (
        lambda store: envelope.what_was_dropped(store.chat("s", model="gpt-4o")),  # type: ignore[arg-type]
        'session is Chat; pass store.session("s-1"), or the session of a chat: chat.session',
    ),
    "an envelope of a chat": (
        lambda store: envelope.EnvelopeBuilder("gpt-4o").build(store.chat("s", model="gpt-4o")),  # type: ignore[arg-type]
        "an envelope is built of a session, not of Chat; write: ",
    ),
    "a time that is none": (
        lambda store: store.session("s").append(HELLO, ts="yesterday"),
        "`ts` is 'yesterday'; write an ISO 8601 time such as '2026-11-20T10:00:00Z', or None",
    ),
    "a time that is no text": (
        lambda store: store.session("s").append(HELLO, ts=datetime(2026, 11, 20)),  # type: ignore[arg-type]
        "`ts` is datetime.datetime(2026, 11, 20, 0, 0); write an ISO 8601 time",
    ),
    "one message where a list is due": (
        lambda store: store.session("s").extend(HELLO),
        "messages is dict; pass a list, or append one message: append(…)",
    ),
    "a misspelt option": (
        lambda store: store.chat("s", modle="gpt-4o"),  # type: ignore[call-arg]
        "chat has no option 'modle'; did you mean model?",
    ),
    "a model in the place of a builder": (
        lambda store: store.chat("s", builder="gpt-4o"),  # type: ignore[arg-type]
        'builder is str; pass EnvelopeBuilder("gpt-4o"), or a model',
    ),
    "a whole reply in the place of a stream": (
        lambda store: _streamed(store, {"choices": []}),
        "the stream is dict; pass what the client returned with stream=True",
    ),
    "arguments of aio in another order": (
        lambda store: asyncio.run(aio.append(HELLO, store.session("s"))),  # type: ignore[arg-type]
        "session is dict; write aio.append(session, message)",
    ),
    "a system text beyond the window": (
        lambda store: store.chat("s", model="gpt-4o", system="word " * 200_000).turn("Hello?").__enter__(),
        "the request needs 2000",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_typical_mistake_names_its_remedy_in_one_line(name: str) -> None:
    act, says = MISTAKES[name]
    with open_store("memory:") as store, pytest.raises(ContextError) as error:
        act(store)
    assert str(error.value).startswith(says)
    assert not isinstance(error.value, WindowExceeded) or "shorten system texts and tools" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_envelope_of_an_empty_session_says_that_there_is_nothing_to_answer() -> None:
    with open_store("memory:") as store:
        session, builder = store.session("s"), envelope.EnvelopeBuilder("gpt-4o")
        (finding,) = builder.build(session).findings
        assert (finding.kind, finding.text) == (
            "nothing_to_answer",
            "session 's' has no message to answer; append the user's message first: session.append(…)",
        )
        assert builder.preview(session, "Hello?").findings == ()


def test_a_store_that_was_closed_says_to_open_it_again(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.close()
    with pytest.raises(StoreError, match="the journal is closed; open its store again"):
        store.session("s")


@pytest.mark.skipif(bool(missing(STEWARD)), reason="needs the extra steward")
def test_the_demo_service_has_a_session_a_night_a_waiting_change_and_versions() -> None:
    with _demo_store("default") as store:
        assert store.sessions() == ["demo"]
        assert store.session("demo").compactions()
        place = context_of(store, store.uri, "default", "fernhollow-desk", None, {}, of_this_process())
        assert place.head == 2
        assert place.nights.head() is not None
        assert [request.note for request in place.pending()] == ["longer returns before the holidays"]


def test_the_shipped_eval_history_has_a_trend() -> None:
    results = read(evals := Path(str(files("ctxsteward.console") / "data" / "demo-evals.jsonl")))
    assert len(results) >= 3
    assert len({result.suite for result in results}) == 1
    drift = [metric.value for result in results for metric in result.metrics if metric.name == "goal_drift"]
    assert len(set(drift)) > 1
    assert json.loads(evals.read_text(encoding="utf-8").splitlines()[0])["suite"] == "goal-continuity"
