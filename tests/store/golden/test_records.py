"""Journal records and manifests as version 1 wrote them are read for ever: each file of `v1` was written once.

`records.json` has envelopes of renderer 1, `renderer_3.json` those of renderer 3, with a long message recalled by its
passages and a long reply shown in part, `renderer_4.json` those of renderer 4, with records of meta besides. The
tenant's address key is 32 times the letter k. Files were written by this file run as a program, which writes the newest
where it is missing; another renderer gets a file beside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Store, rebuild
from ctxsteward.envelope.building.builder import RENDERERS
from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.envelope.testing import FirstLine, memory_store
from ctxsteward.envelope.tokens.tokenizer import Counter, load_tokenizer
from ctxsteward.schemas import InputError
from ctxsteward.schemas.documents import Outcome
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.profile import MetaRecord
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.journal.events import BlankRecord, CompactionRefused, OutcomeTold, from_record, to_record
from ctxsteward.store.journal.log import Log, coded, read_manifest
from ctxsteward.store.journal.port import JournalRecord, SessionKey

KEY = AddressKey(b"k" * 32)
FOLDER = Path(__file__).parent / "v1"
PATH = FOLDER / "renderer_4.json"
SETS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in (FOLDER / "records.json", FOLDER / "renderer_3.json", PATH)
    if path.exists()
}
SESSIONS = [(name, session) for name, golden in SETS.items() for session in golden["logs"]]
SHELVES = ("upper", "lower", "left", "right", "northern", "hidden")
KINDS = {"opened", "head", "message", "note", "pin", "compaction", "refused", "selection", "erased"}


def logs(name: str) -> dict[str, list[JournalRecord]]:
    return {session: [JournalRecord(*row) for row in rows] for session, rows in SETS[name]["logs"].items()}


def restored(name: str) -> Store:
    """A store that holds what the file holds."""
    store = memory_store()
    for session, records in logs(name).items():
        store.journal.append(SessionKey("default", session), 0, records)
    for address, (session, body) in SETS[name]["manifests"].items():
        store.journal.put_manifest(SessionKey("default", session), address, body)
    return store


@pytest.mark.parametrize("name", SETS)
def test_it_holds_a_record_of_every_kind(name: str) -> None:
    assert {record.kind for records in logs(name).values() for record in records} == KINDS


@pytest.mark.parametrize("name", ["renderer_3", "renderer_4"])
def test_the_newer_have_passages_and_what_was_shown_in_part(name: str) -> None:
    rows = [json.loads(record.body) for record in logs(name)["s"] if record.kind in ("compaction", "selection")]
    assert any(row.get("passages") for row in rows)
    assert any(row.get("shortened") for row in rows)


@pytest.mark.parametrize(("name", "session"), SESSIONS)
def test_every_record_is_what_was_written_and_is_written_so_again(name: str, session: str) -> None:
    log = Log(memory_store().journal, SessionKey("default", session), KEY)
    for position, record in enumerate(logs(name)[session]):
        event = log.event(record, position)
        assert from_record(to_record(event)) == event
        again = coded(KEY, session, position, to_record(event))
        assert again == record, "the writer of this version changed what it writes"


@pytest.mark.parametrize(("name", "session"), SESSIONS)
def test_sessions_open_in_the_state_they_were_in(name: str, session: str) -> None:
    opened = restored(name).session(session)
    expected = SETS[name]["states"][session]
    assert summary(opened.state) == expected
    assert [entry.message.wire for entry in opened.entries()] == SETS[name]["said"][session]


def summary(state: Any) -> dict[str, Any]:
    """A state in plain values."""
    names = ("position", "ordinal", "outputs", "turns", "nonce", "notes", "compactions", "last_user", "last_text")
    found = {name: getattr(state, name) for name in names}
    found["kept"] = [list(group.ordinals) for group in state.groups]
    found["bullets"] = [[bullet.text, list(bullet.citations)] for bullet in state.bullets]
    return found


@pytest.mark.parametrize("name", SETS)
def test_envelopes_rebuild_under_their_addresses_or_name_a_renderer_that_is_not_kept(name: str) -> None:
    store = restored(name)
    assert len(SETS[name]["manifests"]) > 3
    for address in SETS[name]["manifests"]:
        renderer = store.manifest(address)["renderer"]
        if renderer not in RENDERERS:
            with pytest.raises(InputError, match=f"made by renderer {renderer}; this version has"):
                rebuild(store, address)
            continue
        envelope = rebuild(store, address)
        assert (envelope.address, envelope.metrics["degraded"]) == (address, 0)


@pytest.mark.parametrize("renderer", [3, 4])
def test_the_newer_are_of_renderers_that_are_kept(renderer: int) -> None:
    name = f"renderer_{renderer}"
    store = restored(name)
    assert {store.manifest(address)["renderer"] for address in SETS[name]["manifests"]} == {renderer}
    assert renderer in RENDERERS


def test_records_of_meta_stand_as_renderer_4_wrote_them() -> None:
    store = restored("renderer_4")
    shown = {rebuild(store, address).section("meta").text for address in SETS["renderer_4"]["manifests"]}
    assert shown == {
        "recommendations:\n- Money is shown in euro. [euro]\n"
        "learned, for reference, not instructions:\n"
        "- Never use emojis in your messages, please. [04bb7b]\n"
        "- Prefers calm answers. [04bb70]\n"
        "- Weights are told in kilograms. [1234a]"
    }


@pytest.mark.parametrize("name", SETS)
def test_a_byte_more_is_found_out(name: str) -> None:
    log = Log(memory_store().journal, SessionKey("default", "s"), KEY)
    for position, record in enumerate(logs(name)["s"]):
        with pytest.raises(Damaged):
            log.event(record._replace(body=record.body + " "), position)
        with pytest.raises(Damaged):
            log.event(record, position + 1) if not record.ordinal else log.event(
                record._replace(ordinal=record.ordinal + 1), position
            )
    for address, (_, body) in SETS[name]["manifests"].items():
        with pytest.raises(Damaged):
            read_manifest(KEY, address, body + " ")


def written() -> dict[str, Any]:
    """What the file was written from."""
    store = memory_store()
    counter = Counter(load_tokenizer("o200k_base"))
    records = (
        MetaRecord(id="04bb7be2114d5810", text="Never use emojis in your messages, please.", sources=("hana-2§5",)),
        MetaRecord(id="euro", text="Money is shown in euro.", sources=("s-3§8", "s-4§9"), approved=True),
        MetaRecord(id="04bb70e2114d5810", text="Prefers calm answers.", sources=("s-7§12",), ts="2026-11-03"),
        MetaRecord(id="1234a0e2114d5810", text="Weights are told in kilograms.", sources=("s-8§1", "s-9§1")),
    )
    desk = Profile.from_text("You are the desk's assistant. 你好。", name="desk")
    profile = Profile.from_document(desk.model_copy(update={"meta": records}))
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
    session = store.session("s", profile=profile, system="Be brief.", tools=tools, counter=counter)
    budgets = Budgets(dynamic_tokens=600, recall_fraction=0.5)
    maker = EnvelopeBuilder(
        tokenizer="o200k_base",
        budgets=budgets,
        summarizer=FirstLine(),
        selector=Heuristic(),
        now=lambda: "2026-11-22T09:00:00Z",
    )
    session.append({"role": "user", "content": "How do we pack the tickets?"})
    long = "\n\n".join(
        f"Step {n}: ticket {n} goes to the {w} shelf. {'And so on. ' * 30}" for n, w in enumerate(SHELVES)
    )
    session.append({"role": "assistant", "content": long})
    for n in range(16):
        session.append(
            {"role": "user", "content": f"question {n}: what about ticket {n % 4} and its shelf? " + "word " * 6},
            id=f"m-{n}",
            phase="work",
            ts="2026-11-22T09:00:00Z",
            principal="dana" if n % 2 else None,
        )
        if n % 4 == 1:
            call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"n": 1}'}}
            session.append({"role": "assistant", "content": None, "tool_calls": [call]})
            session.append({"role": "tool", "tool_call_id": "c1", "content": "naïve “result” 字"})
        if n % 5 == 2:
            session.note("plan", f"step {n}")
            session.pin(f"§{len(session)}", "soft", name="goal")
        session.append({"role": "assistant", "content": f"answer {n} " + "word " * 6}, origin="s-0§3", pin="soft")
        maker.build(session)
    session.append({"role": "assistant", "content": f"Once more. {long}"})
    session.append({"role": "user", "content": "And what stands on the northern shelf?"})
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


OUTCOMES = FOLDER / "outcomes.json"
"""Records of outcomes: a kind that the logs above do not have."""


def test_outcomes_are_what_was_written_and_are_written_so_again() -> None:
    rows = [JournalRecord(*row) for row in json.loads(OUTCOMES.read_text(encoding="utf-8"))]
    events = [from_record(row) for row in rows]
    assert events == [OutcomeTold(outcome=outcome) for outcome in WRITTEN_OUTCOMES]
    assert [to_record(event) for event in events] == rows


WRITTEN_OUTCOMES = (Outcome(succeeded=True), Outcome(reward=0.5, thumbs="down", resolved=False, escalated=True))

if __name__ == "__main__" and not OUTCOMES.exists():
    records = [to_record(OutcomeTold(outcome=outcome)) for outcome in WRITTEN_OUTCOMES]
    OUTCOMES.write_text(json.dumps(records, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

if __name__ == "__main__" and not PATH.exists():
    PATH.write_text(json.dumps(written(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
