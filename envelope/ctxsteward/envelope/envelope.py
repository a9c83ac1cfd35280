"""The envelope of one model call (four sections, their tokens, reports, findings) and the seal over it.

The builder returns an `Envelope`. It refers to fragments in order and copies nothing until it is rendered. `document()`
returns the published form (JSON Schema `envelope`). Digest and address cover schema and renderer version, tenant,
session, profile version, the four sections in order and the tools; not reports, findings, metrics or seal.

A seal is an HMAC-SHA-256 under the tenant's seal key. It is checked when a payload or a log is doubted. It covers the
key's id, schema and renderer version, tenant, session, profile version, log position and address. Each is prefixed with
its length, so that adjacent fields cannot be confused. The address (an HMAC over the digest of `digest_of`) binds the
order of the sections, the content, tokens, budget and epoch of each, and the tools. A seal can be checked alone
(`is_authentic`) or against an envelope (`verify_seal`). Either takes a few microseconds.

Raises `InputError` for a value that is no seal, `StoreError` if keys cannot be read. Sources: RFC 2104, FIPS 180-4; the
state design (addresses, seals that rotate by key id).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import ValidationError

from ctxsteward.schemas import CompressionReport, Finding, InputError, StoreError
from ctxsteward.schemas.documents import SealDocument
from ctxsteward.schemas.message import Wire
from ctxsteward.store.crypto.keyring import Keys, SealKey, address_of, code

from .history.standing_rules import StandingRule
from .layout.composition import DynamicLayout, HeadLayout
from .layout.fragments import Fragment
from .layout.rows import RENDERER_VERSION

if TYPE_CHECKING:
    from .render.cache_plan import CachePlan
    from .render.rules import RulesStatement

SCHEMA_VERSION = 1

Provider = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "text"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of an envelope: system, static, meta or dynamic."""

    name: str
    source: HeadLayout | DynamicLayout
    budget_tokens: int
    epoch: int
    """Number of times that the section's prefix has changed in this session."""
    tokens: int
    content: bytes
    """SHA-256 of the fragments, never stored."""

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        return self.source.fragments if isinstance(self.source, DynamicLayout) else self.source.section(self.name)

    @property
    def overflow_tokens(self) -> int:
        return max(0, self.tokens - self.budget_tokens)

    @property
    def digest(self) -> str:
        """SHA-256 of the section's content in hex, for comparisons in process; stores show addresses instead."""
        return self.content.hex()

    @property
    def text(self) -> str:
        """The section as one readable text."""
        from .render.text import section_text

        return section_text(self.fragments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The input of one model call."""

    tenant: str
    session: str
    nonce: str
    profile_version: str | None
    head: HeadLayout
    dynamic: DynamicLayout
    sections: dict[str, Section]
    reports: tuple[CompressionReport, ...]
    findings: tuple[Finding, ...]
    metrics: dict[str, float | int]
    address: str
    position: int
    """Log position at which it was built."""
    build_ms: float = 0.0
    """Wall time of the build in milliseconds, without the selection; the published form has no times."""
    selection_ms: float = 0.0
    """Wall time of recall's selection in milliseconds; 0 if this build selected nothing."""
    renderer: int = RENDERER_VERSION
    """Version of the renderer that made it; an envelope rebuilt from an old manifest has an older one."""
    standing: tuple[StandingRule, ...] = ()
    """Rules that the call has to show; `rules_in` says where they stand."""
    model: str | None = None
    """Name of the model that it was built for, as the builder got it."""
    seal: SealDocument | None = None
    """Proof of the session and log position it was built for, checked by `verify_seal`; None for a preview."""

    def __repr__(self) -> str:
        dynamic = self.sections["dynamic"]
        counts = f"{self.tokens:,} tokens, dynamic {dynamic.tokens:,} of {dynamic.budget_tokens:,}"
        return f"<Envelope {self.address[:12]} of {self.session}: {counts}, findings {len(self.findings)}>"

    def section(self, name: str) -> Section:
        """Return the section named system, static, meta or dynamic; raise `InputError` for another name."""
        if name not in self.sections:
            raise InputError(f"unknown section {name!r:.60}; an envelope has {', '.join(self.sections)}")
        return self.sections[name]

    @property
    def tokens(self) -> int:
        """Estimated tokens of the whole prompt: sections, tool schemas, reply priming."""
        return int(self.metrics["prompt_tokens"])

    @property
    def rules(self) -> RulesStatement:
        """Which standing rules stand in the request for OpenAI's chat endpoint, and where; costs a rendering."""
        return self.rules_in("openai-chat")

    def rules_in(self, provider: Provider) -> RulesStatement:
        """The same of the request for this provider."""
        from .render.rules import rules_in

        return rules_in(self, self.standing, provider)

    @property
    def cache_plan(self) -> CachePlan:
        """What requests tell the provider's prompt cache: chosen by the model and the time between user messages."""
        from .render.cache_plan import plan_for
        from .tokens.models import known_model

        return plan_for(known_model(self.model), self.dynamic, f"{self.tenant}/{self.session}/{self.nonce}")

    @property
    def unwritten_tokens(self) -> int:
        """Tokens at the end of the prompt that the model's provider is told not to write to its cache."""
        if not self.cache_plan.is_explicit:
            return 0
        return round(self.dynamic.unrepeated_tokens * self.tokens / int(self.metrics["estimated_tokens"]))

    def render(self, provider: Provider, *, cache: bool | CachePlan = True) -> Wire:
        """Return the arguments for this provider's client, except the model: ``client.create(model=…, **these)``.

        `cache`: a plan of your own in place of `cache_plan`, or False for a request without cache marks and key.
        One with `is_prewarm` gives a request that only fills OpenAI's cache. The session shares the dicts inside: read
        them, do not change them.
        """
        from .render.request import render

        if isinstance(cache, bool):
            return render(self, provider, cache=self.cache_plan if cache else None)
        return render(self, provider, cache=cache)

    def document(self) -> Wire:
        """Return the published form as JSON values. It costs renderings, so do not call it for every model call."""
        from .render.text import fragment_document

        return {
            "schema_version": SCHEMA_VERSION,
            "address": self.address,
            "tenant": self.tenant,
            "session": self.session,
            "profile_version": self.profile_version,
            "sections": {
                name: {
                    "tokens": section.tokens,
                    "budget_tokens": section.budget_tokens,
                    "overflow_tokens": section.overflow_tokens,
                    "epoch": section.epoch,
                    "content": [fragment_document(fragment) for fragment in section.fragments],
                }
                for name, section in self.sections.items()
            },
            "reports": [report.model_dump(mode="json") for report in self.reports],
            "findings": [finding.model_dump(mode="json") for finding in self.findings],
            "metrics": dict(self.metrics),
            "seal": None if self.seal is None else self.seal.model_dump(mode="json"),
            "rules": self.rules.document(),
        }


def digest_of(
    tenant: str,
    session: str,
    profile_version: str | None,
    sections: Mapping[str, Section],
    tools_digest: bytes,
    renderer: int = RENDERER_VERSION,
) -> bytes:
    """Return the digest that an envelope's address is made from; `sections` must be in order."""
    parts = [f"{SCHEMA_VERSION}\x00{renderer}\x00{tenant}\x00{session}\x00{profile_version}".encode()]
    for section in sections.values():
        parts += (section.content, b"%d/%d/%d" % (section.tokens, section.budget_tokens, section.epoch))
    return hashlib.sha256(b"\x01".join((*parts, tools_digest))).digest()


ALGORITHM: Literal["HMAC-SHA-256"] = "HMAC-SHA-256"
_DOMAIN = b"ctxsteward seal 1"
_NONE = b"\xff\xff\xff\xff"
"""Written in place of a length for a field that is null."""


def seal_envelope(
    key: SealKey,
    *,
    tenant: str,
    session: str,
    profile_version: str | None,
    position: int,
    address: str,
    renderer: int = RENDERER_VERSION,
) -> SealDocument:
    """Return the seal for the envelope with this address, made by this renderer version."""
    fields = (
        key.id,
        str(SCHEMA_VERSION),
        str(renderer),
        tenant,
        session,
        profile_version,
        str(position),
        address,
    )
    return SealDocument(
        alg=ALGORITHM,
        key_id=key.id,
        mac=_code(key, fields),
        schema_version=SCHEMA_VERSION,
        renderer_version=renderer,
        tenant=tenant,
        session=session,
        profile_version=profile_version,
        position=position,
        address=address,
    )


def read_seal(value: object) -> SealDocument:
    """Read a seal from a payload, a log line or an envelope's document; raise `InputError` naming the field."""
    if isinstance(value, SealDocument):
        return value
    try:
        return SealDocument.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(("seal", *map(str, first["loc"])))
        raise InputError(f"{where}: {first['msg']}; pass the seal as the envelope's document shows it") from None


def seal_key_fault(keys: Keys, seal: SealDocument) -> str | None:
    """Return why the key that a seal names is missing or changed, or None if it is intact."""
    try:
        keys.seal_key(seal.tenant, seal.key_id)
    except StoreError as error:
        return str(error)
    return None


def is_authentic(keys: Keys, seal: SealDocument) -> bool:
    """Return whether the tenant named in the seal made exactly this seal; False also for an unknown key.

    Call it only for your own tenants: a key ring may create a tenant's keys at first use.
    """
    try:
        key = keys.seal_key(seal.tenant, seal.key_id)
    except StoreError:
        return False
    fields = (
        seal.key_id,
        str(seal.schema_version),
        str(seal.renderer_version),
        seal.tenant,
        seal.session,
        seal.profile_version,
        str(seal.position),
        seal.address,
    )
    return hmac.compare_digest(_code(key, fields), seal.mac)


def verify_seal(keys: Keys, seal: object, envelope: Envelope) -> bool:
    """Return whether this seal is authentic and belongs to this envelope, content included."""
    read = read_seal(seal)
    if not is_seal_of(read, envelope) or not is_authentic(keys, read):
        return False
    digest = digest_of(
        envelope.tenant,
        envelope.session,
        envelope.profile_version,
        envelope.sections,
        envelope.head.tools_digest,
        envelope.renderer,
    )
    address = address_of(keys.address_key(envelope.tenant), envelope.session, "envelope", digest)
    return hmac.compare_digest(address, read.address)


def is_seal_of(seal: SealDocument, envelope: Envelope) -> bool:
    """Return whether the seal's plain fields equal this envelope's. It proves nothing without the code."""
    return (
        seal.schema_version == SCHEMA_VERSION
        and seal.renderer_version == envelope.renderer
        and seal.tenant == envelope.tenant
        and seal.session == envelope.session
        and seal.profile_version == envelope.profile_version
        and seal.position == envelope.position
        and seal.address == envelope.address
    )


def _code(key: SealKey, fields: tuple[str | None, ...]) -> str:
    *lasting, position, address = fields
    return code(key.secret, _prefixed(tuple(lasting)) + _prefixed_one(position) + _prefixed_one(address))


@lru_cache(maxsize=1024)
def _prefixed(fields: tuple[str | None, ...]) -> bytes:
    """Return the fields that stay the same between envelopes of a session, each with its length."""
    return _DOMAIN + b"".join(map(_prefixed_one, fields))


def _prefixed_one(field: str | None) -> bytes:
    if field is None:
        return _NONE
    data = field.encode()
    return len(data).to_bytes(4, "big") + data
