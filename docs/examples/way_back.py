"""A context strategy with references and a search, for ``ctxsteward evals run … --subject way_back.py:WayBack``."""

from ctxsteward.evals.subjects import Prompt, Task


class WayBack:
    """One conversation: the newest 20 messages, and a line for each of the ten before them."""

    def __init__(self, task, tokens):
        self.budget_tokens, self.tokens, self.said = task.budget_tokens, tokens, []

    def add(self, message):
        """Take a message of the conversation."""
        self.said.append(message)

    def prompt(self, question=None):
        """Return what would be sent now; a question is asked in passing, and then forgotten."""
        asked = [{"role": "user", "content": question}] if question else []
        left_out = range(max(1, len(self.said) - 29), len(self.said) - 19)
        references = {f"[{place}]": place for place in left_out}
        rows = [f"{reference} {self.resolve(reference)[:60]}" for reference in references]
        note = [{"role": "user", "content": "\n".join(["Left out:", *rows])}] if rows else []
        return Prompt(messages=[*note, *self.said[-20:], *asked], references=references)

    def resolve(self, reference):
        """Return the text of the message that a reference names, or raise `LookupError`."""
        return self.said[int(reference.strip("[]")) - 1]["content"] or ""

    def search(self, query):
        """Return the texts that one search shows the model."""
        words = set(query.lower().split())
        texts = [message["content"] or "" for message in self.said]
        return sorted(texts, key=lambda text: -len(words & set(text.lower().split())))[:5]


if __name__ == "__main__":
    talk = WayBack(Task("talk", 400), lambda message: len(message["content"]) // 4)
    for number in range(25):
        talk.add({"role": "user", "content": f"Bicycle {number} squeaks."})
    print(talk.prompt("Which one squeaks?").messages[0]["content"].splitlines()[1])
    print(talk.resolve("[3]"), talk.search("bicycle 7")[0])
