"""Tool schemas between providers: name, description, JSON Schema of the arguments.

A schema in the provider's own form goes back as it is, built-in tools included. A function is translated. What has no
form elsewhere (another provider's built-in or free-text tool) is left out, and `render.dropped_fields` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ctxsteward.schemas import Wire

_OPEN: Wire = {"type": "object", "properties": {}}
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")


Translate = Callable[[Wire], Wire | None]
"""A tool in this provider's form; None where it has none."""


def translated(tools: Sequence[Wire], translate: Translate) -> list[Wire]:
    """The tools a provider can be given."""
    return [made for tool in tools if (made := translate(tool)) is not None]


def read_function(tool: Wire) -> Wire | None:
    """Read a function's schema, OpenAI's, nested or flat, or Anthropic's: its name, description and parameters."""
    nested = tool.get("function")
    inner: Wire = nested if isinstance(nested, dict) else tool
    if not isinstance(inner.get("name"), str) or (inner is tool and tool.get("type") not in (None, "function")):
        return None
    schema: Any = next((inner[key] for key in _SCHEMA_KEYS if isinstance(inner.get(key), dict)), _OPEN)
    return {"name": inner["name"], "description": str(inner.get("description") or ""), "parameters": schema}


def as_openai_tool(tool: Wire) -> Wire | None:
    """``{"type": "function", "function": {…}}``, or OpenAI's own custom tool."""
    nested = tool.get("function")
    if isinstance(nested, dict):
        return tool if "parameters" in nested else {**tool, "function": {**nested, "parameters": _OPEN}}
    if tool.get("type") == "custom" and "custom" in tool:
        return tool
    function = read_function(tool) if "input_schema" not in tool else read_function({**tool, "type": None})
    if function is None:
        return None
    if "strict" in tool:
        function["strict"] = tool["strict"]
    return {"type": "function", "function": function}


def as_responses_tool(tool: Wire) -> Wire | None:
    """``{"type": "function", "name": …}``; built-in and custom tools of this endpoint go back as they are."""
    if tool.get("type") == "function" and "function" not in tool:
        return tool if "parameters" in tool else {**tool, "parameters": _OPEN}
    nested = tool.get("function")
    if isinstance(nested, dict) or "input_schema" in tool or "type" not in tool:
        read = read_function({**tool, "type": None})
        if read is None:
            return None
        strict = nested.get("strict", False) if isinstance(nested, dict) else False
        return {"type": "function", **read, "strict": strict}
    if tool.get("type") == "custom" and isinstance(tool.get("custom"), dict):
        return {"type": "custom", **tool["custom"]}
    return tool if "functionDeclarations" not in tool and "function_declarations" not in tool else None


def as_anthropic_tool(tool: Wire) -> Wire | None:
    """``{"name": …, "input_schema": …}``, or one of Anthropic's built-in tools (their types end in a date)."""
    kind = tool.get("type")
    if "input_schema" in tool or (isinstance(kind, str) and kind[-8:].isdecimal()):
        return tool
    read = read_function(tool)
    if read is None:
        return None
    return {"name": read["name"], "description": read["description"], "input_schema": read["parameters"]}


def as_gemini_tool(tool: Wire) -> Wire | None:
    """A function declaration."""
    read = read_function({**tool, "type": None}) if "input_schema" in tool else read_function(tool)
    if read is None:
        return None
    return {"name": read["name"], "description": read["description"], "parameters_json_schema": read["parameters"]}


def is_gemini_tool(tool: Wire) -> bool:
    """One of Gemini's own tool objects: declarations, search, code execution."""
    return bool(tool) and not {"name", "type", "function"} & set(tool)
