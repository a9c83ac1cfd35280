"""`s3://`: objects in a bucket, over boto3. No other module imports boto3.

A put is one request with ``If-None-Match: *`` and one attempt. The SDK's own retry would turn a lost answer into a 412;
so `put_once` repeats a put, because it can distinguish our object from another writer's. Reads, lists and deletes use
the SDK's standard retries. Every body is sent with a CRC-32 in a header. The server checks and stores it, and the SDK
checks it on reading, with the length. (ETags are not compared, because under some encryptions they are no digest.)

A captive portal, a proxy or a load balancer without a server may answer instead of S3. Only an answer in S3's form
counts (`_check_answer`). Any other answer makes a put `unknown`, and is neither an object, nor a listing, nor proof
that an object is missing. A delete succeeds only when a read then finds the object gone.

Tested with moto and ministack. An endpoint that accepts the header but overwrites would silently lose commits; `probe`
detects it. Directory buckets do not list in byte order; `list` refuses them.

Raises `ObjectMissing`, `StoreUnavailable`, `Damaged`; `InputError` for a bad URI, a missing boto3, or an endpoint that
overwrites. Times in seconds. Source: Amazon S3 User Guide, "conditional writes": 412 = occupied, 409 = try again.
"""

from __future__ import annotations

import base64
import re
import secrets
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.client import HTTPException
from typing import Any, Final

import boto3  # type: ignore[import-untyped]  # it ships no types
from botocore import exceptions as sdk  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]

from ctxsteward.schemas import InputError, StoreError, StoreUnavailable
from ctxsteward.schemas.errors import Damaged, ObjectMissing

from .. import process_forks as forking
from ..names import checked_key, checked_prefix, is_key
from .port import ObjectInfo, ObjectStore, PutOutcome
from .s3_location import S3Location

CONNECT_TIMEOUT_SECONDS = 2.0
READ_TIMEOUT_SECONDS = 5.0
READ_ATTEMPTS = 3
MAX_CONNECTIONS = 32
MAX_EMPTY_PAGES = 1000
"""Most consecutive empty pages of a listing: pages can be empty after many deletes, but the listing must end."""
PROBE_FOLDER = "probe/"


class _Foreign(sdk.BotoCoreError):  # type: ignore[misc]  # boto3 ships no types
    """The error for an answer that does not come from S3."""

    fmt = "not the answer of an S3 endpoint ({what})"


_FAILURES: Final = (sdk.ClientError, sdk.BotoCoreError, ResponseParserError, HTTPException, OSError)
_NEVER_SENT: Final = (
    sdk.NoCredentialsError,
    sdk.PartialCredentialsError,
    sdk.CredentialRetrievalError,
    sdk.TokenRetrievalError,
    sdk.SSOError,
    sdk.NoRegionError,
    sdk.ParamValidationError,
    sdk.EndpointProviderError,
)
_PASSING_STATUS: Final = (304, 408, 409, 425, 429)
_PASSING_CODES: Final = (
    "RequestTimeout",
    "BadDigest",
    "XAmzContentSHA256Mismatch",
    "XAmzContentChecksumMismatch",
    "IncompleteBody",
)
"""Errors of one attempt, not of the request; a repeat can succeed."""
_CREDENTIALS_HINT = "check the credentials that boto3 finds"
_HINTS: Final = {
    "NoSuchBucket": "make the bucket, or correct the URI",
    "InvalidBucketName": "correct the URI",
    "AccessDenied": "allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket there "
    "(without the last one a missing object looks like this too), in a bucket with versions s3:ListBucketVersions "
    "and s3:DeleteObjectVersion, too",
    "PermanentRedirect": "name the bucket's region in the URI: ?region=…",
    "AuthorizationHeaderMalformed": "name the bucket's region in the URI: ?region=…",
    "NotImplemented": "use an endpoint that has conditional writes",
    "RequestTimeTooSkewed": "set this machine's clock",
    **dict.fromkeys(("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"), _CREDENTIALS_HINT),
}


