"""`wrap(client, store)`: a client of OpenAI or Anthropic whose calls are shown bounded envelopes of long sessions.

    client = wrap(OpenAI(), store, budgets=Budgets(dynamic_tokens=4000))
    with conversation("chat-1", tenant="acme", principal="ada"):
        client.chat.completions.create(model="gpt-4o", messages=the_whole_history)

What comes back is a client of the same class with the same options: streaming, helpers, raw responses, retries and
timeouts work as before. Calls of ``chat.completions``, ``responses`` and Anthropic's ``messages`` (beta too) are taken;
all other requests pass through untouched. In those, messages, system texts and tools are replaced by the envelope's, in
the provider's own form; every other field stays as it is.

One call of the SDK is one build, whatever it takes: attempts after the first send the bytes of the first. An answer is
kept once it is complete (a stream's at its end; one that broke off is not kept: the next history says what the caller
made of it). Usage corrects the estimates. The bytes that were sent are audited. `on_call` is told of each call.

Where a Responses call leaves its history to the provider (`previous_response_id`, `conversation`) or to a template
(`prompt` alone), there is nothing to build from: it is sent as it is, and a warning says so once. So is a request that
ours failed for, with a warning each time, unless `on_error="raise"`.

OpenAI's client is given an HTTP client around its own (`httpx2`): what signs or hooks requests there sees the final
bytes. Anthropic's is given a middleware, which stands before whatever signs requests for clouds; of Bedrock's binary
streams the answer is not read, and the next history brings it.

Raises `InputError` for what is no such client, one that is wrapped already, and a call for which no session is named;
ImportError where neither SDK is installed, when `wrap` is called. An `InputError` about a call (an invalid message,
a tool schema without a name) is raised from the call itself, with its full text.
"""

from __future__ import annotations

from typing import TypeVar, Unpack, cast

from ctxsteward.schemas import InputError

from .conversations import (
    ConversationName,
    ConversationOptions,
    Conversations,
    SessionSource,
    checked_conversation,
)

ClientT = TypeVar("ClientT")


def wrap(
    client: ClientT,
    store: SessionSource,
    *,
    session: str | None = None,
    tenant: str = "default",
    principal: str | None = None,
    **options: Unpack[ConversationOptions],
) -> ClientT:
    """A client like this one, whose calls belong to sessions of the store; see the module.

    `session` with `tenant` and `principal` names one for all calls; without it each stands inside a
    `with conversation("chat-1"):`, which also goes before it. `options` are those of `Conversations`: `budgets` or
    `builder`, `profile`, `tools`, `on_error`, `on_call`. Clients may share some: given in place of the store.
    """
    try:
        from .sdk_clients import wrapped
    except ModuleNotFoundError as error:
        needed = "wrap needs an SDK that sends through httpx2 (openai 3.54, anthropic 2.12)"
        hint = "pip install 'ctxsteward[openai]' or 'ctxsteward[anthropic]'"
        raise ImportError(f"{needed}: {error}; {hint}", name=error.name) from error
    conversations = Conversations.of(store, **options)
    default = _default_name(session, tenant, principal)
    return cast(ClientT, wrapped(client, conversations, default))


def _default_name(session: str | None, tenant: str, principal: str | None) -> ConversationName | None:
    if session is not None:
        return checked_conversation(ConversationName(session, tenant, principal))
    if (tenant, principal) != ("default", None):
        hint = 'add session="chat-1", or write `with conversation("chat-1", principal=…):` around each call'
        raise InputError(f"tenant and principal are of a session, and none is named; {hint}")
    return None
