"""Tool schemas between providers: name, description, JSON Schema of the arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

from ctxsteward.schemas import Wire

_OPEN: Wire = {"type": "object", "properties": {}}


class Tool(NamedTuple):
    """What every provider's tool schema says."""

    name: str
    description: str
    schema: Wire


def read_tool(tool: Wire) -> Tool:
    """Read an OpenAI (nested or flat) or Anthropic tool schema."""
    inner = tool["function"] if isinstance(tool.get("function"), dict) else tool
    schema: Any = inner.get("parameters") or inner.get("input_schema") or inner.get("inputSchema") or _OPEN
    return Tool(str(inner.get("name", "")), str(inner.get("description") or ""), schema)


def as_openai_tool(tool: Wire) -> Wire:
    """``{"type": "function", "function": {…}}``; a schema in that form already goes back as it is."""
    if isinstance(tool.get("function"), dict):
        return tool
    name, description, schema = read_tool(tool)
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def as_responses_tool(tool: Wire) -> Wire:
    """``{"type": "function", "name": …}``; built-in tools go back as they are."""
    if tool.get("type") not in (None, "function", "custom") and "input_schema" not in tool:
        return tool
    name, description, schema = read_tool(tool)
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
        "strict": False,
    }


def as_anthropic_tool(tool: Wire) -> Wire:
    """``{"name": …, "input_schema": …}``; a schema in that form, or a built-in tool, goes back as it is."""
    if "input_schema" in tool or ("function" not in tool and "parameters" not in tool and "type" in tool):
        return tool
    name, description, schema = read_tool(tool)
    return {"name": name, "description": description, "input_schema": schema}


def as_gemini_tool(tool: Wire) -> Wire:
    """A function declaration."""
    name, description, schema = read_tool(tool)
    return {"name": name, "description": description, "parameters_json_schema": schema}
