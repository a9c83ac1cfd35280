"""Receipts: what they state, that they are whole or refused, and whose key they hang on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ctxsteward.schemas import ContextError, InputError
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.erasure.forget import apply_tombstones, forget
from ctxsteward.store.erasure.receipt import receipt_key, signed_receipt, verified_receipt
from ctxsteward.store.journal.erasures import ErasedPlace, Erasure
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.objects.memory import MemoryObjects

from ...examples import Proved
from .scenes import ANN, CHARS, TOLD, Store, builder, fill, say, two_machines

KEYS, OTHERS = MasterKeys(b"k" * 32), MasterKeys(b"o" * 32)
SMALL = Erasure(tenant="acme", session="s-1", **TOLD, places=(ErasedPlace(place="messages", before=2, after=0),))


def test_a_receipt_states_the_erasure_and_is_read_back_as_it_was() -> None:
    store = Store(MemoryJournal(), MemoryObjects(), KEYS, uri="memory:")
    fill(store, turns=3)
    key = SessionKey("acme", "s-2")
    calls = {manifest.address[:16] for manifest in store.journal.manifests(key)}
    done = forget(store, tenant="acme", session="s-2", **TOLD)
    assert verified_receipt(done.receipt.encode(), receipt_key(KEYS, "acme")) == done
    stated = {place.place: (place.before, place.after) for place in done.places}
    assert stated["messages"] == (30, 0)
    assert stated["manifests of envelopes"] == (6, 0)
    assert (done.session, done.principal, done.complete) == ("s-2", None, True)
    logs = {left.place: left for left in done.remains}
    assert set(logs["requests to a provider, logs, traces"].calls) == calls
    assert logs["prompt caches of providers"].until == "2026-11-23T00:00:00+00:00"


def test_a_receipt_that_was_changed_in_any_bit_of_any_byte_is_refused(record_property: Proved) -> None:
    data = signed_receipt(SMALL, KEYS).encode()
    assert verified_receipt(data) == replace(SMALL, receipt=data.decode())
    accepted, tried = [], 0
    for place, byte in enumerate(data):
        altered = [data[:place] + bytes([byte ^ (1 << bit)]) + data[place + 1 :] for bit in range(8)]
        altered += [data[:place] + data[place + 1 :], data[:place] + b" " + data[place:], data[:place]]
        for one in altered:
            tried += 1
            try:
                verified_receipt(one)
            except ContextError:
                continue
            accepted.append((place, one))
    record_property("proved", f"{tried - len(accepted):,} of {tried:,} refused, {len(data):,} bytes")
    assert accepted == []


@pytest.mark.parametrize(
    "rewritten",
    [
        lambda document: json.dumps(document),
        lambda document: json.dumps(dict(reversed(document.items())), indent=1) + "\n",
        lambda document: json.dumps(document | {"signature": document["signature"].upper()}, indent=1) + "\n",
        lambda document: json.dumps(document | {"more": 1}, indent=1, sort_keys=True) + "\n",
        lambda document: "[" * 100_000,
        lambda document: "null",
        lambda document: json.dumps(document | {"schema_version": 2}, indent=1, sort_keys=True) + "\n",
    ],
    ids=["in one line", "in another order", "in capitals", "with more", "deep", "null", "of a later version"],
)
def test_the_same_fields_in_another_form_are_refused(rewritten: object) -> None:
    text = rewritten(json.loads(signed_receipt(SMALL, KEYS)))  # type: ignore[operator]
    with pytest.raises(ContextError):
        verified_receipt(text.encode())


@pytest.mark.parametrize(
    "signed", [signed_receipt(SMALL, OTHERS), signed_receipt(replace(SMALL, tenant="other"), KEYS)]
)
def test_a_receipt_of_another_store_or_tenant_is_refused(signed: str) -> None:
    verified_receipt(signed.encode())  # whole in itself: only the published key tells
    with pytest.raises(InputError, match="another store or tenant"):
        verified_receipt(signed.encode(), receipt_key(KEYS, "acme"))


def test_a_key_that_was_put_in_place_of_the_tenant_s_does_not_fit_the_signature() -> None:
    document = json.loads(signed_receipt(SMALL, KEYS)) | {"key": receipt_key(OTHERS, "acme")}
    with pytest.raises(Damaged):
        verified_receipt((json.dumps(document, indent=1, sort_keys=True) + "\n").encode())


def test_other_machines_that_wrote_are_named_until_they_have_heard() -> None:
    with two_machines() as (one, two):
        say(two.session("s", tenant="acme", counter=CHARS), "ann", ANN, 0)
        assert two.flush(30)
        session = one.session("s", tenant="acme", counter=CHARS)
        say(session, "bob", ("fine",), 1)
        builder().build(session)
        assert one.flush(30)
        done = forget(one, tenant="acme", session="s", **TOLD)
        (left,) = [left.remedy for left in done.remains if left.place == "journals of other machines"]
        assert two.journal.id in left
        assert one.journal.id not in left
        assert [head.chain.split("/")[0] for head in done.heads] == ["sessions"]
        assert {place.place: place.before for place in done.places}[
            "data keys: drained sessions, stored reports, harvest"
        ]
        heard = apply_tombstones(two, "acme")
        assert heard is not None
        assert (heard.receipt, heard.sessions) == ("", ("s",))


def test_a_second_erasure_of_a_person_counts_the_first_one_s_places_too() -> None:
    store = Store(MemoryJournal(), MemoryObjects(), KEYS, uri="memory:")
    before = []
    for name in ("s-1", "s-2"):
        say(store.session(name, tenant="acme", counter=CHARS), "ann", ANN, 0)
        done = forget(store, tenant="acme", principal="ann", who="dpo", when="2026-11-22", why=name)
        before.append({place.place: place.before for place in done.places}["messages"])
    assert before == [5, 10]


def test_what_an_eraser_finds_at_a_second_look_is_named_and_the_erasure_is_not_complete() -> None:
    store = Store(MemoryJournal(), MemoryObjects(), KEYS, uri="memory:")
    say(store.session("s", tenant="acme", counter=CHARS), "ann", ANN, 0)

    def archive(gone: object) -> int:
        return 3

    done = forget(store, tenant="acme", session="s", erasers=(archive,), **TOLD)
    (place,) = [place for place in done.places if "archive" in place.place]
    assert (place.before, place.after, done.complete) == (3, 3, False)
