"""Every route of the contract gives what the library gives, and what is published as a schema fits it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ctxsteward.console.service.access import TokenFile, add_token
from ctxsteward.console.service.desk import Service, ServiceSettings
from ctxsteward.console.terminal.options import read_builder
from ctxsteward.envelope import PROVIDERS, Budgets, EnvelopeBuilder, Profile, Store, open_store, rebuild
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas.publish import validate
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.erasure.receipt import receipt_key, verified_receipt
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.store.objects.memory import MemoryObjects

from ...evals.suites.made import made, played
from ..steward.scenes import PROFILE, run, transcript, value
from .serving import FREE, NOON, Served, served, tenants

SIGHTS = ["Gion", "Nijo", "Fushimi", "Nara", "Uji", "Arashiyama", "Kurama", "Ohara", "Kibune", "Daigo", "Takao"]
TOLD = ["A week in Kyoto, please.", "Never book a flight before 10:00.", "My budget is 90,000 yen."]
TOLD += [f"{sight} sounds fine, and a long walk along the river would be very welcome there." for sight in SIGHTS]


@pytest.fixture
def trip() -> Served:
    """A session that has been compacted."""
    on = served(limits=FREE, budgets=Budgets(dynamic_tokens=400))
    for text in TOLD:
        on.say("trip", text)
        on.post("/api/sessions/trip/build", {"envelope": False})
    return on


def test_health_says_whether_the_store_answers() -> None:
    on = served(limits=FREE)
    assert on.get("/healthz") == {"status": "ok"}


def test_a_service_whose_store_does_not_answer_is_not_well(tmp_path: Path) -> None:
    on = served(open_store(f"file:{tmp_path}"), limits=FREE)
    on.store.close()
    assert on.get("/healthz", 503)["type"] == "urn:ctxsteward:problem:unavailable"


# -- forgetting -------------------------------------------------------------------------------------------------------


def test_an_erasure_is_answered_with_its_receipt_and_goes_to_tokens_with_that_scope(tmp_path: Path) -> None:
    two = tenants(tmp_path)
    eraser = add_token(two.path, "privacy desk", "acme", ("erase",))
    two = two._replace(served=served(two.served.store, limits=FREE, tokens=TokenFile(two.path)))
    rows = {"messages": [{"message": {"role": "user", "content": "The code is 4711."}, "principal": "ann"}]}
    two.served.post("/api/sessions/vault/messages", rows, headers=two.as_(two.acme))
    asked = {"principal": "ann", "why": "request 7"}
    for token in (two.acme, two.reader, two.steward):
        assert "`erase`" in two.served.post("/api/erasures", asked, 403, headers=two.as_(token))["detail"]
    answer = two.served.client.post("/api/erasures", json=asked, headers=two.as_(eraser))
    done = verified_receipt(answer.content, receipt_key(two.served.store.keys, "acme"))
    assert (done.tenant, done.who, done.principal, done.sessions) == ("acme", "privacy desk", "ann", ("vault",))
    read = two.served.client.get("/api/sessions/vault/refs/1", headers=two.as_(two.acme))
    assert (read.status_code, "4711" in read.text) == (410, False)
    two.served.post("/api/erasures", {"why": "x"}, 422, headers=two.as_(eraser))
    two.served.post("/api/erasures", {"session": "nobody", "why": "x"}, 422, headers=two.as_(eraser))


# -- appending --------------------------------------------------------------------------------------------------------


def test_messages_are_appended_in_their_order_and_an_id_only_once() -> None:
    on = served(limits=FREE)
    rows = [
        {"message": {"role": "user", "content": "One."}, "id": "a"},
        {"message": {"role": "assistant", "content": "Two."}, "id": "b", "ts": NOON, "pin": "soft"},
    ]
    first = on.post("/api/sessions/s/messages", {"messages": rows})
    assert first == {
        "session": "s",
        "length": 2,
        "findings": [],
        "messages": [{"ref": "§1", "ordinal": 1, "is_new": True}, {"ref": "§2", "ordinal": 2, "is_new": True}],
    }
    again = on.post("/api/sessions/s/messages", {"messages": [*rows, {"message": {"role": "user", "content": "3"}}]})
    assert [(row["ref"], row["is_new"]) for row in again["messages"]] == [("§1", False), ("§2", False), ("§3", True)]
    session = on.store.session("s")
    assert [session.resolve(n).text for n in (1, 2, 3)] == ["One.", "Two.", "3"]
    assert session.entry(2).event.ts == NOON


def test_an_invalid_message_among_several_writes_none_of_them() -> None:
    on = served(limits=FREE)
    rows = [{"message": {"role": "user", "content": "One."}}, {"message": {"role": "user"}}]
    problem = on.post("/api/sessions/s/messages", {"messages": rows}, 422)
    assert "content" in problem["detail"]
    assert on.get("/api/sessions/s/refs/1", 404)


def test_a_session_is_made_with_the_head_that_its_first_request_names() -> None:
    on = served(limits=FREE)
    profile = Profile.from_text("You plan trips.", name="planner")
    on.store.profiles("planner").commit(profile, who="ann", why="first", when=NOON, parent=0)
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    head = {"system": "Speak plainly.", "profile": "planner", "tools": [tool]}
    on.post("/api/sessions/s/messages", {"messages": [{"message": {"role": "user", "content": "Hi"}}], "head": head})
    built = on.post("/api/sessions/s/build", {"provider": "openai-chat"})
    system = [one["content"] for one in built["request"]["messages"] if one["role"] == "system"]
    assert system == ["You plan trips.", "Speak plainly."]
    assert built["request"]["tools"] == head["tools"]


def test_a_session_is_made_with_the_service_s_profile_where_it_names_none() -> None:
    on = served(limits=FREE, profile=Profile.from_text("You plan trips.", name="planner"))
    on.say("s", "Hi")
    built = on.post("/api/sessions/s/build")
    assert built["envelope"]["sections"]["system"]["content"][0]["text"] == "You plan trips."


def test_a_profile_that_is_not_there_makes_no_session() -> None:
    on = served(limits=FREE)
    body = {"messages": [{"message": {"role": "user", "content": "Hi"}}], "head": {"profile": "nobody"}}
    assert on.post("/api/sessions/s/messages", body, 404)
    assert on.get("/api/sessions")["items"] == []


def test_a_whole_history_is_followed_and_a_changed_past_is_a_fork() -> None:
    on = served(limits=FREE)
    said = [
        {"message": {"role": role, "content": text}}
        for role, text in (("user", "One."), ("assistant", "Two."), ("user", "Three."), ("assistant", "Four."))
    ]
    first = on.post("/api/sessions/s/messages", {"messages": said[:2], "follow": True})
    assert (first["session"], first["length"], first["messages"]) == ("s", 2, [])
    grown = on.post("/api/sessions/s/messages", {"messages": said, "follow": True})
    assert (grown["session"], grown["length"]) == ("s", 4)
    changed = [*said[:2], {"message": {"role": "user", "content": "Another."}}]
    fork = on.post("/api/sessions/s/messages", {"messages": changed, "follow": True})
    assert fork["session"] != "s"
    assert fork["length"] == 3
    assert on.get(f"/api/sessions/{fork['session']}/refs/3")["message"]["content"] == "Another."
    assert on.get("/api/sessions/s/refs/3")["message"]["content"] == "Three."


def test_a_build_follows_a_history_and_is_built_where_it_stands() -> None:
    on = served(limits=FREE)
    said = [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Two."}]
    on.post("/api/sessions/s/messages", {"messages": [{"message": one} for one in said]})
    asked = [*said, {"role": "user", "content": "Three."}]
    built = on.post("/api/sessions/s/build", {"provider": "openai-chat", "history": asked})
    assert built["request"]["messages"] == asked
    answered = [*asked, {"role": "assistant", "content": "Four."}]
    on.post("/api/sessions/s/messages", {"messages": [{"message": one} for one in answered], "follow": True})
    again = on.post("/api/sessions/s/build", {"provider": "openai-chat", "history": asked})
    assert again["request"]["messages"] == asked, "a regenerated answer is built on what stood before it"


BESIDE = {
    "id": "m1",
    "phase": "draft",
    "pin": "keep",
    "ts": "2026-11-24T10:00:00Z",
    "principal": "ann",
    "origin": "crm",
}
SECRET = "My number is 4711-0815."


@pytest.mark.parametrize("follow", [False, True])
def test_what_stands_beside_a_message_is_kept(follow: bool) -> None:
    on = served(limits=FREE)
    rows = [
        {"message": {"role": "user", "content": "Hello."}},
        {"message": {"role": "user", "content": SECRET}, **BESIDE},
        {"message": {"role": "assistant", "content": "Thank you."}, "principal": "bot"},
    ]
    on.post("/api/sessions/s/messages", {"messages": rows, "follow": follow})
    on.post("/api/sessions/s/messages", {"messages": rows, "follow": True})
    session = on.store.at("default", "s")
    assert len(session) == 3
    event = session.shown(2).event
    kept = {name: getattr(event, name) for name in ("id", "phase", "ts", "principal", "origin")}
    assert {**kept, "pin": session.state.pins[2].strength} == BESIDE
    assert session.shown(3).event.principal == "bot"


@pytest.mark.parametrize("by", ["append", "follow", "history"])
def test_whoever_is_forgotten_is_forgotten_however_their_words_came(by: str, tmp_path: Path) -> None:
    uri = f"file:{tmp_path}"
    with open_store(uri) as store:
        on = served(store, limits=FREE)
        said = {"role": "user", "content": SECRET}
        if by == "history":
            on.say("s", "Hello.")
            history = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Noted: Hello."}, said]
            on.post("/api/sessions/s/build", {"history": history, "principal": "ann"})
        else:
            on.post(
                "/api/sessions/s/messages",
                {"messages": [{"message": said, "principal": "ann"}], "follow": by == "follow"},
            )
    with open_store(uri) as store:
        done = forget(store, tenant="default", principal="ann", who="ann", when=NOON, why="asked")
        assert len(done.sessions) == 1
        on = served(store, limits=FREE)
        page = on.client.get(f"/api/sessions/s/refs/{len(store.at('default', 's'))}")
        assert (page.status_code, SECRET in page.text) == (410, False)


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        (
            "messages",
            {"messages": [{"message": {"role": "user", "content": "a"}, "principle": "ann"}]},
            "body.messages[0].principle",
        ),
        (
            "messages",
            {"messages": [{"message": {"role": "user", "content": "a"}, "pin": "always"}]},
            "body.messages[0].pin",
        ),
        ("messages", {"messages": [{"role": "user", "content": "a", "principal": "ann"}]}, "body.messages[0].message"),
        (
            "messages",
            {"messages": [{"message": {"role": "user", "content": "a"}, "principal": ""}]},
            "body.messages[0].principal",
        ),
        (
            "messages",
            {"messages": [{"message": {"role": "user", "content": "a"}, "principal": "a" * 201}]},
            "body.messages[0].principal",
        ),
        ("build", {"history": [], "principals": "ann"}, "body.principals"),
        ("build", {"principal": 7}, "body.principal"),
    ],
)
def test_what_would_be_lost_is_refused(path: str, body: Any, where: str) -> None:
    on = served(limits=FREE)
    on.say("s", "Hi")
    problem = on.post(f"/api/sessions/s/{path}", body, 422)
    assert where in [one["where"] for one in problem["errors"]]
    assert len(on.store.at("default", "s")) == 2


def test_a_history_whose_messages_are_wrapped_is_refused_and_nothing_is_written() -> None:
    on = served(limits=FREE)
    on.say("s", "Hi")
    rows = [{"message": {"role": "user", "content": "Hi"}, "principal": "ann"}]
    assert "role" in on.post("/api/sessions/s/build", {"history": rows}, 422)["detail"]
    assert len(on.store.at("default", "s")) == 2


# -- building ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_build_is_the_library_s_own(provider: Any, tmp_path: Path) -> None:
    on = served(open_store(f"file:{tmp_path}"), limits=FREE)
    on.say("s", *TOLD[:4])
    built = on.post("/api/sessions/s/build", {"provider": provider, "budgets": {"dynamic_tokens": 300}})
    validate("envelope", built["envelope"])
    past = rebuild(on.store, built["address"])
    assert built["request"] == json.loads(json.dumps(past.render(provider)))
    assert built["tokens"] == past.tokens
    assert built["envelope"]["sections"]["dynamic"]["budget_tokens"] == 300


def test_a_build_names_its_selector_and_summarizer() -> None:
    on = served(limits=FREE)
    on.say("s", "Hi")
    on.post("/api/sessions/s/build", {"selector": "heuristic", "summarizer": "structured"})
    assert "selector" in json.dumps(on.post("/api/sessions/s/build", {"selector": "best"}, 422)["errors"])
    refused = on.post("/api/sessions/s/build", {"summarizer": "best"}, 422)
    assert "no summarizer named 'best' is installed" in refused["detail"]


def test_a_build_without_a_body_gives_the_envelope_alone_and_can_leave_it_out() -> None:
    on = served(limits=FREE)
    on.say("s", "Hi")
    plain, bare = on.post("/api/sessions/s/build"), on.post("/api/sessions/s/build", {"envelope": False})
    assert plain["request"] is plain["provider"] is bare["envelope"] is None
    assert plain["address"] == bare["address"] == plain["envelope"]["address"]


def test_the_newest_envelope_and_any_other_of_the_session_are_served(trip: Served) -> None:
    newest = trip.get("/api/sessions/trip/envelope")
    validate("envelope", newest)
    trip.say("trip", "And one more.")
    later = trip.post("/api/sessions/trip/build")["envelope"]
    assert trip.get("/api/sessions/trip/envelope")["address"] == later["address"] != newest["address"]
    short = newest["address"][:12]
    assert trip.get(f"/api/sessions/trip/envelope?address={short}")["sections"] == newest["sections"]
    fresh = served(trip.store, limits=FREE)
    assert fresh.get("/api/sessions/trip/envelope")["address"] == later["address"]


def test_an_envelope_of_another_session_and_one_that_is_none_are_not_found(trip: Served) -> None:
    trip.say("other", "Hi")
    address = trip.post("/api/sessions/other/build")["address"]
    for asked in (address, "0" * 64):
        assert trip.get(f"/api/sessions/trip/envelope?address={asked}", 404)["status"] == 404
    trip.say("unbuilt", "Hi")
    assert "built yet" in trip.get("/api/sessions/unbuilt/envelope", 404)["detail"]


def test_reports_come_newest_first_in_pages(trip: Served) -> None:
    every = [event.report.model_dump(mode="json") for event in trip.store.at("default", "trip").reports()]
    assert len(every) > 1
    first = trip.get("/api/sessions/trip/reports?limit=1")
    assert first == {"items": every[:-2:-1], "next": "1"}
    rest = trip.get("/api/sessions/trip/reports?after=1")
    assert rest == {"items": every[-2::-1], "next": None}
    for report in every:
        validate("compression_report", report)


def test_a_reference_gives_the_original_back_byte_for_byte(trip: Served) -> None:
    wire = {"role": "user", "content": "Odd <b> é 道 \u200b", "name": "ann", "x": {"b": 1, "a": [None, 1.5]}}
    ref = trip.post("/api/sessions/trip/messages", {"messages": [{"message": wire}]})["messages"][0]["ref"]
    for written in (ref, ref[1:]):
        found = trip.get(f"/api/sessions/trip/refs/{quote(written)}")
        assert found == {"ref": written, "role": "user", "message": wire}
    assert trip.get("/api/sessions/trip/refs/999", 404)["detail"].startswith("999 names nothing")
    assert trip.get("/api/sessions/trip/refs/zero", 422)["detail"].startswith("'zero' is not a reference")


def test_a_handoff_is_the_published_document_and_there_is_none_without_a_task(trip: Served) -> None:
    found = trip.get("/api/sessions/trip/handoff")
    validate("handoff", found)
    assert (found["session"], found["goal"], found["generated_at"]) == ("trip", TOLD[0], NOON)
    trip.post("/api/sessions/silent/messages", {"messages": [{"message": {"role": "assistant", "content": "Hm."}}]})
    assert trip.get("/api/sessions/silent/handoff", 404)["detail"] == "no handoff summary available"


def test_a_session_begins_with_a_handoff_once(trip: Served) -> None:
    begun = trip.post("/api/sessions/trip/handoff", {"session": "trip-2"})
    assert (begun["session"], begun["length"], begun["handoff"]) == (
        "trip-2",
        1,
        trip.get("/api/sessions/trip/handoff"),
    )
    opening = trip.get("/api/sessions/trip-2/refs/1")["message"]["content"]
    assert opening.startswith("## Resuming Session")
    assert TOLD[0] in opening
    assert trip.post("/api/sessions/trip-2/build", {"provider": "openai-chat"})["request"]["messages"]
    again = trip.post("/api/sessions/trip/handoff", {"session": "trip-2"}, 409)
    assert again["detail"] == "session 'trip-2' exists already; name the new one otherwise"
    assert trip.post("/api/sessions/nobody/handoff", {"session": "trip-3"}, 404)
    assert trip.get("/api/sessions/trip-3/handoff", 404)


def test_a_preview_writes_nothing(trip: Served) -> None:
    key = SessionKey("default", "trip")
    before = trip.store.journal.length(key), len(trip.store.journal.manifests(key))
    shown = trip.get("/api/sessions/trip/preview", params={"user_turn": "What is my budget?"})
    validate("envelope", shown)
    assert "90,000 yen" in json.dumps(shown["sections"]["dynamic"], ensure_ascii=False)
    assert (trip.store.journal.length(key), len(trip.store.journal.manifests(key))) == before


# -- compacting when asked --------------------------------------------------------------------------------------------


def talk() -> Served:
    """A session that nothing is due in."""
    on = served(limits=FREE, budgets=Budgets(dynamic_tokens=4000))
    on.say("s", *TOLD)
    on.post("/api/sessions/s/build")
    return on


def test_a_dry_run_says_what_a_compaction_would_do_and_writes_nothing() -> None:
    on, key = talk(), SessionKey("default", "s")
    before = on.store.journal.length(key)
    weighed = on.post("/api/sessions/s/compact?dry_run=true", {"keep_tokens": 0})
    assert on.store.journal.length(key) == before
    assert (weighed["dry_run"], weighed["is_compacted"], weighed["address"]) == (True, True, None)
    made = on.post("/api/sessions/s/compact", {"keep_tokens": 0})
    assert {name: made[name] for name in ("is_compacted", "price", "reason")} == {
        name: weighed[name] for name in ("is_compacted", "price", "reason")
    }
    assert made["report"]["losses"] == weighed["report"]["losses"]
    validate("compression_report", made["report"])
    (event,) = on.store.at("default", "s").reports()
    assert (event.report.id, event.report.policy) == (made["report"]["id"], "asked/1")
    assert on.get("/api/sessions/s/envelope")["address"] == made["address"]


def test_the_price_of_a_compaction_is_that_of_the_prompts_before_and_after() -> None:
    on = talk()
    weighed = on.post("/api/sessions/s/compact?dry_run=true", {"keep_tokens": 0})
    price, builder = weighed["price"], EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=4000))
    before = builder.preview(on.store.at("default", "s"))
    assert price["prompt_tokens_before"] == before.tokens
    saved = weighed["report"]["pre_tokens"] - weighed["report"]["post_tokens"]
    assert 0 < price["prompt_tokens_after"] <= before.tokens - saved + 200  # what is recalled may come on top
    assert price["later_call_after"] < price["later_call_before"]
    assert price["shared_prefix_tokens"] <= price["prompt_tokens_after"]


def test_a_compaction_that_would_save_nothing_is_not_made_and_says_why() -> None:
    on = served(limits=FREE)
    on.post("/api/sessions/s/messages", {"messages": [{"message": {"role": "user", "content": "Hi"}}]})
    before = on.store.journal.length(SessionKey("default", "s"))
    made = on.post("/api/sessions/s/compact")
    assert (made["is_compacted"], made["report"], made["address"]) == (False, None, None)
    assert "nothing may leave the window" in made["reason"]
    assert on.store.journal.length(SessionKey("default", "s")) == before, "a refusal that was asked for leaves no mark"


def beyond_the_window() -> Served:
    """A session whose history does not fit the model's window."""
    on = served(limits=FREE, model="gpt-4")
    for turn in range(60):
        on.say("s", f"Question {turn}. " + "Some words of it. " * 40)
    return on


