"""Opening stores for commands. For commands that read, a missing store is an error; it is not created.

A tenant's keys are checked when its store is opened: with other keys every chain of the tenant looks damaged.

The environment supplies the rest of the configuration: `CTXSTEWARD_JOURNAL` is the folder of the local journal,
`CTXSTEWARD_MASTER_KEY` the secret from which tenants' keys are derived (default: files in the store or the journal).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ctxsteward.envelope import Session, Store, open_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import shown_uri
from ctxsteward.steward import environment_keys
from ctxsteward.store.backend import local_folder
from ctxsteward.store.maintenance.inventory import PROBES, ls, name_of
from ctxsteward.store.names import checked_name

_ADDRESS, _DIGITS = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{8,63}")

JOURNAL_VARIABLE = "CTXSTEWARD_JOURNAL"
MAX_NAMES_SHOWN = 5


def open_uri(uri: str, tenant: str | None) -> Store:
    """Open a store, or create it, with journal and keys from the environment; check the keys of this tenant."""
    if uri == "memory:":
        return open_store(uri)
    store = open_store(uri, journal=_journal(), keys=environment_keys())
    # A store that is drained into a bucket must open while the bucket does not answer; its sessions check their keys.
    if tenant is not None and store.write_behind is None:
        try:
            store.check_keys(checked_name("tenant", tenant), write=False)
        except BaseException:
            store.close()
            raise
    return store


def open_stored(uri: str, tenant: str | None, *, any_keys: bool = False) -> Store:
    """Open a store for reading, and check the keys of this tenant, or of all without a tenant, unless `any_keys`.

    Raises `InputError`, before anything is written, if the store does not exist.
    """
    scheme, _, rest = uri.partition(":")
    if scheme == "file" and rest:
        folder, journal = Path(rest), local_folder(uri, _journal()) / "journal.sqlite"
        is_there, what = False, "a file, and a store is a folder" if folder.is_file() else "no such folder"
        if folder.is_dir():
            what = "the folder holds no store"
            is_there = any(path.exists() for path in (folder / "objects", folder / "journal.id", journal))
        if not is_there:
            hint = "build or replay a transcript into a folder, or name another store"
            raise InputError(f"--store {shown_uri(uri)}: {what}; {hint}")
    store = open_uri(uri, None)
    try:
        if scheme in ("s3", "postgresql", "postgres") and is_empty(store):
            # Any prefix of a bucket can be opened, so an empty one is taken for a typing error.
            what = "bucket and prefix" if scheme == "s3" else "database and schema"
            raise InputError(f"--store {shown_uri(uri)}: nothing is there; check {what}, or name another store")
        if not any_keys:
            for name in tenants_of(store) if tenant is None else [checked_name("tenant", tenant)]:
                store.check_keys(name, write=False)
    except BaseException:
        store.close()
        raise
    return store


def _journal() -> str | None:
    return os.environ.get(JOURNAL_VARIABLE) or None


def is_empty(store: Store) -> bool:
    """Return whether the store holds no tenant and no object."""
    return not store.journal.tenants() and all(info.key.startswith(PROBES) for info in store.objects.list(""))


def tenants_of(store: Store) -> list[str]:
    """Return the tenants with a session or a profile, except those with a name too long for a folder."""
    listed = (info.key.split("/")[1] for family in ("tenants/", "profiles/") for info in store.objects.list(family))
    return sorted({*store.journal.tenants(), *filter(None, map(name_of, set(listed)))})


def told_tenants(store: Store) -> str:
    """Return a clause that names the tenants of a store."""
    names = tenants_of(store)
    if not names:
        return "this store holds no tenant"
    return f"this store holds {'tenant' if len(names) == 1 else 'tenants'} {some_of(names)}"


def some_of(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return f"{', '.join(names[:MAX_NAMES_SHOWN])}{more}"


def stored_session(store: Store, id: str, tenant: str) -> Session:
    """Open an existing session for reading, without taking its ownership; raise `InputError` that names some others."""
    forgotten = any(note.principal is None for note in store.journal.forgotten(tenant, id))
    if not forgotten and not store.exists(id, tenant=tenant):  # `at` raises for a forgotten one and says who erased it
        known = store.sessions(tenant=tenant)
        hint = f"it holds {some_of(known)}" if known else f"it holds no sessions of tenant {tenant!r}"
        raise InputError(f"{store.uri}: no session {id!r}; {hint}")
    return store.at(tenant, id)


def check_tenant(store: Store, tenant: str | None) -> None:
    """Raise `InputError` if the store has nothing of this tenant: a typing error must not pass as a sound tenant."""
    if tenant is not None and next(ls(store, tenant=checked_name("tenant", tenant)), None) is None:
        raise InputError(f"{store.uri}: nothing of tenant {tenant!r}; {told_tenants(store)}")


def envelope_address(store: Store, option: str, text: str, tenant: str) -> str:
    """Return the whole address of the envelope that an option names; raise `InputError` if there is none."""
    address = store.address(text, tenant=tenant)
    if is_address(address):
        return address
    if _DIGITS.fullmatch(text):
        raise InputError(f"{option} {text}: no envelope of tenant {tenant!r} has this address; take one from a build")
    raise InputError(
        f"{option} {text:.80}: not an envelope's address; write its 64 hex digits, or the first 8 and more"
    )


def is_address(text: str) -> bool:
    """Return whether a text is 64 lower-case hex digits."""
    return _ADDRESS.fullmatch(text) is not None
