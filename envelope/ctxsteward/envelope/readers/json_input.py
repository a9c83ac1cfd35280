"""Bytes of a transcript file, whole or a line at a time, within caps that hold before anything is parsed.

A byte-order mark, CRLF and blank lines are tolerated. Compressed files and UTF-16 are named as such and not
read. Lines count from 1. Raises `InvalidTranscript` (no such file, a directory, …) and `InputTooLarge`.
"""

from __future__ import annotations

import io
import stat
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ctxsteward.schemas import InputTooLarge, InvalidTranscript

from .places import printable
from .strict_json import SAVE_AS_UTF8, decode

MAX_VALUE_BYTES = 64 * 1024 * 1024
"""One JSON value, be it a document or a line. A JSONL file may have any number of lines."""

MAX_PIPE_BYTES = 256 * 1024 * 1024
"""What cannot be read twice is held in memory; a regular file is not."""

_BOM = b"\xef\xbb\xbf"
_MAGIC = (
    (b"\x1f\x8b", "gzip data"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstandard data"),
)


class Line(NamedTuple):
    """A line of a file that is not blank."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonInput:
    """Bytes that can be read again from the start: a regular file, or what is in memory."""

    source: str
    path: Path | None = None
    data: bytes = b""

    def open(self) -> BinaryIO:
        if self.path is None:
            return io.BytesIO(self.data)
        try:
            return self.path.open("rb")
        except OSError as error:
            raise InvalidTranscript(
                self.source, "", f"cannot be opened: {error.strerror}", "check the path and its permissions"
            ) from error

    def lines(self, cap_bytes: int = MAX_VALUE_BYTES) -> Generator[Line, None, None]:
        """The lines that are not blank, in bounded memory."""
        with self.open() as stream:
            number = 0
            while data := stream.readline(cap_bytes + 1):
                number += 1
                if len(data) > cap_bytes and data[-1:] != b"\n":
                    raise InputTooLarge(f"{self.source}: line {number}", len(data) + _rest_bytes(stream), cap_bytes)
                if number == 1:
                    data = _without_mark(data, self.source)
                if data and not data.isspace():
                    yield Line(number, data)

    def document(self) -> object:
        """The one JSON value that all of the input is."""
        with self.open() as stream:
            data = stream.read(MAX_VALUE_BYTES + 1)
            if len(data) > MAX_VALUE_BYTES:
                size_bytes = stream.seek(0, io.SEEK_END)
                raise InputTooLarge(
                    f"{self.source} (one JSON document; JSONL may be longer)", size_bytes, MAX_VALUE_BYTES
                )
        return decode(_without_mark(data, self.source), self.source, "")


def open_input(path: str | Path) -> JsonInput:
    """A file to read; a pipe or device is read into memory, up to `MAX_PIPE_BYTES`."""
    source = printable(str(path))
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError) as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise InvalidTranscript(source, "", found, "check the path") from error
    if stat.S_ISDIR(mode):
        raise InvalidTranscript(source, "", "a directory", "pass one of its files")
    if stat.S_ISREG(mode):
        return JsonInput(source=source, path=Path(path))
    with JsonInput(source=source, path=Path(path)).open() as stream:
        data = stream.read(MAX_PIPE_BYTES + 1)
    if len(data) > MAX_PIPE_BYTES:
        raise InputTooLarge(f"{source} (a pipe, so held in memory)", len(data), MAX_PIPE_BYTES)
    return memory_input(data, source)


def memory_input(data: bytes | str, source: str) -> JsonInput:
    """Bytes or text that is already here, such as standard input."""
    source = printable(source)
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError as error:
            raise InvalidTranscript(
                source,
                f"character {error.start}",
                "a lone surrogate",
                "pass well-formed Unicode, or the bytes",
            ) from error
    return JsonInput(source=source, data=data)


def _without_mark(data: bytes, source: str) -> bytes:
    for magic, name in _MAGIC:
        if data.startswith(magic):
            raise InvalidTranscript(source, "", name, "decompress it first; compressed files are not read")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InvalidTranscript(source, "", "UTF-16 text", SAVE_AS_UTF8)
    return data.removeprefix(_BOM)


def _rest_bytes(stream: BinaryIO) -> int:
    """Bytes up to the end of the line, read in pieces."""
    size = 0
    while piece := stream.readline(1 << 20):
        size += len(piece)
        if piece[-1:] == b"\n":
            break
    return size
