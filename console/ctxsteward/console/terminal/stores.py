"""Opening stores for commands. For commands that read, a missing store is an error; it is not created.

The environment supplies the rest of the configuration: `CTXSTEWARD_JOURNAL` is the folder of the local journal,
`CTXSTEWARD_MASTER_KEY` the secret from which tenants' keys are derived (default: files in the store or the journal).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ctxsteward.envelope import Session, Store, open_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import shown_uri
from ctxsteward.steward import environment_keys
from ctxsteward.store.maintenance.inventory import ls
from ctxsteward.store.names import checked_name

_ADDRESS, _DIGITS = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{8,63}")

JOURNAL_VARIABLE = "CTXSTEWARD_JOURNAL"


def open_uri(uri: str) -> Store:
    """Open a store, or create it, with journal and keys from the environment."""
    if uri == "memory:":
        return open_store(uri)
    journal = os.environ.get(JOURNAL_VARIABLE) or None
    return open_store(uri, journal=journal, keys=environment_keys())


def open_stored(uri: str) -> Store:
    """Open a store for reading; raise `InputError` if it does not exist."""
    scheme, _, rest = uri.partition(":")
    if scheme == "file" and rest and not Path(rest).is_dir():
        what = "a file, and a store is a folder" if Path(rest).is_file() else "no such folder"
        hint = "build or replay a transcript into a folder, or name another store"
        raise InputError(f"--store {shown_uri(uri)}: {what}; {hint}")
    store = open_uri(uri)
    if scheme in ("s3", "postgresql", "postgres"):
        # Any prefix of a bucket can be opened, so an empty one is taken for a typing error.
        what = "bucket and prefix" if scheme == "s3" else "database and schema"
        try:
            if next(iter(store.objects.list("")), None) is None and not store.journal.tenants():
                raise InputError(f"--store {shown_uri(uri)}: nothing is there; check {what}, or name another store")
        except BaseException:
            store.close()
            raise
    return store


def stored_session(store: Store, id: str, tenant: str) -> Session:
    """Open an existing session for reading, without taking its ownership; raise `InputError` that names some others."""
    forgotten = any(note.principal is None for note in store.journal.forgotten(tenant, id))
    if not forgotten and not store.exists(id, tenant=tenant):  # `at` raises for a forgotten one and says who erased it
        known = store.sessions(tenant=tenant)
        some = ", ".join(known[:5]) + (f" and {len(known) - 5} more" if len(known) > 5 else "")
        hint = f"it holds {some}" if known else f"it holds no sessions of tenant {tenant!r}"
        raise InputError(f"{store.uri}: no session {id!r}; {hint}")
    return store.at(tenant, id)


def check_tenant(store: Store, tenant: str | None) -> None:
    """Raise `InputError` if the store has nothing of this tenant: a typing error must not pass as a sound tenant."""
    if tenant is not None and next(ls(store, tenant=checked_name("tenant", tenant)), None) is None:
        known = store.journal.tenants()
        hint = f"its journal holds {', '.join(known[:5])}" if known else "its journal holds no tenant"
        raise InputError(f"{store.uri}: nothing of tenant {tenant!r}; {hint}")


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
