"""Hints: advice from a few runs about a tool error, shown once, right after that error.

A hint is never in a profile. An application asks for it with a tool's answer, and appends it to that answer or to the
next message. A hint corrects how the call is written, or repeats what the error asks of a value; `admission` decides
which records are hints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ctxsteward.schemas import MetaRecommendation

from ..admission import is_hint
from ..harvest.tools.calls import refused
from ..harvest.tools.templates import parse_trigger


def hint_after(records: Iterable[MetaRecommendation], tool: str, arguments: Collection[str], answer: str) -> str | None:
    """Return the hint for a refused call, or None.

    Args:
        records: records of a `Ledger`.
        tool: name of the called tool.
        arguments: names of the call's arguments.
        answer: the tool's answer.
    """
    failure = refused(answer)
    if failure is None:
        return None
    hints = []
    for record in filter(is_hint, records):
        trigger = parse_trigger(record.trigger or "")
        if trigger is None or (trigger.tool, trigger.code) != (tool, failure.code):
            continue
        if trigger.parameter is None or trigger.parameter in (tool, *arguments):
            hints.append(record)
    if not hints:
        return None
    best = min(hints, key=lambda record: (-record.support.sessions, record.id))
    runs = best.support.sessions
    return f"{best.text} (seen {'once' if runs == 1 else f'in {runs} runs'})"
