"""An envelope: the four sections of one model call, their tokens, what happened on the way; and its seal.

`Envelope` is what the builder returns: fragments in order, nothing copied until it is rendered. `document()` is the
published form (JSON Schema `envelope`). Digest and address cover schema version, tenant, session, profile version and
the four sections in order; not reports, findings, metrics or seal.

A seal is an HMAC-SHA-256 under the tenant's seal key, checked where a payload or a log is doubted. It covers the key's
id, schema and renderer version, tenant, session, profile version, log position and address, each length-prefixed, so no
two of them run together. Through the address (an HMAC over the digest of `digest_of`) it also binds the order of the
sections, the content, tokens, budget and epoch of each, and the tools. So a seal can be checked by itself
(`is_authentic`) and against an envelope (`verify_seal`). It costs a few microseconds.

Raises `InputError` where something is no seal, `StoreError` where keys cannot be read.
Sources: RFC 2104, FIPS 180-4; the state design (addresses, seals that rotate by key id).
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
    from .render.rules import RulesStatement

SCHEMA_VERSION = 1

Provider = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "text"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One of system, static, meta, dynamic."""

    name: str
    source: HeadLayout | DynamicLayout
    budget_tokens: int
    epoch: int
    """How often its prefix has changed in this session."""
    tokens: int
    content: bytes
    """SHA-256 of the fragments, in process only."""

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        return self.source.fragments if isinstance(self.source, DynamicLayout) else self.source.section(self.name)

    @property
    def overflow_tokens(self) -> int:
        return max(0, self.tokens - self.budget_tokens)

    @property
    def digest(self) -> str:
        """SHA-256 of the section's content, for comparisons in process; stores show addresses."""
        return self.content.hex()

    @property
    def text(self) -> str:
        """The section as one readable text."""
        from .render.text import section_text

        return section_text(self.fragments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What one model call is shown."""

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
    """Log position it was built at."""
    build_ms: float = 0.0
    """Wall time of the build without the selection; as all times, not part of the published form."""
    selection_ms: float = 0.0
    """Wall time of choosing what is recalled; 0 where nothing was chosen in this build."""
    renderer: int = RENDERER_VERSION
    """The one that made it: that of an envelope out of a manifest may be older."""
    standing: tuple[StandingRule, ...] = ()
    """Rules that the call has to show; `rules_in` says where they stand."""
    seal: SealDocument | None = None
    """Who built it, where: checked by `seal.verify_seal`. A preview has none."""

    def __repr__(self) -> str:
        dynamic = self.sections["dynamic"]
        counts = f"{self.tokens:,} tokens, dynamic {dynamic.tokens:,} of {dynamic.budget_tokens:,}"
        return f"<Envelope {self.address[:12]} of {self.session}: {counts}, findings {len(self.findings)}>"

    def section(self, name: str) -> Section:
        """One section: system, static, meta or dynamic; raises `InputError` for another name."""
        if name not in self.sections:
            raise InputError(f"unknown section {name!r:.60}; an envelope has {', '.join(self.sections)}")
        return self.sections[name]

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt as estimated: sections, tool schemas, reply priming."""
        return int(self.metrics["prompt_tokens"])

    @property
    def rules(self) -> RulesStatement:
        """Which standing rules stand in the request for OpenAI's chat endpoint, and where; costs a rendering."""
        return self.rules_in("openai-chat")

    def rules_in(self, provider: Provider) -> RulesStatement:
        """The same of the request for this provider."""
        from .render.rules import rules_in

        return rules_in(self, self.standing, provider)

    def render(self, provider: Provider, *, cache: bool = True) -> Wire:
        """The request's arguments for this provider's client, without the model: ``client.create(model=…, **these)``.

        `cache=False` leaves out cache marks. The dicts inside are shared with the session: read, do not change them.
        """
        from .render.request import render

        return render(self, provider, cache=cache)

    def document(self) -> Wire:
        """The published form, as JSON values; costs a rendering, so not for every call."""
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
        }


def digest_of(
    tenant: str,
    session: str,
    profile_version: str | None,
    sections: Mapping[str, Section],
    tools_digest: bytes,
    renderer: int = RENDERER_VERSION,
) -> bytes:
    """What an envelope's address is made from; `sections` in their order."""
    parts = [f"{SCHEMA_VERSION}\x00{renderer}\x00{tenant}\x00{session}\x00{profile_version}".encode()]
    for section in sections.values():
        parts += (section.content, b"%d/%d/%d" % (section.tokens, section.budget_tokens, section.epoch))
    return hashlib.sha256(b"\x01".join((*parts, tools_digest))).digest()


ALGORITHM: Literal["HMAC-SHA-256"] = "HMAC-SHA-256"
_DOMAIN = b"ctxsteward seal 1"
_NONE = b"\xff\xff\xff\xff"
"""In place of a length: the field is null."""


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
    """Seal the envelope with this address, as made by this renderer."""
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
    """A seal out of a payload, a log line or an envelope; raises `InputError` naming the field."""
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
    """Whether the tenant named in the seal sealed exactly this; False also for a key that is not known.

    Ask only about tenants of yours: a key ring may make a tenant's keys at first use.
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
    """Whether this seal is authentic and seals this envelope, content included."""
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
    """Whether the seal's plain fields are this envelope's."""
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
    """What stays the same from one envelope of a session to the next."""
    return _DOMAIN + b"".join(map(_prefixed_one, fields))


def _prefixed_one(field: str | None) -> bytes:
    if field is None:
        return _NONE
    data = field.encode()
    return len(data).to_bytes(4, "big") + data
