"""The state of a running service: settings, open sessions, builders, worker threads, and event listeners.

Work on a store is synchronous and runs in a bounded number of threads (`Service.run`). A requested session stays open,
so that a turn costs the same however old its session is; beyond `open_sessions`, the least recently used one is
dropped. Requests for one session run one after another, in the order of their arrival, and share one thread.

`EventHub` sends events to listeners. Requests of this service report their own events. To see what other processes
append, the hub reads from the journal, once a second while there are listeners, the lengths of the sessions that are
open here or listened to. A slow listener loses the oldest events and gets their number.

Raises `Refusal`, and the errors of the store.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from anyio import CapacityLimiter, from_thread, to_thread

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, Session, Store
from ctxsteward.schemas import StoreError
from ctxsteward.schemas.cascade import PolicyName, SelectorName
from ctxsteward.store.journal.events import MessageAppended, WindowCompacted, from_record
from ctxsteward.store.journal.port import SessionKey

from ..terminal.options import DEFAULT_MODEL, utc_now
from .access import Logins, Principal, RateLimiter, Refusal, TokenFile, principal_of
from .shares import AnonymousPlaces, RequestPlaces, ThreadShares

P = ParamSpec("P")
T = TypeVar("T")
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
HEALTH_SECONDS = 1.0
"""Seconds for which `/healthz` repeats the store's last answer."""
NO_SESSION = "this tenant has no session of this name"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Limits of one client, one tenant, or all together."""

    body_bytes: int = 4 << 20
    bodies_bytes: int = 32 << 20
    """Bytes of the bodies of all requests under way; one tenant may have half of them. Checking a body takes several
    times its size."""
    messages: int = 1_000
    """Most messages of one request."""
    requests: int = 64
    """Most requests at once; one more is answered with 503."""
    tenant_requests: int = 32
    """Most requests of one tenant at once, if there are tokens."""
    anonymous_requests: int = 64
    """Most requests without a token at once; one more ends the oldest."""
    anonymous_body_bytes: int = 8 << 10
    anonymous_body_seconds: float = 5.0
    threads: int = 8
    tenant_threads: int = 4
    """Most worker threads of one tenant, if there are tokens."""
    parse_threads: int = 2
    """Threads that read and check bodies."""
    build_seconds: float = 15.0
    """Seconds for a build to decide on compaction and recall; then it goes on without them, with a finding."""
    open_sessions: int = 256
    builders: int = 32
    listeners: int = 32
    """Most listeners to events of all tenants; one tenant may have half of them."""
    listener_events: int = 256
    """Most events that wait for one listener."""
    requests_per_second: float | None = 100.0
    """Requests of one tenant; None for no limit."""
    burst: int = 200
    body_seconds: float = 20.0
    send_seconds: float = 20.0
    """Seconds for a client to take a piece of an answer; then the connection is closed."""
    logins: int = 1_000
    login_seconds: float = 8 * 3600.0
    poll_seconds: float = 1.0
    heartbeat_seconds: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Settings of a service. The service does not close the store."""

    store: Store
    tenant: str = "default"
    """Tenant that is served if there are no tokens, and that may see the eval history."""
    tokens: TokenFile | None = None
    """Tokens of the users; None for one user on the loopback."""
    hosts: tuple[str, ...] = LOOPBACK_HOSTS
    """Host names that requests may use if there are no tokens."""
    profile: Profile | None = None
    """Profile of new sessions whose request names none."""
    model: str = DEFAULT_MODEL
    budgets: Budgets | None = None
    """None: those that the builder chooses by the model's window."""
    eval_history: Path | None = None
    scrape: Callable[[], str] | None = None
    """Returns OpenTelemetry's figures in Prometheus' text format; None without an SDK."""
    log: Callable[[dict[str, Any]], None] = lambda row: None
    """Logs one row for each request, and one for each error of the server."""
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], str] = utc_now
    limits: ServiceLimits = field(default_factory=ServiceLimits)


@dataclass(slots=True, eq=False)
class OpenSession:
    """An open session that requests share."""

    key: SessionKey
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    session: Session | None = None
    """None until it is opened."""
    head: str | None = None
    """Head with which it was opened for writing, as JSON; None if it was opened for reading only."""
    newest: str | None = None
    """Address of the newest envelope that this service built of it, if known."""


