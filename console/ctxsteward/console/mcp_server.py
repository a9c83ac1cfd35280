"""An MCP server over stdio: the two tools of one session, bounded, read-only.

The client names no store, tenant or session: the person who starts the server does. What another process appends is
seen at the next call. Only this module needs the `mcp` package (extra `mcp`).
"""

from __future__ import annotations

from typing import Any

from anyio import run
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations

from ctxsteward.envelope import Session, answer_call, model_tools
from ctxsteward.schemas import ContextError

INSTRUCTIONS = (
    "Reads one stored conversation: search_context finds messages, resolve_reference reads them by reference."
)
_READ_ONLY = ToolAnnotations(readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False)


def serve(session: Session, version: str) -> None:
    """Answer on stdin and stdout until the client goes away."""
    run(_serve, _server(session), version)


async def _serve(server: Server[Any, Any], version: str) -> None:
    capabilities = server.get_capabilities(NotificationOptions(), {})
    options = InitializationOptions(
        server_name="ctxsteward", server_version=version, capabilities=capabilities, instructions=INSTRUCTIONS
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, options)


def _server(session: Session) -> Server[Any, Any]:
    server: Server[Any, Any] = Server("ctxsteward")

    async def list_tools() -> list[Tool]:
        return [_tool(wire["function"]) for wire in model_tools()]

    async def call_tool(name: str, arguments: dict[str, Any]) -> CallToolResult:
        return answered(session, name, arguments)

    server.list_tools()(list_tools)  # type: ignore[no-untyped-call]
    server.call_tool(validate_input=False)(call_tool)  # ours answers wrong arguments in words a model can act on
    return server


def _tool(function: dict[str, Any]) -> Tool:
    return Tool(
        name=function["name"],
        description=function["description"],
        inputSchema=function["parameters"],
        annotations=_READ_ONLY,
    )


def answered(session: Session, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """The result of one call; the client holds no window of ours, so nothing counts as shown already."""
    try:
        session.refresh()
        answer = answer_call(session, name, arguments, shown=frozenset())
    except ContextError as error:
        return CallToolResult(content=[TextContent(type="text", text=f"error: {error}")], isError=True)
    if answer is None:
        text = f"error: no tool {name[:64]!r}; there are {' and '.join(w['function']['name'] for w in model_tools())}"
        return CallToolResult(content=[TextContent(type="text", text=text)], isError=True)
    return CallToolResult(content=[TextContent(type="text", text=answer)], isError=False)
