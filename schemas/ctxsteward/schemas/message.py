"""A message: the provider's wire dict, kept verbatim, and a typed view of it.

Wire dicts have one of five dialects:

    openai      chat completions: ``tool_calls``, role ``tool``
    anthropic   messages: content blocks ``tool_use``, ``tool_result``, ``thinking``
    shared      plain text content, which means the same to OpenAI and Anthropic
    responses   OpenAI's responses: blocks ``input_…`` and ``output_text``, an assistant message whose blocks are output
                items, a tool message whose `type` ends in ``_output``; an item without a role (a call, its output,
                reasoning) is put unchanged into such a message (`message_of_item`)
    gemini      contents: ``parts`` instead of `content`, the roles ``user`` and ``model``

The wire dict keeps unknown fields and the order of keys; `parts` is a view and never changes it. The dict that is sent
back to a provider (`sent`) has neither the fields with which an operator governs this product (`CONTROL_FIELDS`) nor
those that a framework adds for itself (`FRAMEWORK_FIELDS`). Otherwise it is equal byte for byte.

Raises `InvalidMessage` (field, found, expected) and `InputTooLarge`. Source: the providers' published API references.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import Field

from .errors import InputTooLarge, InvalidMessage
from .frozen import FrozenModel
from .profile import BLOCKS

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Largest accepted message; a larger one fits into no envelope and should not be in a journal."""

MAX_DEPTH = 64
"""Deepest accepted nesting of lists and dicts in one wire dict."""

Role = Literal["system", "developer", "user", "assistant", "tool"]
Dialect = Literal["openai", "anthropic", "responses", "gemini", "shared"]
Wire = dict[str, Any]
"""A provider's JSON object. Only here a string-keyed dict is a value, because its form belongs to the provider."""

_OPENAI_KEYS = frozenset(
    ("tool_calls", "tool_call_id", "name", "refusal", "annotations", "audio", "function_call", "reasoning_content")
)
_ANTHROPIC_KEYS = frozenset(("cache_control", "stop_reason", "stop_sequence", "usage"))
CONTROL_FIELDS = frozenset(
    (
        "approved",
        "budget",
        "budgets",
        "ctxsteward",
        "nonce",
        "pin",
        "policy",
        "principal",
        "profile",
        "profile_version",
        "seal",
        "sections",
        "tenant",
        "trust",
        "versions",
        *BLOCKS,
    )
)
"""Names, in lower case, of fields that an operator sets outside messages and in profiles. No provider has such a field
in a message. There the message's author has written it, and it governs nothing."""
FRAMEWORK_FIELDS = frozenset(("langchain", "openai_agents", "pydantic_ai"))
"""Fields that a framework adds to its own messages; they are returned to that framework and sent to no provider."""
_RESPONSES_KINDS = frozenset(("input_text", "input_image", "input_file", "output_text"))
_MESSAGE_KEYS = frozenset(("role", "content"))
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_FLAT = frozenset((str, bool, int, float, type(None)))
MEDIA_TYPES = frozenset(("document", "file", "input_file", "input_audio", "audio", "video"))
"""Types of blocks whose content is not text; a tool result shows only their type."""
_ROLES = frozenset(("system", "developer", "user", "assistant", "tool"))
GEMINI_ROLES: dict[str, Role] = {
    "user": "user",
    "tool": "user",
    "function": "user",
    "model": "assistant",
}
"""Our role by Gemini's; tool results may have any role but the model's."""
_TAGS = frozenset(("type", "kind"))
"""Keys that identify parts of user interfaces and agents; no Gemini part has one."""
_CAMEL = re.compile(r"(?<=[a-z])[A-Z]")


class TextPart(FrozenModel):
    """A text by the author of the message."""

    kind: Literal["text"] = "text"
    text: str


class ImagePart(FrozenModel):
    """An image by URL or inline; `data` is base64 and is never counted as text."""

    kind: Literal["image"] = "image"
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    detail: str | None = None


