"""What is in force for a phase: settings inherited one by one, names and patterns resolved.

Order of inheritance: the caller's defaults, the cascade's `auto_context`, the phase. Within one level of `inter_phase`
the strategy and model inside `selection` win over those beside it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel

from ctxsteward.schemas.cascade import (
    PREVIOUS,
    Anchors,
    AutoContext,
    Cascade,
    InterPhase,
    IntraContext,
    Phase,
    Selection,
    Source,
)
from ctxsteward.schemas.errors import InvalidCascade

_Settings = TypeVar("_Settings", bound=BaseModel)


def phase_named(cascade: Cascade, name: str) -> Phase:
    """The phase of this name; raises `InvalidCascade` naming those there are."""
    phase = cascade.phase(name)
    if phase is None:
        raise InvalidCascade(
            f"cascade {cascade.cascade_id!r}", "", f"no phase {name[:60]!r}", f"its phases: {', '.join(cascade.names)}"
        )
    return phase


def intra_context(cascade: Cascade, phase: Phase, defaults: AutoContext | None = None) -> IntraContext | None:
    """The phase's intra-context settings; None where no level has such a block: then it is off."""
    levels = [level.intra_phase for level in (defaults, cascade.auto_context) if level is not None]
    given = [level for level in (*levels, phase.intra_context) if level is not None]
    return _inherited(IntraContext, given) if given else None


def anchors(cascade: Cascade, phase: Phase, defaults: AutoContext | None = None) -> Anchors:
    """The phase's anchors."""
    levels = [level.anchors for level in _inter_phase(cascade, defaults)]
    own = phase.context.anchors if phase.context else None
    return _inherited(Anchors, [level for level in (*levels, own) if level is not None])


def selection(cascade: Cascade, phase: Phase, defaults: AutoContext | None = None) -> Selection:
    """The phase's selection."""
    levels: list[Selection] = []
    for level in _inter_phase(cascade, defaults):
        outer = {name: getattr(level, name) for name in ("strategy", "selector_model") if getattr(level, name)}
        levels.append(_inherited(Selection, [Selection(**outer), *([level.selection] if level.selection else [])]))
    own = phase.context.selection if phase.context else None
    return _inherited(Selection, [*levels, *([own] if own else [])])


def auto_enabled(cascade: Cascade, defaults: AutoContext | None = None) -> bool:
    """Whether `mode: auto` selects at all."""
    return _inherited(InterPhase, list(_inter_phase(cascade, defaults))).enabled


def switches(cascade: Cascade, defaults: AutoContext | None = None) -> AutoContext:
    """Which parts of automatic context are on."""
    levels = [level for level in (defaults, cascade.auto_context) if level is not None]
    return _inherited(AutoContext, levels)


def _inter_phase(cascade: Cascade, defaults: AutoContext | None) -> Iterable[InterPhase]:
    for level in (defaults, cascade.auto_context):
        if level is not None and level.inter_phase is not None:
            yield level.inter_phase


def _inherited(model: type[_Settings], levels: Sequence[_Settings]) -> _Settings:
    """Later levels win, field by field."""
    fields: dict[str, Any] = {}
    for level in levels:
        fields |= {name: getattr(level, name) for name in level.model_fields_set}
    return model.model_validate(fields)


# -- names ---------------------------------------------------------------------------------------------------


def is_pattern(ref: str) -> bool:
    return "*" in ref


def matching(ref: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that a name or pattern stands for.

    >>> matching("research_*", ["research_a", "plan", "research_b"])
    ('research_a', 'research_b')
    """
    return tuple(name for name in names if fnmatch.fnmatchcase(name, ref))  # refs hold no other wildcard than *


class Taken(NamedTuple):
    """A source with one phase's own name, and how it was written."""

    source: Source
    written: str
    field: str
    """Place in the phase, such as ``context.from[0]``."""


def taken_from(cascade: Cascade, phase: Phase, ran: Collection[str]) -> tuple[Taken, ...]:
    """The phase's sources in order, patterns spelled out; a pattern names only phases that ran.

    A phase that is named outright is here whether it ran or not. `exclude` takes out of patterns and of `previous`.
    """
    context = phase.context
    sources = context.from_ if context else phase.inject_from or ()
    field = "context.from" if context else "inject_from"
    found = [
        Taken(source.model_copy(update={"phase": name}), source.phase, f"{field}[{index}]")
        for index, source in enumerate(sources)
        for name in _spelled_out(cascade, phase, source.phase, ran)
    ]
    return tuple(found)


def phases_of(cascade: Cascade, phase: Phase, refs: Iterable[str], ran: Collection[str]) -> tuple[str, ...]:
    """Names that these refs stand for, each once, in the order written."""
    found = [name for ref in refs for name in _spelled_out(cascade, phase, ref, ran)]
    return tuple(dict.fromkeys(found))


def excluded(cascade: Cascade, phase: Phase, ran: Collection[str]) -> frozenset[str]:
    """Phases that `exclude` names."""
    refs = phase.context.exclude if phase.context else ()
    last = [name for name in before(cascade, phase) if name in ran][-1:]
    return frozenset(name for ref in refs for name in (last if ref == PREVIOUS else matching(ref, cascade.names)))


def before(cascade: Cascade, phase: Phase) -> tuple[str, ...]:
    """Names of the phases that stand before this one."""
    return cascade.names[: cascade.names.index(phase.name)]


def _spelled_out(cascade: Cascade, phase: Phase, ref: str, ran: Collection[str]) -> tuple[str, ...]:
    left_out = excluded(cascade, phase, ran)
    if ref != PREVIOUS and not is_pattern(ref):
        return (ref,) if ref not in left_out else ()
    left = [name for name in before(cascade, phase) if name in ran and name not in left_out]
    return tuple(left[-1:]) if ref == PREVIOUS else matching(ref, left)
