"""A service in this process, for tests: its client, its log, and a driver for answers that do not end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import FastAPI
from starlette.testclient import TestClient

from ctxsteward.console.service.access import TokenFile, add_token
from ctxsteward.console.service.app import create_app
from ctxsteward.console.service.desk import ServiceLimits, ServiceSettings
from ctxsteward.envelope import Store
from ctxsteward.envelope.testing import memory_store

HOST = "http://127.0.0.1"
NOON = "2026-11-24T12:00:00Z"


class Served(NamedTuple):
    """A service and who talks to it."""

    app: FastAPI
    client: TestClient
    store: Store
    log: list[dict[str, Any]]

    def get(self, path: str, code: int = 200, **more: Any) -> Any:
        return self._answer("GET", path, code, **more)

    def post(self, path: str, body: Any = None, code: int = 200, **more: Any) -> Any:
        return self._answer("POST", path, code, **({} if body is None else {"json": body}), **more)

    def _answer(self, method: str, path: str, code: int, **more: Any) -> Any:
        answer = self.client.request(method, path, **more)
        assert answer.status_code == code, answer.text
        return answer.json()

    def say(self, session: str, *texts: str) -> Any:
        """Append user messages, each with an answer."""
        rows = [
            {"message": {"role": role, "content": text}}
            for said in texts
            for role, text in (("user", said), ("assistant", f"Noted: {said}"))
        ]
        return self.post(f"/api/sessions/{session}/messages", {"messages": rows})


def served(
    store: Store | None = None, *, limits: ServiceLimits | None = None, token: str | None = None, **settings: Any
) -> Served:
    """A service over a store in memory."""
    log: list[dict[str, Any]] = []
    made = memory_store() if store is None else store
    free = replace(limits or ServiceLimits(), requests_per_second=(limits and limits.requests_per_second) or None)
    if limits is not None:
        free = limits
    app = create_app(ServiceSettings(store=made, log=log.append, now=lambda: NOON, limits=free, **settings))
    client = TestClient(app, base_url=HOST, follow_redirects=False, raise_server_exceptions=True)
    if token is not None:
        client.headers["authorization"] = f"Bearer {token}"
    return Served(app, client, made, log)


FREE = ServiceLimits(requests_per_second=None)


class Tenants(NamedTuple):
    """A service of two tenants."""

    served: Served
    path: Path
    acme: str
    """A token of tenant acme, to read and write."""
    other: str
    """The same of another tenant."""
    reader: str
    steward: str

    def as_(self, token: str) -> dict[str, str]:
        return {"authorization": f"Bearer {token}"}


def tenants(folder: Path, **settings: Any) -> Tenants:
    path = folder / "tokens.yaml"
    acme = add_token(path, "acme app", "acme", ("read", "write"))
    other = add_token(path, "other app", "other", ("read", "write"))
    reader = add_token(path, "acme reader", "acme", ("read",))
    steward = add_token(path, "acme steward", "acme", ("read", "steward"))
    settings.setdefault("limits", FREE)
    return Tenants(served(tokens=TokenFile(path, clock=lambda: 0.0), **settings), path, acme, other, reader, steward)


# -- answers that do not end ----------------------------------------------------------------------------------------


class Listening:
    """One request that is under way."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.gone = asyncio.Event()
        self.text = ""

    async def until(self, is_there: Callable[[str], bool]) -> str:
        """What has come of the body once it is so."""
        async with asyncio.timeout(20):
            while not is_there(self.text):
                message = await self.messages.get()
                self.text += message.get("body", b"").decode()
        return self.text


@asynccontextmanager
async def asked(
    app: FastAPI, path: str, headers: Mapping[str, str] | None = None, query: str = ""
) -> AsyncIterator[Listening]:
    """GET this, and look at the answer while it comes."""
    listening = Listening()

    async def receive() -> dict[str, Any]:
        await listening.gone.wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), *((k.encode(), v.encode()) for k, v in (headers or {}).items())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    task = asyncio.create_task(app(scope, receive, listening.messages.put))  # type: ignore[arg-type]
    try:
        yield listening
    finally:
        listening.gone.set()
        await asyncio.wait_for(task, 20)


def events_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Kind and data of each event."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found
