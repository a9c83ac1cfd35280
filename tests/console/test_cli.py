"""Every command on the shipped demo: what it prints for people and machines, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.console.terminal.output import print_json
from ctxsteward.envelope import PROVIDERS, open_store

from .commands import run

DATA = files("ctxsteward.console") / "data"
DEMO = str(DATA / "demo.jsonl")
PROFILE = str(DATA / "demo-profile.yaml")
LINES = (DATA / "demo.jsonl").read_text(encoding="utf-8").splitlines()[1:]
SMALL = ("--budget", "dynamic_tokens=2000")

LINE_KEYS = [
    "transcript",
    "call",
    "turn",
    "prompt_tokens",
    "prefix_tokens",
    "tokens_by_section",
    "overflow_tokens",
    "compacted",
    "report_ids",
    "build_ms",
    "selection_ms",
    "findings",
    "envelope",
]
ENVELOPE_KEYS = [
    "schema_version",
    "address",
    "tenant",
    "session",
    "profile_version",
    "sections",
    "reports",
    "findings",
    "metrics",
    "seal",
    "rules",
]
REPORT_KEYS = [
    "id",
    "section",
    "pre_tokens",
    "post_tokens",
    "losses",
    "kept_refs",
    "policy",
    "source_addresses",
    "artifact",
    "created_at",
]


def values(*args: str, code: int = 0) -> list[Any]:
    return [json.loads(line) for line in run(*args, "--json", code=code).stdout.splitlines()]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"file:{tmp_path_factory.mktemp('store')}"


class Replay(NamedTuple):
    store: str
    calls: list[Any]


@pytest.fixture(scope="module")
def replay(store: str) -> Replay:
    return Replay(store, values("replay", DEMO, *SMALL, "--profile", PROFILE, "--store", store))


# -- build -----------------------------------------------------------------------------------------


def test_building_twice_appends_once_and_gives_the_same_envelope(tmp_path: Path) -> None:
    where = ("--store", f"file:{tmp_path}", *SMALL)
    (first,), (second,) = values("build", DEMO, *where), values("build", DEMO, *where)
    assert list(first) == ENVELOPE_KEYS
    assert first["metrics"]["messages"] == len(LINES)
    assert {key: first[key] for key in ("address", "sections")} == {key: second[key] for key in ("address", "sections")}
    assert (len(first["reports"]), second["reports"]) == (1, [])


def test_a_policy_by_name_decides_what_leaves_and_reports_name_it(tmp_path: Path) -> None:
    where = ("--store", f"file:{tmp_path}")
    calls = values("replay", DEMO, *SMALL, "--policy", "middle_out", *where)
    reports = [report for call in calls for report in call["report_ids"]]
    ((document, *_),) = values("report", reports[0], *where)
    assert document["policy"].startswith("middle-out/1")
    assert all(call["overflow_tokens"] == 0 for call in calls)


def test_a_summarizer_and_a_selector_by_name_make_the_envelopes(tmp_path: Path) -> None:
    made = []
    for name in ("extractive", "structured"):
        where = ("--store", f"file:{tmp_path / name}")
        values("replay", DEMO, *SMALL, "--summarizer", name, "--selector", "hybrid", *where)
        with open_store(where[1]) as store:
            state = store.at("default", "demo").state
            made.append((state.bullets, state.selection and state.selection.log["strategy"]))
    (extracted, _), (structured, strategy) = made
    assert extracted != structured
    assert strategy == "hybrid"


def test_a_transcript_that_grew_is_appended_to(tmp_path: Path) -> None:
    path, where = tmp_path / "chat.jsonl", ("--store", f"file:{tmp_path / 'store'}")
    for count in (3, 6):
        path.write_text("".join(f"{line}\n" for line in LINES[:count]), encoding="utf-8")
        (envelope,) = values("build", str(path), *where)
        assert envelope["metrics"]["messages"] == count


def test_another_conversation_of_the_same_name_is_refused(tmp_path: Path) -> None:
    where = ("--store", f"file:{tmp_path / 'store'}")
    for folder, line in (("a", LINES[0]), ("b", LINES[5])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "chat.jsonl").write_text(line + "\n", encoding="utf-8")
    run("build", str(tmp_path / "a/chat.jsonl"), *where)
    refused = run("build", str(tmp_path / "b/chat.jsonl"), *where, code=2)
    assert "message 1 is not §1 of session 'chat'" in refused.stderr
    (envelope,) = values("build", str(tmp_path / "b/chat.jsonl"), *where, "--session", "b")
    assert (envelope["session"], envelope["metrics"]["messages"]) == ("b", 1)


def test_a_transcript_with_a_broken_message_appends_nothing(tmp_path: Path) -> None:
    path, where = tmp_path / "chat.jsonl", ("--store", f"file:{tmp_path / 'store'}")
    path.write_text(f'{LINES[0]}\n{{"role": "user"}}\n', encoding="utf-8")
    assert "line 2" in run("build", str(path), *where, code=2).stderr
    path.write_text(LINES[5] + "\n", encoding="utf-8")
    (envelope,) = values("build", str(path), *where)
    assert envelope["metrics"]["messages"] == 1


def test_a_user_turn_is_shown_and_not_written(store: str, replay: Replay) -> None:
    where = ("--store", store, "--session", "turn")
    (probe,) = values("build", DEMO, *where, "--user-turn", "Which port is staging's?")
    assert probe["sections"]["dynamic"]["content"][-1]["text"] == f"user §{len(LINES) + 1}: Which port is staging's?"
    assert "names nothing" in run("resolve", str(len(LINES) + 1), "--session", "turn", "--store", store, code=2).stderr


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_past_envelope_renders_to_the_same_bytes(provider: str, tmp_path: Path) -> None:
    where = ("--store", f"file:{tmp_path}", "--provider", provider)
    built = run("build", DEMO, *where, *SMALL)
    (envelope,) = values("build", DEMO, *where[:2], *SMALL)
    assert run("replay", "--from", envelope["address"], *where).stdout == built.stdout


def test_build_tells_people_the_format_the_sections_and_the_address(store: str) -> None:
    out = run("build", DEMO, *SMALL, "--store", store, "--session", "people").stdout
    assert out.startswith(f"people: format openai (detected), {len(LINES)} messages, {len(LINES)} appended now\n")
    for word in ("section", "system", "static", "meta", "dynamic", "tools", "prompt", "§196", "tools_inferred"):
        assert word in out
    assert len(out.splitlines()[-1].removeprefix("envelope ")) == 64


def test_stdin_is_read_and_a_run_of_several_is_chosen() -> None:
    two = "".join(json.dumps([json.loads(line)], ensure_ascii=False) + "\n" for line in LINES[:2])
    result = run("build", "-", "--run", "1", "--store", "memory:", "--json", stdin=two)
    envelope = json.loads(result.stdout)
    assert (envelope["session"], envelope["metrics"]["messages"]) == ("stdin-1", 1)
    assert result.stderr == (
        "ctxsteward: - holds 2 transcripts; this is number 1, --run takes another\n"
        "ctxsteward: -: format openai (detected)\n"
    )


# -- replay ----------------------------------------------------------------------------------------


def test_replay_prints_a_line_for_every_model_call(replay: Replay) -> None:
    calls = replay.calls
    assert len(calls) == sum(json.loads(line)["role"] == "assistant" for line in LINES)
    assert [call["call"] for call in calls] == list(range(1, len(calls) + 1))
    for call in calls:
        assert list(call) == LINE_KEYS
        assert list(call["tokens_by_section"]) == ["system", "static", "meta", "dynamic", "tools"]
        assert call["prompt_tokens"] == sum(call["tokens_by_section"].values()) + 3  # reply priming
        assert call["compacted"] == bool(call["report_ids"])
        assert 0 <= call["prefix_tokens"] <= call["prompt_tokens"]
    assert calls[0]["prefix_tokens"] == 0
    assert max(call["turn"] for call in calls) == sum(json.loads(line)["role"] == "user" for line in LINES)


def test_within_a_turn_a_prompt_begins_with_the_one_before(tmp_path: Path) -> None:
    where = ("--profile", PROFILE, "--store", f"file:{tmp_path}", "--budget", "recall_fraction=0")
    calls = values("replay", DEMO, *SMALL, *where)
    pairs = [(one, two) for one, two in pairwise(calls) if not two["compacted"] and one["turn"] == two["turn"]]
    assert len(pairs) > 40
    assert [after["prefix_tokens"] for _, after in pairs] == [before["prompt_tokens"] - 3 for before, _ in pairs]


def test_within_a_turn_it_does_so_with_recall_too(replay: Replay) -> None:
    pairs = [
        (before, after)
        for before, after in pairwise(replay.calls)
        if before["turn"] == after["turn"] and not after["compacted"]
    ]
    announced = [any(finding["kind"] == "recall_dropped" for finding in after["findings"]) for _, after in pairs]
    kept = [after["prefix_tokens"] == before["prompt_tokens"] - 3 for before, after in pairs]
    assert len(pairs) > 20
    assert all(one or other for one, other in zip(kept, announced, strict=True))
    dropped = [after["turn"] for (_, after), drop in zip(pairs, announced, strict=True) if drop]
    assert len(dropped) == len(set(dropped)) < len(pairs) / 2


def test_after_a_compaction_the_head_is_still_a_prefix(replay: Replay) -> None:
    compacted = [call for call in replay.calls if call["compacted"]]
    assert compacted
    for call in compacted:
        head = call["prompt_tokens"] - call["tokens_by_section"]["dynamic"] - 3
        assert head <= call["prefix_tokens"] < call["prompt_tokens"]


def test_a_session_that_holds_messages_is_left_alone(tmp_path: Path) -> None:
    path, where = tmp_path / "chat.jsonl", ("--store", f"file:{tmp_path}")
    path.write_text("".join(f"{line}\n" for line in LINES[:3]), encoding="utf-8")
    names = [values("replay", str(path), *where)[0]["transcript"] for _ in range(3)]
    assert names == ["chat", "chat@2", "chat@3"]


def test_every_transcript_of_a_file_is_replayed_or_the_one_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    path.write_text(f"{json.dumps(chat)}\n" * 3)
    where = ("--store", "memory:")
    assert [call["transcript"] for call in values("replay", str(path), *where)] == ["runs-0", "runs-1", "runs-2"]
    assert [call["transcript"] for call in values("replay", str(path), *where, "--run", "1")] == ["runs-1"]
    out = run("replay", str(path), *where).stdout.split()
    assert out[:7] == ["transcripts", "3", "format", "openai", "model", "calls", "3"]


def test_replay_tells_people_what_it_cost() -> None:
    out = run("replay", DEMO, *SMALL, "--store", "memory:").stdout
    for word in (
        "model calls",
        "compactions",
        "calls over budget",
        "build p50 / p95",
        "1 tools_inferred",
        "whole history",
        "cached prefix at 0.5",
        "^ compacted",
        "last envelope",
    ):
        assert word in out


def test_a_past_envelope_is_rebuilt_from_the_log_alone(replay: Replay) -> None:
    for call in replay.calls[:: len(replay.calls) // 5]:
        (envelope,) = values("replay", "--from", call["envelope"], "--store", replay.store)
        assert envelope["address"] == call["envelope"]
        tokens = {name: section["tokens"] for name, section in envelope["sections"].items()}
        assert tokens == {name: call["tokens_by_section"][name] for name in tokens}


def test_a_log_that_was_tampered_with_is_found_out(tmp_path: Path) -> None:
    import sqlite3

    where = ("--store", f"file:{tmp_path}")
    (envelope,) = values("build", DEMO, *where, "--budget", "dynamic_tokens=60000")
    with sqlite3.connect(tmp_path / "journal.sqlite") as journal:
        journal.execute("UPDATE records SET wire = replace(wire, 'retry budget is 2', 'retry budget is 9')")
    result = run("replay", "--from", envelope["address"], *where, code=1)
    assert "the log or the key is not what it was" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "retry budget is 9" not in result.stdout


# -- resolve, report, schema -----------------------------------------------------------------------


@pytest.mark.parametrize("ref", ["§10", "10", "§267"])
def test_a_reference_resolves_to_the_bytes_of_the_file(ref: str, replay: Replay) -> None:
    out = run("resolve", ref, "--session", "demo", "--store", replay.store, "--json").stdout
    assert out == LINES[int(ref.strip("§")) - 1] + "\n"


def test_a_tool_output_resolves_by_its_number(replay: Replay) -> None:
    outputs = [line for line in LINES if json.loads(line)["role"] == "tool"]
    out = run("resolve", "tool:3", "--session", "demo", "--store", replay.store, "--json").stdout
    assert out == outputs[2] + "\n"


def test_people_see_a_part_of_an_original(replay: Replay) -> None:
    where = ("--session", "demo", "--store", replay.store)
    text = json.loads(LINES[21])["content"]
    assert run("resolve", "§22", *where).stdout == f"§22 tool\n{text}\n"
    assert run("resolve", "§22", *where, "--offset", "5", "--limit", "20").stdout == (
        f"§22 tool\n{text[5:25]}\n[{len(text) - 25:,} more characters; --offset 25]\n"
    )
    lines = [line for line in text.split("\n") if "pool exhausted" in line]
    assert run("resolve", "§22", *where, "--grep", "POOL exhausted").stdout == f"§22 tool\n{lines[0]}\n"


def test_control_characters_of_a_transcript_are_written_out(tmp_path: Path) -> None:
    chat, where = tmp_path / "chat.jsonl", ("--store", f"file:{tmp_path}")
    chat.write_text(json.dumps({"role": "user", "content": "\x1b[2Jgone\u202e"}) + "\n")
    run("build", str(chat), *where)
    assert run("resolve", "1", "--session", "chat", *where).stdout == "1 user\n\\x1b[2Jgone\\u202e\n"


def test_reports_are_found_by_session_by_envelope_and_by_their_own_address(replay: Replay) -> None:
    where = ("--store", replay.store)
    (reports,) = values("report", "demo", *where)
    ids = [report["id"] for report in reports]
    assert ids == [id for call in replay.calls for id in call["report_ids"]]
    assert [list(report) for report in reports] == [REPORT_KEYS] * len(reports)
    assert values("report", ids[1], *where) == [[reports[1]]]
    middle = replay.calls[len(replay.calls) // 2]
    until = [id for call in replay.calls[: middle["call"]] for id in call["report_ids"]]
    assert values("report", middle["envelope"], *where) == [reports[: len(until)]]


def test_what_meta_was_left_without_is_reported_beside_compactions(tmp_path: Path) -> None:
    data = str(files("ctxsteward.console") / "data")
    where = ("--store", f"file:{tmp_path}")
    tight = ("--profile", f"{data}/demo-profile.yaml", "--budget", "meta_tokens=60")
    envelope = json.loads(run("build", f"{data}/demo.jsonl", *tight, *where, "--json").stdout)
    (made,) = (report for report in envelope["reports"] if report["section"] == "meta")
    assert made["created_at"].endswith("Z")
    for name in ("demo", envelope["address"]):
        (reports,) = values("report", name, *where)
        assert [report["section"] for report in reports] == ["dynamic", "meta"]
        assert reports[1] == made
    assert values("report", made["id"], *where) == [[made]]
    assert made["losses"][0]["ref"] in run("report", made["id"], *where).stdout
    gone = run("resolve", made["losses"][0]["ref"], "--session", "demo", *where).stdout
    assert made["losses"][0]["ref"].removeprefix("meta:") in gone


def test_a_compaction_is_undone_where_it_fits_and_refused_where_it_does_not(tmp_path: Path) -> None:
    where = ("--store", f"file:{tmp_path}")
    values("build", DEMO, *SMALL, "--session", "s", *where)
    (made,) = values("report", "s", *where)
    assert "dynamic_tokens=" in run("report", "s", "--undo", *SMALL, *where, code=2).stderr
    (again,) = values("report", "s", "--undo", "--budget", "dynamic_tokens=90000", *where)
    assert [report["id"] for report in again[:-1]] == [report["id"] for report in made]
    assert again[-1]["policy"] == f"shown-again/1 {made[-1]['id']}"
    assert "no session 'nobody'" in run("report", "nobody", "--undo", *where, code=2).stderr


def test_people_see_the_losses_of_a_report(replay: Replay) -> None:
    (reports,) = values("report", "demo", "--store", replay.store)
    out = run("report", reports[0]["id"], "--store", replay.store, "--losses", "2").stdout
    assert out.count("\n") < 20
    for word in (reports[0]["id"], f"{reports[0]['pre_tokens']:,}", "more losses"):
        assert word in out
    assert any(f" {loss['ref']} " in out for loss in reports[0]["losses"])
    legend = "pre, post: the section's tokens before and after."
    assert legend in out
    assert legend in " ".join(run("report", "--help").stdout.split())


def test_a_lost_value_is_shown_with_the_words_around_it(replay: Replay) -> None:
    (reports,) = values("report", "demo", "--store", replay.store)
    (wire,) = values("resolve", "§3", "--session", "demo", "--store", replay.store)
    lost = [loss for loss in reports[0]["losses"] if loss["ref"] == "§3" and loss["kind"] == "number"]
    out = "".join(run("report", "demo", "--losses", "99", "--store", replay.store).stdout.split())
    assert lost
    for loss in lost:
        around = wire["content"][max(0, loss["span"][0] - 8) : loss["span"][1] + 8]
        assert "".join(around.split()) in out


def test_schemas_are_named_and_printed() -> None:
    (names,) = values("schema")
    assert run("schema").stdout.split() == names
    for name in names:
        (schema,) = values("schema", name)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert json.loads(run("schema", name).stdout) == schema


def test_what_is_printed_fits_its_published_schema(replay: Replay) -> None:
    from jsonschema import Draft202012Validator

    (envelope,) = values("replay", "--from", replay.calls[-1]["envelope"], "--store", replay.store)
    (reports,) = values("report", "demo", "--store", replay.store)
    for name, rows in (("envelope", [envelope]), ("compression_report", reports)):
        (schema,) = values("schema", name)
        for row in rows:
            Draft202012Validator(schema).validate(row)


# -- the whole -------------------------------------------------------------------------------------


def test_every_command_has_help_and_prints_json_if_asked() -> None:
    commands = {command.name: command for command in _commands(cli) if command.name != "completion"}
    assert len(commands) > 30
    assert commands.keys() >= {"demo", "build", "fsck", "recall", "promote"}
    for command in commands.values():
        # `mcp` speaks its protocol on standard output, and `export` writes the form that it is asked for.
        assert command.name in ("mcp", "envelope", "lines", "session") or "as_json" in {
            parameter.name for parameter in command.params
        }
        assert (command.help or "").strip()


def _commands(group: click.Group) -> Iterator[click.Command]:
    """All that a group leads to, imported by their names in its table."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        assert command.name == name
        if isinstance(command, click.Group):
            yield from _commands(command)
        else:
            yield command


