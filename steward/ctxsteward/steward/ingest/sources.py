"""Where transcripts come from: the port, and which source a URI names.

    folder/of/transcripts, file:PATH     files below a folder, or one file
    s3://BUCKET/PREFIX?endpoint=…        objects below a prefix (`envelope.objects.s3_uri`)
    store                                the store's own closed sessions

Raises `InputError` for a URI that names none; what listing and reading raise stands with `Source`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ctxsteward.schemas import InputError
from ctxsteward.schemas.uris import without_secrets

from .folder import FolderSource
from .items import Loaded, SourceItem
from .objects import ObjectSource
from .stored import SETTLED_SECONDS, StoreSource

if TYPE_CHECKING:
    from ctxsteward.envelope.store import Store

STORE = "store"


class Source(Protocol):
    """Transcripts in one place. Safe with threads."""

    @property
    def uri(self) -> str:
        """Names it from night to night."""

    def items(self) -> Iterator[SourceItem]:
        """All items, sorted by name. Raises `InputError`, `StoreError` where the place itself cannot be read."""

    def read(self, name: str, version: str, *, cap_bytes: int) -> Loaded:
        """One item as it is now; name and version as they were listed. Raises `InputTooLarge` before it is read,
        `InvalidTranscript` where it cannot be used, `Erased`, `StoreError`."""

    def close(self) -> None: ...


def open_source(
    uri: str,
    *,
    store: Store | None = None,
    tenant: str = "default",
    profile: str | None = None,
    now_seconds: float | None = None,
    settled_seconds: float = SETTLED_SECONDS,
) -> Source:
    """The source that a URI names; the last five arguments are for ``store`` alone."""
    scheme, colon, rest = uri.partition(":")
    if uri == STORE:
        if store is None or now_seconds is None:
            raise InputError("source 'store' needs a store and the time of the night")
        return StoreSource(store, tenant, profile=profile, now_seconds=now_seconds, settled_seconds=settled_seconds)
    if scheme == "s3" and rest.startswith("//"):
        from ctxsteward.envelope.objects.s3 import S3Objects

        return ObjectSource(S3Objects.open(uri), owned=True)
    if scheme == "file" and colon and rest:
        return FolderSource(Path(rest.removeprefix("//")), uri=uri)
    if colon and rest.startswith("//"):
        shown = without_secrets(uri)
        raise InputError(f"source {shown!r:.80} is none; write a folder, file:PATH, s3://BUCKET/PREFIX or store")
    return FolderSource(Path(uri), uri=uri)
