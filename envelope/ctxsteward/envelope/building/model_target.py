"""What a builder builds for: a model's tokenizer, its window, what the output needs of it, and budgets within that.

A caller states budgets in the provider's tokens; a builder counts with a tokenizer that may be another. `Scale` holds
the budgets in both, and the factor between them that reported usage corrects: a part of the way each time, within
bounds, so that one odd report changes little.

Raises `UnknownModel`, `InvalidBudget`, `InputError`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ctxsteward.schemas import Finding, InputError, InvalidBudget, UnknownModel

from ..tokens.budgets import HEAD_SECTIONS, Budgets
from ..tokens.models import ImageRule, ModelInfo, model_info
from ..tokens.tokenizer import REPLY_PRIMING_TOKENS, Counter, Tokenizer, load_tokenizer


class BuildTarget(NamedTuple):
    """A model as a builder sees it."""

    counter: Counter
    window_tokens: int | None
    """None: no limit."""
    output_reserve_tokens: int


def target_of(
    model: str | None,
    tokenizer: str | Tokenizer | None,
    window_tokens: int | None,
    output_reserve_tokens: int | None,
) -> BuildTarget:
    """The published figures of a model, with what the caller names in their place."""
    info = _model(model, tokenizer)
    if window_tokens is not None and window_tokens < 1:
        raise InvalidBudget("window_tokens", window_tokens, "at least 1 token, or None for no limit")
    if output_reserve_tokens is not None and output_reserve_tokens < 0:
        raise InvalidBudget("output_reserve_tokens", output_reserve_tokens, "0 or more tokens")
    window = window_tokens or (info.window_tokens if info else None)
    if output_reserve_tokens and window is not None and output_reserve_tokens >= window:
        raise InvalidBudget("output_reserve_tokens", output_reserve_tokens, f"less than {window}")
    if output_reserve_tokens is not None:
        reserve = output_reserve_tokens
    else:
        published = info.output_reserve_tokens if info else 0
        reserve = published if window_tokens is None else min(published, window_tokens // 2)
    return BuildTarget(_counter(tokenizer, info), window, reserve)


def budgets_within(target: BuildTarget, budgets: Budgets) -> tuple[Budgets, tuple[Finding, ...]]:
    """The budgets, and dynamic no larger than the window leaves it, with a finding where that is less."""
    if target.window_tokens is None:
        return budgets, ()
    head = sum(getattr(budgets, f"{name}_tokens") for name in HEAD_SECTIONS) + (budgets.tools_tokens or 0)
    room = dynamic_room(target, head)
    if room is None or not 0 < room < budgets.dynamic_tokens:  # with no room at all, the build says so
        return budgets, ()
    within = budgets.limited(room)
    return within, (limited_notice(target, within, budgets),)


def dynamic_room(target: BuildTarget, head_tokens: int) -> int | None:
    """What the window leaves beside a head, tool schemas included; None: no limit."""
    if target.window_tokens is None:
        return None
    return target.window_tokens - target.output_reserve_tokens - head_tokens - REPLY_PRIMING_TOKENS


def limited_notice(target: BuildTarget, within: Budgets, stated: Budgets) -> Finding:
    """Says that dynamic is smaller than stated."""
    room, wanted = within.dynamic_tokens, stated.dynamic_tokens
    text = f"the window of {target.window_tokens} tokens leaves {room} for dynamic, not {wanted}"
    return Finding(kind="budget_limited_by_window", field="budgets.dynamic_tokens", text=text)


def _model(model: str | None, tokenizer: str | Tokenizer | None) -> ModelInfo | None:
    """What is published of a model; None for one of the caller's own, which brings a tokenizer."""
    if model is None:
        if tokenizer is None:
            raise InputError("give the builder model='gpt-4o' (or another), or tokenizer= and window_tokens=")
        return None
    try:
        return model_info(model)
    except UnknownModel:
        if tokenizer is None:
            raise
        return None


def _counter(tokenizer: str | Tokenizer | None, info: ModelInfo | None) -> Counter:
    images: ImageRule = info.images if info else "openai-tiles"
    if tokenizer is None:
        assert info is not None
        tokenizer = info.encoding
    return Counter(load_tokenizer(tokenizer) if isinstance(tokenizer, str) else tokenizer, images)


CALIBRATION_WEIGHT = 0.3
"""How much one reported usage moves the estimate."""
CALIBRATION_RANGE = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Budgets and the calibration in force."""

    stated: Budgets
    """In the provider's tokens: the caller's, within the model's window."""
    calibration: float = 1.0
    """Provider-reported tokens per estimated token."""
    effective: Budgets = field(init=False)
    """In the builder's own estimated tokens: the stated ones, divided by the calibration."""

    def __post_init__(self) -> None:
        budgets = self.stated if self.calibration == 1.0 else self.stated.scaled(1 / self.calibration)
        object.__setattr__(self, "effective", budgets)

    def corrected(self, reported_tokens: int, estimated_tokens: int) -> Scale:
        """After one report of what a prompt really took; the same where it says nothing."""
        if estimated_tokens <= 0 or reported_tokens <= 0:
            return self
        low, high = CALIBRATION_RANGE
        ratio = min(high, max(low, reported_tokens / estimated_tokens))
        moved = self.calibration + CALIBRATION_WEIGHT * (ratio - self.calibration)
        return replace(self, calibration=round(moved, 4))

    def limited(self, dynamic_tokens: int | None) -> Scale:
        """With at most so much for dynamic; the same where that is no limit (None) or leaves nothing."""
        if dynamic_tokens is None or not 0 < dynamic_tokens < self.stated.dynamic_tokens:
            return self
        return replace(self, stated=self.stated.limited(dynamic_tokens))

    def provider_tokens(self, tokens: int) -> int:
        """Estimated tokens as the provider would count them."""
        return tokens if self.calibration == 1.0 else round(tokens * self.calibration)
