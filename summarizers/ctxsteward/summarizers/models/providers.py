"""`ChatModel` over the SDKs of OpenAI (any compatible server by `base_url`) and Anthropic.

    OpenAIModel("gpt-4o-mini")                                        # key from OPENAI_API_KEY, as the SDK reads it
    OpenAIModel("gemma", base_url="http://127.0.0.1:8080/v1", api_key="none")
    AnthropicModel("claude-haiku-4-5")

An adapter makes one try per call; `calls.GovernedModel` adds retries, limits and prices. The request's deadline limits
the whole try, and the answer's size is bounded (`http`). Impossible usage counts are ignored. An adapter forwards no
tools, except those of a request's `prefix`, which it sends unchanged, because they begin the cached prompt. The SDK is
imported when the adapter is made (extras `openai`, `anthropic`), which raises ImportError if it is missing. Calls
raise `ModelUnavailable`.

Source: the providers' published API references; errors and their meaning as in openai 3.57 and anthropic 2.13.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ctxsteward.schemas import ChatReply, ChatRequest, InputError, ModelUnavailable, TokenUsage
from ctxsteward.schemas.chat_model import ReplyEnd
from ctxsteward.schemas.message import Wire

_OPENAI_ENDS: Mapping[str | None, ReplyEnd] = {"stop": "complete", "length": "length", "content_filter": "refused"}
_ANTHROPIC_ENDS: Mapping[str | None, ReplyEnd] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "max_tokens": "length",
    "refusal": "refused",
    "model_context_window_exceeded": "length",
}
MAX_ERROR_CHARS = 200
MAX_USAGE_TOKENS = 100_000_000
"""Tokens of one call: ten times the longest context window on offer. A larger count is a mistake."""


class _SdkModel:
    """The common part of both adapters: a bounded call, and errors in uniform words."""

    _package: str
    _async_client: str

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        http_client: Any = None,
        async_http_client: Any = None,
    ) -> None:
        """`http_client` and `async_http_client` are `httpx2` clients of the caller: a proxy, or a recording."""
        if not name:
            raise InputError("a model has a name; write the provider's, such as 'gpt-4o-mini'")
        self.name: str = name
        self._sdk()  # takes half a second, but reports a missing package before the first call
        self._given: dict[str, Any] = {"max_retries": 0}
        self._given |= {} if base_url is None else {"base_url": base_url}
        self._given |= {} if api_key is None else {"api_key": api_key}
        self._http = (http_client, async_http_client)

    def _sdk(self) -> Any:
        from importlib import import_module

        try:
            return import_module(self._package)
        except ImportError as error:
            extra = f"pip install 'ctxsteward[{self._package}]'"
            raise ImportError(
                f"model {self.name}: the {self._package} package cannot be imported ({error}); {extra}", name=error.name
            ) from error

    def _client(self, http: Any) -> Any:
        sdk = self._sdk()
        from .http import bounded_client

        try:
            return getattr(sdk, self._async_client)(**self._given, http_client=bounded_client(http))
        except Exception as error:  # no key, or an invalid base_url
            told = ModelUnavailable(self.name, self._first_line(error), is_billed=False)
        raise told

    def _first_line(self, error: BaseException, *keys: object) -> str:
        """Return the first line of an error, without the key, because a server can echo it."""
        text = str(error)
        for key in (self._given.get("api_key"), *keys):
            if isinstance(key, str) and key not in ("", "none"):
                text = text.replace(key, "[key]")
        return (text.splitlines() or [type(error).__name__])[0][:MAX_ERROR_CHARS]

    def close(self) -> None:
        """Close the `http_client` that was given. Every other connection ends with its call."""
        if self._http[0] is not None:
            self._http[0].close()

    def _told(self, error: Exception, key: object) -> ModelUnavailable:
        """Convert an error of the SDK, with whether a retry may help and whether this try may be billed."""
        from .http import AnswerRefused

        sdk, name = self._sdk(), self.name
        if isinstance(error.__cause__, AnswerRefused):
            return ModelUnavailable(name, str(error.__cause__))
        if isinstance(error, sdk.APITimeoutError):
            return ModelUnavailable(name, "no answer within the time", is_passing=True)
        if isinstance(error, sdk.APIStatusError):
            status, response = error.status_code, error.response
            passing = (status in (408, 409, 429) or status >= 500) and _code(error) != "insufficient_quota"
            why = f"HTTP {status}: {self._first_line(error, key)}"
            wait = _seconds(response.headers.get("retry-after"))
            billed = status >= 500
            return ModelUnavailable(name, why, is_passing=passing, is_billed=billed, wait_seconds=wait)
        if isinstance(error, sdk.APIConnectionError):
            cause = error.__cause__
            unsent = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol")
            why = f"no connection: {self._first_line(cause or error, key)}"
            return ModelUnavailable(name, why, is_passing=True, is_billed=not unsent)
        why = f"its answer cannot be read: {type(error).__name__}: {self._first_line(error, key)}"
        return ModelUnavailable(name, why, is_passing=True)

    # -- one call -------------------------------------------------------------------------------------------------

    def reply(self, request: ChatRequest) -> ChatReply:
        """Answer with one try.

        It runs the steps of `reply_async` in an event loop of its own, because a blocking read of a socket limits the
        time of each packet, and not of all packets together.
        """
        from anyio.from_thread import start_blocking_portal

        with start_blocking_portal() as portal:
            reply: ChatReply = portal.call(self._asked, request, self._http[0])
        return reply

    async def reply_async(self, request: ChatRequest) -> ChatReply:
        """`reply` for async callers."""
        return await self._asked(request, self._http[1])

    async def _asked(self, request: ChatRequest, http: Any) -> ChatReply:
        """Make one call with a new client, because each client belongs to its event loop."""
        client = self._client(http)
        from anyio import move_on_after

        try:
            with move_on_after(request.deadline_seconds):
                return self._read(await self._create(client)(**self._body(request)))
            told = ModelUnavailable(self.name, "no answer within the time", is_passing=True)
        except (ImportError, InputError) as error:
            raise error
        except Exception as error:
            told = self._told(error, client.api_key)
        finally:
            await client.close()
        raise told  # outside the block, because the SDK's error contains the request with its key

    def _create(self, client: Any) -> Any:
        raise NotImplementedError

    def _body(self, request: ChatRequest) -> Wire:
        raise NotImplementedError

    def _read(self, answer: Any) -> ChatReply:
        raise NotImplementedError


class OpenAIModel(_SdkModel):
    """A model behind the chat completions API of OpenAI or a compatible server."""

    _package = "openai"
    _async_client = "AsyncOpenAI"

    def __init__(self, name: str, *, structured: bool = True, **given: Any) -> None:
        """`structured`: the server accepts JSON Schemas as `response_format`; else only the prompt requests JSON.

        `given`: `base_url`, `api_key`, `http_client`, `async_http_client`.
        """
        super().__init__(name, **given)
        self._structured = structured
        self._bound = "max_tokens" if "base_url" in self._given else "max_completion_tokens"

    def _create(self, client: Any) -> Any:
        return client.chat.completions.create

    def _body(self, request: ChatRequest) -> Wire:
        prefix = request.prefix or {}
        body: Wire = {
            **prefix,
            "model": self.name,
            "messages": [*prefix.get("messages", ()), *request.messages],
            self._bound: request.max_output_tokens,
            "timeout": request.deadline_seconds,
        }
        if request.schema is not None and self._structured and request.prefix is None:
            schema = {"name": request.purpose, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.seed is not None:
            body["seed"] = request.seed
        return body

    def _read(self, answer: Any) -> ChatReply:
        choice = answer.choices[0]
        said, text = choice.message, _text(choice.message.content)
        ended = _OPENAI_ENDS.get(choice.finish_reason, "other")
        if choice.finish_reason in (None, "", "eos", "eos_token") and text:  # values of compatible servers
            ended = "complete"
        ended = "refused" if getattr(said, "refusal", None) else ended
        ended = "other" if said.tool_calls else ended
        return ChatReply(text=text, ended=ended, usage=_openai_usage(answer.usage))


class AnthropicModel(_SdkModel):
    """A model behind Anthropic's messages API."""

    _package = "anthropic"
    _async_client = "AsyncAnthropic"

    def _create(self, client: Any) -> Any:
        return client.messages.create

    def _body(self, request: ChatRequest) -> Wire:
        prefix = request.prefix or {}
        systems = [message["content"] for message in request.messages if message["role"] == "system"]
        said = [message for message in request.messages if message["role"] != "system"]
        body: Wire = {
            **prefix,
            "model": self.name,
            "messages": [*prefix.get("messages", ()), *said],
            "max_tokens": request.max_output_tokens,
            "timeout": request.deadline_seconds,
        }
        if systems and not prefix:
            body["system"] = "\n\n".join(systems)
        return body

    def _read(self, answer: Any) -> ChatReply:
        text = "".join(block.text for block in answer.content if block.type == "text")
        ended = _ANTHROPIC_ENDS.get(answer.stop_reason, "other")
        return ChatReply(text=text, ended=ended, usage=_anthropic_usage(answer.usage))