class ToolCallPart(FrozenModel):
    """A tool call of the model; `arguments` is the JSON text as the model wrote it."""

    kind: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: str


class ToolResultPart(FrozenModel):
    """The result of a tool; `text` joins its text blocks, the type of media blocks, and other blocks as JSON."""

    kind: Literal["tool_result"] = "tool_result"
    call_id: str
    name: str | None = None
    text: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()


class ThinkingPart(FrozenModel):
    """Reasoning that must be sent back byte for byte or not at all (`text` is empty if redacted)."""

    kind: Literal["thinking"] = "thinking"
    text: str


class OpaquePart(FrozenModel):
    """A block that this version does not know; kept in the wire dict and sent only to its own provider."""

    kind: Literal["opaque"] = "opaque"
    type: str


Part = Annotated[
    TextPart | ImagePart | ToolCallPart | ToolResultPart | ThinkingPart | OpaquePart,
    Field(discriminator="kind"),
]


class Message(FrozenModel):
    """A wire dict and its typed view; build one with `Message.from_wire`."""

    role: Role
    dialect: Dialect
    parts: tuple[Part, ...]
    wire: Wire
    """A private copy of the provider's dict. Treat it as read-only."""

    @classmethod
    def from_wire(cls, wire: object) -> Message:
        """Read an OpenAI, Anthropic or Gemini dict (or SDK object with ``model_dump``); neither keep nor change it."""
        return _checked(decode_wire(encode_wire(wire)))

    @property
    def content_field(self) -> str:
        """Name of the field of `wire` with its blocks: `parts` in a Gemini content, else `content`."""
        return "parts" if self.dialect == "gemini" else "content"

    @property
    def text(self) -> str:
        """The text parts, joined by newlines, without tool results and thinking."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        if self._plain:
            return ()
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        if self._plain:
            return ()
        return tuple(part for part in self.parts if isinstance(part, ToolResultPart))

    @property
    def _plain(self) -> bool:
        """Whether the message is only one text, like most messages."""
        return len(self.parts) == 1 and type(self.parts[0]) is TextPart


def encode_wire(wire: object) -> str:
    """Return the JSON text of a wire dict; refuse NaN, lone surrogates, and sizes and depths above the caps.

    The order of keys is kept.
    """
    if isinstance(wire, Message):
        wire = wire.wire
    elif not isinstance(wire, dict) and hasattr(wire, "model_dump"):
        wire = wire.model_dump(mode="json", exclude_none=True)
    if not isinstance(wire, dict):
        raise InvalidMessage("(message)", type(wire).__name__, "a dict with `role` and `content`")
    if "role" not in wire:
        wire = message_of_item(wire)
    try:
        text = _encode(wire)
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError as error:
        raise InvalidMessage("content", "a lone surrogate", "well-formed Unicode; decode the input as UTF-8") from error
    except RecursionError as error:
        raise InvalidMessage("content", "a circular or very deep value", f"at most {MAX_DEPTH} levels") from error
    except (TypeError, ValueError) as error:
        raise InvalidMessage("content", str(error), "JSON values (finite numbers, text, lists, dicts)") from error
    if len(text) > MAX_MESSAGE_BYTES // 4 and len(text.encode()) > MAX_MESSAGE_BYTES:
        raise InputTooLarge("message", len(text.encode()), MAX_MESSAGE_BYTES)
    return text


def control_fields(wire: Wire) -> tuple[str, ...]:
    """Return the paths of a message's control fields: its own, and those of its blocks and calls.

    >>> control_fields({"role": "user", "content": [{"type": "text", "text": "hi", "trust": 1}], "Budgets": {}})
    ('content[0].trust', 'Budgets')
    """
    return () if _is_plain(wire) else tuple(_controls(wire, ""))


def sent(wire: Wire) -> Wire:
    """Return the message for its provider, without control and framework fields; the same dict if it has none.

    >>> sent({"role": "user", "content": "hi", "budgets": {"dynamic_tokens": 9}, "langchain": {}, "x_vendor": 1})
    {'role': 'user', 'content': 'hi', 'x_vendor': 1}
    """
    if _is_plain(wire):
        return wire
    if not FRAMEWORK_FIELDS.isdisjoint(wire):
        wire = {key: value for key, value in wire.items() if key not in FRAMEWORK_FIELDS}
    if next(_controls(wire, ""), None) is None:
        return wire
    return _without_controls(wire)


def _is_plain(wire: Wire) -> bool:
    """Return whether a message is only a role and a text, like most; then it has no fields to search."""
    return wire.keys() <= _MESSAGE_KEYS and not isinstance(wire.get("content"), list)


def _is_control(key: str) -> bool:
    return key.casefold().removeprefix("context.").partition(".")[0] in CONTROL_FIELDS


def _inside(wire: Wire, key: str, value: object) -> bool:
    """Return whether a field has blocks or calls; the content of other fields belongs to the provider or the model."""
    return isinstance(value, list) and (key in ("content", "tool_calls") or (key == "parts" and is_gemini(wire)))


def _controls(wire: Wire, path: str) -> Iterator[str]:
    for key, value in wire.items():
        if _is_control(key):
            yield f"{path}{key}"
        elif _inside(wire, key, value):
            for index, item in enumerate(value):
                if isinstance(item, dict):
                    yield from _controls(item, f"{path}{key}[{index}].")


def _without_controls(wire: Wire) -> Wire:
    return {
        key: [_without_controls(item) if isinstance(item, dict) else item for item in value]
        if _inside(wire, key, value)
        else value
        for key, value in wire.items()
        if not _is_control(key)
    }


def take_wire(wire: object) -> tuple[str, Message]:
    """Return the JSON text of a wire dict and its message; the message shares no object with the dict."""
    text = encode_wire(wire)
    if isinstance(wire, dict) and "role" in wire and all(map(_FLAT.__contains__, map(type, wire.values()))):
        return text, _message(dict(wire))
    return text, _checked(decode_wire(text))


def decode_wire(text: str) -> Message:
    """Return the message for a JSON text that `encode_wire` made."""
    wire = cast(Wire, json.loads(text))
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(wire) > MAX_DEPTH:
        raise InvalidMessage("content", "deeper nesting", f"at most {MAX_DEPTH} levels")
    return _message(wire)


def _checked(message: Message) -> Message:
    """Refuse a message whose `parts` would be lost. Logs skip this check: old logs may hold such messages."""
    parts = message.wire.get("parts")
    if message.dialect == "gemini" or not isinstance(parts, list) or not parts:
        return message
    has_content = message.wire.get("content") is not None
    if any(isinstance(part, dict) and _TAGS.isdisjoint(part) for part in parts):
        if has_content:
            raise InvalidMessage("parts", "Gemini parts beside `content`", "one of the two")
        raise InvalidMessage("role", f"{message.role!r} with Gemini parts", "'user' or 'model'")
    if not has_content and not message.parts:
        raise InvalidMessage("parts", "no `content` beside them", "a provider's message, not one of a user interface")
    return message


def _message(wire: Wire) -> Message:
    role = wire.get("role")
    if is_gemini(wire):
        speaker = GEMINI_ROLES[role or "user"]
        parts = tuple(_gemini_parts(wire["parts"], speaker))
        return Message(role=speaker, dialect="gemini", parts=parts, wire=wire)
    if role == "function":
        raise InvalidMessage("role", "'function' (a retired form)", "`tool` with a `tool_call_id`")
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidMessage("role", _show(role), "system, developer, user, assistant or tool")
    content = wire.get("content")
    if len(wire) == 2 and role != "tool" and isinstance(content, str) and content:  # most messages
        return Message(role=cast(Role, role), dialect="shared", parts=(TextPart(text=content),), wire=wire)
    parts = tuple(_parts(wire, role))
    return Message(role=cast(Role, role), dialect=_dialect(wire, parts), parts=parts, wire=wire)


def _parts(wire: Wire, role: str) -> Iterator[Part]:
    content = wire.get("content")
    if role == "tool":
        text, images = _result_content(content, "content")
        name = wire.get("name") if isinstance(wire.get("name"), str) else None
        yield ToolResultPart(call_id=_id(wire, "tool_call_id"), name=name, text=text, images=images)
        return
    if isinstance(content, str):
        if content:
            yield TextPart(text=content)
    elif isinstance(content, list):
        for index, block in enumerate(content):
            item = _item(block) if role == "assistant" else None
            part = item or _block(block, f"content[{index}]")
            _check_role(part, role, f"content[{index}].type")
            yield part
    elif content is None and role == "assistant" and isinstance(wire.get("refusal"), str):
        yield TextPart(text=wire["refusal"])
    elif content is not None:
        or_null = ", or null" if role == "assistant" else ""
        raise InvalidMessage("content", type(content).__name__, f"text or a list of blocks{or_null}")
    elif role != "assistant":
        raise InvalidMessage("content", "null" if "content" in wire else "nothing", "text or a list of blocks")
    calls = wire.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        raise InvalidMessage("tool_calls", type(calls).__name__, "a list")
    if calls and role != "assistant":
        raise InvalidMessage("tool_calls", f"calls of role {role}", "calls in assistant messages alone")
    for index, call in enumerate(calls):
        yield _openai_call(call, f"tool_calls[{index}]")


def _check_role(part: Part, role: str, where: str) -> None:
    if isinstance(part, (ToolCallPart, ThinkingPart)) and role != "assistant":
        raise InvalidMessage(where, f"{part.kind} of role {role}", "it in assistant messages alone")
    if isinstance(part, ToolResultPart) and role != "user":
        raise InvalidMessage(where, f"tool_result of role {role}", "it in user messages, or role `tool`")


def _block(block: object, where: str) -> Part:
    if isinstance(block, str):
        return TextPart(text=block)
    if not isinstance(block, dict):
        raise InvalidMessage(where, type(block).__name__, "a block with `type`")
    kind = block.get("type")
    match kind:
        case "text" | "input_text" | "output_text":
            return TextPart(text=_str(block, "text", where))
        case "refusal":
            return TextPart(text=_str(block, "refusal", where))
        case "image_url":
            return _image_url(block, where)
        case "input_image" | "computer_screenshot" if isinstance(block.get("image_url"), str):
            return _image_url(block, where)
        case "image":
            return _anthropic_image(block, where)
        case "tool_use":
            arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
            return ToolCallPart(id=_id(block, "id"), name=_str(block, "name", where), arguments=arguments)
        case "tool_result":
            text, images = _result_content(block.get("content"), f"{where}.content")
            is_error = block.get("is_error") is True
            return ToolResultPart(call_id=_id(block, "tool_use_id"), text=text, is_error=is_error, images=images)
        case "thinking":
            return ThinkingPart(text=_str(block, "thinking", where))
        case "redacted_thinking":
            return ThinkingPart(text="")
        case str():
            return OpaquePart(type=kind)
        case _:
            raise InvalidMessage(f"{where}.type", _show(kind), "a block type such as 'text'")


def _item(block: object) -> Part | None:
    """Read an output item of OpenAI's responses, or return None for another block. An assistant may send items."""
    if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
        return None
    if kind == "message":
        return TextPart(text=_item_text(block.get("content")))
    if kind == "reasoning":
        return ThinkingPart(text=_item_text([*(block.get("summary") or ()), *(block.get("content") or ())]))
    if kind.endswith("_call") and _id(block, "call_id"):
        arguments: object = next((block[key] for key in ("arguments", "input", "action") if key in block), {})
        text = arguments if isinstance(arguments, str) else _encode(arguments)
        return ToolCallPart(id=_id(block, "call_id"), name=_id(block, "name") or kind, arguments=text)
    return None


