"""The store's own sessions as a source: which are over, what they hand on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Profile, Store, open_store
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.steward.ingest.items import LoadedItem, QuarantinedItem, SkippedItem
from ctxsteward.steward.ingest.pipeline import IngestSettings, ingest, load
from ctxsteward.steward.ingest.sources import SETTLED_SECONDS, StoreSource
from ctxsteward.steward.observations.transcript import ReplayedTranscript
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.erasure.forget import forget

NOW_SECONDS = 1_800_000_000.0
"""2027-01-15T08:00:00Z"""
OLD, RECENT = "2027-01-14T08:00:00Z", "2027-01-15T07:00:00+00:00"
PLAIN = IngestSettings(redactor=None)


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        yield opened


def source_of(store: Store, **told: object) -> StoreSource:
    return StoreSource(store, now_seconds=NOW_SECONDS, **told)  # type: ignore[arg-type]


def say(
    store: Store, session: str, *texts: str, ts: str | None = OLD, principal: str | None = None, **more: object
) -> None:
    opened = store.session(session, **more)  # type: ignore[arg-type]
    opened.extend(NewMessage(message={"role": "user", "content": text}, ts=ts, principal=principal) for text in texts)


def outcome_of(source: StoreSource, session: str) -> object:
    found = load(source, session, "1@0")
    return ingest(found, PLAIN)[0] if isinstance(found, LoadedItem) else found


def replayed(source: StoreSource, session: str) -> ReplayedTranscript:
    found = outcome_of(source, session)
    assert isinstance(found, ReplayedTranscript)
    return found


def skipped(source: StoreSource, session: str) -> str:
    """Why."""
    found = outcome_of(source, session)
    assert isinstance(found, SkippedItem)
    return found.reason


def test_sessions_that_are_over_are_listed(store: Store) -> None:
    say(store, "old", "a")
    say(store, "recent", "a", ts=RECENT)
    say(store, "grown", "a")
    say(store, "grown", "b", ts=RECENT)
    say(store, "timeless", "a", ts=None)
    store.session("silent")
    items = {item.name: item for item in source_of(store).items()}
    assert sorted(items) == ["old", "silent", "timeless"]
    assert items["old"].modified_seconds == NOW_SECONDS - 86_400
    assert items["timeless"].modified_seconds == NOW_SECONDS
    later = StoreSource(store, now_seconds=NOW_SECONDS + SETTLED_SECONDS)
    assert [item.name for item in later.items()] == ["grown", "old", "recent", "silent", "timeless"]


def test_a_version_grows_with_the_session(store: Store) -> None:
    say(store, "s", "a")
    (before,) = source_of(store).items()
    assert list(source_of(store).items()) == [before]
    say(store, "s", "b")
    (after,) = source_of(store).items()
    assert after.version != before.version


def test_what_it_hands_on_has_references_principals_and_times(store: Store) -> None:
    say(store, "s", "first", principal="ada", system="Be kind.")
    session = store.session("s")
    session.append({"role": "system", "content": "obey"}, ts=OLD)
    session.append(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        ts=OLD,
    )
    session.append({"role": "tool", "tool_call_id": "c", "content": "found"}, ts=OLD)
    session.append({"role": "user", "content": "from elsewhere"}, ts=OLD, origin="s-0§4")
    EnvelopeBuilder(model="gpt-4o").build(session)
    said = replayed(source_of(store), "s")
    assert [(one.ref, one.role, one.trust, one.tool, one.principal) for one in said.utterances] == [
        ("§1", "user", "user", None, "ada"),
        ("§2", "system", "tool_external", None, "ada"),
        ("§3", "assistant", "assistant", None, "ada"),
        ("§4", "tool", "tool_external", "look", "ada"),
        ("§5", "user", "tool_external", None, "ada"),
    ]
    assert (said.source, said.session, said.principal, said.format, said.started) == ("store", "s", "ada", "store", OLD)
    for one in said.utterances:
        message = session.resolve(one.ref)
        assert one.text == (message.tool_results[0].text if message.role == "tool" else message.text)


def test_records_that_it_was_shown_are_those_of_every_profile_it_was_under(store: Store) -> None:
    def profile(version: int, *ids: str) -> Profile:
        records = tuple(MetaRecord(id=id_, text="Answer in metric units.", sources=("s§1",)) for id_ in ids)
        document = ProfileDocument(version=version, meta=records)
        return Profile.model_validate_json(document.model_dump_json())

    say(store, "s", "a", profile=profile(3, "pref-1", "pref-2"))
    store.session("s").repin(profile(4, "pref-2", "fix-1"))
    fork = store.session("s").fork(id="f")
    fork.append({"role": "user", "content": "own"}, ts=OLD)
    said, forked = replayed(source_of(store), "s"), replayed(source_of(store), "f")
    assert (said.profile_version, said.shown) == (4, {"pref-1", "pref-2", "fix-1"})
    assert (forked.profile_version, forked.shown) == (4, {"pref-1", "pref-2", "fix-1"}), "it repeats what it shares"
    assert [(one.ref, one.text) for one in forked.utterances] == [("§2", "own")]


def test_a_session_of_another_governed_profile_is_another_agents(store: Store) -> None:
    def profile(name: str, version: int | None) -> Profile:
        return Profile.model_validate_json(ProfileDocument(name=name, version=version).model_dump_json())

    for name, version in (("support", 1), ("sales", 1), ("sales", None)):
        say(store, f"{name}-{version}", "a", profile=profile(name, version))
    say(store, "none", "a")
    say(store, "moved", "a", profile=profile("support", 1))
    store.session("moved").repin(profile("sales", 2))
    names = ("support-1", "sales-1", "sales-None", "none", "moved")
    found = {name: outcome_of(source_of(store, profile="support"), name) for name in names}
    skipped = {name: one.reason for name, one in found.items() if isinstance(one, SkippedItem)}
    assert skipped == {"sales-1": "other_profile", "moved": "other_profile"}
    assert not any(isinstance(outcome_of(source_of(store), name), SkippedItem) for name in names)


def test_the_stewards_own_sessions_are_skipped_by_their_origin(store: Store) -> None:
    store.session("own").append({"role": "user", "content": "Judge this."}, origin="steward", ts=OLD)
    assert skipped(source_of(store), "own") == "own_output"


def test_what_was_forgotten_is_not_handed_on(store: Store) -> None:
    say(store, "s", "ada's words", principal="ada")
    say(store, "s", "bob's words", principal="bob")
    say(store, "gone", "words")
    told = {"who": "dpo", "when": OLD, "why": "asked"}
    forget(store, principal="ada", **told)
    forget(store, session="gone", **told)
    assert [(one.ref, one.text) for one in replayed(source_of(store), "s").utterances] == [("§2", "bob's words")]
    assert skipped(source_of(store), "gone") == "deleted"
    assert [item.name for item in source_of(store).items()] == ["s"]


def test_a_session_over_the_cap_is_quarantined(store: Store) -> None:
    say(store, "s", *["x" * 1000] * 100)
    refused = load(source_of(store), "s", "1@0", cap_bytes=50_000)
    assert isinstance(refused, QuarantinedItem)
    assert refused.reason == "too_large"


def test_sessions_that_are_only_in_the_object_store_are_handed_on(tmp_path: Path) -> None:
    keys = memory_keys()
    with open_store(f"file:{tmp_path / 'store'}", journal=tmp_path / "here", keys=keys) as here:
        say(here, "s", "over there")
        assert here.flush(20)
    with open_store(f"file:{tmp_path / 'store'}", journal=tmp_path / "there", keys=keys) as there:
        source = source_of(there)
        (item,) = source.items()
        said = replayed(source, item.name)
    assert [one.text for one in said.utterances] == ["over there"]


def test_handing_on_writes_nothing(store: Store) -> None:
    say(store, "s", "a")
    before = [store.session("s").state.position, store.journal.length(store.session("s").key)]
    outcome_of(source_of(store), "s")
    assert [store.session("s").state.position, store.journal.length(store.session("s").key)] == before


def test_the_document_is_the_same_bytes_each_time(store: Store) -> None:
    say(store, "s", "a", "b")
    first, again = (source_of(store).read("s", "1@0", cap_bytes=10_000).data for _ in range(2))
    assert first == again
    assert json.loads(first)["session"] == "s"


@pytest.mark.parametrize(
    ("told", "succeeded"),
    [
        ((), None),
        (({"reward": 1.0},), True),
        (({"reward": 1}, {"thumbs": "down"}), None),  # signs that contradict each other
        (({"resolved": True}, {"resolved": False}), False),  # the later one counts
        (({"escalated": True}, {"succeeded": True}), True),
    ],
)
def test_how_a_session_ended_is_what_its_application_told(
    store: Store, told: tuple[dict[str, object], ...], succeeded: bool | None
) -> None:
    say(store, "s-1", "Hello there.")
    before = [item.version for item in source_of(store).items()]
    for outcome in told:
        store.session("s-1").outcome(**outcome)  # type: ignore[arg-type]
    assert replayed(source_of(store), "s-1").succeeded is succeeded
    assert ([item.version for item in source_of(store).items()] != before) is bool(told), "it is read anew"


def test_an_outcome_changes_no_envelope(store: Store) -> None:
    say(store, "s-1", "Hello there.")
    session = store.session("s-1")
    before = EnvelopeBuilder(tokenizer="o200k_base").build(session).render("text")
    session.outcome(thumbs="up")
    assert EnvelopeBuilder(tokenizer="o200k_base").build(session).render("text") == before


def test_one_session_whose_log_row_was_altered_stops_no_other(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}") as store:
        for session in ("altered", "sound"):
            say(store, session, "a")
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as db, db:
        db.execute("UPDATE logs SET length = length - 1 WHERE session = 'altered'")
    with open_store(f"file:{tmp_path}") as store:
        source = source_of(store)
        assert [item.name for item in source.items()] == ["altered", "sound"]
        assert isinstance(outcome_of(source, "altered"), QuarantinedItem)
        assert isinstance(outcome_of(source, "sound"), ReplayedTranscript)
