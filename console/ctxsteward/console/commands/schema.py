"""``ctxsteward schema``: the published JSON Schemas."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..options import common
from ..output import print_json


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
