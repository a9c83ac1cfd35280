"""An agent with tools: long results enter the window as excerpts, and the model reads the rest back by reference.

    python docs/examples/agent_loop.py

`fake_model` stands where your provider's client goes. It reads a log, then asks for a line that the excerpt left out.
"""

import json

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store, resolve_reference, resolve_reference_tool

PARAMETERS = {"type": "object", "properties": {"service": {"type": "string"}}, "required": ["service"]}
READ_LOG = {"type": "function", "function": {"name": "read_log", "parameters": PARAMETERS}}


def read_log(service: str) -> str:
    lines = [f"{minute:03} {service} request served in {minute % 7 + 3} ms" for minute in range(400)]
    lines[213] = f"213 {service} used up its retry budget of 2, now without pg-replica-3"
    return "\n".join(lines)


def fake_model(messages: list[dict], tools: list[dict]) -> dict:
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
    tools = [READ_LOG, resolve_reference_tool()]
    session = open_store("memory:").session("run-1", system="You are on call.", tools=tools)
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=12_000, arrival_cap_tokens=300))
    session.append({"role": "user", "content": "Why did orders fail?"})
    while True:
        message = fake_model(**builder.build(session).render("openai-chat"))
        session.append(message)
        if not message.get("tool_calls"):
            break
        for tool_call in message["tool_calls"]:
            name, arguments = tool_call["function"]["name"], json.loads(tool_call["function"]["arguments"])
            result = read_log(**arguments) if name == "read_log" else resolve_reference(session, **arguments)
            session.append({"role": "tool", "tool_call_id": tool_call["id"], "content": result})
    envelope = builder.build(session)
    whole = session.resolve("tool:1").parts[0].text
    print("answer:", message["content"])
    print(len(whole), "characters in the log,", envelope.section("dynamic").tokens, "tokens in the request")


if __name__ == "__main__":
    main()
