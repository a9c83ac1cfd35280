"""What a conversation's calls cost, cache-priced, against sending everything at each of them.

    costs = Costs(setup.builder().counter)
    costs.read(call)      every call, in order
    costs.ratio

Prices are `cost_prompts`': a prefix that the call before has sent costs a tenth. Sending everything only ever appends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ctxsteward.envelope.counting import Counter

from ..cost_prompts import Piece, Prices, Sizer
from ..transcripts import Call
from .scoring import Metric

COST_RATIO = Metric(
    name="cost_ratio", about="Cache-priced prompt tokens against sending everything.", kind="ratio", better="lower"
)


@dataclass(slots=True)
class Costs:
    """Adds up calls."""

    counter: Counter
    prices: Prices = field(default_factory=Prices)
    ours: float = 0.0
    everything: float = 0.0
    _sizer: Sizer = field(init=False)
    _before: Sequence[Piece] = ()
    _said: int = 0
    _said_tokens: int = 0

    def __post_init__(self) -> None:
        self._sizer = Sizer(self.counter)

    def read(self, call: Call) -> None:
        """Count one call."""
        pieces = self._sizer.pieces(call.envelope.render("openai-chat", cache=False)["messages"])
        shared = self._sizer.shared_tokens(self._before, pieces)
        self.ours += self.prices.of(sum(piece.tokens for piece in pieces), shared)
        self._before, before = pieces, self._said_tokens
        self._said_tokens += sum(self._sizer.piece(wire).tokens for wire in call.wires[self._said :])
        self._said = len(call.wires)
        self.everything += self.prices.of(self._said_tokens, before)

    @property
    def ratio(self) -> float:
        """Ours against everything; below 1 is cheaper."""
        return self.ours / max(1.0, self.everything)
