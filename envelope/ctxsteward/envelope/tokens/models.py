"""What is known of a model (encoding, window, reply, images, cache, prices), and what an image costs in its tokens.

`model_info` reads the figures, with their sources, from `models.toml`. A name is looked up as it stands, then without
what providers put around it: ``openai/gpt-4o``, ``models/gemini-2.5-flash``,
``us.anthropic.claude-sonnet-4-5-20250929-v1:0`` (Bedrock), ``claude-sonnet-4-5@20250929`` (Vertex), dates, ``-latest``.
Nothing is guessed: ``gpt-9`` raises `UnknownModel`, and so does ``gpt-4o-audio``.

An image's cost (`image_tokens`) comes from its size in pixels, which is read from the header of the inline data (PNG,
JPEG, GIF, WebP). Only the few bytes that say it are decoded: base64 allows random access (4 characters hold 3 bytes),
so a 5 MB picture costs microseconds. An image known by URL only, or in another format, counts as `ASSUMED` pixels:
upper middle, since a budget should err on the full side. Base64 is never counted as text.

Sources, as published by the providers:
- OpenAI, "Images and vision", tiles: fit into 2048 × 2048, then the shortest side to 768 (never enlarged),
  then 170 for each 512-pixel tile and 85 once; detail ``low`` costs the base only. gpt-4o-mini bills 5,667
  and 2,833. (o-series and gpt-5 bill 75 + 150 and 70 + 140; they are counted as 85 + 170.)
- OpenAI, patches (mini and nano since gpt-4.1, o4-mini): 32-pixel patches, at most 1,536, times a multiplier:
  2.46 for nano, 1.62 or 1.72 for the others, counted as 1.72.
- Anthropic, "Vision": width · height / 750 after scaling the long edge to 1,568, at most about 1,600.
- Google, "Understand and count tokens": 258 if both sides are ≤ 384, else 258 a tile; a tile is the shorter
  side / 1.5, held between 256 and 768.
"""

from __future__ import annotations

import binascii
import functools
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from ctxsteward.schemas import ImagePart, InputError, UnknownModel

ImageRule = Literal[
    "openai-tiles",
    "openai-tiles-mini",
    "openai-patches",
    "openai-patches-nano",
    "anthropic-area",
    "gemini-tiles",
]


class ImageSize(NamedTuple):
    """Pixels."""

    width: int
    height: int


ASSUMED = ImageSize(1536, 1024)
"""Counted for an image whose size cannot be read: 1,105 by tiles, 1,600 by area."""

_HEADER_BYTES = 32
_MAX_JPEG_SEGMENTS = 200
_MAX_WRAPPED_CHARS = 400_000


def image_tokens(part: ImagePart, rule: ImageRule = "openai-tiles") -> int:
    """Tokens of one image under a provider's rule."""
    size = (image_size(part.data) if part.data else None) or ASSUMED
    match rule:
        case "openai-tiles":
            return _tile_tokens(size, part.detail, base=85, tile=170)
        case "openai-tiles-mini":
            return _tile_tokens(size, part.detail, base=2833, tile=5667)
        case "openai-patches":
            return _patch_tokens(size, percent=172)
        case "openai-patches-nano":
            return _patch_tokens(size, percent=246)
        case "anthropic-area":
            width, height = _shrink(size, 1568 / max(size))
            return min(1600, ceil(width * height / 750))
        case "gemini-tiles":
            return _gemini_tokens(size)


def _tile_tokens(size: ImageSize, detail: str | None, *, base: int, tile: int) -> int:
    if detail == "low":
        return base
    width, height = _shrink(size, 2048 / max(size))
    width, height = _shrink(ImageSize(width, height), 768 / min(width, height))
    return base + tile * ceil(width / 512) * ceil(height / 512)


