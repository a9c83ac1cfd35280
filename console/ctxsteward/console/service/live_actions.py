"""Actions on the live pages, and a session's health.

    GET  /api/sessions/{id}/health     how full it is, as JSON; `<context-meter>` requests it
    GET  /sessions/{id}/health         the page; with `preview=1` also a preview of a compaction
    POST /sessions/{id}/health         compact now, or undo the newest compaction, then the page again
    POST /steward/{profile}            answer a question, promote, or roll back, then the page again

Every action is a form: it works without scripts, and is answered with a redirect, so that reloading does not repeat it.
Forms that other sites send are refused earlier (`access.check_origin`). Compactions use the API's route. Answers,
promotions and rollbacks are those of ``ctxsteward steward``: they need the scope `steward`, and are decided and signed
with the person's own token from the file of actors, which is used for this one request and never stored.
The page reports a refusal, with the status that the API would give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from ctxsteward.schemas import ContextError, InputError, ReferenceNotFound, WindowExceeded

from ..pages.frame import LANGUAGES, Frame, Place, place_of
from ..pages.health import SessionHealth, health_of
from .access import Principal, Refusal, needs, refusal_of
from .api import PROBLEMS, ModelName, Reader, ServiceDep, SessionId, Writer, builder_of, compact
from .desk import OpenSession, Service
from .live_pages import router as pages_router, site_of
from .request_body import StrictRoute

if TYPE_CHECKING:
    from ..pages.site import Answer, Site
    from ..steward.context import StewardContext

router = APIRouter()
Steward = Annotated[Principal, needs("steward")]
FORM_BYTES, FIELDS = 16_384, 20
DECISIONS = ("approve", "accept", "reject", "edit")


# -- how full a session is ------------------------------------------------------------------------------------------

figures = APIRouter(route_class=StrictRoute, responses=PROBLEMS)


@figures.get("/api/sessions/{session:path}/health", tags=["sessions"])
async def session_health(
    session: SessionId, service: ServiceDep, who: Reader, model: ModelName = None
) -> SessionHealth:
    """How full the session is: shares of the dynamic budget and of the model's window, and a level; nothing is written.

    `healthy`; `warning` from 80 % on; `critical` from 90 % on; `idle` where nothing was said yet.
    """
    builder = builder_of(service, model, None)
    async with service.reading(who.tenant, session) as opened:
        assert opened.session is not None
        return await service.run(who.tenant, health_of, opened.session, builder)


router.include_router(figures)


@router.get("/sessions/{session}/health", include_in_schema=False)
async def health_page(request: Request, service: ServiceDep, who: Reader) -> Response:
    """Show the page, with a preview if one is requested."""
    return await _health_page(request, service, who, {})


async def _health_page(
    request: Request, service: ServiceDep, who: Principal, given: Mapping[str, Any], status: int | None = None
) -> Response:
    place, asked = _place(request), dict(request.query_params)
    values = dict(given)
    try:
        builder = builder_of(service, None, None)
        async with service.reading(who.tenant, place.session) as opened:
            assert opened.session is not None
            values["health"] = await service.run(who.tenant, health_of, opened.session, builder)
        if asked.get("preview") == "1":
            values["compaction"] = await compact(place.session, service, who, None, "true")
    except (Refusal, ReferenceNotFound):
        pass  # the page itself reports the missing session
    except WindowExceeded as error:
        status, values["problem"] = _told(error)
    return await _shown(request, service, who, values, status)


@router.post("/sessions/{session}/health", include_in_schema=False)
async def prune(request: Request, service: ServiceDep, who: Writer) -> Response:
    """Compact now, or undo the newest compaction, then redirect to the page."""
    place, fields = _place(request), await _fields(request)
    action = fields.get("action")
    if action not in ("prune", "undo"):
        raise Refusal("invalid", "the form says what to do: `action` is `prune` or `undo`")
    try:
        if action == "undo":
            async with service.writing(who.tenant, place.session) as opened:
                await service.run(who.tenant, _undone, service, opened)
            return _again(request, place, "undo")
        made = await compact(place.session, service, who, None, "false")
    except ContextError as error:
        status, problem = _told(error)
        return await _health_page(request, service, who, {"problem": problem}, status)
    return _again(request, place, "prune" if made.is_compacted else "not_pruned")


def _undone(service: Service, opened: OpenSession) -> None:
    session = opened.session
    assert session is not None
    built = builder_of(service, None, None).show_again(session)
    opened.newest = built.address
    service.call(service.hub.built, session, built)


# -- what people decide ---------------------------------------------------------------------------------------------


@router.post("/steward/{profile}", include_in_schema=False)
async def decide(request: Request, service: ServiceDep, who: Steward) -> Response:
    """Answer, promote or roll back, then redirect to the page."""
    place, fields = _place(request), await _fields(request)
    try:
        done = await service.run(who.tenant, _decided, service, who, place.session, fields)
    except ContextError as error:
        status, problem = _told(error)
        kept = {name: fields.get(name, "") for name in ("id", "note", "text")}
        return await _shown(request, service, who, {"problem": problem, "form": kept}, status)
    return _again(request, place, done)


def _told(error: ContextError) -> tuple[int, str]:
    """Return the status and text for the page; raise the error again if it is a fault of the service."""
    refusal = refusal_of(error)
    if refusal.status == 500:
        raise error
    return refusal.status, refusal.detail


def _decided(service: ServiceDep, who: Principal, profile: str, fields: Mapping[str, str]) -> str:
    """Do the form's action, and return the name of its result; raise `InputError` if it is not allowed."""
    from ..steward.context import stored_context
    from ..steward.promotion import promoted, rolled_back

    place = stored_context(service.store, who.tenant, profile)
    action = fields.get("action", "")
    if action in DECISIONS:
        return _answered(place, action, fields)
    if action == "promote":
        result = promoted(place, fields.get("id", ""), _operator(service, who, place, fields), None)
        if result["obstacle"] is not None:
            raise InputError(result["why"])
        return "promote" if result["written"] else "unchanged"
    if action == "rollback":
        version = fields.get("version", "")
        if not (version.isascii() and version.isdecimal() and 0 < int(version[:9]) <= place.head):
            raise InputError(f"version {version!r:.20}: write a number from 1 to {place.head}")
        note = " ".join(fields.get("note", "").split())
        if not note:
            raise InputError("a rollback needs a reason; it is kept in the changelog")
        result = rolled_back(place, int(version), _operator(service, who, place, fields), note)
        return "rollback" if result["written"] else "unchanged"
    raise InputError("the form says what to do: `action` is approve, accept, reject, edit, promote or rollback")


