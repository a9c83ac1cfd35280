"""Summaries with a real model server: what it proves is the wire, the grammar, time limits and grounding; no quality.

CTXSTEWARD_SOAK=1 makes 100 summaries; else 2 of them, others each time. Run with -rP to see shares.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxsteward.envelope.transcripts.files import read_transcript
from ctxsteward.schemas import ChatRequest, Message, ModelUnavailable, SummarizerInput, Summary
from ctxsteward.schemas.publish import validate
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.summarizers import extractive
from ctxsteward.summarizers.models import GovernedModel, ModelSummarizer, OpenAIModel
from ctxsteward.summarizers.models.grounding import grounding_texts

from ... import model_servers
from ...examples import drawn
from ...needs import MODEL_SERVER
from .fake_model import foreign_pieces

SUMMARIES = drawn(range(100), 2, "summaries of a model server")
DEMO = Path(__file__).resolve().parents[3] / "console/ctxsteward/console/data/demo.jsonl"
BUDGET = 50

pytestmark = pytest.mark.skipif(not model_servers.is_installed(), reason=MODEL_SERVER)


@pytest.fixture
def model(address: str) -> Iterator[OpenAIModel]:
    made = OpenAIModel("gemma", base_url=address, api_key="none")
    yield made
    made.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with model_servers.llama_server(tmp_path_factory.mktemp("llama")) as found:
        yield found


def sources() -> list[SummarizerInput]:
    """Stretches of the shipped conversation, each of a few hundred tokens."""
    said = [Message.from_wire(entry.wire) for entry in read_transcript(DEMO).entries()]
    said = [message for message in said if message.role in ("user", "assistant") and 0 < len(message.text) < 900]
    made = []
    for number in SUMMARIES:
        first = number * 3 % (len(said) - 3)
        rows = [SourceMessage(ref=f"§{first + at + 1}", message=said[first + at]) for at in range(3)]
        made.append(SummarizerInput(messages=tuple(rows), count_tokens=lambda text: len(text) // 4 + 1))
    return made


def test_every_summary_is_whole_grounded_or_extractive(model: OpenAIModel) -> None:
    summarizer = ModelSummarizer(GovernedModel(model), deadline_seconds=60.0)
    written = plain_bullets = fell_back = 0
    refused: Counter[str] = Counter()
    slowest = 0.0
    for source in sources():
        started = time.monotonic()
        summary: Summary = summarizer(source, budget_tokens=BUDGET)
        slowest = max(slowest, time.monotonic() - started)
        validate("summary", summary.model_dump(mode="json"))
        plain = set(extractive(source, budget_tokens=BUDGET).bullets)
        texts = grounding_texts(source.messages)
        for bullet in summary.bullets:
            assert bullet in plain or not foreign_pieces(bullet.text, bullet.citations, texts)
        assert summary.origin is not None
        written += summary.origin.grounded
        plain_bullets += len(set(summary.bullets) & plain)
        refused.update(summary.origin.refused)
        fell_back += bool(summary.origin.fell_back)
        assert summary.origin.calls <= 2
    print(
        f"{len(SUMMARIES)} summaries: {written} bullets are what the model points at, {sum(refused.values())} of its "
        f"lines point at nothing ({dict(refused)})"
    )
    print(f"{plain_bullets} bullets are extractive, {fell_back} summaries fell back, the slowest took {slowest:.1f} s")
    assert slowest < 150


def test_a_deadline_and_an_unknown_path_are_told(model: OpenAIModel, address: str) -> None:
    request = ChatRequest(
        purpose="summary",
        messages=({"role": "user", "content": "Write a very long story."},),
        max_output_tokens=3_000,
        deadline_seconds=0.5,
    )
    with pytest.raises(ModelUnavailable, match=r"no answer within the time|deadline"):
        GovernedModel(model).reply(request)
    nowhere = OpenAIModel("gemma", base_url=f"{address}/nowhere", api_key="none")
    with pytest.raises(ModelUnavailable, match="HTTP 404"):
        nowhere.reply(request)
    nowhere.close()


def test_async_callers_get_the_same(model: OpenAIModel) -> None:
    request = ChatRequest(
        purpose="summary",
        messages=({"role": "user", "content": "Say hi."},),
        max_output_tokens=8,
        deadline_seconds=60.0,
    )
    reply = asyncio.run(model.reply_async(request))
    assert reply.ended in ("complete", "length")
    assert reply.usage is not None
    assert reply.usage.output_tokens > 0
