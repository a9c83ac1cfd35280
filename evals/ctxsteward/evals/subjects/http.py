"""A strategy behind an address, in any language: every question is one POST of JSON.

    {"op": "prompt", "id": …, "budget_tokens": …, "system": …, "tools": […], "messages": […], "question": …}
        -> {"messages": […]}, and as much of `Prompt` as it can tell: references, summary, lost, compacted
    {"op": "resolve", "id": …, "reference": …}  -> {"text": …}, or {"text": null} where it leads nowhere
    {"op": "search", "id": …, "query": …}       -> {"texts": […]}

`messages` is all that was said; a question that is asked in passing is the last of them, and named. The last two are
only asked of a server whose answers say ``"can": ["resolve", "search"]``.

Raises `InputError` with what the server did instead of answering.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ctxsteward.schemas import InputError, Wire

from .port import Dialogue, Prompt, Task, prompt_of

ANSWER_SECONDS = 120.0
MAX_ANSWER_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class HttpSubject:
    """A server that answers at this address."""

    name: str

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        return HttpDialogue(self.name, task)


class HttpDialogue:
    """One conversation with a server; it has `resolve` and `search` once the server says that it can."""

    def __init__(self, address: str, task: Task) -> None:
        self._address, self._task = address, task
        self._said: list[Wire] = []

    def add(self, message: Wire) -> None:
        self._said.append(message)

    def prompt(self, question: str | None = None) -> Prompt:
        asked: list[Wire] = [] if question is None else [{"role": "user", "content": question}]
        answer = self._ask({
            "op": "prompt", "budget_tokens": self._task.budget_tokens, "system": self._task.system,
            "tools": list(self._task.tools), "messages": [*self._said, *asked], "question": question,
        })  # fmt: skip
        can = answer.get("can") or ()
        if "resolve" in can:
            self.resolve = self._resolve
        if "search" in can:
            self.search = self._search
        return prompt_from_json(self._address, answer)

    def _resolve(self, reference: str) -> str:
        text = self._ask({"op": "resolve", "reference": reference}).get("text")
        if not isinstance(text, str):
            raise LookupError(f"{reference} leads nowhere")
        return text

    def _search(self, query: str) -> Sequence[str]:
        texts = self._ask({"op": "search", "query": query}).get("texts")
        if not isinstance(texts, list):
            raise InputError(f"{self._address}: `texts` of a search is {texts!r:.60}; answer a list of texts")
        return [str(text) for text in texts]

    def _ask(self, question: dict[str, Any]) -> Mapping[str, Any]:
        body = json.dumps({**question, "id": self._task.id}).encode()
        request = Request(self._address, body, {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=ANSWER_SECONDS) as response:
                raw = response.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as error:
            raise InputError(f"{self._address}: answered {error.code} {error.reason}; see the server's log") from error
        except (URLError, TimeoutError, ConnectionError) as error:
            raise InputError(
                f"{self._address}: no answer ({getattr(error, 'reason', error)}); start it first"
            ) from error
        if len(raw) > MAX_ANSWER_BYTES:
            raise InputError(f"{self._address}: an answer of more than {MAX_ANSWER_BYTES >> 20} MB")
        try:
            answer = json.loads(raw)
        except ValueError as error:
            raise InputError(f"{self._address}: its answer is no JSON: {raw[:60]!r}") from error
        if not isinstance(answer, dict):
            raise InputError(f"{self._address}: its answer is {answer!r:.60}; answer an object with `messages`")
        return answer


def prompt_from_json(name: str, answer: Mapping[str, Any]) -> Prompt:
    """A `Prompt` from an answer of JSON values; raises `InputError` for a field that does not fit."""
    messages = prompt_of(name, answer.get("messages")).messages
    references, lost = answer.get("references") or {}, answer.get("lost")
    if not isinstance(references, dict) or not all(isinstance(place, int) for place in references.values()):
        raise InputError(f"{name}: `references` is {references!r:.60}; map each reference to a 1-based place")
    if lost is not None and not (isinstance(lost, list) and all(isinstance(place, int) for place in lost)):
        raise InputError(f"{name}: `lost` is {lost!r:.60}; give a list of 1-based places")
    for key, kind in (("summary", str), ("compacted", bool)):
        if not isinstance(answer.get(key), (kind, type(None))):
            raise InputError(f"{name}: `{key}` is {answer[key]!r:.60}; give a {kind.__name__}, or leave it out")
    return Prompt(
        messages=messages, references=references, summary=answer.get("summary"),
        lost=None if lost is None else frozenset(lost), compacted=answer.get("compacted"),
    )  # fmt: skip
