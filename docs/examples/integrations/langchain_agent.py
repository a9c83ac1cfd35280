"""An agent of LangChain whose model sees a bounded view of its thread. The state keeps every message.

    pip install 'ctxsteward[langchain]'
    python docs/examples/integrations/langchain_agent.py

`FakeModel` stands where your model goes, such as "openai:gpt-4o".
"""

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from ctxsteward.envelope import Budgets, open_store
from ctxsteward.envelope.integrations.langchain import CtxstewardMiddleware


class FakeModel(BaseChatModel):
    """Remembers what it was sent."""

    sent: list = Field(default_factory=list)

    @property
    def _llm_type(self):
        return "fake"

    def _generate(self, messages, stop=None, run_manager=None, **_):
        self.sent = messages
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Noted."))])


model = FakeModel()
store = open_store("memory:")  # "file:./context" keeps it
middleware = CtxstewardMiddleware(store, budgets=Budgets(dynamic_tokens=500))
agent = create_agent(model, system_prompt="You run a workshop.", middleware=[middleware], checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "chat-1"}}
told = [
    "My frame number is FN-20417.",
    *(f"Day {day}: I rode {day + 10} km, and the chain creaked." for day in range(1, 80)),
]
for text in [*told, "What was my frame number again?"]:
    state = agent.invoke({"messages": [{"role": "user", "content": text}]}, thread)
print(len(state["messages"]), "messages in the state,", len(model.sent), "sent")
print("the frame number is in what was sent:", any("FN-20417" in message.text for message in model.sent))
