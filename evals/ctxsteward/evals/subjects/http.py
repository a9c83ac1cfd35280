"""A strategy behind an HTTP address, in any language.

Every request is one POST of JSON:

    {"op": "prompt", "id": …, "budget_tokens": …, "system": …, "tools": […], "messages": […], "question": …}
        -> {"messages": […]}, and optional fields of `Prompt`: references, summary, lost, compacted
    {"op": "resolve", "id": …, "reference": …}  -> {"text": …}, or {"text": null} if it does not resolve
    {"op": "search", "id": …, "query": …}       -> {"texts": […]}

`messages` holds the whole conversation; a question of the suite is its last message and also stands in `question`. The
last two requests are only sent to a server whose answers hold ``"can": ["resolve", "search"]``. Redirects are refused,
so that the named address itself is judged.

Raises `InputError` if the server fails or its answer is invalid.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

from .port import Prompt, Task

ANSWER_SECONDS = 120.0
MAX_ANSWER_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow no redirect, so that it becomes an error with its status."""


_open = build_opener(_NoRedirects).open


class HttpDialogue:
    """A conversation with a server; it gets `resolve` and `search` once the server announces them."""

    def __init__(self, address: str, task: Task, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._address, self._task, self._answer_seconds = address, task, answer_seconds
        self._said: list[Wire] = []

    def add(self, message: Wire) -> None:
        self._said.append(message)

    def prompt(self, question: str | None = None) -> Prompt:
        asked: list[Wire] = [] if question is None else [{"role": "user", "content": question}]
        answer = self._ask(
            {
                "op": "prompt",
                "budget_tokens": self._task.budget_tokens,
                "system": self._task.system,
                "tools": list(self._task.tools),
                "messages": [*self._said, *asked],
                "question": question,
            }
        )
        if "messages" not in answer:
            raise InputError(f"{self._address}: its answer has no `messages`: {answer!r:.60}")
        can = answer.get("can", [])
        if not isinstance(can, list):
            raise InputError(f"{self._address}: `can` is {can!r:.60}; answer a list of resolve, search")
        if "resolve" in can:
            self.resolve = self._resolve
        if "search" in can:
            self.search = self._search
        return Prompt(
            messages=answer["messages"],
            references=answer.get("references") or {},
            summary=answer.get("summary"),
            lost=answer.get("lost"),
            compacted=answer.get("compacted"),
        )

    def _resolve(self, reference: str) -> str:
        text = self._ask({"op": "resolve", "reference": reference}).get("text")
        if text is None:
            raise LookupError(f"{reference} leads nowhere")
        return text  # type: ignore[no-any-return]  # `answers` checks its type

    def _search(self, query: str) -> Sequence[str]:
        return self._ask({"op": "search", "query": query}).get("texts")  # type: ignore[return-value]  # the same

    def _ask(self, question: dict[str, Any]) -> Mapping[str, Any]:
        body = {**question, "id": self._task.id}
        raw = post_json(self._address, body, {}, answer_seconds=self._answer_seconds)
        try:
            answer = json.loads(raw)
        except ValueError as error:
            raise InputError(f"{self._address}: its answer is not JSON: {raw[:60]!r}") from error
        if not isinstance(answer, dict):
            raise InputError(f"{self._address}: its answer is {answer!r:.60}; answer an object with `messages`")
        return answer


def post_json(address: str, body: object, headers: Mapping[str, str], *, answer_seconds: float) -> bytes:
    """POST JSON to an address and return its answer; raise `InputError` for errors, timeouts and oversized answers."""
    deadline = time.monotonic() + answer_seconds
    try:
        request = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
        with _open(request, timeout=answer_seconds) as response:
            raw = bytearray()
            while len(raw) <= MAX_ANSWER_BYTES and (piece := response.read1(_PIECE_BYTES)):
                raw += piece
                if time.monotonic() > deadline:
                    raise TimeoutError
    except HTTPError as error:
        error.close()
        raise InputError(f"{address}: answered {error.code} {error.reason}; see the server's log") from error
    except TimeoutError as error:
        raise InputError(f"{address}: no answer within {answer_seconds:g} s") from error
    except (OSError, HTTPException, ValueError) as error:
        # a ValueError's text may quote a header, and with it a key
        what = type(error).__name__ if isinstance(error, ValueError) else getattr(error, "reason", error)
        if isinstance(what, TimeoutError):
            raise InputError(f"{address}: no answer within {answer_seconds:g} s") from error
        raise InputError(f"{address}: no answer ({what}); start it first") from error
    if len(raw) > MAX_ANSWER_BYTES:
        raise InputError(f"{address}: an answer of more than {MAX_ANSWER_BYTES >> 20} MB")
    return bytes(raw)