def message_of_item(item: Wire) -> Wire:
    """Return the message for an item of OpenAI's responses without a role: a model's item, or the output of a call.

    >>> message_of_item({"type": "function_call_output", "call_id": "c1", "output": "noon"})
    {'role': 'tool', 'type': 'function_call_output', 'tool_call_id': 'c1', 'content': 'noon'}
    """
    kind = item.get("type")
    if not isinstance(kind, str):
        return item
    if kind in ("function_call", "custom_tool_call"):
        for field in ("call_id", "name", "arguments" if kind == "function_call" else "input"):
            if not isinstance(item.get(field), str):
                raise InvalidMessage(field, _show(item.get(field)), f"text in an item of type {kind!r}")
    for field in ("summary", "content") if kind == "reasoning" else ():
        if not isinstance(item.get(field) or [], list):
            raise InvalidMessage(field, _show(item[field]), "a list of texts")
    if kind == "reasoning" or kind.endswith("_call"):
        return {"role": "assistant", "content": [item]}
    if not kind.endswith("_output"):
        return item
    output, call_id = item.get("output"), item.get("call_id")
    if not isinstance(call_id, str):
        raise InvalidMessage("call_id", _show(call_id), f"text in an item of type {kind!r}")
    if kind == "function_call_output" and not isinstance(output, str | list):
        raise InvalidMessage("output", _show(output), "text or a list of blocks")
    content = output if isinstance(output, str | list) or output is None else [output]
    rest = {key: value for key, value in item.items() if key not in ("type", "call_id", "output")}
    return {"role": "tool", "type": kind, "tool_call_id": call_id, "content": content, **rest}


