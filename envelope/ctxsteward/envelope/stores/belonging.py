"""`journal.id`: which journal belongs into a folder, kept beside it, so that a lost one is not taken for a new one.

    {"schema_version": 1, "journal": the journal's own id}

Written once, when a journal is first opened here; it stays when the journal is gone, and names it. A folder without it
holds a new journal, or one of a release that wrote no such file; where the folder has objects or keys already and no
journal, one was there whose id is not known any more. Raises `OSError`, `Damaged`, `UnsupportedVersion`.
"""

from __future__ import annotations

import json
from pathlib import Path

from ctxsteward.schemas import Damaged, UnsupportedVersion

from .. import exclusive

NAME = "journal.id"
VERSION = 1
UNKNOWN = "unknown"
"""In place of the id of a journal that was lost before there was such a file."""


def belongs(root: Path, id: str, *, made: bool, inhabited: bool) -> str | None:
    """None where the journal with this id is the one that belongs here; else what is missing.

    `made`: it was made just now; `inhabited`: beside objects or keys that were there before it.
    """
    path = root / NAME
    belonging = _read(path)
    if belonging is None:
        wanted = UNKNOWN if made and inhabited else id
        body = json.dumps({"schema_version": VERSION, "journal": wanted})
        exclusive.create(path, body.encode(), mode=0o600)
        belonging = _read(path)
    if belonging == id:
        return None
    named = "a journal" if belonging == UNKNOWN else f"journal {belonging}"
    return (
        f"{named} was here and is gone: what it had acknowledged is not in the one that is here now; restore "
        f"{root / 'journal.sqlite'} from a backup or name the folder it is in, or remove {path} to go on without it"
    )


def _read(path: Path) -> str | None:
    try:
        document = json.loads(path.read_bytes())
        version, journal = document["schema_version"], document["journal"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        version, journal = VERSION, None
    if version != VERSION:
        raise UnsupportedVersion(str(path), version, VERSION)
    if not isinstance(journal, str):
        raise Damaged(f"{path}: it does not say which journal belongs here; restore it from a backup, or remove it")
    return journal
