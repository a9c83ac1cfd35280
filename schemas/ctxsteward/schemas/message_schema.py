"""The JSON Schema of `message`: which wire dicts are taken, said in JSON Schema 2020-12.

Hand-written, because a wire dict belongs to its provider: fields and block types that we do not know pass.
What it says about role, content, blocks and tool calls is what `Message.from_wire` checks; both take and
refuse the same values (a property test holds them together). JSON Schema cannot say the caps on size and
depth; those stay with `Message.from_wire`.

Branches are `if` / `then`, so that an error names the place inside the branch that was meant.
"""

from __future__ import annotations

from typing import Any, get_args

from .message import GEMINI_KINDS, GEMINI_ROLES, Role

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_ABSENT_OR_NULL: Schema = {"type": "null"}
_NO_CALLS: Schema = {"type": ["array", "null"], "maxItems": 0}
_UNTAGGED: Schema = {"not": {"anyOf": [{"required": ["type"]}, {"required": ["kind"]}]}}
_CALLING = ("tool_use", "thinking", "redacted_thinking")
"""Blocks that a model alone writes."""


def message_schema() -> Schema:
    """The schema without `$schema` and `$id`, newly made."""
    return {
        "title": "message",
        "description": "A message of OpenAI, Anthropic or Gemini, verbatim; unknown provider fields are allowed.",
        "type": "object",
        "properties": {"role": {"enum": list(dict.fromkeys((*get_args(Role), *GEMINI_ROLES)))}},
        "if": {
            "required": ["parts"],
            "properties": {"content": _ABSENT_OR_NULL, "role": {"enum": list(GEMINI_ROLES)}},
            "not": {"required": ["tool_call_id"]},
        },
        "then": _gemini_content(),
        "else": {
            "if": {
                "not": {"required": ["role"]},
                "required": ["type"],
                "properties": {"type": {**_TEXT, "pattern": "^reasoning$|_call$|_output$"}},
            },
            "then": _item(),
            "else": _message(),
        },
        "$defs": {
            "gemini_part": _gemini_part(),
            "content": _content("string", "array"),
            "content_or_null": _content("string", "array", "null"),
            "block": _block(),
            "tool_calls": {"type": ["array", "null"], "items": {"$ref": "#/$defs/tool_call"}},
            "tool_call": _tool_call(),
        },
    }


def _item() -> Schema:
    """An item of OpenAI's responses without a role: a call, its output, or reasoning."""
    called: Schema = {"required": ["call_id", "name"], "properties": {"call_id": _TEXT, "name": _TEXT}}
    texts: Schema = {"type": ["array", "null"]}
    output: Schema = {"if": {"type": "array"}, "then": {"items": {"$ref": "#/$defs/block"}}}
    return {
        "allOf": [
            _when("function_call", {"allOf": [called, _holding("arguments", _TEXT)]}),
            _when("custom_tool_call", {"allOf": [called, _holding("input", _TEXT)]}),
            _when("reasoning", {"properties": {"summary": texts, "content": texts}}),
            _when("function_call_output", _holding("output", {"type": ["string", "array"]})),
            {
                "if": {"properties": {"type": {"pattern": "_output$"}}},
                "then": {"required": ["call_id"], "properties": {"call_id": _TEXT, "output": output}},
            },
        ]
    }


def _message() -> Schema:
    """A message of OpenAI or Anthropic; Gemini parts in one would be lost."""
    lost = {"type": "object", **_UNTAGGED}
    says_nothing = {
        "required": ["parts"],
        "properties": {
            "role": {"const": "assistant"},
            "parts": {"type": "array", "minItems": 1, "not": {"contains": lost}},
            "content": _ABSENT_OR_NULL,
            "refusal": {"not": _TEXT},
        },
    }
    return {
        "required": ["role"],
        "properties": {"role": {"enum": list(get_args(Role))}},
        "allOf": [
            {"properties": {"parts": {"if": {"type": "array"}, "then": {"not": {"contains": lost}}}}},
            {"if": says_nothing, "then": _holding("tool_calls", {"minItems": 1})},
            {
                "if": _role("system", "developer", "user"),
                "then": {
                    "required": ["content"],
                    "properties": {"content": {"$ref": "#/$defs/content"}, "tool_calls": _NO_CALLS},
                    **_no_blocks(*_CALLING),
                },
            },
            {"if": _role("system", "developer"), "then": _no_blocks("tool_result")},
            {
                "if": _role("assistant"),
                "then": {
                    "properties": {
                        "content": {"$ref": "#/$defs/content_or_null"},
                        "tool_calls": {"$ref": "#/$defs/tool_calls"},
                    },
                    **_no_blocks("tool_result"),
                },
            },
            {
                "if": _role("tool"),
                "then": {"properties": {"content": {"$ref": "#/$defs/content_or_null"}}},
            },
        ],
    }


