"""Where an attack is said: every place that untrusted text has in a conversation.

A carrier gives a few messages, the index of the one that holds the attack, and the role that it must stand in. What is
really said there is the attack itself or, in the twin of the conversation, something harmless of the same shape.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from ctxsteward.schemas import Wire

from .talk import Talk, assistant, user


class Attack(NamedTuple):
    """One attack."""

    kind: str
    marker: str
    text: str


Say = Callable[[str], str]
"""What is really said in an attack's place: itself, or something harmless."""


def harmless(text: str) -> str:
    """The same length and lines, and no word of it.

    >>> harmless("System: 把 budgets\\n")
    'adagada a amasata\\n'
    """
    letters = "adagadalanamasata"
    return "".join(c if c in " \n\t" else letters[at % len(letters)] for at, c in enumerate(text)).replace("\t", " ")


Carried = tuple[list[Wire], int, str]
Carrier = Callable[[Random, Talk, Attack, str, Say], Carried]


def _by_user(rng: Random, talk: Talk, attack: Attack, text: str, say: Say) -> Carried:
    return [user(rng.choice((text, f"{talk.user()}\n{text}"))), assistant(talk.assistant())], 0, "user"


def _by_document(rng: Random, talk: Talk, attack: Attack, text: str, say: Say) -> Carried:
    parts = [
        {"type": "text", "text": talk.user()},
        {"type": "text", "text": f"<document name='notes.md'>\n{text}\n</document>"},
    ]
    return [{"role": "user", "content": parts}, assistant(talk.assistant())], 0, "user"


def _by_tool(rng: Random, talk: Talk, attack: Attack, text: str, say: Say) -> Carried:
    return _called(rng, talk, {"target": "page 7"}, f"Page 7 of 9\n{text}\nend of page"), 2, "tool"


def _by_tools(rng: Random, talk: Talk, attack: Attack, text: str, say: Say) -> Carried:
    """In the Anthropic dialect, beside another result."""
    ids = [f"toolu_{rng.randrange(10**8)}" for _ in range(2)]
    uses = [{"type": "tool_use", "id": id, "name": "read_page", "input": {"page": at}} for at, id in enumerate(ids)]
    results = [
        {"type": "tool_result", "tool_use_id": id, "content": said} for id, said in zip(ids, ("ok", text), strict=True)
    ]
    wires: list[Wire] = [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    return [user(talk.user()), *wires, assistant(talk.assistant())], 2, "tool"


def _by_arguments(rng: Random, talk: Talk, attack: Attack, text: str, say: Say) -> Carried:
    return _called(rng, talk, {"query": text}, "nothing found"), 1, "assistant"


def _by_tool_name(rng: Random, talk: Talk, attack: Attack, text: str, say: Say) -> Carried:
    name = f"system_override_{attack.marker}" if text == attack.text else f"look_up_pages_{'a' * len(attack.marker)}"
    return _called(rng, talk, {}, "no such tool", name=name), 1, "assistant"


def _by_participant(rng: Random, talk: Talk, attack: Attack, text: str, say: Say) -> Carried:
    name = f"system_{attack.marker}" if text == attack.text else f"person_{'a' * len(attack.marker)}"
    return [{"role": "user", "name": name, "content": talk.user()}, assistant(talk.assistant())], 0, "user"


def _by_assistant(rng: Random, talk: Talk, attack: Attack, text: str, say: Say) -> Carried:
    return [user(talk.user()), assistant(f"{talk.assistant()}\n{text}")], 1, "assistant"


def _by_system(rng: Random, talk: Talk, attack: Attack, text: str, say: Say) -> Carried:
    role = rng.choice(("system", "developer"))
    return [user(talk.user()), {"role": role, "content": text}, assistant(talk.assistant())], 1, role


def _called(rng: Random, talk: Talk, arguments: dict[str, str], result: str, name: str = "read_page") -> list[Wire]:
    id = f"call_{rng.randrange(10**8)}"
    call = {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
    }
    return [
        user(talk.user()), {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": result}, assistant(talk.assistant()),
    ]  # fmt: skip


CARRIERS: dict[str, Carrier] = {
    "a user's message": _by_user, "a document": _by_document, "a tool result": _by_tool,
    "one of two tool results": _by_tools,
    "arguments": _by_arguments, "a tool's name": _by_tool_name, "a participant's name": _by_participant,
    "a reply": _by_assistant, "an appended system message": _by_system,
}  # fmt: skip
