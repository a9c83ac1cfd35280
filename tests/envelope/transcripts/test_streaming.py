"""A JSONL file of messages is read in bounded memory, again and again."""

from __future__ import annotations

import json
import os
import threading
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from ctxsteward.envelope.transcripts.files import read_transcript, read_transcripts

from ...examples import SOAK

MESSAGES = 48_000 if SOAK else 4_000
PEAK_BYTES = 2 * 1024 * 1024


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streaming") / "long.jsonl"
    call = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    wires = [
        {"role": "user", "content": "What is it? " * 300},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "It is so. " * 600},
        {"role": "assistant", "content": "So it is. " * 300},
    ]
    block = "".join(json.dumps(wire) + "\n" for wire in wires) * 250
    with path.open("w") as stream:
        stream.write('{"role": "system", "content": "Be brief."}\n')
        for _ in range(MESSAGES // 1000):
            stream.write(block)
    return path


def test_a_file_is_read_in_a_fraction_of_its_size(long_file: Path) -> None:
    assert long_file.stat().st_size > 6 * PEAK_BYTES
    tracemalloc.start()
    try:
        transcript = read_transcript(long_file)
        count = sum(1 for _ in transcript.entries())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == MESSAGES
    assert peak < PEAK_BYTES
    assert transcript.system == ("Be brief.",)
    assert [tool["function"]["name"] for tool in transcript.tools] == ["look_up"]


def test_entries_start_anew_each_time_and_may_be_left_halfway(long_file: Path) -> None:
    transcript = read_transcript(long_file)
    first = list(islice(transcript.entries(), 5))
    one, other = transcript.entries(), transcript.entries()
    assert [next(one) for _ in range(5)] == [next(other) for _ in range(5)] == first


def test_a_pipe_is_read_although_it_cannot_be_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    message = json.dumps({"role": "user", "content": "hi"}) + "\n"
    writer = threading.Thread(target=path.write_text, args=(message * 3,))
    writer.start()
    (transcript,) = read_transcripts(path)
    writer.join()
    assert len(list(transcript.entries())) == len(list(transcript.entries())) == 3