def is_item_run(message: Message) -> bool:
    """Return whether an assistant message has output items of OpenAI's responses, such as calls and reasoning."""
    return message.dialect == "responses" and message.role == "assistant"


def _item_text(content: object) -> str:
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text", block.get("refusal")) if isinstance(block, dict) else block for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str))


def _openai_call(call: object, where: str) -> ToolCallPart:
    if not isinstance(call, dict):
        raise InvalidMessage(where, type(call).__name__, "a dict with `id` and `function`")
    function = call.get("function")
    if function is None and isinstance(call.get("custom"), dict):
        custom = call["custom"]
        return ToolCallPart(
            id=_id(call, "id"), name=_str(custom, "name", where), arguments=str(custom.get("input", ""))
        )
    if not isinstance(function, dict):
        raise InvalidMessage(f"{where}.function", _show(function), "a dict with `name` and `arguments`")
    arguments = function.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCallPart(id=_id(call, "id"), name=_str(function, "name", f"{where}.function"), arguments=arguments)


def _result_content(content: object, where: str) -> tuple[str, tuple[ImagePart, ...]]:
    if content is None:
        return "", ()
    if isinstance(content, str):
        return content, ()
    if not isinstance(content, list):
        raise InvalidMessage(where, type(content).__name__, "text or a list of blocks")
    texts: list[str] = []
    images: list[ImagePart] = []
    for index, block in enumerate(content):
        part = _block(block, f"{where}[{index}]")
        if isinstance(part, ImagePart):
            images.append(part)
        elif isinstance(part, TextPart):
            texts.append(part.text)
        else:
            kind = part.type if isinstance(part, OpaquePart) else part.kind
            texts.append(f"[{kind}]" if kind in MEDIA_TYPES else _encode(block))
    return "\n".join(texts), tuple(images)


