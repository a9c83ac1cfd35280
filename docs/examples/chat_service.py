"""A chat service: one session a conversation, one envelope a model call, inside a budget however long it gets.

    python docs/examples/chat_service.py

`FakeClient` stands where your provider's client goes; it has the shape of `openai.OpenAI()`.
"""

from types import SimpleNamespace

from ctxsteward.envelope import Budgets, open_store


class FakeClient:
    """Answers with how many messages it was sent."""

    def __init__(self) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(self, *, model: str, messages: list[dict]) -> SimpleNamespace:
        message = SimpleNamespace(role="assistant", content=f"Noted; I was sent {len(messages)} messages.")
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])


store = open_store("memory:")  # "file:./context" keeps it
budgets = Budgets(dynamic_tokens=500)
client = FakeClient()


def answer(chat_id: str, text: str, message_id: str) -> str:
    """Handle one request. A retry with the same id appends nothing twice."""
    system = "You are the assistant of a bicycle workshop."
    chat = store.chat(chat_id, model="gpt-4o", system=system, budgets=budgets)
    with chat.turn(text, id=message_id) as turn:
        if not turn.is_finished:
            turn.finish(client.chat.completions.create(**turn.request))
    return turn.reply.text


def main() -> None:
    answer("chat-1", "Hello, I would like to keep a diary of my rides.", "m-0")
    answer("chat-1", "My bicycle is a Kestrel K7, frame number FN-20417.", "m-frame")
    for number in range(1, 60):
        answer("chat-1", f"Day {number}: I rode {number + 10} km, and the chain made a noise.", f"m-{number}")
    chat = store.chat("chat-1", model="gpt-4o", budgets=budgets)
    with chat.turn("What was my frame number again?", id="m-60") as turn:
        dynamic = turn.envelope.section("dynamic")
        print(len(chat), "messages in the log,", dynamic.tokens, "of", dynamic.budget_tokens, "tokens sent")
        turn.finish(client.chat.completions.create(**turn.request))
    print("the frame number is in the request:", "FN-20417" in dynamic.text)
    print("and in the log, word for word:", chat["§3"].text)


if __name__ == "__main__":
    main()
