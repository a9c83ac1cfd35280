from .by_model import ModelSummarizer as ModelSummarizer, UnusableReply as UnusableReply, read_bullets as read_bullets
from .calls import (
    CallLimits as CallLimits,
    GovernedModel as GovernedModel,
    SpendingLedger as SpendingLedger,
    SpendingStopped as SpendingStopped,
    SpentRow as SpentRow,
)
from .grounding import (
    DraftBullet as DraftBullet,
    GroundingText as GroundingText,
    content_words as content_words,
    fault_of as fault_of,
    grounding_texts as grounding_texts,
)
from .held_lines import HeldLine as HeldLine, HeldLines as HeldLines, held as held
from .prompts import PromptFile as PromptFile, PromptFolder as PromptFolder, marked as marked
from .providers import AnthropicModel as AnthropicModel, OpenAIModel as OpenAIModel, model_at as model_at
from .recordings import (
    NotRecorded as NotRecorded,
    RecordingTransport as RecordingTransport,
    ReplayTransport as ReplayTransport,
)
from .short_texts import ModelCardSummarizer as ModelCardSummarizer, ModelHandoffWriter as ModelHandoffWriter
