"""Count the tokens of texts, messages, tools and whole prompts as providers count them.

Texts are counted with `encode_ordinary`, which reads a special token such as ``<|endoftext|>`` inside a text as plain
text. Up to `WHOLE_TEXT_CHARS` counts are the encoder's own. A longer text is encoded in slices. A slice ends at a line
or word boundary, which does not change the count. If the last `_BOUNDARY_CHARS` of a slice have no boundary (a megabyte
of one character), the text is cut there anyway, and the count is an estimate, a few tokens a slice too high. Slices are
needed because the encoder's regular expression engine fails on long texts: on a million spaces tiktoken 0.14 panics,
which `except Exception` does not catch.

A message costs 3 + its role (one token) + its parts, and a ``name`` costs one more than its text. Source: OpenAI
cookbook, "How to count tokens with tiktoken". Providers do not publish the frame of a tool call or a tool result;
`TOOL_CALL_TOKENS` and `TOOL_RESULT_TOKENS` are estimates on the high side. Images: `models`. Base64 is never counted as
text.

A `Counter` is one tokenizer and one image formula, and the name under which its counts are stored. Counts are additive
over fragments that end in a newline (no token of our encodings spans one and the first word of the next line in 400 of
400 measured joins), so a section costs the sum of its fragments. No counts are cached: they are stored with the
messages, so a repeated text is rare, and a cache by text would keep erased text alive. Measured on one core: o200k_base
takes 33 µs a kilobyte of English, a SHA-256 as key 1 µs.

Raises `InputError` and, from `load_tokenizer`, `TokenizerUnavailable`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ctxsteward.schemas import (
    ImagePart,
    InputError,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from ctxsteward.schemas.message import MEDIA_TYPES, Wire

from .encodings import load_encoding
from .models import ImageRule, image_tokens

MESSAGE_TOKENS = 4
"""3 for the frame of a message and 1 for its role; every role is one token in both encodings."""
NAME_TOKENS = 1
TOOL_CALL_TOKENS = 8
TOOL_RESULT_TOKENS = 5
REPLY_PRIMING_TOKENS = 3
"""Tokens of the frame of the expected reply, once a request."""
BLOB_TOKENS = 1600
"""Estimate for a base64 string in an unknown block (a PDF page, a sound): about a large image."""

WHOLE_TEXT_CHARS = 131_072
_BOUNDARY_CHARS = 4096
# After a newline before a letter or digit, and before a single space: no token of either encoding spans it.
_BOUNDARY = re.compile(r"(?<=\n)(?=[^\W_])|(?<=\S)(?= \S)")

_MIN_BLOB_CHARS = 512
_BLOB = re.compile(r"(?:data:[\w/+.;=-]{1,100},)?[A-Za-z0-9+/_-]+={0,2}", re.ASCII)


@runtime_checkable
class Tokenizer(Protocol):
    """Port: count the tokens of a text."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...