def _image_url(block: Wire, where: str) -> ImagePart:
    image = block.get("image_url")
    if isinstance(image, str):
        image = {"url": image}
    if not isinstance(image, dict):
        raise InvalidMessage(f"{where}.image_url", _show(image), "a dict with `url`")
    url = _str(image, "url", f"{where}.image_url")
    detail = image.get("detail") if isinstance(image.get("detail"), str) else None
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        return ImagePart(media_type=head[5:].partition(";")[0] or None, data=data, detail=detail)
    return ImagePart(url=url, detail=detail)


def _anthropic_image(block: Wire, where: str) -> ImagePart:
    source = block.get("source")
    if not isinstance(source, dict):
        raise InvalidMessage(f"{where}.source", _show(source), "a dict with `type`")
    if source.get("type") == "base64":
        media = source.get("media_type")
        return ImagePart(media_type=media if isinstance(media, str) else None, data=_str(source, "data", where))
    url = source.get("url")
    return ImagePart(url=url if isinstance(url, str) else None)


# -- Gemini ----------------------------------------------------------------------------------------------------------


def is_gemini(wire: Wire) -> bool:
    """Return whether a wire dict is a Gemini content: `parts` instead of `content`, in one of Gemini's roles."""
    if "parts" not in wire or wire.get("content") is not None or "tool_call_id" in wire:
        return False
    role = wire.get("role", "user")
    return isinstance(role, str) and role in GEMINI_ROLES


