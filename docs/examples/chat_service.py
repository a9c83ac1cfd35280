"""A chat service: one session a conversation, one envelope a model call, inside a budget however long it gets.

    python docs/examples/chat_service.py

`FakeClient` stands where your provider's client goes; it has the shape of `openai.OpenAI()`.
"""

from types import SimpleNamespace

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store


class FakeClient:
    """Answers with how many messages it was sent."""

    def __init__(self) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(self, *, model: str, messages: list[dict]) -> SimpleNamespace:
        message = SimpleNamespace(role="assistant", content=f"Noted; I was sent {len(messages)} messages.")
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])


store = open_store("memory:")  # "file:./context" keeps it
builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=500))
client = FakeClient()


def answer(chat: str, text: str, message_id: str) -> str:
    """Handle one request. A retry with the same id appends nothing twice."""
    session = store.session(chat, system="You are the assistant of a bicycle workshop.")
    session.append({"role": "user", "content": text}, id=message_id)
    envelope = builder.build(session)
    dynamic = envelope.section("dynamic")
    assert dynamic.tokens <= dynamic.budget_tokens
    reply = client.chat.completions.create(model="gpt-4o", **envelope.render("openai-chat"))
    content = reply.choices[0].message.content
    session.append({"role": "assistant", "content": content}, id=f"{message_id}-reply")
    return content


def main() -> None:
    answer("chat-1", "Hello, I would like to keep a diary of my rides.", "m-0")
    answer("chat-1", "My bicycle is a Kestrel K7, frame number FN-20417.", "m-frame")
    for number in range(1, 60):
        answer("chat-1", f"Day {number}: I rode {number + 10} km, and the chain made a noise.", f"m-{number}")
    session = store.session("chat-1")
    session.append({"role": "user", "content": "What was my frame number again?"}, id="m-60")
    envelope = builder.build(session)
    dynamic = envelope.section("dynamic")
    print(len(session), "messages in the log,", dynamic.tokens, "of", dynamic.budget_tokens, "tokens sent")
    print("the frame number is in the request:", "FN-20417" in dynamic.text)
    print("and in the log, word for word:", session.resolve("§3").text)


if __name__ == "__main__":
    main()
