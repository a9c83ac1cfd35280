"""Async versions of the session's and the builder's calls, run off the event loop.

A build takes milliseconds of CPU and, on a file store, an fsync, so each function here runs its counterpart in a worker
thread. Tasks may share a session: it runs one call at a time, and `SharedSession` also keeps the order of the calls.
Cancelling a call does not undo it: its thread finishes behind the session's lock, so session and log agree, and the log
may have the message. Append with an `id` and append again after a cancellation: the same `id` gives the same entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from ctxsteward.schemas.arguments import check_argument

from .building.builder import EnvelopeBuilder
from .envelope import Envelope
from .history.session import Session
from .history.tool_groups import LogEntry


async def append(session: Session, message: object, **meta: Any) -> LogEntry:
    """Run `Session.append` in a worker thread."""
    check_argument("session", session, Session, "write aio.append(session, message)")
    return await asyncio.to_thread(session.append, message, **meta)


async def extend(session: Session, messages: Iterable[object]) -> list[LogEntry]:
    """Run `Session.extend` in a worker thread."""
    return await asyncio.to_thread(session.extend, messages)


async def follow(session: Session, messages: Iterable[object], **who: Any) -> Session:
    """Run `Session.follow` in a worker thread."""
    return await asyncio.to_thread(session.follow, messages, **who)


async def build(builder: EnvelopeBuilder, session: Session, **more: Any) -> Envelope:
    """Run `EnvelopeBuilder.build` in a worker thread."""
    return await asyncio.to_thread(builder.build, session, **more)


async def preview(builder: EnvelopeBuilder, session: Session, user_turn: str | object | None = None) -> Envelope:
    """Run `EnvelopeBuilder.preview` in a worker thread."""
    return await asyncio.to_thread(builder.preview, session, user_turn)


class SharedSession:
    """A session that several tasks of one process share; its calls run one at a time, in the order of the calls."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._lock = asyncio.Lock()

    async def append(self, message: object, **meta: Any) -> LogEntry:
        """Run `Session.append` in a worker thread, after earlier calls."""
        async with self._lock:
            return await append(self.session, message, **meta)

    async def build(self, builder: EnvelopeBuilder, **more: Any) -> Envelope:
        """Run `EnvelopeBuilder.build` in a worker thread, after earlier calls."""
        async with self._lock:
            return await build(builder, self.session, **more)
