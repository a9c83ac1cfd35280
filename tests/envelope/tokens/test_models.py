"""Windows of models by all their spellings; unknown names are refused, never guessed."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.envelope.tokens.encodings import PUBLISHED
from ctxsteward.envelope.tokens.models import ModelInfo, Prices, image_tokens, known_models, model_info
from ctxsteward.schemas import ImagePart, UnknownModel

from ...tables import table

MODELS = table(__file__, "models.yaml")


def test_a_canonical_name_has_its_published_window() -> None:
    infos = map(model_info, MODELS["windows"])
    assert [(info.name, info.window_tokens) for info in infos] == list(MODELS["windows"].items())


def test_what_providers_put_around_a_name_is_understood() -> None:
    assert {spelling: model_info(spelling).name for spelling in MODELS["spellings"]} == MODELS["spellings"]


def test_an_unknown_name_is_refused_and_the_known_ones_are_named() -> None:
    for name in MODELS["unknown"]:
        with pytest.raises(UnknownModel, match="claude-sonnet-4-5") as refusal:
            pytest.fail(f"{name} is {model_info(name)}")
        assert refusal.value.known == known_models()


def test_a_whole_value() -> None:
    assert model_info("claude-opus-4-5-20251101") == ModelInfo(
        name="claude-opus-4-5",
        encoding="o200k_base",
        window_tokens=200_000,
        output_reserve_tokens=64_000,
        images="anthropic-area",
        estimate=True,
        prices=Prices(block_tokens=4096, long_write=2.0),
        dollars_per_million=5.0,
    )


@pytest.mark.parametrize("name", known_models())
def test_every_row_of_the_data_can_be_used(name: str) -> None:
    info = model_info(name)
    assert info.name == name
    assert info.encoding in PUBLISHED
    assert 0 < info.output_reserve_tokens <= info.window_tokens // 2
    assert 0 < info.prices.block_tokens <= info.window_tokens
    assert 0 < info.prices.cached < 1 <= info.prices.write <= 1.25
    assert 300 <= info.prices.lifetime_seconds <= info.prices.long_lifetime_seconds
    assert image_tokens(ImagePart(url="https://example.org/a.png"), info.images) > 0
    assert info.estimate or name.startswith(("gpt-", "o"))


def test_a_builder_of_a_model_of_one_s_own_has_no_published_prices() -> None:
    assert EnvelopeBuilder("our-own", tokenizer="o200k_base").prices is None
    assert EnvelopeBuilder("gpt-4o").prices == model_info("gpt-4o").prices
