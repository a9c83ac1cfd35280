"""Root of the command line: its commands, and the exit code and message of a failure.

Exit codes: 0 fine; 1 the check found something; 2 bad usage or input; 3 blocked, a person must look; 4 rolled
back; 130 interrupted; 141 the reader of our output went away. Bad input prints one line on stderr, never a
traceback.

Only click is imported here, so that every command starts fast; a command's module is imported when the command runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import get_completion_class

from .commands import COMMANDS, LazyGroup

INTERRUPTED, BROKEN_PIPE = 130, 141


class Root(LazyGroup):
    """Group that turns an error into one line on stderr and an exit code, also under click's own test runner."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        extra.update(windows_expand_args=windows_expand_args)
        try:
            result = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            code = result if isinstance(result, int) else 0
        except click.exceptions.Abort:
            code = INTERRUPTED
        except Exception as error:
            from .terminal.failures import failure_line, report_failure

            line = failure_line(error)
            if line is None:
                raise
            code = report_failure(line)
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None and not sys.stdout.closed:  # `mcp` closes stdin and stdout at its end
                sys.stdout.flush()
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Otherwise the flush at exit would report the same pipe again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(BROKEN_PIPE) from None
        return result


@click.group(
    cls=Root,
    table=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success; 1 the check found something; 2 bad usage or input; 3 a person must decide; "
    "4 rolled back.",
)
@click.version_option(package_name="ctxsteward", prog_name="ctxsteward", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Bounded, typed, cited context for language models, from a log that forgets nothing."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the tab-completion script for SHELL.

    \b
    bash:  eval "$(ctxsteward completion bash)"      in ~/.bashrc
    zsh:   eval "$(ctxsteward completion zsh)"       in ~/.zshrc
    fish:  ctxsteward completion fish | source       in config.fish
    """
    root = ctx.find_root()
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(root.command, {}, "ctxsteward", "_CTXSTEWARD_COMPLETE")
    click.echo(script.source_template % script.source_vars())


def main() -> None:
    """Run the command line."""
    cli(prog_name="ctxsteward")
