"""Values that cross a room or a wire, and their published JSON Schemas.

All values are frozen. Nothing here reads a clock, a file or the environment.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .chat_model import (
        ChatModel as ChatModel,
        ChatReply as ChatReply,
        ChatRequest as ChatRequest,
        ModelPrice as ModelPrice,
        TokenUsage as TokenUsage,
    )
    from .errors import (
        BudgetExceeded as BudgetExceeded,
        ContextError as ContextError,
        Erased as Erased,
        InputError as InputError,
        InvalidMessage as InvalidMessage,
        InvalidProfile as InvalidProfile,
        ModelUnavailable as ModelUnavailable,
        ReferenceNotFound as ReferenceNotFound,
        StoreError as StoreError,
        StoreLocked as StoreLocked,
        StoreUnavailable as StoreUnavailable,
        Unapproved as Unapproved,
        UnknownModel as UnknownModel,
        WindowExceeded as WindowExceeded,
    )
    from .findings import Finding as Finding, Ref as Ref
    from .message import (
        ImagePart as ImagePart,
        Message as Message,
        Part as Part,
        TextPart as TextPart,
        ThinkingPart as ThinkingPart,
        ToolCallPart as ToolCallPart,
        ToolResultPart as ToolResultPart,
    )
    from .recommendation import MetaRecommendation as MetaRecommendation
    from .summary import (
        Bullet as Bullet,
        CompressionReport as CompressionReport,
        Loss as Loss,
        Summarizer as Summarizer,
        SummarizerInput as SummarizerInput,
        Summary as Summary,
    )
else:  # A name is loaded at its first use, so that importing the package costs next to nothing.
    import lazy_loader

    __getattr__, __dir__, __all__ = lazy_loader.attach(
        __name__,
        submod_attrs={
            "chat_model": ["ChatModel", "ChatReply", "ChatRequest", "ModelPrice", "TokenUsage"],
            "errors": [
                "BudgetExceeded",
                "ContextError",
                "Erased",
                "InputError",
                "InvalidMessage",
                "InvalidProfile",
                "ModelUnavailable",
                "ReferenceNotFound",
                "StoreError",
                "StoreLocked",
                "StoreUnavailable",
                "Unapproved",
                "UnknownModel",
                "WindowExceeded",
            ],
            "findings": ["Finding", "Ref"],
            "message": ["ImagePart", "Message", "Part", "TextPart", "ThinkingPart", "ToolCallPart", "ToolResultPart"],
            "recommendation": ["MetaRecommendation"],
            "summary": ["Bullet", "CompressionReport", "Loss", "Summarizer", "SummarizerInput", "Summary"],
        },
    )
