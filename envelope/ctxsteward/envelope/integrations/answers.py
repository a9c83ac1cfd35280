"""Answers of providers, as bodies on the wire: `ANSWERS` has a reader per provider, for whole answers and for streams.

An answer is kept only if it is complete, so not one of a stream that broke off. It is also not kept if the caller's
choice is unknown (``n`` above 1), or if the caller sends it back in another form (audio). Then the next history shows
the answer that was used. Blocks and items are kept whole, unknown fields included: thinking with its signature,
reasoning with its encrypted content.

Source: the providers' published API references (streaming events).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

from ..envelope import Provider
from ..render.openai_responses import messages_of_items
from ..render.units import snake_keys
from .cache_misses import OWN_REASON


class CompleteAnswer(NamedTuple):
    """A complete answer."""

    messages: tuple[Wire, ...] = ()
    """Empty if the answer is not known, or not kept."""
    usage: Wire | None = None


class AnswerForm(NamedTuple):
    """The readers of a provider's answers."""

    field: str
    """A field that all its answers have."""
    whole: Callable[[Wire], CompleteAnswer | None]
    """Reads a whole answer; returns None if it is not complete."""
    assemble: Callable[[Sequence[Wire]], CompleteAnswer | None]
    """Reads the events of a stream; returns None if the stream is not complete."""
    text: Callable[[Wire], str | None]
    """Returns the text that one event of a stream adds to the reply."""


def plain_body(body: object) -> Wire | None:
    """Return a body or an SDK's object as a plain JSON object; None for any other value."""
    plain = json.loads(json.dumps(body, default=_dumped))
    return plain if isinstance(plain, dict) else None


