"""Measure what the window still shows: play the talks of every kind at its budgets, and add their rows up.

`chats` (BEAM) needs a folder. The other kinds are generated; `rules` are planted in the chats if there are any. Each
kind has two halves: one for development, and one that is measured once, when nothing will be changed any more. Of the
development halves, only that of `dense` was used for tuning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from ctxsteward.schemas import InputError

from ..asked_chats import AskedChat, read_chats
from ..canaries import Half
from .chats import chat_talk
from .play import SurvivalRow, play
from .rules import rule_talks
from .talk_generators import generated_talks
from .talks import Talk

Kind = Literal["chats", "rules", "updates", "dense"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BUDGETS: Mapping[Kind, tuple[float, ...]] = {
    "chats": (2_000, 4_000, 8_000),
    "rules": (900, 2_000, 4_000),
    "updates": (0.1, 0.2),
    "dense": (0.1, 0.2, 0.4),
}
"""Dynamic tokens; below 1, a fraction of the talk's tokens."""


def measure(
    kinds: Sequence[Kind],
    *,
    half: Half = "dev",
    data: Path | None = None,
    chats: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[SurvivalRow]:
    """Play the talks of a half, with at most `chats` chats of the folder; raise `InputError` if there is none."""
    read = read_chats(data, "development" if half == "dev" else "held-out")[:chats] if data else []
    sums: dict[tuple[str, float, str], SurvivalRow] = {}
    for kind in kinds:
        for talk in _talks(kind, half, read):
            for budget in BUDGETS[kind]:
                tell(f"{talk.name}, {budget:g}")
                for row in play(talk, kind, budget):
                    known = sums.get(row[:3])
                    sums[row[:3]] = known.plus(row) if known else row
        if not any(row.statements for row in sums.values() if row.kind == kind):
            raise InputError(
                f"{kind}: nothing to look at; {len(read)} chats were read"
                f"{f' from {data}' if data else ''}, and none has a user message that a question needs"
            )
    return list(sums.values())


def _talks(kind: Kind, half: Half, chats: Sequence[AskedChat]) -> Iterator[Talk]:
    if kind == "chats":
        return map(chat_talk, chats)
    return rule_talks(half, chats) if kind == "rules" else generated_talks(kind, half)
