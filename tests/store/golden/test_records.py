"""Journal records and manifests as version 1 wrote them are read for ever: `v1/records.json` was written once.

Its tenant's address key is 32 times the letter k. It was written by this file run as a program, which writes it where
it is missing; another major version gets a file beside it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Store, rebuild
from ctxsteward.envelope.building.builder import RENDERERS
from ctxsteward.envelope.testing import FirstLine, WordOverlap, memory_store
from ctxsteward.envelope.tokens.tokenizer import Counter, load_tokenizer
from ctxsteward.schemas import Damaged, InputError
from ctxsteward.store.crypto.addresses import AddressKey
from ctxsteward.store.journal.events import BlankRecord, CompactionRefused, from_record, to_record
from ctxsteward.store.journal.log import Log, coded, read_manifest
from ctxsteward.store.journal.port import JournalRecord, SessionKey

KEY = AddressKey(b"k" * 32)
PATH = Path(__file__).parent / "v1" / "records.json"
GOLDEN: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {"logs": {}}
KINDS = {"opened", "head", "message", "note", "pin", "compaction", "refused", "selection", "erased"}


def logs() -> dict[str, list[JournalRecord]]:
    return {session: [JournalRecord(*row) for row in rows] for session, rows in GOLDEN["logs"].items()}


def restored() -> Store:
    """A store that holds what the file holds."""
    store = memory_store()
    for session, records in logs().items():
        store.journal.append(SessionKey("default", session), 0, records)
    for address, (session, body) in GOLDEN["manifests"].items():
        store.journal.put_manifest(SessionKey("default", session), address, body)
    return store


def test_it_holds_a_record_of_every_kind() -> None:
    assert {record.kind for records in logs().values() for record in records} == KINDS


@pytest.mark.parametrize("session", GOLDEN["logs"])
def test_every_record_is_what_was_written_and_is_written_so_again(session: str) -> None:
    log = Log(memory_store().journal, SessionKey("default", session), KEY)
    for position, record in enumerate(logs()[session]):
        event = log.event(record, position)
        assert from_record(to_record(event)) == event
        again = coded(KEY, session, position, to_record(event))
        assert again == record, "the writer of this version changed what it writes"


@pytest.mark.parametrize("session", GOLDEN["logs"])
def test_sessions_open_in_the_state_they_were_in(session: str) -> None:
    opened = restored().session(session)
    expected = GOLDEN["states"][session]
    assert summary(opened.state) == expected
    assert [entry.message.wire for entry in opened.entries()] == GOLDEN["said"][session]


def summary(state: Any) -> dict[str, Any]:
    """A state in plain values."""
    names = ("position", "ordinal", "outputs", "turns", "nonce", "notes", "compactions", "last_user", "last_text")
    found = {name: getattr(state, name) for name in names}
    found["kept"] = [list(group.ordinals) for group in state.groups]
    found["bullets"] = [[bullet.text, list(bullet.citations)] for bullet in state.bullets]
    return found


def test_envelopes_rebuild_under_their_addresses_or_name_a_renderer_that_is_not_kept() -> None:
    store = restored()
    assert len(GOLDEN["manifests"]) > 3
    for address in GOLDEN["manifests"]:
        renderer = store.manifest(address)["renderer"]
        if renderer not in RENDERERS:
            with pytest.raises(InputError, match=f"made by renderer {renderer}; this version has"):
                rebuild(store, address)
            continue
        envelope = rebuild(store, address)
        assert (envelope.address, envelope.metrics["degraded"]) == (address, 0)


def test_a_byte_more_is_found_out() -> None:
    log = Log(memory_store().journal, SessionKey("default", "s"), KEY)
    for position, record in enumerate(logs()["s"]):
        with pytest.raises(Damaged):
            log.event(record._replace(body=record.body + " "), position)
        with pytest.raises(Damaged):
            log.event(record, position + 1) if not record.ordinal else log.event(
                record._replace(ordinal=record.ordinal + 1), position
            )
    for address, (_, body) in GOLDEN["manifests"].items():
        with pytest.raises(Damaged):
            read_manifest(KEY, address, body + " ")


def written() -> dict[str, Any]:
    """What the file was written from."""
    store = memory_store()
    counter = Counter(load_tokenizer("o200k_base"))
    profile = Profile.from_text("You are the desk's assistant. 你好。", name="desk")
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
    session = store.session("s", profile=profile, system="Be brief.", tools=tools, counter=counter)
    budgets = Budgets(dynamic_tokens=300, recall_fraction=0.3)
    maker = EnvelopeBuilder(
        tokenizer="o200k_base", budgets=budgets, summarizer=FirstLine(), selector=WordOverlap(),
        now=lambda: "2026-11-22T09:00:00Z",
    )  # fmt: skip
    for n in range(16):
        session.append(
            {"role": "user", "content": f"question {n}: what about ticket {n % 4}? " + "word " * 6},
            id=f"m-{n}", phase="work", ts="2026-11-22T09:00:00Z", principal="dana" if n % 2 else None,
        )  # fmt: skip
        if n % 4 == 1:
            call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"n": 1}'}}
            session.append({"role": "assistant", "content": None, "tool_calls": [call]})
            session.append({"role": "tool", "tool_call_id": "c1", "content": "naïve “result” 字"})
        if n % 5 == 2:
            session.note("plan", f"step {n}")
            session.pin(f"§{len(session)}", "soft", name="goal")
        session.append({"role": "assistant", "content": f"answer {n} " + "word " * 6}, origin="s-0§3", pin="soft")
        maker.build(session)
    session.record(CompactionRefused(reason="it would save 3 of 100 tokens", section_tokens=100))
    session.record(BlankRecord(was="note"))
    fork = session.fork(at=5, id="s-fork")
    fork.append({"role": "user", "content": [{"type": "text", "text": "instead …"}]})
    maker.build(fork)
    keys = [SessionKey("default", "s"), SessionKey("default", "s-fork")]
    return {
        "logs": {key.session: store.journal.read(key, 0) for key in keys},
        "manifests": {m.address: [key.session, m.body] for key in keys for m in store.journal.manifests(key)},
        "states": {one.id: summary(one.state) for one in (session, fork)},
        "said": {one.id: [entry.message.wire for entry in one.entries()] for one in (session, fork)},
    }


if __name__ == "__main__" and not PATH.exists():
    PATH.write_text(json.dumps(written(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
