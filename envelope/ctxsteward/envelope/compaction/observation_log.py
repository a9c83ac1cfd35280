"""The observation log of a session: what a summary adds to it, and what leaves when it is full.

The log is a tuple of bullets in the state, each dated, cited and trusted as the least of what it cites. What is written
stays word for word where it is: `observed` puts new ones behind. It is another log only where a summary merges older
ones (a reflection, which cites all that those cite and keeps them in its event), or where the budget is full: then the
least valuable leave until a part of it is free, so that between two such events it only grows at its end. Pure
functions; tokens are the counter's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from ctxsteward.schemas import (
    TRUST,
    Bullet,
    ObservationCounts,
    Ref,
    Reflection,
    SourceMessage,
    SummarizerInput,
    Summary,
    Trust,
)
from ctxsteward.store import ObservationsAppended

from ..history import State
from ..layout import observation_row, observations_text, one_line
from ..tokens import Counter

LEFT_FRACTION = 0.5
"""A log that is over its budget is cut to so much of it: what is left stands for a while."""
MOST_A_MESSAGE = 20
"""Observations."""
_TRUST = {"system": "operator", "developer": "operator", "user": "user", "assistant": "assistant"}


def observed(state: State, summary: Summary, source: SummarizerInput, counter: Counter) -> ObservationsAppended | None:
    """What a summary adds to the log, within the budget that the source names; None where it keeps no log."""
    if summary.observed is None or not source.unobserved:
        return None
    trust = {item.ref: _trust_of(item) for item in source.unobserved}
    merged = [_merged(one, state.observations) for one in summary.reflected]
    gone = {position for one in summary.reflected for position in one.merges}
    stood = [*merged, *(one for position, one in enumerate(state.observations) if position not in gone)]
    new = [one_line(bullet) for bullet in summary.observed if bullet.text.strip()][: MOST_A_MESSAGE * len(trust)]
    fresh = [bullet.model_copy(update={"trust": _least(map(trust.get, bullet.citations))}) for bullet in new]
    staying = _fitting(state.nonce, stood, fresh, source.observations_tokens, counter)
    standing = tuple(one for position, one in enumerate(stood) if position in staying)
    return ObservationsAppended(
        appended=tuple(one for position, one in enumerate(fresh, len(stood)) if position in staying),
        upto=Ref.parse(source.unobserved[-1].ref).ordinal,
        standing=standing if merged or len(standing) < len(stood) else None,
        merged=tuple(
            tuple(state.observations[place] for place in one.merges)
            for position, one in enumerate(summary.reflected)
            if position in staying
        ),
        origin=summary.origin,
    )


def trimmed(state: State, budget_tokens: int, counter: Counter) -> ObservationsAppended:
    """The log within a budget that is less than it was."""
    staying = _fitting(state.nonce, state.observations, (), budget_tokens, counter)
    standing = tuple(one for position, one in enumerate(state.observations) if position in staying)
    return ObservationsAppended(appended=(), upto=state.observed_to, standing=standing)


def counts_of(state: State, event: ObservationsAppended, counter: Counter) -> ObservationCounts:
    """What an event changes of the log of this state."""
    stood = state.observations if event.standing is None else event.standing
    merged = sum(map(len, event.merged))
    return ObservationCounts(
        appended=len(event.appended), merged=merged, reflections=len(event.merged),
        left=len(state.observations) - merged + len(event.merged) - len(stood),
        tokens=_tokens(state.nonce, (*stood, *event.appended), counter),
    )  # fmt: skip


def fault_of_log(summary: Summary, source: SummarizerInput) -> str:
    """Why what a summary says of the log cannot be used; empty where it can."""
    merges = [position for one in summary.reflected for position in one.merges]
    if len(set(merges)) < len(merges) or not set(merges) <= set(range(len(source.observations))):
        return f"the summarizer merges observations {sorted(merges)} of {len(source.observations)}, each at most once"
    if any(not one.observation.text.strip() for one in summary.reflected):
        return "the summarizer merges observations into an empty line"
    known = {item.ref for item in source.unobserved}
    refs = [ref for bullet in summary.observed or () for ref in bullet.citations]
    unknown = next((ref for ref in refs if f"§{Ref.parse(ref).ordinal}" not in known), None)
    return "" if unknown is None else f"the summarizer observes {unknown}, which was not to be observed"


def _fitting(
    nonce: str, stood: Sequence[Bullet], fresh: Sequence[Bullet], budget_tokens: int, counter: Counter
) -> set[int]:
    """Positions in both of what stays: all, or with room for what comes.

    Of a log that is full first leaves what could never stand beside others, then old ones, the least valuable of them,
    of equals the oldest.
    """
    rows = [*stood, *fresh]
    staying = set(range(len(rows)))
    total = _tokens(nonce, rows, counter)
    if total <= budget_tokens:
        return staying
    room = int(budget_tokens * LEFT_FRACTION)
    sizes = [counter.text(f"{observation_row(row)}\n") for row in rows]
    order = sorted(staying, key=lambda at: (sizes[at] <= room, at >= len(stood), rows[at].value, at))
    for position in order:
        is_whole = total > room or _tokens(nonce, [rows[at] for at in sorted(staying)], counter) > budget_tokens
        if sizes[position] <= room and not is_whole:
            break
        staying.remove(position)
        total -= sizes[position]
    return staying


def _tokens(nonce: str, rows: Sequence[Bullet], counter: Counter) -> int:
    return counter.framed(observations_text(nonce, rows)) if rows else 0


def _merged(one: Reflection, observations: Sequence[Bullet]) -> Bullet:
    """Citing all that those cite that it stands for, and trusted as the least of them."""
    stands_for = [observations[position] for position in one.merges]
    refs = sorted({Ref.parse(ref) for bullet in stands_for for ref in bullet.citations})
    trust = _least(bullet.trust for bullet in stands_for)
    return one_line(one.observation).model_copy(update={"citations": tuple(map(str, refs)), "trust": trust})


def _trust_of(item: SourceMessage) -> Trust:
    known = "tool_external" if item.message.tool_results else _TRUST.get(item.message.role, "tool_external")
    return cast(Trust, known)


def _least(trusts: Iterable[Trust | None]) -> Trust:
    """Of several; what is not known is not trusted."""
    return max((trust or "tool_external" for trust in trusts), key=TRUST.index, default="tool_external")
