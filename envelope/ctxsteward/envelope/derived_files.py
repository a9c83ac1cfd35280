"""Files beside the journal that hold words of users and can be derived again: forgetting deletes them.

    <folder of the journal>/ledgers/<tenant>/…

Whoever writes such a file needs nothing but its place: a process that has never heard of the program that made it
forgets as much as one that has it open. A file that somebody in this process has open is left to them: its eraser is
among `Store.erasers` and tells where it is (`path`). Another process that has one open goes on with a file that has no
name any more, and makes it anew when it is next opened.

Raises `StoreError` where a file cannot be deleted. Source: the state design (whatever holds derived text).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ctxsteward.schemas import StoreError

from .erasers import Eraser, Gone
from .objects.names import part_of

if TYPE_CHECKING:
    from .store import Store

DERIVED_FOLDERS = ("ledgers",)
"""Beside the journal; each has a folder for every tenant."""


class DerivedFiles:
    """An eraser of one tenant's derived files, but for those that others answer for."""

    def __init__(self, folder: Path, tenant: str, held: Iterable[Path] = ()) -> None:
        self._folders = [folder / name / part_of(tenant) for name in DERIVED_FOLDERS]
        self._held = tuple(str(path.resolve()) for path in held)

    def __call__(self, gone: Sequence[Gone]) -> int:
        """Delete them; how many files that were."""
        found = [path for folder in self._folders for path in sorted(folder.rglob("*")) if path.is_file()]
        doomed = [path for path in found if not str(path.resolve()).startswith(self._held or "\0")]
        for path in doomed:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(f"{path}: it cannot be deleted: {error}; delete it by hand and repeat") from error
        return len(doomed)


def derived_files(store: Store, tenant: str, erasers: Iterable[Eraser] = ()) -> list[DerivedFiles]:
    """What erases the store's derived files, beside these erasers and the store's own; none for one in memory."""
    if store.folder is None:
        return []
    held = [path for one in (*store.erasers, *erasers) if isinstance(path := getattr(one, "path", None), Path)]
    return [DerivedFiles(store.folder, tenant, held)]
