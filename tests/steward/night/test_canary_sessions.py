"""A canary from the chat service's side: sessions open with the version they are assigned, requests are audited."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.envelope.audit import sealed_request
from ctxsteward.envelope.store import Store, open_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.steward.gate.settings import GateSettings
from ctxsteward.steward.night.report import NightReport
from ctxsteward.steward.release.assignment import profile_for
from ctxsteward.steward.release.canary import AuditCounts, audits
from ctxsteward.steward.settings import NightSettings

from .desk import DAY_SECONDS, NOON, SHARED, night, say, settings_of

SESSIONS = 40
WHEN = "2026-11-17T12:00:00+00:00"
SECOND = "No, the parking fee is 8 EUR, not 6 EUR."


def serve(store: Store, log: Path, *, broken: int | None) -> Counter[int]:
    """A service's day: sessions, and a request each, logged as it left; under version `broken` it left otherwise."""
    builder = EnvelopeBuilder(tokenizer="o200k_base")
    shared: Counter[int] = Counter()
    with log.open("w") as lines:
        for number in range(SESSIONS):
            name = f"s-{number}"
            session = store.session(name, tenant="acme", profile=profile_for(store, "support", name, tenant="acme"))
            session.append({"role": "user", "content": "What does parking cost?"}, ts=WHEN, principal=name)
            sent = sealed_request(builder.build(session), "openai-chat")
            session.append({"role": "assistant", "content": "8 EUR."}, ts=WHEN)
            version = session.state.head.profile["version"]
            shared[version] += 1
            if version == broken:
                sent["payload"]["messages"][0]["content"] += " Ignore the parking fee."
            lines.write(json.dumps(sent) + "\n")
    return shared


def canary_of(root: Path) -> NightSettings:
    """Version 1 for all, version 2 a canary for one half."""
    settings = settings_of(root, canary_share=0.5, sent=str(root / "sent"), sources=(str(root / "in"), "store"))
    (root / "sent").mkdir()
    for day, text in enumerate((SHARED[0], SECOND)):
        for person in range(3):
            seconds = NOON + day * DAY_SECONDS
            say(root / "in", f"{day}-{person}", text, principal=f"p{day}-{person}", seconds=seconds)
        first = night(settings.model_copy(update={"night": f"2026-11-{16 + day}"}), now_seconds=seconds + 3600)
    assert (first.outcome, first.version) == ("canary", 2)
    return settings


def next_night(settings: NightSettings) -> NightReport:
    return night(settings.model_copy(update={"night": "2026-11-18"}), now_seconds=NOON + 3 * DAY_SECONDS)


@pytest.mark.parametrize(("broken", "level", "code", "version"), [(None, "kept", 0, 2), (2, "rolled_back", 4, 3)])
def test_sessions_are_shared_out_and_their_requests_decide(
    tmp_path: Path, broken: int | None, level: str, code: int, version: int
) -> None:
    settings = canary_of(tmp_path).model_copy(update={"canary_share": None})
    limits = settings.canary.model_copy(update={"min_sessions": 10})
    with open_store(settings.store) as store:
        shared = serve(store, tmp_path / "sent" / "requests.jsonl", broken=broken)
        assert min(shared[1], shared[2]) >= 10
        assert audits(str(tmp_path / "sent"), store, "acme", "support", (1, 2)) == {
            one: AuditCounts(shared[one], shared[one] if one == broken else 0) for one in (1, 2)
        }

    found = next_night(settings.model_copy(update={"canary": limits}))

    assert found.canary is not None
    assert (found.canary.level, found.exit_code) == (level, code)
    assert ("audit_findings is worse" in "; ".join(found.canary.why)) == (broken is not None)
    with open_store(settings.store) as store:
        newest = store.profiles("support", tenant="acme").newest()
        assert newest.number == version
        assert profile_for(store, "support", "s-new", tenant="acme").version == version
        assert store.session("s-0", tenant="acme").state.head.profile["version"] in (1, 2), "open sessions stay"


def test_a_guard_that_falls_on_tonights_cases_ends_a_canary(tmp_path: Path) -> None:
    settings = canary_of(tmp_path)
    (tmp_path / "gate.yaml").write_text(
        "name: desk/1\ncases:\n- id: parking\n  messages: [{role: user, content: The parking fee is 6 EUR.}]\n"
        "  canaries: [{text: 6 EUR, says: The parking fee is 6 EUR.}]\n  question: What is the parking fee?\n"
    )
    found = next_night(settings.model_copy(update={"gate": GateSettings(cases=str(tmp_path / "gate.yaml"))}))

    assert found.canary is not None
    assert (found.canary.level, found.canary.why, found.exit_code) == ("rolled_back", ("guard canary_facts fell",), 4)


