"""The observation log: dated lines that stay as they are, merged only when the log is deep."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.schemas import Bullet, ChatReply, ChatRequest, ModelUnavailable, SourceMessage, SummarizerInput
from ctxsteward.summarizers.models import ObservationLog

from .fake_model import FakeModel, faithful, source_message


def dated(ref: str, day: str, text: str) -> SourceMessage:
    item = source_message(ref, "user", text)
    return SourceMessage(ref=item.ref, message=item.message, ts=f"{day}T09:00:00")


NEW = (dated("§7", "2026-03-04", "My budget is 900 euros now."), dated("§8", "2026-03-05", "Book nothing on Mondays."))
STANDING = (
    Bullet(text="2026-01-01: My budget is 500 euros.", citations=("§1",), value=10.0),
    Bullet(text="2026-01-02: My sister Hana joins us in Kyoto.", citations=("§2",), value=10.0),
    Bullet(text="2026-01-03: Hana eats no fish.", citations=("§3", "§4"), kind="constraint", value=70.0),
    Bullet(text="2026-02-01: We stay at the river in Kyoto.", citations=("§5",), value=10.0),
)
SOURCE = SummarizerInput(messages=NEW, standing=STANDING)


def answering(*observations: dict[str, Any]) -> FakeModel:
    def answer(request: ChatRequest) -> str:
        if request.purpose == "reflection":
            return json.dumps({"observations": list(observations)}, ensure_ascii=False)
        return faithful(request)

    return FakeModel(answer)


def reflected(*observations: dict[str, Any], log_tokens: int = 100) -> Any:
    return ObservationLog(answering(*observations), log_tokens=log_tokens)(SOURCE, budget_tokens=400)


def test_each_begins_with_the_day_of_what_it_cites_and_nothing_is_superseded() -> None:
    summary = ObservationLog(answering(), log_tokens=10_000)(SOURCE, budget_tokens=400)

    assert [(bullet.text, bullet.citations) for bullet in summary.bullets] == [
        ("2026-03-04: My budget is 900 euros now.", ("§7",)),
        ("2026-03-05: Book nothing on Mondays.", ("§8",)),
    ]
    assert summary.superseded == ()


def test_a_deep_log_is_merged_in_its_older_half_and_cites_all_originals() -> None:
    summary = reflected({"text": "Budget 500 euros, sister Hana joins us in Kyoto.", "merges": [0, 1], "kind": "fact"})
    assert (summary.bullets[0].text, summary.bullets[0].citations, summary.superseded) == (
        "2026-01-01 to 2026-01-02: Budget 500 euros, sister Hana joins us in Kyoto.", ("§1", "§2"), (0, 1),
    )  # fmt: skip
    assert "reflect_observations 1" in summary.origin.template


BAD = {
    "another value": {"text": "Budget 600 euros, sister Hana in Kyoto.", "merges": [0, 1]},
    "one of the newer half": {"text": "Budget 500 euros, we stay at the river.", "merges": [0, 3]},
    "one that is none": {"text": "Budget 500 euros, sister Hana in Kyoto.", "merges": [0, 99]},
    "what none of them says": {"text": "The weather will be sunny and warm.", "merges": [0, 1]},
    "a rule turned round": {"text": "Hana eats fish.", "merges": [1, 2]},
    "longer than what it stands for": {"text": "Budget 500 euros. Sister Hana is in Kyoto. " * 3, "merges": [0, 1]},
    "one of them left out": {"text": "Hana, my sister, joins us in Kyoto.", "merges": [0, 1]},
    "a reference in its text": {"text": "Budget 500 euros §1, sister Hana in Kyoto.", "merges": [0, 1]},
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_merged_badly_stays_as_it_was(case: str) -> None:
    summary = reflected({**BAD[case], "kind": "fact"})

    assert summary.superseded == ()
    assert len(summary.bullets) == 2
    assert any(name.startswith("reflected_") for name in summary.origin.refused)


def test_an_observation_is_merged_once() -> None:
    one = {"text": "Budget 500 euros, sister Hana in Kyoto.", "merges": [0, 1], "kind": "fact"}
    summary = reflected(one, one)
    assert (summary.superseded, len(summary.bullets), summary.origin.refused) == ((0, 1), 3, {"reflected_cited": 1})


@pytest.mark.parametrize(
    "reply", ["no JSON", "{}", ChatReply(text="{}", ended="length"), ModelUnavailable("m", "down")]
)
def test_a_reflection_that_fails_leaves_the_log_and_says_so(reply: Any) -> None:
    def answer(request: ChatRequest) -> Any:
        if request.purpose != "reflection":
            return faithful(request)
        if isinstance(reply, Exception):
            raise reply
        return reply

    summary = ObservationLog(FakeModel(answer), log_tokens=100)(SOURCE, budget_tokens=400)
    assert summary.superseded == ()
    assert [why for why in summary.origin.fell_back if why.startswith("not reflected")]


def test_without_a_model_the_log_is_extractive() -> None:
    summary = ObservationLog(log_tokens=100)(SOURCE, budget_tokens=400)

    assert [bullet.text[:12] for bullet in summary.bullets] == ["2026-03-04: ", "2026-03-05: "]
    assert (summary.superseded, summary.origin) == ((), None)


def test_between_reflections_the_log_of_a_session_only_grows_at_its_end() -> None:
    """Sixty turns: whatever a compaction wrote stands at the beginning of the next one's bullets, until one is merged
    or has no room."""
    store = open_store("memory:")
    session = store.session("s", system="You plan trips.")
    log = ObservationLog(FakeModel(faithful), log_tokens=100_000)
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=12_000), summarizer=log)
    for number in range(60):
        text = f"Remember that order OPS-{number} costs {number} euros. " + "Some more talk about it. " * 40
        session.append({"role": "user", "content": text}, ts=f"2026-01-{number % 28 + 1:02d}T09:00:00")
        builder.build(session)
        session.append({"role": "assistant", "content": "Noted. " * 30})

    compactions = session.reports()
    assert len(compactions) >= 3
    for before, after in pairwise(compactions):
        kept = [bullet for bullet in before.bullets if bullet in after.bullets]
        assert list(after.bullets[: len(kept)]) == kept
        assert len(kept) >= 0.9 * len(before.bullets)
    assert all(bullet.text.startswith("2026-01-") for bullet in compactions[-1].bullets[1:])