class Service:
    """One running service."""

    def __init__(self, settings: ServiceSettings) -> None:
        limits = settings.limits
        self.settings, self.store, self.limits = settings, settings.store, limits
        self.logins = Logins(limits.logins, limits.login_seconds, settings.clock)
        self.rates = RateLimiter(limits.requests_per_second, limits.burst, settings.clock)
        self.hub = EventHub(self)
        alone = settings.tokens is None  # one user has all of every limit
        self.places = RequestPlaces(
            limits.requests,
            limits.requests if alone else limits.tenant_requests,
            limits.bodies_bytes,
            limits.bodies_bytes // (1 if alone else 2),
        )
        self.anonymous = AnonymousPlaces(limits.anonymous_requests)
        self.ledgers = asyncio.Lock()
        """Lock for ledgers of the steward: reading one may first have to bring it up to date."""
        self._asking = asyncio.Lock()
        self._asked_at = float("-inf")
        self.counts: dict[tuple[str, str, int], tuple[int, float]] = {}
        """Number of requests and their seconds, by method, route and status."""
        self._threads: ThreadShares | None = None
        self._own_thread: CapacityLimiter | None = None
        self._parsing: CapacityLimiter | None = None
        self._open: OrderedDict[SessionKey, OpenSession] = OrderedDict()
        self._builders: OrderedDict[str, EnvelopeBuilder] = OrderedDict()
        self.builder()

    async def run(self, tenant: str, work: Callable[P, T], /, *args: P.args, **more: P.kwargs) -> T:
        """Run work for a tenant in one of its worker threads; it is finished even if the client disconnects."""
        if self._threads is None:
            alone = self.settings.tokens is None
            self._threads = ThreadShares(
                self.limits.threads, self.limits.threads if alone else self.limits.tenant_threads
            )
        async with self._threads.of(tenant) as limiter:
            return await to_thread.run_sync(partial(work, *args, **more), limiter=limiter)

    async def run_own(self, work: Callable[P, T], /, *args: P.args, **more: P.kwargs) -> T:
        """Run work for the service itself, in a thread of its own."""
        if self._own_thread is None:
            self._own_thread = CapacityLimiter(1)
        return await to_thread.run_sync(partial(work, *args, **more), limiter=self._own_thread)

    async def healthy(self) -> None:
        """Read from the store, at most once a second however many callers ask; raise `StoreError` if that fails."""
        async with self._asking:
            if self.settings.clock() - self._asked_at >= HEALTH_SECONDS:
                await self.run_own(self.store.journal.length, SessionKey("default", "healthz"))
                self._asked_at = self.settings.clock()

    async def parse(self, work: Callable[P, T], /, *args: P.args, **more: P.kwargs) -> T:
        """Read a body outside the event loop; few at once, because each takes much memory for a short time."""
        if self._parsing is None:
            self._parsing = CapacityLimiter(self.limits.parse_threads)
        return await to_thread.run_sync(partial(work, *args, **more), limiter=self._parsing)

    @property
    def in_flight(self) -> int:
        """Requests under way, without event streams."""
        return self.places.taken + self.anonymous.taken

    def call(self, tell: Callable[P, object], *args: P.args, **more: P.kwargs) -> None:
        """Call a function in the event loop from a worker thread, and wait for it."""
        from_thread.run_sync(partial(tell, *args, **more))

    def may_still_read(self, who: Principal, headers: Sequence[tuple[bytes, bytes]]) -> bool:
        """Return whether these headers still give their sender the right to read this tenant."""
        settings = self.settings
        try:
            now = principal_of(headers, settings.tokens, self.logins, settings.tenant)
        except Refusal:
            return False
        return now.tenant == who.tenant and "read" in now.scopes

    def figures(self) -> str:
        """Return figures on requests, open sessions and listeners in Prometheus' text format."""
        routes = [
            (f'{{method="{method}",route="{route}",status="{status}"}}', number, seconds)
            for (method, route, status), (number, seconds) in sorted(self.counts.items())
        ]
        rows = ["# TYPE ctxsteward_http_requests_total counter"]
        rows += [f"ctxsteward_http_requests_total{labels} {number}" for labels, number, _ in routes]
        rows += ["# TYPE ctxsteward_http_request_seconds_total counter"]
        rows += [f"ctxsteward_http_request_seconds_total{labels} {seconds:.6f}" for labels, _, seconds in routes]
        for name, value in (
            ("requests_under_way", self.in_flight),
            ("open_sessions", len(self._open)),
            ("event_listeners", self.hub.listening),
        ):
            rows += [f"# TYPE ctxsteward_http_{name} gauge", f"ctxsteward_http_{name} {value}"]
        return "\n".join(rows) + "\n"

    # -- builders -----------------------------------------------------------------------------------------------

    def builder(
        self,
        model: str | None = None,
        budgets: Budgets | None = None,
        policy: PolicyName | None = None,
        selector: SelectorName | None = None,
        summarizer: str | None = None,
    ) -> EnvelopeBuilder:
        """Return the builder of this configuration; raise `UnknownModel`, `InvalidBudget` or `InputError`."""
        model, budgets = model or self.settings.model, budgets or self.settings.budgets
        stated = budgets and [sorted(budgets.model_fields_set), budgets.model_dump(mode="json")]
        key = json.dumps([model, policy, selector, summarizer, stated])
        made = self._builders.pop(key, None)
        if made is None:
            made = EnvelopeBuilder(
                model=model,
                budgets=budgets,
                policy=policy,
                selector=selector or "heuristic",
                summarizer=summarizer or "extractive",
                now=self.settings.now,
            )
        self._builders[key] = made
        while len(self._builders) > self.limits.builders:
            self._builders.popitem(last=False)
        return made

    # -- sessions -----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def reading(self, tenant: str, id: str) -> AsyncIterator[OpenSession]:
        """Open an existing session for reading, without taking its ownership. Raise `Refusal` or `Erased`."""
        async with self._at(SessionKey(tenant, id)) as opened:
            await self.run(tenant, self._read, opened)
            yield opened

    @asynccontextmanager
    async def writing(
        self, tenant: str, id: str, *, head: dict[str, Any] | None = None, create: bool = False
    ) -> AsyncIterator[OpenSession]:
        """Open a session for writing; `create` makes a missing one. `head` has arguments of `Store.session`."""
        async with self._at(SessionKey(tenant, id)) as opened:
            await self.run(tenant, self._write, opened, head, create)
            yield opened

    @asynccontextmanager
    async def beginning(self, tenant: str, id: str) -> AsyncIterator[Store]:
        """Hold the id of a session that does not exist yet. Raise `Refusal` if it does, or was forgotten."""
        key = SessionKey(tenant, id)
        async with self._at(key):
            if await self.run(tenant, self._is_taken, key):
                raise Refusal("conflict", f"session {id!r} exists already; name the new one otherwise")
            yield self.store

    def _is_taken(self, key: SessionKey) -> bool:
        return self.store.exists(key.session, tenant=key.tenant)

    @asynccontextmanager
    async def _at(self, key: SessionKey) -> AsyncIterator[OpenSession]:
        opened = self._open.setdefault(key, OpenSession(key))
        self._open.move_to_end(key)
        opened.users += 1
        try:
            async with opened.lock:
                yield opened
        except StoreError:
            opened.session = None  # the next request opens it anew
            raise
        finally:
            opened.users -= 1
            if opened.session is None and not opened.users:
                self._open.pop(key, None)
            idle = (key for key, one in self._open.items() if not one.users)
            for old in [key for key, _ in zip(idle, range(len(self._open) - self.limits.open_sessions), strict=False)]:
                del self._open[old]

    def _read(self, opened: OpenSession) -> None:
        if opened.session is None:
            self._refuse_absent(opened.key)
            opened.session, opened.head = self.store.at(*opened.key), None
        else:
            opened.session.refresh()

    def _write(self, opened: OpenSession, head: dict[str, Any] | None, create: bool) -> None:
        head_text = json.dumps(head, sort_keys=True, default=str) if head else ""
        if opened.session is not None and opened.head is not None and head_text in ("", opened.head):
            return
        is_there = opened.session is not None or self.store.exists(opened.key.session, tenant=opened.key.tenant)
        if not create:
            self._refuse_absent(opened.key)
        more = dict(head or {})
        named = more.pop("profile", None)
        if named is not None:
            more["profile"] = self.store.profiles(named, tenant=opened.key.tenant).newest().profile
        elif not is_there and self.settings.profile is not None:
            more["profile"] = self.settings.profile
        session = self.store.session(
            opened.key.session, tenant=opened.key.tenant, counter=self.builder().counter, **more
        )
        opened.session, opened.head = session, head_text

    def _refuse_absent(self, key: SessionKey) -> None:
        """Raise `Refusal` if the tenant has no such session; another tenant's session gives the same answer."""
        forgotten = any(note.principal is None for note in self.store.journal.forgotten(key.tenant, key.session))
        if not forgotten and not self.store.exists(key.session, tenant=key.tenant):
            raise Refusal("not_found", NO_SESSION)

    def open_keys(self, tenant: str) -> list[SessionKey]:
        """Return this tenant's sessions that are open here, the least recently used first."""
        return [key for key in self._open if key.tenant == tenant]

    def is_in_use(self, key: SessionKey) -> bool:
        opened = self._open.get(key)
        return opened is not None and opened.users > 0


