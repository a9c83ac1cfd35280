"""Input that is refused: each row says what is wrong, and where the refusal must say it is."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxsteward.envelope.transcripts import FORMATS, parse_transcripts, read_transcript, read_transcripts
from ctxsteward.schemas import InputError, InputTooLarge, InvalidTranscript

USER = '{"role": "user", "content": "hi"}'


@dataclass(frozen=True, kw_only=True)
class Case:
    id: str
    data: bytes | str
    where: str
    """`InvalidTranscript.where`, whole."""
    expects: str
    """A part of the refusal, without the file's name."""
    format: str = "auto"


def deep(levels: int) -> str:
    return '{"role": "user", "content": [' + "[" * levels + "]" * levels + "]}"


CASES = [
    Case(id="empty file", data=b"", where="", expects="nothing in it"),
    Case(id="only blank lines", data=b"\n \r\n\n", where="", expects="nothing in it"),
    Case(id="only a byte-order mark", data=b"\xef\xbb\xbf", where="", expects="nothing in it"),
    Case(id="empty array", data="[]", where="messages", expects="no messages"),
    Case(id="empty array, runs wanted", data="[]", format="locomo", where="", expects="an empty array"),
    Case(id="request without messages", data='{"messages": []}', where="messages", expects="no messages"),
    Case(
        id="messages is no array",
        data='{"messages": {"a": 1}}',
        where="messages",
        expects="an object with `a`",
    ),
    Case(id="scalar at the top", data="42", where="", expects="found the number 42"),
    Case(id="text at the top", data='"hello"', where="", expects="found the text 'hello'"),
    Case(id="null at the top", data="null", where="", expects="found null"),
    Case(id="not JSON at all", data="hello there", where="line 1, column 1", expects="not JSON"),
    Case(
        id="an object of no known shape",
        data='{"turns": []}',
        where="",
        expects="found an object with `turns`",
    ),
    Case(id="an array of scalars", data="[1, 2]", where="messages[0]", expects="found the number 1"),
    Case(id="cut in a text", data='[{"role": "us', where="line 1, column 11", expects="is it cut off?"),
    Case(id="cut between values", data=f"[{USER},", where="line 1, column 36", expects="is it cut off?"),
    Case(
        id="pretty document cut",
        data=f"[\n{USER},\n{USER}\n",
        where="line 4, column 1",
        expects="is it cut off?",
    ),
    Case(id="last line cut", data=f"{USER}\n{USER[:-3]}", where="line 2, column 29", expects="is it cut off?"),
    Case(id="first line cut", data=f"{USER[:-1]}\n{USER}", where="line 1, column 33", expects="is it cut off?"),
    Case(
        id="two values on a line",
        data=f"{USER}\n{USER} {USER}",
        where="line 2, column 35",
        expects="Extra data",
    ),
    Case(id="blank lines count", data=f"{USER}\n\n\nx\n", where="line 4, column 1", expects="not JSON"),
    Case(
        id="unknown role",
        data=f'[{USER}, {{"role": "robot"}}]',
        where="messages[1].role",
        expects="found 'robot'",
    ),
    Case(
        id="unknown role in a line",
        data=f'{USER}\n{{"role": "robot"}}',
        where="line 2, role",
        expects="'robot'",
    ),
    Case(id="no role", data=f'[{USER}, {{"content": "x"}}]', where="messages[1].role", expects="found nothing"),
    Case(id="a message is a number", data=f"[{USER}, 5]", where="messages[1]", expects="found the number 5"),
    Case(id="a line is a number", data=f"{USER}\n5\n", where="line 2", expects="found the number 5"),
    Case(id="a line is an array", data=f"{USER}\n[{USER}]\n", where="line 2", expects="found an array of 1"),
    Case(
        id="a message among requests",
        data=f'{{"messages": [{USER}]}}\n{USER}',
        where="line 2",
        expects="`role`",
    ),
    Case(
        id="content is a number",
        data='[{"role": "user", "content": 5}]',
        where="messages[0].content",
        expects="int",
    ),
    Case(
        id="a block without its text",
        data='[{"role": "user", "content": [{"type": "text"}]}]',
        where="messages[0].content[0].text",
        expects="expected text",
    ),
    Case(
        id="a request inside a line",
        data=f'{{"messages": [{USER}]}}\n{{"messages": [{USER}, {USER}, {{"role": 3}}]}}',
        where="line 2, messages[2].role",
        expects="found the number 3",
    ),
    Case(
        id="an array inside a line",
        data=f"[{USER}]\n[{USER}, 7]",
        where="line 2, messages[1]",
        expects="number 7",
    ),
    Case(id="an array inside an array", data=f"[[{USER}], [{USER}, 7]]", where="[1][1]", expects="number 7"),
    Case(
        id="system is a number",
        data=f'{{"messages": [{USER}], "system": 4}}',
        where="system",
        expects="number 4",
    ),
    Case(
        id="system block of no type",
        data=f'{{"messages": [{USER}], "system": [{{"text": "x"}}]}}',
        where="system[0].type",
        expects="found nothing",
    ),
    Case(
        id="tools is an object",
        data=f'{{"messages": [{USER}], "tools": {{}}}}',
        where="tools",
        expects="no keys",
    ),
    Case(
        id="a tool is a text",
        data=f'{{"messages": [{USER}], "tools": ["x"]}}',
        where="tools[0]",
        expects="'x'",
    ),
    Case(
        id="a key twice",
        data='[{"role": "user", "content": "a", "content": "b"}]',
        where="messages[0].content",
        expects="the same key twice",
    ),
    Case(
        id="a key twice in a line",
        data=f'{USER}\n{{"role": "user", "role": "tool"}}',
        where="line 2, role",
        expects="the same key twice",
    ),
    Case(
        id="NaN",
        data='[{"role": "user", "content": "a", "x": [NaN]}]',
        where="messages[0].x[0]",
        expects="NaN",
    ),
    Case(id="-Infinity", data='[{"role": "user", "x": -Infinity}]', where="messages[0].x", expects="-Infinity"),
    Case(
        id="a number that overflows",
        data='[{"role": "user", "x": 1e999}]',
        where="messages[0].x",
        expects="1e999",
    ),
    Case(
        id="an integer of 5,000 digits",
        data='[{"role": "user", "x": ' + "9" * 5000 + "}]",
        where="",
        expects="digit",
    ),
    Case(id="NaN before a syntax error", data='[{"x": NaN} 5]', where="line 1, column 13", expects="not JSON"),
    Case(id="NaN before a deep value", data="[NaN, " + "[" * 100_000, where="", expects="NaN"),
    Case(
        id="a lone surrogate",
        data=f'{USER}\n{{"role": "user", "content": "\\ud800"}}',
        where="line 2, content",
        expects="a lone surrogate",
    ),
    Case(
        id="a lone surrogate in a key",
        data='[{"role": "user", "\\uDC00": 1}]',
        where="messages[0]",
        expects="surrogate",
    ),
    Case(
        id="surrogates in UTF-8",
        data=b'"\xed\xa0\x80"',
        where="line 1",
        expects="byte 0xed at offset 1 is not UTF-8",
    ),
    Case(
        id="Latin-1",
        data=USER.encode() + b'\n{"role": "user", "content": "\xe9"}',
        where="line 2",
        expects="0xe9",
    ),
    Case(id="UTF-16", data="\ufeff[]".encode("utf-16-le"), where="", expects="UTF-16 text"),
    Case(id="gzip", data=gzip.compress(b"[]"), where="", expects="gzip data; decompress it first"),
    Case(
        id="a NUL byte",
        data=b'{"role": "user", "content": "\x00"}',
        where="line 1, column 30",
        expects="not JSON",
    ),
    Case(id="deeper than the cap", data=f"[{deep(80)}]", where="", expects="more than 72 levels"),
    Case(
        id="message deeper than its cap",
        data=f"[{deep(66)}]",
        where="messages[0].content",
        expects="at most 64",
    ),
    Case(id="deeper than the parser goes", data="[" * 100_000, where="", expects="very deep nesting"),
    Case(
        id="forced to another format",
        data=f"[{USER}]",
        format="swe-agent",
        where="[0]",
        expects="this is a message",
    ),
    Case(
        id="forced chat on runs",
        data='{"traj": [], "task_id": 1}',
        format="openai",
        where="",
        expects="a tau-bench run",
    ),
    Case(
        id="OpenAI messages forced to be Anthropic",
        data=f'{USER}\n{{"role": "tool", "tool_call_id": "c", "content": "x"}}',
        format="anthropic",
        where="line 2",
        expects="an openai message; read it with format='auto'",
    ),
    Case(
        id="Anthropic messages forced to be OpenAI",
        data='[{"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}]',
        format="openai",
        where="messages[0]",
        expects="an anthropic message",
    ),
    Case(
        id="tau-bench run without a task",
        data='{"traj": [' + USER + "]}",
        where="task_id",
        expects="found null",
    ),
    Case(
        id="tau-bench message",
        data='[{"traj": [], "task_id": 1}, {"traj": [7], "task_id": 1}]',
        where="[1].traj[0]",
        expects="found the number 7",
    ),
    Case(id="SWE-agent without messages", data='{"history": []}', where="history", expects="an array of 0"),
    Case(
        id="SWE-agent message",
        data='{"history": [{"role": "x"}]}',
        where="history[0].role",
        expects="found 'x'",
    ),
    Case(id="LoCoMo list of turns", data='{"conversation": [1]}', where="conversation", expects="an array of 1"),
    Case(
        id="LoCoMo without speakers",
        data='{"conversation": {}}',
        where="conversation.speaker_a",
        expects="is missing",
    ),
]


def locomo(turn: str, date: str = "1:56 pm on 8 May, 2023") -> str:
    return (
        '{"sample_id": "s", "conversation": {"speaker_a": "Ann", "speaker_b": "Bob", '
        f'"session_1_date_time": "{date}", "session_1": [{turn}]}}}}'
    )


CASES += [
    Case(
        id="LoCoMo turn of a stranger",
        data=locomo('{"speaker": "Eve", "text": "x"}'),
        where="conversation.session_1[0].speaker",
        expects="'Eve'",
    ),
    Case(
        id="LoCoMo turn without text",
        data="[" + locomo('{"speaker": "Ann"}') + "]",
        where="[0].conversation.session_1[0].text",
        expects="is missing",
    ),
    Case(
        id="LoCoMo date",
        data=locomo('{"speaker": "Ann", "text": "x"}', "31 May"),
        where="conversation.session_1_date_time",
        expects="1:56 pm on 8 May, 2023",
    ),
    Case(id="LoCoMo without turns", data=locomo(""), where="conversation", expects="no messages"),
]


def read_all(data: bytes | str, format: str) -> None:
    for transcript in parse_transcripts(data, "given.json", format=format):
        for _ in transcript.entries():
            pass


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_bad_input_is_refused_with_its_place(case: Case) -> None:
    with pytest.raises(InvalidTranscript) as caught:
        read_all(case.data, case.format)
    error = caught.value
    assert error.source == "given.json"
    assert error.where == case.where
    assert case.expects in f"{error.found}; {error.hint}"
    str(error).encode()  # a refusal can be printed whatever was refused
    assert "\n" not in str(error)


def test_a_bad_line_among_ten_thousand_is_named_exactly(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    lines = [USER] * 10_000
    lines[7_320] = '{"role": "user", "content": "hi",}'
    path.write_text("\n".join(lines))
    entries = read_transcript(path).entries()
    with pytest.raises(InvalidTranscript) as caught:
        list(entries)
    assert caught.value.where == "line 7321, column 34" or caught.value.where.startswith("line 7321, column 3")


@pytest.mark.parametrize(
    ("name", "found"),
    [("missing.json", "no such file"), (".", "a directory"), ("a\0b", "cannot be read")],
    ids=["missing", "directory", "NUL in the name"],
)
def test_a_path_that_is_no_file_is_refused_at_once(tmp_path: Path, name: str, found: str) -> None:
    with pytest.raises(InvalidTranscript, match=found):
        read_transcripts(f"{tmp_path}/{name}")


def test_an_unknown_format_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidTranscript, match=r"unknown format 'csv'.*auto, openai, anthropic, tau-bench"):
        read_transcripts(tmp_path / "any.json", format="csv")


def test_a_name_that_is_not_unicode_is_printed_safely(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    with pytest.raises(InvalidTranscript, match=r"\?\.json: no such file"):
        read_transcripts(path)


@pytest.mark.parametrize("index", [-1, 1])
def test_an_index_outside_the_file_is_refused_with_the_count(tmp_path: Path, index: int) -> None:
    path = tmp_path / "one.json"
    path.write_text(f"[{USER}]")
    with pytest.raises(InvalidTranscript, match="the file has 1 transcripts; pass 0 to 0"):
        read_transcript(path, index=index)


@pytest.mark.parametrize(
    ("before", "where"),
    [("[", "line 1"), ("[\n", "line 2"), (f"{USER}\n", "line 2"), (f"{USER}\n{USER}\n", "line 3")],
    ids=["array on a line", "array on lines", "second line", "third line"],
)
def test_a_turn_of_100_megabytes_is_refused_before_it_is_parsed(tmp_path: Path, before: str, where: str) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.write(before.encode() + b'{"role": "user", "content": "')
        stream.seek(100_000_000, os.SEEK_CUR)  # a hole: NUL bytes, which take no disk and are no JSON
        stream.write(b'"}\n')
    with pytest.raises(InputTooLarge, match=rf"huge.json: {where} has 100,000,0\d\d bytes; the cap is"):
        [list(one.entries()) for one in read_transcripts(path)]


def test_a_document_of_many_lines_has_a_cap_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "wide.json"
    with path.open("wb") as stream:
        stream.write(b"[\n")
        for _ in range(70):
            stream.write(b" " * 1_000_000 + USER.encode() + b",\n")
        stream.write(USER.encode() + b"\n]")
    with pytest.raises(InputTooLarge, match=r"wide.json \(one JSON document; JSONL may be longer\) has 70,00"):
        list(read_transcripts(path))


def test_a_message_above_its_own_cap_is_refused_with_its_place() -> None:
    huge = json.dumps({"role": "user", "content": "x" * (16 * 1024 * 1024)})
    with pytest.raises(InputTooLarge, match=r"given.json: messages\[1\] has 16,777,2"):
        read_all(f"[{USER}, {huge}]", "auto")


SEEDS = [
    f"[{USER}]",
    f"{USER}\n{USER}\n",
    f'{{"messages": [{USER}], "system": [{{"type": "text", "text": "x"}}], "tools": [{{"name": "t"}}]}}',
    f'{{"task_id": 1, "trial": 0, "traj": [{USER}]}}',
    f'{{"history": [{USER}, {{"role": "assistant", "thought": "t", "action": "ls"}}, {USER}]}}',
    '{"history": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}]}',
    locomo('{"speaker": "Ann", "text": "x", "dia_id": "D1:1", "blip_caption": "y"}'),
]
PIECES = [
    "",
    "null",
    "5",
    "[]",
    "{}",
    '""',
    "\n",
    ",",
    '"',
    "[",
    "}",
    "NaN",
    "1e999",
    '"\\ud800"',
    '"role": [], ',
    "\0",
]


@given(data=st.data(), format=st.sampled_from(FORMATS))
def test_damaged_input_is_read_or_refused_and_nothing_else(data: st.DataObject, format: str) -> None:
    text = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(st.sampled_from(PIECES)) + text[stop:]
    with contextlib.suppress(InputError):
        read_all(text, format)


@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_and_nothing_else(data: bytes) -> None:
    with contextlib.suppress(InputError):
        read_all(data, "auto")
