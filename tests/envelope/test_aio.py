"""The async calls are the sync ones, in order, off the event loop; a cancelled one leaves everything in order."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from ctxsteward.envelope import Budgets, Session, Store, aio, open_store
from ctxsteward.envelope.history.state import State
from ctxsteward.envelope.testing import memory_store
from ctxsteward.store.journal.events import from_record

from .messages import CHARS, char_builder


def test_async_calls_build_the_same_bytes_as_sync_ones() -> None:
    messages = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"line {n} " * 9} for n in range(40)]
    builder = char_builder()

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


@pytest.mark.parametrize("locked", [True, False])
def test_tasks_that_share_a_session_lose_nothing(locked: bool) -> None:
    async def run() -> list[str]:
        session = memory_store().session("s")
        shared = aio.SharedSession(session)
        await asyncio.gather(*(append(session, shared, n) for n in range(100)))
        return [entry.message.text for entry in session.entries()]

    async def append(session: Session, shared: aio.SharedSession, n: int) -> None:
        message = {"role": "user", "content": f"m{n}"}
        await (shared.append(message, id=f"m{n}") if locked else aio.append(session, message, id=f"m{n}"))

    said = asyncio.run(run())
    assert sorted(said) == sorted(f"m{n}" for n in range(100))
    if locked:
        assert said == [f"m{n}" for n in range(100)]


# -- cancellation ------------------------------------------------------------------------------------------

CALLS = 400


async def cancelled_at_random(store: Store, session: Session, chance: random.Random) -> set[str]:
    """Append and build, each call cancelled at some moment or never; the ids of the appends that came back."""
    builder = char_builder(Budgets(dynamic_tokens=1_200))
    acknowledged: set[str] = set()
    for n in range(CALLS):
        message = {"role": ("user", "assistant")[n % 2], "content": f"message {n} " + "word " * 8}
        call = aio.build(builder, session) if n % 3 == 2 else aio.append(session, message, id=f"m{n}")
        task = asyncio.ensure_future(call)
        delay = chance.choice((None, 0.0, chance.random() * 4e-3))
        if delay is not None:
            await asyncio.sleep(delay)
            task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            continue
        if n % 3 != 2:
            acknowledged.add(f"m{n}")
    return acknowledged


@pytest.mark.parametrize(("uri", "seed"), [("memory:", 1), ("memory:", 2), ("file:", 3)])
def test_calls_cancelled_at_random_moments_leave_session_and_log_in_order(uri: str, seed: int, tmp_path: Path) -> None:
    with open_store(uri if uri == "memory:" else f"file:{tmp_path}") as store:
        session = store.session("s", counter=CHARS)

        async def run() -> set[str]:
            acknowledged = await cancelled_at_random(store, session, random.Random(seed))
            await aio.append(session, {"role": "user", "content": "the last"}, id="last")  # behind all that still runs
            return acknowledged

        acknowledged = asyncio.run(run())  # waits for the threads
        assert 0 < len(acknowledged) < CALLS * 2 // 3
        written = {entry.event.id for entry in session.entries()}
        assert acknowledged <= written
        length = len(session)
        for id in sorted(id for id in written if id):
            assert session.append({"role": "user", "content": "again"}, id=id).event.id == id
        assert len(session) == length
        state = State("s")
        for record in store.journal.read(session.key, 0):
            state.apply(from_record(record))
        assert session.state == state == store.session("s", counter=CHARS).state


def test_a_locked_session_goes_on_after_a_cancelled_call() -> None:
    async def run() -> list[int]:
        shared = aio.SharedSession(memory_store().session("s", counter=CHARS))
        builder = char_builder()
        tasks = [asyncio.ensure_future(shared.append({"role": "user", "content": f"{n}"}, id=f"{n}")) for n in range(9)]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        again = [await shared.append({"role": "user", "content": f"{n}"}, id=f"{n}") for n in range(9)]
        assert [entry for entry in done if not isinstance(entry, BaseException)] == [
            again[n] for n, entry in enumerate(done) if not isinstance(entry, BaseException)
        ]
        assert (await shared.build(builder)).metrics["messages"] == 9
        return sorted(entry.ordinal for entry in again)

    assert asyncio.run(run()) == list(range(1, 10))
