"""Ways of damaging what is stored: one bit, half of it, all of it, another's, an older one's.

Each is drawn with a seeded random source and gives something that differs from what was there.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

OPERATORS = ("flip", "truncate", "delete", "swap", "replay")
_RECORD_COLUMNS = ("kind", "ordinal", "outputs", "id", "address", "body", "wire", "mac")
_MANIFEST_COLUMNS = ("address", "body")


def kind_of(key: str) -> str:
    """What sort of object it is."""
    family, _, rest = key.partition("/")
    return rest.split("/")[2] if family == "profiles" else family


def damage_object(rng: Random, operator: str, key: str, bodies: dict[str, bytes]) -> dict[str, bytes]:
    """The objects with this one damaged; swap and replay take another one of the same sort."""
    changed, body = dict(bodies), bodies[key]
    others = [other for other in bodies if kind_of(other) == kind_of(key) and bodies[other] != body]
    match operator:
        case "flip":
            changed[key] = flipped(rng, body)
        case "truncate":
            changed[key] = body[: rng.randrange(len(body))]
        case "delete":
            del changed[key]
        case "swap":
            other = rng.choice(others)
            changed[key], changed[other] = bodies[other], body
        case "replay":
            changed[key] = bodies[max((one for one in others if one < key), default=others[0])]
    return changed


def flipped(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def damage_record(rng: Random, operator: str, row: tuple[str, str, int], file: Path) -> bool:
    """Damage the record with this tenant, session and position; False where there is nothing to take."""
    with closing(sqlite3.connect(file)) as db, db:
        match operator:
            case "flip" | "truncate":
                column = rng.choice(_RECORD_COLUMNS if operator == "flip" else ("body", "wire", "mac"))
                return _change(rng, operator, db, "records", column, "tenant=? AND session=? AND position=?", row)
            case "delete":
                db.execute("DELETE FROM records WHERE tenant=? AND session=? AND position=?", row)
            case "swap":
                where = "tenant=? AND session=? AND position<>? ORDER BY position"
                others = db.execute(f"SELECT position FROM records WHERE {where}", row).fetchall()
                if not others:
                    return False
                _swap(db, row, rng.choice(others)[0])
            case "replay":
                older = {"acme": "beta", "beta": "acme"}[row[0]]
                found = _record(db, (older, *row[1:]))
                with suppress(sqlite3.IntegrityError):  # its id or ordinal stands elsewhere already
                    if found is not None:
                        _put(db, row, found)
                        return True
                db.rollback()
                return False
    return True


def damage_manifest(rng: Random, operator: str, address: str, file: Path) -> bool:
    """Damage the manifest with this address."""
    with closing(sqlite3.connect(file)) as db, db:
        (session, body) = db.execute("SELECT session, body FROM manifests WHERE address=?", (address,)).fetchone()
        other = db.execute("SELECT address, body FROM manifests WHERE address<>? ORDER BY seq", (address,)).fetchall()
        match operator:
            case "flip" | "truncate":
                column = rng.choice(_MANIFEST_COLUMNS if operator == "flip" else ("body",))
                return _change(rng, operator, db, "manifests", column, "address=?", (address,))
            case "delete":
                db.execute("DELETE FROM manifests WHERE address=?", (address,))
            case "swap":
                name, text = rng.choice(other)
                db.execute("UPDATE manifests SET body=? WHERE address=?", (body, name))
                db.execute("UPDATE manifests SET body=? WHERE address=?", (text, address))
            case "replay":
                db.execute("UPDATE manifests SET body=? WHERE address=?", (other[0][1], address))
    return bool(session)


def _change(
    rng: Random, operator: str, db: sqlite3.Connection, table: str, column: str, where: str, row: tuple[Any, ...]
) -> bool:
    """Flip a bit of a column, or cut its text off; text may become what is not UTF-8."""
    ((value,),) = db.execute(f"SELECT {column} FROM {table} WHERE {where}", row).fetchall()
    if value is None or value == "":
        return False
    if isinstance(value, int):
        changed_number = value ^ 1 << rng.randrange(8)
        with suppress(sqlite3.IntegrityError):  # another record has that number already
            db.execute(f"UPDATE {table} SET {column}=? WHERE {where}", (changed_number, *row))
            return True
        return False
    data = value.encode()
    changed = flipped(rng, data) if operator == "flip" else data[: rng.randrange(len(data))]
    db.execute(f"UPDATE {table} SET {column}=CAST(? AS TEXT) WHERE {where}", (changed, *row))
    return True


def _record(db: sqlite3.Connection, row: tuple[str, str, int]) -> tuple[Any, ...] | None:
    query = f"SELECT {','.join(_RECORD_COLUMNS)} FROM records WHERE tenant=? AND session=? AND position=?"
    found: tuple[Any, ...] | None = db.execute(query, row).fetchone()
    return found


def _put(db: sqlite3.Connection, row: tuple[str, str, int], values: tuple[Any, ...]) -> None:
    db.execute("DELETE FROM records WHERE tenant=? AND session=? AND position=?", row)
    columns = "tenant,session,position," + ",".join(_RECORD_COLUMNS)
    db.execute(f"INSERT INTO records ({columns}) VALUES ({','.join('?' * 11)})", (*row, *values))


def _swap(db: sqlite3.Connection, row: tuple[str, str, int], other: int) -> None:
    mine, theirs = _record(db, row), _record(db, (*row[:2], other))
    assert mine is not None
    assert theirs is not None
    db.execute("DELETE FROM records WHERE tenant=? AND session=? AND position IN (?,?)", (*row, other))
    _put(db, row, theirs)
    _put(db, (*row[:2], other), mine)
