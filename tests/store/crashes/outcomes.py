"""What each scenario owes.

`survived` after a crash; `finished` at the end of a run, `repeated` where another one had crashed before. `unfinished`
are kinds of damage that a crash may leave until the second run; `talks`: what it tells is messages; `moves`: a run
claims sessions anew where there are several machines.
"""

from __future__ import annotations

from dataclasses import dataclass

from .invariants import (
    UNFINISHED,
    Told,
    bodies,
    has_forgotten,
    here,
    holds_messages,
    holds_snapshots,
    holds_versions,
    keeps_the_others,
    stands_once,
)
from .places import TENANT, Machines


@dataclass(frozen=True)
class Messages:
    moves: bool
    talks: bool = True
    unfinished: frozenset[str] = frozenset()

    def survived(self, machines: Machines, told: Told) -> None:
        holds_messages(machines, told)

    def finished(self, machines: Machines, told: Told, *, repeated: bool) -> None:
        holds_messages(machines, told)
        store = machines()
        assert any(store.at(TENANT, name).reports() for name in here(store)), "nothing was compacted"
        if machines.place.drains:
            stands_once(machines, told, repeated=repeated)
        if not self.moves:
            said = list(
                dict.fromkeys((name, id) for _, _, name, id, *_ in (what for what in told if what[0] == "append"))
            )
            for log in {name for name, _ in said}:
                entries = [entry for entry in machines().at(TENANT, log).entries() if entry.event.id is not None]
                own = [entry.event.id for entry in entries if (log, entry.event.id) in said]
                assert own == [id for name, id in said if name == log], "in the order in which they were said"


@dataclass(frozen=True)
class Versions:
    last: int
    """Versions that there are in the end."""
    snapshots: bool = False
    unfinished: frozenset[str] = frozenset()
    talks: bool = False
    moves: bool = False

    def survived(self, machines: Machines, told: Told) -> None:
        holds_versions(machines(), told, last=self.last)
        if self.snapshots:
            holds_snapshots(machines(), told)

    def finished(self, machines: Machines, told: Told, *, repeated: bool) -> None:
        assert max(what[-1] for what in told if what[0] == "version") == self.last
        self.survived(machines, told)


@dataclass(frozen=True)
class Erased:
    what: dict[str, str]
    unfinished: frozenset[str] = UNFINISHED
    talks: bool = False
    moves: bool = True

    def survived(self, machines: Machines, told: Told) -> None:
        keeps_the_others(machines, self.what)
        if told:
            has_forgotten(machines, self.what, bodies(machines.place))

    def finished(self, machines: Machines, told: Told, *, repeated: bool) -> None:
        assert told[-1] == ["forgotten"]
        self.survived(machines, told)


OUTCOMES: dict[str, Messages | Versions | Erased] = {
    "conversation": Messages(moves=False),
    "drain": Messages(moves=True),
    "commits": Versions(last=3),
    "backfill": Versions(last=2, snapshots=True),
    "collect": Versions(last=3, unfinished=frozenset({"key_after_tombstone"})),
    "forget-session": Erased({"session": "s"}),
    "forget-principal": Erased({"principal": "ann"}),
}
