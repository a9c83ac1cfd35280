"""Groups of commands whose modules are imported when a command is run, not when help or a completion lists them.

So a command module imports what it runs on at its top, like any other module, and ``ctxsteward --help`` imports click
alone. The table of a group is also where the short help of its commands stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem


class LazyCommand(NamedTuple):
    """A command that is not imported yet."""

    target: str
    """``module:attribute``, below this package."""
    short_help: str


class LazyGroup(click.Group):
    """A group over a table of commands."""

    def __init__(self, *args: Any, table: Mapping[str, LazyCommand], **more: Any) -> None:
        super().__init__(*args, **more)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name].target.partition(":")
        command: click.Command = getattr(import_module(f".{module}", __package__), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.table[name].short_help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self.table[name].short_help) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)
