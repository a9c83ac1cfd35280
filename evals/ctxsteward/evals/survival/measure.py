"""Measure what the window still shows: talks of every kind at its budgets, summed, and the tables for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from ..asked_chats import AskedChat, read_chats
from ..canaries import Half
from .chats import chat_talk
from .play import OURS, SurvivalRow, play
from .rules import rule_talks
from .talks import Talk

Kind = Literal["chats", "rules"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BUDGETS: dict[Kind, tuple[float, ...]] = {"chats": (2_000, 4_000, 8_000), "rules": (900, 2_000, 4_000)}


def measure(
    data: Path | None,
    *,
    half: Half = "dev",
    kinds: Sequence[Kind] = KINDS,
    chats: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[SurvivalRow]:
    """Play the talks of a half at their budgets; read at most `chats` from the folder of BEAM chats."""
    read = read_chats(data, "development" if half == "dev" else "held-out")[:chats] if data else []
    sums: dict[tuple[str, float, str], SurvivalRow] = {}
    for kind in kinds:
        for talk in _talks(kind, half, read):
            for budget in BUDGETS[kind]:
                tell(f"{talk.name}, {budget:g}")
                for row in play(talk, kind, budget):
                    known = sums.get(row[:3])
                    sums[row[:3]] = known.plus(row) if known else row
    return list(sums.values())


def _talks(kind: Kind, half: Half, chats: Sequence[AskedChat]) -> Iterator[Talk]:
    match kind:
        case "chats":
            yield from map(chat_talk, chats)
        case "rules":
            yield from rule_talks(half, chats)


def shown_cells(rows: Sequence[SurvivalRow]) -> list[list[str]]:
    """Return a line for each strategy of one kind: percent shown at each budget."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        lines.setdefault(row.strategy, [row.strategy]).append(f"{100 * row.shown / max(1, row.statements):.1f}")
    return list(lines.values())


def work_cells(rows: Sequence[SurvivalRow]) -> list[list[str]]:
    """Return lines about our own builds of one kind: compactions by user turn, the window's filling, CPU."""
    ours = [row for row in rows if row.strategy == OURS]
    return [
        ["compactions per user turn", *(f"{row.compactions / max(1, row.user_turns):.2f}" for row in ours)],
        ["filled after a pass, %", *(f"{100 * row.filled_after_passes / max(1, row.compactions):.0f}" for row in ours)],
        ["filled at the end, %", *(f"{100 * row.filled_at_end / row.talks:.0f}" for row in ours)],
        ["CPU of a build, ms", *(f"{row.cpu_ms / row.builds:.1f}" for row in ours)],
    ]
