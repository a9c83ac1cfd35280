"""`wrap(client, store)`: a client of OpenAI or Anthropic whose calls send bounded envelopes of long sessions.

    client = wrap(OpenAI(), store, budgets=Budgets(dynamic_tokens=4000))
    with conversation("chat-1", tenant="acme", principal="ada"):
        client.chat.completions.create(model="gpt-4o", messages=the_whole_history)

The result is a client of the same class with the same options: streaming, helpers, raw responses, retries and timeouts
work as before. It changes calls of ``chat.completions``, ``responses`` and Anthropic's ``messages`` (beta too); all
other requests pass through unchanged. In those calls, the envelope replaces messages, system texts and tools, in the
provider's own form; every other field stays as it is.

One call of the SDK is one build, however many attempts it takes: later attempts send the bytes of the first. An answer
is kept once it is complete (a stream's at its end; a stream that broke off is not kept, because the next history shows
how the caller continued). Usage corrects the estimates. The sent bytes are audited. `on_call` receives each call.

A Responses call may leave its history to the provider (`previous_response_id`, `conversation`) or to a template
(`prompt` alone). It is then sent unchanged, because there is nothing to build from, and one warning says so. A request
whose build failed is sent unchanged as well, with a warning each time, unless `on_error="raise"`.

OpenAI's client gets an HTTP client around its own (`httpx2`), so code that signs or hooks requests there sees the final
bytes. Anthropic's client gets a middleware, which runs before the signing for clouds. The answer in Bedrock's binary
streams is not read; the next history contains it.

Raises `InputError` for another kind of client, for a wrapped client, and for a call without a named session;
ImportError if neither SDK is installed, when `wrap` is called. An `InputError` about a call (an invalid message,
a tool schema without a name) is raised from the call itself, with its full text.
"""

from __future__ import annotations

from typing import TypeVar, Unpack, cast

from ctxsteward.schemas import InputError
from ctxsteward.schemas.arguments import known_options

from .conversations import (
    ConversationName,
    ConversationOptions,
    Conversations,
    SessionSource,
    checked_conversation,
)

ClientT = TypeVar("ClientT")


@known_options(*ConversationOptions.__annotations__)
def wrap(
    client: ClientT,
    store: SessionSource,
    *,
    session: str | None = None,
    tenant: str = "default",
    principal: str | None = None,
    **options: Unpack[ConversationOptions],
) -> ClientT:
    """Return a client like this one whose calls belong to sessions of the store; see the module.

    `session` with `tenant` and `principal` names one session for all calls. Without it, each call needs a surrounding
    `with conversation("chat-1"):`, which also takes precedence. `options` are those of `Conversations`: `budgets` or
    `builder`, `profile`, `tools`, `on_error`, `on_call`. Clients may share `Conversations` given as `store`.
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