def _answered(place: StewardContext, decision: Any, fields: Mapping[str, str]) -> str:
    from ..steward.review import ReviewerAnswer, answer, check_people

    check_people(place)
    if decision == "reject" and not fields.get("note", "").strip():
        raise InputError("a rejection needs a reason; it is remembered and shown to whoever is asked next")
    result = answer(
        place,
        ReviewerAnswer(
            id=fields.get("id", "") or "-",
            decision=decision,
            secret=_secret(fields),
            note=fields.get("note", ""),
            text=fields.get("text") or None,
            seen=fields.get("seen") or None,
        ),
    )
    return "more" if decision in ("approve", "accept") and result["state"] == "waiting" else str(decision)


def _secret(fields: Mapping[str, str]) -> str:
    """Return the person's own token; an empty field raises `InputError`, so that this process' token never counts."""
    secret = fields.get("token", "").strip()
    if secret in ("", "-"):
        raise InputError("no token: write the token that `ctxsteward steward actors --add` gave you")
    return secret


def _operator(service: ServiceDep, who: Principal, place: StewardContext, fields: Mapping[str, str]) -> str:
    """Return the operator, by token; without a file of actors, by the name of the login, else by that of the form."""
    from ..steward.promotion import operator

    if place.actors_path is not None:
        return operator(place, None, _secret(fields))
    named = fields.get("who", "").strip()[:80] or None
    return operator(place, named if service.settings.tokens is None else who.name, None)


# -- requests and pages ---------------------------------------------------------------------------------------------


def _path(request: Request) -> str:
    """Return the path as it was sent; the pages decode it."""
    path: str = request.scope.get("raw_path", b"").decode("latin-1") or request.url.path
    return path.lstrip("/")


def _place(request: Request) -> Place:
    place = place_of(_path(request), dict(request.query_params))
    if place is None:
        raise Refusal("not_found", "there is no such page")
    return place


async def _fields(request: Request) -> dict[str, str]:
    """Read the fields of a form: at most `FIELDS`, the first value of each."""
    body = await request.body()
    if len(body) > FORM_BYTES:
        raise Refusal("too_large", f"a form may have {FORM_BYTES:,} bytes")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal("unsupported_media_type", "send the form as application/x-www-form-urlencoded")
    try:
        values_by_name = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=FIELDS, errors="strict")
    except ValueError:
        raise Refusal("invalid", f"a form has at most {FIELDS} fields, in UTF-8") from None
    return {name: values[0] for name, values in values_by_name.items()}


async def _shown(
    request: Request, service: ServiceDep, who: Principal, given: Mapping[str, Any], status: int | None
) -> Response:
    site: Site = replace(site_of(service, who), given=given)
    page: Answer = await service.run(who.tenant, site.answer, _path(request), dict(request.query_params))
    code = status if status is not None and page.status == 200 else page.status
    return Response(page.body, code, headers={"content-type": page.kind})


def _again(request: Request, place: Place, done: str) -> Response:
    """Redirect to the page, which reports the result."""
    asked = request.query_params.get("lang", "")
    frame = Frame(at=place, language=asked if asked in LANGUAGES else LANGUAGES[0])
    return RedirectResponse(frame.href(place.bare._replace(query=(("done", done),))), 303)


router.include_router(pages_router)
