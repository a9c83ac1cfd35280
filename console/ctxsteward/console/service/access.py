"""Who asks, what they may do, how often; and how a refusal is told: as problem details (RFC 9457).

A token file is YAML, written by ``ctxsteward serve token add``; it holds hashes, never a token::

    tokens:
    - name: ci
      tenant: acme
      scopes: [read, write]          # read | write | steward
      sha256: 9f86d081884c7d65…      # of the token, which is 256 random bits: no slower hash is needed
      revoked: false                 # true, or the entry taken away: refused at once

The file is looked at once a second and read again where it has changed. One that cannot be read lets nobody in.
Every token is compared in constant time with every entry. A bad, missing, malformed and revoked token get the same
answer. A browser shows its token once, in a form, and then a cookie that only this process knows (`Logins`): it is as
good as the token behind it, as long as that is not revoked.

Without a token file the service is one user's, on the loopback: `check_host` refuses names that are not this machine's
(DNS rebinding), `check_origin` a write that another site's page asks a browser for (CSRF).

Raises `Refusal`; `InputError` for a token file that is none. Sources: RFC 6750, RFC 9457; OWASP on CSRF.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from fastapi import Depends, Request
from pydantic import Field
from ruamel.yaml import YAML
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser

from ctxsteward.schemas import (
    BudgetExceeded,
    ContextError,
    Erased,
    InputError,
    ReferenceNotFound,
    StoreLocked,
    StoreUnavailable,
    WindowExceeded,
)
from ctxsteward.schemas.errors import (
    Backpressure,
    Conflict,
    Fenced,
    InputTooLarge,
    OutcomeUnknown,
    TokenizerUnavailable,
    VersionTaken,
)
from ctxsteward.schemas.frozen import FrozenModel
from ctxsteward.store.names import checked_name
from ctxsteward.store.strict_yaml import DocumentKind, read_document

Scope = Literal["read", "write", "steward", "erase"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
TOKEN_PREFIX = "ctxs_"
LOOK_SECONDS = 1.0
COOKIE = "ctxsteward_login"
_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]{1,500}=*)")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))

# -- refusals -------------------------------------------------------------------------------------------------------

KINDS: Mapping[str, tuple[int, str]] = {
    "bad_request": (400, "The request cannot be read"),
    "unauthorized": (401, "A valid token is needed"),
    "forbidden": (403, "Not allowed"),
    "not_found": (404, "Not found"),
    "method_not_allowed": (405, "The method is not allowed"),
    "timeout": (408, "The request came too slowly"),
    "conflict": (409, "Somebody else was first"),
    "erased": (410, "Erased"),
    "too_large": (413, "Too large"),
    "unsupported_media_type": (415, "The body must be JSON"),
    "misdirected": (421, "Not a name of this service"),
    "invalid": (422, "The request does not fit"),
    "too_many_requests": (429, "Too many requests"),
    "headers_too_large": (431, "The headers are too large"),
    "internal": (500, "An error of the service"),
    "not_implemented": (501, "Not implemented"),
    "unavailable": (503, "Not available now"),
}
"""Every kind of problem, with its status and title."""
_BY_STATUS = {status: kind for kind, (status, _) in KINDS.items()}
MEDIA_TYPE = "application/problem+json"


class FieldFault(FrozenModel):
    """What is wrong with one field of a request."""

    where: str
    """``body.messages[0].message``, ``query.limit``."""
    what: str


class Problem(FrozenModel):
    """Problem details (RFC 9457)."""

    type: str
    """``urn:ctxsteward:problem:KIND``."""
    title: str
    status: int
    detail: str
    request_id: str
    """Also in the header ``x-request-id``, and in the service's log."""
    errors: tuple[FieldFault, ...]
    """Of an invalid request; else empty."""


class Refusal(HTTPException):
    """A request that is answered with a problem. The framework lets its own kind of exception through unchanged."""

    def __init__(
        self, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, errors: Sequence[FieldFault] = ()
    ) -> None:
        self.kind, self.errors = kind, tuple(errors)
        self.status, self.title = KINDS[kind]
        super().__init__(self.status, detail, dict(headers or {}))

    def problem(self, request_id: str) -> Problem:
        return Problem(
            type=f"urn:ctxsteward:problem:{self.kind}",
            title=self.title,
            status=self.status,
            detail=self.detail,
            request_id=request_id,
            errors=self.errors,
        )


def refusal_of_status(status: int, headers: Mapping[str, str] | None = None) -> Refusal:
    """For what the framework itself refuses; its own words are not repeated."""
    kind = _BY_STATUS.get(status, "bad_request" if 400 <= status < 500 else "internal")
    return Refusal(kind, _DETAILS.get(kind, KINDS[kind][1].lower()), headers=headers)


_DETAILS = {
    "not_found": "there is nothing at this address; /openapi.json lists what there is",
    "method_not_allowed": "this address takes other methods; the header Allow lists them",
    "bad_request": "the body cannot be read as one JSON value",
}
_RETRY = {"Retry-After": "1"}
_STORE = "the store could not do this; the service's log says why"