class GeminiField(NamedTuple):
    """The main field of a Gemini part."""

    kind: str
    """Kind in snake case: ``text``, ``function_call`` …"""
    key: str
    """Key in the part: camel case on the wire, snake case in the SDK."""
    value: Any


def gemini_field(part: Wire) -> GeminiField:
    """Return the field that gives the kind of a Gemini part, or the first field if the kind is unknown.

    >>> gemini_field({"thoughtSignature": "c2ln", "functionCall": {"name": "now"}}).kind
    'function_call'
    """
    fields = [GeminiField(_snake_case(key), key, value) for key, value in part.items()]
    return next((field for field in fields if field.kind in GEMINI_KINDS), fields[0])


def _snake_case(key: str) -> str:
    return _CAMEL.sub(lambda match: f"_{match[0].lower()}", key)


def _gemini_parts(parts: object, role: Role) -> Iterator[Part]:
    if not isinstance(parts, list):
        raise InvalidMessage("parts", _show(parts), "a list of Gemini parts")
    if not parts and role == "user":
        raise InvalidMessage("parts", "an empty list", "at least one Gemini part")
    for index, wire in enumerate(parts):
        part = _gemini_part(wire, f"parts[{index}]")
        _check_role(part, role, f"parts[{index}]")
        yield part


def _gemini_part(part: object, where: str) -> Part:
    if not isinstance(part, dict) or not part:
        raise InvalidMessage(where, _show(part), "a Gemini part such as {'text': …}")
    if (tag := next((key for key in part if key in _TAGS), None)) is not None:
        expected = f"a Gemini part; blocks with `{tag}` go in `content`"
        raise InvalidMessage(f"{where}.{tag}", _show(part[tag]), expected)
    kinds = [key for key in part if _snake_case(key) in GEMINI_KINDS]
    if len(kinds) > 1:
        raise InvalidMessage(where, " and ".join(kinds), "one of them in a part")
    field = gemini_field(part)
    read = GEMINI_KINDS.get(field.kind)
    if field.kind == "text":
        text = _str(part, field.key, where)
        return ThinkingPart(text=text) if part.get("thought") is True else TextPart(text=text)
    if kinds and not isinstance(field.value, dict):
        raise InvalidMessage(f"{where}.{field.key}", _show(field.value), "an object")
    return OpaquePart(type=field.kind) if read is None else read(field.value, f"{where}.{field.key}")


def _gemini_call(call: Wire, where: str) -> Part:
    arguments = call.get("args")
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidMessage(f"{where}.args", _show(arguments), "an object")
    return ToolCallPart(id=_id(call, "id"), name=_str(call, "name", where), arguments=_encode(arguments or {}))


def _gemini_result(result: Wire, where: str) -> ToolResultPart:
    response, media = result.get("response"), result.get("parts")
    if response is not None and not isinstance(response, dict):
        raise InvalidMessage(f"{where}.response", _show(response), "an object")
    if media is not None and not isinstance(media, list):
        raise InvalidMessage(f"{where}.parts", _show(media), "a list of Gemini parts")
    shown = [_gemini_part(part, f"{where}.parts[{index}]") for index, part in enumerate(media or ())]
    named = next((key for key in ("output", "error") if list(response or ()) == [key]), None)
    said = response if named is None or response is None else response[named]
    texts = [said if isinstance(said, str) else _encode(said)] if response else []
    return ToolResultPart(
        call_id=_id(result, "id"),
        name=_str(result, "name", where),
        text="\n".join([*texts, *(f"[{part.type}]" for part in shown if isinstance(part, OpaquePart))]),
        is_error=named == "error",
        images=tuple(part for part in shown if isinstance(part, ImagePart)),
    )


