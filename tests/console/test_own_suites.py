"""`ctxsteward evals` over a team's own suite file: runs, gates, drafts, parts, and a run that was killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.schemas.eval_result import EvalResult

from . import commands

run = partial(commands.run, "evals")

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SOURCES = os.pathsep.join(part for part in sys.path if part)
MANY = 24


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the example suite, and where one is."""
    for name in ("support-desk.yaml", "support-desk.jsonl"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def played(*args: str, code: int = 0) -> EvalResult:
    return EvalResult.model_validate_json(run("run", *args, "--workers", "1", "--json", code=code).stdout)


def values(result: EvalResult) -> dict[str, Any]:
    """What must not depend on how a run was split or broken off."""
    left = {"when", "cpu_seconds", "reproduce"}
    return result.model_dump(mode="json", exclude=left)


def test_a_suite_file_is_played_and_held_to_its_own_gates(desk: Path) -> None:
    result = played("support-desk.yaml", "--gate")
    assert (result.suite, result.passed, result.scenarios, len(result.gates)) == ("support-desk", True, 2, 4)
    assert result.reproduce == "ctxsteward evals run support-desk.yaml"
    failed = played("support-desk.yaml", "--gate", "--subject", "newest-tokens", code=1)
    assert [gate.metric for gate in failed.gates if not gate.passed] == ["orders_shown"]
    assert failed.misses[0].scenario == "support-desk/refund"
    assert played("support-desk.yaml").gates == ()


def test_a_gate_file_of_its_own_and_one_scenario(desk: Path) -> None:
    (desk / "g.yaml").write_text(
        "schema_version: 1\ngates:\n  support-desk:\n    shown: {at_least: 1}\n", encoding="utf-8"
    )
    result = played("support-desk.yaml", "--gate", "g.yaml", "--only", "support-desk/delivery")
    assert (result.scenarios, [gate.metric for gate in result.gates]) == (1, ["shown"])
    assert result.reproduce == "ctxsteward evals run support-desk.yaml --only support-desk/delivery"


WRONG = {
    "no such file": (("run", "none.yaml"), "none.yaml: no such file"),
    "a scenario of nobody": (
        ("run", "support-desk.yaml", "--only", "x/1"),
        "has no such conversation; there are: supp",
    ),
    "a split": (("run", "support-desk.yaml", "--split", "docs"), "has the conversations that it has"),
    "full": (("run", "support-desk.yaml", "--full"), "leave the option out"),
    "a part without a record": (("run", "verbatim", "--shard", "1/2"), "--shard 1/2: add --resume FILE"),
    "gates of a part": (("run", "verbatim", "--shard", "1/2", "--resume", "r", "--gate"), "--gate beside --shard"),
    "no part": (("run", "verbatim", "--shard", "3/2", "--resume", "r"), "--shard 3/2: no part of a run"),
    "a foreign record": (("run", "support-desk.yaml", "--resume", "support-desk.yaml"), "not a run record"),
    "nothing to merge": (("merge", "none.jsonl"), "none.jsonl: no such file"),
    "a draft that is there": (("from-transcripts", ".", "--out", "support-desk.yaml"), "is there already"),
    "a draft of no name": (("from-transcripts", ".", "--out", "draft"), "write one that ends in .yaml"),
    "a draft of nothing": (("from-transcripts", "none", "--out", "draft.yaml"), "none: no such file or folder"),
    "a draft in no folder": (("from-transcripts", ".", "--out", "no/draft.yaml"), "no folder no"),
}


@pytest.mark.parametrize(("args", "told"), WRONG.values(), ids=WRONG.keys())
def test_what_was_asked_wrongly_is_one_line_and_nothing_is_played(args: tuple[str, ...], told: str, desk: Path) -> None:
    result = run(*args, code=2)
    (line,) = result.stderr.splitlines()
    assert told in line
    assert not result.stdout


def test_parts_of_a_run_are_merged_into_what_one_run_gives(desk: Path) -> None:
    for number in (1, 2):
        part = played("support-desk.yaml", "--shard", f"{number}/2", "--resume", f"{number}.jsonl")
        assert part.scenarios == 1
    merged = EvalResult.model_validate_json(run("merge", "2.jsonl", "1.jsonl", "--gate", "--json").stdout)
    assert values(merged) == values(played("support-desk.yaml", "--gate"))
    assert "ok at least 1" in run("merge", "1.jsonl", "2.jsonl", "--gate").stdout
    assert "1 of 2 scenarios are in no part" in run("merge", "1.jsonl", code=2).stderr


def test_parts_of_a_shipped_suite_are_judged_by_the_shipped_gates(desk: Path) -> None:
    short = ("verbatim", "--only", "verbatim/docs-1", "--only", "verbatim/docs-10", "--workers", "1")
    for number in (1, 2):
        run("run", *short, "--shard", f"{number}/2", "--resume", f"{number}.jsonl")
    # Two scenarios leave the gates that hold an interval undecided, in parts and as a whole.
    merged = EvalResult.model_validate_json(run("merge", "1.jsonl", "2.jsonl", "--gate", "--json", code=1).stdout)
    whole = run("run", *short, "--gate", "--json", code=1).stdout
    assert values(merged) == values(EvalResult.model_validate_json(whole))


def test_a_part_without_a_scenario_and_gates_over_nothing_that_was_played_are_refused(desk: Path) -> None:
    part = ("run", "verbatim", "--scenarios", "1", "--shard", "2/2", "--resume", "2.jsonl")
    assert "verbatim: part 2 of 2 has no scenario; ask for fewer parts" in run(*part, code=2).stderr
    run("run", "verbatim", "--only", "verbatim/docs-1", "--shard", "1/1", "--resume", "1.jsonl", "--workers", "1")
    (desk / "other.yaml").write_text("schema_version: 1\ngates: {cache: {told: {at_least: 1}}}\n", encoding="utf-8")
    told = "--gate other.yaml: no gate over verbatim; write some, or merge without --gate"
    assert told in run("merge", "1.jsonl", "--gate", "other.yaml", code=2).stderr


def test_a_finished_run_is_not_played_again_and_another_is_refused(desk: Path) -> None:
    first = played("support-desk.yaml", "--resume", "r.jsonl")
    again = played("support-desk.yaml", "--resume", "r.jsonl", "--gate")
    assert values(again.model_copy(update={"gates": ()})) == values(first)
    assert again.cpu_seconds == first.cpu_seconds, "what was kept is told, not what a second playing took"
    told = run("run", "support-desk.yaml", "--resume", "r.jsonl", "--subject", "window", code=2).stderr
    assert "the record of another run: subject was ours and is window" in told
    text = (desk / "support-desk.yaml").read_text(encoding="utf-8")
    (desk / "support-desk.yaml").write_text(text.replace("budget_tokens: 400", "budget_tokens: 500"), encoding="utf-8")
    assert "content of the suite was" in run("run", "support-desk.yaml", "--resume", "r.jsonl", code=2).stderr


FLAKY = """\
from random import Random

rng = Random(3)

def flaky(conversation):
    return conversation.messages[-rng.choice((2, 6, 30)):]
"""


def test_repeats_are_told_in_every_report_and_kept_with_the_run(desk: Path) -> None:
    (desk / "flaky.py").write_text(FLAKY, encoding="utf-8")
    args = ("support-desk.yaml", "--subject", "flaky.py:flaky", "--repeat", "4")
    first = played(*args, "--resume", "r.jsonl", "--junit", "j.xml", "--markdown", "m.md", "--html", "h.html")
    assert (first.scenarios, first.setup["repeat"], first.reproduce.endswith("--repeat 4")) == (2, 4, True)
    shown = next(one for one in first.metrics if one.name == "shown")
    assert (shown.checks, shown.within_sd is not None and shown.within_sd > 0) == (3, True)
    for name in ("j.xml", "m.md", "h.html"):
        assert "sd of repeats, of scenarios" in (desk / name).read_text(encoding="utf-8")
    merged = EvalResult.model_validate_json(run("merge", "r.jsonl", "--json").stdout)
    assert values(merged) == values(first) == values(played(*args, "--resume", "r.jsonl"))
    told = run("run", "support-desk.yaml", "--resume", "r.jsonl", "--subject", "flaky.py:flaky", code=2).stderr
    assert "repeat was 4 and is not set" in told


def test_repeats_of_what_does_not_vary_are_played_once_and_that_is_told(desk: Path) -> None:
    told = run("run", "support-desk.yaml", "--repeat", "3", "--workers", "1")
    assert "--repeat 3: nothing varies here" in told.stderr
    assert "sd of repeats" not in told.stdout


JUDGES = """\
from ctxsteward.evals.suites.kit import ScriptedModel

YES, NO = "VERDICT: yes", "VERDICT: no"
flaky = ScriptedModel({"polite": ["I cannot say."], "Which order": [YES, NO]}, [YES])


def strict(prompt):
    with open("calls.txt", "a") as file:
        file.write("x")
    return YES if "W-10472" in prompt else NO
"""
FLAKY_PRICE = "judges.py:flaky: {input_per_million: 2.0, output_per_million: 8.0}"
BOTH = ("--judge-model", "judges.py:flaky", "--judge-model", "judges.py:strict")


@pytest.fixture
def judged_desk(desk: Path) -> Path:
    """The same, with asks for model judges and a label."""
    (desk / "judges.py").write_text(JUDGES, encoding="utf-8")
    text = (desk / "support-desk.yaml").read_text(encoding="utf-8").rstrip("\n")
    text = text.replace("scenarios: s", f"judge: {{kind: model, prices: {{{FLAKY_PRICE}}}}}\nscenarios: s")
    text += "\n    label: no\n  - {scenario: delivery, after: 20, question: How?, judge: {question: Is all polite?}}\n"
    (desk / "support-desk.yaml").write_text(text, encoding="utf-8")
    return desk


def test_model_judges_from_end_to_end(judged_desk: Path) -> None:
    result = played(
        "support-desk.yaml",
        *BOTH,
        "--repeat",
        "3",
        "--markdown",
        "m.md",
        "--html",
        "h.html",
        "--junit",
        "j.xml",
        "--history",
        "history.jsonl",
    )
    assert result.setup["judges"] == "judges.py:flaky (prompt 1), judges.py:strict (prompt 1)"
    assert result.judging is not None
    flaky, strict = result.judging.models
    assert (strict.calls, strict.verdicts, strict.unscored, strict.cost) == (12, 12, {}, None)
    assert (flaky.calls, flaky.verdicts) == (9 + 3 * 3, 9)
    assert flaky.unscored == {"judges.py:flaky: the reply has no verdict": 3}
    assert flaky.cost == pytest.approx((2 * flaky.tokens_in + 8 * flaky.tokens_out) / 1e6, abs=1e-6)
    pairs = {(one.first, one.second): one for one in result.judging.agreement}
    assert list(pairs) == [
        ("code", "label"),
        ("code", "judges.py:flaky"),
        ("code", "judges.py:strict"),
        ("label", "judges.py:flaky"),
        ("label", "judges.py:strict"),
        ("judges.py:flaky", "judges.py:flaky"),
        ("judges.py:flaky", "judges.py:strict"),
        ("judges.py:strict", "judges.py:strict"),
    ]
    assert (pairs["code", "label"].agree, pairs["code", "label"].cases) == (0, 1)
    assert (pairs["code", "judges.py:strict"].table, pairs["code", "judges.py:strict"].agree) == (
        (6, 3, 0, 0),
        0.666667,
    )
    assert pairs["judges.py:strict", "judges.py:strict"].kappa == 1
    judged = next(one for one in result.metrics if one.name == "judged")
    assert (judged.checks, judged.scenarios, judged.within_sd is not None) == (7, 2, True)
    assert len((judged_desk / "calls.txt").read_text()) == 12
    where = "support-desk/delivery, after message 20: By when"
    for name in ("m.md", "h.html", "j.xml"):
        text = (judged_desk / name).read_text(encoding="utf-8")
        assert "code and judges.py:strict: agree in 66.67 % over 3 asks" in text.replace("\\", "")
        assert where in text
    assert EvalResult.model_validate_json((judged_desk / "history.jsonl").read_text()) == result


def verdicts(result: EvalResult) -> dict[str, Any]:
    """Values without the tokens of prompts: the builder marks what it recalls with a number of its own each time."""
    told = values(result)
    for model in told["judging"]["models"]:
        assert 1_000 < model.pop("tokens_in") < 20_000
        model.pop("cost")
    return told


def test_verdicts_are_kept_and_not_paid_for_twice(judged_desk: Path) -> None:
    whole = played("support-desk.yaml", *BOTH, "--repeat", "2", "--resume", "r.jsonl")
    paid = (judged_desk / "calls.txt").read_text()
    again = played("support-desk.yaml", *BOTH, "--repeat", "2", "--resume", "r.jsonl")
    assert (values(again), (judged_desk / "calls.txt").read_text()) == (values(whole), paid)
    for number in ("1", "2"):
        played("support-desk.yaml", *BOTH, "--repeat", "2", "--shard", f"{number}/2", "--resume", f"{number}.jsonl")
    merged = EvalResult.model_validate_json(run("merge", "1.jsonl", "2.jsonl", "--json").stdout)
    assert verdicts(merged) == verdicts(whole), "the same verdicts and agreement, however it was split"
    (judged_desk / "judges.py").write_text(JUDGES.replace("W-10472", "W-1"), encoding="utf-8")
    told = run("run", "support-desk.yaml", *BOTH, "--repeat", "2", "--resume", "r.jsonl", code=2).stderr
    assert "the record of another run: judges was" in told


def test_processes_change_no_verdict(judged_desk: Path) -> None:
    one = played("support-desk.yaml", *BOTH, "--repeat", "2")
    two = run("run", "support-desk.yaml", *BOTH, "--repeat", "2", "--workers", "2", "--json").stdout
    assert verdicts(EvalResult.model_validate_json(two)) == verdicts(one)


@pytest.mark.parametrize(
    ("bound", "told"),
    [("max_calls: 5", "max_calls 5 is reached"), ("max_cost: 0.0000001", "max_cost 1e-07 could be passed")],
)
def test_a_bound_leaves_the_rest_unscored_and_says_so(bound: str, told: str, judged_desk: Path) -> None:
    text = (judged_desk / "support-desk.yaml").read_text(encoding="utf-8")
    (judged_desk / "support-desk.yaml").write_text(
        text.replace("kind: model,", f"kind: model, {bound},"), encoding="utf-8"
    )
    args = ("support-desk.yaml", "--judge-model", "judges.py:flaky")
    result = played(*args, "--repeat", "3")
    assert result.judging is not None
    (model,) = result.judging.models
    assert model.calls == (5 if "calls" in bound else 0)
    assert (
        model.unscored[told] + model.verdicts + model.unscored.get("judges.py:flaky: the reply has no verdict", 0) == 12
    )
    assert f"unscored: {told}" in " ".join(run("run", *args, "--repeat", "3", "--workers", "1").stdout.split())


def test_a_file_alone_asks_no_model_and_says_so(judged_desk: Path) -> None:
    done = run("run", "support-desk.yaml", "--workers", "1")
    told = " ".join(done.stdout.split())
    assert "judged: 4 unscored: no model was named to judge it (--judge-model)" in told
    assert "code and label: agree in 0 % over 1 ask" in told
    assert not (judged_desk / "calls.txt").exists()


JUDGED_WRONG = {
    "a shipped suite": (("run", "verbatim", *BOTH), "--judge-model: verbatim is judged by code alone"),
    "a judge twice": (("run", "support-desk.yaml", *BOTH, *BOTH), "judge judges.py:flaky: named twice"),
    "no such judge": (("run", "support-desk.yaml", "--judge-model", "judges.py:nobody"), "judges.py has no 'nobody'"),
    "no judge": (
        ("run", "support-desk.yaml", "--judge-model", "gpt-4o"),
        "unknown judge 'gpt-4o'; write a module:func",
    ),
    "an address alone": (("run", "support-desk.yaml", "--judge-model", "https://h/v1"), "write https://HOST/v1#MODEL"),
    "no repeats": (("run", "support-desk.yaml", "--repeat", "0"), "'--repeat': 0 is not in the range"),
    "unpriced": (("run", "bounded.yaml", *BOTH), "max_cost without a price of judges.py:strict"),
    "nothing to ask": (("run", "plain.yaml", *BOTH), "no ask of plain.yaml is put to a model"),
}


@pytest.mark.parametrize(("args", "told"), JUDGED_WRONG.values(), ids=JUDGED_WRONG.keys())
def test_judges_that_were_asked_for_wrongly_are_refused_before_anything_is_played(
    args: tuple[str, ...], told: str, judged_desk: Path
) -> None:
    text = (judged_desk / "support-desk.yaml").read_text(encoding="utf-8")
    (judged_desk / "bounded.yaml").write_text(
        text.replace("kind: model,", "kind: model, max_cost: 1.0,"), encoding="utf-8"
    )
    shutil.copy(EXAMPLES / "support-desk.yaml", judged_desk / "plain.yaml")
    result = run(*args, code=2)
    assert told in result.stderr
    assert not result.stdout
    assert not (judged_desk / "calls.txt").exists()


SLOW = """\
import os, time

def newest(conversation):
    time.sleep(float(os.environ.get("PAUSE_SECONDS", "0")))
    return conversation.messages[-6:]
"""


def test_a_killed_run_goes_on_where_it_ended(desk: Path) -> None:
    rows = [json.loads(line) for line in (desk / "support-desk.jsonl").read_text(encoding="utf-8").splitlines()]
    many = [row | {"id": f"{row['id']}{number}"} for number in range(MANY // 2) for row in rows]
    (desk / "support-desk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in many), encoding="utf-8")
    text = (desk / "support-desk.yaml").read_text(encoding="utf-8").partition("asks:")[0]
    (desk / "support-desk.yaml").write_text(text, encoding="utf-8")
    (desk / "slow.py").write_text(SLOW, encoding="utf-8")
    args = ["run", "support-desk.yaml", "--subject", "slow.py:newest", "--resume", "r.jsonl", "--workers", "1"]
    program = "from ctxsteward.console.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "evals", *args],
        cwd=desk,
        env=os.environ | {"PYTHONPATH": SOURCES, "PAUSE_SECONDS": "0.05"},
    )
    record = desk / "r.jsonl"
    until = time.monotonic() + 60
    while time.monotonic() < until and (not record.exists() or record.read_bytes().count(b"\n") < 4):
        time.sleep(0.02)
    process.kill()
    process.wait()
    kept = record.read_bytes()
    count = kept.count(b"\n") - 1
    assert 3 <= count < MANY, "the run must have been killed on its way"

    result = EvalResult.model_validate_json(run(*args, "--json").stdout)
    assert record.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1]), "what was finished is not played again"
    assert record.read_bytes().count(b"\n") == 1 + MANY
    assert result.scenarios == MANY
    assert values(result) == values(played("support-desk.yaml", "--subject", "slow.py:newest"))


def test_transcripts_become_a_suite_that_is_played_and_kept_by_people(desk: Path) -> None:
    args = ("from-transcripts", str(Path(__file__).parents[2] / "console/ctxsteward/console/data/demo.jsonl"))
    told = json.loads(run(*args, "--out", "mine.yaml", "--max-messages", "100", "--json").stdout)
    assert told["suite"] == "mine"
    assert told["conversations"] >= 2
    assert told["asks"] >= 2
    assert [Path(path).name for path in told["files"]] == ["mine.yaml", "mine.jsonl"]
    assert played("mine.yaml", "--subject", "newest-tokens").gates == ()
    assert "mine.yaml: a draft is held to no gates; read its asks" in run("run", "mine.yaml", "--gate", code=2).stderr
    text = (desk / "mine.yaml").read_text(encoding="utf-8")
    (desk / "mine.yaml").write_text(text.replace("status: draft", "status: kept"), encoding="utf-8")
    assert {gate.metric for gate in played("mine.yaml", "--gate").gates} == {
        "shown",
        "reachable",
        "within_budget",
        "valid",
    }
    assert "conversations" in run(*args, "--out", "mine.yaml", "--overwrite").stdout


def test_transcripts_of_which_nothing_can_be_asked_say_so(desk: Path) -> None:
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Well, {'no' * (n % 3)} then."} for n in range(12)]
    (desk / "idle.jsonl").write_text("\n".join(map(json.dumps, said)), encoding="utf-8")
    told = " ".join(run("from-transcripts", "idle.jsonl", "--out", "asks.yaml").stderr.split())
    assert "asks.yaml: no ask could be drafted; write asks of your own" in told


@pytest.mark.parametrize("read", ["talk.jsonl", "."])
def test_no_draft_is_written_over_a_transcript_that_it_is_made_from(read: str, desk: Path) -> None:
    before = json.dumps([{"role": "user", "content": "The order is W-1."}])
    (desk / "talk.jsonl").write_text(before, encoding="utf-8")
    said = run("from-transcripts", read, "--out", "talk.yaml", "--overwrite", code=2).stderr
    assert "--out talk.yaml: talk.jsonl is among the transcripts that are read; name another" in said
    assert (desk / "talk.jsonl").read_text(encoding="utf-8") == before


def test_runs_of_a_suite_file_are_compared_by_its_name(desk: Path) -> None:
    for name in ("ours", "window"):
        (desk / name).write_text(played("support-desk.yaml", "--subject", name).model_dump_json(), encoding="utf-8")
    told = run("compare", "ours", "window", "--meant", "subject", "--suite", "support-desk").stdout
    assert "orders_shown" in told
