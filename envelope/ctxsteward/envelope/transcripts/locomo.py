"""LoCoMo conversations: dated sessions of two speakers; `speaker_a` is the user, `speaker_b` the assistant.

``{"sample_id", "conversation": {"speaker_a", "speaker_b", "session_1_date_time": "1:56 pm on 8 May, 2023",
"session_1": [{"speaker", "dia_id", "text", "blip_caption"?}, …], …}}``. A turn's content is ``Speaker:
text``, plus `` [image: caption]``; its id is the `dia_id`, its time the session's. Sessions go in the order
of their numbers; a date without a session is skipped. Questions, summaries and observations are not part of
the transcript. Shape: snap-research/LoCoMo, `data/locomo10.json`.

>>> iso_date("1:56 pm on 8 May, 2023")
'2023-05-08T13:56:00'
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from ctxsteward.schemas import InvalidTranscript, Wire

from .strict_json import at, checked, show
from .transcript import Transcript, TranscriptEntry, TranscriptValue

_SESSION = re.compile(r"session_([0-9]{1,6})", re.ASCII)
_DATE = re.compile(
    r"\s*([0-9]{1,2}):([0-9]{2})\s*([ap])\.?m\.?\s+on\s+([0-9]{1,2})\s+([a-z]{3})[a-z]*\.?,?\s+([0-9]{4})\s*",
    re.ASCII | re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def read_sample(item: TranscriptValue) -> Transcript:
    """The transcript of one sample; its session is ``<stem>-<sample_id>``."""
    assert isinstance(item.value, dict)
    sample_id = item.value.get("sample_id")
    if sample_id is not None and not isinstance(sample_id, int | str):
        raise InvalidTranscript(item.source, at(item.place, "sample_id"), f"found {show(sample_id)}", "expected text")
    where, conversation = at(item.place, "conversation"), item.value["conversation"]
    if not isinstance(conversation, dict):
        raise InvalidTranscript(item.source, where, f"found {show(conversation)}", "expected an object of sessions")
    entries = tuple(_entries(conversation, item.source, where))
    if not entries:
        raise InvalidTranscript(item.source, where, "no messages", "expected `session_1` with at least one turn")
    return Transcript(
        source=item.source,
        format="locomo",
        session=item.session if sample_id is None else f"{item.stem}-{sample_id}",
        open_entries=entries.__iter__,
    )


def iso_date(text: str) -> str | None:
    """ISO 8601 of a date as LoCoMo writes it; None if it is not one."""
    match = _DATE.fullmatch(text)
    if match is None or match[5].lower() not in _MONTHS or not 1 <= int(match[1]) <= 12:
        return None
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    month = _MONTHS.index(match[5].lower()) + 1
    try:
        return datetime(int(match[6]), month, int(match[4]), hour, int(match[2])).isoformat()
    except ValueError:
        return None


def _entries(conversation: Wire, source: str, where: str) -> Iterator[TranscriptEntry]:
    user = _text(conversation, "speaker_a", source, where)
    speakers = {_text(conversation, "speaker_b", source, where): "assistant", user: "user"}
    for key in sorted(filter(_SESSION.fullmatch, conversation), key=lambda key: int(key.removeprefix("session_"))):
        turns, date_key = conversation[key], f"{key}_date_time"
        if not isinstance(turns, list):
            raise InvalidTranscript(source, at(where, key), f"found {show(turns)}", "expected an array of turns")
        ts = _date(conversation, date_key, source, where)
        for index, turn in enumerate(turns):
            yield _entry(turn, speakers, ts, source, f"{at(where, key)}[{index}]")


def _entry(turn: object, speakers: dict[str, str], ts: str | None, source: str, where: str) -> TranscriptEntry:
    if not isinstance(turn, dict):
        raise InvalidTranscript(source, where, f"found {show(turn)}", "expected a turn with `speaker` and `text`")
    speaker = _text(turn, "speaker", source, where)
    if speaker not in speakers:
        hint = f"expected {' or '.join(map(repr, speakers))}, the conversation's speakers"
        raise InvalidTranscript(source, at(where, "speaker"), f"found {speaker!r:.60}", hint)
    role, content = speakers[speaker], f"{speaker}: {_text(turn, 'text', source, where)}"
    if turn.get("blip_caption") is not None:
        content += f" [image: {_text(turn, 'blip_caption', source, where)}]"
    return TranscriptEntry(
        wire=checked({"role": role, "content": content}, source, where).wire,
        id=None if turn.get("dia_id") is None else _text(turn, "dia_id", source, where),
        ts=ts,
        principal=speaker if role == "user" else None,
    )


def _date(conversation: Wire, key: str, source: str, where: str) -> str | None:
    if conversation.get(key) is None:
        return None
    text = _text(conversation, key, source, where)
    date = iso_date(text)
    if date is None:
        raise InvalidTranscript(source, at(where, key), f"found {text!r:.60}", "expected e.g. '1:56 pm on 8 May, 2023'")
    return date


def _text(node: Wire, key: str, source: str, where: str) -> str:
    value = node.get(key)
    if not isinstance(value, str):
        found = f"found {show(value)}" if key in node else "is missing"
        raise InvalidTranscript(source, at(where, key), found, "expected text")
    return value
