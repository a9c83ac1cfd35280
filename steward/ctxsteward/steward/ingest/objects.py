"""Transcripts in an object store: all objects below a prefix that are named like one.

An item's name is the object's key after the prefix. Keys that no store of ours could write (blanks, letters beyond
ASCII that are not percent-encoded) are not listed by `ObjectStore`, so not seen here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxsteward.envelope.objects.port import ObjectInfo, ObjectStore
from ctxsteward.schemas import InputTooLarge, InvalidTranscript, ObjectMissing

from .items import (
    COMPRESSED_SUFFIXES,
    MAX_SIDECAR_BYTES,
    TRANSCRIPT_SUFFIXES,
    Loaded,
    SourceItem,
    Stamp,
    is_named_like_transcript,
    listed,
    orphans,
    sidecar_of,
    sidecars_of,
    sizes_of,
    written_seconds,
)

_SUFFIXES = (*TRANSCRIPT_SUFFIXES, *COMPRESSED_SUFFIXES)
"""Of all that may be a transcript or a sidecar: nothing else is remembered of a listing."""


class ObjectSource:
    """A `Source` of objects."""

    def __init__(self, objects: ObjectStore, prefix: str = "", *, owned: bool = False) -> None:
        """`owned`: closing the source closes the store, too."""
        self.objects, self.prefix = objects, f"{prefix.rstrip('/')}/" if prefix else ""
        self._owned = owned

    @property
    def uri(self) -> str:
        return f"{self.objects.uri.partition('?')[0].rstrip('/')}/{self.prefix}".rstrip("/")

    def items(self) -> Iterator[SourceItem]:
        found: dict[str, ObjectInfo] = {}
        for info in self.objects.list(self.prefix):
            name = info.key.removeprefix(self.prefix)
            if not any(part.startswith(".") for part in name.split("/")) and name.lower().endswith(_SUFFIXES):
                found[name] = info
        strays = orphans(found)
        for name, info in sorted(found.items()):
            if name in strays:
                yield listed(name, _stamp(info))
            elif is_named_like_transcript(name):
                beside = sidecar_of(name, found.__contains__)
                yield listed(name, _stamp(info), *([_stamp(found[beside])] if beside else ()))

    def read(self, name: str, version: str, *, cap_bytes: int) -> Loaded:
        sizes = sizes_of(version)
        data = self._get(name, sizes[0], cap_bytes)
        if data is None:
            raise InvalidTranscript(name, "", "no such object any more", "it was removed after it was listed")
        sidecar_name, sidecar = self._beside(name, sizes[1]) if len(sizes) > 1 else ("", None)
        return Loaded(
            source=name, name=name, data=data, sidecar=sidecar, sidecar_name=sidecar_name,
            written_seconds=written_seconds(version),
        )  # fmt: skip

    def close(self) -> None:
        if self._owned:
            self.objects.close()

    def _beside(self, name: str, size_bytes: int) -> tuple[str, bytes | None]:
        """The sidecar that was listed with a transcript, by either of its names."""
        for sidecar_name in sidecars_of(name):
            data = self._get(sidecar_name, size_bytes, MAX_SIDECAR_BYTES)
            if data is not None:
                return sidecar_name, data
        return "", None

    def _get(self, name: str, size_bytes: int, cap_bytes: int) -> bytes | None:
        """An object of at most this size, which a listing told; None where there is none."""
        if size_bytes > cap_bytes:
            raise InputTooLarge(name, size_bytes, cap_bytes)
        try:
            data = self.objects.get(self.prefix + name)
        except ObjectMissing:
            return None
        if len(data) > cap_bytes:
            raise InputTooLarge(name, len(data), cap_bytes)
        return data


def _stamp(info: ObjectInfo) -> Stamp:
    return Stamp(info.size_bytes, round(info.modified_seconds * 1e9))
