"""Stand-ins for models, to try judges without a key."""

from ctxsteward.evals.suites.kit import ScriptedModel

VALUES = ("W-10472", "bank account", "March 14")


def hasty(prompt: str) -> str:
    """It reads half of the text."""
    text, _, asked = prompt.partition("<<< end of text")
    read = text[: len(text) // 2]
    is_there = any(value in read for value in VALUES if value in asked)
    return f"I have looked.\nVERDICT: {'yes' if is_there else 'no'}"


wavering = ScriptedModel({}, otherwise=("VERDICT: yes", "VERDICT: no"))
"""It says one thing or the other."""

if __name__ == "__main__":
    print(hasty("Order W-10472. [...] By March 14. <<< end of text 1 >>> Does it say March 14?"))
