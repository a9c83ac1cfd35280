"""Recall, commits of governed memory and erasures are spans by OpenTelemetry's names, without what was said."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

SCRIPT = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Unapproved
from ctxsteward.store.erasure.forget import forget

store = memory_store()
versions = store.profiles("support")
versions.commit(Profile.from_text("Hana rules."), who="ada", why="first", when="2026-11-24T00:00:00Z")
versions.commit(versions.newest().profile, who="ada", why="again", when="2026-11-24T00:00:00Z")
try:
    versions.commit(Profile.from_text("Other."), who="ada", why="more", when="2026-11-24T00:00:00Z")
except Unapproved:
    pass
session = store.session("alice-s-session", profile=versions.newest().profile)
builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=300))
recalled = []
for turn in range(14):
    text = "Hana joins us on day 3." if turn == 1 else f"Message {turn} about a temple, tea, a garden and a river."
    session.append({"role": "user", "content": text}, principal="alice")
    builder.build(session)
    session.append({"role": "assistant", "content": "Noted, with thanks and some more words. " * 3})
session.append({"role": "user", "content": "On which day does Hana join us?"}, principal="alice")
builder.build(session)
shown = session.state.recalled
forget(store, principal="alice", who="dpo", why="asked", when="2026-11-24T00:00:00Z")
forget(store, session="alice-s-session", who="dpo", why="asked", when="2026-11-24T00:00:00Z")
spans = [{"name": one.name, "kind": one.kind.name, "attributes": dict(one.attributes),
          "status": one.status.status_code.name,
          "parent": one.parent.span_id if one.parent else None, "id": one.context.span_id}
         for one in kept.get_finished_spans()]
print(json.dumps({"spans": spans, "recalled": len(shown.refs), "address": session.address, "key": store.uri}))
"""


@pytest.fixture(scope="module")
def told() -> Any:
    """What a process of its own exports, since OpenTelemetry takes one provider a process."""
    return json.loads(subprocess.check_output([sys.executable, "-c", SCRIPT], text=True))


def named(told: Any, name: str) -> list[dict[str, Any]]:
    return [span for span in told["spans"] if span["name"] == name]


def test_a_commit_is_an_upsert_of_what_it_adds_and_a_refused_one_names_its_error(told: Any) -> None:
    first, refused = named(told, "upsert_memory")  # the same content again writes nothing, and is none

    assert first["attributes"] == {
        "gen_ai.operation.name": "upsert_memory",
        "gen_ai.memory.store.id": "support",
        "gen_ai.memory.record.count": 1,
    }
    assert (refused["status"], refused["attributes"]["error.type"]) == ("ERROR", "Unapproved")
    assert "gen_ai.memory.record.count" not in refused["attributes"]


def test_recall_is_a_search_within_its_build_with_the_number_of_messages(told: Any) -> None:
    *_, last = named(told, "search_memory")
    builds = {span["id"] for span in named(told, "context.build")}

    assert last["attributes"] == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.store.id": told["address"],
        "gen_ai.memory.record.count": told["recalled"],
    }
    assert told["recalled"] > 0
    assert all(span["parent"] in builds and span["kind"] == "INTERNAL" for span in named(told, "search_memory"))
    assert len(named(told, "search_memory")) < len(builds)  # where nothing is hidden, nothing is searched


def test_an_erasure_is_a_deletion_of_a_session_s_memory_or_of_a_person_s_in_all(told: Any) -> None:
    person, session = named(told, "delete_memory")

    assert person["attributes"] == {"gen_ai.operation.name": "delete_memory", "gen_ai.memory.record.count": 15}
    assert session["attributes"]["gen_ai.memory.store.id"] == told["address"]
    assert session["attributes"]["gen_ai.memory.record.count"] == 29


def test_no_span_of_memory_holds_content_or_the_name_of_a_session_or_person(told: Any) -> None:
    text = json.dumps([span for span in told["spans"] if span["name"].endswith("_memory")])

    assert len(text) > 1000
    for word in ("Hana", "alice", "dpo", "temple"):
        assert word not in text
