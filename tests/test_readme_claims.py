"""Each claim of the README has a test: `readme_claims.yaml` names it, and this file checks that it exists.

The claims are the sentences of the lists below "What it does" and "What it does not do".
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ctxsteward.envelope import model_info

from .s3_servers import REAL_BUCKET

ROOT = Path(__file__).parents[1]
SECTIONS = ("What it does", "What it does not do")
CLAIMS: dict[str, list[str]] = YAML(typ="safe").load(
    (ROOT / "tests" / "readme_claims.yaml").read_text(encoding="utf-8")
)


def sentences(text: str) -> list[str]:
    """The sentences of the lists in the claiming sections."""
    claims = []
    for heading in SECTIONS:
        section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        for item in re.split(r"^- ", section, flags=re.MULTILINE)[1:]:
            claims += re.split(r"(?<=\.) (?=[A-Z`])", " ".join(item.split()))
    return claims


@cache
def defined_in(path: str) -> frozenset[str]:
    file = ROOT / path
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_claim_of_the_readme_has_a_row_in_the_table_and_no_row_is_left_over() -> None:
    claims = sentences((ROOT / "README.md").read_text(encoding="utf-8"))
    assert claims
    assert claims == list(CLAIMS)


def test_a_claim_is_a_sentence_of_a_list() -> None:
    text = "\n## What it does\n\nIntroduction.\n\n- It keeps\n  all. `serve` serves.\n\n## Else\n\n- No claim.\n"
    assert sentences(text) == ["It keeps all.", "`serve` serves."]


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_defined_in_a_claim_exist(claim: str) -> None:
    assert CLAIMS[claim]
    named = [test.partition("::") for test in CLAIMS[claim]]
    assert [f"{path}::{name}" for path, _, name in named if name not in defined_in(path)] == []


def test_counts_for_anthropic_and_gemini_are_estimates() -> None:
    names = ("claude-opus-4-1", "gemini-2.5-pro", "gpt-4o")
    assert [model_info(name).estimate for name in names] == [True, True, False]


def test_ci_uses_no_bucket_of_aws_and_runs_no_container() -> None:
    files = [path for folder in (".ci", ".github/workflows") for path in (ROOT / folder).rglob("*") if path.is_file()]
    assert len(files) >= 2
    used = re.compile(rf"{REAL_BUCKET}|\bdocker (?:build|run|compose)\b|\bkubectl\b")
    assert [path.name for path in files if used.search(path.read_text(encoding="utf-8"))] == []
