"""The tool calls of a transcript in order, each with its answer, its error and its arguments.

An answer belongs to the latest open call with its id; an answer without an id belongs to the oldest open call of the
same message group. A call without an answer is pending: it neither failed nor worked. Arguments are JSON objects as the
model wrote them; other arguments (cut short, a list, too large or too deep) are kept as raw text only.

A *parameter* is a name at the top of the arguments; a *leaf* is the path of a value inside it (``payments[].amount``),
without list positions. Names that do not look like identifiers are dropped with their values: a name can reach a
record, so it must look like the choice of a tool's author. A *kind* describes the form of a value in a closed set of
words, without the value:

>>> kind("2024-05-01"), kind("05/01/2024"), kind([{"first": "A", "dob": "1990-01-01"}]), kind(3)
('YYYY-MM-DD', 'NN/NN/YYYY', 'list of objects with first, dob', 'integer')

The calls of the last transcript are cached by identity, because several harvesters need them, and comparing transcripts
costs as much as reading them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from typing import TypeVar

from ctxsteward.language.clauses import clauses

from ...observations.transcript import ReplayedCall, ReplayedTranscript, ReplayedUtterance
from .error_codes import HEAD_CHARS, SPAN_CHARS, ToolFailure, error_code, failure, texts_in

T = TypeVar("T")


def latest(read: Callable[[ReplayedTranscript], T]) -> Callable[[ReplayedTranscript], T]:
    """Cache the latest result of a pure function of a transcript."""
    cache: list[tuple[ReplayedTranscript, T]] = []

    @wraps(read)
    def cached(replayed: ReplayedTranscript) -> T:
        for transcript, result in cache[:]:  # a copy, because another thread may replace the entry
            if transcript is replayed:
                return result
        result = read(replayed)
        cache[:] = [(replayed, result)]
        return result

    return cached


MAX_ARGUMENT_CHARS = 64_000
MAX_LEAVES = 400
MAX_NAME_WORDS = 4
MAX_RETRIED = 2
"""Most arguments that differ between a refused call and its repetition."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")
_TOOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,63}")
_CHINESE = re.compile(r"[\u3400-\u9fff]{4}")
_IDENTIFYING = frozenset(("id", "uuid", "key", "code", "email", "username"))
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")

Leaf = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStep:
    """One answered or pending call."""

    position: int
    """Index among the calls of the transcript."""
    utterance: int
    """Index of the assistant's utterance with the call."""
    tool: str
    arguments: dict[str, object] | None
    """None if they are not a JSON object."""
    raw: str
    answer: ReplayedUtterance | None
    answered: int
    """Index of the answer's utterance, or of the call's if it is pending."""
    failure: ToolFailure | None

    @property
    def works(self) -> bool:
        """Whether the call was answered without an error."""
        return self.answer is not None and self.failure is None

    def values(self) -> Iterator[tuple[str, Leaf]]:
        """Yield the leaves of all arguments, each with its path."""
        for name, value in (self.arguments or {}).items():
            yield from leaves(value, name)


@latest
def steps(replayed: ReplayedTranscript) -> tuple[ToolStep, ...]:
    """Return all calls in order; linear in the transcript."""
    read = []
    for position, (asked, call, answered) in enumerate(_paired(replayed.utterances)):
        answer = None if answered is None else replayed.utterances[answered]
        step = ToolStep(
            position=position,
            utterance=asked,
            tool=call.name,
            arguments=_object(call.arguments),
            raw=call.arguments,
            answer=answer,
            answered=asked if answered is None else answered,
            failure=None if answer is None else refused(answer.text, is_error=answer.is_error),
        )
        read.append(step)
    following: dict[str, ToolStep] = {}
    for step in reversed(read):
        later = following.get(step.tool)
        if later is not None and step.works and later.works and _is_retried(step, later):
            text = step.answer.text if step.answer else ""
            message = "\n".join(texts_in(_json(text) or text))[:HEAD_CHARS]
            failed = ToolFailure(error_code(message), 0, len(text[:SPAN_CHARS].rstrip()), message)
            read[step.position] = replace(step, failure=failed)
        following[step.tool] = step
    return tuple(read)


