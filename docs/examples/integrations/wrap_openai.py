"""A chat service on OpenAI's client: it hands over the whole history, and the model is shown a bounded envelope."""

from openai import OpenAI

from ctxsteward.envelope import Budgets, conversation, open_store, wrap

store = open_store("memory:")  # "file:./.ctxsteward" keeps it
client = wrap(OpenAI(), store, budgets=Budgets(dynamic_tokens=500))
history = [{"role": "system", "content": "You mend bicycles."}]
for number in range(30):
    history.append({"role": "user", "content": f"Bicycle {number} has frame number FN-{number * 739} and squeaks."})
    with conversation("chat-1", principal="ada"):
        reply = client.chat.completions.create(model="gpt-4o", messages=history)
    history.append(reply.choices[0].message)

print(len(history) - 1, "messages handed over,", reply.usage.prompt_tokens, "tokens sent")
print("in the log, word for word:", store.session("chat-1").resolve("§15").text)
