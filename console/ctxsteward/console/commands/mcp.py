"""``ctxsteward mcp``: the tools of one session for any MCP client."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec

import click

from ..terminal import common, open_stored, stored_session, telemetry


@click.command()
@click.option("--session", "session_id", required=True, metavar="ID", help="Session that the tools read.")
@telemetry
@common
def mcp(session_id: str, as_json: bool, store: str, tenant: str) -> None:
    """Serve search_context and resolve_reference of one session to an MCP client, over stdin and stdout.

    Nothing is written, and no other session can be read. --json changes nothing: the protocol is JSON.
    """

    if find_spec("mcp") is None:
        raise click.ClickException("mcp: the `mcp` package is missing; pip install 'ctxsteward[mcp]'")
    with open_stored(store) as opened:
        session = stored_session(opened, session_id, tenant)

        from ..mcp_server import serve

        serve(session, version("ctxsteward"))
