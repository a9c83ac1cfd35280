"""What a store already holds, for commands that read: a missing one is a mistake, not a new store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxsteward.envelope import Session, Store

_ADDRESS = re.compile(r"[0-9a-f]{64}")


def open_stored(uri: str) -> Store:
    """Open a store for reading; raises `InputError` where there is none."""
    from ctxsteward.envelope import open_store
    from ctxsteward.schemas import InputError

    scheme, _, rest = uri.partition(":")
    if scheme == "file" and rest and not Path(rest).is_dir():
        raise InputError(f"--store {uri}: no such folder; build or replay a transcript into it, or name another store")
    return open_store(uri)


def stored_session(store: Store, id: str, tenant: str) -> Session:
    """A session that exists; raises `InputError` naming some that do."""
    from ctxsteward.schemas import InputError

    if not store.exists(id, tenant=tenant):
        known = store.sessions(tenant=tenant)
        some = ", ".join(known[:5]) + (f" and {len(known) - 5} more" if len(known) > 5 else "")
        hint = f"it holds {some}" if known else f"it holds no sessions of tenant {tenant!r}"
        raise InputError(f"{store.uri}: no session {id!r}; {hint}")
    return store.session(id, tenant=tenant)


def is_address(text: str) -> bool:
    """Whether this is 64 lower-case hex digits."""
    return _ADDRESS.fullmatch(text) is not None
