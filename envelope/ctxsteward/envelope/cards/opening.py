"""Which index a URI names: ``sqlite:PATH``, ``postgresql://…``, ``memory:``."""

from __future__ import annotations

from pathlib import Path

from ctxsteward.schemas import InputError

from .port import CardIndex

FORMS = "sqlite:PATH, postgresql://USER@HOST/DATABASE or memory:"


def open_cards(uri: str, *, must_exist: bool = False) -> CardIndex:
    """Open an index; it is made if missing, unless it `must_exist`. Raises `InputError`, `StoreError`."""
    scheme, separator, rest = uri.partition(":")
    if scheme == "memory" and separator and not rest:
        from .memory import MemoryCards

        return MemoryCards()
    if scheme == "sqlite" and rest:
        from .sqlite import SqliteCards

        if must_exist and not Path(rest).is_file():
            raise InputError(f"{uri}: no such file; `ctxsteward cards rebuild` makes it, or name another")
        return SqliteCards(rest)
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        try:
            from .postgres import PostgresCards
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("psycopg"):
                raise
            raise InputError("cards in PostgreSQL need psycopg: pip install 'ctxsteward[postgres]'") from error
        return PostgresCards(uri)
    raise InputError(f"cards {_shown(uri)!r} name no index; write {FORMS}")


def _shown(uri: str) -> str:
    """As much of it as can hold no password."""
    return uri.partition("//")[0][:60]
