"""Sessions to make cards of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxsteward.envelope import Session, Store
from ctxsteward.envelope.history.tool_groups import NewMessage

from ..messages import CHARS

LONG = "The deploy of service billing-7 failed at step 4. We decided to roll back. " + "Details follow here. " * 20


def say(role: str, content: Any, **more: Any) -> NewMessage:
    return NewMessage(message={"role": role, "content": content}, **more)


def call(id: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": '{"q": "port"}'}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def messages(count: int, first: int = 1) -> Iterator[NewMessage | dict[str, Any]]:
    """Turns of four: a question, a call, its result, a long answer; every tenth message is a system one."""
    for n in range(first, first + count):
        if n % 10 == 0:
            yield say("system", f"notice {n}")
        elif n % 4 == 1:
            yield say("user", f"question {n} about port {6400 + n}")
        elif n % 4 == 2:
            yield call(f"c{n}")
        elif n % 4 == 3:
            yield result(f"c{n - 1}", f'{{"port": {6400 + n}, "open": true}}')
        else:
            yield say("assistant", f"answer {n}. {LONG}")


def carded_of(count: int) -> list[int]:
    """Ordinals that are to have cards."""
    return [n for n in range(1, count + 1) if n % 10]


def session_of(store: Store, id: str = "s", count: int = 0, **more: Any) -> Session:
    session = store.session(id, counter=CHARS, **more)
    session.extend(messages(count))
    return session
