"""Pure checks that several suites make: what an envelope shows, what a question finds, what every call owes.

A value is searched in normalized text (`canaries.normalize`), never inside a longer number or code.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxsteward.envelope import Envelope
from ctxsteward.envelope.render.text import fragment_spans, spans
from ctxsteward.envelope.search import search_context

from ..transcripts import Call, Prefix, Tally, check
from .playing import Asked
from .scoring import Score, holds


def dynamic_of(envelope: Envelope) -> str:
    """What the model is shown of the conversation; of the head, nothing."""
    return "\n".join(span.text for span in spans(envelope) if span.label.startswith("dynamic "))


def bullets_of(envelope: Envelope) -> str:
    """The compacted part of what the model is shown."""
    return "\n".join(span.text for f in envelope.dynamic.fragments if f.kind == "bullets" for span in fragment_spans(f))


def named(envelope: Envelope) -> frozenset[int]:
    """Ordinals that an envelope shows in full, or cites one by one; a range names none."""
    return frozenset(ordinal for fragment in envelope.dynamic.fragments for ordinal in fragment.refs)


def reaches(asked: Asked, ordinal: int, query: str) -> bool:
    """Whether the envelope for a question names a message, or one search of the model's finds it."""
    shown = named(asked.envelope)
    if ordinal in shown:
        return True
    return any(hit.ordinal == ordinal for hit in search_context(asked.session, query, shown=shown))


def owed(metric: str, call: Call) -> Score:
    """What every call owes: valid for both providers, in budget, cited, newest and last raw turn verbatim."""
    tally = Tally()
    check(call, tally)
    return holds(metric, not tally.faults, f"call {call.number}", "; ".join(tally.faults[:3]))


def prefix_kept(metric: str, prefix: Prefix, call: Call) -> Iterator[Score]:
    """Whether this call's bytes extend the last one's; silent where a compaction lies between."""
    before = prefix.compared
    kept = prefix.check(call)
    if prefix.compared > before:
        yield holds(metric, kept, f"call {call.number}", "bytes before the turn changed without a compaction")
