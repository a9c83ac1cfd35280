"""A process that writes until it is killed: messages with ids, builds that select and compact, commits of a profile."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NoReturn

from ctxsteward.envelope import Profile, Store, open_store
from ctxsteward.schemas.profile import MetaRecord, ProfileEntry

from .scenarios import Tell, append, build, opened

SESSION_MESSAGES = 60
"""Then the next session begins."""
COMMIT_EVERY = 5
BUILD_EVERY = 2
"""Behind each message of the user."""


def open_place(root: Path, kind: str) -> Store:
    """`file`: all in one folder; `drained`: a journal beside it, drained by the store's own thread."""
    return open_store(f"file:{root / 'store'}", journal=root / "journal" if kind == "drained" else None)


def session_of(n: int) -> str:
    return f"s{n // SESSION_MESSAGES}"


def governed(number: int) -> Profile:
    """What version `number` holds."""
    return Profile(
        name="support",
        policies=(ProfileEntry(id="limit", text="Refunds up to 100 EUR.", value=100, unit="EUR"),),
        meta=(MetaRecord(id="round", text=f"In round {number} they asked for a window seat.", sources=("s0§1",)),),
    )


def write_for_ever(root: Path, kind: str, given: dict[str, int], tell: Tell) -> NoReturn:
    """Go on from message `given["message"]` and version `given["version"]`: the first not acknowledged."""
    number = given["version"]
    store, session = open_place(root, kind), None
    versions = store.profiles("support", tenant="acme")
    for n in itertools.count(given["message"]):
        if session is None or session.id != session_of(n):
            session = opened(store, session_of(n))
        append(session, f"m{n}", tell)
        if n % BUILD_EVERY == 0:
            tell("building")
            build(session, tell)
        if n % COMMIT_EVERY == 0:
            made = versions.commit(governed(number), commit_id=f"{number:032x}", **AGREED)
            tell("version", made.number)
            number += 1
    raise AssertionError("it never ends")


AGREED: dict[str, Any] = {"who": "ops", "why": "round", "when": "2026-11-22", "promotion": {"approvals": []}}
"""Records alone change, which nobody has to approve."""