class TiktokenTokenizer:
    """A tokenizer with one of the published encodings, built by `load_tokenizer`."""

    __slots__ = ("_encode", "name")

    def __init__(self, name: str, encode: Callable[[str], list[int]]) -> None:
        self.name: str = name
        self._encode = encode

    def count(self, text: str) -> int:
        """Return the tokens of a text; see the module for texts over `WHOLE_TEXT_CHARS`."""
        if len(text) <= WHOLE_TEXT_CHARS:
            return len(self._encode(text))
        return sum(len(self._encode(part)) for part in _slices(text))

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, with special tokens read as plain text."""
        if len(text) <= WHOLE_TEXT_CHARS:
            return self._encode(text)
        return [token for part in _slices(text) for token in self._encode(part)]

    def __repr__(self) -> str:
        return f"TiktokenTokenizer({self.name!r})"


DEFAULT_TOKENIZER = "o200k_base"
"""Tokenizer whose counts are stored with each message, unless a session is opened with another."""


def load_tokenizer(name: str) -> TiktokenTokenizer:
    """Return ``o200k_base`` or ``cl100k_base``, offline; the first call of a process builds it."""
    return TiktokenTokenizer(name, load_encoding(name).encode_ordinary)


def _slices(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > WHOLE_TEXT_CHARS:
        stop = start + WHOLE_TEXT_CHARS
        boundaries = [match.start() for match in _BOUNDARY.finditer(text, stop - _BOUNDARY_CHARS, stop)]
        stop = boundaries[-1] if boundaries else stop
        yield text[start:stop]
        start = stop
    yield text[start:]


def count_message(message: Message, tokenizer: Tokenizer, images: ImageRule = "openai-tiles") -> int:
    """Return the tokens of one message in a prompt, including its frame."""
    parts, wire = message.parts, message.wire
    if len(wire) == 2 and len(parts) == 1:  # the hot path: a role and a text
        part = parts[0]
        if type(part) is TextPart:
            return MESSAGE_TOKENS + tokenizer.count(part.text)
    total = MESSAGE_TOKENS
    content = wire.get(message.content_field)
    blocks: Sequence[object] = content if isinstance(content, list) else ()
    for index, part in enumerate(parts):
        # Blocks of a list become parts one to one, as Gemini's do; tool calls of the OpenAI dialect follow after them.
        block = blocks[index] if index < len(blocks) and message.role != "tool" else wire
        total += _part_tokens(part, block, tokenizer, images)
    name = wire.get("name")
    if isinstance(name, str):
        total += NAME_TOKENS + tokenizer.count(name)
    return total


def _part_tokens(part: Part, block: object, tokenizer: Tokenizer, images: ImageRule) -> int:
    match part:
        case TextPart():
            return tokenizer.count(part.text)
        case ToolCallPart():
            return TOOL_CALL_TOKENS + tokenizer.count(part.name) + tokenizer.count(part.arguments)
        case ToolResultPart():
            total = TOOL_RESULT_TOKENS + tokenizer.count(part.text)
            total += sum(image_tokens(image, images) for image in part.images)
            return total + _unread_result_tokens(block, tokenizer)
        case ThinkingPart():
            return tokenizer.count(part.text) if part.text else _redacted_tokens(block)
        case ImagePart():
            return image_tokens(part, images)
        case _:
            return _json_tokens(block, tokenizer)


def _unread_result_tokens(block: object, tokenizer: Tokenizer) -> int:
    """Return the tokens of media in a tool result, which its part shows only as a word."""
    content = block.get("content") if isinstance(block, dict) else None
    if not isinstance(content, list):
        return 0
    unread = (item for item in content if isinstance(item, dict) and item.get("type") in MEDIA_TYPES)
    return sum(_json_tokens(item, tokenizer) for item in unread)


def _redacted_tokens(block: object) -> int:
    """Estimate encrypted thinking at 5 characters a token: 4 base64 characters are 3 bytes, a token about 4."""
    data = block.get("data", block.get("encrypted_content")) if isinstance(block, dict) else None
    return len(data) // 5 if isinstance(data, str) else 0


def _json_tokens(value: object, tokenizer: Tokenizer) -> int:
    """Return the tokens of a value's JSON text, with `BLOB_TOKENS` for each base64 string in it."""
    blobs = 0

    def clean(node: object) -> object:
        nonlocal blobs
        match node:
            case str() if _is_blob(node):
                blobs += 1
                return ""
            case dict():
                return {key: clean(item) for key, item in node.items()}
            case list():
                return [clean(item) for item in node]
        return node

    try:
        text = json.dumps(clean(value), ensure_ascii=False, default=str)
    except RecursionError as error:
        raise InputError("a value that refers to itself or is nested too deep cannot be counted") from error
    return tokenizer.count(text) + blobs * BLOB_TOKENS


def _is_blob(text: str) -> bool:
    if len(text) < _MIN_BLOB_CHARS or " " in text[:_MIN_BLOB_CHARS]:
        return False
    if "\n" in text[60:80]:  # wrapped in lines, as in mail
        text = text.replace("\r", "").replace("\n", "")
    return _BLOB.fullmatch(text) is not None


# Tool schemas: constants of the cookbook for gpt-4o and later (gpt-4 and gpt-3.5 take 3 more a function).
_FUNCTION_TOKENS = 7
_PROPERTIES_TOKENS = 3
_PROPERTY_TOKENS = 3
_ENUM_TOKENS = -3
_ENUM_ITEM_TOKENS = 3
_TOOLS_END_TOKENS = 12

_MAX_SCHEMA_DEPTH = 64
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_ONE = (
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
)
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_NOT_SHOWN = frozenset(("type", "description", "enum", "required", "title", "strict", "$schema", "$id", "$comment"))
_SUBSCHEMAS = frozenset((*_NAMED, *_ONE, *_MANY))


def count_tools(tools: Sequence[Wire], tokenizer: Tokenizer) -> int:
    """Return the tokens of a request's tool definitions, in OpenAI (chat or responses), Anthropic, MCP or Gemini form.

    The cookbook's formula covers flat properties with a type and a description. It is extended here to nested objects,
    arrays, alternatives and definitions; other keywords count as text. A provider's own tools count as JSON.
    """
    functions = [function for tool in tools for function in _functions(tool)]
    if not functions:
        return 0
    return _TOOLS_END_TOKENS + sum(_function_tokens(function, tokenizer) for function in functions)


def _functions(tool: Wire) -> Iterator[Wire]:
    if not isinstance(tool, dict):
        raise InputError(f"a tool is {type(tool).__name__}; expected a dict with a name and a JSON schema")
    declared = tool.get("functionDeclarations", tool.get("function_declarations"))
    if isinstance(declared, list):
        yield from (item for item in declared if isinstance(item, dict))
    elif isinstance(tool.get("function"), dict):
        yield tool["function"]
    else:
        yield tool


