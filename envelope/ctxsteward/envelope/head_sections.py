"""The head of an envelope as sections: system, static and meta laid out, counted, and digested once a change.

What changes it: a head event in the log, the budgets, the calibration, and once in a session's life the compactions of
dynamic, after which meta over its trigger is left with fewer records (`layout`). Raises `BudgetExceeded`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Set
from dataclasses import replace
from typing import NamedTuple

from ctxsteward.schemas import Wire

from .budgets import HEAD_SECTIONS
from .counting import Counter
from .envelope import RENDERER_VERSION, Section, head_digested
from .keys import address_of
from .layout import HeadLayout, lay_head
from .meta_slice import META_STABLE_COMPACTIONS, ChooseRecords
from .scale import Scale
from .session import Session


class LaidHead(NamedTuple):
    """The head as it stands."""

    layout: HeadLayout
    sections: dict[str, Section]
    tokens: int
    """Tool schemas included."""
    estimated_tokens: int
    """Before calibration."""
    version: str | None
    """Address of the profile."""
    digested: bytes
    """Its part of the envelope's digest."""


def laid_head(
    session: Session,
    scale: Scale,
    counter: Counter,
    fixed: Set[str],
    choose: ChooseRecords,
    renderer: int = RENDERER_VERSION,
) -> LaidHead:
    """Lay out a session's head, or find it as it was laid out; `fixed` are the budgets that the caller set."""
    state = session.state
    stable = state.compactions <= META_STABLE_COMPACTIONS
    key = (state.head_at, counter.name, scale.effective, frozenset(fixed), scale.calibration, stable, choose, renderer)
    found = session.cache.get("head")
    if isinstance(found, tuple) and found[0] == key:
        known: LaidHead = found[1]
        return known
    layout = lay_head(state.head, scale.effective, counter, state.compactions, choose)
    epoch = max(0, state.heads - 1)
    sections = {name: _section(name, layout, epoch, scale) for name in HEAD_SECTIONS}
    if not stable:
        before = lay_head(state.head, scale.effective, counter, 0, choose)
        if [f.digest for f in before.meta] != [f.digest for f in layout.meta]:
            sections["meta"] = replace(sections["meta"], epoch=epoch + 1)
    profile = state.head.profile
    version = None if profile is None else _profile_version(session, profile)
    head = LaidHead(
        layout=layout,
        sections=sections,
        tokens=sum(section.tokens for section in sections.values()) + scale.provider_tokens(layout.tools_tokens),
        estimated_tokens=sum(fragment.tokens for fragment in layout.fragments) + layout.tools_tokens,
        version=version,
        digested=head_digested(session.tenant, session.id, version, sections, renderer),
    )
    session.cache["head"] = (key, head)
    return head


def _section(name: str, layout: HeadLayout, epoch: int, scale: Scale) -> Section:
    fragments = layout.section(name)
    tokens = sum(fragment.tokens for fragment in fragments)
    content = hashlib.sha256(b"".join(fragment.digest for fragment in fragments)).digest()
    return Section(
        name=name, source=layout, budget_tokens=_budget_tokens(name, layout, scale), epoch=epoch,
        tokens=scale.provider_tokens(tokens), content=content,
    )  # fmt: skip


def _budget_tokens(name: str, layout: HeadLayout, scale: Scale) -> int:
    """A head budget as the caller knows it, or what it grew to."""
    stated: int = getattr(scale.stated, f"{name}_tokens")
    grown = layout.budgets[name]
    unchanged = grown == getattr(scale.effective, f"{name}_tokens")
    return stated if unchanged else max(stated, scale.provider_tokens(grown))


def _profile_version(session: Session, profile: Wire) -> str:
    found = session.cache.get("profile_version")
    if isinstance(found, tuple) and found[0] is profile:
        version: str = found[1]
        return version
    data = json.dumps(profile, sort_keys=True, ensure_ascii=False).encode()
    version = address_of(session.address_key, session.tenant, "profile", data)
    session.cache["profile_version"] = (profile, version)
    return version