# -- events ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEvent:
    """An event of a session."""

    number: int
    """Number of the event within this process."""
    tenant: str
    session: str
    kind: str
    """appended | built | compacted"""
    data: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps({"session": self.session, **self.data}, ensure_ascii=False)


@dataclass(slots=True, eq=False)
class EventListener:
    """One client that listens to events."""

    tenant: str
    session: str | None
    """Session to listen to; None for all of the tenant's."""
    waiting: deque[ServiceEvent]
    more: asyncio.Event = field(default_factory=asyncio.Event)
    lost: int = 0

    def wants(self, event: ServiceEvent) -> bool:
        return event.tenant == self.tenant and self.session in (None, event.session)

    def give(self, event: ServiceEvent) -> None:
        if len(self.waiting) == self.waiting.maxlen:
            self.lost += 1
        self.waiting.append(event)
        self.more.set()


class EventHub:
    """Distributor of events to listeners; used from the event loop alone."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._listeners: set[EventListener] = set()
        self._past: deque[ServiceEvent] = deque(maxlen=service.limits.listener_events)
        self._positions: dict[SessionKey, int] = {}
        self._number = 0
        self._poller: asyncio.Task[None] | None = None
        self._grown: asyncio.Event | None = None
        self.is_closed = False

    @property
    def listening(self) -> int:
        return len(self._listeners)

    def tell(self, key: SessionKey, kind: str, **data: Any) -> None:
        """Send an event to its listeners."""
        self._number += 1
        event = ServiceEvent(number=self._number, tenant=key.tenant, session=key.session, kind=kind, data=data)
        self._past.append(event)
        for listener in self._listeners:
            if listener.wants(event):
                listener.give(event)

    def appended(self, session: Session, refs: Sequence[str]) -> None:
        """Send events for messages that a request has appended."""
        for ref in refs:
            self.tell(session.key, "appended", ref=ref)
        self._told(session)

    def built(self, session: Session, envelope: Envelope) -> None:
        """Send events for an envelope that a request has built, and for its compactions."""
        for report in envelope.reports:
            self.tell(session.key, "compacted", **compacted_data(report))
        self.tell(session.key, "built", address=envelope.address, tokens=envelope.tokens)
        self._told(session)

    def _told(self, session: Session) -> None:
        """Note that events were sent for the session's whole log."""
        if session.key in self._positions:
            self._positions[session.key] = session.state.position

    def listen(self, tenant: str, session: str | None, after: int | None = None) -> EventListener:
        """Begin to listen; with `after`, first replay the later events that are still remembered."""
        limits = self._service.limits
        same = sum(each.tenant == tenant for each in self._listeners)
        if self.is_closed or len(self._listeners) >= limits.listeners or same >= max(1, limits.listeners // 2):
            raise Refusal("unavailable", "too many listen already; ask again later", headers={"Retry-After": "5"})
        listener = EventListener(tenant, session, deque(maxlen=limits.listener_events))
        self._listeners.add(listener)
        for event in self._past if after is not None else ():
            if event.number > (after or 0) and listener.wants(event):
                listener.give(event)
        if self._poller is None:
            self._grown = asyncio.Event()
            loop, grown = asyncio.get_running_loop(), self._grown
            self._wake = lambda _: loop.call_soon_threadsafe(grown.set)
            self._service.store.appended.append(self._wake)
            self._poller = asyncio.create_task(self._poll())
        return listener

    def leave(self, listener: EventListener) -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._poller is not None:
            self._poller.cancel()
            self._poller = None
            self._positions.clear()
            with suppress(ValueError):
                self._service.store.appended.remove(self._wake)

    def close(self) -> None:
        """End every listener's stream."""
        self.is_closed = True
        for listener in self._listeners:
            listener.more.set()

    async def _poll(self) -> None:
        assert self._grown is not None
        while not self.is_closed:
            for key in self._watched():
                with suppress(StoreError):  # an error of one session must not stop the others
                    if not self._service.is_in_use(key):
                        await self._look(key)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._grown.wait(), self._service.limits.poll_seconds)
            self._grown.clear()

    def _watched(self) -> list[SessionKey]:
        keys: dict[SessionKey, None] = {}
        for listener in self._listeners:
            if listener.session is not None:
                keys[SessionKey(listener.tenant, listener.session)] = None
            else:
                keys.update(dict.fromkeys(self._service.open_keys(listener.tenant)))
        return list(keys)

    async def _look(self, key: SessionKey) -> None:
        """Send events for records that other processes have appended."""
        known = self._positions.get(key)
        journal = self._service.store.journal
        length = await self._service.run_own(journal.length, key)
        if known is None:
            self._positions[key] = length
            return
        if length <= known or self._service.is_in_use(key) or self._positions.get(key) != known:
            return
        start = max(known, length - self._service.limits.listener_events)
        records = await self._service.run_own(journal.read, key, start, length)
        if self._service.is_in_use(key) or self._positions.get(key) != known:
            return
        self._positions[key] = length
        for record in records:
            event = from_record(record)
            if isinstance(event, MessageAppended):
                self.tell(key, "appended", ref=f"§{record.ordinal}")
            elif isinstance(event, WindowCompacted):
                self.tell(key, "compacted", **compacted_data(event.report))


def compacted_data(report: Any) -> dict[str, Any]:
    """Return the figures of a compaction for its event, without text."""
    return {
        "report": report.id,
        "pre_tokens": report.pre_tokens,
        "post_tokens": report.post_tokens,
        "losses": len(report.losses),
    }
