"""``ctxsteward steward actors``: list and change the file of people, which never holds a token.

A token is 32 random bytes; its public key goes into the file (`ctxsteward.steward.release.actors`). The file is
rewritten whole, in a new file that takes its place, and checked by the reader that nights use.

Once the file has a reviewer, each addition, removal and change of a token needs a reviewer's signature. The store
checks it again (`ctxsteward.store` `people`), so a line written by hand has no effect. Raises `InputError`,
`ActionRefused`.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from ctxsteward.schemas import InputError
from ctxsteward.steward.release.actors import ActionRefused, Actor, Actors, RemovedActor, signed_person, token_signer
from ctxsteward.store.profiles.people import PersonStatement

from ..terminal.options import json_option, store_option
from ..terminal.output import print_json, table_console
from ..terminal.tables import grid
from .context import ACTORS_FILE, actors_path, read_token
from .records import actors_option, as_actor, token as token_option

ROLES = ("reviewer", "operator")
SALT_BYTES, TOKEN_BYTES = 16, 32
SECRET_FILE_MODE = 0o600
_ACTOR_NAME = re.compile(r"[\w.@-]{1,80}")
ACTORS_FILE_HEAD = "# Who may approve (reviewer) and promote or roll back (operator). No secret is in this file.\n"


def actors_file(path: str | None, store: str) -> Path:
    """The file to write to: the one named by option or environment, else the one beside a ``file:`` store."""
    named = actors_path(path, store)
    if named is not None:
        return named
    scheme, _, folder = store.partition(":")
    if scheme == "file" and folder:
        return Path(folder) / ACTORS_FILE
    raise InputError(f"--store {store}: its people stand elsewhere; name the file with --actors")


class Voucher(NamedTuple):
    """The reviewer who vouches for a change of the file, and their token."""

    name: str | None
    secret: str


def add_actor(path: Path, name: str, roles: Sequence[str], by: Voucher | None = None) -> str:
    """Add somebody with roles and a new key to the file; return their token."""
    if not _ACTOR_NAME.fullmatch(name):
        raise InputError(f"actor {name!r:.80}: use letters, digits, '.', '_', '@' and '-', at most 80")
    before = _read_actors(path)
    if name in before.actors:
        raise InputError(f"actor {name!r} is there already; give them another token with --new-token {name}")
    return _write_person(path, before, name, roles, by)


def renew_actor(path: Path, name: str, roles: Sequence[str] = (), by: Voucher | None = None) -> str:
    """Give somebody a new key, and other roles where some are named; return their token."""
    before = _read_actors(path)
    return _write_person(path, before, name, roles or before.named(name).roles, by)


def remove_actor(path: Path, name: str, by: Voucher | None = None) -> None:
    """Take somebody out of the file; what they approved before stays approved."""
    before = _read_actors(path)
    standing = before.named(name)
    left = {other: actor for other, actor in before.actors.items() if other != name}
    if "reviewer" in standing.roles and not has_reviewer(Actors(salt=before.salt, actors=left)):
        raise InputError(f"{name!r} is the last reviewer; add another one first")
    signed = _vouched(before, name, None, by)
    removed = dict(before.removed)
    if signed is not None:
        removed[name] = RemovedActor(key=standing.key, by=signed.by, signature=signed.signature)
    _write_actors(path, Actors(salt=before.salt, actors=left, removed=removed))


def has_reviewer(people: Actors) -> bool:
    """Whether there is somebody whose signature a change of the file needs."""
    return any("reviewer" in actor.roles for actor in people.actors.values())


def _read_actors(path: Path) -> Actors:
    return Actors.load(path) if path.exists() else Actors(salt=secrets.token_hex(SALT_BYTES), actors={})


def _write_person(path: Path, before: Actors, name: str, roles: Sequence[str], by: Voucher | None) -> str:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    fields: dict[str, object] = {"roles": tuple(dict.fromkeys(roles)), "key": token_signer(token, before.salt).key}
    signed = _vouched(before, name, Actor.model_validate(fields), by)
    if signed is not None:
        fields |= {"replaces": signed.replaces, "by": signed.by, "signature": signed.signature}
    people = {**before.actors, name: Actor.model_validate(fields)}
    _write_actors(path, Actors(salt=before.salt, actors=people, removed=before.removed))
    return token


def _vouched(before: Actors, name: str, actor: Actor | None, by: Voucher | None) -> PersonStatement | None:
    """Return a reviewer's signed statement of this change, or None if there is no reviewer yet."""
    if not has_reviewer(before):
        return None
    if by is None:
        reviewers = ", ".join(who for who, person in before.actors.items() if "reviewer" in person.roles)
        text = f"a change of who may approve needs a reviewer's signature ({reviewers})"
        raise ActionRefused("not_enrolled", f"{text}: --as NAME, with their token in CTXSTEWARD_TOKEN or --token")
    signer = token_signer(by.secret, before.salt)
    who = before.whose(signer, "reviewer", by.name)
    return signed_person(before.salt, name, actor, before.actors.get(name), who, signer)


