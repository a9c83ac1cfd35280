"""Connected components: which claims are one, whatever the order in which they were compared.

A relation's closure is associative, commutative and idempotent, so records made of components are too.

Source: Tarjan 1975 (union by size, path halving).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class Union:
    """Disjoint sets of claim ids; the label of a set is its least id."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    @property
    def members(self) -> frozenset[str]:
        """All that were named."""
        return frozenset(self._parents)

    def find(self, member: str) -> str:
        """The label of the set it is in; a set of its own where it is new."""
        parents = self._parents
        parents.setdefault(member, member)
        while parents[member] != member:
            parents[member] = parents[parents[member]]
            member = parents[member]
        return member

    def join(self, one: str, other: str) -> bool:
        """Make one set of both; whether they were two."""
        one, other = self.find(one), self.find(other)
        if one == other:
            return False
        low, high = sorted((one, other))
        self._parents[high] = low
        return True


def components(
    members: Collection[str], candidates: Mapping[T, Iterable[str]], same: Callable[[str, str], bool]
) -> dict[str, str]:
    """The label of each member's component; `candidates` are sets of members worth comparing.

    >>> components({"a", "b", "c"}, {1: "ab", 2: "bc"}, lambda one, other: {one, other} == {"a", "b"})
    {'a': 'a', 'b': 'a', 'c': 'c'}
    """
    union = Union()
    for bucket in candidates.values():
        left = sorted(set(bucket))
        while len({union.find(member) for member in left}) > 1:
            one = left.pop(0)
            for other in left:
                if union.find(one) != union.find(other) and same(one, other):
                    union.join(one, other)
    return {member: union.find(member) for member in sorted(members)}
