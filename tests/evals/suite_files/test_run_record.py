"""Runs that are kept as they go: what another run finds of them, what is refused, and parts that make one whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ctxsteward.evals.subjects.registry import subject_named
from ctxsteward.evals.suite_files.run_record import RunHead, RunRecord, Shard, merged, merged_result, run_head
from ctxsteward.evals.suites.gates import Gate
from ctxsteward.evals.suites.kit import EvalSuite, Metric, Score
from ctxsteward.evals.suites.kit.suite import ScenarioResult, ScoreTally, Setup
from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import ProfileDocument

SUITE = EvalSuite(
    name="desk",
    about="What was said.",
    metrics=(Metric(name="shown", about="Values that are shown."),),
    scenarios=7,
    make=lambda draw: None,
    play=lambda *_: iter(()),  # type: ignore[arg-type, return-value]
)
IDS = [f"desk/{number}" for number in range(7)]


def head(
    ids: Sequence[str] = IDS, setup: Setup | None = None, content: str = "abc", revision: str | None = None
) -> RunHead:
    gates = {"shown": (Gate(rule="at_least", bound=0.5),)}
    return run_head(
        SUITE, ids, setup or Setup(), split="ci", content=content, gates=gates, revision=revision, reproduce="again"
    )


def scenario(id: str, ok: bool = True, error: str | None = None) -> ScenarioResult:
    tally = ScoreTally(count=1, total=float(ok), misses=[] if ok else [Score("shown", 0.0, "turn 3", "not shown")])
    tally.unscored["no lookup"] += 1
    return ScenarioResult(id=id, turns=5, messages=10, builds=4, cpu_seconds=0.5, tallies={"shown": tally}, error=error)


def test_what_was_kept_is_found_as_it_was(tmp_path: Path) -> None:
    record = RunRecord.open(tmp_path / "r.jsonl", [head()])
    kept = [scenario(IDS[2], ok=False), scenario(IDS[0], error="KeyError: 'x'")]
    for one in kept:
        record.keep("desk", one)
    again = RunRecord.open(tmp_path / "r.jsonl", [head()])
    assert again.finished("desk", IDS) == [kept[1], kept[0]]
    assert again.finished("desk", IDS[1:2]) == []
    assert len((tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.parametrize("cut", range(0, 700, 23))
def test_a_kill_at_any_byte_loses_the_last_scenario_at_most(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record = RunRecord.open(path, [head()])
    for id in IDS[:3]:
        record.keep("desk", scenario(id))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - cut])
    whole = data[: len(data) - cut].count(b"\n") - 1
    again = RunRecord.open(path, [head()])
    assert len(again.finished("desk", IDS)) == max(0, whole)
    again.keep("desk", scenario(IDS[3]))
    assert [one.id for one in RunRecord.open(path, [head()]).finished("desk", IDS)] == [*IDS[: max(0, whole)], IDS[3]]


OTHERS = {
    "other scenarios": (head(IDS[:3]), "scenarios was 7 ("),
    "other content": (head(content="abd"), "content of the suite was abc and is abd"),
    "another revision": (head(revision="4f2a9c1"), "revision was not set and is 4f2a9c1"),
    "another tokenizer": (head(setup=Setup(tokenizer="cl100k_base")), "tokenizer was o200k_base and is cl100k_base"),
    "another subject": (head(setup=Setup(subject=subject_named("window"))), "subject was ours and is window"),
    "another profile": (head(setup=Setup(profile=ProfileDocument(name="p"))), "profile was not set and is "),
    "another version": (
        head().model_copy(update={"fingerprint": head().fingerprint | {"product": "ctxsteward 9"}}),
        "and is ctxsteward 9",
    ),
}


@pytest.mark.parametrize(("other", "told"), OTHERS.values(), ids=OTHERS.keys())
def test_a_record_of_something_else_is_refused_with_what_differs(other: RunHead, told: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    RunRecord.open(path, [head()])
    with pytest.raises(InputError, match="the record of another run") as caught:
        RunRecord.open(path, [other])
    assert told in str(caught.value)
    assert path.read_bytes().count(b"\n") == 1


def test_another_text_in_the_file_of_a_subject_is_another_subject(tmp_path: Path) -> None:
    file = tmp_path / "context.py"
    file.write_text("def newest(conversation):\n    return conversation.messages[-3:]\n", encoding="utf-8")
    setup = Setup(subject=subject_named(f"{file}:newest"))
    RunRecord.open(tmp_path / "r.jsonl", [head(setup=setup)])
    file.write_text("def newest(conversation):\n    return conversation.messages[-4:]\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"subject was .*context\.py:newest"):
        RunRecord.open(tmp_path / "r.jsonl", [head(setup=setup)])


FOREIGN = {
    "somebody's notes": (b"buy milk", "not a run record"),
    "a history of results": (b'{"schema_version": 1}\n', "not a run record"),
    "a line that is none": (b'{"record":"run"}\n', "r.jsonl:1: `name`: field required"),
    "broken JSON": (b'{"record":"run",,}\n', "r.jsonl:1: not a line of a run record"),
}


@pytest.mark.parametrize(("data", "told"), FOREIGN.values(), ids=FOREIGN.keys())
def test_a_file_of_something_else_is_refused_and_left_alone(data: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        RunRecord.open(path, [head()])
    assert told in str(caught.value)
    assert path.read_bytes() == data


# -- parts -------------------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 9))
def test_parts_are_disjoint_even_and_the_whole(count: int, of: int) -> None:
    ids = [f"s/{number}" for number in range(count)]
    parts = [Shard(number, of).of_ids(ids) for number in range(1, of + 1)]
    assert sorted(id for part in parts for id in part) == sorted(ids)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["0/4", "5/4", "2", "2/", "/4", "a/b", "-1/4", "2/4/6", "1/1001"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write 2/4 for the second of four"):
        Shard.parse(text)


def parts(folder: Path, *of: Sequence[str], heads: Sequence[RunHead] = ()) -> list[Path]:
    paths = [folder / f"{number}.jsonl" for number in range(len(of))]
    for number, (path, ids) in enumerate(zip(paths, of, strict=True)):
        record = RunRecord.open(path, [heads[number] if heads else head()])
        for id in ids:
            record.keep("desk", scenario(id, ok=id != IDS[4]))
    return paths


def test_merged_parts_are_what_one_run_would_have_been(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (whole,) = merged(parts(tmp_path / "whole", IDS))
    (run,) = merged(parts(tmp_path, IDS[4:], IDS[:4]))
    assert run == whole
    gates = {"shown": (Gate(rule="at_least", bound=0.9),)}
    result = merged_result(run, gates, "2026-11-23")
    assert result == merged_result(whole, gates, "2026-11-23")
    assert (result.scenarios, result.metrics[0].value, result.passed) == (7, round(6 / 7, 6), False)
    assert [miss.scenario for miss in result.misses] == [IDS[4]]
    assert result.reproduce == "again"


def test_a_scenario_that_is_in_no_part_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="desk: 2 of 7 scenarios are in no part: desk/5, desk/6; run the parts"):
        merged(parts(tmp_path, IDS[:3], IDS[3:5]))


def test_parts_of_two_runs_are_no_whole(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1\.jsonl: is from another run than .*0.jsonl: content of the suite was abc"):
        merged(parts(tmp_path, IDS[:3], IDS[3:], heads=[head(), head(content="abd")]))


def test_nothing_is_not_merged(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(InputError, match="the file is empty"):
        merged([tmp_path / "empty.jsonl"])
    with pytest.raises(InputError, match="no such file or directory"):
        merged([tmp_path / "none.jsonl"])


def test_a_head_reads_back_as_it_was_written() -> None:
    written = head(setup=replace(Setup(), model="gpt-4o"))
    assert RunHead.model_validate(json.loads(written.model_dump_json())) == written
