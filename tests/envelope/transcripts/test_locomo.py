"""LoCoMo conversations, on a small one written for the purpose."""

from __future__ import annotations

import json

import pytest

from ctxsteward.envelope.transcripts.files import iso_date, parse_transcripts
from ctxsteward.envelope.transcripts.transcript import TranscriptEntry

SAMPLE = {
    "sample_id": "conv-1",
    "qa": [],
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_10_date_time": "12:05 am on 1 January, 2024",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "Later."}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Bob", "dia_id": "D2:1", "text": "Hi!", "blip_caption": "a dog", "img_url": ["u"]},
            {"speaker": "Ann", "dia_id": "D2:2", "text": "Hello."},
        ],
        "session_3_date_time": "1:56 pm on 9 May, 2023",
    },
}


@pytest.mark.parametrize("value", [SAMPLE, [SAMPLE]])
def test_sessions_follow_their_numbers_and_a_date_without_one_is_skipped(value: object) -> None:
    (transcript,) = parse_transcripts(json.dumps(value), "locomo.json")
    assert (transcript.format, transcript.session, transcript.system) == ("locomo", "locomo-conv-1", ())
    assert list(transcript.entries()) == [
        TranscriptEntry(
            wire={"role": "assistant", "content": "Bob: Hi! [image: a dog]"}, id="D2:1", ts="2023-05-08T13:56:00"
        ),
        TranscriptEntry(
            wire={"role": "user", "content": "Ann: Hello."}, id="D2:2", ts="2023-05-08T13:56:00", principal="Ann"
        ),
        TranscriptEntry(
            wire={"role": "user", "content": "Ann: Later."}, id="D10:1", ts="2024-01-01T00:05:00", principal="Ann"
        ),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12:00 pm on 29 February, 2024", "2024-02-29T12:00:00"),
        ("12:30 am on 3 Sept, 2022", "2022-09-03T00:30:00"),
        ("9:07 PM on 31 December 2022", "2022-12-31T21:07:00"),
        ("9:07 pm on 29 February, 2023", None),
        ("13:00 pm on 1 May, 2023", None),
        ("1:60 pm on 1 May, 2023", None),
        ("1:00 pm on 1 Foo, 2023", None),
        ("yesterday", None),
    ],
)
def test_a_date_is_iso_8601_or_none(text: str, expected: str | None) -> None:
    assert iso_date(text) == expected
