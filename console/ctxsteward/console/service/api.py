"""The routes of the JSON API. The OpenAPI document describes all of them.

Lists come in pages: `items`, and `next`, which is the `after` of the next page. Ids of sessions are percent-encoded in
the path. Routes raise `Refusal` and errors of the product; `app` answers both with problem details.

The rooms of the steward and of evals are imported at the first request for one of their routes: importing them takes a
third of the service's start, for which clients wait after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import PlainTextResponse, Response

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Policy, rebuild
from ctxsteward.envelope.cascade.continuity import handoff_of, resume
from ctxsteward.envelope.compaction.policy import asked_policy
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.schemas import Finding, InputError, StoreError
from ctxsteward.schemas.cascade import PolicyName, SelectorName
from ctxsteward.schemas.documents import HandoffSummary
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.eval_result import EvalResult
from ctxsteward.schemas.profile import ENTRY_ID
from ctxsteward.schemas.recommendation import Status
from ctxsteward.store.addresses import META_REPORT, report_in
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.events import SessionHead
from ctxsteward.store.journal.port import SessionKey

from ..terminal.failures import STEWARD, missing
from .access import Principal, Refusal, needs
from .bodies import (
    MAX_NAME,
    AppendedMessage,
    AppendInput,
    AppendResult,
    BeginInput,
    BegunSession,
    BudgetsInput,
    BuildInput,
    BuildResult,
    CompactInput,
    Compaction,
    CompactionPrice,
    EnvelopeBody,
    ErasureInput,
    HandoffBody,
    Health,
    MessageInput,
    ProfileVersionPage,
    ProfileVersionRow,
    RecordPage,
    ReportPage,
    ResolvedOriginal,
    ResultPage,
    SessionListing,
    SessionPage,
)
from .desk import OpenSession, Service
from .request_body import StrictRoute

# -- who and where --------------------------------------------------------------------------------------------------


def service_of(request: Request) -> Service:
    """Return the running service."""
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(service_of)]
Reader = Annotated[Principal, needs("read")]
Writer = Annotated[Principal, needs("write")]
Eraser = Annotated[Principal, needs("erase")]
SessionId = Annotated[str, Path(min_length=1, max_length=MAX_NAME, description="Id of the session.")]
Limit = Annotated[int, Query(ge=1, le=200, description="Rows of a page.")]
After = Annotated[int, Query(ge=0, le=1_000_000_000, description="`next` of the page before.")]
ModelName = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME)]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "Problem details",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
router = APIRouter(route_class=StrictRoute, responses=PROBLEMS)


def builder_of(
    service: Service,
    model: str | None,
    budgets: BudgetsInput | None,
    policy: PolicyName | None = None,
    selector: SelectorName | None = None,
    summarizer: str | None = None,
) -> EnvelopeBuilder:
    """Return the builder that a request asks for."""
    named = {} if budgets is None else budgets.model_dump(exclude_none=True)
    stated = service.settings.budgets
    fixed = {} if stated is None else stated.model_dump(exclude_unset=True)
    return service.builder(model, Budgets(**fixed | named) if named else stated, policy, selector, summarizer)


def page_of(rows: Iterable[Any], after: int, limit: int) -> tuple[tuple[Any, ...], str | None]:
    """Return a page of rows, and the `after` of the next page, or None."""
    window = tuple(islice(rows, after, after + limit + 1))
    return window[:limit], str(after + limit) if len(window) > limit else None


# -- the process ----------------------------------------------------------------------------------------------------


@router.get("/healthz", tags=["service"])
async def healthz(service: ServiceDep) -> Health:
    """Whether the service and its store answer."""
    try:
        await service.healthy()
    except StoreError as error:
        raise Refusal("unavailable", "the store does not answer") from error
    return Health(status="ok")


class MetricsText(PlainTextResponse):
    """Prometheus' text format."""

    media_type = "text/plain"