def _is_retried(step: ToolStep, later: ToolStep) -> bool:
    """Whether the next call of a tool repeats a call with one or two other arguments, because the call was refused.

    The refusal must name one of these arguments or its value, and share no JSON key with the next answer.
    """
    old, new = step.arguments, later.arguments
    if not old or not new or step.answer is None or later.answer is None or later.utterance <= step.utterance:
        return False
    changed = [name for name in old if old[name] != new.get(name)]
    if not 0 < len(changed) <= MAX_RETRIED or old.keys() != new.keys():
        return False
    text = step.answer.text
    if len(text) > HEAD_CHARS or not any(word in text for name in changed for word in (name, str(old[name])) if word):
        return False
    refusal, result = _json(text), _json(later.answer.text)
    if not result or not isinstance(result, dict):
        return False
    return not isinstance(refusal, dict) or refusal.keys().isdisjoint(result)


def _json(text: str) -> object:
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


def values_in(text: str) -> Iterator[object]:
    """Yield every value in a JSON text, objects and lists before their parts; nothing if the text is not JSON."""
    try:
        waiting: list[object] = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while waiting:
        yield (value := waiting.pop())
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def is_name(name: str) -> bool:
    """Whether a parameter's name is an identifier of a few words, as a tool's author would choose it."""
    return bool(_NAME.fullmatch(name)) and len(_WORDS.findall(name)) <= MAX_NAME_WORDS


def is_tool(name: str) -> bool:
    """Whether a tool's name may stand in a record."""
    return bool(_TOOL.fullmatch(name)) and len(_WORDS.findall(name)) <= 2 * MAX_NAME_WORDS


def name_words(name: str) -> frozenset[str]:
    """Return the words of an identifier in lower case, without a plural s.

    >>> sorted(name_words("payment_methods[].paymentId"))
    ['id', 'method', 'payment']
    """
    words = (word.lower() for word in _WORDS.findall(name))
    return frozenset(word.removesuffix("s") if len(word) > 3 else word for word in words)


def leaf_name(path: str) -> str:
    """Return the last name of a path.

    >>> leaf_name("payments[].payment_id"), leaf_name("tags[]")
    ('payment_id', 'tags')
    """
    return path.rsplit(".", 1)[-1].removesuffix("[]")


def is_identifier(path: str) -> bool:
    """Whether a leaf identifies a thing, so that its name means the same for every tool.

    >>> [is_identifier(path) for path in ("payments[].payment_id", "flightNumber", "number_of_bags", "amount")]
    [True, True, False, False]
    """
    words = [word.lower().removesuffix("s") for word in _WORDS.findall(leaf_name(path))]
    return not _IDENTIFYING.isdisjoint(words) or words[-1:] == ["number"]


def leaves(value: object, path: str) -> Iterator[tuple[str, Leaf]]:
    """Yield the scalars below a parameter as written, each with its path, up to `MAX_LEAVES`."""
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


def _paired(utterances: tuple[ReplayedUtterance, ...]) -> Iterator[tuple[int, ReplayedCall, int | None]]:
    """Yield each call with the index of its utterance and of its answer's."""
    calls: list[tuple[int, ReplayedCall]] = []
    answers: list[int | None] = []
    by_id: dict[str, list[int]] = {}
    group: list[int] = []
    for index, utterance in enumerate(utterances):
        if utterance.role == "assistant" and utterance.calls:
            group = []
            for call in utterance.calls:
                by_id.setdefault(call.id, []).append(len(calls))
                group.append(len(calls))
                calls.append((index, call))
                answers.append(None)
        elif utterance.role == "tool":
            waiting, end = (by_id.get(utterance.call_id, []), -1) if utterance.call_id else (group, 0)
            while waiting and answers[waiting[end]] is not None:
                waiting.pop(end)
            if waiting:
                answers[waiting.pop(end)] = index
    for (index, call), answer in zip(calls, answers, strict=True):
        yield index, call, answer


def refused(text: str, *, is_error: bool = False) -> ToolFailure | None:
    """Return the error or the refusal in an answer, or None if the call seems to have worked.

    A refusal is a small JSON object with one sentence that denies something, and besides only one or two single words
    or a false. It has no identifier, because the answer to a successful call has values of its own.
    """
    reported = failure(text, is_error=is_error)
    if reported is not None:
        return reported
    value = _object(text) if len(text) <= HEAD_CHARS and text.lstrip().startswith("{") else None
    if value is None or any(map(is_identifier, value)):
        return None
    sentences = [
        item for item in value.values() if isinstance(item, str) and (len(item.split()) > 2 or _CHINESE.search(item))
    ]
    others = [item for item in value.values() if item is not None and item not in sentences]
    marks = [item for item in others if item is False or (isinstance(item, str) and len(item.split()) == 1)]
    if len(sentences) != 1 or not 0 < len(others) == len(marks) <= 2:
        return None
    (sentence,) = sentences
    denies = any(clause.sign < 0 for clause in clauses(sentence))
    if not denies and False not in marks:
        return None
    start = max(0, text.find(json.dumps(sentence, ensure_ascii=False)[1:-1]))
    return ToolFailure(error_code(sentence), start, min(len(text), start + min(len(sentence), SPAN_CHARS)), sentence)


def _object(text: str) -> dict[str, object] | None:
    if len(text) > MAX_ARGUMENT_CHARS:
        return None
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


MAX_KEYS = 6
SWITCH = "true or false"
SWITCHES = frozenset((SWITCH, "null", "empty text", "empty list"))
"""Kinds of values that switch something on or off."""
FIGURES = frozenset(("integer", "number"))
_FORMATS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("empty text", r"\s*"),
        ("ISO 8601 time", r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"),
        ("YYYY-MM-DD", r"\d{4}-\d{2}-\d{2}"),
        ("YYYY/MM/DD", r"\d{4}/\d{1,2}/\d{1,2}"),
        ("NN/NN/YYYY", r"\d{1,2}/\d{1,2}/\d{4}"),
        ("NN.NN.YYYY", r"\d{1,2}\.\d{1,2}\.\d{4}"),
        ("Chinese date", r"(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]"),
        (
            "date in words",
            r"(?:\d{1,2}(?:st|nd|rd|th)? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
            r"(?: \d{1,2}(?:st|nd|rd|th)?)?(?:,? \d{4})?",
        ),
        ("HH:MM", r"\d{2}:\d{2}(?::\d{2})?"),
        ("whole number as text", r"[+-]?\d+"),
        ("number as text", r"[+-]?\d*\.\d+"),
        ("e-mail address", r"[^\s@]+@[^\s@]+\.[A-Za-z]{2,}"),
        ("URL", r"[a-z][a-z0-9+.-]*://\S+"),
        ("UUID", r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
        ("absolute path", r"(?:/|[A-Za-z]:\\)[^\s]*"),
        ("relative path", r"\.{0,2}[\w.-]*(?:/[\w.-]+)+"),
        ("code in capitals", r"[A-Z]{2,5}"),
        ("identifier", r"(?=.*[\d_#-])[\w#-]+"),
        ("word", r"\w+"),
    )
)


def kind(value: object) -> str:
    """Return the kind of an argument: its type, and a known format or an object's keys."""
    match value:
        case None:
            return "null"
        case bool():
            return SWITCH
        case int():
            return "integer"
        case float():
            return "number"
        case str() if "[redacted:" in value:
            return "text"
        case str():
            return next((name for name, pattern in _FORMATS if pattern.fullmatch(value[:200])), "text")
        case dict():
            keys = [key for key in list(value)[: MAX_KEYS + 1] if is_name(key)]
            return f"object with {', '.join(keys[:MAX_KEYS])}" if keys else "object"
        case []:
            return "empty list"
        case [item, *_]:
            first = kind(item)
            if first.startswith("object"):
                return f"list of objects{first.removeprefix('object')}"
            return "list of lists" if "list" in first else f"list of values ({first})"
        case _:
            return "value"


def family(described: str) -> str:
    """Return the family of a kind: object, list or scalar."""
    return "object" if described.startswith("object") else "list" if "list" in described else "scalar"
