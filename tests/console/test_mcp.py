"""`ctxsteward mcp` as a real client sees it: three tools of one session over stdio, read-only and bounded."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.recall.model_tools import DEFAULT_LIMIT_CHARS, MAX_LIMIT_CHARS

if find_spec("mcp") is None:
    pytest.skip("the extra `mcp` is not installed", allow_module_level=True)

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import get_default_environment, stdio_client

SECONDS = 60
SOURCES = [part for part in sys.path if part]
COMMAND = [sys.executable, "-c", "from ctxsteward.console.cli import main; main()", "mcp"]
ENVIRONMENT = {**get_default_environment(), "PYTHONPATH": ":".join(SOURCES)}


@pytest.fixture
def store(tmp_path: Path) -> str:
    uri = f"file:{tmp_path / 'store'}"
    with open_store(uri) as opened:
        for id, tenant, secret in (("s", "default", "4711"), ("other", "default", "9999"), ("s", "acme", "1234")):
            session = opened.session(id, tenant=tenant)
            session.append({"role": "user", "content": f"the vault code is {secret}"}, ts="2026-01-01T09:00:00")
            session.append({"role": "assistant", "content": "noted\n" + "long " * 10_000})
    return uri


@asynccontextmanager
async def connected(store: str, *args: str, stateless: bool = False) -> AsyncIterator[ClientSession]:
    """A client, with the handshake of earlier revisions or, stateless, by that of 2026-07-28, which has none."""
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--store", store, "--session", "s", *args], env=ENVIRONMENT
    )
    with anyio.fail_after(SECONDS):
        async with stdio_client(server) as (incoming, outgoing), ClientSession(incoming, outgoing) as client:
            await (client.discover() if stateless else client.initialize())
            yield client


async def said(client: ClientSession, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    return content.text, bool(result.is_error)  # type: ignore[union-attr]


def digests(store: str) -> dict[str, str]:
    """Every file of the store but SQLite's own shared memory."""
    folder = Path(store.removeprefix("file:"))
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_client_sees_three_read_only_bounded_tools_of_this_session_alone(store: str) -> None:
    before = digests(store)

    async def talk() -> None:
        async with connected(store) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["search_context", "resolve_reference", "what_was_dropped"]
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
            assert "session" not in str([tool.input_schema for tool in tools])
            assert await said(client, "search_context", {"query": "vault code", "k": 1}) == (
                "2026-01-01 §1-§2:\n§1 user: the vault code is 4711",
                False,
            )
            assert await said(client, "resolve_reference", {"ref": "§1"}) == ("the vault code is 4711", False)
            for query in ("9999", "1234"):
                assert await said(client, "search_context", {"query": query}) == (
                    "nothing found; try other words",
                    False,
                )
            assert await said(client, "what_was_dropped", {}) == (
                "no compaction has left anything out of this conversation's window",
                False,
            )
            text, _ = await said(client, "resolve_reference", {"ref": "§1-§2"})
            assert len(text) <= DEFAULT_LIMIT_CHARS + 60
            text, _ = await said(client, "resolve_reference", {"ref": "§2", "limit": 10**9})
            assert len(text) <= MAX_LIMIT_CHARS + 60
            for name, arguments in (
                ("resolve_reference", {"ref": "§9"}),
                ("resolve_reference", {}),
                ("resolve_reference", {"ref": "§1", "session": "other"}),
                ("search_context", {"query": 7}),
                ("search_context", {"query": "x", "k": "many"}),
                ("search_context", {"query": "x", "shown": []}),
                ("what_was_dropped", {"words": 7}),
                ("what_was_dropped", {"k": 0}),
                ("what_was_dropped", {"offset": -1}),
                ("what_was_dropped", {"session": "other"}),
            ):
                text, _ = await said(client, name, arguments)
                assert text.startswith("error: "), (name, arguments, text)
            text, failed = await said(client, "append", {"text": "x"})
            assert (failed, text.startswith("error: no tool 'append'")) == (True, True)
            assert (await said(client, "search_context", {"query": "vault " * 150_000}))[0].startswith("2026-01-01")

    anyio.run(talk)
    assert digests(store) == before


@pytest.fixture
def compacted(store: str) -> str:
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=300))
    with open_store(store) as opened:
        for id, tenant, code in (("s", "default", 2000), ("other", "default", 5000)):
            session = opened.session(id, tenant=tenant)
            for number in range(60):
                text = f"Crate {number} weighs {code + number} kg and goes to berth-{number:02}."
                session.append({"role": "user", "content": text})
                session.append({"role": "assistant", "content": "Noted, it is on the list of today."})
                builder.build(session)
    return store