def _write_actors(path: Path, actors: Actors) -> None:
    lines = [f"{ACTORS_FILE_HEAD}salt: '{actors.salt}'", "actors:" if actors.actors else "actors: {}"]
    lines += (f"  {name!r}: {_line(actor)}" for name, actor in actors.actors.items())
    if actors.removed:
        lines += ["removed:", *(f"  {name!r}: {_line(gone)}" for name, gone in actors.removed.items())]
    text = "\n".join(lines) + "\n"
    Actors.from_yaml(text, source=str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _line(person: Actor | RemovedActor) -> str:
    """A person in one line of YAML."""
    values = person.model_dump(mode="json", exclude_none=True)
    fields = (
        f"{name}: [{', '.join(value)}]" if isinstance(value, list) else f"{name}: {value!r}"
        for name, value in values.items()
    )
    return "{" + ", ".join(fields) + "}"


@click.command()
@click.option("--add", metavar="NAME", help="Give NAME roles and a new token, which is shown once and stored nowhere.")
@click.option("--remove", metavar="NAME", help="Remove NAME; earlier approvals stay valid.")
@click.option("--new-token", metavar="NAME", help="Replace the token of NAME.")
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Role of the added person; repeatable.")
@click.option("--token-file", type=click.Path(), metavar="FILE", help="Write the token here (mode 600), not to stdout.")
@as_actor
@token_option
@actors_option
@json_option
@store_option
@click.pass_context
def actors(
    ctx: click.Context,
    add: str | None,
    remove: str | None,
    new_token: str | None,
    roles: tuple[str, ...],
    token_file: str | None,
    actor: str | None,
    token: str | None,
    actors: str | None,
    as_json: bool,
    store: str,
) -> None:
    """List or change who may approve (reviewer) and who may promote and roll back (operator).

    A YAML file holds names, roles and public keys. Once it has a reviewer, each change needs a reviewer's token:
    --as NAME, and CTXSTEWARD_TOKEN, a line on standard input, or --token.
    """
    asked = [name for name in (add, remove, new_token) if name is not None]
    if not asked:
        if roles or token_file or actor or token:
            raise click.UsageError("--role, --token-file, --as and --token go with --add, --remove or --new-token", ctx)
        file = actors_path(actors, store)
        if file is None:
            raise InputError("nobody is configured; begin with `ctxsteward steward actors --add NAME --role reviewer`")
        people = {name: list(actor.roles) for name, actor in sorted(Actors.load(file).actors.items())}
        rows = ((name, ", ".join(has)) for name, has in people.items())
        print_json(people) if as_json else table_console().print(grid("who", "roles", rows=rows))
        return
    if len(asked) > 1:
        raise click.UsageError("give one of --add, --remove and --new-token", ctx)
    if add is not None and not roles:
        raise click.UsageError("say what they may do: --role reviewer, --role operator, or both", ctx)
    if remove is not None and (roles or token_file):
        raise click.UsageError("--role and --token-file go with --add or --new-token", ctx)
    target = actors_file(actors, store)
    if token_file is not None and os.path.lexists(token_file):  # refused before anybody is given another token
        raise InputError(f"--token-file {token_file}: file exists; name one that does not")
    by = Voucher(actor, read_token(token)) if (actor or token) and has_reviewer(_read_actors(target)) else None
    if remove is not None:
        remove_actor(target, remove, by)
        gone: dict[str, object] = {"file": str(target), "name": remove, "roles": [], "token": None}
        print_json(gone) if as_json else click.echo(f"{remove} is not in {target} any more")
        return
    fresh = add_actor(target, add, roles, by) if add is not None else renew_actor(target, asked[0], roles, by)
    if token_file is not None:
        descriptor = os.open(token_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_FILE_MODE)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(f"{fresh}\n")
    has = list(Actors.load(target).named(asked[0]).roles)
    result = {"file": str(target), "name": asked[0], "roles": has, "token": None if token_file else fresh}
    if as_json:
        print_json(result)
        return
    click.echo(f"{asked[0]} is {' and '.join(has)} in {target}")
    where = f"in {token_file}" if token_file else f"(shown this once): {fresh}"
    click.echo(f"their token {where}")
