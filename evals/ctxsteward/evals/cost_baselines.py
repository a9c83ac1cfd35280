"""Baselines: what a client does to a history that grows, by schedule.

A *step* is an assistant message with its tool results; what stands before the first one is step 0. Masking replaces
the tool results of older steps by one line and keeps the newest `kept_steps` whole, at least the newest one: the model
has not seen it. The *boundary* of a call says how many of the steps that hold something to mask are masked; it never
moves back. A window sends only its newest steps and what follows them. Source: observation masking, arXiv 2508.21433.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .cost_prompts import Piece, Prompt, Sizer
from .cost_runs import AgentRun

MASK = "[tool result left out]"
KEPT_STEPS = 5
WINDOW_STEPS = 5
RARELY_STEPS = 10


class Maskable(NamedTuple):
    """A step with tool results that masking makes shorter."""

    step: int
    places: tuple[int, ...]
    """Of those results among the run's messages; ascending."""


@dataclass(frozen=True, slots=True)
class Masking:
    """A run, its steps, and its messages as they look once masked."""

    run: AgentRun
    masked: tuple[Piece, ...]
    """Each message masked; the message itself where that saves nothing."""
    steps: tuple[int, ...]
    """Of each message."""
    maskable: tuple[Maskable, ...]
    kept_steps: int = KEPT_STEPS

    def eligible(self, call: int) -> int:
        """How many of the maskable steps may be masked at this 0-based call."""
        newest = self.newest_step(call)
        return sum(found.step <= newest - self.kept_steps for found in self.maskable)

    def newest_step(self, call: int) -> int:
        """The step of the last message that this call is sent."""
        return self.steps[self.run.seen[call] - 1]

    def prompt(self, call: int, boundary: int) -> tuple[Piece, ...]:
        """What a call is sent with so many steps masked."""
        hidden = {place for found in self.maskable[:boundary] for place in found.places}
        shown = self.run.messages[: self.run.seen[call]]
        return (*self.run.system, *(self.masked[i] if i in hidden else piece for i, piece in enumerate(shown)))

    def prompts(self, boundaries: Sequence[int]) -> list[Prompt]:
        """What each call is sent under these boundaries."""
        moved = [now != before for before, now in zip((0, *boundaries), boundaries, strict=False)]
        return [Prompt(self.prompt(call, b), moved[call]) for call, b in enumerate(boundaries)]


def masking_of(run: AgentRun, sizer: Sizer) -> Masking:
    """Find a run's steps and what masking would make of them."""
    steps: list[int] = []
    masked: list[Piece] = []
    places: dict[int, list[int]] = {}
    step = 0
    for place, piece in enumerate(run.messages):
        step += piece.wire.get("role") == "assistant"
        short = sizer.piece({**piece.wire, "content": MASK}) if piece.wire.get("role") == "tool" else piece
        if short.tokens < piece.tokens:
            places.setdefault(step, []).append(place)
        masked.append(short if short.tokens < piece.tokens else piece)
        steps.append(step)
    maskable = tuple(Maskable(step, tuple(found)) for step, found in places.items())
    return Masking(run, tuple(masked), tuple(steps), maskable)


Schedule = Callable[[Masking], list[Prompt]]
"""What each call of a run is sent."""


def never(masking: Masking) -> list[Prompt]:
    """Send everything."""
    return masking.prompts([0] * len(masking.run.seen))


def every_step(masking: Masking) -> list[Prompt]:
    """Mask at every call all that may be masked."""
    return masking.prompts([masking.eligible(call) for call in range(len(masking.run.seen))])


def every_ten_steps(masking: Masking) -> list[Prompt]:
    """Mask all that may be masked when ten steps have passed since the last time."""
    boundaries: list[int] = []
    boundary = moved_at = 0
    for call in range(len(masking.run.seen)):
        step = masking.newest_step(call)
        if step - moved_at >= RARELY_STEPS:
            boundary, moved_at = masking.eligible(call), step
        boundaries.append(boundary)
    return masking.prompts(boundaries)


def window_of_five(masking: Masking) -> list[Prompt]:
    """Send the newest five steps and what follows them; older messages, the task among them, are left out."""
    prompts = []
    start = 0
    for call, seen in enumerate(masking.run.seen):
        first = masking.newest_step(call) - WINDOW_STEPS + 1
        before, start = start, next(i for i, step in enumerate(masking.steps[:seen]) if step >= first)
        prompts.append(Prompt((*masking.run.system, *masking.run.messages[start:seen]), start != before))
    return prompts
