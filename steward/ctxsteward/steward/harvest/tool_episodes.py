"""Errors of a transcript, each with the parameters it is about and, where one is seen, the later call that worked.

The same function serves the harvester (what helped) and the counting of hits (what failed), so both see the same codes
and the same parameters. Parameters: those that the error names and the recovery changed; else what the recovery
changed, if that is at most `MAX_PARAMETERS`; without a recovery, those that the error names.

A recovery is the first call of the same tool that works within `MAX_ATTEMPTS` calls of it and is related (`tool_diff`).
One call that works is one recovery, however many failures came before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..replayed import Replayed
from .latest import latest
from .tool_calls import Step, is_tool, steps
from .tool_diff import blamed, changed, fixes, related
from .tool_sources import Sources
from .tool_templates import Fix
from .tool_words import TRANSIENT, ErrorCode

MAX_ATTEMPTS = 8
MAX_PARAMETERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One error."""

    failed: Step
    code: ErrorCode
    parameters: tuple[str, ...]
    """What it is about; empty: not known, or the same arguments worked later."""
    worked: Step | None
    fixes: tuple[tuple[str | None, tuple[Fix, ...]], ...]
    """What helped, by parameter (None: none of them)."""


@latest
def episodes(replayed: Replayed) -> tuple[Episode, ...]:
    """The errors of a transcript in order; linear in it."""
    calls = steps(replayed)
    if all(step.failure is None for step in calls):
        return ()
    sources = Sources(replayed, calls)
    by_tool: dict[str, list[Step]] = {}
    for step in calls:
        by_tool.setdefault(step.tool, []).append(step)
    found: dict[int, Episode] = {}
    for same in by_tool.values():
        for place, step in enumerate(same):
            if step.failure is not None:
                found[step.position] = _episode(step, same[place + 1 : place + 1 + MAX_ATTEMPTS], calls, sources)
    return tuple(found[position] for position in sorted(found))


def _episode(failed: Step, later: Sequence[Step], calls: Sequence[Step], sources: Sources) -> Episode:
    assert failed.failure is not None
    worked = next(
        (s for s in later if s.works and s.utterance > failed.utterance and related(failed, s, sources)), None
    )
    what = tuple(_what_helped(failed, worked, calls, sources)) if worked else ()
    parameters = tuple(name for name, _ in what if name) if worked else blamed(failed)
    return Episode(failed=failed, code=failed.failure.code, parameters=parameters, worked=worked, fixes=what)


def _what_helped(
    failed: Step, worked: Step, calls: Sequence[Step], sources: Sources
) -> Iterator[tuple[str | None, tuple[Fix, ...]]]:
    if failed.arguments is None and worked.arguments is not None:
        yield None, (Fix(verb="write", what="arguments", source="JSON object"),)
        return
    names = changed(failed, worked)
    if names:
        named = tuple(name for name in names if name in blamed(failed))
        for name in (named or names)[:MAX_PARAMETERS]:
            yield name, fixes(name, failed, worked, sources)
    elif failed.raw == worked.raw or failed.arguments == worked.arguments:
        between = calls[failed.position + 1 : worked.position]
        before = [step.tool for step in between if step.works and step.tool != failed.tool and is_tool(step.tool)]
        if before:
            yield None, (Fix(verb="first", source=before[-1]),)
        elif failed.failure is not None and failed.failure.code in TRANSIENT:
            yield None, (Fix(verb="repeat"),)