def _role(*roles: str) -> Schema:
    return {"required": ["role"], "properties": {"role": {"enum": list(roles)}}}


def _no_blocks(*kinds: str) -> Schema:
    """The content holds no block of these types."""
    item = {"if": {"type": "object"}, "then": {"properties": {"type": {"not": {"enum": list(kinds)}}}}}
    return {"allOf": [{"properties": {"content": {"if": {"type": "array"}, "then": {"items": item}}}}]}


def _content(*types: str) -> Schema:
    return {"type": list(types), "items": {"$ref": "#/$defs/block"}}


def _block() -> Schema:
    """A content block: bare text, or an object whose `type` says what else it must hold."""
    text_of = {
        "text": "text",
        "input_text": "text",
        "output_text": "text",
        "refusal": "refusal",
        "thinking": "thinking",
    }
    branches = [_when(kind, _holding(field, _TEXT)) for kind, field in text_of.items()]
    branches += [
        _when("image_url", _holding("image_url", _image_url())),
        _when("image", _holding("source", _image_source())),
        _when("tool_use", _holding("name", _TEXT)),
        _when("tool_result", {"properties": {"content": {"$ref": "#/$defs/content_or_null"}}}),
    ]
    return {
        "type": ["string", "object"],
        "if": {"type": "object"},
        "then": {**_holding("type", _TEXT), "allOf": branches},
    }


def _gemini_content() -> Schema:
    """A content of Gemini: calls and thoughts are the model's, results of tools are not."""
    thought = {"required": ["text", "thought"], "properties": {"thought": {"const": True}}}
    of_model = {"not": {"anyOf": [*_required("function_response")]}}
    of_others = {"not": {"anyOf": [*_required("function_call"), thought]}}
    return {
        "properties": {"parts": {"type": "array", "items": {"$ref": "#/$defs/gemini_part"}}},
        "if": _role("model"),
        "then": {"properties": {"parts": {"items": of_model}}},
        "else": {"properties": {"parts": {"minItems": 1, "items": of_others}}},
    }


def _gemini_part() -> Schema:
    """A part of one kind, or of one that we do not know."""
    object_or_null: Schema = {"type": ["object", "null"]}
    parts: Schema = {"type": ["array", "null"], "items": {"$ref": "#/$defs/gemini_part"}}
    read: dict[str, Schema] = {
        "text": _TEXT,
        "function_call": {"type": "object", **_holding("name", _TEXT)},
        "function_response": {"type": "object", **_holding("name", _TEXT)},
        "inline_data": {"type": "object", **_holding("data", _TEXT)},
        "file_data": {
            "type": "object",
            "if": {"required": ["file_uri"]},
            "then": _holding("file_uri", _TEXT),
            "else": _holding("fileUri", _TEXT),
        },
    }
    read["function_call"]["properties"]["args"] = object_or_null
    read["function_response"]["properties"] |= {"response": object_or_null, "parts": parts}
    kinds = [required for kind in GEMINI_KINDS for required in _required(kind)]
    return {
        "type": "object",
        "minProperties": 1,
        **_UNTAGGED,
        "properties": {key: read.get(kind, {"type": "object"}) for kind in GEMINI_KINDS for key in _spellings(kind)},
        "oneOf": [*kinds, {"not": {"anyOf": kinds}}],
    }


def _required(kind: str) -> list[Schema]:
    return [{"required": [key]} for key in _spellings(kind)]


def _spellings(kind: str) -> list[str]:
    """A kind in snake case, as the SDK has it, and in camel case, as the wire has it."""
    first, *others = kind.split("_")
    return list(dict.fromkeys((kind, first + "".join(map(str.capitalize, others)))))


def _image_url() -> Schema:
    return {"type": ["string", "object"], "if": {"type": "object"}, "then": _holding("url", _TEXT)}


def _image_source() -> Schema:
    return {"type": "object", **_when("base64", _holding("data", _TEXT))}


def _tool_call() -> Schema:
    """A function call, or (without a function) a custom call."""
    named = {"type": "object", **_holding("name", _TEXT)}
    return {
        "type": "object",
        "if": {
            "required": ["custom"],
            "properties": {"custom": {"type": "object"}, "function": _ABSENT_OR_NULL},
        },
        "then": {"properties": {"custom": named}},
        "else": _holding("function", named),
    }


def _when(kind: str, then: Schema) -> Schema:
    return {"if": {"required": ["type"], "properties": {"type": {"const": kind}}}, "then": then}


def _holding(field: str, schema: Schema) -> Schema:
    return {"required": [field], "properties": {field: schema}}
