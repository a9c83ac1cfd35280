"""LiteLLM: a callback that builds the contexts of calls, in its SDK and in its proxy, which serves any language.

    handler = session_handler(open_store("file:./.ctxsteward"), budgets=Budgets(dynamic_tokens=4000))
    litellm.callbacks = [handler]
    await litellm.acompletion(model="gpt-4o", messages=history, metadata={"session_id": "chat-1"})
    handler.completion(model="gpt-4o", messages=history, metadata={"session_id": "chat-1"})   # its sync calls: so

In a proxy's config, set ``litellm_settings: callbacks`` to ``ctxsteward.envelope.integrations.litellm.proxy_handler``.
The environment variable ``CTXSTEWARD_STORE`` then names the store; ``CTXSTEWARD_JOURNAL`` and
``CTXSTEWARD_MASTER_KEY`` correspond to options of the command line, and ``CTXSTEWARD_DYNAMIC_TOKENS`` is the budget.
Nothing else in this module reads the environment.

It handles async chat completions, responses and Anthropic messages, also of a `Router`. The hook runs at each attempt
at a deployment, with the same history, and so builds the same request. LiteLLM has no such hook for sync calls; they go
through `SessionHandler.completion`, or unchanged. The answer is kept when LiteLLM reports success, a stream's at its
end. The bytes are not audited, because LiteLLM translates what it sends.

The session in the SDK is that of `conversation(…)` around the call, else `metadata.session_id`, else
`litellm_session_id`. In a proxy it is the header ``x-ctxsteward-session``, else these two. The tenant is the team of
the API key, else its hash, and no client can change it. A call without a session is sent unchanged, with one warning.

Raises `InputError` if LiteLLM is not installed, or the proxy's store is not named.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Unpack, cast

from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire
from ctxsteward.store import MasterKeys

from ..store import Store, open_store
from ..tokens.budgets import Budgets
from .answers import ANSWERS, CompleteAnswer, plain_body
from .conversations import (
    ConversationName,
    ConversationOptions,
    Conversations,
    PreparedCall,
    current_conversation,
)
from .requests import ENDPOINTS, BuiltRequest, built_request

if TYPE_CHECKING:
    from litellm.integrations.custom_logger import CustomLogger

KINDS = {
    "acompletion": ENDPOINTS["openai-chat"],
    "completion": ENDPOINTS["openai-chat"],
    "aresponses": ENDPOINTS["openai-responses"],
    "anthropic_messages": ENDPOINTS["anthropic"],
}
"""LiteLLM's type of call → form of its request."""
SESSION_HEADER = "x-ctxsteward-session"
STORE_VARIABLE, JOURNAL_VARIABLE = "CTXSTEWARD_STORE", "CTXSTEWARD_JOURNAL"
KEY_VARIABLE, BUDGET_VARIABLE = "CTXSTEWARD_MASTER_KEY", "CTXSTEWARD_DYNAMIC_TOKENS"
_CONTEXT = (
    "messages",
    "system",
    "tools",
    "input",
    "instructions",
    "model",
    "previous_response_id",
    "conversation",
    "cache_control",
)
_NAME = "ctxsteward_session"
_UNNAMED = (
    "a call of LiteLLM names no session and goes as it is; write metadata={'session_id': …}, or "
    "`with conversation(…):` around it"
)


