"""MCP server over stdio with three bounded, read-only tools for one session.

The person who starts the server names store, tenant and session; the client cannot. Each call reads the messages that
other processes have appended. Only this module needs the `mcp` package (extra `mcp`).
"""

from __future__ import annotations

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
    "Reads one stored conversation: search_context finds messages, resolve_reference reads them by reference, "
    "what_was_dropped lists what compactions left out."
)
DROPPED = what_was_dropped_tool()["function"]["name"]
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def serve(session: Session, version: str) -> None:
    """Answer requests over stdin and stdout until the client disconnects."""

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        functions = [wire["function"] for wire in _tools()]
        return ListToolsResult(
            tools=[
                Tool(
                    name=function["name"],
                    description=function["description"],
                    input_schema=function["parameters"],
                    annotations=_READ_ONLY,
                )
                for function in functions
            ]
        )

    async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        return answered(session, params.name, params.arguments or {})

    async def answer_all() -> None:
        server: Server[Any] = Server(
            "ctxsteward", version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
        )
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    run(answer_all)


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
        return CallToolResult(content=[TextContent(type="text", text=f"error: {error}")], is_error=True)
    if answer is None:
        text = f"error: no tool {name[:64]!r}; there are {', '.join(wire['function']['name'] for wire in _tools())}"
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
    return CallToolResult(content=[TextContent(type="text", text=answer)], is_error=False)
