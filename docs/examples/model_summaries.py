"""Summaries by a model, beside the session: no build waits, a bullet shows what was really said, all is counted.

    python docs/examples/model_summaries.py

`ScriptedModel` stands where `OpenAIModel("gpt-4o-mini")` goes. One bullet of three that it writes is made up:
it points at what was said.
"""

import json

from ctxsteward.envelope import Budgets, EnvelopeBuilder, SummaryAhead, open_store
from ctxsteward.schemas import ChatReply, ChatRequest, ModelPrice, TokenUsage
from ctxsteward.summarizers.models import GovernedModel, ModelSummarizer, SpendingLedger

FACT = "The deposit of booking BK-2093 is 120 EUR."


class ScriptedModel:
    name = "scripted"

    def reply(self, request: ChatRequest) -> ChatReply:
        bullets = [
            {"text": FACT, "cites": ["§3"], "said_by": "user", "kind": "number"},
            {"text": "Never call before nine.", "cites": ["§5"], "said_by": "user", "kind": "constraint"},
            {"text": FACT.replace("120", "220"), "cites": ["§3"], "said_by": "user", "kind": "number"},
        ]
        usage = TokenUsage(prompt_tokens=2_000, cached_tokens=1_800, output_tokens=90)
        return ChatReply(text=json.dumps({"bullets": bullets}), usage=usage)

    async def reply_async(self, request: ChatRequest) -> ChatReply:
        return self.reply(request)


def main() -> None:
    price = ModelPrice(prompt=0.15, cached=0.075, output=0.6)  # dollars a million tokens
    spending = SpendingLedger({"scripted": price}, limits={"session": 0.02})
    model = GovernedModel(ScriptedModel(), spending=spending)
    ahead = SummaryAhead(ModelSummarizer(model), provider="openai-chat")
    builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=600), ahead=ahead)
    session = open_store("memory:").session("s-42")
    said = ["Hello, it is about a booking.", "Which one?", FACT, "Noted.", "Never call before nine.", "Understood."]
    said += [f"Day {day}: " + "we are waiting for the bank. " * 5 for day in range(20)]
    for number, text in enumerate(said):
        session.append({"role": ("user", "assistant")[number % 2], "content": text})
        envelope = builder.build(session)
        ahead.wait(10)  # so that this prints the same on a slow machine; a service does not wait
        if envelope.reports:
            break
    origin = envelope.reports[0].origin
    print(f"{origin.model} with {origin.template[:16]}: {origin.grounded} bullets, refused: {origin.refused}")
    for bullet in session.state.bullets:
        print(f"- {bullet.text} ({', '.join(bullet.citations)})")
    print(f"session s-42 has spent ${spending.dollars('session', 's-42'):.6f}")


if __name__ == "__main__":
    main()
