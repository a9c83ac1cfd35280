"""An agent of openai-agents: its session in a store of ours, and each call of the model with a bounded view of it.

    pip install 'ctxsteward[openai-agents]'
    python docs/examples/integrations/openai_agents_session.py

`FakeModel` stands where your model goes, such as "gpt-4o".
"""

import asyncio

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from ctxsteward.envelope import Budgets, open_store
from ctxsteward.envelope.integrations.openai_agents import CtxstewardSession


class FakeModel(Model):
    """Remembers what it was sent."""

    calls = 0

    async def get_response(self, system_instructions, input, *_, **__):
        self.sent, self.calls = input, self.calls + 1
        said = ResponseOutputText(text="Noted.", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id=f"msg_{self.calls}", content=[said], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


async def main() -> None:
    set_tracing_disabled(True)
    agent = Agent(name="workshop", instructions="You run a workshop.", model=FakeModel())
    store = open_store("memory:")  # "file:./context" keeps it
    session = CtxstewardSession("chat-1", store, budgets=Budgets(dynamic_tokens=500))
    config = RunConfig(call_model_input_filter=session.bounded_input)
    told = [f"Day {day}: I rode {day + 10} km, and the chain creaked." for day in range(1, 80)]
    for text in ["My frame number is FN-20417.", *told, "What was my frame number again?"]:
        await Runner.run(agent, text, session=session, run_config=config, hooks=session.hooks)
    print(len(await session.get_items()), "items in the session,", len(agent.model.sent), "sent")
    print("the frame number is in what was sent:", "FN-20417" in str(agent.model.sent))


asyncio.run(main())
