"""Baselines of the cost benchmark: schedules that mask old tool results, a window of steps, random steps left out.

A *step* is an assistant message with its tool results; messages before the first are step 0. Masking replaces the tool
results of older steps by one line and keeps the newest `kept_steps` whole, at least the newest one, which the model has
not seen. The *boundary* of a call is the number of masked steps among those with something to mask; it never moves
back. A window sends only its newest steps and the messages after them.

Source: observation masking, arXiv 2508.21433.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from ctxsteward.evals.prompt_cost import PricedPrompt, PromptPiece, Sizer
from ctxsteward.evals.replay import AgentRun

from .agent_costs import Strategy

MASK = "[tool result left out]"
KEPT_STEPS = 5
WINDOW_STEPS = 5
RARELY_STEPS = 10


class MaskableStep(NamedTuple):
    """A step with tool results that masking makes shorter."""

    step: int
    places: tuple[int, ...]
    """Indices of these results among the run's messages; ascending."""


@dataclass(frozen=True, slots=True)
class MaskedRun:
    """A run, its steps, and its masked messages."""

    run: AgentRun
    masked: tuple[PromptPiece, ...]
    """Each message masked, or unchanged if masking saves nothing."""
    steps: tuple[int, ...]
    """Step of each message."""
    maskable: tuple[MaskableStep, ...]
    kept_steps: int = KEPT_STEPS

    def eligible(self, call: int) -> int:
        """Return the number of steps that may be masked at this 0-based call."""
        newest = self.newest_step(call)
        return sum(maskable.step <= newest - self.kept_steps for maskable in self.maskable)

    def newest_step(self, call: int) -> int:
        """Return the step of the last message of this call."""
        return self.steps[self.run.seen[call] - 1]

    def prompt(self, call: int, boundary: int) -> tuple[PromptPiece, ...]:
        """Return a call's prompt with the first `boundary` maskable steps masked."""
        hidden = {place for maskable in self.maskable[:boundary] for place in maskable.places}
        shown = self.run.messages[: self.run.seen[call]]
        return (*self.run.system, *(self.masked[i] if i in hidden else piece for i, piece in enumerate(shown)))

    def prompts(self, boundaries: Sequence[int]) -> list[PricedPrompt]:
        """Return each call's prompt under these boundaries."""
        moved = [now != before for before, now in zip((0, *boundaries), boundaries, strict=False)]
        return [PricedPrompt(self.prompt(call, b), moved[call]) for call, b in enumerate(boundaries)]


def masking_of(run: AgentRun, sizer: Sizer) -> MaskedRun:
    """Find a run's steps and mask their results."""
    steps: list[int] = []
    masked: list[PromptPiece] = []
    places: dict[int, list[int]] = {}
    step = 0
    for place, piece in enumerate(run.messages):
        step += piece.wire.get("role") == "assistant"
        short = sizer.piece({**piece.wire, "content": MASK}) if piece.wire.get("role") == "tool" else piece
        if short.tokens < piece.tokens:
            places.setdefault(step, []).append(place)
        masked.append(short if short.tokens < piece.tokens else piece)
        steps.append(step)
    maskable = tuple(MaskableStep(step, tuple(results)) for step, results in places.items())
    return MaskedRun(run, tuple(masked), tuple(steps), maskable)


Schedule = Callable[[MaskedRun], list[PricedPrompt]]
"""Returns the prompt of each call of a masked run."""


def every_step(masking: MaskedRun) -> list[PricedPrompt]:
    """Mask every maskable step at every call."""
    return masking.prompts([masking.eligible(call) for call in range(len(masking.run.seen))])


def every_ten_steps(masking: MaskedRun) -> list[PricedPrompt]:
    """Mask every maskable step when ten steps have passed since the last time."""
    boundaries: list[int] = []
    boundary = moved_at = 0
    for call in range(len(masking.run.seen)):
        step = masking.newest_step(call)
        if step - moved_at >= RARELY_STEPS:
            boundary, moved_at = masking.eligible(call), step
        boundaries.append(boundary)
    return masking.prompts(boundaries)


def window_of_five(masking: MaskedRun) -> list[PricedPrompt]:
    """Send the newest five steps and the messages after them; older messages, the task among them, are left out."""
    prompts = []
    start = 0
    for call, seen in enumerate(masking.run.seen):
        first = masking.newest_step(call) - WINDOW_STEPS + 1
        before, start = start, next(i for i, step in enumerate(masking.steps[:seen]) if step >= first)
        prompts.append(PricedPrompt((*masking.run.system, *masking.run.messages[start:seen]), start != before))
    return prompts


def random_steps_out(masking: MaskedRun) -> list[PricedPrompt]:
    """Leave out closed steps at random until a call takes no more tokens than ours; no step returns.

    User messages stay. The order is seeded by the run's name.
    """
    run = masking.run
    targets = next(iter(run.ours.values()))
    order = list(dict.fromkeys(masking.steps))
    Random(run.name).shuffle(order)
    spoken = [piece.wire.get("role") == "user" for piece in run.messages]
    prompts: list[PricedPrompt] = []
    out: set[int] = set()
    for call, seen in enumerate(run.seen):
        newest, before = masking.newest_step(call), len(out)
        budget = sum(piece.tokens for piece in targets[call].pieces)
        while True:
            shown = [run.messages[i] for i in range(seen) if spoken[i] or masking.steps[i] not in out]
            closed = next((step for step in order if step < newest and step not in out), None)
            pieces = (*run.system, *shown)
            if closed is None or sum(piece.tokens for piece in pieces) <= budget:
                break
            out.add(closed)
        prompts.append(PricedPrompt(pieces, len(out) > before))
    return prompts


def strategies(sizer: Sizer) -> Mapping[str, Strategy]:
    """Return the baselines by name."""

    def masked(schedule: Schedule, kept_steps: int = KEPT_STEPS) -> Strategy:
        return lambda run: schedule(replace(masking_of(run, sizer), kept_steps=kept_steps))

    return {
        "mask every step": masked(every_step),
        "mask every 10 steps": masked(every_ten_steps),
        "window of 5 steps": masked(window_of_five),
        "random steps left out": masked(random_steps_out),
        "mask every step, keep 1": masked(every_step, 1),
    }
