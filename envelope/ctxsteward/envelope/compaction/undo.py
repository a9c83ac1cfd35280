"""Undoing a compaction: one more compaction event, which shows again what an earlier one took out of the window.

The log only grows. The event has the form of any compaction: it keeps the groups that stood in the window before, and
brings back the bullets of that time, so what is stored has no new form, and every envelope rebuilds as it was. Its
report names what it undoes, so that undoing again goes one compaction further back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ctxsteward.schemas import CompressionReport
from ctxsteward.store.journal.events import WindowCompacted
from ctxsteward.store.journal.log import Log

from ..history.state import State
from .compactor import canonical, kept_refs

POLICY = "shown-again/1"


def newest_standing(log: Log) -> tuple[int, WindowCompacted] | None:
    """The newest compaction of this log that was not undone, and its position."""
    undone: set[str] = set()
    for position, event in log.compactions():
        policy, _, id = event.report.policy.partition(" ")
        if policy == POLICY:
            undone.add(id)
        elif event.report.id not in undone:
            return position, event
    return None


def shown_again(
    state: State,
    before: State,
    undone: WindowCompacted,
    tokens: tuple[int, int],
    address: Callable[[str, bytes], str],
    created_at: str | None,
) -> WindowCompacted:
    """The event that shows again what `undone` took out; `before` is the state just before it.

    `tokens` are those of the section now and then. What was said since stays as it is shown now.
    """
    standing = {ordinal for group in state.groups for ordinal in group.ordinals}
    returned = [group for group in before.groups if standing.isdisjoint(group.ordinals)]
    back = {ordinal for group in returned for ordinal in group.ordinals}
    groups = sorted((*state.groups, *returned), key=lambda group: group.first)
    firsts = {group.first for group in groups}
    later = {first: cap for first, cap in state.shortened.items() if first > before.ordinal and before.reply_tokens}
    shortened = {first: cap for first, cap in sorted((before.shortened | later).items()) if first in firsts}
    pins = {**{ordinal: pin for ordinal, pin in before.pins.items() if ordinal in back}, **state.pins}
    checkpoint = {
        **state.checkpoint(),
        "left_out_tokens": before.left_out_tokens,
        "compacted_to": before.compacted_to,
        "pins": [[ordinal, *pin] for ordinal, pin in pins.items()],
    }
    if before.rules:
        checkpoint["rules"] = [list(rule) for rule in before.rules]
    if state.recalled is not None and back.intersection(state.recalled.refs):
        checkpoint["selection"] = None  # nothing is shown twice: the next build chooses again
    report = CompressionReport(
        id="",
        section="dynamic",
        pre_tokens=tokens[0],
        post_tokens=tokens[1],
        losses=(),
        kept_refs=kept_refs(before.bullets, groups),
        policy=f"{POLICY} {undone.report.id}",
        source_addresses=(),
        artifact="",
        created_at=created_at,
    )
    event = WindowCompacted(
        bullets=before.bullets,
        reserve=before.reserve,
        kept=tuple(group.ordinals for group in groups),
        masked=tuple(sorted(before.masked & firsts)),
        shortened=shortened,
        reply_tokens=before.reply_tokens,
        report=report,
        checkpoint=checkpoint,
    )
    name = address("compaction", canonical(event))
    return replace(event, report=report.model_copy(update={"id": name, "artifact": name}))
