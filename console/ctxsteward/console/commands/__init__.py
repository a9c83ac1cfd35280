"""Tables of the commands: for each group, the module and the short help of every command.

A command's module is imported when the command runs, not when help or a completion lists it. So it imports its
dependencies at its top, like any other module, and ``ctxsteward --help`` imports click alone.
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
    """``module:attribute``, relative to the package `ctxsteward.console`."""
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
        command: click.Command = getattr(import_module(f"..{module}", __package__), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=self.table, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.table[name].short_help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self.table[name].short_help) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


EVALS = {
    "compare": LazyCommand("commands.results:compare", "Two runs, paired by scenario: what differs, and how surely."),
    "from-transcripts": LazyCommand("commands.catalogue:from_transcripts", "Draft a suite from your own transcripts."),
    "list": LazyCommand("commands.catalogue:list_suites", "The suites, what they hold to numbers, and their gates."),
    "merge": LazyCommand("commands.results:merge", "Put the parts of a run together, and judge the whole."),
    "subjects": LazyCommand("commands.catalogue:list_subjects", "Who can be judged, and how to name your own."),
    "recall": LazyCommand("commands.measures:recall", "Is the evidence for each question in the envelope?"),
    "rules": LazyCommand("commands.rules:rules", "Which known rules does a night learn from agent runs?"),
    "survival": LazyCommand("commands.survival:survival", "Does the window still show what was said long ago?"),
    "run": LazyCommand("commands.suites:run", "Play a suite's scenarios; with --gate, exit 1 where a gate fails."),
}

STEWARD = {
    "actors": LazyCommand("steward.actors:actors", "Who may approve and operate; add somebody."),
    "digest": LazyCommand("steward.digest:digest", "A week in sentences: in force, out, waiting, rejected, errors."),
    "doctor": LazyCommand(
        "steward.doctor:doctor", "Check configuration, keys, packages, Prefect, lease, ledger, spans."
    ),
    "drift": LazyCommand("steward.versions:drift", "How far the profile has drifted, with the patch."),
    "forget": LazyCommand("steward.quarantine:forget", "Erase what was harvested from a session or a person."),
    "log": LazyCommand("steward.versions:log", "Who committed which version, when and why."),
    "promote": LazyCommand("steward.promotion:promote", "Bring an approved request or record into force."),
    "propose": LazyCommand("steward.promotion:propose", "Stage a change of what is in force, for people to approve."),
    "quarantine": LazyCommand("steward.quarantine:quarantine", "Transcripts and records that were refused, and why."),
    "review": LazyCommand("steward.review:review", "What waits for people, and why; one key to answer."),
    "rollback": LazyCommand("steward.promotion:rollback", "Bring an earlier version back."),
    "run": LazyCommand("steward.night:run", "Run one night over whatever transcripts are due."),
    "show": LazyCommand("steward.versions:show", "What is in force, as YAML to edit and propose."),
    "status": LazyCommand("steward.status:status", "What is in force, the last nights, who is at it now."),
    "why": LazyCommand("steward.questions:why", "The spans that a record rests on, quoted."),
}

COMMANDS = {
    "audit": LazyCommand("commands.inspection:audit", "Compare what was sent with the envelope it should have been."),
    "backfill": LazyCommand(
        "commands.backfill:backfill", "Snapshot personas, policies and meta as versioned envelopes."
    ),
    "blame": LazyCommand("commands.blame:blame", "Name what in the prompt carries the words of a reply."),
    "build": LazyCommand("commands.replay:build", "Build the envelope for a transcript's next call."),
    "cards": LazyCommand("commands.cards:cards", "List context cards, make them again."),
    "completion": LazyCommand("cli:completion", "Print the tab-completion script of a shell."),
    "context": LazyCommand("commands.context:context", "Show what a cascade's phase would see; --grid: a session."),
    "costs": LazyCommand("commands.costs:costs", "What each compaction cost and saved, as predicted and as it came."),
    "demo": LazyCommand("commands.demo:demo", "Tell the whole story on shipped data, offline."),
    "evals": LazyCommand("commands:evals", "Long-horizon suites held to gates; recall on your data."),
    "export": LazyCommand(
        "commands.export:export", "Write sessions, calls and approved lines in forms that other programs read."
    ),
    "handoff": LazyCommand("commands.run:handoff", "Say where a session's work stands; begin a new one from it."),
    "import": LazyCommand("commands.export:import_", "Read a session that `export session` wrote into a store."),
    "mcp": LazyCommand("commands.inspection:mcp", "Serve tools that read sessions over MCP (stdio)."),
    "replay": LazyCommand("commands.replay:replay", "Build once for every model call, or rebuild a past envelope."),
    "report": LazyCommand("commands.inspection:report", "Show what compactions kept and lost."),
    "resolve": LazyCommand("commands.inspection:resolve", "Show the original that a reference names."),
    "run": LazyCommand("commands.run:run", "Play a cascade against a script or a model, and price it."),
    "runs": LazyCommand("commands.runs:runs", "What the runs of cascades cost, each or by cascade."),
    "schema": LazyCommand("commands.inspection:schema", "Print a published JSON Schema, or their names."),
    "serve": LazyCommand("commands.serve:serve", "Serve the JSON API and the pages over HTTP."),
    "steward": LazyCommand("commands:steward", "Harvest insights from transcripts, through gates."),
    "store": LazyCommand("commands.store:store", "Check a store, collect garbage, list, count, forget."),
    "try": LazyCommand("commands.trial:try_", "What would budgets save and hide on your own transcripts? One page."),
    "view": LazyCommand("commands.view:view", "See what calls were shown: a grid, or a folder of pages."),
}


@click.group(cls=LazyGroup, table=EVALS)
def evals() -> None:
    """Hold what envelopes show, and what they cost, to numbers."""


@click.group(cls=LazyGroup, table=STEWARD)
def steward() -> None:
    """Read transcripts at night, and change what is governed only through gates.

    Exit codes: 0 fine; 1 the check found something; 2 bad usage or input; 3 blocked, a person must look (or another
    night is under way); 4 rolled back.
    """
