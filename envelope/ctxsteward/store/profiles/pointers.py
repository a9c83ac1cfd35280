"""Resolve pointers (``s-42§128``) from a meta record or a fact to the originals that it cites.

Raises `StoreUnavailable`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from ctxsteward.schemas import ContextError, StoreUnavailable

if TYPE_CHECKING:
    from .versions import ProfileVersions

Resolves = Callable[[str], bool]
"""Return whether the original of a pointer can be read."""
Cites = Callable[[str, str], bool]
"""Return whether a message (session and ``§128``) was harvested and can still be read."""

_PLACE = re.compile(r"[1-9][0-9]{0,11}(?:\.[1-9][0-9]{0,3})?")


class Sessions(Protocol):
    """The part of a store that proposals need: sessions with the originals of pointers, and versions of profiles."""

    def profiles(self, name: str, *, tenant: str) -> ProfileVersions: ...

    def exists(self, id: str, *, tenant: str) -> bool: ...

    def at(self, tenant: str, id: str) -> PointerSource: ...


class PointerSource(Protocol):
    """A session's current log. `resolve` returns the original of a pointer, or None if there is none."""

    def resolve(self, pointer: str) -> object: ...


def resolver(sessions: Sessions, tenant: str, harvested: Cites = lambda session, ref: False) -> Resolves:
    """Return a function that says whether a pointer's original is in the store's sessions or in `harvested`."""

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
        except ContextError:  # forgotten, damaged or missing
            return False

    return resolves
