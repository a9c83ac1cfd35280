"""What differs between two versions of a profile, by entry key and address.

A version's *parts* are `(block, identity, key, address)` in order: an entry is known again by its block and key, a meta
record by its id, which no changelog shows. Source: the state design (changelogs hold addresses only).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxsteward.schemas.changelog import Change, ChangedBlock


class Part(NamedTuple):
    """An entry or a record of a version."""

    block: ChangedBlock
    identity: str
    """What it is known by across versions."""
    key: str | None
    """What the changelog calls it; None in meta."""
    address: str


def changes_between(before: Sequence[Part], after: Sequence[Part]) -> tuple[Change, ...]:
    """Everything added, changed or moved, in the order of `after`; then what was removed."""
    return tuple(_changes(before, after))


def _changes(before: Sequence[Part], after: Sequence[Part]) -> Iterator[Change]:
    old = {(part.block, part.identity): part for part in before}
    new = {(part.block, part.identity): part for part in after}
    moved = _moved([name for name in old if name in new], [name for name in new if name in old])
    for name, part in new.items():
        found = old.get(name)
        if found is None:
            yield Change(block=part.block, kind="added", key=part.key, before=None, after=part.address)
        elif found.address != part.address:
            yield Change(block=part.block, kind="changed", key=part.key, before=found.address, after=part.address)
        elif name in moved:
            yield Change(block=part.block, kind="moved", key=part.key, before=part.address, after=part.address)
    for name, part in old.items():
        if name not in new:
            yield Change(block=part.block, kind="removed", key=part.key, before=part.address, after=None)


def _moved(before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of the same names that stand at another place among them."""
    return {name for name, other in zip(after, before, strict=True) if name != other}
