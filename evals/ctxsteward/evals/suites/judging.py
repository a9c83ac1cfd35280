"""Pure checks that several suites make: what an envelope shows, what a question finds, what every call owes.

A value is searched in normalized text (`canaries.normalize`), never inside a longer number or code. An outdated value
is shown *stale* where it stands and what replaced it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxsteward.envelope import Envelope
from ctxsteward.envelope.render.text import fragment_spans, spans
from ctxsteward.envelope.search import search_context

from ..canaries import normalize, shows
from ..transcripts import Call, Prefix, Tally, check
from .playing import Asked
from .scoring import Score, holds

_REF = re.compile(r"§(\d+)(?:-§(\d+))?")


def window_of(envelope: Envelope) -> str:
    """Everything that the model is shown, as one text; tool schemas with it."""
    return "\n".join(span.text for span in spans(envelope))


def dynamic_of(envelope: Envelope) -> str:
    """What the model is shown of the conversation; of the head, nothing."""
    return "\n".join(span.text for span in spans(envelope) if span.label.startswith("dynamic "))


def bullets_of(envelope: Envelope) -> str:
    """The compacted part of what the model is shown."""
    return "\n".join(span.text for f in envelope.dynamic.fragments if f.kind == "bullets" for span in fragment_spans(f))


def judge_ask(asked: Asked) -> Score:
    """Whether the envelope for a question shows all that its answer needs, and nothing outdated instead of it."""
    ask, window = asked.ask, normalize(dynamic_of(asked.envelope))
    missing = [value for value in ask.wants if not shows(window, value)]
    stale = [value for value in ask.avoids if missing and shows(window, value)]
    why = "; ".join([f"not shown: {value!r}" for value in missing] + [f"shown though outdated: {v!r}" for v in stale])
    return holds(ask.metric, not missing, asked.at, why)


def judge_stale(metric: str, asked: Asked) -> Score:
    """Whether no outdated value stands alone."""
    window = normalize(dynamic_of(asked.envelope))
    stale = [value for value in asked.ask.avoids if shows(window, value)]
    alone = stale and not all(shows(window, value) for value in asked.ask.wants)
    return Score(metric, float(bool(alone)), asked.at, f"shown without what replaced it: {stale}" if alone else "")


def reachable(call_text: str) -> frozenset[int]:
    """Ordinals that a text names by reference, singly or within a range.

    >>> sorted(reachable("see §3, and §7-§9"))
    [3, 7, 8, 9]
    """
    found: set[int] = set()
    for first, last in _REF.findall(call_text):
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


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
