"""The tool calls of a transcript in order, each with its answer and whether that was an error.

An answer belongs to the latest call of its id that has none yet; one without an id belongs to the oldest open call of
the same message group. A call without an answer is pending: it neither failed nor worked. Arguments are JSON objects as
the model wrote them; anything else (cut short, a list, too large or too deep) is one parameter without a name.

A *parameter* is a name at the top of the arguments; a *leaf* is the path of a value inside it (``payments[].amount``),
list positions left out. Names that are not written like identifiers are dropped, and with them what they hold: a name
can reach a record, so it must look like one that a tool's author chose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..replayed import Call, Replayed, Utterance
from .latest import latest
from .tool_codes import Failure, failure

MAX_ARGUMENT_CHARS = 64_000
MAX_LEAVES = 400
MAX_NAME_WORDS = 4
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")
_TOOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,63}")
_IDENTIFYING = frozenset(("id", "uuid", "key", "code", "email", "username"))
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")

Leaf = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answered or pending call."""

    position: int
    """Its place among the calls of the transcript, from 0."""
    utterance: int
    """Index of the assistant's utterance that made it."""
    tool: str
    arguments: dict[str, object] | None
    """None: not a JSON object."""
    raw: str
    answer: Utterance | None
    answered: int
    """Index of the answer's utterance; that of the call while it is pending."""
    failure: Failure | None

    @property
    def works(self) -> bool:
        """Whether it came back without an error."""
        return self.answer is not None and self.failure is None


@latest
def steps(replayed: Replayed) -> tuple[Step, ...]:
    """All calls in order; linear in the transcript."""
    found = list(_paired(replayed.utterances))
    return tuple(
        Step(
            position=position,
            utterance=asked,
            tool=call.name,
            arguments=_object(call.arguments),
            raw=call.arguments,
            answer=replayed.utterances[answered] if answered >= 0 else None,
            answered=answered if answered >= 0 else asked,
            failure=_failure(replayed.utterances[answered]) if answered >= 0 else None,
        )
        for position, (asked, call, answered) in enumerate(found)
    )


def is_name(name: str) -> bool:
    """Whether a parameter's name looks chosen by a tool's author: an identifier of a few words."""
    return bool(_NAME.fullmatch(name)) and len(_WORDS.findall(name)) <= MAX_NAME_WORDS


def is_tool(name: str) -> bool:
    """Whether a tool's name may stand in a record."""
    return bool(_TOOL.fullmatch(name)) and len(_WORDS.findall(name)) <= 2 * MAX_NAME_WORDS


def name_words(name: str) -> frozenset[str]:
    """The words of an identifier, lower case, without a plural s.

    >>> sorted(name_words("payment_methods[].paymentId"))
    ['id', 'method', 'payment']
    """
    words = (word.lower() for word in _WORDS.findall(name))
    return frozenset(word.removesuffix("s") if len(word) > 3 else word for word in words)


def leaf_name(path: str) -> str:
    """The last name of a path.

    >>> leaf_name("payments[].payment_id"), leaf_name("tags[]")
    ('payment_id', 'tags')
    """
    return path.rsplit(".", 1)[-1].removesuffix("[]")


def is_identifier(path: str) -> bool:
    """Whether a leaf names a thing, so that the same name means the same at every tool.

    >>> [is_identifier(path) for path in ("payments[].payment_id", "flightNumber", "number_of_bags", "amount")]
    [True, True, False, False]
    """
    words = [word.lower().removesuffix("s") for word in _WORDS.findall(leaf_name(path))]
    return not _IDENTIFYING.isdisjoint(words) or words[-1:] == ["number"]


def leaves(value: object, path: str) -> Iterator[tuple[str, Leaf]]:
    """The scalars below a parameter, each with its path; at most `MAX_LEAVES`, as written."""
    waiting: list[tuple[str, object]] = [(path, value)]
    count = 0
    while waiting and count < MAX_LEAVES:
        here, item = waiting.pop()
        if isinstance(item, dict):
            named = [(f"{here}.{key}", below) for key, below in item.items() if is_name(key)]
            waiting.extend(reversed(named[:MAX_LEAVES]))
        elif isinstance(item, list):
            waiting.extend((f"{here}[]", below) for below in reversed(item[:MAX_LEAVES]))
        elif item is None or isinstance(item, str | int | float):
            count += 1
            yield here, item


def _paired(utterances: tuple[Utterance, ...]) -> Iterator[tuple[int, Call, int]]:
    calls: list[tuple[int, Call]] = []
    answers: list[int] = []
    waiting: dict[str, list[int]] = {}
    unnamed: list[int] = []
    for index, said in enumerate(utterances):
        if said.role == "assistant" and said.calls:
            unnamed = []
            for call in said.calls:
                waiting.setdefault(call.id, []).append(len(calls))
                unnamed.append(len(calls))
                calls.append((index, call))
                answers.append(-1)
        elif said.role == "tool":
            open_calls = waiting.get(said.call_id) if said.call_id else unnamed
            while open_calls and answers[open_calls[-1 if said.call_id else 0]] >= 0:
                open_calls.pop(-1 if said.call_id else 0)
            if open_calls:
                answers[open_calls.pop(-1 if said.call_id else 0)] = index
    for (index, call), answer in zip(calls, answers, strict=True):
        yield index, call, answer


def _failure(answer: Utterance) -> Failure | None:
    return failure(answer.text, is_error=answer.is_error)


def _object(text: str) -> dict[str, object] | None:
    if len(text) > MAX_ARGUMENT_CHARS:
        return None
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
