"""``ctxsteward steward actors``: the file of people, listed and added to, without ever holding a token.

A token is 32 random bytes; its public key goes into the file (`ctxsteward.steward.release.actors`). The file is
rewritten whole, in a new file that takes its place, and checked by the reader that nights use. Raises `InputError`.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console

from ctxsteward.schemas import InputError
from ctxsteward.steward.release import Actor, Actors, token_signer

from ..terminal import common, print_json, table_console, tables
from .context import ACTORS_FILE, actors_path
from .records import actors_option

ROLES = ("reviewer", "operator")
SALT_BYTES, TOKEN_BYTES = 16, 32
SECRET_FILE_MODE = 0o600
_ACTOR_NAME = re.compile(r"[\w.@-]{1,80}")
ACTORS_FILE_HEAD = "# Who may approve (reviewer) and promote or roll back (operator). No secret is in this file.\n"


def list_actors(path: str | None, store: str) -> dict[str, list[str]]:
    """Everybody with their roles, by name."""
    file = actors_path(path, store)
    if file is None:
        raise InputError("nobody is configured; begin with `ctxsteward steward actors --add NAME --role reviewer`")
    return {name: list(actor.roles) for name, actor in sorted(Actors.load(file).actors.items())}


def show_actors(console: Console, people: Mapping[str, Sequence[str]]) -> None:
    """A row each."""
    table = tables.grid("who", "roles")
    for name, roles in people.items():
        table.add_row(tables.shown(name), ", ".join(roles))
    console.print(table)


def actors_file(path: str | None, store: str) -> Path:
    """The file to write to: the one named by option or environment, else the one beside a ``file:`` store."""
    told = actors_path(path, store)
    if told is not None:
        return told
    scheme, _, folder = store.partition(":")
    if scheme == "file" and folder:
        return Path(folder) / ACTORS_FILE
    raise InputError(f"--store {store}: its people stand elsewhere; name the file with --actors")


def add_actor(path: Path, name: str, roles: Sequence[str]) -> str:
    """Add somebody with roles and a new key to the file; return their token."""
    if not _ACTOR_NAME.fullmatch(name):
        raise InputError(f"actor {name!r:.80}: use letters, digits, '.', '_', '@' and '-', at most 80")
    before = Actors.load(path) if path.exists() else Actors(salt=secrets.token_hex(SALT_BYTES), actors={})
    token = secrets.token_urlsafe(TOKEN_BYTES)
    key = token_signer(token, before.salt).key
    actor = Actor.model_validate({"roles": tuple(dict.fromkeys(roles)), "key": key})
    _write_actors(path, Actors(salt=before.salt, actors={**before.actors, name: actor}))
    return token


def check_token_file(path: Path) -> None:
    """Refuse a file for a token that is there already, before anybody is given another one."""
    if path.exists() or path.is_symlink():
        raise InputError(f"--token-file {path}: file exists; name one that does not")


def write_token_file(path: Path, token: str) -> None:
    """A file that only its owner reads; one that is there is not overwritten."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_FILE_MODE)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(f"{token}\n")


def _write_actors(path: Path, actors: Actors) -> None:
    people = "".join(
        f"  {name!r}: {{roles: [{', '.join(actor.roles)}], key: '{actor.key}'}}\n"
        for name, actor in actors.actors.items()
    )
    text = f"{ACTORS_FILE_HEAD}salt: '{actors.salt}'\nactors:\n{people}"
    Actors.from_yaml(text, source=str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


@click.command()
@click.option("--add", "name", metavar="NAME", help="Give NAME roles and a new token; it is shown once, kept nowhere.")
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Of whoever is added; repeatable.")
@click.option("--token-file", type=click.Path(), metavar="FILE", help="Put the token there (mode 600), not on stdout.")
@actors_option
@common
@click.pass_context
def actors(
    ctx: click.Context, name: str | None, roles: tuple[str, ...], token_file: str | None, actors: str | None,
    as_json: bool, store: str, tenant: str,
) -> None:  # fmt: skip
    """List who may approve (reviewer) and who may promote and roll back (operator), or add somebody.

    They stand in a YAML file of names, roles and public keys.
    """

    if name is None:
        if roles or token_file:
            raise click.UsageError("--role and --token-file go with --add", ctx)
        people = list_actors(actors, store)
        print_json(people) if as_json else show_actors(table_console(), people)
        return
    if not roles:
        raise click.UsageError("say what they may do: --role reviewer, --role operator, or both", ctx)
    target = actors_file(actors, store)
    if token_file is not None:
        check_token_file(Path(token_file))
    token = add_actor(target, name, roles)
    if token_file is not None:
        write_token_file(Path(token_file), token)
    result = {"file": str(target), "name": name, "roles": list(roles), "token": None if token_file else token}
    if as_json:
        print_json(result)
        return
    click.echo(f"{name} is {' and '.join(roles)} in {target}")
    where = f"in {token_file}" if token_file else f"(shown this once): {token}"
    click.echo(f"their token {where}")
