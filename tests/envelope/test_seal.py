"""Seals: what they bind, what they cost, and that keys rotate."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Profile
from ctxsteward.envelope.envelope import is_authentic, read_seal, seal_envelope, verify_seal
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.documents import SealDocument
from ctxsteward.schemas.publish import validate
from ctxsteward.store.crypto.keyring import Keys, MasterKeys, memory_keys

KEYS = memory_keys(lambda size: (b"k" * 64)[:size])
"""Those of `memory_store`."""


def built(tenant: str = "acme", session: str = "s-1", text: str = "hello"):  # type: ignore[no-untyped-def]
    opened = memory_store().session(session, tenant=tenant, profile=Profile.from_text("Be brief."))
    opened.append({"role": "user", "content": text})
    return EnvelopeBuilder(tokenizer="o200k_base").build(opened)


def sealed(envelope, keys: Keys = KEYS) -> SealDocument:  # type: ignore[no-untyped-def]
    return seal_envelope(
        keys.seal_key(envelope.tenant),
        tenant=envelope.tenant,
        session=envelope.session,
        profile_version=envelope.profile_version,
        position=envelope.position,
        address=envelope.address,
    )


def test_a_seal_verifies_against_its_envelope_and_after_a_round_trip() -> None:
    envelope = built()
    seal = sealed(envelope)
    assert verify_seal(KEYS, seal, envelope)
    assert verify_seal(KEYS, seal.model_dump(mode="json"), envelope)
    assert verify_seal(KEYS, SealDocument.model_validate_json(seal.model_dump_json()), envelope)
    validate("envelope", {**envelope.document(), "seal": seal.model_dump(mode="json")})


CHANGES = {
    "tenant": "globex",
    "session": "s-2",
    "profile_version": None,
    "position": 99,
    "address": "0" * 64,
    "schema_version": 2,
    "renderer_version": 9,
    "key_id": "2",
    "mac": "0" * 64,
}


@pytest.mark.parametrize("field", CHANGES)
def test_no_field_of_a_seal_can_be_changed(field: str) -> None:
    envelope = built()
    forged = sealed(envelope).model_copy(update={field: CHANGES[field]})
    assert not is_authentic(MasterKeys(b"m" * 32), forged)
    assert not is_authentic(KEYS, forged)
    assert not verify_seal(KEYS, forged, envelope)


def test_the_address_in_a_seal_binds_content_order_tokens_budgets_and_tools() -> None:
    envelope = built()
    seal, sections = sealed(envelope), dict(envelope.sections)
    dynamic, system, static = (sections[name] for name in ("dynamic", "system", "static"))
    forged = [
        replace(envelope, sections=sections | {"dynamic": replace(dynamic, content=b"\0" * 32)}),
        replace(envelope, sections=sections | {"dynamic": replace(dynamic, tokens=dynamic.tokens + 1)}),
        replace(envelope, sections=sections | {"dynamic": replace(dynamic, budget_tokens=9_000)}),
        replace(envelope, sections=sections | {"dynamic": replace(dynamic, epoch=3)}),
        replace(envelope, sections=sections | {"system": static, "static": system}),
        replace(envelope, head=replace(envelope.head, tools_digest=b"\0" * 32)),
    ]
    assert [verify_seal(KEYS, seal, one) for one in forged] == [False] * len(forged)


def test_a_seal_of_another_envelope_is_not_this_one_s() -> None:
    envelope = built()
    others = [built(tenant="globex"), built(session="s-2"), built(text="hello!")]
    assert [verify_seal(KEYS, sealed(other), envelope) for other in others] == [False] * 3
    assert all(is_authentic(KEYS, sealed(other)) for other in others)


@pytest.mark.parametrize("field", ["tenant", "session", "profile_version", "position", "address", "renderer"])
def test_a_sound_seal_that_says_something_else_of_this_envelope_is_not_its_seal(field: str) -> None:
    envelope = built()
    said = {name: getattr(envelope, name) for name in ("tenant", "session", "profile_version", "position", "address")}
    other = {
        "tenant": "globex",
        "session": "s-2",
        "profile_version": "7",
        "position": envelope.position + 1,
        "address": "0" * 64,
        "renderer": 1,
    }[field]
    told = said | {field: other}
    seal = seal_envelope(KEYS.seal_key(told["tenant"]), **told)
    assert is_authentic(KEYS, seal)
    assert not verify_seal(KEYS, seal, envelope)


def test_seals_by_a_rotated_key_still_verify_and_unknown_keys_do_not() -> None:
    envelope = built()
    keys = memory_keys()
    old = sealed(envelope, keys)
    keys.rotate_seal_key(envelope.tenant)
    new = sealed(envelope, keys)
    assert (old.key_id, new.key_id) == ("1", "2")
    assert is_authentic(keys, old)
    assert is_authentic(keys, new)
    assert not is_authentic(memory_keys(), new)

    master = MasterKeys(b"m" * 32)
    assert is_authentic(MasterKeys(b"m" * 32, seal_id="2"), sealed(envelope, master))
    assert not is_authentic(MasterKeys(b"n" * 32), sealed(envelope, master))


def test_a_seal_holds_no_digest_of_any_content() -> None:
    envelope = built()
    text = sealed(envelope).model_dump_json()
    assert not any(section.digest in text for section in envelope.sections.values())


def test_fields_do_not_run_together() -> None:
    key = KEYS.seal_key("acme")
    texts = [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", "")]
    macs = {
        seal_envelope(key, tenant=a, session=b, profile_version=version, position=1, address="0" * 64).mac
        for a, b in texts
        for version in (None, "", "1")
    }
    assert len(macs) == len(texts) * 3


def test_a_seal_costs_microseconds() -> None:
    envelope, rounds = built(), 2_000
    key = KEYS.seal_key("acme")
    fields = {name: getattr(envelope, name) for name in ("tenant", "session", "profile_version", "position", "address")}
    best = 1.0
    for _ in range(5):
        started = time.process_time()
        for _ in range(rounds):
            seal_envelope(key, **fields)
        best = min(best, (time.process_time() - started) / rounds)
    print(f"a seal costs {best * 1e6:.1f} µs")
    assert best < 100e-6


class Case(NamedTuple):
    id: str
    value: object
    says: str


NO_SEALS = [
    Case("text", "sealed", "seal: Input should be"),
    Case("nothing in it", {}, "seal.alg"),
    Case("a weaker algorithm", {"alg": "none"}, "seal.alg"),
    Case("a field of its own", {"trust": "operator"}, "seal.trust"),
    Case("a number as text", {"position": "12"}, "seal.position"),
    Case("a short code", {"mac": "00"}, "seal.mac"),
    Case("a line break after the address", {"address": "0" * 64 + "\n"}, "seal.address"),
]


@pytest.mark.parametrize("case", NO_SEALS, ids=lambda case: case.id)
def test_what_is_no_seal_is_refused_in_one_line(case: Case) -> None:
    value = case.value
    if isinstance(value, dict) and value:
        value = sealed(built()).model_dump(mode="json") | value
    with pytest.raises(InputError, match=case.says) as caught:
        read_seal(value)
    assert "\n" not in str(caught.value)