class SessionHandler:
    """Hooks that LiteLLM calls. `session_handler` makes it, as a `CustomLogger`."""

    conversations: Conversations

    async def async_pre_call_hook(self, user_api_key_dict: Any, cache: Any, data: Wire, call_type: str) -> Wire:
        """Set the session before routing in a proxy, from the proxy's own data and not from the client's."""
        bucket = data.get("litellm_metadata")
        if not isinstance(bucket, dict):
            bucket = data["metadata"] = data["metadata"] if isinstance(data.get("metadata"), dict) else {}
        id = _header(data) or _session_id(data)
        bucket.pop(_NAME, None)
        if id is not None:
            bucket[_NAME] = _name_of(user_api_key_dict, id)
        return data

    async def async_pre_call_deployment_hook(self, kwargs: Wire, call_type: Any) -> Wire | None:
        """Replace the caller's context with the built one before each attempt."""
        kind, logged = getattr(call_type, "value", call_type), kwargs.get("litellm_logging_obj")
        if kind not in KINDS or getattr(logged, "call_type", kind) != kind:
            return None  # another kind of call, or a call that LiteLLM makes within a handled one
        name = _named(kwargs)
        if name is None:
            self.conversations.say_once(_UNNAMED)
            return None
        model = kwargs.get("model") or getattr(logged, "model", None)  # the name may be missing in the arguments
        built = await asyncio.to_thread(self._built, kind, name, {**kwargs, "model": model})
        if built is None:
            return None
        if logged is not None:
            logged.model_call_details[self._key] = built.call
        return {**kwargs, **{key: value for key, value in built.body.items() if key != "model"}}

    async def async_log_success_event(self, kwargs: Wire, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Keep the answer once it is complete."""
        call = kwargs.get(self._key)
        if isinstance(call, PreparedCall):
            await asyncio.to_thread(self._finish, call, str(kwargs.get("call_type")), response_obj)

    @property
    def _key(self) -> str:
        """Key of our call in LiteLLM's data; it is per store, because several handlers may see one call."""
        return f"ctxsteward_call_{id(self.conversations)}"

    def completion(self, **arguments: Any) -> Any:
        """Call ``litellm.completion`` with a built context."""
        import litellm

        name = _named(arguments)
        built = None if name is None else self._built("completion", name, arguments)
        if name is None:
            self.conversations.say_once(_UNNAMED)
        if built is None:
            return litellm.completion(**arguments)
        response = litellm.completion(**{**arguments, **built.body})
        if arguments.get("stream"):
            return self._heard(built.call, response)
        self._finish(built.call, "completion", response)
        return response

    def _heard(self, call: PreparedCall, chunks: Iterable[Any]) -> Iterator[Any]:
        from litellm import stream_chunk_builder

        passed = []
        for chunk in chunks:
            passed.append(chunk)
            yield chunk
        self._finish(call, "completion", stream_chunk_builder(passed))

    def _built(self, kind: str, name: ConversationName, arguments: Wire) -> BuiltRequest | None:
        context = plain_body({key: arguments[key] for key in _CONTEXT if arguments.get(key) is not None})
        return built_request(self.conversations, KINDS[kind], name, context)

    def _finish(self, call: PreparedCall, kind: str, response: Any) -> None:
        try:
            answer = answer_of(kind, response)
        except Exception as error:
            self.conversations.failed("an answer could not be read; the next history brings it", error)
            answer = None
        messages = () if answer is None else answer.messages
        self.conversations.finish(call, messages, usage=getattr(response, "usage", None))


def answer_of(kind: str, response: Any) -> CompleteAnswer | None:
    """Return LiteLLM's answer in the form in which its caller hands it back.

    For Anthropic messages LiteLLM reports a translation; one with thinking is left to the next, complete history.
    """
    body = response.model_dump(mode="json", exclude_none=True)
    if kind == "aresponses":
        return ANSWERS["openai-responses"].whole(body)
    for choice in body.get("choices") or ():
        if isinstance(message := choice.get("message"), dict):
            message.pop("provider_specific_fields", None)
    answer = ANSWERS["openai-chat"].whole(body)
    if answer is None or kind != "anthropic_messages":
        return answer
    kept = [message for message in answer.messages if not {"thinking_blocks", "reasoning_content"} & set(message)]
    return answer._replace(messages=tuple(kept))


# -- names of sessions ---------------------------------------------------------------------------------------------


def _named(arguments: Wire) -> ConversationName | None:
    """Return the session of a call: the one set by a proxy's hook, or by the application."""
    for bucket in ("litellm_metadata", "metadata"):
        name = (arguments.get(bucket) or {}).get(_NAME)
        if isinstance(name, ConversationName):
            return name
    id = _session_id(arguments)
    return current_conversation() or (None if id is None else ConversationName(id))


def _session_id(arguments: Wire) -> str | None:
    for bucket in ("litellm_metadata", "metadata"):
        held = arguments.get(bucket)
        id = held.get("session_id") if isinstance(held, dict) else None
        if isinstance(id, str) and id:
            return id
    id = arguments.get("litellm_session_id")
    return id if isinstance(id, str) and id else None


def _header(data: Wire) -> str | None:
    headers = (data.get("proxy_server_request") or {}).get("headers") or {}
    return next((value for name, value in headers.items() if name.lower() == SESSION_HEADER and value), None)


def _name_of(key: Any, id: str) -> ConversationName:
    """Return the session of this id for the owner of the API key."""
    team, hashed = getattr(key, "team_id", None), getattr(key, "api_key", None)
    tenant = f"team-{team}" if team else f"key-{hashed}" if hashed else "default"
    user = getattr(key, "end_user_id", None) or getattr(key, "user_id", None)
    return ConversationName(id, tenant, user)


# -- handlers, made on first use -----------------------------------------------------------------------------------


def session_handler(store: Store | Conversations, **options: Unpack[ConversationOptions]) -> CustomLogger:
    """Return a callback for ``litellm.callbacks``, a `SessionHandler`; `options` as for `Conversations`."""
    try:
        from litellm.integrations.custom_logger import CustomLogger
    except ModuleNotFoundError:
        raise InputError("litellm is not installed; pip install 'litellm>=1.109'") from None
    conversations = Conversations.of(store, **options)
    # LiteLLM looks for hooks among the class's own names
    hooks = {name: value for name, value in vars(SessionHandler).items() if name.startswith("async_")}
    made = type("SessionHandler", (SessionHandler, CustomLogger), hooks)()
    made.conversations = conversations
    return cast("CustomLogger", made)


@cache
def _proxy_handler() -> CustomLogger:
    uri, tokens = os.environ.get(STORE_VARIABLE), os.environ.get(BUDGET_VARIABLE)
    if not uri:
        raise InputError(
            f"{STORE_VARIABLE} is not set; the proxy's store is named there, such as file:/var/lib/ctxsteward"
        )
    if tokens and not tokens.isdecimal():
        raise InputError(f"{BUDGET_VARIABLE} is {tokens!r:.40}; write a number of tokens")
    keys = MasterKeys.from_environment(os.environ, KEY_VARIABLE) if os.environ.get(KEY_VARIABLE) else None
    store = open_store(uri, journal=os.environ.get(JOURNAL_VARIABLE) or None, keys=keys)
    return session_handler(store, budgets=Budgets(dynamic_tokens=int(tokens)) if tokens else None)


def __getattr__(name: str) -> Any:
    if name == "proxy_handler":
        return _proxy_handler()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["SessionHandler", "answer_of", "session_handler"]
