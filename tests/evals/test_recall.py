"""Recall on questions with known evidence: what counts, what is refused, how the tables get into the document."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import SelectionRequest
from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.envelope.recall.selection import ScoredOriginal
from ctxsteward.evals.documents import check_markers, with_block
from ctxsteward.evals.rankings import RANKINGS
from ctxsteward.evals.recall import measure
from ctxsteward.schemas import InputError

from ..needs import PUBLIC_DATA

LOCOMO = Path(__file__).parents[2] / "../shared/data/locomo/locomo_dev.json"
SOAK = os.environ.get("CTXSTEWARD_SOAK") == "1"
FACTS = ("the spare key hangs in the shed", "my sister lives in Oslo", "we sold the piano in spring")


def sample(**changes: Any) -> dict[str, Any]:
    """Thirty days of small talk with one fact every tenth, and a question for each."""
    conversation: dict[str, Any] = {"speaker_a": "Ann", "speaker_b": "Bob"}
    for day in range(1, 31):
        said = FACTS[day // 10 - 1] if day % 10 == 0 else f"number {day} was a day of rain and of walks number {day}"
        conversation[f"session_{day}_date_time"] = f"1:56 pm on {day} May, 2023"
        conversation[f"session_{day}"] = [
            {"speaker": "Ann", "dia_id": f"D{day}:1", "text": said},
            {"speaker": "Bob", "dia_id": f"D{day}:2", "text": f"I see, day {day}"},
        ]
    qa = [
        {"question": "Where is the spare key?", "category": 4, "evidence": ["D10:1"]},
        {"question": "Where does Ann's sister live?", "category": 4, "evidence": ["D:20:1"]},
        {"question": "Which key, and which piano?", "category": 1, "evidence": ["D10:1; D30:1"]},
        {"question": "Of no category that counts", "category": 5, "evidence": ["D1:1"]},
        {"question": "Evidence that is not there", "category": 2, "evidence": ["D99:1", "x"]},
    ]
    return {"sample_id": "s", "conversation": conversation, "qa": qa, **changes}


def written(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "data.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def test_evidence_counts_where_its_whole_text_is_shown(tmp_path: Path) -> None:
    (row,) = measure(written(tmp_path, [sample()]), selector=Heuristic, budgets_tokens=(120,))
    assert (row.questions, row.mean, row.all_shown) == (3, 100.0, 100.0)
    assert row.by_category["multi-hop"] == 100.0
    assert 0 < row.context_tokens_mean <= 120


def test_a_selector_that_finds_nothing_scores_nothing(tmp_path: Path) -> None:
    def nothing(request: SelectionRequest) -> list[ScoredOriginal]:
        return []

    (row,) = measure(written(tmp_path, [sample()]), selector=lambda: nothing, budgets_tokens=(120,))
    assert row.by_category["single-hop"] == 0.0
    assert row.reachable > row.mean  # one search finds them


def test_recency_is_a_sliding_window(tmp_path: Path) -> None:
    (row,) = measure(written(tmp_path, [sample()]), selector=RANKINGS["recency"], budgets_tokens=(120,))
    assert row.by_category["single-hop"] == 0.0


REFUSED = [
    pytest.param("not json", "not JSON", id="no JSON"),
    pytest.param("[]", "an empty array", id="empty"),
    pytest.param([{"role": "user", "content": "hi"}], "no `qa` list", id="a chat"),
    pytest.param({"qa": []}, "", id="questions without a conversation"),
    pytest.param([sample(qa=[7])], "[0].qa[0]: found the number 7", id="a question that is a number"),
    pytest.param([sample(qa=[{"category": 1}])], "[0].qa[0]", id="no question"),
    pytest.param([sample(qa=[{"question": "x", "evidence": "D1:1"}])], "[0].qa[0]", id="evidence that is no list"),
    pytest.param([sample(qa=[])], "no question with evidence", id="no questions"),
    pytest.param('{"a": 1, "a": 2}', "", id="a key twice"),
]


@pytest.mark.parametrize(("document", "names"), REFUSED)
def test_a_file_that_is_no_locomo_is_refused_by_name(tmp_path: Path, document: object, names: str) -> None:
    path = written(tmp_path, document)
    with pytest.raises(InputError) as refused:
        measure(path, selector=Heuristic)
    assert str(path) in str(refused.value)
    assert names in str(refused.value)


# -- the document --------------------------------------------------------------------------------------------------


def test_a_block_goes_between_its_markers_and_touches_nothing_else() -> None:
    once = with_block("before <!-- recall -->old<!-- /recall --> after", "recall", ("", "| a |"))
    assert once == "before <!-- recall -->\n\n| a |\n<!-- /recall --> after"
    assert with_block(once, "recall", ("", "| a |")) == once


def test_a_document_without_a_place_for_a_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("<!-- recall --><!-- /recall -->")
    with pytest.raises(InputError, match="no <!-- variants --> followed by <!-- /variants -->"):
        check_markers(path, "recall", "variants")


@pytest.mark.soak
@pytest.mark.skipif(not LOCOMO.exists(), reason=PUBLIC_DATA)
def test_on_real_conversations_most_evidence_is_shown(tmp_path: Path) -> None:
    """A broken ranking falls through the bar. An everyday run asks half of two conversations' questions, a soak all."""
    conversations = json.loads(LOCOMO.read_text(encoding="utf-8"))[: None if SOAK else 2]
    for conversation in conversations:
        conversation["qa"] = conversation["qa"][:: None if SOAK else 2]
    (row,) = measure(written(tmp_path, conversations), selector=Heuristic, budgets_tokens=(900,))
    assert row.questions > (700 if SOAK else 100)
    assert row.mean >= 82
    assert row.reachable >= 96
