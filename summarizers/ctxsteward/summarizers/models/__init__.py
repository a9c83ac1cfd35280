"""Models in the loop: adapters, limits on what they use, summaries whose every bullet is held against its sources."""

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