def test_a_history_beyond_the_model_s_window_is_compacted_when_asked() -> None:
    on, key = beyond_the_window(), SessionKey("default", "s")
    before = on.store.journal.length(key)
    weighed = on.post("/api/sessions/s/compact?dry_run=true")
    assert on.store.journal.length(key) == before
    assert (weighed["is_compacted"], weighed["reason"]) == (True, None)
    price = weighed["price"]
    assert price["prompt_tokens_before"] > 8192 > price["prompt_tokens_after"]
    assert price["break_even_calls"] == 0
    made = on.post("/api/sessions/s/compact")
    assert (made["is_compacted"], made["price"]) == (True, price)
    assert on.get("/api/sessions/s/envelope")["address"] == made["address"]


# -- lists ------------------------------------------------------------------------------------------------------------


def test_sessions_are_listed_in_pages_and_searched() -> None:
    on = served(limits=FREE)
    for name in ("trip-1", "trip-2", "Trip-3", "work"):
        on.say(name, "Hi")
    first = on.get("/api/sessions?q=trip&limit=2")
    assert [row["id"] for row in first["items"]] == ["Trip-3", "trip-1"]
    assert first["next"] == "trip-1"
    rest = on.get("/api/sessions", params={"q": "trip", "limit": 2, "after": first["next"]})
    assert rest == {"items": [{"id": "trip-2", "records": 4}], "next": None, "findings": []}


