"""What providers report of prompt and cache, in the published form of each, as JSON and as its SDK's own type."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ctxsteward.envelope.integrations.session_call import cached_tokens_of, written_tokens_of
from ctxsteward.envelope.render.request import FORMATS
from ctxsteward.envelope.tokens.tokenizer import prompt_tokens_of

REPORTS: dict[str, dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("usage.yaml"))


def read(usage: object) -> dict[str, int | None]:
    return {"prompt": prompt_tokens_of(usage), "read": cached_tokens_of(usage), "written": written_tokens_of(usage)}


@pytest.mark.parametrize("name", REPORTS)
def test_prompt_reads_and_writes_are_read_from_each_form(name: str) -> None:
    report = REPORTS[name]
    expected = {part: report.get(part) for part in ("prompt", "read", "written")}
    assert read(report["usage"]) == expected
    if "type" in report:
        module, _, type_name = report["type"].partition(":")
        model = getattr(import_module(module), type_name)
        assert read(model.model_validate(report["usage"])) == expected


def test_each_provider_has_a_report() -> None:
    assert {name for name in FORMATS if name != "text"} <= REPORTS.keys()


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 9}])
def test_a_report_without_cache_says_nothing_of_it(usage: object) -> None:
    assert (cached_tokens_of(usage), written_tokens_of(usage)) == (None, None)