def _patch_tokens(size: ImageSize, *, percent: int) -> int:
    patches = min(1536, ceil(size.width / 32) * ceil(size.height / 32))
    return -(-patches * percent // 100)


def _gemini_tokens(size: ImageSize) -> int:
    if max(size) <= 384:
        return 258
    unit = min(768, max(256, int(min(size) / 1.5)))
    return 258 * ceil(size.width / unit) * ceil(size.height / unit)


def _shrink(size: ImageSize, factor: float) -> ImageSize:
    if factor >= 1:
        return size
    return ImageSize(max(1, round(size.width * factor)), max(1, round(size.height * factor)))


def image_size(data: str) -> ImageSize | None:
    """Pixels of base64 image data; None if its header does not say.

    >>> image_size("R0lGODlhAAEAAYAAAAAAAP///yH5BAEAAAAALAAAAAAAAQABAAACAkQBADs=")
    ImageSize(width=256, height=256)
    """
    if any(mark in data[:128] for mark in "\r\n "):
        data = "".join(data[:_MAX_WRAPPED_CHARS].split())
    head = _slice(data, 0, _HEADER_BYTES)
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        size = ImageSize(int.from_bytes(head[16:20]), int.from_bytes(head[20:24]))
    elif head[:6] in (b"GIF87a", b"GIF89a"):
        size = ImageSize(int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little"))
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        size = _webp_size(head)
    elif head[:2] == b"\xff\xd8":
        size = _jpeg_size(data)
    else:
        return None
    return size if min(size) > 0 else None


def _webp_size(head: bytes) -> ImageSize:
    match head[12:16]:
        case b"VP8X":
            return ImageSize(1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little"))
        case b"VP8L" if head[20:21] == b"\x2f":
            bits = int.from_bytes(head[21:25], "little")
            return ImageSize(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
        case b"VP8 " if head[23:26] == b"\x9d\x01\x2a":
            width, height = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:30], "little")
            return ImageSize(width & 0x3FFF, height & 0x3FFF)
    return ImageSize(0, 0)


def _jpeg_size(data: str) -> ImageSize:
    """Walk the segments to the frame header (SOF0-15 but DHT, JPG, DAC), jumping over EXIF blocks."""
    offset = 2
    for _ in range(_MAX_JPEG_SEGMENTS):
        segment = _slice(data, offset, 9)
        if len(segment) < 9 or segment[0] != 0xFF:
            break
        marker = segment[1]
        if marker == 0xFF:  # fill byte
            offset += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return ImageSize(int.from_bytes(segment[7:9]), int.from_bytes(segment[5:7]))
        else:
            offset += 2 + int.from_bytes(segment[2:4])
    return ImageSize(0, 0)


def _slice(data: str, start: int, length: int) -> bytes:
    """Bytes [start, start + length) of base64 data, or what there is of them."""
    first = start // 3 * 4
    chars = data[first : first + (start % 3 + length + 2) // 3 * 4]
    try:
        return binascii.a2b_base64(chars[: len(chars) // 4 * 4])[start % 3 :][:length]
    except ValueError:
        return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a prompt token costs, relative to one that is neither read from a cache nor written to it."""

    cached: float = 0.1
    write: float = 1.25
    """Of a token that was not in the cache; 1 where the provider writes for nothing."""
    block_tokens: int = 1024
    """The shortest prefix that is cached; the window where nothing is."""
    lifetime_seconds: int = 300
    """How long a prefix that nobody asks for stays cached."""
    long_write: float | None = None
    """Of a token that is written to stay for `long_lifetime_seconds`; None: not sold."""
    long_lifetime_seconds: int = 3_600

    def __post_init__(self) -> None:
        if not 0 <= self.cached <= self.write <= 100:
            raise InputError(
                f"prices: a cached token at {self.cached:g}, a written one at {self.write:g}; "
                "expected 0 ≤ cached ≤ written ≤ 100"
            )

    def of(self, prompt_tokens: int, prefix_tokens: int, unwritten_tokens: int = 0) -> float:
        """The price of a prompt that begins with so much of the one before, and whose end is not written to the cache.

        >>> Prices().of(3000, 2000), Prices().of(1000, 900), Prices().of(3000, 2000, 400)
        (1450.0, 1000.0, 1350.0)
        """
        return self.fresh(prompt_tokens - unwritten_tokens) + unwritten_tokens - self.saved(prefix_tokens)

    def fresh(self, tokens: int) -> float:
        """The price of a whole prompt of which nothing was cached.

        >>> Prices().fresh(2000), Prices().fresh(1000)
        (2500.0, 1000.0)
        """
        return tokens * (self.write if tokens >= self.block_tokens else 1.0)

    def saved(self, prefix_tokens: int) -> float:
        """What a shared prefix takes off that.

        >>> Prices().saved(2000), Prices().saved(1000)
        (2300.0, 0.0)
        """
        return prefix_tokens * (self.write - self.cached) if self.served(prefix_tokens) else 0.0

    def served(self, prefix_tokens: int) -> bool:
        """Whether a prefix is long enough to be cached."""
        return prefix_tokens >= self.block_tokens


_PROVIDER = re.compile(
    r"(?:openai|azure|anthropic|google|gemini|models|vertex_ai|vertexai|google-vertex|bedrock|openrouter)[/:]"
)
_BEDROCK = re.compile(r"(?:(?:us|us-gov|eu|apac|jp|au|ca|global)\.)?anthropic\.(.+?)(?:-v\d(?::\d+)?(?::\d+k)?)?")
_VERSION = re.compile(r"(?:-\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest|-00\d|-preview-\d{2}-\d{2}|-preview-\d{2}-\d{4})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """One model."""

    name: str
    encoding: str
    """Name of the encoding to count with (`load_tokenizer`)."""
    window_tokens: int
    output_reserve_tokens: int
    images: ImageRule
    estimate: bool
    """True: the provider's own tokenizer is not public, counts are estimates."""
    prices: Prices = field(default_factory=Prices)
    dollars_per_million: float | None = None
    """Published price of a million prompt tokens that no cache served; None: not known."""

    @property
    def maker(self) -> str:
        """Whose it is: openai, anthropic or gemini."""
        return self.images.partition("-")[0]


def model_info(model: str) -> ModelInfo:
    """What is known of a model, by any of its spellings; raise `UnknownModel` otherwise.

    >>> model_info("openai/gpt-4o-2024-08-06").window_tokens
    128000
    """
    models = _models()
    for spelling in _spellings(model):
        if spelling in models:
            return models[spelling]
    raise UnknownModel(model, known_models())


def prices_of(model: str | None) -> Prices | None:
    """What a model's prompt tokens cost; None where that is not known."""
    return info.prices if (info := known_model(model)) else None


def dollars_of(model: str | None, tokens: float) -> float | None:
    """What so many prompt tokens at full price cost; None where the model's price is not known.

    >>> dollars_of("gpt-4o", 2_000_000), dollars_of("gpt-9", 1)
    (5.0, None)
    """
    price = info.dollars_per_million if (info := known_model(model)) else None
    return None if price is None else price * tokens / 1_000_000


def known_model(model: str | None) -> ModelInfo | None:
    """Return what is known of a model, or None."""
    with suppress(UnknownModel):
        return None if model is None else model_info(model)
    return None


def known_models() -> tuple[str, ...]:
    """Canonical names, in the order of the data file (by provider, then age)."""
    return tuple(dict.fromkeys(info.name for info in _models().values()))


def _spellings(model: str) -> Iterator[str]:
    name = model.strip()
    yield name
    while match := _PROVIDER.match(name):
        name = name[match.end() :]
    if match := _BEDROCK.fullmatch(name):
        name = match[1]
    yield name
    yield _VERSION.sub("", name)


@functools.cache
def _models() -> Mapping[str, ModelInfo]:
    import tomllib  # here, so that importing the room stays cheap

    rows = tomllib.loads(Path(__file__).with_name("models.toml").read_text(encoding="utf-8"))
    models: dict[str, ModelInfo] = {}
    for name, row in rows.items():
        info = ModelInfo(
            name=name,
            encoding=row["encoding"],
            window_tokens=row["window"],
            output_reserve_tokens=row["reserve"],
            images=row["images"],
            estimate=row.get("estimate", False),
            prices=Prices(**row.get("cache", {})),
            dollars_per_million=row.get("price"),
        )
        models.update(dict.fromkeys((name, *row.get("aliases", ())), info))
    return MappingProxyType(models)
