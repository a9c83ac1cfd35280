"""An agent of Microsoft agent-framework: its history in a store of ours, each call of the model in a bounded prompt.

    pip install 'ctxsteward[agent-framework]'
    python docs/examples/integrations/agent_framework_history.py

`FakeClient` stands where your client goes, such as `OpenAIChatClient(model="gpt-4o")`.
"""

import asyncio

from agent_framework import Agent, BaseChatClient, ChatMiddlewareLayer, ChatResponse, FunctionInvocationLayer, Message

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.integrations.agent_framework import CtxstewardHistory


class FakeClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Remembers what it was sent."""

    async def _inner_get_response(self, *, messages, stream, options, **_):
        self.sent = [message.text for message in messages]
        return ChatResponse(messages=[Message("assistant", ["Noted."])])


async def main() -> None:
    client = FakeClient()
    store = open_store("memory:")  # "file:./context" keeps it
    builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=500))
    history = CtxstewardHistory(store, builder=builder)
    agent = Agent(client, "You run a bicycle workshop.", context_providers=[history])
    session = agent.create_session(session_id="chat-1")
    await agent.run("My frame number is FN-20417.", session=session)
    for day in range(1, 80):
        await agent.run(f"Day {day}: I rode {day + 10} km, and the chain made a noise.", session=session)
    await agent.run("What was my frame number again?", session=session)
    print(len(await history.get_messages("chat-1")), "messages in the history,", len(client.sent), "sent")
    print("the frame number is in what was sent:", any("FN-20417" in text for text in client.sent))


if __name__ == "__main__":
    asyncio.run(main())
