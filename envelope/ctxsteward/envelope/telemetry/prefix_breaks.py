"""What changed from one envelope of a session to the next: how much of the prompt is an unchanged beginning, where it
stops, which sections began a new epoch.

A provider's cache serves the unchanged beginning: tool schemas, system, static, meta, bullets, closed turns and so on,
in the order of the prompt. It *breaks* where it is shorter than what the earlier prompt had before its turn context,
which a layout promises to leave alone between compactions. Tokens are the builder's own, before calibration; of bullets
that differ the common beginning counts too: as `count_tokens` has it, or else by its share of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..envelope import Envelope
from ..layout import DynamicLayout, Fragment, HeadLayout
from ..tokens import HEAD_SECTIONS, REPLY_PRIMING_TOKENS, SECTIONS

CountTokens = Callable[[str], int]


class Layouts(NamedTuple):
    """What of an envelope the next one is compared with."""

    head: HeadLayout
    dynamic: DynamicLayout
    epochs: tuple[int, ...]
    """Of `SECTIONS`."""
    head_tokens: int

    @classmethod
    def of(cls, envelope: Envelope) -> Layouts:
        """Of an envelope."""
        dynamic = envelope.dynamic
        head_tokens = int(envelope.metrics["estimated_tokens"]) - dynamic.tokens - REPLY_PRIMING_TOKENS
        return cls(envelope.head, dynamic, tuple([one.epoch for one in envelope.sections.values()]), head_tokens)


class PrefixBreak(NamedTuple):
    """The difference between two envelopes of one session."""

    prefix_tokens: int
    """Unchanged beginning."""
    broke_in: str | None
    """One of `PLACES`; None: it did not break."""
    changed: tuple[tuple[str, int], ...]
    """Sections in a new epoch, and which."""


def first_prefix_break(before: Layouts | None, now: Layouts, count_tokens: CountTokens | None = None) -> PrefixBreak:
    """What changed; where there is no earlier envelope, every section is in a new epoch."""
    if before is None:
        return PrefixBreak(0, None, tuple(zip(SECTIONS, now.epochs, strict=True)))
    changed = () if before.epochs == now.epochs else tuple(_changed(before.epochs, now.epochs))
    if before.head is not now.head:
        place, shared = _head_shared(before.head, now.head)
        if place is not None:
            return PrefixBreak(shared, place, changed)
    tokens = _dynamic_shared(before.dynamic, now.dynamic, count_tokens)
    return PrefixBreak(now.head_tokens + tokens, "dynamic" if tokens < before.dynamic.prefix_tokens else None, changed)


def prefix_tokens(before: Envelope | None, now: Envelope, count_tokens: CountTokens) -> int:
    """Tokens at the beginning of `now` that stand at the beginning of `before` as well."""
    return (
        first_prefix_break(Layouts.of(before), Layouts.of(now), count_tokens).prefix_tokens if before is not None else 0
    )


def _changed(before: tuple[int, ...], now: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    for name, old, new in zip(SECTIONS, before, now, strict=True):
        if old != new:
            yield name, new


def _head_shared(before: HeadLayout, now: HeadLayout) -> tuple[str | None, int]:
    """Where two heads part, None where they are the same; and the tokens before it."""
    if before.tools_digest != now.tools_digest:
        return "tools", 0
    tokens = now.tools_tokens
    for name in HEAD_SECTIONS:
        old, new = before.section(name), now.section(name)
        tokens += _shared(old, new)
        if [fragment.digest for fragment in old] != [fragment.digest for fragment in new]:
            return name, tokens
    return None, tokens


def _dynamic_shared(before: DynamicLayout, now: DynamicLayout, count_tokens: CountTokens | None) -> int:
    old, new = before.bullets, now.bullets
    same_bullets = old is new or (old is not None and new is not None and old.digest == new.digest)
    if same_bullets and before.strip is now.strip and before.task_upto == now.task_upto:
        return (new.tokens if new else 0) + _strip_shared(before, now)
    tokens = 0
    for one, other in zip(before.fragments, now.fragments, strict=False):
        if one.digest != other.digest:
            if one is old and other is new:
                common = common_beginning(one.text, other.text)
                share = other.tokens * len(common) // (len(other.text) or 1)
                tokens += count_tokens(common) if count_tokens else share
            break
        tokens += other.tokens
    return tokens


def _strip_shared(before: DynamicLayout, now: DynamicLayout) -> int:
    """Of two layouts over one strip, which differ in what stands between its fragments and where."""
    old, new = _between(before), _between(now)
    tokens, same = 0, 0
    for (place, one), (other_place, other) in zip(old, new, strict=False):
        if place != other_place or one.digest != other.digest:
            break
        tokens, same = tokens + one.tokens, same + 1
    rest = [place for place, _ in (*old[same : same + 1], *new[same : same + 1])]
    return tokens + now.strip.tokens[min(before.stop, now.stop, *rest)]


def _between(layout: DynamicLayout) -> list[tuple[int, Fragment]]:
    """What stands between the strip's fragments, and before which of them."""
    places = ((layout.live_from, layout.context), (layout.after_from, layout.notes))
    return [(place, fragment) for place, fragment in places if fragment is not None]


def _shared(before: tuple[Fragment, ...], now: tuple[Fragment, ...]) -> int:
    tokens = 0
    for old, new in zip(before, now, strict=False):
        if old.digest != new.digest:
            break
        tokens += new.tokens
    return tokens


def common_beginning(one: str, other: str) -> str:
    """The beginning that two texts share.

    >>> common_beginning("- a\\n- b", "- a\\n- cc")
    '- a\\n- '
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return one[:low]
