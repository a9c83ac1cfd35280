"""Transcripts in an object store: all objects below a prefix that are named like one.

An item's name is the object's key after the prefix. Keys that no store of ours could write (blanks, letters beyond
ASCII that are not percent-encoded) are not listed by `ObjectStore`, so not seen here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxsteward.envelope.objects.port import ObjectInfo, ObjectStore
from ctxsteward.schemas import InputTooLarge, InvalidTranscript, ObjectMissing

from .folder import is_named_like_transcript
from .items import MAX_SIDECAR_BYTES, SIDECAR_SUFFIX, Loaded, SourceItem, Stamp, listed, sizes_of


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
        sidecars: dict[str, ObjectInfo] = {}
        found: dict[str, ObjectInfo] = {}
        for info in self.objects.list(self.prefix):
            name = info.key.removeprefix(self.prefix)
            if any(part.startswith(".") for part in name.split("/")):
                continue
            if name.endswith(SIDECAR_SUFFIX):
                sidecars[name.removesuffix(SIDECAR_SUFFIX)] = info
            elif is_named_like_transcript(name):
                found[name] = info
        for name, info in sorted(found.items()):
            yield listed(name, *(_stamp(one) for one in (info, sidecars.get(name)) if one is not None))

    def read(self, name: str, version: str, *, cap_bytes: int) -> Loaded:
        sizes = sizes_of(version)
        data = self._get(name, sizes[0], cap_bytes)
        if data is None:
            raise InvalidTranscript(name, "", "no such object any more", "it was removed after it was listed")
        sidecar = None if len(sizes) == 1 else self._get(name + SIDECAR_SUFFIX, sizes[1], MAX_SIDECAR_BYTES)
        return Loaded(source=name, name=name, data=data, sidecar=sidecar)

    def close(self) -> None:
        if self._owned:
            self.objects.close()

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