def _gemini_data(media: Wire, where: str) -> Part:
    data, media_type = _str(media, "data", where), _gemini_type(media)
    return ImagePart(media_type=media_type, data=data) if _is_image(media_type) else OpaquePart(type="inline_data")


def _gemini_file(media: Wire, where: str) -> Part:
    url, media_type = _str(media, "file_uri" if "file_uri" in media else "fileUri", where), _gemini_type(media)
    return ImagePart(media_type=media_type, url=url) if _is_image(media_type) else OpaquePart(type="file_data")


def _gemini_type(media: Wire) -> str:
    return _id(media, "mimeType") or _id(media, "mime_type")


def _is_image(media_type: str) -> bool:
    return media_type.startswith("image/")


GEMINI_KINDS: dict[str, Callable[[Wire, str], Part] | None] = {
    "text": None,
    "function_call": _gemini_call,
    "function_response": _gemini_result,
    "inline_data": _gemini_data,
    "file_data": _gemini_file,
    "executable_code": None,
    "code_execution_result": None,
}
"""Kinds of Gemini parts, each with its reader if other providers can show it."""


def with_results(wire: Wire, text: Callable[[object], str]) -> Wire:
    """Return the message with `text(content)` as the content of each tool result; nothing else changes.

    >>> with_results({"role": "tool", "tool_call_id": "c1", "content": "noon"}, lambda content: "[expired]")
    {'role': 'tool', 'tool_call_id': 'c1', 'content': '[expired]'}
    """
    if is_gemini(wire):
        parts = []
        for part in wire["parts"]:
            field = gemini_field(part)
            if field.kind == "function_response":
                result = {key: value for key, value in field.value.items() if key not in ("response", "parts")}
                shown = text(_gemini_result(field.value, field.key).text)
                part = {**part, field.key: {**result, "response": {"output": shown}}}
            parts.append(part)
        return {**wire, "parts": parts}
    if wire["role"] == "tool":
        return {**wire, "content": text(wire.get("content"))}
    blocks = [
        {**block, "content": text(block.get("content"))}
        if isinstance(block, dict) and block.get("type") == "tool_result"
        else block
        for block in wire["content"]
    ]
    return {**wire, "content": blocks}


def _dialect(wire: Wire, parts: tuple[Part, ...]) -> Dialect:
    if wire["role"] == "tool":
        return "responses" if _id(wire, "type").endswith("_output") else "openai"
    if not _OPENAI_KEYS.isdisjoint(wire):
        return "openai"
    if not _ANTHROPIC_KEYS.isdisjoint(wire):
        return "anthropic"
    content = wire.get("content")
    if isinstance(content, str):
        return "shared"
    blocks = [block for block in content or () if isinstance(block, dict)]
    kinds = {block.get("type") for block in blocks}
    if kinds & {"image_url", "input_audio", "refusal", "file"}:
        return "openai"
    if kinds & _RESPONSES_KINDS or (wire["role"] == "assistant" and any(map(_item, blocks))):
        return "responses"
    if kinds - {"text"} or any("cache_control" in block or "citations" in block for block in blocks):
        return "anthropic"
    return "shared" if parts else "openai"


def _id(block: Wire, key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""


def _str(block: Wire, key: str, where: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise InvalidMessage(f"{where}.{key}", _show(value), "text")
    return value


def _show(value: object) -> str:
    return "nothing" if value is None else repr(value)[:60]


def _depth(value: object) -> int:
    deepest, stack = 0, [(value, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        children: Iterator[object] | list[object]
        if isinstance(node, dict):
            children = list(node.values())
        elif isinstance(node, list):
            children = node
        else:
            continue
        stack.extend((child, level + 1) for child in children)
    return deepest
