"""Spans: a citation is the bytes it points to, and can be checked again for as long as its artifact is there.

`span_address` is HMAC(tenant's key, subject ‖ "span" ‖ bytes): it answers no question about content, and the same words
of two people have two addresses.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ctxsteward.envelope.keys import AddressKey, address_of
from ctxsteward.schemas.recommendation import Evidence, Trust

from .artifact import Artifact, Cited, cut, subject_for


class Pointed(NamedTuple):
    """A place of an observation with all that evidence says of it; JSON values."""

    ref: str
    start: int
    stop: int
    address: str
    role: str
    trust: Trust
    principal: str
    ts: str | None
    relation: str


class Quote(NamedTuple):
    """A span with its words; None: they were forgotten."""

    source: str
    session: str
    ref: str
    relation: str
    ts: str | None
    text: str | None


def span_address(key: AddressKey, session: str, principal: str, data: bytes) -> str:
    """The address of the bytes of a span."""
    return address_of(key, subject_for(session, principal), "span", data)


def pointed(artifact: Artifact, key: AddressKey) -> Iterator[tuple[Pointed, ...]]:
    """The places of each of an artifact's observations."""
    texts = {cited.ref: (cited, cited.text.encode()) for cited in artifact.cited}
    for observation in artifact.observations:
        told = [(place, *texts[place.ref]) for place in observation.places if place.ref in texts]
        yield tuple(
            Pointed(
                place.ref, place.start, place.stop,
                span_address(key, artifact.session, said.principal, data[place.start : place.stop]),
                said.role, said.trust, said.principal, said.ts or observation.ts, place.relation,
            )
            for place, said, data in told
        )  # fmt: skip


def verified(evidence: Evidence, cited: Cited | None, key: AddressKey) -> bool:
    """Whether the bytes at a span are what its address says, and the text is whose it says, trusted no less."""
    text = cut(cited.text, *evidence.span) if cited is not None else None
    if cited is None or text is None or (cited.role, cited.trust) != (evidence.role, evidence.trust):
        return False
    address = span_address(key, evidence.session, cited.principal, text.encode())
    return cited.principal == evidence.principal and hmac.compare_digest(address, evidence.span_address)


def quotes(evidence: Iterable[Evidence], cited: Iterable[Cited | None]) -> Iterator[Quote]:
    """The words of each span."""
    for one, said in zip(evidence, cited, strict=True):
        text = cut(said.text, *one.span) if said is not None else None
        yield Quote(one.source, one.session, one.ref, one.relation, one.ts, text)
