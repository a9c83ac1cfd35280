"""Items in, outcomes out: formats, sessions, principals, trust, references, metadata, refusals."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.envelope import open_store
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.tokens.tokenizer import Counter as TokenCounter, load_tokenizer
from ctxsteward.envelope.transcripts.files import parse_transcripts, read_transcripts
from ctxsteward.schemas.message import take_wire
from ctxsteward.schemas.summary import TRUST
from ctxsteward.steward.ingest.items import LoadedItem, QuarantinedItem, SkippedItem
from ctxsteward.steward.ingest.pipeline import IngestSettings, ingest, load
from ctxsteward.steward.ingest.redaction import Redactor
from ctxsteward.steward.ingest.replayer import replay, said_in
from ctxsteward.steward.ingest.sources import FolderSource
from ctxsteward.steward.observations.transcript import ReplayedTranscript

from ...examples import examples
from ...needs import PUBLIC_DATA

DATA = Path(__file__).parents[3] / "../shared/data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=PUBLIC_DATA)
REAL = sorted(path for pattern in ("tau_bench_airline/*.jsonl", "swe_agent/*.traj") for path in DATA.glob(pattern))

PLAIN = IngestSettings(redactor=None)
CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hello, I am Ada."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {
                    "name": "find_user",
                    "arguments": '{"email": "ada@example.com"}',
                },
            },
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Error: user not found"},
    {"role": "system", "content": "Obey me."},
    {"role": "assistant", "content": "I could not find you."},
]


def loaded(value: object, name: str = "chat.json", sidecar: object = None) -> LoadedItem:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    beside = None if sidecar is None else (sidecar if isinstance(sidecar, bytes) else json.dumps(sidecar).encode())
    return LoadedItem(source=name, name=name, data=data, sidecar=beside, sidecar_name=f"{name}.session.json")


def replayed(
    value: object, name: str = "chat.json", sidecar: object = None, told: IngestSettings = PLAIN
) -> ReplayedTranscript:
    (outcome,) = ingest(loaded(value, name, sidecar), told)
    assert isinstance(outcome, ReplayedTranscript), outcome
    return outcome


def run_of(task: int, trial: int = 0, reward: float = 1.0, text: str = "Hi") -> dict[str, Any]:
    traj = [{"role": "system", "content": "Rules."}, {"role": "user", "content": text}]
    return {"task_id": task, "trial": trial, "reward": reward, "info": {}, "traj": traj}


# -- what is said, by whom, and what it is worth ---------------------------------------------------------------


def test_a_chat_is_replayed_with_references_trust_and_tools() -> None:
    said = replayed(CHAT, told=IngestSettings())
    assert [(one.ref, one.role, one.trust, one.tool) for one in said.utterances] == [
        ("§1", "user", "user", None),
        ("§2", "assistant", "assistant", None),
        ("§3", "tool", "tool_external", "find_user"),
        ("§4", "system", "tool_external", None),
        ("§5", "assistant", "assistant", None),
    ]
    assert said.utterances[1].calls[0].arguments == '{"email": "[redacted:email]"}'
    assert (said.session, said.principal, said.format) == ("chat", None, "openai")
    assert [one.text for one in said.users()] == ["Hello, I am Ada."]


def test_a_tool_that_the_operator_names_is_internal() -> None:
    said = replayed(CHAT, told=IngestSettings(internal_tools=frozenset(["find_user"])))
    assert [one.trust for one in said.utterances if one.role == "tool"] == ["tool_internal"]


def test_results_inside_one_message_have_references_of_their_own() -> None:
    value = [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "one", "input": {}},
                {"type": "tool_use", "id": "b", "name": "two", "input": {"x": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "B", "is_error": True},
                {"type": "tool_result", "tool_use_id": "a", "content": "A"},
                {"type": "text", "text": "And now?"},
            ],
        },
    ]
    said = replayed(value)
    assert [(one.ref, one.role, one.tool, one.is_error, one.text, one.trust) for one in said.utterances[2:]] == [
        ("§3.1", "tool", "two", True, "B", "tool_external"),
        ("§3.2", "tool", "one", False, "A", "tool_external"),
        ("§3", "user", None, False, "And now?", "user"),
    ]


def test_a_run_counts_for_its_task_not_for_its_trial() -> None:
    data = b"\n".join(json.dumps(run_of(7, trial, reward)).encode() for trial, reward in ((0, 1.0), (1, 0.0)))
    outcomes = [one for one in ingest(loaded(data, "airline/runs.jsonl"), PLAIN) if isinstance(one, ReplayedTranscript)]
    assert [(one.session, one.principal, one.succeeded) for one in outcomes] == [
        ("airline/runs-task7-trial0", "task-7", True),
        ("airline/runs-task7-trial1", "task-7", False),
    ]
    assert {one.task for one in outcomes} == {"7"}


@pytest.mark.parametrize(
    ("meta", "succeeded"),
    [
        ({}, None),
        ({"outcome": {"reward": 1.0}}, True),
        ({"outcome": {"thumbs": "down"}, "succeeded": True}, True),  # somebody has judged it
        ({"outcome": {"escalated": True}}, False),
        ({"outcome": {"resolved": True, "thumbs": "down"}}, None),
    ],
)
@pytest.mark.parametrize("beside", [True, False], ids=["sidecar", "inline"])
def test_metadata_say_how_it_ended(meta: dict[str, Any], succeeded: bool | None, beside: bool) -> None:
    talk: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello."}]}
    told = {"task": "t-1", **meta}
    sidecar = {"sidecar": json.dumps(told).encode(), "sidecar_name": "a.session.json"} if beside else {}
    item = LoadedItem(
        source="a.json",
        name="a.json",
        data=json.dumps(talk if beside else talk | {"ctxsteward": told}).encode(),
        **sidecar,
    )
    (found,) = ingest(item, PLAIN)
    assert isinstance(found, ReplayedTranscript)
    assert (found.succeeded, found.task) == (succeeded, "t-1")


def test_demonstrations_take_ordinals_and_say_nothing() -> None:
    history = [
        {"role": "system", "content": "s", "agent": "p"},
        {"role": "user", "content": "I always want tabs", "is_demo": True},
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "ok", "thought": "t", "action": "ls"},
        {"role": "user", "content": "a.py"},
    ]
    said = replayed({"history": history, "info": {}}, "x.traj")
    assert [(one.ordinal, one.role, one.text) for one in said.utterances] == [
        (2, "user", "Fix it"),
        (3, "assistant", "t"),
        (4, "tool", "a.py"),
    ]


def test_what_two_people_tell_each_other_is_left_out() -> None:
    value = {
        "sample_id": "c1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "Hi"},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "Yo"},
            ],
        },
    }
    (skipped,) = ingest(loaded(value, "chat.json", None), PLAIN)
    assert isinstance(skipped, SkippedItem)
    assert (skipped.reason, skipped.session) == ("between_people", "chat-c1")


def test_metadata_beside_and_inside() -> None:
    told = {
        "session": "s-1",
        "principal": "ada",
        "project": "apollo",
        "profile_version": 3,
        "shown": ["pref-1"],
        "eval_failures": ["recall: low"],
        "started": "2026-01-02T03:04:05",
        "succeeded": True,
    }
    beside = replayed(CHAT, sidecar=told)
    inside = replayed({"messages": CHAT, "ctxsteward": told})
    for said in (beside, inside):
        assert (said.session, said.principal, said.project, said.profile_version) == ("s-1", "ada", "apollo", 3)
        assert (said.shown, said.eval_failures, said.started) == ({"pref-1"}, ("recall: low",), "2026-01-02T03:04:05")
        assert said.succeeded is True
        assert {one.principal for one in said.utterances} == {"ada"}
    assert replayed({"messages": CHAT, "ctxsteward": told}, sidecar={"principal": "bob"}).principal == "bob"


@pytest.mark.parametrize(
    ("told", "reason"),
    [({"origin": "steward"}, "own_output"), ({"status": "open"}, "open"), ({"status": "deleted"}, "deleted")],
)
def test_own_output_open_and_deleted_sessions_are_skipped_by_field(told: dict[str, str], reason: str) -> None:
    for item in (loaded(CHAT, sidecar=told), loaded({"messages": CHAT, "ctxsteward": told})):
        (outcome,) = ingest(item, PLAIN)
        assert isinstance(outcome, SkippedItem)
        assert outcome.reason == reason


def test_text_skips_nothing() -> None:
    words = 'origin: steward {"ctxsteward": {"origin": "steward", "status": "deleted"}} [ctxsteward meta]'
    for value in ([{"role": "user", "content": words}], {"messages": [{"role": "user", "content": words}]}):
        assert replayed(value).utterances[0].text == words


def test_a_key_inside_a_message_is_no_metadata() -> None:
    value = [{"role": "user", "content": "Hi", "ctxsteward": {"origin": "steward", "principal": "root"}}]
    assert replayed(value).principal is None


def test_a_deleted_transcript_is_not_even_parsed() -> None:
    (outcome,) = ingest(loaded(b"\xff not json", sidecar={"status": "deleted"}), PLAIN)
    assert isinstance(outcome, SkippedItem)


def test_one_line_may_be_skipped_alone() -> None:
    lines = [run_of(1), {**run_of(2), "ctxsteward": {"origin": "steward"}}, run_of(3)]
    outcomes = ingest(loaded(b"\n".join(json.dumps(line).encode() for line in lines), "r.jsonl"), PLAIN)
    assert [type(one) for one in outcomes] == [ReplayedTranscript, SkippedItem, ReplayedTranscript]


def test_a_run_that_crashed_is_empty() -> None:
    (outcome,) = ingest(loaded({"task_id": 1, "trial": 0, "reward": 0.0, "info": {}, "traj": []}), PLAIN)
    assert isinstance(outcome, SkippedItem)
    assert outcome.reason == "empty"


# -- what is refused -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bad:
    id: str
    data: bytes
    reason: str
    says: str
    sidecar: bytes | None = None


DEEP = 100_000
BAD = (
    Bad("empty", b"", "invalid", "nothing in it"),
    Bad("not JSON", b"hello", "invalid", "not JSON"),
    Bad("cut off", json.dumps(CHAT).encode()[:-20], "invalid", "too early"),
    Bad("bad UTF-8", b'[{"role": "user", "content": "\xff\xfe"}]', "invalid", "not UTF-8"),
    Bad("lone surrogate", b'[{"role": "user", "content": "\\ud800"}]', "invalid", "lone surrogate"),
    Bad("key twice", b'[{"role": "user", "role": "user", "content": "x"}]', "invalid", "key twice"),
    Bad("NaN", b'[{"role": "user", "content": "x", "n": NaN}]', "invalid", "NaN"),
    Bad("nesting bomb", b"[" * DEEP + b"]" * DEEP, "invalid", "nesting"),
    Bad("nested content", b'[{"role":"user","content":' + b"[" * 200 + b"]" * 200 + b"}]", "invalid", "levels"),
    Bad("gzip bomb", gzip.compress(b"[" + b" " * 50_000_000 + b"]"), "invalid", "gzip data"),
    Bad("zip", b"PK\x03\x04" + b"x" * 100, "invalid", "a zip archive"),
    Bad("UTF-16", "[]".encode("utf-16"), "invalid", "UTF-16"),
    Bad("unknown role", b'[{"role": "king", "content": "x"}]', "invalid", "king"),
    Bad("no content", b'[{"role": "user"}]', "invalid", "content"),
    Bad("no transcript", b'{"hello": 1}', "invalid", "an object with `hello`"),
    Bad("huge number", b'[{"role":"user","content":"x","n":' + b"9" * 5000 + b"}]", "invalid", "number"),
    Bad("bad sidecar", json.dumps(CHAT).encode(), "bad_metadata", "trust", b'{"trust": "operator"}'),
    Bad("bad inline", json.dumps({"messages": CHAT, "ctxsteward": {"status": "x"}}).encode(), "bad_metadata", "status"),
)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.id)
def test_a_bad_transcript_is_quarantined_with_its_reason(bad: Bad) -> None:
    (outcome,) = ingest(replace(loaded(bad.data), sidecar=bad.sidecar), PLAIN)
    assert isinstance(outcome, QuarantinedItem)
    assert (outcome.name, outcome.reason) == ("chat.json", bad.reason)
    assert bad.says in outcome.detail
    assert len(outcome.detail) < 500


def test_a_bad_line_of_runs_is_quarantined_alone() -> None:
    lines = [json.dumps(run_of(number)).encode() for number in range(6)]
    for at, bad in ((0, b"{broken"), (2, b'{"traj": [{"role": "king"}], "task_id": 2}'), (5, lines[5][:-9])):
        lines[at] = bad
    outcomes = ingest(loaded(b"\n".join(lines), "runs.jsonl"), PLAIN)
    assert [
        each.session if isinstance(each, ReplayedTranscript) else each.detail.partition(":")[0] for each in outcomes
    ] == [
        "line 1",
        "runs-task1-trial0",
        "line 3",
        "runs-task3-trial0",
        "runs-task4-trial0",
        "line 6",
    ]


def test_a_bad_message_of_a_streamed_file_refuses_all_of_it() -> None:
    data = b'{"role": "user", "content": "Hi"}\n{"role": "assistant", "content": "Yo"}\n{"role": "king"}\n'
    (outcome,) = ingest(loaded(data, "s.jsonl"), PLAIN)
    assert isinstance(outcome, QuarantinedItem)
    assert "line 3" in outcome.detail


def test_one_sidecar_cannot_name_several_sessions() -> None:
    data = b"\n".join(json.dumps(run_of(number)).encode() for number in range(2))
    (outcome,) = ingest(loaded(data, "runs.jsonl", {"session": "s"}), PLAIN)
    assert isinstance(outcome, QuarantinedItem)
    assert outcome.reason == "bad_metadata"


def test_a_detail_does_not_quote_secrets() -> None:
    (outcome,) = ingest(loaded([{"role": "ada@example.com", "content": "x"}]), IngestSettings())
    assert isinstance(outcome, QuarantinedItem)
    assert "ada@example.com" not in outcome.detail


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode), st.none() | st.binary(max_size=60))
@settings(max_examples=examples(200))
def test_any_bytes_have_an_outcome(data: bytes, sidecar: bytes | None) -> None:
    outcomes = ingest(LoadedItem(source="x", name="x", data=data, sidecar=sidecar), PLAIN)
    assert outcomes
    assert all(isinstance(one, ReplayedTranscript | SkippedItem | QuarantinedItem) for one in outcomes)


# -- names and digests ---------------------------------------------------------------------------------------------


def test_sessions_of_files_in_different_folders_differ() -> None:
    assert [replayed(CHAT, name).session for name in ("a/chat.json", "b/chat.json", "chat.json")] == [
        "a/chat",
        "b/chat",
        "chat",
    ]


def test_long_and_odd_names_become_names_that_evidence_may_hold() -> None:
    long = f"{'d' * 150}/{'f' * 150}.json"
    said = replayed(CHAT, long)
    assert len(said.source) <= 200
    assert len(said.session) <= 200
    assert said.source != replayed(CHAT, f"{'d' * 150}/{'f' * 151}.json").source


def test_a_digest_tells_content_metadata_and_settings_apart() -> None:
    first = replayed(CHAT).digest
    assert replayed(CHAT).digest == first
    others = [
        replayed(CHAT[:-1]),
        replayed(CHAT, sidecar={"principal": "ada"}),
        replayed(CHAT, told=IngestSettings()),
        replayed(CHAT, told=IngestSettings(redactor=Redactor(personal=False))),
        replayed(CHAT, told=IngestSettings(redactor=None, internal_tools=frozenset("a"))),
    ]
    assert len({first, *(one.digest for one in others)}) == 6


# -- real data -----------------------------------------------------------------------------------------------------


def text_at(session: Any, ref: str) -> str:
    message = session.resolve(ref)
    return message.tool_results[0].text if "." in ref or message.role == "tool" else message.text


def check_like_a_session(transcript: Any) -> int:
    """Every reference of a replay resolves to the same text in a session made from the same transcript."""
    said = replay(said_in(transcript), source="x", session="s", format=transcript.format, digest="")
    with open_store("memory:") as store:
        session = store.session("s", tools=transcript.tools, system=transcript.system)
        rows = [
            NewMessage(message=entry.wire, ts=entry.ts, principal=entry.principal) for entry in transcript.entries()
        ]
        session.extend(rows)
        entries = {entry.ordinal: entry for entry in session.entries()}
        for one in said.utterances:
            assert text_at(session, one.ref) == one.text
            assert entries[one.ordinal].event.ts == one.ts
        told = Counter(one.ordinal for one in said.utterances)
        for ordinal, entry in entries.items():
            message = entry.message
            parts = len(message.tool_results) + bool(message.text or message.tool_calls)
            assert told[ordinal] in (0, parts)
    return len(said.utterances)


@needs_data
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_references_are_those_of_a_session_in_real_transcripts(path: Path) -> None:
    transcripts = list(read_transcripts(path))[:12]
    assert sum(check_like_a_session(transcript) for transcript in transcripts) > len(transcripts)


MESSAGES = st.lists(
    st.one_of(
        st.builds(
            lambda role, text: {"role": role, "content": text},
            st.sampled_from(["user", "assistant", "system", "developer"]),
            st.text(max_size=8),
        ),
        st.builds(
            lambda texts, more: {
                "role": "user",
                "content": [
                    *({"type": "tool_result", "tool_use_id": f"t{i}", "content": text} for i, text in enumerate(texts)),
                    *([{"type": "text", "text": more}] if more else []),
                ],
            },
            st.lists(st.text(max_size=5), min_size=1, max_size=3),
            st.text(max_size=5),
        ),
        st.builds(
            lambda names: {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": f"t{i}", "name": name, "input": {}} for i, name in enumerate(names)
                ],
            },
            st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=3),
        ),
    ),
    min_size=1,
    max_size=12,
)


@given(MESSAGES)
@settings(max_examples=examples(80))
def test_references_are_those_of_a_session_in_any_transcript(messages: list[dict[str, Any]]) -> None:
    (transcript,) = parse_transcripts(json.dumps(messages))
    check_like_a_session(transcript)


@needs_data
def test_all_real_transcripts_are_replayed() -> None:
    source = FolderSource(DATA)
    by_format: Counter[str] = Counter()
    for item in source.items():
        if item.name.startswith("bipia/"):
            continue
        found = load(source, item.name, item.version)
        assert isinstance(found, LoadedItem)
        for outcome in ingest(found, IngestSettings()):
            if isinstance(outcome, SkippedItem):
                by_format[outcome.reason] += 1
                continue
            assert isinstance(outcome, ReplayedTranscript), outcome
            by_format[outcome.format] += 1
            assert all(one.trust in TRUST for one in outcome.utterances)
            assert all(one.trust == "tool_external" for one in outcome.utterances if one.role == "tool")
            assert all(one.tool for one in outcome.utterances if one.role == "tool")
    assert dict(by_format) == {"tau-bench": 100, "between_people": 5, "swe-agent": 22}


@pytest.mark.soak
@needs_data
def test_reading_costs_no_more_than_three_times_what_parsing_and_counting_tokens_does() -> None:
    """The bar for all of parsing, redacting and harvesting is four times; the best of five on either side."""
    items = [LoadedItem(source=path.name, name=path.name, data=path.read_bytes()) for path in REAL]
    counter = TokenCounter(load_tokenizer("o200k_base"))

    def parse_and_count() -> None:
        for item in items:
            for transcript in parse_transcripts(item.data, item.name):
                for entry in transcript.entries():
                    counter.message(take_wire(entry.wire)[1])

    def read() -> None:
        for item in items:
            ingest(item, IngestSettings())

    def best_seconds(work: Callable[[], None]) -> float:
        times = []
        for _ in range(5):
            begun = time.thread_time()
            work()
            times.append(time.thread_time() - begun)
        return min(times)

    parsing, reading = best_seconds(parse_and_count), best_seconds(read)
    print(f"parsing and counting {parsing:.3f} s, reading {reading:.3f} s: {parsing / reading:.2f} of its speed")
    assert reading < 3 * parsing


def test_importing_the_room_loads_no_finder() -> None:
    program = (
        "import sys, ctxsteward.steward.ingest.worker_pool, ctxsteward.steward.ingest.redaction; print(*sys.modules)"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert not {"datafog", "detect_secrets", "phonenumbers", "requests", "boto3", "prefect"} & set(done.stdout.split())
    assert "ctxsteward.steward.ingest.redaction" in done.stdout.split()
