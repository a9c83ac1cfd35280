"""What `ctxsteward try` finds in transcripts, and which budget it recommends."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from ctxsteward.evals.prompt_cost import Bill
from ctxsteward.evals.trial import BudgetTrial, Trial, recommended, try_transcripts
from ctxsteward.schemas import InputError

from ..needs import PUBLIC_DATA

DATA = Path(__file__).parents[2] / "../shared/data"
DEMO = Path(str(files("ctxsteward.console") / "data" / "demo.jsonl"))


def chat(path: Path, turns: int) -> Path:
    """A chat whose beginning names a number that is asked for at the end, without tools."""
    said = ["I would like you to help me with my plants and my letters."]
    said += ["The door code of the summer house on Orchard Lane is KX-4471, as my uncle told me."]
    said += [f"Please water plant {at} at the window, and tell me how much it took this week." for at in range(turns)]
    wires = []
    for at, text in enumerate(said):
        wires += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": f"Plant {at} took a cup of water."},
        ]
    path.write_text(json.dumps(wires), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shipped() -> Trial:
    return try_transcripts([DEMO], model="gpt-4o", budgets_tokens=(8_000, 2_000, 8_000))


def test_figures_of_the_shipped_demo_hang_together(shipped: Trial) -> None:
    small, large = shipped.budgets
    assert (small.dynamic_tokens, large.dynamic_tokens) == (2_000, 8_000)
    assert small.bill.calls == large.bill.calls == shipped.everything.calls == 129
    assert small.bill.priced < large.bill.priced < shipped.everything.priced
    assert small.bill.tokens < large.bill.tokens < shipped.everything.tokens
    assert small.losses > large.losses > 0
    assert (small.unresolved, large.unresolved) == (0, 0)
    assert small.bill.values_used == large.bill.values_used > 0
    assert len(small.bill.values_unseen) > len(large.bill.values_unseen)
    assert len(small.bill.values_unseen) == small.bill.values_used - small.bill.values_shown
    assert all(value.transcript == "demo" for value in small.unseen)
    assert shipped.everything.values_unseen == ()
    assert small.asks == large.asks == small.shown_before + small.brought_back
    assert small.shown_before <= large.shown_before
    assert shipped.is_tool_loop
    assert shipped.dollars(1_000_000) == 2.5


def test_the_document_has_the_same_figures(shipped: Trial) -> None:
    document = json.loads(json.dumps(shipped.document()))
    assert [row["dynamic_tokens"] for row in document["budgets"]] == [2_000, 8_000]
    assert document["everything"]["saved"] == 0
    assert document["budgets"][0]["saved"] == round(1 - shipped.budgets[0].bill.priced / shipped.everything.priced, 4)
    assert document["budgets"][0]["dollars"] == round(shipped.budgets[0].bill.priced * 2.5 / 1e6, 6)
    assert document["recommendation"]["code"] == shipped.recommendation.code


def test_the_same_transcripts_give_the_same_figures(shipped: Trial) -> None:
    again = try_transcripts([DEMO], model="gpt-4o", budgets_tokens=(2_000,))
    assert again.document()["budgets"] == shipped.document()["budgets"][:1]
    assert again.document()["everything"] == shipped.document()["everything"]


def test_a_statement_of_the_beginning_comes_back_when_it_is_asked_for(tmp_path: Path) -> None:
    trial = try_transcripts([chat(tmp_path / "a.json", 80)], model="gpt-4o", budgets_tokens=(400,))
    (row,) = trial.budgets
    assert not trial.is_tool_loop
    assert row.asks >= 1
    assert row.brought_back >= 1
    assert row.answered == 1


def test_budgets_go_up_to_the_first_that_holds_the_longest_history(tmp_path: Path) -> None:
    trial = try_transcripts([chat(tmp_path / "a.json", 60), chat(tmp_path / "b.json", 5)], model="gpt-4o")
    assert 2_000 < trial.longest_tokens < 4_000
    assert [row.dynamic_tokens for row in trial.budgets] == [1_000, 2_000, 4_000, None]
    assert [row.losses for row in trial.budgets[-2:]] == [0, 0]
    assert trial.transcripts == 2


def test_short_chats_are_better_sent_whole(tmp_path: Path) -> None:
    trial = try_transcripts([chat(tmp_path / "a.json", 3)], model="gpt-4o")
    assert trial.recommendation.dynamic_tokens is None
    assert trial.recommendation.code == "send the whole history"


def test_what_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    chat(tmp_path / "good.json", 3)
    (tmp_path / "package.json").write_text('{"name": "site"}')
    (tmp_path / "silent.json").write_text('[{"role": "user", "content": "hi"}]')
    (tmp_path / "deep").mkdir()
    chat(tmp_path / "deep" / "too.json", 4)
    trial = try_transcripts([tmp_path], model="gpt-4o")
    assert trial.transcripts == 2
    assert trial.silent == 1
    assert [Path(skipped.path).name for skipped in trial.skipped] == ["package.json"]
    assert trial.skipped[0].why


def test_a_transcript_whose_file_name_is_no_session_id_is_left_out(tmp_path: Path) -> None:
    for name in ("good", "a\nb", "n" * 201):
        chat(tmp_path / f"{name}.json", 3)
    trial = try_transcripts([tmp_path], model="gpt-4o")
    assert trial.transcripts == 1
    assert ["is not usable as an id" in skipped.why for skipped in trial.skipped] == [True, True]


@pytest.mark.parametrize("budget", [1, 20])
def test_tiny_budgets_are_tried(budget: int, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(FORMS["anthropic"]), encoding="utf-8")
    assert try_transcripts([tmp_path], model="gpt-4o", budgets_tokens=[budget]).is_tool_loop
    trial = try_transcripts([chat(tmp_path / "a.json", 30)], model="gpt-4o", budgets_tokens=[budget])
    assert trial.budgets[0].losses > 0


def test_progress_tells_a_share_that_grows_to_the_whole(tmp_path: Path) -> None:
    shares: list[float] = []
    for name in "abc":
        chat(tmp_path / f"{name}.json", 6)
    try_transcripts([tmp_path], model="gpt-4o", tell=lambda text, share: shares.append(share))
    assert shares == sorted(shares)
    assert (shares[0], shares[-1], len(shares)) == (0.0, 1.0, 5)


def row(
    tokens: int | None, priced: float, *, used: int = 100, unseen: int = 0, over: int = 0, found: int = 10
) -> BudgetTrial:
    bill = Bill(calls=100, priced=priced, values_used=used, values_unseen=("v",) * unseen, over_budget=over)
    return BudgetTrial(dynamic_tokens=tokens, bill=bill, asks=10, brought_back=found)


WHOLE = Bill(calls=100, priced=100.0)
RECOMMENDED: dict[str, tuple[list[BudgetTrial], int | None]] = {
    "the cheapest that hides little": ([row(1_000, 20, unseen=30), row(2_000, 40), row(4_000, 60)], 2_000),
    "of like bills the larger budget": ([row(1_000, 50.0), row(2_000, 50.5), row(4_000, 60)], 2_000),
    "not one that most calls exceed": ([row(1_000, 20, over=6), row(2_000, 40, over=5)], 2_000),
    "not one that forgets what others find": ([row(1_000, 20, found=8), row(2_000, 40)], 2_000),
    "where all hide much, the one that hides least": ([row(1_000, 20, unseen=30), row(2_000, 40, unseen=10)], 2_000),
    "everything where nothing is saved": ([row(1_000, 120), row(2_000, 110)], None),
    "everything where hardly anything is saved": ([row(1_000, 99)], None),
    "no values used hide nothing": ([row(1_000, 20, used=0)], 1_000),
}


@pytest.mark.parametrize("name", RECOMMENDED)
def test_the_budget_that_is_recommended(name: str) -> None:
    trials, chosen = RECOMMENDED[name]
    assert recommended(trials, WHOLE, model="gpt-4o", is_tool_loop=False).dynamic_tokens == chosen


@pytest.mark.parametrize(
    ("trials", "chosen"),
    [
        ([row(2_000, 60), row(None, 61)], True),  # of like bills the larger
        ([row(2_000, 60), row(None, 70)], False),
        ([row(2_000, 99), row(None, 99)], True),  # it saves a little and hides nothing
        ([row(2_000, 101), row(None, 100)], False),
    ],
)
def test_the_builder_s_own_budgets_are_recommended_where_they_win(trials: list[BudgetTrial], chosen: bool) -> None:
    told = recommended(trials, WHOLE, model="gpt-4o", is_tool_loop=True)
    assert (told.is_default, told.code == 'EnvelopeBuilder("gpt-4o")') == (chosen, chosen)


def test_a_recommendation_says_why_and_how() -> None:
    told = recommended(
        [row(500, 10, over=9), row(1_000, 20, unseen=30), row(2_000, 40, unseen=1)],
        WHOLE,
        model="gpt-4o",
        is_tool_loop=True,
    )
    assert told.code == "Budgets(dynamic_tokens=2000, arrival_cap_tokens=1500)"
    assert told.reason == (
        "it has the lowest bill of the budgets that hide little (at most 2% of the used values unseen, at most 5% of "
        "the calls over budget, and within 2% of the best at early statements); it saves 60% of what sending "
        "everything costs; its prompts show 99.0% of the values that later replies used; 10 of 10 early statements are "
        "in the prompt when asked for; 0% of the calls exceed it; 1,000 tokens hide 30.0% of the used values"
    )


@pytest.mark.parametrize(
    ("smaller", "fault"),
    [
        (row(1_000, 20, over=9), "are exceeded by 9% of the calls"),
        (row(1_000, 20, found=8), "find 80% of the early statements, the best 100%"),
        (row(1_000, 39.5), "do not cost 2% less"),
    ],
)
def test_a_recommendation_says_what_is_wrong_with_the_next_smaller_budget(smaller: BudgetTrial, fault: str) -> None:
    told = recommended([smaller, row(2_000, 40)], WHOLE, model="gpt-4o", is_tool_loop=False)
    assert told.reason.endswith(f"; 1,000 tokens {fault}")


def test_nothing_to_try_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no transcripts in this folder"):
        try_transcripts([tmp_path], model="gpt-4o")
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("nothing")
    with pytest.raises(InputError, match="2 of 2 files cannot be read"):
        try_transcripts([tmp_path], model="gpt-4o")


@pytest.mark.skipif(not DATA.is_dir(), reason=PUBLIC_DATA)
def test_on_public_agent_runs_a_budget_saves_money_and_hides_little() -> None:
    trial = try_transcripts([DATA / "swe_agent"], model="gpt-4o", budgets_tokens=(1_000, 4_000))
    small, middle = trial.budgets
    assert trial.transcripts == 22
    assert trial.recommendation.code == "Budgets(dynamic_tokens=4000, arrival_cap_tokens=3000)"
    assert middle.bill.priced < 0.75 * trial.everything.priced
    assert middle.hidden < 0.02 < small.hidden
    assert sum(row.unresolved for row in trial.budgets) == 0 < middle.originals


FORMS: dict[str, object] = {
    "anthropic": [
        {"role": "user", "content": [{"type": "text", "text": "Which row has KX-12?"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"id": "KX-12"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "row A-77"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "A-77"}]},
    ],
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "Which row has KX-12?"}]},
            {"role": "model", "parts": [{"function_call": {"name": "look", "args": {"id": "KX-12"}}}]},
            {"role": "user", "parts": [{"function_response": {"name": "look", "response": {"output": "row A-77"}}}]},
            {"role": "model", "parts": [{"text": "A-77"}]},
        ]
    },
    "openai-responses": {
        "input": [
            {"role": "user", "content": "Which row has KX-12?"},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"id": "KX-12"}'},
            {"type": "function_call_output", "call_id": "c", "output": "row A-77"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A-77"}]},
        ]
    },
}


@pytest.mark.parametrize("format", FORMS)
def test_transcripts_of_every_provider_have_their_calls(format: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(FORMS[format]), encoding="utf-8")
    trial = try_transcripts([tmp_path], model="gpt-4o")
    assert trial.formats == {format: 1}
    assert trial.everything.calls == 2
    assert trial.is_tool_loop
