"""``ctxsteward mcp``: the tools of one session for any MCP client.

``ctxsteward schema``: the published JSON Schemas.

``ctxsteward completion``: the script that gives a shell tab completion.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import click

from ..options import common, telemetry
from ..output import print_json


@click.command(short_help="Serve one session's tools over MCP (stdio).")
@click.option("--session", "session_id", required=True, metavar="ID", help="Session that the tools read.")
@telemetry
@common
def mcp(session_id: str, as_json: bool, store: str, tenant: str) -> None:
    """Serve search_context and resolve_reference of one session to an MCP client, over stdin and stdout.

    Nothing is written, and no other session can be read. --json changes nothing: the protocol is JSON.
    """
    from ..stores import open_stored, stored_session

    if find_spec("mcp") is None:
        raise click.ClickException("mcp: the `mcp` package is missing; pip install 'ctxsteward[mcp]'")
    with open_stored(store) as opened:
        session = stored_session(opened, session_id, tenant)
        from importlib.metadata import version

        from ..mcp_server import serve

        serve(session, version("ctxsteward"))


def _complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Sequence[str]:
    from ctxsteward.schemas.publish import names

    return [name for name in names() if name.startswith(incomplete)]


@click.command(short_help="Print a published JSON Schema, or their names.")
@click.argument("name", required=False, shell_complete=_complete)
@common
def schema(name: str | None, as_json: bool, store: str, tenant: str) -> None:
    """Print the JSON Schema NAME, or the names of all."""
    from ctxsteward.schemas import InputError
    from ctxsteward.schemas.publish import names
    from ctxsteward.schemas.publish import schema as published

    if name is None:
        if as_json:
            print_json(list(names()))
        else:
            click.echo("\n".join(names()))
    elif name in names():
        print_json(published(name), indent=None if as_json else 2)
    else:
        raise InputError(f"schema {name}: no such schema; one of: {', '.join(names())}")


@click.command(short_help="Print the tab-completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the tab-completion script for SHELL.

    \b
    bash:  eval "$(ctxsteward completion bash)"      in ~/.bashrc
    zsh:   eval "$(ctxsteward completion zsh)"       in ~/.zshrc
    fish:  ctxsteward completion fish | source       in config.fish
    """
    from click.shell_completion import get_completion_class

    root = ctx.find_root()
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(root.command, {}, "ctxsteward", "_CTXSTEWARD_COMPLETE")
    click.echo(script.source_template % script.source_vars())
