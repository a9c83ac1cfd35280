"""An envelope: the four sections of one model call, their tokens, and what happened on the way.

`Envelope` is what the builder returns: fragments in order, nothing copied until it is rendered. `document()` is the
published form (JSON Schema `envelope`). Digest and address cover schema version, tenant, session, profile version and
the four sections in order; not reports, findings, metrics or seal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ctxsteward.schemas import CompressionReport, Finding, InputError, Wire
from ctxsteward.schemas.seal import SealDocument

from .budgets import HEAD_SECTIONS
from .layout import DynamicLayout, Fragment, HeadLayout
from .rows import RENDERER_VERSION as RENDERER_VERSION

SCHEMA_VERSION = 1

Provider = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "text"]
PROVIDERS: tuple[Provider, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini", "text")


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
    seal: SealDocument | None = None
    """Who built it, where: checked by `seal.verify_seal`. A preview has none."""

    def section(self, name: str) -> Section:
        """One section: system, static, meta or dynamic; raises `InputError` for another name."""
        if name not in self.sections:
            raise InputError(f"section {name!r:.60} is none; an envelope has {', '.join(self.sections)}")
        return self.sections[name]

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt as estimated: sections, tool schemas, reply priming."""
        return int(self.metrics["prompt_tokens"])

    def render(self, provider: Provider, *, cache: bool = True) -> Wire:
        """The request's arguments for this provider's client, without the model: ``client.create(model=…, **these)``.

        `cache=False` leaves out cache marks. The dicts inside are shared with the session: read, do not change them.
        """
        from .render import render

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
    head: HeadLayout,
    sections: Mapping[str, Section],
    renderer: int = RENDERER_VERSION,
) -> bytes:
    """What an envelope's address is made from."""
    before = head_digested(tenant, session, profile_version, sections, renderer)
    return digest_behind(before, sections["dynamic"], head.tools_digest)


def head_digested(
    tenant: str,
    session: str,
    profile_version: str | None,
    sections: Mapping[str, Section],
    renderer: int = RENDERER_VERSION,
) -> bytes:
    """The part of `digest_of` that changes with the head alone."""
    parts = [f"{SCHEMA_VERSION}\x00{renderer}\x00{tenant}\x00{session}\x00{profile_version}".encode()]
    for name in HEAD_SECTIONS:
        parts += _digested(sections[name])
    return b"\x01".join(parts)


def digest_behind(head: bytes, dynamic: Section, tools_digest: bytes) -> bytes:
    """`digest_of`, given what `head_digested` made of the head."""
    return hashlib.sha256(b"\x01".join((head, *_digested(dynamic), tools_digest))).digest()


def _digested(section: Section) -> tuple[bytes, bytes]:
    return section.content, b"%d/%d/%d" % (section.tokens, section.budget_tokens, section.epoch)
