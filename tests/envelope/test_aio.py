"""The async calls are the sync ones, in order, off the event loop."""

from __future__ import annotations

import asyncio
import json

from ctxsteward.envelope import EnvelopeBuilder, aio
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store


def test_async_calls_build_the_same_bytes_as_sync_ones() -> None:
    messages = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"line {n} " * 9} for n in range(40)]
    builder = EnvelopeBuilder(tokenizer=CharTokenizer(), summarizer=FirstLine())

    async def run() -> list[str]:
        session = memory_store().session("s")
        rendered = []
        for message in messages:
            await aio.append(session, message)
            rendered.append(json.dumps((await aio.build(builder, session)).render("anthropic")))
        return rendered

    plain = memory_store().session("s")
    expected = []
    for message in messages:
        plain.append(message)
        expected.append(json.dumps(builder.build(plain).render("anthropic")))
    assert asyncio.run(run()) == expected


def test_tasks_that_share_a_session_lose_nothing() -> None:
    async def run() -> list[str]:
        session = memory_store().session("s")
        shared = aio.Locked(session)
        await asyncio.gather(*(shared.append({"role": "user", "content": f"m{n}"}, id=f"m{n}") for n in range(100)))
        return [entry.message.text for entry in session.entries()]

    assert sorted(asyncio.run(run())) == sorted(f"m{n}" for n in range(100))