@router.get("/metrics", tags=["service"], response_class=MetricsText)
async def metrics(service: ServiceDep, who: Reader) -> Response:
    """Figures of this process as Prometheus reads them; no tenant, session or person is in them."""
    scrape = service.settings.scrape
    more = await service.run(who.tenant, scrape) if scrape is not None else ""
    return MetricsText(service.figures() + more, headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"})


# -- sessions -------------------------------------------------------------------------------------------------------


@router.get("/api/sessions", tags=["sessions"])
async def list_sessions(
    service: ServiceDep,
    who: Reader,
    q: Annotated[str | None, Query(max_length=MAX_NAME, description="Part of the id, in any case.")] = None,
    limit: Limit = 50,
    after: Annotated[str | None, Query(max_length=MAX_NAME, description="`next` of the page before.")] = None,
) -> SessionPage:
    """The tenant's sessions, by id."""

    def listed() -> SessionPage:
        ids_of_tenant = service.store.sessions(tenant=who.tenant)
        findings = tuple(finding.model_dump(mode="json") for finding in service.store.unreached)
        wanted = (id for id in ids_of_tenant if (after is None or id > after) and (q or "").lower() in id.lower())
        ids = list(islice(wanted, limit + 1))
        rows, unreadable = [], []
        for id in ids[:limit]:
            try:
                records = service.store.journal.length(SessionKey(who.tenant, id))
            except Damaged:  # damage of one row is a finding; an error of the whole store is raised
                records = None
                text = "the journal's row of its log was altered; `ctxsteward store fsck` says what can be done"
                unreadable.append(Finding(kind="unreadable_session", field=id, text=text))
            rows.append(SessionListing(id=id, records=records))
        more = ids[limit - 1] if len(ids) > limit else None
        return SessionPage(items=tuple(rows), next=more, findings=(*findings, *findings_of(unreadable)))

    return await service.run(who.tenant, listed)


@router.get("/api/sessions/{session:path}/envelope", tags=["sessions"])
async def envelope(
    session: SessionId,
    service: ServiceDep,
    who: Reader,
    address: Annotated[
        str | None, Query(pattern="^[0-9a-f]{8,64}$", max_length=64, description="Of one; default: the newest.")
    ] = None,
) -> EnvelopeBody:
    """An envelope of the session, out of its log: the newest, or the one at this address."""
    async with service.reading(who.tenant, session) as opened:
        return await service.run(who.tenant, _past_envelope, service, opened, address)


def _past_envelope(service: Service, opened: OpenSession, address: str | None) -> dict[str, Any]:
    tenant, id = opened.key
    if address is None:
        if opened.newest is None:  # lists the session's manifests once
            assert opened.session is not None
            manifests = reversed(opened.session.journal.manifests(opened.key))
            opened.newest = next((each.address for each in manifests if META_REPORT not in each.body), None)
        if opened.newest is None:
            raise Refusal("not_found", "no envelope of this session was built yet")
        return rebuild(service.store, opened.newest, tenant=tenant).document()
    whole = service.store.address(address, tenant=tenant, session=id)
    manifest = service.store.manifest(whole, tenant=tenant, session=id)
    if manifest["session"] != id or report_in(manifest) is not None:
        raise Refusal("not_found", "no envelope of this session has this address")
    return rebuild(service.store, whole, tenant=tenant).document()


@router.get("/api/sessions/{session:path}/reports", tags=["sessions"])
async def reports(
    session: SessionId, service: ServiceDep, who: Reader, limit: Limit = 50, after: After = 0
) -> ReportPage:
    """What compactions kept and lost, newest first."""
    async with service.reading(who.tenant, session) as opened:
        assert opened.session is not None
        events = await service.run(who.tenant, opened.session.reports)
    items, more = page_of((event.report.model_dump(mode="json") for event in reversed(events)), after, limit)
    return ReportPage(items=items, next=more)


@router.get("/api/sessions/{session:path}/handoff", tags=["sessions"])
async def handoff(session: SessionId, service: ServiceDep, who: Reader) -> HandoffBody:
    """Where the session's work stands; 404 `no handoff summary available` where there is none to hand over."""
    async with service.reading(who.tenant, session) as opened:
        document, _ = await service.run(who.tenant, _handed_over, service, opened)
    return document.model_dump(mode="json")


@router.post("/api/sessions/{session:path}/handoff", tags=["sessions"])
async def begin(session: SessionId, body: BeginInput, service: ServiceDep, who: Writer) -> BegunSession:
    """Begin a new session that opens with this one's handoff, under its system text and tools."""
    async with service.reading(who.tenant, session) as opened:
        document, head = await service.run(who.tenant, _handed_over, service, opened)
    async with service.beginning(who.tenant, body.session) as store:
        start = partial(resume, store, document, body.session, tenant=who.tenant, profile=service.settings.profile)
        begun = await service.run(who.tenant, partial(start, system=list(head.system), tools=list(head.tools)))
    return BegunSession(session=begun.id, length=len(begun), handoff=document.model_dump(mode="json"))


def _handed_over(service: Service, opened: OpenSession) -> tuple[HandoffSummary, SessionHead]:
    session = opened.session
    assert session is not None
    if not session.state.task:
        raise Refusal("not_found", "no handoff summary available")
    return handoff_of(session, now=service.settings.now), session.state.head


@router.get("/api/sessions/{session:path}/refs/{ref}", tags=["sessions"])
async def resolve(
    session: SessionId,
    ref: Annotated[str, Path(min_length=1, max_length=80, description="128, §128.2, tool:3, meta:ID.")],
    service: ServiceDep,
    who: Reader,
) -> ResolvedOriginal:
    """The original that a reference names, word for word."""
    async with service.reading(who.tenant, session) as opened:
        assert opened.session is not None
        message = await service.run(who.tenant, opened.session.resolve, ref)
    return ResolvedOriginal(ref=ref, role=message.role, message=message.wire)


@router.get("/api/sessions/{session:path}/preview", tags=["sessions"])
async def preview(
    session: SessionId,
    service: ServiceDep,
    who: Reader,
    user_turn: Annotated[
        str | None, Query(min_length=1, max_length=8_000, description="The next user message.")
    ] = None,
    model: ModelName = None,
) -> EnvelopeBody:
    """The envelope as it would be, with this as the next user message; nothing is written."""
    builder = builder_of(service, model, None)
    async with service.reading(who.tenant, session) as opened:
        assert opened.session is not None
        asked = partial(builder.preview, deadline_seconds=service.limits.build_seconds)
        probe = await service.run(who.tenant, asked, opened.session, user_turn)
        return await service.run(who.tenant, probe.document)


@router.post("/api/sessions/{session:path}/messages", tags=["sessions"])
async def append(session: SessionId, body: AppendInput, service: ServiceDep, who: Writer) -> AppendResult:
    """Append messages, in their order. What this returns is on disk. An id that is there is not written again."""
    if len(body.messages) > service.limits.messages:
        most = service.limits.messages
        raise Refusal("too_large", f"a request may have {most:,} messages; send the rest in another")
    head = None if body.head is None else body.head.model_dump(exclude_none=True)
    async with service.writing(who.tenant, session, head=head, create=True) as opened:
        return await service.run(who.tenant, _appended, service, opened, body)


def _appended(service: Service, opened: OpenSession, body: AppendInput) -> AppendResult:
    session = opened.session
    assert session is not None
    if body.follow:
        stands = session.follow([followed(one) for one in body.messages])
        service.call(service.hub.appended, stands, ())
        return AppendResult(session=stands.id, length=len(stands), messages=(), findings=findings_of(stands.findings))
    entries = session.extend(NewMessage(**dict(one)) for one in body.messages)
    rows = tuple(AppendedMessage(ref=one.ref, ordinal=one.ordinal, is_new=one.is_new) for one in entries)
    service.call(service.hub.appended, session, [row.ref for row in rows if row.is_new])
    return AppendResult(session=session.id, length=len(session), messages=rows, findings=findings_of(session.findings))


def followed(message: MessageInput) -> object:
    """Return a message of a history with its other fields, or its wire dict alone, which `follow` compares faster."""
    beside = dict(message)
    wire = beside.pop("message")
    return wire if all(value is None for value in beside.values()) else NewMessage(message=wire, **beside)


def findings_of(findings: Iterable[Finding]) -> tuple[dict[str, Any], ...]:
    return tuple(finding.model_dump(mode="json") for finding in findings)


@router.post("/api/sessions/{session:path}/build", tags=["sessions"])
async def build(session: SessionId, service: ServiceDep, who: Writer, body: BuildInput | None = None) -> BuildResult:
    """The envelope for the next model call, and the request that it becomes. It may compact, and recall."""
    asked = body or BuildInput()
    builder = builder_of(service, asked.model, asked.budgets, asked.policy, asked.selector, asked.summarizer)
    async with service.writing(who.tenant, session) as opened:
        return await service.run(who.tenant, _built, service, opened, builder, asked)


def _built(service: Service, opened: OpenSession, builder: EnvelopeBuilder, asked: BuildInput) -> BuildResult:
    assert opened.session is not None
    stands = opened.session
    if asked.history is not None:
        stands = stands.follow(asked.history, principal=asked.principal)
    built = builder.build(stands, deadline_seconds=service.limits.build_seconds)
    if stands.key == opened.key:
        opened.newest = built.address
    service.call(service.hub.built, stands, built)
    return BuildResult(
        session=built.session,
        address=built.address,
        tokens=built.tokens,
        provider=asked.provider,
        request=None if asked.provider is None else built.render(asked.provider, cache=asked.cache),
        envelope=built.document() if asked.envelope else None,
    )


# -- compacting when asked to ---------------------------------------------------------------------------------------


@router.post("/api/sessions/{session:path}/compact", tags=["sessions"])
async def compact(
    session: SessionId,
    service: ServiceDep,
    who: Writer,
    body: CompactInput | None = None,
    dry_run: Annotated[
        Literal["true", "false"], Query(description="Say what it would do, and what that costs.")
    ] = "false",
) -> Compaction:
    """Compact now, whatever the thresholds say. One that would save less than a tenth of the window is not made."""
    asked = body or CompactInput()
    builder = builder_of(service, asked.model, asked.budgets)
    is_dry = dry_run == "true"
    using = service.reading if is_dry else service.writing
    async with using(who.tenant, session) as opened:
        return await service.run(
            who.tenant, _compacted, service, opened, builder, asked_policy(asked.keep_tokens), is_dry
        )


def _compacted(
    service: Service, opened: OpenSession, builder: EnvelopeBuilder, policy: Policy, is_dry: bool
) -> Compaction:
    session = opened.session
    assert session is not None
    with session.lock:  # the log must not change between pricing and writing
        session.refresh()
        bounded = partial(builder.preview, session, deadline_seconds=service.limits.build_seconds)
        before = bounded(compact=False)
        after = bounded(policy=policy)
        made = next((report for report in after.reports if report.section == "dynamic"), None)
        price = CompactionPrice.of(before, after, builder)
        if made is not None and not is_dry:
            built = builder.build(session, policy=policy, deadline_seconds=service.limits.build_seconds)
            opened.newest = built.address
            made = next((report for report in built.reports if report.section == "dynamic"), None)
            service.call(service.hub.built, session, built)
    reasons = [finding.text for finding in after.findings if finding.kind in ("compaction_refused", "build_deadline")]
    return Compaction(
        session=session.id,
        dry_run=is_dry,
        is_compacted=made is not None,
        price=price,
        reason=None if made is not None else (reasons or ["nothing may leave the window"])[0],
        report=None if made is None else made.model_dump(mode="json"),
        address=None if made is None or is_dry else opened.newest,
    )


# -- governed state -------------------------------------------------------------------------------------------------

ProfileName = Annotated[
    str | None, Query(pattern=ENTRY_ID, max_length=MAX_NAME, description="Default: all of the tenant.")
]


@router.get("/api/profile/versions", tags=["governed state"])
async def profile_versions(
    service: ServiceDep, who: Reader, profile: ProfileName = None, limit: Limit = 50, after: After = 0
) -> ProfileVersionPage:
    """Who committed which version of a profile, when and why, newest first."""

    def listed() -> ProfileVersionPage:
        items, more = page_of(_versions(service, who.tenant, profile), after, limit)
        return ProfileVersionPage(items=items, next=more)

    return await service.run(who.tenant, listed)


def _versions(service: Service, tenant: str, profile: str | None) -> Iterable[ProfileVersionRow]:
    from ..steward.context import profiles_in

    for name in profiles_in(service.store, tenant) if profile is None else [profile]:
        versions = service.store.profiles(name, tenant=tenant)
        head = versions.newest().number
        entries = reversed(list(versions.changelog()))
        for number, entry in zip(range(head, 0, -1), entries, strict=False):
            yield ProfileVersionRow(profile=name, entry=entry.model_dump(mode="json"), is_head=number == head)


@router.get("/api/recommendations", tags=["governed state"])
async def recommendations(
    service: ServiceDep,
    who: Reader,
    profile: ProfileName = None,
    status: Annotated[Status | None, Query(description="Only these.")] = None,
    limit: Limit = 50,
    after: After = 0,
) -> RecordPage:
    """Records that the steward harvested, with the evidence behind each, by id."""

    def listed() -> RecordPage:
        items, more = page_of(_records(service, who.tenant, profile, status), after, limit)
        return RecordPage(items=items, next=more)

    async with service.ledgers:
        return await service.run(who.tenant, listed)


def _records(service: Service, tenant: str, profile: str | None, status: str | None) -> Iterable[dict[str, Any]]:
    if missing(STEWARD):
        raise Refusal("not_implemented", "this service is installed without the extra `steward`")
    from ..steward.context import profiles_in, stored_context
    from ..steward.records import records_at

    known = profiles_in(service.store, tenant)
    if profile is not None and profile not in known:
        raise Refusal("not_found", "this tenant has no profile of this name")
    for name in known if profile is None else [profile]:
        place = stored_context(service.store, tenant, name)
        with records_at(place) as records:
            for record in records:
                if status is None or record.status == status:
                    yield record.model_dump(mode="json")


@router.get("/api/evals", tags=["governed state"])
async def evals(
    service: ServiceDep,
    who: Reader,
    suite: Annotated[str | None, Query(min_length=1, max_length=MAX_NAME)] = None,
    limit: Limit = 20,
    after: After = 0,
) -> ResultPage:
    """Results of eval suites, newest first, out of the history that the service was started with."""
    path = service.settings.eval_history
    if path is None or who.tenant != service.settings.tenant:
        return ResultPage(items=(), next=None)

    def read_results() -> tuple[EvalResult, ...]:
        from ctxsteward.evals.result_history import read  # imported in a worker thread, since it is slow

        return read(path)

    try:
        results = await service.run(who.tenant, read_results)
    except InputError as error:
        raise Refusal("unavailable", "the history of evals cannot be read now") from error
    rows = (one.model_dump(mode="json") for one in reversed(results) if suite in (None, one.suite))
    items, more = page_of(rows, after, limit)
    return ResultPage(items=items, next=more)


# -- forgetting -----------------------------------------------------------------------------------------------------


@router.post("/api/erasures", tags=["sessions"])
async def erase(body: ErasureInput, service: ServiceDep, who: Eraser) -> Response:
    """Forget a session or a person for good, in the name of the token; the answer is the signed receipt.

    `complete` in it is false where something could not be reached: mend what its findings name, and repeat. Keep the
    answer byte for byte: its signature covers that form.
    """
    done = await service.run(
        who.tenant,
        partial(
            forget,
            service.store,
            tenant=who.tenant,
            session=body.session,
            principal=body.principal,
            who=who.name,
            why=body.why,
            when=service.settings.now(),
        ),
    )
    return Response(done.receipt, media_type="application/json")


# -- events ---------------------------------------------------------------------------------------------------------


class EventStream(EventSourceResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


@router.get("/api/events", tags=["service"], response_class=EventStream)
async def events(
    request: Request,
    service: ServiceDep,
    who: Reader,
    session: Annotated[str | None, Query(min_length=1, max_length=MAX_NAME, description="Of this one alone.")] = None,
) -> EventStream:
    """What happens to sessions, as server-sent events: `appended`, `built`, `compacted`; `lost` where a client is slow.

    `Last-Event-ID` goes on from there, as far as this process remembers. It ends when the token no longer holds.
    """
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else None
    limits = service.limits
    listener = service.hub.listen(who.tenant, session, after)

    async def told() -> AsyncIterator[ServerSentEvent]:
        try:
            while not service.hub.is_closed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(limits.heartbeat_seconds):
                        await listener.more.wait()
                if not service.may_still_read(who, request.scope["headers"]):
                    return  # the token was revoked, or the person has logged out
                listener.more.clear()
                if listener.lost:
                    yield ServerSentEvent(event="lost", data=str(listener.lost), sep="\n")
                    listener.lost = 0
                while listener.waiting:
                    event = listener.waiting.popleft()
                    yield ServerSentEvent(event=event.kind, id=str(event.number), data=event.text, sep="\n")
        finally:
            service.hub.leave(listener)

    return EventStream(told(), ping=limits.heartbeat_seconds, send_timeout=limits.send_seconds, sep="\n")
