"""The file of people: made, and added to, without ever holding a token.

A token is 32 random bytes; its public key goes into the file (`ctxsteward.steward.actors`). The file is rewritten
whole, in a new file that takes its place, and checked by the reader that nights use. Raises `InputError`.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ctxsteward.schemas import InputError
from ctxsteward.steward.actors import Actor, Actors, token_signer

from .steward_place import ACTORS_FILE, actors_path

if TYPE_CHECKING:
    from rich.console import Console

SALT_BYTES, TOKEN_BYTES = 16, 32
MODE = 0o600
_NAME = re.compile(r"[\w.@-]{1,80}")
HEAD = "# Who may approve (reviewer) and promote or roll back (operator). No secret is in this file.\n"


def listed(path: str | None, store: str) -> dict[str, list[str]]:
    """Everybody with their roles, by name."""
    found = actors_path(path, store)
    if found is None:
        raise InputError("nobody is configured; begin with `ctxsteward steward actors --add NAME --role reviewer`")
    return {name: list(actor.roles) for name, actor in sorted(Actors.load(found).actors.items())}


def show(console: Console, people: Mapping[str, Sequence[str]]) -> None:
    """A row each."""
    from . import tables

    table = tables.grid("who", "roles")
    for name, roles in people.items():
        table.add_row(tables.shown(name), ", ".join(roles))
    console.print(table)


def target(path: str | None, store: str) -> Path:
    """The file that is named or told, else the one beside a ``file:`` store."""
    told = actors_path(path, store)
    if told is not None:
        return told
    scheme, _, folder = store.partition(":")
    if scheme == "file" and folder:
        return Path(folder) / ACTORS_FILE
    raise InputError(f"--store {store}: its people stand elsewhere; name the file with --actors")


def add(path: Path, name: str, roles: Sequence[str]) -> str:
    """Write somebody with roles and a new key; their token."""
    if not _NAME.fullmatch(name):
        raise InputError(f"actor {name!r:.80}: use letters, digits, '.', '_', '@' and '-', at most 80")
    before = Actors.load(path) if path.exists() else Actors(salt=secrets.token_hex(SALT_BYTES), actors={})
    token = secrets.token_urlsafe(TOKEN_BYTES)
    key = token_signer(token, before.salt).key
    made = Actor.model_validate({"roles": tuple(dict.fromkeys(roles)), "key": key})
    _write(path, Actors(salt=before.salt, actors={**before.actors, name: made}))
    return token


def check_free(path: Path) -> None:
    """Refuse a file for a token that is there already, before anybody is given another one."""
    if path.exists() or path.is_symlink():
        raise InputError(f"--token-file {path}: file exists; name one that does not")


def keep_token(path: Path, token: str) -> None:
    """A file that only its owner reads; one that is there is not overwritten."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(f"{token}\n")


def _write(path: Path, actors: Actors) -> None:
    people = "".join(
        f"  {name!r}: {{roles: [{', '.join(one.roles)}], key: '{one.key}'}}\n" for name, one in actors.actors.items()
    )
    text = f"{HEAD}salt: '{actors.salt}'\nactors:\n{people}"
    Actors.from_yaml(text, source=str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