class S3Objects(ObjectStore):
    """An `ObjectStore` in a bucket. Safe with threads."""

    def __init__(
        self,
        location: S3Location,
        *,
        session: Any = None,
        connect_timeout_seconds: float = CONNECT_TIMEOUT_SECONDS,
        read_timeout_seconds: float = READ_TIMEOUT_SECONDS,
        read_attempts: int = READ_ATTEMPTS,
    ) -> None:
        self.location = location
        timeouts = (connect_timeout_seconds, read_timeout_seconds)
        try:
            self._making = forking.lock()
            self._make = partial(_clients, session, location, timeouts, read_attempts)
            self._clients: tuple[Any, Any] | None = self._make()
        except (sdk.BotoCoreError, ValueError) as error:
            raise InputError(f"{location}: {_line(error)}; correct the URI or boto3's configuration") from error

        forking.renew_in_child(self)

    def forked(self) -> None:
        """Drop the parent's connections: two processes on one connection would read each other's answers."""
        self._clients = None

    @property
    def _reads(self) -> Any:
        return self._own()[1]

    def _own(self) -> tuple[Any, Any]:
        """Return this process's two clients: for conditional writes, and for everything else."""
        clients = self._clients
        if clients is None:
            with self._making:
                clients = self._clients = self._clients or self._make()
        return clients

    @classmethod
    def open(cls, uri: str, **more: Any) -> S3Objects:
        """Open the store at a URI (see `s3_location`); `more` are arguments of the class."""
        return cls(S3Location.parse(uri), **more)

    @property
    def uri(self) -> str:
        return self.location.uri

    def put(self, key: str, body: bytes) -> PutOutcome:
        name = self._name(key)
        checksum = base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
        encryption = {"ServerSideEncryption": self.location.sse, "SSEKMSKeyId": self.location.sse_kms_key_id}
        try:
            answer = self._own()[0].put_object(
                Bucket=self.location.bucket,
                Key=name,
                Body=body,
                IfNoneMatch="*",
                ChecksumAlgorithm="CRC32",
                ChecksumCRC32=checksum,
                **{field: value for field, value in encryption.items() if value},
            )
        except _FAILURES as error:
            outcome = _outcome_of(error)
            if outcome is None:
                raise self._unavailable(f"{key} was not written", error) from error
            return outcome
        return "committed" if answer.get("ChecksumCRC32", checksum) == checksum else "unknown"

    def get(self, key: str) -> bytes:
        name = self._name(key)
        with self._asking(key):
            answer = self._reads.get_object(Bucket=self.location.bucket, Key=name)
            with closing(answer["Body"]) as stream:  # the stream's own context manager skips the checks
                body: bytes = stream.read()
            return body

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        checked_prefix(prefix)
        folder, previous = self.location.folder, after
        query = {"StartAfter": folder + after} if after else {}
        with self._asking(prefix):
            for page in self._pages("list_objects_v2", folder + prefix, **query):
                for entry in page.get("Contents", ()):
                    key = entry["Key"].removeprefix(folder)
                    if key <= after or not is_key(key):  # some endpoints ignore StartAfter
                        continue
                    if key <= previous:
                        raise StoreUnavailable(f"{self.location} lists {key} after {previous}; use one in byte order")
                    previous = key
                    yield ObjectInfo(key, entry["Size"], entry["LastModified"].timestamp())

    def delete(self, key: str) -> None:
        name, bucket = self._name(key), self.location.bucket
        for _ in range(READ_ATTEMPTS):  # another writer may put it again meanwhile
            with self._asking(key):
                answer = self._reads.delete_object(Bucket=bucket, Key=name)
                marker = answer.get("VersionId")
                versions = self._versions(name, needed=marker is not None or "DeleteMarker" in answer)
                if marker is not None and marker not in versions:
                    raise _Foreign(what=f"a listing of versions without {marker:.40}, which it has just made")
                for version in versions:
                    self._reads.delete_object(Bucket=bucket, Key=name, VersionId=version)
            with suppress(ObjectMissing):
                self.get(key)
                continue
            return
        raise StoreUnavailable(
            f"{self.location}: {key} was deleted {READ_ATTEMPTS} times and is still there; try again"
        )

    def close(self) -> None:
        for client in self._clients or ():
            client.close()

    def probe(self) -> None:
        """Write one small object twice to check that the endpoint keeps the first, then delete it.

        Raises `InputError` if it does not: never use it. Raises `StoreUnavailable` if the check is not possible now.
        """
        key = f"{PROBE_FOLDER}{secrets.token_hex(16)}"
        try:
            outcomes = self.put(key, b"first"), self.put(key, b"second")
            if "unknown" in outcomes:
                self.get(key)  # raises with the reason, if it lasts
                raise StoreUnavailable(f"{self.location}: conditional writes could not be tried; try again later")
            if outcomes[0] == "conflicted":
                raise InputError(f"{self.location} refuses to create a free key; use an endpoint with If-None-Match")
            if outcomes[1] == "committed" or self.get(key) != b"first":
                raise InputError(
                    f"{self.location} accepts If-None-Match and overwrites; commits would be lost: use Amazon S3 or "
                    "another endpoint with conditional writes"
                )
        except ObjectMissing as error:
            raise StoreUnavailable(f"{self.location}: no write went through; try again later") from error
        finally:
            with suppress(StoreError):  # a writer may be denied deletes
                self.delete(key)

    def _name(self, key: str) -> str:
        return self.location.folder + checked_key(key)

    def _versions(self, name: str, *, needed: bool) -> tuple[str, ...]:
        """Return the ids of an object's versions and delete markers; empty if the endpoint has no versions."""
        ids = []
        try:
            for page in self._pages("list_object_versions", name):
                entries = (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
                ids += [entry["VersionId"] for entry in entries if entry["Key"] == name]
        except (sdk.ClientError, KeyError):
            if needed:
                raise
        return tuple(ids)

    def _pages(self, operation: str, prefix: str, **query: str) -> Iterator[dict[str, Any]]:
        """Yield the pages of a listing; raise `_Foreign` for a page that does not fit the request."""
        bucket, empty = self.location.bucket, 0
        for page in self._reads.get_paginator(operation).paginate(Bucket=bucket, Prefix=prefix, **query):
            entries = [*page.get("Contents", ()), *page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            wrong = _wrong_with(page, bucket, prefix, entries)
            empty = 0 if entries else empty + 1
            if wrong or empty > MAX_EMPTY_PAGES:
                raise _Foreign(what=wrong or f"a listing with {empty} empty pages")
            yield page

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Turn the SDK's errors of reads, listings and deletes into ours."""
        try:
            yield
        except sdk.FlexibleChecksumError as error:
            raise Damaged(f"{what}: its checksum differs from the one it was stored with; restore a backup") from error
        except _FAILURES as error:
            if _code(error) == "NoSuchKey":
                raise ObjectMissing(what) from error
            raise self._unavailable(what or "/", error) from error

    def _unavailable(self, what: str, error: Exception) -> StoreUnavailable:
        default = _CREDENTIALS_HINT if isinstance(error, _NEVER_SENT) else "try again when it answers"
        return StoreUnavailable(f"{self.location}: {what}: {_line(error)}; {_HINTS.get(_code(error), default)}")


def _clients(session: Any, location: S3Location, timeouts: tuple[float, float], read_attempts: int) -> tuple[Any, Any]:
    """Make one client for conditional writes, which the SDK never repeats, and one for everything else."""
    session = session or boto3.Session()
    puts = _client(session, location, timeouts, attempts=1)
    return puts, _client(session, location, timeouts, attempts=read_attempts)


def _client(session: Any, location: S3Location, timeouts: tuple[float, float], *, attempts: int) -> Any:
    config = Config(
        connect_timeout=timeouts[0],
        read_timeout=timeouts[1],
        retries={"total_max_attempts": attempts, "mode": "standard"},
        signature_version="s3v4",  # conditional writes need it
        s3={"addressing_style": "path" if location.path_style else "auto"},
        request_checksum_calculation="when_required",  # our checksum is in a header; trailers fail on many endpoints
        response_checksum_validation="when_supported",
        max_pool_connections=MAX_CONNECTIONS,
    )
    region = location.region or session.region_name or ("us-east-1" if location.endpoint else None)
    client = session.client("s3", endpoint_url=location.endpoint, region_name=region, config=config)
    client.meta.events.register("before-parse.s3", _check_answer)
    return client


_ROOTS: Final = {"ListObjectsV2": "ListBucketResult", "ListObjectVersions": "ListVersionsResult"}
_ROOT = re.compile(rb"\s*(?:<\?xml[^>]{0,200}\?>)?\s*<([A-Za-z]{1,40})[\s>/]")


def _check_answer(operation_model: Any, response_dict: dict[str, Any], **_: Any) -> None:
    """Raise `_Foreign` for an answer that S3 would not give; the SDK calls this for each raw answer.

    Amazon S3 API Reference: PutObject is 200 with an ETag and no body, GetObject 200 with ETag, Last-Modified and
    Content-Length, DeleteObject 204 (other endpoints 200) without a body, a listing 200 with its own root element, an
    error an ``Error`` element. An answer of 500 or more passes, from any sender: the SDK retries it.
    """
    operation, status = operation_model.name, response_dict["status_code"]
    headers, body = response_dict["headers"], response_dict["body"]
    allowed = (200, 204) if operation == "DeleteObject" else (200,)
    if 300 <= status < 500:
        # 412 needs no check, because `put_once` reads the object back; 304 has no body
        fits = status in (304, 412) or operation.startswith("Head") or _root_of(body) == "Error"
    elif status not in allowed:
        fits = status >= 500
    elif operation == "PutObject":
        fits = bool(headers.get("ETag")) and not body.strip()
    elif operation == "GetObject":
        named = all(headers.get(name) for name in ("ETag", "Last-Modified", "Content-Length"))
        fits = named and not str(headers.get("Content-Type")).startswith("text/html")  # none of our objects is HTML
    elif operation == "DeleteObject":
        fits = not body.strip()
    else:
        fits = operation not in _ROOTS or _root_of(body) in (_ROOTS[operation], "Error")  # S3 may send an error as 200
    if not fits:
        raise _Foreign(what=f"{status} to {operation}, {headers.get('Content-Type', 'no content type'):.60}")


def _root_of(body: object) -> str:
    """Return the name of an XML document's root element, or "" for anything else."""
    found = _ROOT.match(body) if isinstance(body, bytes) else None
    return found[1].decode() if found else ""


def _wrong_with(page: dict[str, Any], bucket: str, prefix: str, entries: list[dict[str, Any]]) -> str:
    """Return the reason why a page does not fit the request, or ""."""
    token = page.get("NextContinuationToken")
    if "IsTruncated" not in page:
        return "a listing that does not say whether there is more"
    if page["IsTruncated"] and not (token or page.get("NextKeyMarker")):
        return "a listing with more behind it and no way there"
    if token and not page["IsTruncated"]:
        return "a listing that ends and names a way on"
    if page.get("Name", bucket) != bucket or page.get("Prefix", prefix) != prefix:
        return "a listing of another place"
    if page.get("KeyCount", len(entries)) != len(entries):
        return f"a listing of {len(entries)} keys that counts {page['KeyCount']}"
    stray = next((entry["Key"] for entry in entries if not entry["Key"].startswith(prefix)), None)
    return "" if stray is None else f"a listing with {stray!r:.80} in it"


def _outcome_of(error: Exception) -> PutOutcome | None:
    """Return the outcome of a failed put, or None if it certainly did not land and a repeat cannot succeed."""
    if isinstance(error, _NEVER_SENT):
        return None
    if not isinstance(error, sdk.ClientError):
        return "unknown"
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if status == 412:
        return "conflicted"
    passing = status in _PASSING_STATUS or _code(error) in _PASSING_CODES
    return None if status == 501 or (300 <= status < 500 and not passing) else "unknown"


def _code(error: Exception) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, sdk.ClientError) else ""


def _line(error: Exception) -> str:
    """Return the error's message on one line."""
    text = str(error)
    if isinstance(error, sdk.ClientError):
        said = error.response.get("Error", {})
        text = f"{said.get('Code', 'error')}: {said.get('Message', '')}"
    return " ".join(text.split())[:200]
