"""The means that keep a phase's own history short (`intra_context`): its compaction policy, and the context of a retry.

`intra_policy` gives the builder a compaction policy. When a compaction is due:

1. of identical results only the newest stays; each other becomes a line with its reference;
2. attempts beyond the newest `loop_history_limit` leave (an attempt ends with a message ``[Validation Failed]``);
3. results older than `mask_observations_after` steps become a line, unless they report an error;
4. an assistant's text over 2,000 characters is shown as beginning and end once it is older than `window` steps;
5. groups older than `window` steps leave, oldest first, errors and plain reasoning last.

1, 3 and 4 are always done, so that the prefix breaks only once. 2 and 5 go as far as the target requires. If that is
not enough, the default choice frees the rest, with a finding ``policy_fell_back``. Nothing changes between compactions,
so a provider's cache stays valid.

`retry_messages` makes the context of a loop's next attempt: the task, the newest attempts (at most `MAX_OUTPUT_CHARS`
of each) and the reasons why they failed.

Source: the auto-context design (intra-phase).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ctxsteward.schemas.cascade import IntraContext
from ctxsteward.schemas.message import Wire

from ..compaction.importance import policy_named
from ..compaction.policy import (
    CompactionCandidate,
    CompactionChoice,
    Policy,
    ToolGroup,
    Window,
    with_default,
)
from .auto_selection import mentions_error

MAX_OUTPUT_CHARS = 500
REASONING_CHARS = 2_000
"""A longer text of the assistant is shortened once it is older than the window."""
FAILED_LABEL = "[Validation Failed]"
"""Beginning of the message that ends an attempt."""


def intra_policy(settings: IntraContext | None) -> Policy:
    """Return the policy of a phase; the default one if `intra_context` is off."""
    if settings is None or not settings.enabled:
        return Policy()
    if settings.policy != "threshold":  # a named policy decides what leaves, and masking by age would override it
        return policy_named(settings.policy)
    name = f"intra-phase/2 threshold window={settings.window} mask={settings.mask_observations_after}"
    return Policy(name=name, choose=partial(_choose, settings), shortens_old_replies=False)


def _choose(settings: IntraContext, window: Window, need_tokens: int) -> CompactionChoice:
    window.price_masks(closed=True)
    rows = [row for row in window.candidates if not row.must and not row.task]
    ages = _ages(window.candidates)
    masked = {
        row.group.first: row
        for row in rows
        if ages[row.group.first] > settings.mask_observations_after
        and row.masked_tokens < row.tokens
        and not (settings.preserve_errors and _tells_of_error(row.group))
    }
    masked |= {row.group.first: row for row in _repeated(window.candidates)}
    shorten = {row.group.first: tokens for row in rows if (tokens := _reasoning_tokens(settings, window, row, ages))}
    freed = sum(row.tokens - row.masked_tokens for row in masked.values())
    need_tokens = 0 if freed >= window.excess_tokens else need_tokens
    left = need_tokens - freed
    spent = _spent_attempts(settings, window.candidates)
    older = sorted(
        (row for row in rows if ages[row.group.first] >= settings.window or row.group.first in spent),
        key=lambda row: (row.group.first not in spent, row.soft, _is_preserved(settings, row), row.group.first),
    )
    dropped: list[CompactionCandidate] = []
    for row in older:
        if left <= 0:
            break
        dropped.append(row)
        left -= row.tokens if masked.pop(row.group.first, None) is None else row.masked_tokens
        shorten.pop(row.group.first, None)
    chosen = CompactionChoice(
        drop=tuple(row.group for row in dropped),
        mask=tuple(row.group for row in masked.values()),
        shorten=tuple((row.group, shorten[row.group.first]) for row in rows if row.group.first in shorten),
        is_summarized=bool(dropped),
    )
    return with_default(window, chosen, need_tokens, kept=lambda first: ages[first] < settings.window)


def _ages(rows: Sequence[CompactionCandidate]) -> dict[int, int]:
    """Count the steps (assistant messages with their results) after each group, by the group's first ordinal."""
    ages: dict[int, int] = {}
    steps = 0
    for row in reversed(rows):
        ages[row.group.first] = steps
        steps += row.group.entries[0].message.role == "assistant"
    return ages