@pytest.mark.parametrize("id", ["a/b", "a b", "100%", "ünï/日本", "?q=1", "..", "-", "x" * 200])
def test_any_id_of_a_session_can_be_said_in_a_path(id: str) -> None:
    on = served(limits=FREE)
    path = f"/api/sessions/{quote(id, safe='').replace('.', '%2E')}"
    on.post(f"{path}/messages", {"messages": [{"message": {"role": "user", "content": "Hi"}}]})
    assert on.get(f"{path}/refs/1")["message"]["content"] == "Hi"
    assert [row["id"] for row in on.get("/api/sessions")["items"]] == [id]


def test_versions_of_profiles_come_newest_first() -> None:
    on = served(limits=FREE)
    for name in ("clerk", "planner"):
        profile = Profile.from_text("Be kind.", name=name)
        on.store.profiles(name).commit(profile, who="ann", why="first", when=NOON, parent=0)
    planner = on.store.profiles("planner")
    planner.rollback(1, who="bob", why="back", when=NOON)
    page = on.get("/api/profile/versions")
    entries = {
        name: [entry.model_dump(mode="json") for entry in on.store.profiles(name).changelog()][::-1]
        for name in ("clerk", "planner")
    }
    assert page == {
        "next": None,
        "items": [
            {"profile": name, "entry": entry, "is_head": at == 0}
            for name, rows in entries.items()
            for at, entry in enumerate(rows)
        ],
    }
    validate("changelog_entry", page["items"][0]["entry"])
    assert len(on.get("/api/profile/versions?profile=planner")["items"]) == len(entries["planner"])
    assert on.get("/api/profile/versions?profile=nobody", 404)["status"] == 404