@pytest.mark.parametrize(
    "wrong", [{"sent": "nowhere"}, {"gate": GateSettings(cases="nowhere.yaml")}], ids=["sent", "cases"]
)
def test_what_is_not_there_is_refused_before_anything_is_read(wrong: dict[str, object], tmp_path: Path) -> None:
    told: list[str] = []
    with pytest.raises(InputError, match="nowhere"):
        night(settings_of(tmp_path, **wrong), tell=told.append)
    assert told == []


def test_what_was_taken_back_returns_neither_by_itself_nor_in_other_words(tmp_path: Path) -> None:
    """More people say it, most of them otherwise: the record has the same id, and another text."""
    settings = canary_of(tmp_path).model_copy(update={"canary_share": None})
    with open_store(settings.store) as store:
        serve(store, tmp_path / "sent" / "requests.jsonl", broken=2)
    third = next_night(settings.model_copy(update={"canary": settings.canary.model_copy(update={"min_sessions": 10})}))
    assert third.outcome == "rolled_back"

    fourth = night(settings.model_copy(update={"night": "2026-11-19"}), now_seconds=NOON + 4 * DAY_SECONDS)
    locker, reworded = "No, the locker fee is 3 EUR, not 2 EUR.", "No, the parking fee is 8 EUR and not 6 EUR."
    for number, text in enumerate([locker] * 3 + [reworded] * 6):
        say(tmp_path / "in", f"9-{number}", text, principal=f"q-{number}", seconds=NOON + 4 * DAY_SECONDS)
    fifth = night(settings.model_copy(update={"night": "2026-11-20"}), now_seconds=NOON + 5 * DAY_SECONDS)
    again = night(settings.model_copy(update={"night": "2026-11-20"}), now_seconds=NOON + 5 * DAY_SECONDS)

    assert (fourth.outcome, fourth.version) == ("unchanged", 3)
    assert "a rollback took back" in fourth.changes[-1]
    assert (fifth.outcome, fifth.version) == ("promoted", 4)
    assert "a rollback took back" in fifth.changes[-1]
    assert (again.outcome, again.final) == ("unchanged", fifth.final)
    with open_store(settings.store) as store:
        texts = {one.text for one in store.profiles("support", tenant="acme").newest().profile.meta}
    assert texts == {SHARED[0], locker}


def test_a_log_of_requests_that_is_none_says_nothing(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path / 'store'}") as store:
        for name, text in {
            "a.jsonl": '{"payload": 1}\nno JSON\n[1]\n{"seal": {"tenant": "acme", "address": "ff", "session": "x"}}\n',
            "b.json": '{"seal": {"tenant": "other", "address": 1, "session": null}}',
            "c.json": "[" * 5_000,
            "d.txt": "{}",
        }.items():
            (tmp_path / name).write_text(text)
        (tmp_path / "e.jsonl").write_bytes(b"\xff\xfe")
        assert audits(str(tmp_path), store, "acme", "support", (1, 2)) == {1: AuditCounts(), 2: AuditCounts()}
        with pytest.raises(InputError, match="no such file or folder"):
            audits(str(tmp_path / "nowhere"), store, "acme", "support", (1,))


def test_requests_under_another_profile_say_nothing_of_this_one(tmp_path: Path) -> None:
    log = tmp_path / "sent.json"
    with open_store(f"file:{tmp_path / 'store'}") as store:
        for name in ("support", "sales"):
            made = ProfileDocument(name=name)
            store.profiles(name, tenant="acme").commit(made, who="ada", why="first", when=WHEN)
        session = store.session("s", tenant="acme", profile=store.profiles("sales", tenant="acme").newest().profile)
        session.append({"role": "user", "content": "What does parking cost?"}, ts=WHEN)
        envelope = EnvelopeBuilder(tokenizer="o200k_base").build(session)
        log.write_text(json.dumps(sealed_request(envelope, "openai-chat")))
        found = {one: audits(str(log), store, "acme", one, (1,)) for one in ("support", "sales")}
    assert found == {"support": {1: AuditCounts()}, "sales": {1: AuditCounts(1, 0)}}
