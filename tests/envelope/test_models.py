"""Windows of models by all their spellings; unknown names are refused, never guessed."""

from __future__ import annotations

import pytest

from ctxsteward.envelope.tokens.encodings import PUBLISHED
from ctxsteward.envelope.tokens.models import ModelInfo, image_tokens, known_models, model_info
from ctxsteward.schemas import ImagePart, UnknownModel

WINDOWS = {
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4o-mini": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.1-mini": 1_047_576,
    "gpt-4.1-nano": 1_047_576,
    "o1": 200_000,
    "o3": 200_000,
    "o3-mini": 200_000,
    "o4-mini": 200_000,
    "gpt-5": 400_000,
    "gpt-5-mini": 400_000,
    "gpt-5-nano": 400_000,
    "gpt-5.1": 400_000,
    "claude-3-haiku": 200_000,
    "claude-3-sonnet": 200_000,
    "claude-3-opus": 200_000,
    "claude-3-5-haiku": 200_000,
    "claude-3-5-sonnet": 200_000,
    "claude-3-7-sonnet": 200_000,
    "claude-sonnet-4": 200_000,
    "claude-opus-4": 200_000,
    "claude-opus-4-1": 200_000,
    "claude-haiku-4-5": 200_000,
    "claude-sonnet-4-5": 200_000,
    "claude-opus-4-5": 200_000,
    "gemini-1.5-flash": 1_048_576,
    "gemini-1.5-pro": 2_097_152,
    "gemini-2.0-flash": 1_048_576,
    "gemini-2.0-flash-lite": 1_048_576,
    "gemini-2.5-flash": 1_048_576,
    "gemini-2.5-flash-lite": 1_048_576,
    "gemini-2.5-pro": 1_048_576,
}


@pytest.mark.parametrize(("name", "window_tokens"), WINDOWS.items())
def test_a_canonical_name_has_its_published_window(name: str, window_tokens: int) -> None:
    info = model_info(name)
    assert (info.name, info.window_tokens) == (name, window_tokens)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-1106-preview", "gpt-4-turbo"),
        ("openai/gpt-4o", "gpt-4o"),
        ("openai:gpt-5.1-2025-11-13", "gpt-5.1"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("anthropic/claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("bedrock/global.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        ("anthropic.claude-3-haiku-20240307-v1:0:200k", "claude-3-haiku"),
        ("vertex_ai/claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("google/gemini-2.5-flash", "gemini-2.5-flash"),
        ("models/gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("gemini-2.5-flash-lite-preview-09-2025", "gemini-2.5-flash-lite"),
        (" gpt-4o\n", "gpt-4o"),
    ],
)
def test_what_providers_put_around_a_name_is_understood(spelling: str, name: str) -> None:
    assert model_info(spelling).name == name


@pytest.mark.parametrize(
    "name",
    [
        "gpt-9",
        "gpt-4o-audio-preview",
        "gpt-4o-",
        "gpt",
        "claude",
        "claude-sonnet-9",
        "gemini-9.9-pro",
        "somebody/gpt-4o",
        "GPT-4o",
        "",
        "default",
    ],
)
def test_an_unknown_name_is_refused_and_the_known_ones_are_named(name: str) -> None:
    with pytest.raises(UnknownModel, match="claude-sonnet-4-5") as refusal:
        model_info(name)
    assert refusal.value.known == known_models()


def test_a_whole_value() -> None:
    assert model_info("claude-opus-4-5-20251101") == ModelInfo(
        name="claude-opus-4-5",
        encoding="o200k_base",
        window_tokens=200_000,
        output_reserve_tokens=64_000,
        images="anthropic-area",
        estimate=True,
        cache_block_tokens=4096,
    )


@pytest.mark.parametrize("name", known_models())
def test_every_row_of_the_data_can_be_used(name: str) -> None:
    info = model_info(name)
    assert info.name == name
    assert info.encoding in PUBLISHED
    assert 0 < info.output_reserve_tokens <= info.window_tokens // 2
    assert 0 < info.cache_block_tokens <= info.window_tokens
    assert image_tokens(ImagePart(url="https://example.org/a.png"), info.images) > 0
    assert info.estimate or name.startswith(("gpt-", "o"))