_HERE = ("localhost", "127.0.0.1", "::1")


def model_at(address: str, key: str | None = None) -> OpenAIModel | AnthropicModel:
    """Return the model at an address: ``https://HOST/v1#MODEL``, ``openai:MODEL`` or ``anthropic:MODEL``.

    Without a `key` the providers' SDKs read their own environment variables, and a server at an address gets no key.
    An invalid address, or a key that would be readable in transit, raises `InputError`.
    """
    provider, _, name = address.partition(":")
    kinds: dict[str, type[OpenAIModel | AnthropicModel]] = {"openai": OpenAIModel, "anthropic": AnthropicModel}
    if provider in kinds and name:
        return kinds[provider](name, api_key=key)
    url, _, name = address.partition("#")
    if provider not in ("http", "https") or not name or not urlsplit(url).hostname:
        raise InputError(f"model {address:.80}: no address; write https://HOST/v1#MODEL, openai:MODEL, anthropic:MODEL")
    if key and provider == "http" and urlsplit(url).hostname not in _HERE:
        raise InputError(f"model {url}: a key over plain HTTP can be read on its way; use https, or no key")
    return OpenAIModel(name, base_url=url.rstrip("/"), api_key=key or "none")


def _openai_usage(usage: Any) -> TokenUsage | None:
    prompt, output, total = (
        getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None)
    return _usage(prompt, cached, None, output, total=total)


