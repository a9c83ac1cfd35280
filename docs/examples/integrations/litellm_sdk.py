"""LiteLLM's SDK: a callback that builds the context of every call which names a session."""

import asyncio

import litellm

from ctxsteward.envelope import Budgets, open_store
from ctxsteward.envelope.integrations.litellm import session_handler

store = open_store("memory:")  # "file:./.ctxsteward" keeps it
litellm.callbacks = [session_handler(store, budgets=Budgets(dynamic_tokens=500))]


async def main():
    history = []
    for number in range(30):
        history.append({"role": "user", "content": f"Bicycle {number} has frame number FN-{number * 739} and squeaks."})
        reply = await litellm.acompletion("gpt-4o", messages=history, metadata={"session_id": "chat-1"})
        history.append(reply.choices[0].message)


asyncio.run(main())
session = store.session("chat-1")
print("compacted:", len(session.reports()) > 0)
print("in the log, word for word:", session.resolve("§15").text)