def test_without_a_command_the_help_is_shown() -> None:
    assert run().stdout == run("--help").stdout
    assert run("--version").stdout.startswith("ctxsteward ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str) -> None:
    assert "_CTXSTEWARD_COMPLETE" in run("completion", shell).stdout


def test_budget_keys_and_models_complete() -> None:
    from click.shell_completion import ShellComplete

    complete = ShellComplete(cli, {}, "ctxsteward", "_CTXSTEWARD_COMPLETE").get_completions
    assert [item.value for item in complete(["build"], "--prov")] == ["--provider"]
    assert [item.value for item in complete(["build", "--provider"], "openai")] == ["openai-chat", "openai-responses"]
    assert "dynamic_tokens=" in [item.value for item in complete(["build", "--budget"], "d")]


def test_help_imports_neither_the_request_path_nor_rich() -> None:
    code = (
        "import sys\nfrom ctxsteward.console.cli import cli\n"
        "cli(['--help'], standalone_mode=False)\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('rich', 'tiktoken', 'pydantic')"
        " or name.startswith(('ctxsteward.envelope', 'ctxsteward.store', 'ctxsteward.schemas'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_json_is_ascii_where_the_stream_takes_no_unicode() -> None:
    @click.command()
    def show() -> None:
        print_json({"ref": "§1"})

    assert CliRunner(charset="ascii").invoke(show).stdout == '{"ref": "\\u00a71"}\n'


def _script(*args: str, **more: Any) -> subprocess.Popen[str]:
    # as in a foreground shell, also where this run is in the background and SIGINT is ignored by inheritance
    foreground = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{foreground}; from ctxsteward.console.cli import main; main()"
    return subprocess.Popen([sys.executable, "-c", code, *args], text=True, stdout=-1, stderr=-1, **more)


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes and signals")
def test_a_reader_that_goes_away_is_no_error() -> None:
    process = _script("replay", DEMO, "--store", "memory:", "--json")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("{")
    process.stdout.close()
    assert process.stderr is not None
    assert (process.wait(60), process.stderr.read()) == (141, "")
    process.stderr.close()


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes and signals")
def test_an_interrupt_is_quiet() -> None:
    process = _script(
        "build", "-", "--store", "memory:", stdin=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    while int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4), sys.byteorder):
        time.sleep(0.01)  # until it has read that, and waits for more
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")
