"""What is known of a model: encoding, window, reply, images, cache. Data and sources: `models.toml`.

A name is looked up as it stands, then without what providers put around it: ``openai/gpt-4o``,
``models/gemini-2.5-flash``, ``us.anthropic.claude-sonnet-4-5-20250929-v1:0`` (Bedrock),
``claude-sonnet-4-5@20250929`` (Vertex), dates, ``-latest``. Nothing is guessed: ``gpt-9`` raises
`UnknownModel`, and so does ``gpt-4o-audio``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ctxsteward.schemas import UnknownModel

from .images import ImageRule

DEFAULT_CACHE_BLOCK_TOKENS = 1024

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
    cache_block_tokens: int = DEFAULT_CACHE_BLOCK_TOKENS
    """The shortest prefix the provider caches; the window where it caches nothing."""


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
            cache_block_tokens=row.get("cache", DEFAULT_CACHE_BLOCK_TOKENS),
        )
        models.update(dict.fromkeys((name, *row.get("aliases", ())), info))
    return MappingProxyType(models)
