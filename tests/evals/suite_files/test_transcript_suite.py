"""A suite drafted from transcripts: the same bytes each time, nothing private, cuts where people speak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.evals.prompt_cost import openai_faults
from ctxsteward.evals.suite_files.suite_reader import load_suite
from ctxsteward.evals.suite_files.transcript_suite import (
    SuiteDraft,
    draft_suite,
    pieces,
    with_own_call_ids,
)
from ctxsteward.schemas import InputError

from ...needs import PUBLIC_DATA
from .test_drafting import talk

DATA = Path(__file__).parents[4] / "shared" / "data"
STATED = "My membership number is MX-4471 since last autumn."
SECRETS = ("ada@lovelace.org", "4111 1111 1111 1111", "+1 415 555 2671", "ghp_" + "a1B2" * 9)


def write(folder: Path, name: str, *conversations: list[dict[str, Any]]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps({"messages": one}) + "\n" for one in conversations), encoding="utf-8")
    return path


def draft(*paths: Path, **settings: Any) -> SuiteDraft:
    return draft_suite(paths, **({"name": "desk"} | settings))


def test_a_draft_is_read_back_with_its_asks_and_holds_no_gates_yet(tmp_path: Path) -> None:
    write(tmp_path, "log.jsonl", talk(STATED))
    draft(tmp_path).write(tmp_path / "s.yaml")
    suite = load_suite(tmp_path / "s.yaml")
    (job,) = suite.jobs
    (ask,) = job.asks
    assert (ask.wants, ask.of, ask.after, ask.kind) == (("MX-4471",), (1,), 22, "identifier")
    assert suite.is_draft
    assert "  # log.jsonl: said in message 1 of 22\n" in (tmp_path / "s.yaml").read_text(encoding="utf-8")


def test_the_same_files_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    one = write(
        tmp_path, "b.jsonl", talk(STATED), talk("Please keep the whole journey under $640 for both travellers.")
    )
    two = write(tmp_path, "a.jsonl", talk("We would rather arrive before the weekend in Ghent with everybody."))
    written = []
    for paths in ((one, two), (two, one), (tmp_path,), (one, two, tmp_path / "a.jsonl")):
        made = draft(*paths)
        written.append((made.yaml("c.jsonl"), [scenario.row() for scenario in made.scenarios]))
    assert written[1:] == written[:1] * 3


def test_nothing_private_reaches_the_files_and_the_report_counts_it(tmp_path: Path) -> None:
    function = {"name": "send", "arguments": json.dumps({"to": [SECRETS[0]], "note": {"card": SECRETS[1]}})}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [
        {"role": "system", "content": f"Mail {SECRETS[0]} where you are stuck."},
        *talk(STATED, f"Call me at {SECRETS[2]} or write to {SECRETS[0]} about the token {SECRETS[3]}."),
        {"role": "user", "content": [{"type": "text", "text": f"See the picture, {SECRETS[0]}."}, picture]},
        call,
        {"role": "tool", "tool_call_id": "c", "content": f"sent to {SECRETS[0]}"},
        {"role": "assistant", "content": "Done."},
    ]
    made = draft(write(tmp_path, "log.jsonl", messages))
    made.write(tmp_path / "s.yaml")
    text = (tmp_path / "s.yaml").read_text(encoding="utf-8") + (tmp_path / "s.jsonl").read_text(encoding="utf-8")
    for secret in (*SECRETS, "base64"):
        assert secret not in text
    assert made.redacted == {"email": 5, "card": 1, "phone": 1, "secret": 1}
    assert made.left_out == {"part of a message: image_url": 1}
    kept = draft(tmp_path / "log.jsonl", redacts=False)
    assert SECRETS[0] in json.dumps(kept.scenarios[0].row())
    assert not kept.redacted


def test_a_sentence_that_transcripts_share_is_a_template_and_not_asked_for(tmp_path: Path) -> None:
    own = "Please keep the whole journey under $640 for both travellers."
    made = draft(write(tmp_path, "log.jsonl", talk(STATED, own), talk(STATED)))
    assert [[ask.value for ask in scenario.asks] for scenario in made.scenarios] == [["$640"], []]
    assert made.shared == 2


def test_a_long_transcript_is_cut_where_a_person_speaks(tmp_path: Path) -> None:
    function = {"name": "look", "arguments": "{}"}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    turn = [
        {"role": "user", "content": "Look, please."},
        call,
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
        {"role": "assistant", "content": "It is ok."},
    ]
    made = draft(write(tmp_path, "log.jsonl", turn * 20), max_messages=30)
    assert [len(scenario.messages) for scenario in made.scenarios] == [28, 28, 24]
    assert [scenario.id for scenario in made.scenarios] == ["log-1", "log-2", "log-3"]
    assert all(scenario.messages[0]["role"] == "user" for scenario in made.scenarios)
    assert all(openai_faults({"messages": scenario.messages}) == [] for scenario in made.scenarios)


def test_a_turn_longer_than_a_conversation_is_cut_off_behind_a_result() -> None:
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": id, "type": "function", "function": function} for id in ("c", "d")]
    step = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": id, "content": "ok"} for id in ("c", "d")),
    ]
    wires = list(
        with_own_call_ids([{"role": "user", "content": "Go."}, *step * 9, {"role": "user", "content": "Thanks."}])
    )
    cut = list(pieces(wires, 11))
    assert [len(piece) for piece in cut] == [10, 1]
    assert all(openai_faults({"messages": piece}) == [] for piece in cut)


def test_short_conversations_are_left_out_and_counted(tmp_path: Path) -> None:
    made = draft(write(tmp_path, "log.jsonl", talk(STATED), talk(after=1)))
    assert (len(made.scenarios), made.left_out) == (1, {"conversation with too few turns": 1})
    with pytest.raises(InputError, match=r"no conversation in 1 transcripts: conversation with too few turns \(1\)"):
        draft(write(tmp_path, "short.jsonl", talk(after=1)))


BAD = {
    "no such file": ("none.jsonl", None, "no such file or folder; pass transcripts"),
    "an empty folder": (".", None, "no transcripts in this folder"),
    "no transcript": ("log.jsonl", "5", "log.jsonl"),
    "a broken line": ("log.jsonl", '{"messages": [{"role": "user", "content": "Hi"}]}\n{"messages": [', "line 2"),
}


@pytest.mark.parametrize(("name", "text", "told"), BAD.values(), ids=BAD.keys())
def test_what_is_no_transcript_is_refused_in_one_line(name: str, text: str | None, told: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        draft(tmp_path / name)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("folder", "conversations", "asks"), [("tau_bench_airline", 100, 40), ("swe_agent", 20, 5), ("locomo", 15, 40)]
)
def test_recorded_transcripts_of_every_format_become_suites(
    folder: str, conversations: int, asks: int, tmp_path: Path
) -> None:
    if not (DATA / folder).is_dir():
        pytest.skip(PUBLIC_DATA)
    made = draft(DATA / folder, min_turns=1)
    made.write(tmp_path / "s.yaml")
    assert len(load_suite(tmp_path / "s.yaml").jobs) >= conversations
    assert sum(len(scenario.asks) for scenario in made.scenarios) >= asks
