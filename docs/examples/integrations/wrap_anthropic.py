"""The same on Anthropic's client, async and streamed."""

import asyncio

from anthropic import AsyncAnthropic

from ctxsteward.envelope import Budgets, open_store, wrap

store, calls = open_store("memory:"), []


async def main():
    history = []
    budgets = Budgets(dynamic_tokens=500)
    async with wrap(AsyncAnthropic(), store, session="chat-1", budgets=budgets, on_call=calls.append) as client:
        for number in range(30):
            text = f"Bicycle {number} has frame number FN-{number * 739} and squeaks."
            history.append({"role": "user", "content": text})
            async with client.messages.stream(model="claude-opus-4-1", max_tokens=500, messages=history) as stream:
                answer = await stream.get_final_message()
            history.append({"role": "assistant", "content": answer.content})


asyncio.run(main())
print(
    len(calls), "calls, the last one", calls[-1].envelope.tokens, "tokens,", calls[-1].cached_tokens, "of them cached"
)
print("differences between what was built and what was sent:", sum(len(call.findings) for call in calls))
