"""Facts that an earlier version kept: past envelopes show them, erasures take them, and no new request is shown one.

`golden/v1/facts.json` is a store as that version wrote it: sessions of Ann and Bob, shelves of two agents, and one
envelope that shows three facts about Ann. Afterwards all but one were replaced on her shelf.
"""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Store, rebuild
from ctxsteward.envelope.testing import FirstLine
from ctxsteward.schemas import InputError, StoreUnavailable
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.facts.fact_store import FactLookup
from ctxsteward.store.journal.port import JournalRecord, SessionKey
from ctxsteward.store.maintenance.fsck import fsck
from ctxsteward.store.maintenance.gc import gc

from ..erasure.scenes import contents_of, hits
from .desk import GONE, PROFILE, Requests, ask, counted_store, kinds

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden/v1/facts.json").read_text(encoding="utf-8"))
CANARY = "CANARYann8472"


@pytest.fixture
def kept() -> tuple[Store, Requests]:
    """The store of the file."""
    store, requests = counted_store()
    for name, body in GOLDEN["objects"].items():
        requests.put(name, base64.b64decode(body))
    for session, rows in GOLDEN["logs"].items():
        store.journal.append(SessionKey("acme", session), 0, [JournalRecord(*row) for row in rows])
    for address, (session, body) in GOLDEN["manifests"].items():
        store.journal.put_manifest(SessionKey("acme", session), address, body)
    return store, requests


def again(store: Store) -> Envelope:
    return rebuild(store, GOLDEN["envelope"], tenant="acme")


def lines(envelope: Envelope) -> list[str]:
    """Ids of the facts that an envelope shows, in its order."""
    rows = envelope.dynamic.context.text.splitlines() if envelope.dynamic.context else []
    return [row.split()[1].rstrip(":") for row in rows if row.startswith("fact ")]


def test_a_past_envelope_is_rebuilt_byte_for_byte(kept: tuple[Store, Requests]) -> None:
    envelope = again(kept[0])
    assert envelope.dynamic.context is not None
    assert (envelope.address, envelope.dynamic.context.text) == (GOLDEN["envelope"], GOLDEN["shown"])
    assert (envelope.render("anthropic"), envelope.findings) == (GOLDEN["request"], ())
    assert kept[0].session("s-1", tenant="acme").shown_records() == {"r-secret", "r-both", "r-else"}


def test_a_turn_that_was_shown_facts_shows_them_to_its_end_and_no_new_turn_does(kept: tuple[Store, Requests]) -> None:
    builder = EnvelopeBuilder(tokenizer="o200k_base", summarizer=FirstLine())
    session = kept[0].session("s-1", tenant="acme", profile=PROFILE)
    assert lines(builder.build(session)) == ["r-secret", "r-both", "r-else"]
    session.append({"role": "assistant", "content": "By the window."})
    assert lines(builder.build(ask(session, "Which seat is mine?"))) == []


def test_a_store_that_does_not_answer_costs_a_finding(kept: tuple[Store, Requests]) -> None:
    (store, requests), builder = kept, EnvelopeBuilder(tokenizer="o200k_base", summarizer=FirstLine())
    session = store.session("s-1", tenant="acme", profile=PROFILE)
    requests.dead = True
    envelope = builder.build(session)
    assert (lines(envelope), kinds(envelope)) == ([], ["facts_unavailable"])
    requests.dead = False
    assert len(lines(builder.build(session))) == 3


def test_a_store_that_is_not_near_is_waited_for_a_moment_only() -> None:
    gate, answered = threading.Event(), threading.Event()
    lookup = FactLookup(lambda profile, tenant: pytest.fail("not asked for"), wait_seconds=0.02)

    def slow() -> None:
        gate.wait(10)
        answered.set()

    with pytest.raises(StoreUnavailable, match="in time"):
        lookup.ask(slow)
    with pytest.raises(StoreUnavailable, match="not asked for facts now"):
        lookup.ask(lambda: None)
    gate.set()
    assert answered.wait(5), "what comes late is there for the next turn"


# -- erasure and care ----------------------------------------------------------------------------------------------


def test_with_a_session_go_the_facts_that_rest_on_it(kept: tuple[Store, Requests]) -> None:
    store = kept[0]
    assert CANARY in json.dumps(again(store).render("anthropic"))
    assert forget(store, tenant="acme", session="s-7", **GONE).recommendations == 1
    envelope = again(store)
    assert lines(envelope) == ["r-both", "r-else"]
    assert {"fact_erased", "rebuilt_differs"} <= set(kinds(envelope))
    assert hits(contents_of(store), (CANARY,)) == {}


def test_with_anybody_it_rests_on_a_fact_goes(kept: tuple[Store, Requests]) -> None:
    bob: dict[str, Any] = {"tenant": "acme", "session": "s-8", "principal": "bob", **GONE}
    assert forget(kept[0], **bob).recommendations == 1
    assert lines(again(kept[0])) == ["r-secret", "r-else"]
    assert forget(kept[0], **bob).recommendations == 0


def test_with_a_user_goes_all_that_is_known_about_them_whatever_it_rests_on(kept: tuple[Store, Requests]) -> None:
    """Three facts about Ann, one that another agent knew of a file, and one about Carol that rests on Ann's words."""
    assert forget(kept[0], tenant="acme", principal="ann", **GONE).recommendations == 5
    assert lines(again(kept[0])) == []


def test_one_who_said_nothing_here_can_be_forgotten_where_something_is_known_about_them(
    kept: tuple[Store, Requests],
) -> None:
    assert forget(kept[0], tenant="acme", principal="carol", **GONE).recommendations == 1
    assert forget(kept[0], tenant="acme", principal="carol", **GONE).recommendations == 0
    with pytest.raises(InputError, match="has said nothing"):
        forget(kept[0], tenant="acme", principal="dave", **GONE)


def test_with_a_session_goes_what_is_known_about_it(kept: tuple[Store, Requests]) -> None:
    """A fact about the session itself, and one that rests on what was said in it."""
    assert forget(kept[0], tenant="acme", session="s-8", **GONE).recommendations == 2


def test_fsck_and_gc_know_shelves(kept: tuple[Store, Requests]) -> None:
    store = kept[0]
    assert fsck(store, read_data=True).damage == ()
    assert gc(store, now=1e12, grace_seconds=0).blobs == ()
    assert len(lines(again(store))) == 3
    forget(store, tenant="acme", session="s-7", **GONE)
    assert fsck(store, read_data=True).damage == ()


@pytest.mark.parametrize(
    ("prefix", "says"), [("blobs/", "blob_missing"), ("keys/", "key_missing"), ("facts/", "link_missing")]
)
def test_fsck_names_what_is_missing_of_a_shelf(prefix: str, says: str, kept: tuple[Store, Requests]) -> None:
    (first, *_), objects = sorted(name for name in GOLDEN["objects"] if name.startswith(prefix)), kept[1]
    if prefix == "facts/":  # of the shelf with two links
        (second,) = (name for name in GOLDEN["objects"] if name.endswith("/000000000002.json"))
        first = second.replace("000000000002", "000000000001")
    objects.delete(first)
    assert says in [finding.kind for finding in fsck(kept[0]).damage]
