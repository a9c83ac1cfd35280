"""Server-sent events: what is told, to whom, and what becomes of listeners that are slow, many, or left at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ctxsteward.console.service.desk import EventHub, ServiceLimits
from ctxsteward.envelope import Budgets, open_store
from ctxsteward.store.journal.port import SessionKey

from .serving import FREE, Served, asked, events_in, served, tenants

QUICK = ServiceLimits(requests_per_second=None, poll_seconds=0.02, heartbeat_seconds=0.05)


async def said(on: Served, session: str, *texts: str) -> None:
    await asyncio.to_thread(on.say, session, *texts)


async def heard(on: Served) -> None:
    """Wait until somebody listens."""
    async with asyncio.timeout(20):
        while not on.app.state.service.hub.listening:
            await asyncio.sleep(0.01)


def publish(on: Served, kind: str, session: str = "s", tenant: str = "default", **data: object) -> None:
    hub: EventHub = on.app.state.service.hub
    hub.tell(SessionKey(tenant, session), kind, **data)


def test_a_listener_is_told_in_order_and_of_its_own_session_alone() -> None:
    on = served(limits=FREE)

    async def listen() -> str:
        async with asked(on.app, "/api/events", query="session=s") as listening:
            await heard(on)
            publish(on, "appended", ref="§1")
            publish(on, "appended", session="other", ref="§1")
            publish(on, "built", address="ab", tokens=3)
            return await listening.until(lambda text: "built" in text)

    text = asyncio.run(listen())
    assert events_in(text) == [
        ("appended", {"session": "s", "ref": "§1"}),
        ("built", {"session": "s", "address": "ab", "tokens": 3}),
    ]
    assert "id: 1\n" in text


def test_requests_tell_what_they_did() -> None:
    on = served(limits=FREE, budgets=Budgets(dynamic_tokens=200))
    told: list[tuple[str, object]] = []
    hub: EventHub = on.app.state.service.hub
    tell = hub.tell
    hub.tell = lambda key, kind, **data: told.append((kind, data)) or tell(key, kind, **data)  # type: ignore[func-returns-value, method-assign]
    on.say("s", "One.")
    built = on.post("/api/sessions/s/build")
    assert told == [
        ("appended", {"ref": "§1"}),
        ("appended", {"ref": "§2"}),
        ("built", {"address": built["address"], "tokens": built["tokens"]}),
    ]
    on.say("s", *(f"A long walk along the river number {at}, and tea in a garden." for at in range(12)))
    told.clear()
    (report,) = on.post("/api/sessions/s/build")["envelope"]["reports"]
    kind, data = told[0]
    assert (kind, data) == (
        "compacted",
        {
            "report": report["id"],
            "pre_tokens": report["pre_tokens"],
            "post_tokens": report["post_tokens"],
            "losses": len(report["losses"]),
        },
    )


def test_what_another_process_appends_is_told(tmp_path: Path) -> None:
    on = served(open_store(f"file:{tmp_path}"), limits=QUICK)

    async def listen() -> str:
        async with asked(on.app, "/api/events", query="session=s") as listening:
            await heard(on)
            hub: EventHub = on.app.state.service.hub
            async with asyncio.timeout(20):
                while SessionKey("default", "s") not in hub._positions:  # it has looked once
                    await asyncio.sleep(0.01)

            def append() -> None:
                with open_store(f"file:{tmp_path}") as other:
                    other.session("s").extend({"role": "user", "content": text} for text in ("One.", "Two."))

            await asyncio.to_thread(append)
            return await listening.until(lambda text: "§2" in text)

    text = asyncio.run(listen())
    assert [(kind, data["ref"]) for kind, data in events_in(text)] == [("appended", "§1"), ("appended", "§2")]
    on.store.close()


def test_a_heartbeat_comes_where_nothing_happens() -> None:
    on = served(limits=QUICK)

    async def listen() -> str:
        async with asked(on.app, "/api/events") as listening:
            return await listening.until(lambda text: ": ping" in text)

    assert events_in(asyncio.run(listen())) == []


def test_a_listener_that_comes_back_goes_on_where_it_was() -> None:
    on = served(limits=FREE)
    for number in range(1, 6):
        publish(on, "appended", ref=f"§{number}")

    async def listen(last: str) -> list[str]:
        async with asked(on.app, "/api/events", {"last-event-id": last}) as listening:
            await heard(on)
            publish(on, "built", address="last", tokens=0)
            text = await listening.until(lambda text: "last" in text)
        return [data.get("ref", "last") for _, data in events_in(text)]

    assert asyncio.run(listen("3")) == ["§4", "§5", "last"]
    assert asyncio.run(listen("no number")) == ["last"]


def test_a_listener_that_does_not_keep_up_loses_the_oldest_and_is_told_so() -> None:
    on = served(limits=ServiceLimits(requests_per_second=None, listener_events=4))

    async def listen() -> str:
        async with asked(on.app, "/api/events") as listening:
            await heard(on)
            for number in range(1, 11):  # without a pause: nothing is sent meanwhile
                publish(on, "appended", ref=f"§{number}")
            return await listening.until(lambda text: "§10" in text)

    text = asyncio.run(listen())
    assert "event: lost\ndata: 6\n" in text
    assert [data["ref"] for kind, data in events_in(text) if kind == "appended"] == ["§7", "§8", "§9", "§10"]


def test_so_many_may_listen_and_half_of_them_at_most_of_one_tenant(tmp_path: Path) -> None:
    limits = ServiceLimits(requests_per_second=None, listeners=4)
    two = tenants(tmp_path, limits=limits)
    hub: EventHub = two.served.app.state.service.hub

    async def listen() -> None:
        async with (
            asked(two.served.app, "/api/events", two.as_(two.acme)),
            asked(two.served.app, "/api/events", two.as_(two.reader)),
        ):
            async with asyncio.timeout(20):
                while hub.listening < 2:
                    await asyncio.sleep(0.01)
            async with asked(two.served.app, "/api/events", two.as_(two.acme)) as third:
                await third.until(lambda text: "too many listen" in text)
            async with asked(two.served.app, "/api/events", two.as_(two.other)) as other:
                async with asyncio.timeout(20):
                    while hub.listening < 3:
                        await asyncio.sleep(0.01)
                publish(two.served, "appended", tenant="other", ref="§1")
                await other.until(lambda text: "§1" in text)
        async with asyncio.timeout(20):
            while hub.listening:
                await asyncio.sleep(0.01)

    asyncio.run(listen())


def test_a_tenant_hears_nothing_of_another(tmp_path: Path) -> None:
    two = tenants(tmp_path)

    async def listen() -> str:
        async with asked(two.served.app, "/api/events", two.as_(two.other)) as listening:
            await heard(two.served)
            publish(two.served, "appended", tenant="acme", ref="§1")
            publish(two.served, "appended", tenant="other", ref="§2")
            return await listening.until(lambda text: "§2" in text)

    assert [data["ref"] for _, data in events_in(asyncio.run(listen()))] == ["§2"]


def test_a_stream_ends_at_shutdown() -> None:
    on = served(limits=FREE)

    async def listen() -> None:
        async with asked(on.app, "/api/events") as listening:
            await heard(on)
            on.app.state.service.hub.close()
            async with asyncio.timeout(20):
                while (await listening.messages.get()).get("more_body", True):
                    pass
            async with asked(on.app, "/api/events") as late:
                await late.until(lambda text: "urn:ctxsteward:problem:unavailable" in text)

    asyncio.run(listen())


@pytest.mark.parametrize("path", ["/api/events"])
def test_a_stream_takes_no_place_of_a_request(path: str) -> None:
    on = served(limits=ServiceLimits(requests_per_second=None, requests=1))

    async def listen() -> int:
        async with asked(on.app, path):
            await heard(on)
            return (await asyncio.to_thread(on.client.get, "/api/evals")).status_code

    assert asyncio.run(listen()) == 200
