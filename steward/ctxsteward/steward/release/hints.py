"""What a few runs showed about the very error that a call has just met: said once, right after it, and nowhere else.

A hint never stands in a profile. An application asks for it with the answer that it got, and appends it to that answer,
or to the next message, as text of its own. It mends how the call is written, or says again what the error asks of a
value; `admission` decides which records are hints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ctxsteward.schemas import MetaRecommendation

from ..admission import is_hint
from ..harvest.tools.calls import refused
from ..harvest.tools.templates import parse_trigger


def hint_after(records: Iterable[MetaRecommendation], tool: str, arguments: Collection[str], answer: str) -> str | None:
    """Return the hint for a call that was just refused; None where it was not, or none is known.

    Args:
        records: those of a `Ledger`.
        tool: the tool that was called.
        arguments: names of the arguments that the call had.
        answer: what the tool gave back.
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
