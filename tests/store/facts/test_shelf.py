"""A shelf: one audience's facts as one atomic set; the same set writes nothing, and nobody else's is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store import Audience, Fact, FactSource
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.facts.fact import MAX_FACTS, fact_line

from ...examples import examples
from .desk import ANN, BOB, GONE, HERS, HIS, LISBON, METRIC, SEATS, TOLD, ask, counted_store, fact, opened


def test_what_was_committed_is_what_is_known_in_its_order() -> None:
    shelves = memory_store().facts("support", tenant="acme")
    done = shelves.commit(ANN, HERS, **TOLD)

    assert (done.number, done.written, done.facts) == (1, True, HERS)
    assert shelves.active(ANN).facts == HERS
    assert shelves.active(BOB).facts == ()


def test_the_same_set_again_writes_nothing_whatever_its_note() -> None:
    store, requests = counted_store()
    shelves = store.facts("support")
    shelves.commit(ANN, HERS, **TOLD)
    requests.asked.clear()
    again = shelves.commit(ANN, HERS, who="another", why="import 8", when="2026-11-23")

    assert (again.number, again.written) == (1, False)
    assert [method for method, _ in requests.asked] == ["list", "get"]
    assert store.facts("support").commit(BOB, (), **TOLD).number == 0, "an empty set of nobody"


def test_a_new_set_replaces_the_old_one_and_its_link_stays() -> None:
    shelves = memory_store().facts("support")
    shelves.commit(ANN, HERS, **TOLD)
    shelves.commit(ANN, (METRIC,), **TOLD)
    assert shelves.active(ANN).facts == (METRIC,)
    shelves.commit(ANN, (), **TOLD)
    assert shelves.active(ANN).facts == ()
    assert [len(link.body["records"]) for link in shelves.links(shelves.folder(ANN))] == [3, 1, 0]


def test_two_stores_that_commit_the_same_land_on_the_same_bytes() -> None:
    """But for what is random in encryption: links, folders and references."""
    found = []
    for _ in range(2):
        store = memory_store()
        shelves = store.facts("support")
        shelves.commit(ANN, HERS, **TOLD)
        shelves.commit(ANN, (METRIC,), **TOLD)
        found.append({info.key: store.objects.get(info.key) for info in store.objects.list("facts/")})
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_a_commit_id_that_landed_is_not_committed_again() -> None:
    shelves = memory_store().facts("support")
    shelves.commit(ANN, HERS, commit_id="night-7", **TOLD)
    shelves.commit(ANN, (METRIC,), commit_id="night-8", **TOLD)
    again = shelves.commit(ANN, HERS, commit_id="night-7", **TOLD)

    assert (again.number, again.written, again.facts) == (1, False, HERS)
    assert shelves.active(ANN).facts == (METRIC,)


@pytest.mark.parametrize("why", ["night n2026-11-22-0123456789ab", "ada decided about record r-1"])
def test_a_set_that_a_night_of_an_earlier_version_wrote_is_shown_no_more(why: str) -> None:
    shelves = memory_store().facts("support")
    written = shelves.commit(ANN, HERS, who="steward", why=why, when="2026-11-22")

    assert (written.number, shelves.active(ANN).facts) == (1, ())
    shelves.commit(ANN, HERS[:1], **TOLD)
    assert shelves.active(ANN).facts == HERS[:1]


def test_writers_that_meet_leave_whole_sets() -> None:
    store, requests = counted_store()
    one, two = store.facts("support"), store.facts("support")
    inner, met = requests.put, []

    def put(key: str, body: bytes) -> Any:
        if key.startswith("facts/") and not met:
            met.append(key)
            two.commit(ANN, (METRIC,), **TOLD)
        return inner(key, body)

    requests.put = put  # type: ignore[method-assign]
    one.commit(ANN, HERS, **TOLD)
    assert [len(link.body["records"]) for link in one.links(one.folder(ANN))] == [1, 3]
    assert one.active(ANN).facts == HERS


@settings(max_examples=examples(40))
@given(
    st.dictionaries(
        st.tuples(
            st.sampled_from(["acme", "other"]),
            st.sampled_from(["support", "sales"]),
            st.tuples(
                st.sampled_from(["user", "project", "session"]), st.sampled_from(["ann", "bob", "a/b", "..", "安"])
            ),
        ),
        st.sets(st.integers(0, 9), max_size=4),
        max_size=8,
    )
)
def test_tenant_profile_and_audience_are_the_only_way_to_a_set(kept: dict[Any, set[int]]) -> None:
    store = memory_store()
    for (tenant, profile, (kind, name)), numbers in kept.items():
        facts = [fact(f"r-{n}", f"Knows the number {n} by heart") for n in sorted(numbers)]
        store.facts(profile, tenant=tenant).commit(Audience(kind, name), facts, **TOLD)
    for tenant in ("acme", "other"):
        for profile in ("support", "sales"):
            for kind in ("user", "project", "session"):
                for name in ("ann", "bob", "a/b", "..", "安"):
                    audience = Audience(kind, name)  # type: ignore[arg-type]
                    active = store.facts(profile, tenant=tenant).active(audience)
                    wanted = kept.get((tenant, profile, (kind, name)), set())
                    assert {one.id for one in active.facts} == {f"r-{n}" for n in wanted}
    blobs = [info.key for info in store.objects.list("blobs/")]
    assert len(blobs) == sum(map(len, kept.values())), "the same fact of two audiences has two addresses"


def test_no_name_and_no_word_lies_in_the_clear() -> None:
    store = memory_store()
    told = Audience("user", "Annabel-Lee")
    store.facts("support").commit(told, HERS, **TOLD)
    everything = b"".join(info.key.encode() + store.objects.get(info.key) for info in store.objects.list(""))
    for word in ("Annabel", "aisle", "Lisbon", "metric", "r-seats", "s-7"):
        assert word.encode() not in everything


def test_a_fact_that_rests_on_something_forgotten_is_not_taken_in() -> None:
    store = memory_store()
    ask(opened(store, "s-7"), "I like aisle seats")
    ask(opened(store, "s-8"), "I work at night", "bob")
    forget(store, session="s-7", **GONE)
    forget(store, principal="bob", **GONE)
    unnamed = fact("r-unnamed", "Works at night, says the log", session="s-8", principal=None)
    done = store.facts("support").commit(
        ANN, (*HERS, *HIS, unnamed, fact("r-x", "Likes tea in the evening", session="s-9")), **TOLD
    )

    assert [one.id for one in done.facts] == ["r-x"]
    assert [finding.kind for finding in done.findings] == ["fact_refused"] * 5
    assert store.facts("support").commit(ANN, (*HERS, done.facts[0]), **TOLD).written is False


def test_nothing_is_known_of_a_session_that_was_forgotten() -> None:
    store = memory_store()
    ask(opened(store, "s-7"))
    forget(store, session="s-7", **GONE)
    about = Audience("session", "s-7")
    done = store.facts("support").commit(about, (fact("r-1", "Rests on another session", session="s-9"),), **TOLD)
    assert done.facts == ()
    assert store.facts("support").active(about).facts == ()


def test_a_link_that_was_changed_is_not_believed() -> None:
    store = memory_store()
    shelves = store.facts("support")
    shelves.commit(ANN, HERS, **TOLD)
    (info,) = store.objects.list("facts/")
    body = store.objects.get(info.key)
    store.objects.delete(info.key)
    store.objects.put(info.key, body.replace(b"import 7", b"import 8"))
    with pytest.raises(Damaged):
        shelves.active(ANN)


# -- bad input -----------------------------------------------------------------------------------------------------

MANY = [fact(f"r-{n}", f"Number {n} of many") for n in range(MAX_FACTS + 1)]
GOOD = {"id": "r-1", "text": "Prefers aisle seats", "sources": [{"session": "s", "ref": "§1"}]}


@dataclass(frozen=True)
class Case:
    id: str
    call: Callable[[Any], object]
    says: str


CASES = (
    Case("no audience", lambda s: s.active(None), "write Audience"),
    Case("three parts", lambda s: s.active(("user", "a", "b")), "write Audience"),
    Case("a kind that is none", lambda s: s.active(Audience("team", "a")), "take one of user, project, session"),  # type: ignore[arg-type]
    Case("no name", lambda s: s.active(Audience("user", "")), "1 to 200 characters"),
    Case("a long name", lambda s: s.active(Audience("user", "x" * 201)), "1 to 200 characters"),
    Case("a lone surrogate", lambda s: s.active(Audience("user", "\ud800")), "lone surrogate"),
    Case("a name that is no text", lambda s: s.active(Audience("user", 7)), "not usable"),  # type: ignore[arg-type]
    Case("a dict for a fact", lambda s: s.commit(ANN, [GOOD], **TOLD), "pass ctxsteward.store.Fact"),
    Case("an id twice", lambda s: s.commit(ANN, [SEATS, SEATS], **TOLD), "'r-seats' twice"),
    Case("too many", lambda s: s.commit(ANN, MANY, **TOLD), "more than 500"),
    Case("nobody", lambda s: s.commit(ANN, [], who=" ", why="x", when="y"), "`who`"),
    Case("no reason", lambda s: s.commit(ANN, [], who="x", why=None, when="y"), "`why`"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(case: Case) -> None:
    store = memory_store()
    with pytest.raises(InputError, match=case.says):
        case.call(store.facts("support"))
    assert list(store.objects.list("")) == []


@pytest.mark.parametrize("name", ["", "a b", "../x", "A", None])
def test_a_profile_that_cannot_be_named_has_no_facts(name: Any) -> None:
    with pytest.raises(InputError):
        memory_store().facts(name)


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "short"},
        {"text": "x" * 281},
        {"text": "two\nlines of text"},
        {"text": "two\u2028lines of text"},
        {"text": "an escape \x1b[31m"},
        {"id": "R 1"},
        {"sources": []},
        {"sources": [{"session": "s", "ref": "12"}]},
        {"sources": [{"session": "", "ref": "§1"}]},
        {"sources": [GOOD["sources"][0]] * 17},
        {"ts": "yesterday"},
        {"answers": "two\nlines"},
        {"standing": 1},
        {"approved": True},
        {"section": "system"},
    ],
)
def test_a_fact_is_one_closed_line(fields: dict[str, Any]) -> None:
    Fact.model_validate(GOOD)
    with pytest.raises(ValidationError):
        Fact.model_validate(GOOD | fields)


def test_a_line_shows_id_text_two_pointers_and_the_day() -> None:
    assert fact_line(LISBON) == "fact r-mia: Her daughter Mia was born in Lisbon. [s-7§3, 2026-03-02]"
    sources = tuple(FactSource(session=f"s 7] [x§{n}", ref=f"§{n}.2") for n in range(1, 5))
    line = fact_line(Fact(id="r", text="Prefers aisle seats", sources=sources))
    assert line == "fact r: Prefers aisle seats [s%207%5D%20%5Bx%C2%A71§1.2, s%207%5D%20%5Bx%C2%A72§2.2]"
    long = fact_line(fact("r", "Prefers aisle seats", session="x" * 200))
    assert long == f"fact r: Prefers aisle seats [{'…' + 'x' * 59}§1]"
