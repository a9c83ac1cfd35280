"""The live pages: routes for every page of `pages`, for the files that they load, and for a browser's login.

    /                        the sessions; also every path of `pages.frame.ROUTES`
    /assets/NAME             files that pages load; they need no token
    /login, /logout          with tokens: a form that takes a token and sets a cookie of this process

Pages read the tenant of the user. A page that is added to `pages` is served without a change here.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from ..pages.frame import ASSETS, LANGUAGES, ROUTES, Frame, Place
from .access import COOKIE, Principal, Refusal, needs
from .api import Reader, ServiceDep

if TYPE_CHECKING:
    from ..pages.site import Site

router = APIRouter(include_in_schema=False)
ASSET_SECONDS = 300


def site_of(service: ServiceDep, who: Principal) -> Site:
    """Return the pages of this user; imported with the first page, because they import the steward."""
    from ..pages.site import Site

    settings = service.settings
    history = settings.eval_history if who.tenant == settings.tenant else None
    return Site(store=service.store, tenant=who.tenant, history=history, may=who.scopes)


async def page(request: Request, service: ServiceDep, who: Reader) -> Response:
    """Answer with a page."""
    path = request.scope.get("raw_path", b"").decode("latin-1") or request.url.path  # `Site` decodes by itself
    answer = await service.run(who.tenant, site_of(service, who).answer, path.lstrip("/"), dict(request.query_params))
    return Response(answer.body, answer.status, headers={"content-type": answer.kind})


for _pattern in ("", *(route.live for route in ROUTES.values())):
    _path = "/" + re.sub(r"\{(number|since)\}", r"{\1:int}", _pattern)  # whole numbers are integer parameters
    router.add_api_route(_path, page, methods=["GET"])


@router.get("/assets/{name}")
async def asset(name: str, service: ServiceDep) -> Response:
    """Answer with a file that pages load."""
    if name not in ASSETS:
        raise Refusal("not_found", "there is no such file")
    from ..pages.site import Site

    answer = Site(store=service.store).answer(str(PurePosixPath("assets", name)), {})
    headers = {"content-type": answer.kind, "cache-control": f"max-age={ASSET_SECONDS}"}
    return Response(answer.body, answer.status, headers=headers)


# -- a browser's login ----------------------------------------------------------------------------------------------


def _form(request: Request, *, failed: bool = False) -> Response:
    asked = request.query_params.get("lang", "")
    frame = Frame(at=Place("sessions"), language=asked if asked in LANGUAGES else LANGUAGES[0], tabs=())
    text = frame.page("login.html.j2", failed=failed)
    return Response(text, 401 if failed else 200, media_type="text/html")


@router.get("/login")
async def login_form(request: Request, service: ServiceDep) -> Response:
    """Show the form that takes a token."""
    return _form(request) if service.settings.tokens is not None else RedirectResponse("/", 303)


@router.post("/login")
async def login(request: Request, service: ServiceDep) -> Response:
    """Check a token, and set a cookie."""
    tokens = service.settings.tokens
    if tokens is None:
        return RedirectResponse("/", 303)
    fields = parse_qs((await request.body())[:4_096].decode("latin-1"), max_num_fields=10)
    token = tokens.owner(fields.get("token", [""])[0].strip()[:500])
    if token is None:
        return _form(request, failed=True)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        COOKIE,
        service.logins.begin(token),
        max_age=int(service.limits.login_seconds),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.post("/logout", dependencies=[needs("read")])
async def logout(request: Request, service: ServiceDep) -> Response:
    """End the login, and delete its cookie."""
    service.logins.end(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer
