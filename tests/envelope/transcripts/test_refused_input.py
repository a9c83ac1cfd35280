"""Input that is refused: each row says what is wrong, and where the refusal must say it is."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ctxsteward.envelope.transcripts.files import FORMATS, parse_transcripts, read_transcript, read_transcripts
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import InputTooLarge, InvalidTranscript

from ...tables import table

USER = '{"role": "user", "content": "hi"}'


@dataclass(frozen=True)
class Case:
    id: str
    data: bytes | str
    expects: str
    """A part of the refusal, without the file's name."""
    where: str = ""
    """`InvalidTranscript.where`, whole."""
    format: str = "auto"


def deep(levels: int) -> str:
    return '{"role": "user", "content": [' + "[" * levels + "]" * levels + "]}"


def locomo(turn: str, date: str = "1:56 pm on 8 May, 2023") -> str:
    return (
        '{"sample_id": "s", "conversation": {"speaker_a": "Ann", "speaker_b": "Bob", '
        f'"session_1_date_time": "{date}", "session_1": [{turn}]}}}}'
    )


BYTES = [
    Case("only a byte-order mark", b"\xef\xbb\xbf", "nothing in it"),
    Case("an integer of 5,000 digits", '[{"role": "user", "x": ' + "9" * 5000 + "}]", "digit"),
    Case("NaN before a deep value", "[NaN, " + "[" * 100_000, "NaN"),
    Case("surrogates in UTF-8", b'"\xed\xa0\x80"', "byte 0xed at offset 1 is not UTF-8", "line 1"),
    Case("Latin-1", USER.encode() + b'\n{"role": "user", "content": "\xe9"}', "0xe9", "line 2"),
    Case("UTF-16", "\ufeff[]".encode("utf-16-le"), "UTF-16 text"),
    Case("gzip", gzip.compress(b"[]"), "gzip data; decompress it first"),
    Case("a NUL byte", b'{"role": "user", "content": "\x00"}', "not JSON", "line 1, column 30"),
    Case("deeper than the cap", f"[{deep(80)}]", "more than 72 levels"),
    Case("message deeper than its cap", f"[{deep(66)}]", "at most 64", "messages[0].content"),
    Case("deeper than the parser goes", "[" * 100_000, "very deep nesting"),
    Case(
        "LoCoMo turn of a stranger",
        locomo('{"speaker": "Eve", "text": "x"}'),
        "'Eve'",
        "conversation.session_1[0].speaker",
    ),
    Case(
        "LoCoMo turn without text",
        "[" + locomo('{"speaker": "Ann"}') + "]",
        "is missing",
        "[0].conversation.session_1[0].text",
    ),
    Case(
        "LoCoMo date",
        locomo('{"speaker": "Ann", "text": "x"}', "31 May"),
        "1:56 pm on 8 May, 2023",
        "conversation.session_1_date_time",
    ),
    Case("LoCoMo without turns", locomo(""), "no messages", "conversation"),
]
CASES = [
    *(Case(**row | {"data": row["data"].replace("USER", USER)}) for row in table(__file__, "refused.yaml")),
    *BYTES,
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
    assert str(error).startswith("given.json")
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
    assert caught.value.where == "line 7321, column 34"


@pytest.mark.parametrize(
    ("name", "found"),
    [("missing.json", "no such file"), (".", "a directory"), ("a\0b", "cannot be read")],
    ids=["missing", "directory", "NUL in the name"],
)
def test_a_path_that_is_no_file_is_refused_at_once(tmp_path: Path, name: str, found: str) -> None:
    with pytest.raises(InvalidTranscript, match=found):
        read_transcripts(f"{tmp_path}/{name}")


def test_an_unknown_format_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidTranscript, match=r"unknown format 'csv'.*auto, openai, openai-responses, anthropic, gemini, tau-bench"
    ):
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