def refusal_of(error: Exception) -> Refusal:
    """The problem that an error of the product is told as. Of the store's errors no text goes out: it names paths."""
    match error:
        case Refusal():
            return error
        case Erased():
            return Refusal("erased", "this was erased on request")
        case ReferenceNotFound():
            return Refusal("not_found", str(error))
        case Conflict() | VersionTaken() | Fenced():
            return Refusal("conflict", "another writer was first; read what it wrote and ask again")
        case Backpressure() | StoreLocked() | StoreUnavailable() | OutcomeUnknown() | TokenizerUnavailable():
            return Refusal("unavailable", "the store is busy or does not answer; ask again", headers=_RETRY)
        case InputTooLarge():
            return Refusal("too_large", str(error))
        case InputError() | BudgetExceeded() | WindowExceeded():
            return Refusal("invalid", str(error))
        case ContextError():
            return Refusal("internal", _STORE)
        case _:
            return Refusal("internal", "the service's log has it under this request id")


# -- who asks -------------------------------------------------------------------------------------------------------


class Principal(NamedTuple):
    """Whoever makes a request."""

    name: str
    tenant: str
    scopes: frozenset[Scope]
    is_browser: bool
    """Whether a browser may have sent the request by itself: with a cookie, or where no token is asked for."""


class ServiceToken(FrozenModel):
    """An entry of a token file."""

    name: str = Field(min_length=1, max_length=100)
    tenant: str = Field(min_length=1, max_length=200)
    scopes: tuple[Scope, ...] = Field(min_length=1)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    revoked: bool = False


class TokenDocument(FrozenModel):
    """A token file."""

    tokens: tuple[ServiceToken, ...] = ()


_FORM = DocumentKind(
    what="token file",
    max_bytes=1 << 20,
    max_depth=8,
    expected="`tokens:` with a list of entries; `ctxsteward serve token add` writes them",
)


def digest_of(secret: str) -> str:
    """What a token file holds of a token."""
    return hashlib.sha256(secret.encode()).hexdigest()


class TokenFile:
    """The tokens of a service, as its file has them now."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.monotonic,
        same: Callable[[str, str], bool] = hmac.compare_digest,
    ) -> None:
        """`same` compares in constant time. Raises `InputError` for a file that is none."""
        self.path, self._same = path, same
        self._clock, self._lock = clock, threading.Lock()
        self._entries: tuple[ServiceToken, ...] = ()
        self._seen: tuple[int, ...] | None = None
        self._looked = -LOOK_SECONDS
        self.entries()

    def entries(self) -> tuple[ServiceToken, ...]:
        """All entries. Raises `InputError` where the file cannot be read any more."""
        with self._lock:
            now = self._clock()
            if now - self._looked >= LOOK_SECONDS:
                try:
                    stat = self.path.stat()
                    stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                except OSError:
                    stamp = None
                if stamp != self._seen or stamp is None:
                    self._seen, self._entries = None, ()
                    self._entries, self._seen = read_tokens(self.path), stamp
                self._looked = now
            return self._entries

    def owner(self, secret: str) -> ServiceToken | None:
        """The entry of this token; None: there is none, or it was revoked."""
        return self.by_digest(digest_of(secret))

    def by_digest(self, digest: str) -> ServiceToken | None:
        owner = None
        for entry in self.entries():  # each is compared, so that the time tells nothing
            is_same = self._same(entry.sha256, digest)
            owner = entry if is_same and not entry.revoked else owner
        return owner


def read_tokens(path: Path) -> tuple[ServiceToken, ...]:
    """The entries of a token file; raises `InputError` that names what does not fit."""
    entries = read_document(path, TokenDocument, _FORM).tokens
    names = [entry.name for entry in entries]
    if len(set(names)) != len(names) or len({entry.sha256 for entry in entries}) != len(entries):
        raise InputError(f"{path}: a name or a token stands there twice; remove one of the entries")
    return entries


def write_tokens(path: Path, entries: Iterable[ServiceToken]) -> None:
    """Put these entries into the file, as one step; only its owner can read it."""
    text = StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.dump({"tokens": [entry.model_dump(mode="json") for entry in entries]}, text)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text.getvalue())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def add_token(path: Path, name: str, tenant: str, scopes: Sequence[Scope]) -> str:
    """Make a token, keep its hash in the file, and return it: it is shown this once."""
    entries = read_tokens(path) if path.exists() else ()
    if any(entry.name == name for entry in entries):
        raise InputError(f"{path}: there is a token named {name!r:.60}; take another name, or revoke that one first")
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    chosen = tuple(scope for scope in SCOPES if scope in scopes)
    checked_name("token name", name)
    entry = ServiceToken(
        name=name[:100], tenant=checked_name("tenant", tenant), scopes=chosen, sha256=digest_of(secret)
    )
    write_tokens(path, (*entries, entry))
    return secret


def revoke_token(path: Path, name: str) -> None:
    """Take a token's entry out of the file; raises `InputError` where it has none of this name."""
    entries = read_tokens(path)
    left = [entry for entry in entries if entry.name != name]
    if len(left) == len(entries):
        known = ", ".join(entry.name for entry in entries) or "none"
        raise InputError(f"{path}: no token named {name!r:.60}; there are: {known}")
    write_tokens(path, left)