def test_what_compactions_dropped_is_listed_newest_first_by_words_and_in_pages(compacted: str) -> None:
    with open_store(compacted) as opened:
        reports = [event.report for event in opened.session("s").reports()]
    losses = list({(one.ref, one.text): one for report in reports for one in report.losses}.values())
    newest = [f"{one.kind} {one.ref}: {' '.join(one.text.split())}" for one in losses[::-1]]
    head = f"{len(reports)} compactions left {len(losses)} of what the originals say out of the window"

    async def talk() -> None:
        async with connected(compacted) as client:
            text, failed = await said(client, "what_was_dropped", {"k": 3})
            assert (failed, text.splitlines()) == (
                False,
                [f"{head}, the newest first:", *newest[:3], f"[{len(losses) - 3} more; offset=3]"],
            )
            paged: list[str] = []
            while len(paged) < len(losses):
                text, _ = await said(client, "what_was_dropped", {"k": 100, "offset": len(paged)})
                assert len(text) <= DEFAULT_LIMIT_CHARS + 160
                paged += [line for line in text.splitlines()[1:] if not line.startswith("[")]
            assert paged == newest
            text, _ = await said(client, "what_was_dropped", {"words": "berth-07 2007"})
            of_words = [line for line in text.splitlines()[1:] if not line.startswith("[")]
            assert next(line for line in of_words if "07" in line) == of_words[0]
            assert all("berth" in line or "2007" in line for line in of_words)
            ref = of_words[0].split()[1].removesuffix(":")
            assert (await said(client, "resolve_reference", {"ref": ref}))[0].startswith("Crate 7 ")
            assert (await said(client, "what_was_dropped", {"words": "5007"}))[0].endswith(
                ", 0 of them on these words:"
            )
            assert not any("50" in line.partition("weighs")[2][:3] for line in paged)

    anyio.run(talk)


def test_another_tenant_has_its_own(store: str) -> None:
    async def talk() -> None:
        async with connected(store, "--tenant", "acme") as client:
            assert await said(client, "resolve_reference", {"ref": "1"}) == ("the vault code is 1234", False)

    anyio.run(talk)


def test_with_several_sessions_each_call_names_its_own_and_no_other_is_read(store: str) -> None:
    with open_store(store) as opened:
        opened.session("third").append({"role": "user", "content": "the vault code is 5555"})

    async def talk() -> None:
        async with connected(store, "--session", "other", stateless=True) as client:
            tools = (await client.list_tools()).tools
            assert [tool.input_schema["properties"]["session"]["enum"] for tool in tools] == [["s", "other"]] * 3
            assert all("session" in tool.input_schema["required"] for tool in tools)
            for id, code in (("other", 9999), ("s", 4711), ("other", 9999)):  # in any order, on one connection
                text = await said(client, "resolve_reference", {"ref": "§1", "session": id})
                assert text == (f"the vault code is {code}", False)
            for handle in ({}, {"session": "third"}, {"session": ["s"]}):
                text, failed = await said(client, "resolve_reference", {"ref": "§1", **handle})
                assert (failed, text.endswith("name one of s, other as `session`")) == (True, True), text

    anyio.run(talk)


def test_the_list_of_tools_says_how_long_it_may_be_cached(store: str) -> None:
    async def talk() -> None:
        async with connected(store, stateless=True) as client:
            listed = await client.list_tools()
            assert (listed.ttl_ms, listed.cache_scope) == (3_600_000, "private")

    anyio.run(talk)


def test_a_client_that_goes_away_ends_the_server_quietly(store: str) -> None:
    args = [*COMMAND, "--session", "s", "--store", store]
    done = subprocess.run(args, env=ENVIRONMENT, input=b"", capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_what_another_process_appends_is_found_at_the_next_call(store: str) -> None:
    async def talk() -> None:
        async with connected(store) as client:
            assert (await said(client, "resolve_reference", {"ref": "§3"}))[0].startswith("error: ")
            with open_store(store) as opened:
                opened.session("s").append({"role": "user", "content": "the spare key hangs in the shed"})
            assert (await said(client, "resolve_reference", {"ref": "§3"}))[0] == "the spare key hangs in the shed"
            assert "§3 user" in (await said(client, "search_context", {"query": "spare key"}))[0]

    anyio.run(talk)