def _dumped(value: Any) -> object:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, SimpleNamespace):  # the answers of clients' test doubles
        return vars(value)
    if isinstance(value, (tuple, set, frozenset, Iterator)):
        return list(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def read_answer(provider: Provider, content_type: str, data: bytes) -> CompleteAnswer | None:
    """Read the answer in a response's decoded content; None if it is not complete, or not this provider's."""
    form = ANSWERS[provider]
    if "text/event-stream" in content_type:
        bodies = list(events(data))
        return _with_miss_reason(form.assemble(bodies), bodies)
    body = json.loads(data)
    return _with_miss_reason(form.whole(body), [body]) if isinstance(body, dict) else None


def read_reply(provider: Provider, reply: object) -> CompleteAnswer:
    """Read the answer in a client's return value, in an assistant's message, or in a text.

    Raises `InputError` if it contains no answer that can be kept.
    """
    if isinstance(reply, str):
        if not reply.strip():
            raise InputError("the reply is empty; pass what the client returned, or a text that says something")
        return CompleteAnswer(({"role": "assistant", "content": reply},))
    if hasattr(reply, "__await__"):
        raise InputError("the reply is a coroutine; write `await` before the call of the client")
    if is_stream(reply):
        raise InputError("the reply is a stream; read it through the turn: `for chunk in turn.stream(stream):`")
    form, body = ANSWERS[provider], plain_body(reply)
    if body is None:
        raise InputError(f"the reply is {type(reply).__name__}; pass what the client returned, or its text")
    if "role" in body and "type" not in body:
        if body["role"] not in ("assistant", "model"):
            raise InputError(f"the reply is a message of role {body['role']!r:.40}; pass what the client returned")
        return _complete(lambda: CompleteAnswer((body,) if body["role"] == "model" else _kept(body)), provider)
    if form.field not in body:
        named = [other for other, known in ANSWERS.items() if known.field in body]
        whose = f"it looks like one of {named[0]}: write chat(…, provider={named[0]!r})" if named else "pass it whole"
        raise InputError(f"the reply has no `{form.field}`, so it is no answer of {provider}; {whose}")
    return _complete(lambda: _with_miss_reason(form.whole(body), [body]), provider)


def read_stream(provider: Provider, chunks: Sequence[object]) -> CompleteAnswer:
    """Read the answer from all chunks of a stream, like `read_reply`."""
    if all(isinstance(chunk, str) for chunk in chunks):
        return read_reply(provider, "".join(map(str, chunks)))
    bodies = [body for chunk in chunks if (body := plain_body(chunk)) is not None]
    return _complete(lambda: _with_miss_reason(ANSWERS[provider].assemble(bodies), bodies), provider)


def is_stream(reply: object) -> bool:
    """Tell a stream of chunks from a whole reply."""
    return hasattr(reply, "__next__") or hasattr(reply, "__anext__")


def text_of_chunk(provider: Provider, chunk: object) -> str:
    """Return the text that a chunk of a stream adds to the reply; empty for calls, thinking and usage."""
    if isinstance(chunk, str):
        return chunk
    try:
        return ANSWERS[provider].text(plain_body(chunk) or {}) or ""
    except (AttributeError, LookupError, TypeError):  # another form: the end of the stream says so
        return ""


def _with_miss_reason(answer: CompleteAnswer | None, bodies: Sequence[Wire]) -> CompleteAnswer | None:
    """Keep the provider's own reason for a cache miss among the usage: whoever asks for diagnostics gets it there."""
    for body in bodies:
        for part in (body, body.get("message"), body.get("response")):
            told = part.get("prompt_cache_diagnostics") or part.get("diagnostics") if isinstance(part, dict) else None
            told = (told.get("cache_miss_reason") or told) if isinstance(told, dict) else None
            reason = (told.get("reason") or told.get("type")) if isinstance(told, dict) else None
            if answer is not None and reason and reason != "cache_hit":
                return answer._replace(usage={**(answer.usage or {}), OWN_REASON: str(reason)})
    return answer


def _complete(read: Callable[[], CompleteAnswer | None], provider: Provider) -> CompleteAnswer:
    # A body in another form, and a call whose arguments were cut off at max_tokens, raise many kinds of errors.
    try:
        answer = read()
    except (AttributeError, LookupError, TypeError, ValueError):
        answer = None
    if answer is None:
        raise InputError(f"the answer of {provider} broke off, or has another form; nothing of it is kept: ask again")
    if not answer.messages:
        why = "it says and calls nothing, is audio, or there are several to choose from (n > 1)"
        raise InputError(
            f"the answer of {provider} cannot be kept: {why}; ask for one answer in text, or pass its text"
        )
    return answer


def events(data: bytes) -> Iterator[Wire]:
    """Yield the JSON objects of a stream of server-sent events, without a truncated last one."""
    for block in data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n")[:-1]:
        text = "\n".join(line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:"))
        if text and text != "[DONE]":
            event = json.loads(text)
            if isinstance(event, dict):
                yield event


# -- chat completions ----------------------------------------------------------------------------------------------

_SAID_ONCE = frozenset(("id", "type", "role", "name", "index"))
"""Fields of a delta that are complete in the first piece that has them."""


def _chat_answer(body: Wire) -> CompleteAnswer | None:
    choices = body.get("choices") or []
    message = choices[0].get("message") if len(choices) == 1 else None
    return CompleteAnswer(_kept(message) if isinstance(message, dict) else (), body.get("usage"))


def _kept(message: Wire) -> tuple[Wire, ...]:
    """Return a message as it is sent back, without null and empty fields; nothing if it has audio or no content."""
    kept = {key: value for key, value in message.items() if value is not None and value != []}
    if "audio" in kept or not (kept.get("content") or kept.get("tool_calls") or kept.get("refusal")):
        return ()
    return ({"role": "assistant", **({"content": None} if "content" not in kept else {}), **kept},)


def _assemble_chat(chunks: Sequence[Wire]) -> CompleteAnswer | None:
    message: Wire = {}
    usage, is_finished, is_one = None, False, True
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            is_one = is_one and choice.get("index", 0) == 0
            _add(message, choice.get("delta") or {})
            is_finished = is_finished or choice.get("finish_reason") is not None
    if not is_finished:
        return None
    for call in message.get("tool_calls") or ():
        call.pop("index", None)
    return CompleteAnswer(_kept(message) if is_one else (), usage)


def _add(whole: Wire, piece: Mapping[str, Any]) -> None:
    """Add a piece of a message to the whole: texts grow, list items are matched by `index`."""
    for key, value in piece.items():
        known = whole.get(key)
        if value is None or (known is not None and key in _SAID_ONCE):
            continue
        if isinstance(value, list) and all(isinstance(item, dict) and "index" in item for item in value):
            items = whole.setdefault(key, [])
            for item in value:
                same = next((known for known in items if known.get("index") == item["index"]), None)
                if same is None:
                    items.append(same := {})
                _add(same, item)
        elif isinstance(value, dict):
            _add(whole.setdefault(key, {}), value)
        elif isinstance(known, str) and isinstance(value, str):
            whole[key] = known + value
        else:
            whole[key] = [*known, *value] if isinstance(known, list) and isinstance(value, list) else value


def _chat_text(chunk: Wire) -> str:
    return "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])


# -- responses -----------------------------------------------------------------------------------------------------


def _responses_answer(body: Wire) -> CompleteAnswer | None:
    if body.get("status") not in ("completed", "incomplete"):
        return None
    return CompleteAnswer(tuple(messages_of_items(body.get("output") or ())), body.get("usage"))


def _assemble_responses(stream: Sequence[Wire]) -> CompleteAnswer | None:
    ends = ("response.completed", "response.incomplete")
    last = next((event for event in reversed(stream) if event.get("type") in ends), None)
    return None if last is None else _responses_answer(last["response"])


def _responses_text(event: Wire) -> str | None:
    return event["delta"] if event["type"] == "response.output_text.delta" else None


# -- Anthropic messages --------------------------------------------------------------------------------------------


def _anthropic_answer(body: Wire) -> CompleteAnswer | None:
    content = body.get("content")
    if body.get("type") != "message" or not isinstance(content, list):
        return None
    return CompleteAnswer(({"role": "assistant", "content": content},) if content else (), body.get("usage"))


def _assemble_anthropic(stream: Sequence[Wire]) -> CompleteAnswer | None:
    blocks: dict[int, Wire] = {}
    arguments: dict[int, str] = {}
    usage: Wire = {}
    for event in stream:
        match event.get("type"):
            case "message_start":
                usage |= event["message"].get("usage") or {}
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                if not _grow(blocks[event["index"]], event["delta"], arguments, event["index"]):
                    return None
            case "message_delta":
                usage |= {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
            case "message_stop":
                for index, text in arguments.items():
                    blocks[index]["input"] = json.loads(text) if text else {}
                content = [blocks[index] for index in sorted(blocks)]
                return CompleteAnswer(({"role": "assistant", "content": content},) if content else (), usage or None)
    return None


def _grow(block: Wire, delta: Wire, arguments: dict[int, str], index: int) -> bool:
    """Add a piece to a block; return False for an unknown kind, which makes the whole answer unknown."""
    match delta.get("type"):
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "input_json_delta":
            arguments[index] = arguments.get(index, "") + delta["partial_json"]
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case _:
            return False
    return True


def _anthropic_text(event: Wire) -> str | None:
    return {**(event.get("content_block") or {}), **(event.get("delta") or {})}.get("text")


# -- Gemini --------------------------------------------------------------------------------------------------------


def _gemini_answer(body: Wire) -> CompleteAnswer:
    candidates = body.get("candidates") or []
    content = candidates[0].get("content") if len(candidates) == 1 else None
    parts = [
        {key: value for key, value in part.items() if value is not None} for part in (content or {}).get("parts") or ()
    ]
    usage = snake_keys(body).get("usage_metadata")
    return CompleteAnswer(({"role": "model", "parts": parts},) if parts else (), usage)


def _assemble_gemini(chunks: Sequence[Wire]) -> CompleteAnswer | None:
    """Join the parts of all chunks. Consecutive texts become one, and each signature stays with its part."""
    read = [_gemini_answer(chunk) for chunk in chunks]
    ends = [snake_keys(candidate) for chunk in chunks for candidate in chunk.get("candidates") or ()]
    if not any(end.get("finish_reason") is not None for end in ends):
        return None
    parts: list[Wire] = []
    for part in (part for answer in read for message in answer.messages for part in message["parts"]):
        if parts and parts[-1].keys() == part.keys() == {"text"}:
            parts[-1] = {"text": parts[-1]["text"] + part["text"]}
        else:
            parts.append(part)
    usage = next((answer.usage for answer in reversed(read) if answer.usage), None)
    return CompleteAnswer(({"role": "model", "parts": parts},) if parts else (), usage)


def _gemini_text(chunk: Wire) -> str:
    parts = (part for candidate in chunk["candidates"] for part in candidate["content"]["parts"])
    return "".join(part.get("text") or "" for part in parts if not part.get("thought"))


# -- completions of a plain prompt ---------------------------------------------------------------------------------


def _text_answer(body: Wire) -> CompleteAnswer:
    choices = body.get("choices") or []
    text = choices[0].get("text") if len(choices) == 1 else None
    return CompleteAnswer(({"role": "assistant", "content": text},) if text else (), body.get("usage"))


def _assemble_text(chunks: Sequence[Wire]) -> CompleteAnswer | None:
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or ()]
    if not any(choice.get("finish_reason") is not None for choice in choices):
        return None
    is_one = all(choice.get("index", 0) == 0 for choice in choices)
    whole = {"choices": [{"text": "".join(choice.get("text") or "" for choice in choices)}] if is_one else []}
    usage = next((chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage")), None)
    return _text_answer({**whole, "usage": usage})


def _text_text(chunk: Wire) -> str:
    return "".join(choice.get("text") or "" for choice in chunk["choices"])


ANSWERS: dict[Provider, AnswerForm] = {
    "openai-chat": AnswerForm("choices", _chat_answer, _assemble_chat, _chat_text),
    "openai-responses": AnswerForm("output", _responses_answer, _assemble_responses, _responses_text),
    "anthropic": AnswerForm("content", _anthropic_answer, _assemble_anthropic, _anthropic_text),
    "gemini": AnswerForm("candidates", _gemini_answer, _assemble_gemini, _gemini_text),
    "text": AnswerForm("choices", _text_answer, _assemble_text, _text_text),
}

__all__ = [
    "ANSWERS",
    "AnswerForm",
    "CompleteAnswer",
    "events",
    "is_stream",
    "plain_body",
    "read_answer",
    "read_reply",
    "read_stream",
    "text_of_chunk",
]
