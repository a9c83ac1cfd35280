"""The URI of an S3 store: ``s3://bucket/prefix?endpoint=…&region=…&path_style=1&sse=…&sse_kms_key_id=…``.

Every query key is optional; boto3's own configuration has the defaults. The URI has no secrets: they come from boto3's
credential chain. Raises `InputError`.

>>> place = S3Location.parse("s3://team-state/ctx?endpoint=http://127.0.0.1:9000&path_style=1")
>>> place.bucket, place.folder, place.endpoint, place.path_style
('team-state', 'ctx/', 'http://127.0.0.1:9000', True)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import shown_uri

from ..names import checked_prefix

QUERY_KEYS = ("endpoint", "region", "path_style", "sse", "sse_kms_key_id")
ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")
MAX_PREFIX_CHARS = 200
"""Most characters of the prefix; with one of our keys it fits the 1,024 bytes of an S3 key."""
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_FLAGS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class S3Location:
    """A bucket, a folder in it, and the settings to reach it."""

    uri: str
    bucket: str
    folder: str
    """Prefix of all keys: empty, or with a slash at its end."""
    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    sse: str | None = None
    sse_kms_key_id: str | None = None

    @classmethod
    def parse(cls, uri: str) -> S3Location:
        try:
            parts = urlsplit(uri)
        except ValueError:  # brackets around something else than an IPv6 address
            raise _refused(uri, "it is no URI", "write s3://BUCKET/PREFIX") from None
        if parts.scheme != "s3" or not _BUCKET.fullmatch(parts.netloc) or parts.fragment:
            raise _refused(uri, "it is not s3://BUCKET or s3://BUCKET/PREFIX", "correct it")
        prefix = parts.path.strip("/")
        if len(prefix) > MAX_PREFIX_CHARS:
            raise _refused(uri, f"its prefix has {len(prefix)} characters", f"use at most {MAX_PREFIX_CHARS}")
        folder = checked_prefix(f"{prefix}/") if prefix else ""
        query = _query(uri, parts.query)
        endpoint, key_id = query.get("endpoint"), query.get("sse_kms_key_id")
        if endpoint is not None and not _is_endpoint(endpoint):
            raise _refused(uri, "`endpoint` is not http(s)://HOST[:PORT] alone", "correct it")
        flag = query.get("path_style", "0").lower()
        if flag not in _FLAGS:
            raise _refused(uri, f"`path_style` is {flag!r:.40}", "write 1 or 0")
        sse = query.get("sse", "aws:kms" if key_id else None)
        if sse is not None and (sse not in ENCRYPTIONS or (key_id and sse == "AES256")):
            raise _refused(uri, f"`sse` is {sse!r:.40}", f"choose one of {', '.join(ENCRYPTIONS)}; a key id needs kms")
        return cls(
            uri=uri,
            bucket=parts.netloc,
            folder=folder,
            endpoint=endpoint,
            region=query.get("region"),
            path_style=_FLAGS[flag],
            sse=sse,
            sse_kms_key_id=key_id,
        )

    def __str__(self) -> str:
        """Return bucket, folder, and an endpoint other than Amazon's, for messages."""
        place = f"s3://{self.bucket}/{self.folder}".removesuffix("/")
        return f"{place} at {self.endpoint}" if self.endpoint else place


def _query(uri: str, text: str) -> dict[str, str]:
    pairs = parse_qsl(text, keep_blank_values=True)
    for name, value in pairs:
        if name not in QUERY_KEYS:
            # text without a value may be a secret whose key was left out
            shown = f"{name!r:.40}" if value and "@" not in name else "without a value"
            raise _refused(uri, f"unknown query key {shown}", f"the allowed ones are {', '.join(QUERY_KEYS)}")
        if not value:
            raise _refused(uri, f"`{name}` is empty", "give it a value or leave it out")
    if len(dict(pairs)) != len(pairs):
        raise _refused(uri, "a query key stands twice", "say it once")
    return dict(pairs)


def _is_endpoint(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:  # brackets around something else than an IPv6 address
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and not (parts.query or parts.fragment)
    )


def _refused(uri: str, found: str, hint: str) -> InputError:
    return InputError(f"store URI {shown_uri(uri)!r:.80}: {found}; {hint}")
