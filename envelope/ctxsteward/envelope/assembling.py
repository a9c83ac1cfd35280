"""An envelope put together: the head and the dynamic section, measured against the window, addressed and told of.

In two steps, because a build writes its manifest between them: `measured` says where the envelope goes by, `assembled`
makes it. Raises `WindowExceeded` where the prompt leaves the output less than its reserve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxsteward.schemas import Finding, WindowExceeded
from ctxsteward.schemas.seal import SealDocument

from .deciding import Decided
from .envelope import Envelope, Section, digest_behind
from .groups import FINDING_TEXTS
from .head_sections import LaidHead
from .keys import address_of
from .layout import window_findings
from .scale import Scale
from .seal import seal_envelope
from .session import Session
from .target import Target
from .tokens import REPLY_PRIMING_TOKENS

DEGRADED = frozenset(("original_damaged", "record_damaged", "rebuilt_differs"))
"""Kinds of findings that say something is truly gone: `metrics["degraded"]` is 1."""


class Measured(NamedTuple):
    """An envelope to be: its dynamic section, its tokens, its address."""

    dynamic: Section
    prompt_tokens: int
    """The provider's."""
    estimated_tokens: int
    """Before calibration."""
    address: str


class Times(NamedTuple):
    """Wall time."""

    build_ms: float = 0.0
    """Without the selection."""
    selection_ms: float = 0.0

    @classmethod
    def of(cls, seconds: float, selection_seconds: float) -> Times:
        """Of a build that took so long, its selection included."""
        return cls(round((seconds - selection_seconds) * 1000, 3), round(selection_seconds * 1000, 3))


def measured(session: Session, head: LaidHead, decided: Decided, target: Target, scale: Scale) -> Measured:
    """Count and address what was laid out."""
    layout = decided.layout
    dynamic = Section(
        name="dynamic", source=layout, budget_tokens=scale.stated.dynamic_tokens, epoch=session.state.compactions,
        tokens=scale.provider_tokens(layout.tokens), content=layout.digest(),
    )  # fmt: skip
    prompt_tokens = head.tokens + dynamic.tokens + REPLY_PRIMING_TOKENS
    if target.window_tokens is not None and prompt_tokens > target.window_tokens - target.output_reserve_tokens:
        raise WindowExceeded(prompt_tokens, target.window_tokens, target.output_reserve_tokens)
    digest = digest_behind(head.digested, dynamic, head.layout.tools_digest)
    return Measured(
        dynamic=dynamic,
        prompt_tokens=prompt_tokens,
        estimated_tokens=head.estimated_tokens + layout.tokens + REPLY_PRIMING_TOKENS,
        address=address_of(session.address_key, session.id, "envelope", digest),
    )


def assembled(
    session: Session,
    head: LaidHead,
    decided: Decided,
    made: Measured,
    scale: Scale,
    notices: Sequence[Finding],
    *,
    sealed: bool,
    times: Times,
    renderer: int,
) -> Envelope:
    """The envelope of a session as it stands; `notices` are findings about the builder itself."""
    state, dynamic = session.state, decided.layout
    findings = [*notices, *session.findings, *head.layout.findings, *decided.findings, *dynamic.findings]
    if state.repaired or state.open_calls:
        findings += window_findings(state)
    if session.missing and dynamic.context is not None:
        findings += _damaged(n for n in dynamic.context.refs if n in session.missing)
    return Envelope(
        tenant=session.tenant,
        session=session.id,
        nonce=state.nonce,
        profile_version=head.version,
        head=head.layout,
        dynamic=dynamic,
        sections={**head.sections, "dynamic": made.dynamic},
        reports=decided.reports,
        findings=tuple(findings),
        metrics={
            "prompt_tokens": made.prompt_tokens,
            "estimated_tokens": made.estimated_tokens,
            "stable_tokens": head.tokens + scale.provider_tokens(dynamic.prefix_tokens),
            "tools_tokens": scale.provider_tokens(head.layout.tools_tokens),
            "messages": state.ordinal,
            "compactions": state.compactions,
            "degraded": int(bool(findings) and any(finding.kind in DEGRADED for finding in findings)),
        },
        address=made.address,
        position=state.position,
        renderer=renderer,
        seal=_seal(session, head, made.address, renderer) if sealed else None,
        build_ms=times.build_ms,
        selection_ms=times.selection_ms,
    )


def _damaged(ordinals: Iterator[int]) -> Iterator[Finding]:
    for ordinal in ordinals:
        yield Finding(kind="original_damaged", ref=f"§{ordinal}", text=FINDING_TEXTS["original_damaged"])


def _seal(session: Session, head: LaidHead, address: str, renderer: int) -> SealDocument:
    return seal_envelope(
        session.seal_key, tenant=session.tenant, session=session.id, profile_version=head.version,
        position=session.state.position, address=address, renderer=renderer,
    )  # fmt: skip