def test_eval_results_come_newest_first_and_belong_to_the_service_s_own_tenant(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    results = [made(played(0, at, 10)) for at in (7, 8)]
    history.write_text("".join(f"{one.model_dump_json()}\n" for one in results), encoding="utf-8")
    on = served(limits=FREE, eval_history=history)
    assert on.get("/api/evals") == {"items": [one.model_dump(mode="json") for one in results[::-1]], "next": None}
    assert on.get(f"/api/evals?suite={results[0].suite}&limit=1")["next"] == "1"
    assert on.get("/api/evals?suite=none")["items"] == []
    history.write_text("no result\n", encoding="utf-8")
    problem = on.get("/api/evals", 503)
    assert str(tmp_path) not in json.dumps(problem)


def test_figures_are_prometheus_text_without_names_of_anybody(trip: Served) -> None:
    answer = trip.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    line = 'ctxsteward_http_requests_total{method="POST",route="/api/sessions/{session}/build",status="200"} '
    assert f"{line}{len(TOLD)}\n" in answer.text
    assert "trip" not in answer.text
    assert served(limits=FREE, scrape=lambda: "more 1\n").client.get("/metrics").text.endswith("more 1\n")


def test_records_are_those_that_the_steward_harvested(tmp_path: Path) -> None:
    where = ("--store", f"file:{tmp_path / 'store'}", "--profile-name", "desk")
    (tmp_path / "desk.yaml").write_text(PROFILE, encoding="utf-8")
    for name in ("ada", "hana"):
        said = ("Never use emojis in your answers, please.", "Understood.", "What is the return window?", "30 days.")
        transcript(tmp_path / "chats" / f"{name}.json", *said, principal=name)
    run(
        "run",
        *where,
        "--transcripts",
        str(tmp_path / "chats"),
        "--profile",
        str(tmp_path / "desk.yaml"),
        "--workers",
        "1",
        "--night",
        "2026-11-22",
    )
    told = value("review", "--all", *where)["records"]
    with open_store(f"file:{tmp_path / 'store'}") as store:
        on = served(store, limits=FREE)
        page = on.get("/api/recommendations")
        waiting = [one["id"] for one in page["items"] if one["status"] == "candidate"]
        assert waiting == [one["id"] for one in told] != []
        assert {one["scope"]["user"] for one in page["items"]} == {None}
        assert page["next"] is None
        for record in page["items"]:
            validate("meta_recommendation", record)
        active = on.get("/api/recommendations?status=active")["items"]
        assert active == [one for one in page["items"] if one["status"] == "active"]
        assert on.get("/api/recommendations?profile=other", 404)["status"] == 404


# -- what a turn costs ------------------------------------------------------------------------------------------------


class CountedJournal(MemoryJournal):
    """Counts the records that are read out of it."""

    rows = 0

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]:
        records = super().read(key, start, stop)
        CountedJournal.rows += len(records)
        return records


def test_a_turn_reads_no_more_of_a_long_session_than_of_a_short_one() -> None:
    store = Store(CountedJournal(), MemoryObjects(), memory_keys(), uri="memory:")
    on, read = served(store, limits=FREE), []
    for turn in range(50):
        CountedJournal.rows = 0
        on.say("s", f"A long walk along the river, number {turn}, and tea in a garden.")
        on.post("/api/sessions/s/build", {"envelope": False})
        read.append(CountedJournal.rows)
    assert max(read[40:]) <= max(read[10:30])


def test_without_named_budgets_the_service_and_the_command_line_take_the_library_s() -> None:
    default = EnvelopeBuilder("gpt-4o").budgets
    service = Service(ServiceSettings(store=memory_store(), model="gpt-4o"))
    assert default.waiting_tokens
    assert (service.builder().budgets, read_builder("gpt-4o", ()).budgets) == (default, default)
    named = read_builder("gpt-4o", ("dynamic_tokens=900",)).budgets
    assert (named, service.builder(budgets=named).budgets) == (Budgets(dynamic_tokens=900), Budgets(dynamic_tokens=900))
