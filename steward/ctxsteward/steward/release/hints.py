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
    found = []
    for record in filter(is_hint, records):
        at = parse_trigger(record.trigger or "")
        if (
            at is not None
            and (at.tool, at.code) == (tool, failure.code)
            and (at.parameter or tool) in {tool, *arguments}
        ):
            found.append(record)
    if not found:
        return None
    best = min(found, key=lambda record: (-record.support.sessions, record.id))
    runs = best.support.sessions
    return f"{best.text} (seen {'once' if runs == 1 else f'in {runs} runs'})"