class Logins:
    """Browsers that have shown a token: a cookie for each, bounded, in memory."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def begin(self, token: ServiceToken) -> str:
        """The value of a new cookie."""
        value = secrets.token_urlsafe(32)
        self._known[digest_of(value)] = (token.sha256, self._clock() + self._seconds)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return value

    def token_digest(self, cookie: str) -> str | None:
        """Of the token that was shown for this cookie."""
        digest, until = self._known.get(digest_of(cookie), ("", 0.0))
        return digest if digest and self._clock() < until else None

    def end(self, cookie: str) -> None:
        self._known.pop(digest_of(cookie), None)


UNAUTHORIZED = "show a token of this service: `Authorization: Bearer TOKEN`"


def principal_of(
    headers: Sequence[tuple[bytes, bytes]], tokens: TokenFile | None, logins: Logins, tenant: str
) -> Principal:
    """Whoever shows a token or a login cookie; without a token file, the user of this machine. Raises `Refusal`."""
    if tokens is None:
        return Principal("loopback", tenant, frozenset(SCOPES), True)
    shown = [value for name, value in headers if name == b"authorization"]
    cookies = (cookie_parser(value.decode("latin-1")) for name, value in headers if name == b"cookie")
    cookie = None if shown else next((each[COOKIE][:200] for each in cookies if COOKIE in each), None)
    match = _BEARER.fullmatch(shown[0].strip()) if len(shown) == 1 else None
    try:
        if cookie is not None:
            entry = tokens.by_digest(logins.token_digest(cookie) or "")
        else:
            entry = tokens.owner(match[1].decode() if match is not None else "")
    except InputError as error:
        raise Refusal("unavailable", "tokens cannot be checked now", headers=_RETRY) from error
    if entry is None:
        raise Refusal("unauthorized", UNAUTHORIZED, headers={"WWW-Authenticate": 'Bearer realm="ctxsteward"'})
    return Principal(entry.name, entry.tenant, frozenset(entry.scopes), cookie is not None)


def check_host(headers: Mapping[bytes, bytes], hosts: Sequence[str]) -> None:
    """Refuse a request under a name that is not this machine's: a page may have had its own name lead here."""
    named = _HOST.fullmatch(headers.get(b"host", b"").decode("latin-1").lower())
    if named is None or named[1] not in hosts:
        raise Refusal("misdirected", f"this service answers to {', '.join(hosts)} alone; `--allow-host` names others")


def check_origin(method: str, headers: Mapping[bytes, bytes], scheme: str) -> None:
    """Refuse a write that a page of another site has a browser make."""
    if method in _SAFE:
        return
    origin = headers.get(b"origin")
    own = f"{scheme}://{headers.get(b'host', b'').decode('latin-1')}".lower()
    site = headers.get(b"sec-fetch-site", b"none")
    if (origin is not None and origin.decode("latin-1").lower() != own) or site not in (b"none", b"same-origin"):
        raise Refusal("forbidden", "a page of another site may not write here")


# -- how often ------------------------------------------------------------------------------------------------------


class RateLimiter:
    """A token bucket a tenant; tenants are those of the token file, so there are few."""

    def __init__(self, per_second: float | None, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_second, float(burst), clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, tenant: str) -> None:
        """Count a request; raises `Refusal` where the tenant makes too many."""
        if self._rate is None:
            return
        now = self._clock()
        level, since = self._buckets.get(tenant, (self._burst, now))
        level = min(self._burst, level + (now - since) * self._rate)
        if level < 1:
            self._buckets[tenant] = (level, now)
            wait = max(1, round((1 - level) / self._rate + 0.5))
            raise Refusal(
                "too_many_requests",
                f"at most {self._rate:g} requests a second; wait and ask again",
                headers={"Retry-After": str(wait)},
            )
        self._buckets[tenant] = (level - 1, now)


def field_faults(errors: Sequence[Any]) -> list[FieldFault]:
    """What pydantic found wrong, without the values that were sent."""
    faults = []
    for error in errors[:20]:
        path = ""
        for step in error.get("loc", ()):
            path += f"[{step}]" if isinstance(step, int) else f".{str(step)[:60]}" if path else str(step)
        faults.append(FieldFault(where=path, what=str(error.get("msg", "invalid"))[:300]))
    return faults


# -- at a route -----------------------------------------------------------------------------------------------------


def needs(scope: Scope) -> Any:
    """A dependency: whoever asks, who must have this scope."""

    def allowed(request: Request) -> Principal:
        who: Principal = request.state.principal
        if scope not in who.scopes:
            raise Refusal("forbidden", f"this needs a token with the scope `{scope}`")
        return who

    return Depends(allowed)
