"""What one tool taught about an argument, told of the other tools that have the same argument.

Two tools that failed with the same code at a leaf of the same name (``payment_id``, ``payments[].payment_id``) have the
same trouble, so a fix seen at one is advice for both; so have tools that were only seen to take that leaf, where it is
an identifier. The observations derived so rest on the same evidence, say where they were learned, are made of the same
template, and name this module as their extractor.

    troubles_of(observation)               where it says there is trouble: by group (error code, leaf)
    sibling_fixes(observation, troubles)   what a recovery says of the other tools in its groups

The ledger calls these two and keeps the result up to date (`ledger.transferred_fixes`); `siblings` is the same for a
whole set of observations at once. The answer depends on the set alone, not on its order; at most `MAX_TOLD` tools are
told of one fix.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from ctxsteward.schemas import Slot

from ...observations import Observation, ReplayedTranscript
from .calls import is_identifier, is_name, is_tool, leaf_name, leaves, steps
from .error_codes import ErrorCode
from .errors import MAX_TEXT_CHARS
from .templates import ArgumentFix, FixTrigger, action, attribute, parse_action, parse_trigger, text

SIBLINGS_EXTRACTOR = "tool_siblings/1"
MAX_TOLD = 8
MAX_TAKEN = 64
"""Paths kept of one tool in one transcript, the first in order."""
DISCOUNT = 0.8


class FailurePlace(NamedTuple):
    """A place at which a tool fails, or may."""

    trigger: FixTrigger
    path: str
    """Path of the leaf, at this tool."""


class FailureGroup(NamedTuple):
    """Troubles that are one: the same error at a leaf of the same name."""

    code: ErrorCode
    leaf: str


Takes = Mapping[str, frozenset[str]]
"""Which leaves each tool takes, by path: from its declared schema, or from calls of it that worked (`takes`)."""


def takes(replayed: Iterable[ReplayedTranscript]) -> Takes:
    """The leaves that tools were given in calls that worked."""
    paths_of: dict[str, set[str]] = {}
    for transcript in replayed:
        for step in steps(transcript):
            if step.works and is_tool(step.tool):
                paths = paths_of.setdefault(step.tool, set())
                for name, value in (step.arguments or {}).items():
                    paths.update(path for path, _ in leaves(value, name) if is_name(name))
    return {tool: frozenset(paths) for tool, paths in paths_of.items()}


def identifiers(replayed: ReplayedTranscript) -> Takes:
    """Those of `takes` that are identifiers, at most `MAX_TAKEN` of each tool; tools without any are left out."""
    if not any(said.calls for said in replayed.utterances):
        return {}
    found = {tool: filter(is_identifier, paths) for tool, paths in takes((replayed,)).items()}
    kept = {tool: frozenset(sorted(paths)[:MAX_TAKEN]) for tool, paths in found.items()}
    return {tool: paths for tool, paths in kept.items() if paths}


def siblings(
    observations: Iterable[Observation], known: Takes = MappingProxyType({})
) -> Mapping[Observation, tuple[Observation, ...]]:
    """For each observation of a recovery, what it says of other tools; those that say nothing are left out.

    `known`: tools that are told of a fix at an identifier (`is_identifier`) although they were not seen to fail.
    """
    fixes = [observation for observation in observations if observation.kind == "tool_fix"]
    troubles: dict[FailureGroup, set[FailurePlace]] = {}
    for observation in fixes:
        for group, trouble in troubles_of(observation):
            troubles.setdefault(group, set()).add(trouble)
    for tool, paths in known.items():
        for path in filter(is_identifier, paths):
            for group in troubles:
                if group.leaf == leaf_name(path):
                    troubles[group].add(expected(group.code, tool, path))
    every = {observation: sibling_fixes(observation, troubles) for observation in fixes}
    return {observation: derived for observation, derived in every.items() if derived}


def troubles_of(one: Observation) -> tuple[tuple[FailureGroup, FailurePlace], ...]:
    """Where an observation says that a tool fails; none for what is not about a tool's argument."""
    trigger = _trigger(one)
    if trigger is None or trigger.parameter is None:
        return ()
    paths = [fix.what for fix in parse_action(one.action or "") if fix.what]
    return tuple((FailureGroup(trigger.code, leaf_name(path)), FailurePlace(trigger, path)) for path in paths)


def expected(code: ErrorCode, tool: str, path: str) -> FailurePlace:
    """Where a tool that takes this leaf would fail."""
    return FailurePlace(FixTrigger(tool, code, path.split(".", 1)[0].removesuffix("[]")), path)


def sibling_fixes(
    one: Observation, troubles: Mapping[FailureGroup, Collection[FailurePlace]]
) -> tuple[Observation, ...]:
    """What a recovery says of the other tools in its groups; nothing, where it is none."""
    trigger = _trigger(one)
    if trigger is None or one.strength != "recovered":
        return ()
    derived_at: dict[FixTrigger, Observation] = {}
    for fix in parse_action(one.action or ""):
        if not fix.what or fix.verb == "check":
            continue
        group = FailureGroup(trigger.code, leaf_name(fix.what))
        for other in sorted(troubles.get(group, ()), key=lambda t: (str(t.trigger), t.path)):
            if other.trigger.tool not in (trigger.tool, fix.source) and other.trigger not in derived_at:
                derived = _derived(one, trigger.tool, other, fix)
                if derived is not None and len(derived_at) < MAX_TOLD:
                    derived_at[other.trigger] = derived
    return tuple(derived_at.values())


def _derived(one: Observation, tool: str, other: FailurePlace, fix: ArgumentFix) -> Observation | None:
    advice = (replace(fix, what=other.path),)
    line = text(other.trigger, advice, seen_at=tool)
    if len(line) > MAX_TEXT_CHARS:
        return None
    return replace(
        one,
        text=line,
        slot=Slot(subject=other.trigger.tool.lower(), attribute=attribute(other.trigger)),
        tool=other.trigger.tool,
        trigger=str(other.trigger),
        action=action(advice),
        score=round(one.score * DISCOUNT, 4),
        extractor=SIBLINGS_EXTRACTOR,
    )


def _trigger(one: Observation) -> FixTrigger | None:
    return parse_trigger(one.trigger) if one.kind == "tool_fix" and one.trigger else None
