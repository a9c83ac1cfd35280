"""Inside a phase: how its own history is kept short, by its `intra_context`.

`intra_policy` is for the builder. When a compaction is due, and only then, tool results older than
`mask_observations_after` steps become one line; if that is not enough, what is older than the newest `window` steps
leaves, oldest first, messages that mention errors and plain reasoning last; if that is not enough either, the budget
wins and the builder's own order holds. Between compactions nothing changes, so a provider's cache keeps what it has.

`retry_messages` is what the next attempt of a loop is shown: the task, the newest attempts (of each at most
`MAX_OUTPUT_CHARS`) and why they failed. Source: the auto-context design (intra-phase).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ctxsteward.schemas import Message, Wire
from ctxsteward.schemas.cascade import IntraContext

from ..policy import Candidate, Choice, Policy, Window, choose
from .auto import mentions_error

MAX_OUTPUT_CHARS = 500


class Failure(NamedTuple):
    """An attempt that its validator refused."""

    output: str
    reason: str


def intra_policy(settings: IntraContext | None) -> Policy:
    """The builder's policy for a phase; the default one where `intra_context` is off."""
    if settings is None or not settings.enabled:
        return Policy()
    name = f"intra-phase/1 window={settings.window} mask={settings.mask_observations_after}"
    return Policy(name=name, choose=partial(_choose, settings))


def retry_messages(settings: IntraContext, task: str, failures: Sequence[Failure]) -> list[Wire]:
    """The whole context of the attempt after these; without `compress_loops`, what is added to a history that goes on.

    >>> texts = retry_messages(IntraContext(), "Mend it.", [Failure("done", "2 tests fail")])
    >>> [wire["content"].splitlines()[0] for wire in texts]
    ['[Original Task]', '[Attempt #1]', '[Validation Failed]', 'Attempt #2: mend what the validation found.']
    """
    numbered = list(enumerate(failures, 1))
    go: Wire = {"role": "user", "content": f"Attempt #{len(failures) + 1}: mend what the validation found."}
    if not settings.compress_loops:
        return [*(_refused(failure) for _, failure in numbered[-1:]), go]
    messages: list[Wire] = [{"role": "user", "content": f"[Original Task]\n{task}"}]
    for number, failure in numbered[-settings.loop_history_limit :] if settings.loop_history_limit else []:
        output = failure.output
        if len(output) > MAX_OUTPUT_CHARS:
            output = f"{output[: MAX_OUTPUT_CHARS - 1]}…"
        messages += [{"role": "assistant", "content": f"[Attempt #{number}]\n{output}"}, _refused(failure)]
    return [*messages, go]


def _refused(failure: Failure) -> Wire:
    return {"role": "user", "content": f"[Validation Failed]\n{failure.reason}"}


def _choose(settings: IntraContext, window: Window, need_tokens: int) -> Choice:
    ages = _ages(window.candidates)
    rows = [row for row in window.candidates if not row.must and not row.task]
    masked = {row.group.first: row for row in rows if _is_masked(settings, row, ages[row.group.first])}
    left = need_tokens - sum(row.tokens - row.masked_tokens for row in masked.values())
    older = sorted(
        (row for row in rows if ages[row.group.first] >= settings.window),
        key=lambda row: (row.soft, _is_preserved(settings, row), row.group.first),
    )
    dropped: list[Candidate] = []
    for row in older:
        if left <= 0:
            break
        dropped.append(row)
        left -= row.tokens if masked.pop(row.group.first, None) is None else row.masked_tokens
    if left > 0:
        return choose(window, need_tokens)
    return Choice(drop=tuple(row.group for row in dropped), mask=tuple(row.group for row in masked.values()))


def _is_masked(settings: IntraContext, row: Candidate, age: int) -> bool:
    saves = age > settings.mask_observations_after and row.masked_tokens < row.tokens
    return saves and not (settings.preserve_errors and _tells_of_error(row))


def _ages(rows: Sequence[Candidate]) -> dict[int, int]:
    """Steps (assistant messages with their results) from each group on, itself left out, by its first ordinal."""
    ages: dict[int, int] = {}
    steps = 0
    for row in reversed(rows):
        ages[row.group.first] = steps
        steps += row.group.entries[0].message.role == "assistant"
    return ages


def _is_preserved(settings: IntraContext, row: Candidate) -> bool:
    first = row.group.entries[0].message
    reasons = first.role == "assistant" and not first.tool_calls
    return (settings.preserve_reasoning and reasons) or (settings.preserve_errors and _tells_of_error(row))


def _tells_of_error(row: Candidate) -> bool:
    messages: list[Message] = [entry.message for entry in row.group.entries]
    return any(map(mentions_error, messages))
