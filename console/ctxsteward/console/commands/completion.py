"""``ctxsteward completion``: the script that gives a shell tab completion."""

from __future__ import annotations

import click


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
