"""``ctxsteward schema``: the published JSON Schemas."""

from __future__ import annotations

import click

from ctxsteward.schemas import InputError, names, schema as published

from ..terminal import common, completer, print_json


@click.command()
@click.argument("name", required=False, shell_complete=completer(names))
@common
def schema(name: str | None, as_json: bool, store: str, tenant: str) -> None:
    """Print the JSON Schema NAME, or the names of all."""
    if name is None:
        if as_json:
            print_json(list(names()))
        else:
            click.echo("\n".join(names()))
    elif name in names():
        print_json(published(name), indent=None if as_json else 2)
    else:
        raise InputError(f"schema {name}: no such schema; one of: {', '.join(names())}")
