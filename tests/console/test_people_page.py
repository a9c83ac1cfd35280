"""A person's page: where they spoke, and which records of profiles rest on their words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxsteward.console.pages import people
from ctxsteward.console.pages.people import person_of
from ctxsteward.console.pages.site import Site
from ctxsteward.envelope import Profile, Store, open_store
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.schemas import ReferenceNotFound
from ctxsteward.schemas.profile import MetaRecord
from ctxsteward.store.erasure.forget import forget

NOTE = {"who": "dpo", "why": "asked", "when": "2026-11-30T09:00:00Z"}


def told(text: str, principal: str, ts: str | None = None) -> NewMessage:
    return NewMessage(message={"role": "user", "content": text}, principal=principal, ts=ts)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = open_store(tmp_path / "s")
    one = opened.session("trip/1")
    one.extend([told("I use a wheelchair.", "ann b", "2026-11-01T09:00:00Z"), told("I do not.", "bob")])
    one.append(told("A room on the ground floor, please.", "ann b", "2026-11-02T09:00:00Z"))
    opened.session("trip-2").append(told("The same hotel again.", "ann b"))
    opened.session("trip-3").append(told("No trips this year.", "bob"))
    meta = (
        MetaRecord(id="r1", text="Rooms on the ground floor.", sources=("trip%2F1§3", "trip-3§1")),
        MetaRecord(id="r2", text="Bob stays at home.", sources=("trip-3§1",)),
    )
    opened.profiles("desk").commit(Profile(name="desk", meta=meta), who="ops", why="first", when=NOTE["when"])
    return opened


def test_sessions_and_records_of_a_person_and_of_nobody_else(store: Store) -> None:
    ann = person_of(store, "default", "ann b")
    assert [(row.id, row.ordinals, row.newest) for row in ann.sessions] == [
        ("trip-2", (1,), ""),
        ("trip/1", (1, 3), "2026-11-02T09:00:00Z"),
    ]
    assert [(row.profile, row.id, row.sources) for row in ann.records] == [("desk", "r1", (("trip/1", 3),))]
    assert (ann.messages, ann.unread) == (3, 0)


def test_the_page_links_to_messages_and_names_the_command_that_forgets(store: Store) -> None:
    site = Site(store=store, root="/view")
    answer = site.answer("people/ann%20b", {})
    body = answer.body.decode()
    assert answer.status == 200
    assert 'href="/view/sessions/trip%252F1/messages#m3"' in body
    assert "ctxsteward store forget --principal &#39;ann b&#39;" in body
    assert "3 条消息" in site.answer("people/ann%20b", {"lang": "zh"}).body.decode()
    assert 'href="/view/people/ann%2520b"' in site.answer("sessions/trip-2/messages", {}).body.decode()


def test_a_forgotten_person_has_no_page(store: Store) -> None:
    forget(store, tenant="default", principal="ann b", **NOTE)
    with pytest.raises(ReferenceNotFound, match="nobody of this name"):
        person_of(store, "default", "ann b")
    assert Site(store=store).answer("people/ann%20b", {}).status == 404


def test_only_sessions_that_are_shown_count(store: Store) -> None:
    assert [row.id for row in person_of(store, "default", "ann b", only=["trip-2"]).sessions] == ["trip-2"]
    assert Site(store=store, sessions=("trip-3",)).answer("people/ann%20b", {}).status == 404


def test_what_was_not_read_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MOST_SESSIONS", 1)
    assert person_of(store, "default", "ann b").unread == 2
    assert "2 sessions were not read" in Site(store=store).answer("people/ann%20b", {}).body.decode()
