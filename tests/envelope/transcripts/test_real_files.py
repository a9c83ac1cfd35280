"""Every real file reads, with the counts that the file itself holds. Skipped where the data is not there."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope.transcripts.files import read_transcript, read_transcripts

from ...needs import PUBLIC_DATA

DATA = Path(__file__).parents[3] / "../shared/data"
TAU_BENCH = DATA / "tau_bench_airline/runs_even_tasks.jsonl"
LOCOMO = DATA / "locomo/locomo_dev.json"
TRAJECTORIES = sorted((DATA / "swe_agent").glob("*.traj"))

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=PUBLIC_DATA)


@needs_data
def test_every_tau_bench_run_is_verbatim_without_its_system_message() -> None:
    runs = [json.loads(line) for line in TAU_BENCH.read_text().splitlines()]
    transcripts = list(read_transcripts(TAU_BENCH))
    assert len(transcripts) == len(runs) == len({transcript.session for transcript in transcripts})
    for run, transcript in zip(runs, transcripts, strict=True):
        assert transcript.format == "tau-bench"
        assert transcript.session == f"runs_even_tasks-task{run['task_id']}-trial{run['trial']}"
        assert [*transcript.system, *(entry.wire for entry in transcript.entries())] == [
            run["traj"][0]["content"],
            *run["traj"][1:],
        ]
        names = [call["function"]["name"] for message in run["traj"] for call in message.get("tool_calls") or ()]
        assert [tool["function"]["name"] for tool in transcript.tools] == list(dict.fromkeys(names))


@needs_data
def test_every_locomo_turn_has_its_id_its_time_and_its_speaker() -> None:
    samples = json.loads(LOCOMO.read_text())
    transcripts = list(read_transcripts(LOCOMO))
    assert [one.session for one in transcripts] == [f"locomo_dev-{sample['sample_id']}" for sample in samples]
    for sample, transcript in zip(samples, transcripts, strict=True):
        conversation = sample["conversation"]
        turns = {turn["dia_id"]: turn for value in conversation.values() if isinstance(value, list) for turn in value}
        entries = list(transcript.entries())
        assert len(entries) == len(turns)
        for entry in entries:
            turn = turns.pop(entry.id)
            is_user = turn["speaker"] == conversation["speaker_a"]
            assert entry.wire["role"] == ("user" if is_user else "assistant")
            caption = f" [image: {turn['blip_caption']}]" if "blip_caption" in turn else ""
            assert entry.wire["content"] == f"{turn['speaker']}: {turn['text']}{caption}"
            assert entry.principal == (turn["speaker"] if is_user else None)
        times = [entry.ts for entry in entries if entry.ts is not None]
        assert len(times) == len(entries)
        assert times == sorted(times)


@needs_data
@pytest.mark.parametrize("path", TRAJECTORIES, ids=lambda path: path.stem[:24])
def test_every_swe_agent_run_has_one_task_and_a_result_for_each_observation(path: Path) -> None:
    history: list[dict[str, Any]] = json.loads(path.read_text())["history"]
    transcript = read_transcript(path)
    entries = list(transcript.entries())
    assert transcript.format == "swe-agent"
    assert list(transcript.system) == [history[0]["content"]]
    assert len(entries) == len(history) - 1

    demos = sum(1 for step in history if step.get("is_demo"))
    phases = Counter(entry.phase for entry in entries)
    assert phases == ({"demo": demos, "task": len(entries) - demos} if demos else {None: len(entries)})
    users = [entry for entry in entries if entry.wire["role"] == "user" and entry.phase != "demo"]
    assert [user.wire["content"] for user in users] == [history[1 + demos]["content"]]

    calls = [call["id"] for entry in entries for call in entry.wire.get("tool_calls", ())]
    results = [entry.wire["tool_call_id"] for entry in entries if entry.wire["role"] == "tool"]
    assert len(calls) == sum(1 for step in history if step["role"] == "assistant" and step["action"].strip())
    assert results == calls[: len(results)]
    assert len(calls) - len(results) in (0, 1)
    assert not {key for entry in entries for key in entry.wire} - {"role", "content", "tool_calls", "tool_call_id"}


@needs_data
def test_the_folder_of_trajectories_is_not_empty() -> None:
    assert TRAJECTORIES
