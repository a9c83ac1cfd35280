"""Summaries by a model: adapters, limits on their use, and the check of every bullet against its sources."""

from .by_model import ModelSummarizer
from .calls import CallLimits, GovernedModel, SpendingLedger, SpendingStopped
from .providers import AnthropicModel, OpenAIModel, model_at
from .short_texts import ModelCardSummarizer, ModelHandoffWriter

__all__ = [
    "AnthropicModel",
    "CallLimits",
    "GovernedModel",
    "ModelCardSummarizer",
    "ModelHandoffWriter",
    "ModelSummarizer",
    "OpenAIModel",
    "SpendingLedger",
    "SpendingStopped",
    "model_at",
]