def _function_tokens(function: Wire, tokenizer: Tokenizer) -> int:
    name = function.get("name")
    schema = next((function[key] for key in ("parameters", "input_schema", "inputSchema") if key in function), None)
    if not isinstance(name, str) or not (isinstance(schema, dict) or "description" in function):
        return _FUNCTION_TOKENS + _json_tokens(function, tokenizer)
    total = _FUNCTION_TOKENS + tokenizer.count(f"{name}:{_sentence(function)}")
    if isinstance(schema, dict):
        total += _schema_tokens(schema, tokenizer)
    if isinstance(function.get("format"), dict):  # a custom tool's grammar
        total += _json_tokens(function["format"], tokenizer)
    return total


def _schema_tokens(root: Wire, tokenizer: Tokenizer) -> int:
    total = 0
    stack: list[tuple[Wire, int]] = [(root, 1)]
    while stack:
        schema, depth = stack.pop()
        if depth > _MAX_SCHEMA_DEPTH:
            raise InputError(f"a tool schema is nested deeper than {_MAX_SCHEMA_DEPTH} levels; flatten it or use $ref")
        total += _own_tokens(schema, tokenizer)
        for name, child in _children(schema):
            line = ":".join(text for text in (name, _type(child), _sentence(child)) if text)
            total += _PROPERTY_TOKENS + tokenizer.count(line)
            stack.append((child, depth + 1))
    return total


def _own_tokens(schema: Wire, tokenizer: Tokenizer) -> int:
    total = _PROPERTIES_TOKENS if schema.get("properties") else 0
    choices = schema.get("enum")
    if isinstance(choices, list):
        texts = (item if isinstance(item, str) else json.dumps(item, default=str) for item in choices)
        total += _ENUM_TOKENS + sum(_ENUM_ITEM_TOKENS + tokenizer.count(text) for text in texts)
    for key, value in schema.items():
        if key not in _NOT_SHOWN and key not in _SUBSCHEMAS:
            total += _json_tokens({key: value}, tokenizer)
    return total


def _children(schema: Wire) -> Iterator[tuple[str, Wire]]:
    """Yield sub-schemas with their names; an alternative or an array's item has no name."""
    for key in _NAMED:
        named = schema.get(key)
        if isinstance(named, dict):
            yield from ((name, child) for name, child in named.items() if isinstance(child, dict))
    for key in _ONE:
        if isinstance(schema.get(key), dict):
            yield "", schema[key]
    for key in _MANY:
        several = schema.get(key)
        if isinstance(several, list):
            yield from (("", child) for child in several if isinstance(child, dict))


def _type(schema: Wire) -> str:
    kind = schema.get("type", "")
    return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _sentence(schema: Wire) -> str:
    text = schema.get("description")
    return text.removesuffix(".") if isinstance(text, str) else ""


# A total is a sum of disjoint fields: OpenAI and Gemini include cached tokens, Anthropic and Bedrock do not.
_USAGE_FIELDS: tuple[tuple[str, ...], ...] = (
    ("prompt_tokens",),
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    ("prompt_token_count",),
    ("promptTokenCount",),
    ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
)


def prompt_tokens_of(usage: object) -> int:
    """Return all prompt tokens, cached ones included, from a provider's usage report (dict or SDK object).

    >>> prompt_tokens_of({"input_tokens": 21, "cache_read_input_tokens": 1800})
    1821
    """
    for first, *others in _USAGE_FIELDS:
        if (value := _usage_field(usage, first)) is not None:
            return value + sum(_usage_field(usage, field) or 0 for field in others)
    expected = ", ".join(fields[0] for fields in _USAGE_FIELDS)
    hint = "; pass `response.usage`" if _usage_value(usage, "usage") is not None else ""
    raise InputError(f"no prompt tokens in a usage report of type {type(usage).__name__}; expected {expected}{hint}")


def _usage_value(usage: object, field: str) -> object:
    return usage.get(field) if isinstance(usage, Mapping) else getattr(usage, field, None)


def _usage_field(usage: object, field: str) -> int | None:
    value = _usage_value(usage, field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"usage field `{field}` is {value!r}; expected a whole number of tokens")
    return value


FRAME_TOKENS = 4
"""Tokens that a provider adds to a derived message for its frame and role."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A tokenizer and a formula for images."""

    tokenizer: Tokenizer
    images: ImageRule = "openai-tiles"
    name: str = field(init=False, compare=False)
    """Key of stored counts."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.tokenizer.name}/{self.images}")

    def text(self, text: str) -> int:
        return self.tokenizer.count(text)

    def framed(self, text: str) -> int:
        """Return the tokens of a derived message with this text."""
        return self.tokenizer.count(text) + FRAME_TOKENS

    def message(self, message: Message) -> int:
        return count_message(message, self.tokenizer, self.images)

    def tools(self, tools: Sequence[Wire]) -> int:
        return count_tools(tools, self.tokenizer) if tools else 0
