"""Use an Inspect solver as a strategy: the suites judge the messages that it would send to the model.

    ctxsteward evals run verbatim --subject inspect:my_package.solvers:trimmed

The solver runs on a `TaskState` with the whole conversation. Its first request for a generation ends it, and its
messages at that moment are judged; if it never requests one, the messages that it returns. Needs the extra `inspect`.
Source: Inspect (UK AI Security Institute), "Solvers" in its documentation.
"""

from __future__ import annotations

import asyncio
from typing import Any

from inspect_ai.model import ChatMessage, ModelName
from inspect_ai.solver import Generate, Solver, TaskState

from ctxsteward.schemas.message import Wire

from ..inspect_messages import messages_of, wire_of
from .port import Conversation, Strategy


class _Asked(Exception):
    """Raised when the solver requests a generation."""


def strategy_of(solver: Solver) -> Strategy:
    """Return a strategy that runs the solver up to its first generation."""

    def strategy(conversation: Conversation) -> list[Wire]:
        return asyncio.run(_sent(solver, conversation))

    return strategy


async def _sent(solver: Solver, conversation: Conversation) -> list[Wire]:
    asked: list[ChatMessage] = []

    async def generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
        asked[:] = state.messages
        raise _Asked

    messages = messages_of(conversation.messages)
    state = TaskState(
        model=ModelName("mockllm/model"), sample_id=conversation.task.id, epoch=1, input=messages, messages=messages
    )
    end: Generate = generate
    try:
        state = await solver(state, end)
    except _Asked:
        return [wire_of(message) for message in asked]
    return [wire_of(message) for message in state.messages]