def _anthropic_usage(usage: Any) -> TokenUsage | None:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts: list[Any] = [getattr(usage, name, None) for name in names]
    fresh, read, written = counts[0], counts[1] or 0, counts[2] or 0
    if any(type(count) is not int or count < 0 for count in (fresh, read, written)):
        return None
    return _usage(fresh + read + written, read, written, counts[3])


def _usage(prompt: Any, cached: Any, written: Any, output: Any, *, total: Any = None) -> TokenUsage | None:
    """Return the provider's counts, or None for an estimate if one of the numbers is impossible.

    The count of the prompt is required; missing others are 0.
    """
    cached, written, output = cached or 0, written or 0, output or 0
    counts = (prompt, cached, written, output)
    if any(type(count) is not int or not 0 <= count <= MAX_USAGE_TOKENS for count in counts):
        return None
    if cached + written > prompt or (total is not None and (type(total) is not int or total < prompt + output)):
        return None
    return TokenUsage(prompt_tokens=prompt, cached_tokens=cached, written_tokens=written, output_tokens=output)


def _seconds(text: str | None) -> float | None:
    """Read a Retry-After in seconds. Dates are ignored, because they depend on two clocks, as are impossible times."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 < seconds < math.inf else None


def _code(error: Any) -> str:
    """Return the code of an OpenAI API error, or ""."""
    return str(getattr(error, "code", None) or "")


def _text(content: object) -> str:
    """Return the text of a message, also of a list of parts, as some servers send it."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = (part.get("text") if isinstance(part, dict) else getattr(part, "text", None) for part in content)
    return "".join(part for part in parts if isinstance(part, str))
