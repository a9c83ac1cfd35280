"""Image prices from header bytes, against the providers' published examples."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given, strategies as st

from ctxsteward.envelope.tokens.models import ASSUMED, ImageRule, ImageSize, image_size, image_tokens
from ctxsteward.schemas import ImagePart


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x06\0\0\0"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0"


def jpeg(width: int, height: int, exif_bytes: int = 0, frame: int = 0xC0) -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", exif_bytes + 2) + bytes(exif_bytes)
    table = b"\xff\xc4" + struct.pack(">H", 5) + b"abc"
    return b"\xff\xd8" + exif + b"\xff" + table + struct.pack(">BBHBHHB", 0xFF, frame, 17, 8, height, width, 3)


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\x10\0\0\0WEBP" + kind + b"\x0a\0\0\0" + rest + bytes(8)


def encoded(data: bytes) -> str:
    return base64.b64encode(data + bytes(40)).decode()


def part(width: int, height: int, detail: str | None = None) -> ImagePart:
    return ImagePart(data=encoded(png(width, height)), detail=detail)


HEADERS = {
    "png": png(640, 480),
    "gif": gif(640, 480),
    "jpeg": jpeg(640, 480),
    "jpeg, progressive": jpeg(640, 480, frame=0xC2),
    "jpeg, EXIF of odd sizes 1": jpeg(640, 480, exif_bytes=1001),
    "jpeg, EXIF of odd sizes 2": jpeg(640, 480, exif_bytes=60_002),
    "jpeg, EXIF of odd sizes 3": jpeg(640, 480, exif_bytes=65_000),
    "webp, lossy": webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640 | 0x4000, 480)),
    "webp, lossless": webp(b"VP8L", b"\x2f" + (639 | 479 << 14).to_bytes(4, "little")),
    "webp, extended": webp(b"VP8X", bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")),
}


@pytest.mark.parametrize("data", HEADERS.values(), ids=HEADERS.keys())
def test_the_size_is_read_from_the_header(data: bytes) -> None:
    assert image_size(encoded(data)) == ImageSize(640, 480)


def test_base64_in_lines_is_read() -> None:
    assert image_size(base64.encodebytes(jpeg(640, 480, exif_bytes=3000)).decode()) == ImageSize(640, 480)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "A",
        "not base64 at all!",
        "é" * 100,
        encoded(b"<svg/>"),
        encoded(png(0, 10)),
        base64.b64encode(png(640, 480)[:20]).decode(),
        encoded(jpeg(640, 480)[:20]),
        encoded(b"\xff\xd8" + b"\xff\xe0\0\x02" * 1000),
        encoded(webp(b"VP9 ", bytes(20))),
    ],
)
def test_a_header_that_does_not_say_counts_as_the_assumed_size(data: str) -> None:
    assert image_size(data) is None
    assert image_tokens(ImagePart(data=data)) == image_tokens(part(*ASSUMED)) == 1105


@given(data=st.text(max_size=80) | st.binary(max_size=80).map(lambda tail: encoded(b"\xff\xd8" + tail)))
def test_no_data_raises(data: str) -> None:
    assert image_tokens(ImagePart(data=data)) >= 85


PRICES: list[tuple[ImageRule, int, int, str | None, int]] = [
    # OpenAI's own examples
    ("openai-tiles", 1024, 1024, "high", 85 + 4 * 170),
    ("openai-tiles", 2048, 4096, "high", 85 + 6 * 170),
    ("openai-tiles", 4096, 8192, "low", 85),
    # small pictures are not enlarged; one pixel more is one tile more; an absurd shape stays bounded
    ("openai-tiles", 512, 512, None, 85 + 170),
    ("openai-tiles", 513, 512, "auto", 85 + 2 * 170),
    ("openai-tiles", 100_000, 10, None, 85 + 4 * 170),
    ("openai-tiles-mini", 1024, 1024, "high", 2833 + 4 * 5667),
    ("openai-tiles-mini", 1024, 1024, "low", 2833),
    # 32 x 32 patches; 1,536 at most
    ("openai-patches", 1024, 1024, None, 1762),
    ("openai-patches", 1800, 2400, None, 2642),
    ("openai-patches-nano", 1024, 1024, None, 2520),
    # Anthropic's own examples
    ("anthropic-area", 200, 200, None, 54),
    ("anthropic-area", 1000, 1000, None, 1334),
    ("anthropic-area", 1092, 1092, None, 1590),
    ("anthropic-area", 8000, 8000, None, 1600),
    ("anthropic-area", 3136, 800, None, 837),
    # Google: small; 960 x 540 is six tiles
    ("gemini-tiles", 384, 384, None, 258),
    ("gemini-tiles", 960, 540, None, 6 * 258),
    ("gemini-tiles", 3072, 3072, None, 16 * 258),
]


@pytest.mark.parametrize(("rule", "width", "height", "detail", "expected"), PRICES)
def test_an_image_costs_what_its_provider_publishes(
    rule: ImageRule, width: int, height: int, detail: str | None, expected: int
) -> None:
    assert image_tokens(part(width, height, detail), rule) == expected


@pytest.mark.parametrize(
    ("rule", "expected"), [("openai-tiles", 1105), ("anthropic-area", 1600), ("openai-patches", 2642)]
)
def test_an_image_by_url_costs_the_upper_middle(rule: ImageRule, expected: int) -> None:
    assert image_tokens(ImagePart(url="https://example.org/a.png"), rule) == expected
