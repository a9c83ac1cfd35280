"""An agent of pydantic-ai whose model sees a bounded view of the message history. The history stays whole.

    pip install 'ctxsteward[pydantic-ai]'
    python docs/examples/integrations/pydantic_ai_agent.py

`FunctionModel` stands where your model goes, such as "openai:gpt-4o".
"""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from ctxsteward.envelope import Budgets, open_store
from ctxsteward.envelope.integrations.pydantic_ai import Ctxsteward

sent = []


def answer(messages, info):
    """Remembers what it was sent."""
    sent[:] = messages
    return ModelResponse([TextPart("Noted.")])


store = open_store("memory:")  # "file:./context" keeps it
capability = Ctxsteward(store, budgets=Budgets(dynamic_tokens=500))
agent = Agent(FunctionModel(answer), instructions="You run a workshop.", capabilities=[capability])
history = []
told = [
    "My frame number is FN-20417.",
    *(f"Day {day}: I rode {day + 10} km, and the chain creaked." for day in range(1, 80)),
]
for text in [*told, "What was my frame number again?"]:
    history = agent.run_sync(text, message_history=history, conversation_id="chat-1").all_messages()
print(len(history), "messages in the history,", len(sent), "sent")
print("the frame number is in what was sent:", "FN-20417" in str(sent))
