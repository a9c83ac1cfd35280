"""Whether a request's messages are ones a provider takes: tool calls and results in pairs, nothing empty.

A structural check of rendered requests, independent of the renderers. Source: the providers' published API
references. OpenAI chat completions: every `tool_calls` id is answered by the `tool` messages that follow at
once. Anthropic messages: every `tool_use` is answered at the beginning of the next user message, the first
message is the user's.
"""

from __future__ import annotations

from ctxsteward.schemas import Wire


def openai_problems(request: Wire) -> list[str]:
    """What OpenAI chat completions would refuse, one line each."""
    found: list[str] = []
    open_ids: list[str] = []
    for index, message in enumerate(request["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                found.append(f"messages[{index}]: a result for a call that is not open")
            else:
                open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            found.append(f"messages[{index}]: calls without result: {', '.join(open_ids)}")
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
        if not open_ids and not message.get("content"):
            found.append(f"messages[{index}]: nothing in it")
    return found + ([f"calls without result at the end: {', '.join(open_ids)}"] if open_ids else [])


def anthropic_problems(request: Wire) -> list[str]:
    """What Anthropic messages would refuse, one line each."""
    found: list[str] = []
    open_ids: set[str] = set()
    messages = request["messages"]
    if not messages or messages[0]["role"] != "user":
        found.append("messages[0]: not the user's")
    for index, message in enumerate(messages):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if set(answered) != open_ids or len(answered) != len(open_ids):
            found.append(f"messages[{index}]: results {answered} for calls {sorted(open_ids)}")
        if any(block["type"] != "tool_result" for block in blocks[: len(answered)]):
            found.append(f"messages[{index}]: tool results are not first")
        if not blocks or any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            found.append(f"messages[{index}]: empty content")
        open_ids = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return found + ([f"calls without result at the end: {sorted(open_ids)}"] if open_ids else [])
