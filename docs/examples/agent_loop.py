"""An agent with tools: long results enter the window as excerpts, and the model reads the rest back by reference.

    python docs/examples/agent_loop.py

`fake_model` stands where your provider's client goes. It reads a log, then asks for a line that the excerpt left out.
"""

import json

from ctxsteward.envelope import Budgets, open_store, resolve_reference_tool

PARAMETERS = {"type": "object", "properties": {"service": {"type": "string"}}, "required": ["service"]}
READ_LOG = {"type": "function", "function": {"name": "read_log", "parameters": PARAMETERS}}


def read_log(service: str) -> str:
    lines = [f"{minute:03} {service} request served in {minute % 7 + 3} ms" for minute in range(400)]
    lines[213] = f"213 {service} used up its retry budget of 2, now without pg-replica-3"
    return "\n".join(lines)


def fake_model(model: str, messages: list[dict], tools: list[dict]) -> dict:
    asked = [message for message in messages if message["role"] == "assistant"]
    if not asked:
        return call("call-1", "read_log", service="orders")
    if len(asked) == 1:
        print("in the excerpt:", "retry budget" in messages[-1]["content"])
        return call("call-2", "resolve_reference", ref="tool:1", grep="retry budget")
    return {"role": "assistant", "content": messages[-1]["content"].splitlines()[0]}


def call(call_id: str, name: str, **arguments: str) -> dict:
    tool_call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [tool_call]}


def main() -> None:
    chat = open_store("memory:").chat(
        "run-1",
        model="gpt-4o",
        system="You are on call.",
        tools=[READ_LOG, resolve_reference_tool()],
        budgets=Budgets(dynamic_tokens=12_000, arrival_cap_tokens=300),
    )
    with chat.turn("Why did orders fail?") as turn:
        print("answer:", *turn.ask(fake_model, {"read_log": read_log}))
    whole = chat["tool:1"].parts[0].text
    print(len(whole), "characters in the log,", turn.envelope.section("dynamic").tokens, "tokens in the request")


if __name__ == "__main__":
    main()
