"""When something was said: the message's own time, else when its session started, else its file's; never the clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import open_store
from ctxsteward.envelope.history import tool_groups
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.pipeline import IngestSettings, ingest, load
from ctxsteward.steward.ingest.sources import StoreSource
from ctxsteward.steward.observations.transcript import ReplayedTranscript

PLAIN = IngestSettings(redactor=None)
WRITTEN_SECONDS, WRITTEN = 1_800_000_000.5, "2027-01-15T08:00:00.500000+00:00"
STARTED = "2026-01-02T03:04:05"
MAY, JUNE = "2026-05-01T10:00:00Z", "2026-06-01"


class Case(NamedTuple):
    id: str
    messages: tuple[dict[str, Any], ...]
    times: list[str | None]
    dated: str
    started: str | None = None
    written_seconds: float | None = WRITTEN_SECONDS


CASES = (
    Case("its own", ({"ts": MAY}, {"timestamp": JUNE}), [MAY, JUNE], "messages", STARTED),
    Case(
        "in Unix seconds",
        ({"created_at": 1_800_000_000}, {"created": 1.8e12}),
        ["2027-01-15T08:00:00+00:00"] * 2,
        "messages",
    ),
    Case("of the message before it", ({"ts": MAY}, {}, {"ts": JUNE}, {}), [MAY, MAY, JUNE, JUNE], "messages", STARTED),
    Case("before the first that tells one, the start", ({}, {"ts": MAY}), [STARTED, MAY], "messages", STARTED),
    Case("without a start, the first", ({}, {"ts": MAY}), [MAY, MAY], "messages"),
    Case("the start", ({}, {}), [STARTED] * 2, "started", STARTED),
    Case("the file", ({}, {}), [WRITTEN] * 2, "file"),
    Case("nothing", ({}, {}), [None, None], "undated", None, None),
    Case(
        "what is no time is none",
        ({"ts": "yesterday"}, {"created": True}, {"ts": -5}, {"ts": 1e300}),
        [WRITTEN] * 4,
        "file",
    ),
    Case("nor is the year 33658", ({"ts": 1e15},), [WRITTEN], "file"),
)


def replayed(case: Case) -> ReplayedTranscript:
    messages = [{"role": "user", "content": "I live in Bonn.", **told} for told in case.messages]
    meta = {} if case.started is None else {"started": case.started}
    data = json.dumps({"messages": messages, "ctxsteward": meta}).encode()
    (found,) = ingest(LoadedItem(source="a", name="a", data=data, written_seconds=case.written_seconds), PLAIN)
    assert isinstance(found, ReplayedTranscript)
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_message_has_the_best_time_that_is_known_of_it(case: Case) -> None:
    found = replayed(case)
    assert [said.ts for said in found.utterances] == case.times
    assert found.dated == case.dated


def test_a_session_of_the_store_that_tells_no_time_has_that_of_its_first_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_groups, "instant", lambda text: 0.0)  # as earlier versions, which took any time
    for name, dated in (("inside", "undated"), ("beside", "file")):
        journal = tmp_path / "journal" if dated == "file" else None
        found = sessions(f"file:{tmp_path / name}", journal)
        assert found["own"] == ("messages", [MAY])
        assert (found["none"][0], found["wrong"][0]) == (dated, dated)
        assert found == sessions(f"file:{tmp_path / name}", journal), "and however it grows"


def sessions(uri: str, journal: Path | None) -> dict[str, tuple[str, list[str | None]]]:
    """What sessions of a store tell, by what their messages told; the first message of each alone."""
    with open_store(uri, journal=journal) as store:
        for name, ts in (("own", MAY), ("none", None), ("wrong", "soon")):
            store.session(name).extend([NewMessage(message={"role": "user", "content": "I live in Bonn."}, ts=ts)])
        assert store.flush(30)
        source = StoreSource(store, now_seconds=WRITTEN_SECONDS)
        found = {}
        for name in ("own", "none", "wrong"):
            loaded = load(source, name, "1@0")
            assert isinstance(loaded, LoadedItem)
            (one,) = ingest(loaded, PLAIN)
            assert isinstance(one, ReplayedTranscript)
            found[name] = (one.dated, [said.ts for said in one.utterances][:1])
    return found
