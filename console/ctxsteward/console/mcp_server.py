"""MCP server over stdio with three bounded, read-only tools for the sessions that its starter names.

The person who starts the server names store, tenant and sessions; the client reads no other. Where several are named,
each call carries its session as an argument, so that the server keeps nothing between calls: the stateless protocol of
2026-07-28. Each call reads the messages that other processes have appended. The list of tools says how long it may be
cached. Only this module needs the `mcp` package (extra `mcp`).

Source: Model Context Protocol, revision 2026-07-28 (`ttlMs` and `cacheScope` of list results).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anyio import run
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from ctxsteward.envelope import Session, answer_call, model_tools, what_was_dropped
from ctxsteward.envelope.recall.model_tools import what_was_dropped_tool
from ctxsteward.schemas import ContextError
from ctxsteward.schemas.message import Wire

INSTRUCTIONS = (
    "Reads stored conversations: search_context finds messages, resolve_reference reads them by reference, "
    "what_was_dropped lists what compactions left out."
)
DROPPED = what_was_dropped_tool()["function"]["name"]
TTL_MS = 3_600_000
"""How long a client may keep the list of tools, which is the same until the server is started anew."""
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def serve(sessions: Mapping[str, Session], version: str) -> None:
    """Answer requests over stdin and stdout until the client disconnects."""

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        functions = [wire["function"] for wire in _tools()]
        return ListToolsResult(
            tools=[
                Tool(
                    name=function["name"],
                    description=function["description"],
                    input_schema=_with_handle(function["parameters"], list(sessions)),
                    annotations=_READ_ONLY,
                )
                for function in functions
            ],
            ttl_ms=TTL_MS,
            cache_scope="private",  # names of sessions are the user's
        )

    async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        arguments = dict(params.arguments or {})
        id = next(iter(sessions)) if len(sessions) == 1 else arguments.pop(HANDLE, None)
        session = sessions.get(id) if isinstance(id, str) else None
        if session is None:
            return _failed(f"no session {id!r:.80}; name one of {', '.join(sessions)} as `{HANDLE}`")
        return answered(session, params.name, arguments)

    async def answer_all() -> None:
        server: Server[Any] = Server(
            "ctxsteward", version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
        )
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    run(answer_all)


HANDLE = "session"
"""Argument that names the session of a call, where several are served."""


def _with_handle(schema: Wire, ids: list[str]) -> Wire:
    """Return the schema of a tool's arguments, with the session where the server has several."""
    if len(ids) == 1:
        return schema
    handle = {"type": "string", "enum": ids, "description": "The conversation to read."}
    properties = {HANDLE: handle, **schema["properties"]}
    return {**schema, "properties": properties, "required": [HANDLE, *schema.get("required", ())]}


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=f"error: {text}")], is_error=True)


def _tools() -> list[Wire]:
    return [*model_tools(), what_was_dropped_tool()]


def answered(session: Session, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """Return the result of one call. The client has no envelope, so no message counts as already shown."""
    try:
        session.refresh()
        if name == DROPPED:
            answer: str | None = what_was_dropped(session, **arguments)
        else:
            answer = answer_call(session, name, arguments, shown=frozenset())
    except ContextError as error:
        return _failed(str(error))
    if answer is None:
        return _failed(f"no tool {name[:64]!r}; there are {', '.join(wire['function']['name'] for wire in _tools())}")
    return CallToolResult(content=[TextContent(type="text", text=answer)], is_error=False)