def _repeated(rows: Sequence[CompactionCandidate]) -> Iterator[CompactionCandidate]:
    """Yield groups whose results are all repeated, word for word, by a newer group that is shown whole."""
    shown: set[tuple[str, bool]] = set()
    for row in reversed(rows):
        results = [result for entry in row.group.entries for result in entry.message.tool_results]
        keys = {(result.text, result.is_error) for result in results if not result.images}
        plain = bool(results) and not any(result.images for result in results)
        if plain and keys <= shown and not row.must and row.masked_tokens < row.tokens:
            yield row
        else:
            shown |= keys


def _reasoning_tokens(
    settings: IntraContext, window: Window, row: CompactionCandidate, ages: dict[int, int]
) -> int | None:
    """Return the tokens to which a long text of the assistant is shortened; None if it stays unchanged."""
    first = row.group.entries[0]
    message = first.message
    if not settings.preserve_reasoning or message.role != "assistant" or len(message.text) <= REASONING_CHARS:
        return None
    if ages[row.group.first] < settings.window or row.group.first in window.state.shortened:
        return None
    return max(1, window.layout.strip.counter.text(message.text[:REASONING_CHARS]))


def _spent_attempts(settings: IntraContext, rows: Sequence[CompactionCandidate]) -> set[int]:
    """Return the first ordinals of groups in attempts that a retry no longer shows; the task is not among them."""
    if not settings.compress_loops:
        return set()
    heads = [row.group.entries[0].message for row in rows]
    ends = [at for at, head in enumerate(heads) if head.role == "user" and head.text.startswith(FAILED_LABEL)]
    if len(ends) <= settings.loop_history_limit:
        return set()
    begin = next((at for at, head in enumerate(heads) if head.role == "assistant"), 0)
    end = ends[len(ends) - settings.loop_history_limit - 1]
    return {row.group.first for row in rows[begin : end + 1]}


def _is_preserved(settings: IntraContext, row: CompactionCandidate) -> bool:
    first = row.group.entries[0].message
    reasons = first.role == "assistant" and not first.tool_calls
    return (settings.preserve_reasoning and reasons) or (settings.preserve_errors and _tells_of_error(row.group))


def _tells_of_error(group: ToolGroup) -> bool:
    """Return whether a message of the group reports an error; the answer is cached with the group."""
    cache = group.cache
    if cache is None:
        cache = group.cache = {}
    if "tells of error" not in cache:
        cache["tells of error"] = any(mentions_error(entry.message) for entry in group.entries)
    return bool(cache["tells of error"])


def retry_messages(settings: IntraContext, task: str, failures: Sequence[tuple[str, str]]) -> list[Wire]:
    """Return the context of the attempt after these failures, each an output and the reason for its refusal.

    Without `compress_loops`, return the messages to append to a continuing history.

    >>> texts = retry_messages(IntraContext(), "Mend it.", [("done", "2 tests fail")])
    >>> [wire["content"].splitlines()[0] for wire in texts]
    ['[Original Task]', '[Attempt #1]', '[Validation Failed]', 'Attempt #2: mend what the validation found.']
    """
    go: Wire = {"role": "user", "content": f"Attempt #{len(failures) + 1}: mend what the validation found."}
    refused: list[Wire] = [{"role": "user", "content": f"{FAILED_LABEL}\n{reason}"} for _, reason in failures]
    if not settings.compress_loops:
        return [*refused[-1:], go]
    messages: list[Wire] = [{"role": "user", "content": f"[Original Task]\n{task}"}]
    for at in range(max(0, len(failures) - settings.loop_history_limit), len(failures)):
        output = failures[at][0]
        if len(output) > MAX_OUTPUT_CHARS:
            output = f"{output[: MAX_OUTPUT_CHARS - 1]}…"
        messages += [{"role": "assistant", "content": f"[Attempt #{at + 1}]\n{output}"}, refused[at]]
    return [*messages, go]
