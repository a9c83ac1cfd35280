"""Choose the newest part of a history, for a request whose history does not fit the model's window.

A due compaction may not be made, because it took too long or its summarizer failed. The history then stays whole. If it
does not fit the window, the request shows a part of it: messages that a compaction never takes (the last raw turn, the
newest message, pins, a short task), the task if it fits, and the newest tool groups that fit the dynamic budget.
Nothing is written to the log: every message resolves by reference, and the next build tries to compact again. The
manifest names the groups, so that a rebuild lays out the same bytes.
"""

from __future__ import annotations

from collections.abc import Set

from ctxsteward.schemas import Finding

from ..compaction.policy import Window
from ..history.session import Session
from ..history.state import State


def newest_groups(window: Window, room_tokens: int) -> frozenset[int]:
    """Return first ordinals of the groups to show: those that must stay, the task, then the newest without a gap.

    They take no more than the dynamic budget and `room_tokens`, unless those that must stay alone take more.
    """
    limit = min(window.budgets.dynamic_tokens, room_tokens)
    rows = window.candidates
    chosen = {row.group.first for row in rows if row.must}
    used = window.section_tokens - window.groups_tokens + sum(row.tokens for row in rows if row.must)
    for row in rows:
        if row.task and not row.must and used + row.tokens <= limit:
            chosen.add(row.group.first)
            used += row.tokens
    for row in reversed(rows):
        if row.group.first in chosen:
            continue
        if used + row.tokens > limit:
            break
        chosen.add(row.group.first)
        used += row.tokens
    return frozenset(chosen)


def showing(session: Session, groups: Set[int]) -> Session:
    """Return a copy of this session in memory whose window has only the tool groups that begin at these ordinals."""
    part = session.draft()
    part.state.groups = [group for group in part.state.groups if group.first in groups]
    return part


def left_out_finding(state: State, groups: Set[int], window_tokens: int | None) -> Finding:
    """Report which messages a request does not show, and that they are not lost."""
    ordinals = sorted(n for group in state.groups if group.first not in groups for n in group.ordinals)
    first, last = ordinals[0], ordinals[-1]
    shown = sum(len(group.ordinals) for group in state.groups) - len(ordinals)
    text = (
        f"the history does not fit the model's window of {window_tokens} tokens and could not be compacted: this "
        f"request leaves out {len(ordinals)} of its {len(ordinals) + shown} messages, between §{first} and §{last}; "
        "they resolve by reference, and the next build tries to compact again"
    )
    return Finding(kind="history_left_out", ref=f"§{first}", field="dynamic", text=text)
