"""`ChatModel` over the SDKs of OpenAI (any compatible server by `base_url`) and Anthropic.

    OpenAIModel("gpt-4o-mini")                                        # key from OPENAI_API_KEY, as the SDK reads it
    OpenAIModel("gemma", base_url="http://127.0.0.1:8080/v1", api_key="none")
    AnthropicModel("claude-haiku-4-5")

An adapter makes one try a call: retries, limits and prices are `calls.GovernedModel`'s. It forwards no tools; a request
with a `prefix` sends that as it is, tools included, because they are the beginning of what is cached. The SDK is
imported at the first call (extras `openai`, `anthropic`). Raises `InputError` where it is missing, `ModelUnavailable`.

Source: the providers' published API references; errors and their meaning as in openai 3.57 and anthropic 2.13.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ctxsteward.schemas import ChatReply, ChatRequest, InputError, ModelUnavailable, ReplyEnd, TokenUsage, Wire

_OPENAI_ENDS: Mapping[str | None, ReplyEnd] = {"stop": "complete", "length": "length", "content_filter": "refused"}
_ANTHROPIC_ENDS: Mapping[str | None, ReplyEnd] = {
    "end_turn": "complete", "stop_sequence": "complete", "max_tokens": "length", "refusal": "refused",
    "model_context_window_exceeded": "length",
}  # fmt: skip
MAX_ERROR_CHARS = 200


class _SdkModel:
    """What both have in common: a client of each kind, made at the first call, and errors told in our words."""

    _package: str
    _clients: tuple[str, str]

    def __init__(
        self, name: str, *, base_url: str | None = None, api_key: str | None = None, http_client: Any = None,
        async_http_client: Any = None,
    ) -> None:  # fmt: skip
        """`http_client` and its async twin are `httpx2` clients of yours: a proxy, or a recording."""
        if not name:
            raise InputError("a model has a name; write the provider's, such as 'gpt-4o-mini'")
        self.name: str = name
        self._given: dict[str, Any] = {"max_retries": 0}
        self._given |= {} if base_url is None else {"base_url": base_url}
        self._given |= {} if api_key is None else {"api_key": api_key}
        self._http = (http_client, async_http_client)
        self._made: Any = None
        self._lock, self._pid = threading.Lock(), os.getpid()

    def _sdk(self) -> Any:
        from importlib import import_module

        try:
            return import_module(self._package)
        except ImportError:
            extra = f"pip install 'ctxsteward[{self._package}]'"
            raise InputError(f"model {self.name}: the {self._package} package is not installed; {extra}") from None

    def _client(self) -> Any:
        if self._pid != os.getpid():  # in a child: lock and connections are the parent's
            self._lock, self._pid, self._made = threading.Lock(), os.getpid(), None
        with self._lock:
            self._made = self._made or self._new(0)
            return self._made

    def _new(self, kind: int) -> Any:
        sdk, http = self._sdk(), self._http[kind]
        given = self._given | ({} if http is None else {"http_client": http})
        try:
            return getattr(sdk, self._clients[kind])(**given)
        except Exception as error:  # no key, or a base_url that is none
            raise ModelUnavailable(self.name, _first_line(error), is_billed=False) from None

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close()

    def _told(self, error: Exception) -> ModelUnavailable:
        """An error of the SDK: whether asking again may help, and whether this try may be billed."""
        sdk, name = self._sdk(), self.name
        if isinstance(error, sdk.APITimeoutError):
            return ModelUnavailable(name, "no answer within the time", is_passing=True)
        if isinstance(error, sdk.APIStatusError):
            status, response = error.status_code, error.response
            passing = (status in (408, 409, 429) or status >= 500) and _code(error) != "insufficient_quota"
            why = f"HTTP {status}: {_first_line(error)}"
            wait = _seconds(response.headers.get("retry-after"))
            billed = status >= 500
            return ModelUnavailable(name, why, is_passing=passing, is_billed=billed, wait_seconds=wait)
        if isinstance(error, sdk.APIConnectionError):
            cause = error.__cause__
            unsent = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol")
            why = f"no connection: {_first_line(cause or error)}"
            return ModelUnavailable(name, why, is_passing=True, is_billed=not unsent)
        return ModelUnavailable(
            name, f"its answer cannot be read: {type(error).__name__}: {_first_line(error)}", is_passing=True
        )

    # -- one call -------------------------------------------------------------------------------------------------

    def reply(self, request: ChatRequest) -> ChatReply:
        """Answer; one try."""
        try:
            return self._read(self._create(self._client())(**self._body(request)))
        except (InputError, ModelUnavailable):
            raise
        except Exception as error:
            raise self._told(error) from error

    async def reply_async(self, request: ChatRequest) -> ChatReply:
        """`reply` for async callers; a client a call, because each belongs to its event loop."""
        client = self._new(1)
        try:
            return self._read(await self._create(client)(**self._body(request)))
        except (InputError, ModelUnavailable):
            raise
        except Exception as error:
            raise self._told(error) from error
        finally:
            if self._http[1] is None:
                await client.close()

    def _create(self, client: Any) -> Any:
        raise NotImplementedError

    def _body(self, request: ChatRequest) -> Wire:
        raise NotImplementedError

    def _read(self, answer: Any) -> ChatReply:
        raise NotImplementedError


class OpenAIModel(_SdkModel):
    """A model behind OpenAI's chat completions, wherever they are served."""

    _package = "openai"
    _clients = ("OpenAI", "AsyncOpenAI")

    def __init__(self, name: str, *, structured: bool = True, **given: Any) -> None:
        """`structured`: the server takes JSON Schemas as `response_format`; else the prompt alone asks for JSON.

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
        if choice.finish_reason in (None, "", "eos", "eos_token") and text:  # as compatible servers tell it
            ended = "complete"
        ended = "refused" if getattr(said, "refusal", None) else ended
        ended = "other" if said.tool_calls else ended
        return ChatReply(text=text, ended=ended, usage=_openai_usage(answer.usage))


class AnthropicModel(_SdkModel):
    """A model behind Anthropic's messages."""

    _package = "anthropic"
    _clients = ("Anthropic", "AsyncAnthropic")

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
    """The model of an address: ``https://HOST/v1#MODEL``, ``openai:MODEL`` or ``anthropic:MODEL``.

    Without a `key` the providers' SDKs look for one in their own environment variables; a server at an address is told
    none. Raises `InputError` for what is no address, and for a key that could be read on its way.
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
    if usage is None or type(getattr(usage, "prompt_tokens", None)) is not int:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    return TokenUsage(
        prompt_tokens=_count(usage.prompt_tokens),
        cached_tokens=min(_count(getattr(details, "cached_tokens", 0)), _count(usage.prompt_tokens)),
        output_tokens=_count(getattr(usage, "completion_tokens", 0)),
    )


def _anthropic_usage(usage: Any) -> TokenUsage | None:
    if usage is None:
        return None
    read, written = (
        _count(getattr(usage, name, 0)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return TokenUsage(
        prompt_tokens=_count(usage.input_tokens) + read + written,
        cached_tokens=read,
        written_tokens=written,
        output_tokens=_count(usage.output_tokens),
    )


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


def _seconds(text: str | None) -> float | None:
    """Of a Retry-After in seconds; a date is not taken, because it leans on two clocks, nor what is no time to wait."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 < seconds < math.inf else None


def _code(error: Any) -> str:
    """Of an error of OpenAI's API."""
    return str(getattr(error, "code", None) or "")


def _text(content: object) -> str:
    """Of a message: text, or parts of it as some servers send them."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = (part.get("text") if isinstance(part, dict) else getattr(part, "text", None) for part in content)
    return "".join(part for part in parts if isinstance(part, str))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:MAX_ERROR_CHARS]
