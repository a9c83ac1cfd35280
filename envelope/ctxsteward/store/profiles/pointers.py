"""Pointers (``s-42§128``) from a record of meta, or a fact, to what was said: whether they can be read.

Raises `StoreUnavailable`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Protocol
from urllib.parse import unquote

from ctxsteward.schemas import ContextError, StoreUnavailable

from .versions import ProfileVersions

Resolves = Callable[[str], bool]
"""Whether what a pointer names can be read."""
Cites = Callable[[str, str], bool]
"""Whether a message (session and ``§128``) was harvested, and can be read still."""

_PLACE = re.compile(r"[1-9][0-9]{0,11}(?:\.[1-9][0-9]{0,3})?")


class Sessions(Protocol):
    """The part of a store that proposals need: sessions to resolve pointers in, and versions of profiles."""

    def profiles(self, name: str, *, tenant: str) -> ProfileVersions: ...

    def exists(self, id: str, *, tenant: str) -> bool: ...

    def at(self, tenant: str, id: str) -> PointerSource: ...


class PointerSource(Protocol):
    """A session's log as it is now: `resolve` gives what a pointer names, None where it names nothing."""

    def resolve(self, pointer: str) -> object: ...


def resolver(sessions: Sessions, tenant: str, harvested: Cites = lambda session, ref: False) -> Resolves:
    """Whether the store's sessions hold what a pointer (``s-42§128``) names, or `harvested` has it."""

    @cache
    def resolves(pointer: str) -> bool:
        name, _, place = pointer.rpartition("§")
        session = unquote(name)
        if not session or not _PLACE.fullmatch(place):
            return False
        if harvested(session, f"§{place}"):
            return True
        try:
            return (
                sessions.exists(session, tenant=tenant)
                and sessions.at(tenant, session).resolve(f"§{place}") is not None
            )
        except StoreUnavailable:
            raise
        except ContextError:  # forgotten, damaged, or not there
            return False

    return resolves
