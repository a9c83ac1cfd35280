"""Builders shared by all conversations of a model, so that each learns from the provider's counts of the others."""

from __future__ import annotations

import logging
from collections import OrderedDict

from ctxsteward.schemas import UnknownModel
from ctxsteward.store import process_forks as forking

from ..building.builder import EnvelopeBuilder
from ..tokens.budgets import Budgets
from ..tokens.tokenizer import DEFAULT_TOKENIZER

MAX_BUILDERS = 64
_log = logging.getLogger("ctxsteward.envelope.integrations")


class BuilderCache:
    """The most recently used builders, by model and budgets."""

    def __init__(self) -> None:
        self._builders: OrderedDict[tuple[str | None, Budgets | None], EnvelopeBuilder] = OrderedDict()
        self._lock = forking.lock()

    def of(self, model: str | None, budgets: Budgets | None) -> EnvelopeBuilder:
        """Return the builder for this model. Tokens of an unknown model are counted with the default tokenizer.

        Without `budgets` they are scaled to the model's window.
        """
        key = model, budgets
        with self._lock:
            builder = self._builders.pop(key, None)
            builder = self._builders[key] = _made(model, budgets) if builder is None else builder
            if len(self._builders) > MAX_BUILDERS:
                self._builders.popitem(last=False)
        return builder


def _made(model: str | None, budgets: Budgets | None) -> EnvelopeBuilder:
    if model is not None:
        try:
            return EnvelopeBuilder(model, budgets=budgets or Budgets.for_model(model))
        except UnknownModel:
            _log.warning(
                "no window or encoding is known for this model: tokens are counted by %s, without a limit "
                "of the model's; pass builder=EnvelopeBuilder(…)",
                DEFAULT_TOKENIZER,
            )
    return EnvelopeBuilder(tokenizer=DEFAULT_TOKENIZER, budgets=budgets or Budgets.chat())
