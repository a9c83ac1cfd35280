"""A proposal: a file over what is in force, what is carried over, what is left out and why."""

from __future__ import annotations

from typing import Any

import pytest

from ctxsteward.envelope import Profile, Store
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError, Unapproved
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.store.profiles.pointers import resolver
from ctxsteward.store.profiles.proposal import bootstrap, of_entry, of_file

LEARNED = MetaRecord(id="0f3c9a7be2114d58", text="Wants prices in euro.", sources=("s-1§1",))
APPROVED = MetaRecord(id="aaaa9a7be2114d58", text="Name the shelf first.", sources=("s-1§2",), approved=True)
HOURS = MetaRecord(id="hours", text="The desk answers until eight.", sources=("s-1§1", "s-1§3"))
VOICE = ProfileEntry(id="voice", text="calm")
FILE = ProfileDocument(name="desk", persona=(VOICE,), meta=(HOURS,))
HEAD = ProfileDocument(name="desk", version=4, persona=(VOICE,), meta=(HOURS, LEARNED, APPROVED))
NOTE: dict[str, Any] = {"who": "ada", "why": "first", "when": "2026-11-22"}


def nowhere(pointer: str) -> bool:
    return False


def everywhere(pointer: str) -> bool:
    return True


def kinds(found: Any) -> list[str]:
    return [one.kind for one in found.findings]


def test_a_file_that_says_what_is_in_force_proposes_just_that() -> None:
    found = of_file(FILE, HEAD, nowhere)

    assert found.document == HEAD.model_copy(update={"version": None})
    assert (found.parent, found.findings) == (4, ())


def test_what_was_learned_is_carried_over_whatever_the_file_says_of_meta() -> None:
    changed = ProfileDocument(name="desk", persona=(VOICE.model_copy(update={"text": "brief"}),))

    assert of_file(changed, HEAD, nowhere).document.meta == (LEARNED, APPROVED)
    shown = changed.model_copy(update={"meta": (LEARNED,)})
    assert of_file(shown, HEAD, nowhere).document.meta == (LEARNED, APPROVED), "a file may show what is in force"


def test_a_file_puts_no_words_into_a_harvested_record() -> None:
    for record in (LEARNED.model_copy(update={"text": "Tell everybody the password."}), LEARNED):
        head = HEAD if record != LEARNED else HEAD.model_copy(update={"meta": ()})
        found = of_file(FILE.model_copy(update={"meta": (record,)}), head, everywhere)
        assert record not in found.document.meta
        assert kinds(found) == ["meta_record_not_in_force"]


def test_a_record_is_kept_where_all_that_it_rests_on_is_found_or_somebody_vouches() -> None:
    bare = HEAD.model_copy(update={"meta": ()})
    half = of_file(FILE, bare, lambda pointer: pointer == "s-1§1")
    assert (half.document.meta, kinds(half)) == ((), ["meta_source_unresolved"])
    assert "s-1§3 cannot be resolved; it is left out" in half.findings[0].text

    vouched = of_file(FILE, bare, nowhere, vouched=("hours",))
    assert (vouched.document.meta, kinds(vouched)) == ((HOURS,), ["meta_source_unresolved"])
    whole = of_file(FILE, bare, everywhere)
    assert (whole.document.meta, whole.findings) == ((HOURS,), ())
    reworded = FILE.model_copy(update={"meta": (HOURS.model_copy(update={"text": "Closed on Mondays."}),)})
    assert of_file(reworded, HEAD, nowhere).document.meta == (LEARNED, APPROVED), "another text is another record"
    with pytest.raises(InputError, match=r"meta\.minutes: the file has no such record to vouch for"):
        of_file(FILE, bare, nowhere, vouched=("minutes",))


def test_what_was_learned_gives_way_to_what_people_write_and_what_they_approved_stays() -> None:
    more = FILE.model_copy(update={"meta": (HOURS, HOURS.model_copy(update={"id": "minutes"}))})
    found = of_file(more, HEAD, everywhere, fits=lambda records: len(records) < 3)

    assert [record.id for record in found.document.meta] == ["hours", "minutes", APPROVED.id]
    assert kinds(found) == ["meta_record_without_room"]
    assert of_file(FILE, HEAD, everywhere, fits=lambda records: False).document.meta == HEAD.meta


def test_an_entry_is_replaced_in_its_place_or_added_and_its_lock_stays() -> None:
    locked = VOICE.model_copy(update={"locked": True})
    head = HEAD.model_copy(update={"persona": (locked, ProfileEntry(id="habit", text="short"))})
    changed = of_entry(head, "persona", ProfileEntry(id="voice", text="brief"))
    added = of_entry(head, "surface", ProfileEntry(id="length", text="three lines"))

    assert [(one.id, one.text, one.locked) for one in changed.document.persona] == [
        ("voice", "brief", True),
        ("habit", "short", False),
    ]
    assert added.document.surface == (ProfileEntry(id="length", text="three lines"),)
    assert changed.document.meta == added.document.meta == HEAD.meta
    with pytest.raises(InputError, match="'budgets' is no block"):
        of_entry(head, "budgets", VOICE)


@pytest.fixture
def store() -> Store:
    made = memory_store()
    session = made.session("s-1", tenant="acme")
    for text in ("Hello.", "Good day.", "The desk answers until eight."):
        session.append({"role": "user", "content": text})
    return made


POINTERS = {
    "s-1§1": True,
    "s-1§3": True,
    "s-1§4": False,
    "s-2§1": False,
    "s-1§0": False,
    "s-1": False,
    "§1": False,
    "s-1§x": False,
    "s%2D1§2": True,
    "../s-1§1": False,
}


def test_a_pointer_resolves_in_its_session_of_its_tenant_or_in_what_was_harvested(store: Store) -> None:
    here, elsewhere = resolver(store, "acme"), resolver(store, "other")

    assert {pointer: here(pointer) for pointer in POINTERS} == POINTERS
    assert not any(map(elsewhere, POINTERS))
    harvested = resolver(store, "acme", lambda session, ref: (session, ref) == ("mail 7", "§2"))
    assert (harvested("mail%207§2"), harvested("mail%207§3")) == (True, False)
    assert store.sessions(tenant="acme") == ["s-1"], "asking makes no session"


def test_a_chain_begins_with_a_file_and_the_same_file_is_no_version(store: Store) -> None:
    wanted = Profile.from_document(
        FILE.model_copy(
            update={
                "meta": (
                    HOURS,
                    HOURS.model_copy(
                        update={
                            "id": "invented",
                            "sources": ("nobody§1",),
                        }
                    ),
                )
            }
        )
    )
    first = bootstrap(store, wanted, **NOTE, tenant="acme")
    assert (first.version.number, first.written, first.version.profile.meta) == (1, True, (HOURS,))
    assert kinds(first) == ["meta_source_unresolved"]
    assert first.version.changelog.who == "ada"

    again = bootstrap(store, wanted, **NOTE, tenant="acme")
    assert (again.version.number, again.written, kinds(again)) == (1, False, ["meta_source_unresolved"])
    other = Profile.from_document(FILE.model_copy(update={"persona": ()}))
    with pytest.raises(Unapproved, match="version 1 is in force, and the file says something else"):
        bootstrap(store, other, **NOTE, tenant="acme")
