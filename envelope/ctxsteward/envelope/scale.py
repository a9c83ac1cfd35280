"""Between a builder's estimated tokens and the provider's: budgets in both, and the factor that usage corrects.

A caller states budgets in the provider's tokens; a builder counts with a tokenizer that may be another. What providers
report moves the factor a part of the way each time, within bounds, so that one odd report changes little.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .budgets import Budgets

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
