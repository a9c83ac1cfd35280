"""The request path: from a session to a bounded, typed, cited envelope.

    store = open_store("file:./.ctxsteward")
    session = store.session("s-42", profile=Profile.from_text("You are …"))
    session.append({"role": "user", "content": "…"})
    envelope = EnvelopeBuilder(model="gpt-4o").build(session)
    client.chat.completions.create(model="gpt-4o", **envelope.render("openai-chat"))

or turn by turn: ``store.chat("s-42", model="gpt-4o")`` (`integrations.chat`); or around a client that receives whole
histories: ``client = wrap(OpenAI(), store)`` (`integrations`).

Importing this package reads no clock, file or environment and loads no tokenizer, model or SDK.
"""

from typing import TYPE_CHECKING

from ctxsteward.schemas import (
    CompressionReport as CompressionReport,
    ContextError as ContextError,
    Finding as Finding,
    InputError as InputError,
)

if TYPE_CHECKING:
    __version__: str
    from .building.builder import EnvelopeBuilder as EnvelopeBuilder
    from .building.past_calls import past_calls as past_calls
    from .building.rebuild import rebuild as rebuild
    from .compaction.ahead import SummaryAhead as SummaryAhead
    from .compaction.policy import Policy as Policy
    from .envelope import PROVIDERS as PROVIDERS, Envelope as Envelope, Section as Section, verify_seal as verify_seal
    from .history.session import Profile as Profile, Session as Session
    from .history.tool_groups import LogEntry as LogEntry
    from .integrations.clients import wrap as wrap
    from .integrations.conversations import (
        ConversationName as ConversationName,
        Conversations as Conversations,
        conversation as conversation,
    )
    from .recall.model_tools import (
        answer_call as answer_call,
        model_tools as model_tools,
        resolve_reference as resolve_reference,
        resolve_reference_tool as resolve_reference_tool,
        what_was_dropped as what_was_dropped,
    )
    from .recall.selection import (
        ScoredOriginal as ScoredOriginal,
        SelectionRequest as SelectionRequest,
        Selector as Selector,
    )
    from .store import Store as Store, open_store as open_store
    from .tokens.budgets import Budgets as Budgets
    from .tokens.models import Prices as Prices, model_info as model_info
    from .tokens.tokenizer import Counter as Counter, load_tokenizer as load_tokenizer
else:  # Each name is loaded at its first use, which keeps the import of the package cheap.
    import lazy_loader

    _load, __dir__, __all__ = lazy_loader.attach(
        __name__,
        submod_attrs={
            "building.builder": ["EnvelopeBuilder"],
            "building.past_calls": ["past_calls"],
            "building.rebuild": ["rebuild"],
            "compaction.ahead": ["SummaryAhead"],
            "compaction.policy": ["Policy"],
            "envelope": ["Envelope", "PROVIDERS", "Section", "verify_seal"],
            "history.session": ["Profile", "Session"],
            "history.tool_groups": ["LogEntry"],
            "integrations.clients": ["wrap"],
            "integrations.conversations": ["ConversationName", "Conversations", "conversation"],
            "recall.model_tools": [
                "answer_call",
                "model_tools",
                "resolve_reference",
                "resolve_reference_tool",
                "what_was_dropped",
            ],
            "recall.selection": ["ScoredOriginal", "SelectionRequest", "Selector"],
            "store": ["Store", "open_store"],
            "tokens.budgets": ["Budgets"],
            "tokens.models": ["Prices", "model_info"],
            "tokens.tokenizer": ["Counter", "load_tokenizer"],
        },
    )
    __all__ += ["CompressionReport", "ContextError", "Finding", "InputError"]

    def __getattr__(name: str) -> object:
        if name != "__version__":
            return _load(name)
        from importlib.metadata import version

        return version("ctxsteward")
