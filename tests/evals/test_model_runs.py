"""A model in the loop of the suites: the same scenarios, what it was asked, what it cost, and where rules stood in."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.evals.model_runs import MEANT, ModelRun, price_of, run_model
from ctxsteward.evals.result_history import compare
from ctxsteward.evals.suites.kit.suite import Setup
from ctxsteward.evals.suites.results import played
from ctxsteward.schemas import ChatReply, ChatRequest, InputError, ModelPrice, ModelUnavailable, TokenUsage
from ctxsteward.schemas.eval_result import EvalResult
from ctxsteward.summarizers.models import CallLimits
from tests.summarizers.models.fake_model import FakeModel, faithful

from .suites.doubles import Short

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
DRAW = Short("compression", "ci", 1)
QUICK = CallLimits(tries=2, first_wait_seconds=0.0)


def helpful(request: ChatRequest) -> ChatReply:
    refs = [line.split(" ")[0] for line in request.messages[0]["content"].splitlines() if line.startswith("§")]
    choice = json.dumps({"selected": refs[:3], "reasoning": "the first"})
    text = faithful(request) if request.purpose == "summary" else choice
    return ChatReply(text=text, usage=TokenUsage(prompt_tokens=1_000, output_tokens=10))


def down(_: ChatRequest) -> ChatReply:
    raise ModelUnavailable("fake", "HTTP 503", is_passing=True)


def result_of(setup: Setup) -> EvalResult:
    return played("compression", [DRAW], setup, workers=1, gates={}, when="2026-11-24T00:00:00+00:00")


@cache
def by_rules() -> EvalResult:
    return result_of(Setup())


def test_a_model_plays_the_same_scenarios_and_is_compared_with_rules_pair_by_pair() -> None:
    fake = FakeModel(helpful)
    run = ModelRun(fake, price=ModelPrice(prompt=1.0, output=1.0), limits=QUICK)
    plain, by_model = by_rules(), result_of(run.setup(Setup(), "compression"))
    compared = compare(plain, by_model, meant=MEANT)

    assert (by_model.setup["in_loop"], plain.setup.get("in_loop")) == ("fake", None)
    assert compared.scenario_ids == (DRAW.id,)
    assert {one.name for one in compared.meant} == set(MEANT)
    assert {request.purpose for request in fake.asked} == {"summary", "selection"}
    told = run.told("compression")
    cost = sum(float(line.rpartition("$")[2]) for line in told if "$" in line)
    assert cost == pytest.approx(len(fake.asked) * 1_010 / 1e6, abs=2e-4)
    assert "of them 0 fell back in part or whole" in told[-2]
    assert by_model.errors == {}


@pytest.mark.parametrize("what", ["down", "over its limit"])
def test_a_model_that_is_down_or_over_its_limit_leaves_what_rules_give(what: str) -> None:
    spent = what != "down"
    price, most = (ModelPrice(prompt=1e6), 0.01) if spent else (None, None)
    run = ModelRun(FakeModel(helpful if spent else down), price=price, max_dollars=most, limits=QUICK)
    plain, by_model = by_rules(), result_of(run.setup(Setup(), "compression"))
    summaries, selections = run.told("compression")[-2:]

    assert by_model.errors == {}
    figures = ("canaries_shown", "safety_rules", "reachable", "accounted", "within_budget", "compactions")
    assert [by_model.by_scenario[name] for name in figures] == [plain.by_scenario[name] for name in figures]
    count = summaries.split(" ")[1].rstrip(",")
    assert int(count) > 0
    assert f"of them {count} fell back" in summaries
    assert f"of them {selections.split(' ')[1].rstrip(',')} fell back" in selections


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: run_model("http://10.0.0.1/v1#m", "secret"), "can be read on its way"),
        (lambda: run_model("https://127.0.0.1/v1"), "no address; write https://HOST/v1#MODEL"),
        (lambda: run_model("openai:"), "no address"),
        (lambda: run_model("json:dumps"), "is no ChatModel"),
        (lambda: price_of("1,2"), "three numbers"),
        (lambda: price_of("1,2,-3"), "three numbers"),
        (lambda: ModelRun(FakeModel(down), max_dollars=1.0), "without a price of fake"),
    ],
)
def test_what_names_no_model_or_no_price_is_refused(made: object, told: str) -> None:
    with pytest.raises(InputError) as refused:
        made()  # type: ignore[operator]
    assert told in str(refused.value)
    assert "secret" not in str(refused.value)


MODEL = """
import json
from ctxsteward.schemas import ChatReply
class Model:
    name = "small"
    def reply(self, request):
        refs = [line.split(" ")[0] for line in request.messages[0]["content"].splitlines() if line.startswith("§")]
        return ChatReply(text=json.dumps({"selected": refs[:1], "reasoning": ""} if refs else {"bullets": []}))
    async def reply_async(self, request):
        return self.reply(request)
model = Model()
"""


def test_the_command_prints_the_difference_to_rules_and_what_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("support-desk.yaml", "support-desk.jsonl"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    (tmp_path / "small.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked = ["evals", "run", "support-desk.yaml", "--workers", "1", "--model-url", "small.py:model"]
    shown = CliRunner().invoke(cli, asked)

    assert shown.exit_code == 0, shown.stderr
    assert "meant to differ: summarizer: extractive and model" in " ".join(shown.stdout.split())
    assert "fell back" in shown.stdout
    as_json = CliRunner().invoke(cli, [*asked, "--json"])
    (result,) = map(json.loads, as_json.stdout.splitlines())
    assert (result["setup"]["in_loop"], "--model-url small.py:model" in result["reproduce"]) == ("small", True)
    assert "meant to differ" in as_json.stderr
