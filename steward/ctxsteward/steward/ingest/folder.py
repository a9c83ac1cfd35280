"""Transcripts in files: everything below a folder that is named like one, or a single file.

Listed are ``.json``, ``.jsonl``, ``.ndjson`` and ``.traj``, also where a suffix says that they are compressed (which
are then refused, with their reason). Hidden files and folders are skipped. A link is never followed: what it leads to
inside the folder is listed there, one that leads out is listed and refused when it is read. An item's name is its path
in the folder, with ``/``; what is not printable, and ``%``, is percent-encoded, one to one. A sidecar that is beside no
transcript is listed, too, so that somebody is told (`reading.load`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from ctxsteward.schemas import InputError, InputTooLarge, InvalidTranscript

from .items import (
    MAX_SIDECAR_BYTES,
    Loaded,
    SourceItem,
    Stamp,
    is_named_like_transcript,
    listed,
    orphans,
    sidecar_of,
    written_seconds,
)


class FolderSource:
    """A `Source` of files."""

    def __init__(self, path: Path, *, uri: str | None = None) -> None:
        self.path = path
        self.uri = uri or str(path)

    def items(self) -> Iterator[SourceItem]:
        if self.path.is_file():
            yield self._item(self.path.name, self.path.stat())
            return
        if not self.path.is_dir():
            raise InputError(f"source {self.uri!r:.200}: no such folder; correct the path")
        yield from self._below("")

    def read(self, name: str, version: str, *, cap_bytes: int) -> Loaded:
        path = self._path(name)
        data = _bytes_of(path, name, cap_bytes)
        found = sidecar_of(path.name, lambda beside: os.path.lexists(path.with_name(beside)))
        sidecar_name = name.removesuffix(_named(path.name)) + _named(found) if found else ""
        sidecar = _bytes_of(path.with_name(found), sidecar_name, MAX_SIDECAR_BYTES) if found else None
        return Loaded(
            source=name, name=name, data=data, sidecar=sidecar, sidecar_name=sidecar_name,
            written_seconds=written_seconds(version),
        )  # fmt: skip

    def close(self) -> None:
        """Nothing to release."""

    @property
    def _root(self) -> Path:
        return self.path.parent if self.path.is_file() else self.path

    def _path(self, name: str) -> Path:
        parts = [os.fsdecode(unquote_to_bytes(part)) for part in name.split("/")]
        if any(part in ("", ".", "..") or "/" in part or "\x00" in part for part in parts):
            raise InvalidTranscript(name, "", "no name of this folder's", "use a name that was listed")
        return self._root.joinpath(*parts)

    def _below(self, inside: str) -> Iterator[SourceItem]:
        """Items of one folder, sorted by name; `inside` is its path, with a slash at its end."""
        try:
            with os.scandir(self.path / inside) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            raise InputError(f"source {self.uri!r:.200}: {inside!r:.80} cannot be listed: {error.strerror}") from error
        found = [entry for entry in found if not entry.name.startswith(".")]
        strays = orphans({entry.name for entry in found})
        for entry in found:
            if entry.name in strays:
                yield self._item(inside + entry.name, entry.stat(follow_symlinks=False))
            elif entry.is_symlink():
                is_wanted = os.path.isdir(entry.path) or is_named_like_transcript(entry.name)
                if is_wanted and not self._stays_inside(Path(entry.path)):
                    yield self._item(inside + entry.name, entry.stat(follow_symlinks=False))
            elif entry.is_dir():
                yield from self._below(f"{inside}{entry.name}/")
            elif entry.is_file() and is_named_like_transcript(entry.name):
                yield self._item(inside + entry.name, entry.stat(follow_symlinks=False))

    def _stays_inside(self, link: Path) -> bool:
        try:
            return link.resolve().is_relative_to(self.path.resolve())
        except (OSError, RuntimeError):  # a circle of links
            return True

    def _item(self, path: str, status: os.stat_result) -> SourceItem:
        stamps = [Stamp(status.st_size, status.st_mtime_ns)]
        where = self._root / path
        beside = sidecar_of(where.name, lambda other: os.path.lexists(where.with_name(other)))
        with suppress(OSError):
            told = where.with_name(beside).lstat() if beside else None
            stamps += [Stamp(told.st_size, told.st_mtime_ns)] if told else []
        return listed(_named(path), *stamps)


def _named(path: str) -> str:
    return "".join(char if char.isprintable() and char != "%" else quote(os.fsencode(char), safe="") for char in path)


def _bytes_of(path: Path, name: str, cap_bytes: int) -> bytes:
    """A regular file's bytes; its size is looked at first, and no link is followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        found = "a link, which is not followed" if path.is_symlink() else f"cannot be read: {error.strerror}"
        raise InvalidTranscript(name, "", found, "put the file itself there, readable") from error
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidTranscript(name, "", "no regular file", "put the file itself there")
        if status.st_size > cap_bytes:
            raise InputTooLarge(name, status.st_size, cap_bytes)
        data = stream.read(cap_bytes + 1)
    if len(data) > cap_bytes:
        raise InputTooLarge(name, len(data), cap_bytes)
    return data
