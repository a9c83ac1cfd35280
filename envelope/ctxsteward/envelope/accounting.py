"""What a compaction lost: drawn up by code that is not the summarizer.

Every probe of an original that left is looked for in what the window shows now: bullets, and what is still shown of
the messages that stay. What is missing is a `Loss` with its reference and its span; so is every message that no bullet
cites, and every bullet that went. A value counts as shown only where it stands alone, not inside a longer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxsteward.schemas import Bullet, Loss, LossKind, Message, ToolCallPart

from .groups import Entry
from .probes import normalize, probes
from .steps import Aside, Results, Say, Step

PROBED_CHARS = 80_000
"""Of a compaction's originals, newest first; what is older in so large a backlog is accounted for by message."""
SUMMARY_CHARS = 80


def account(
    gone: Sequence[Entry], bullets: Sequence[Bullet], shown: Sequence[str], lost_bullets: Sequence[Bullet]
) -> list[Loss]:
    """The losses of a compaction, in ordinal order; `shown` are the texts that stay visible beside the bullets."""
    haystack = normalize("\n".join([*(bullet.text for bullet in bullets), *shown]))
    cited = {ref for bullet in bullets for ref in bullet.citations}
    losses: list[Loss] = []
    seen: set[str] = set()
    left = PROBED_CHARS
    for entry in reversed(gone):
        text = text_of(entry.message)
        left -= len(text)
        found = False
        for probe in probes(text) if left > 0 else ():
            if probe.value in seen or stands_in(probe.value, haystack):
                continue
            seen.add(probe.value)
            found = True
            losses.append(_loss(probe.kind, probe.text, entry.ref, (probe.start, probe.stop)))
        if not found and (left <= 0 or entry.ref not in cited):
            losses.append(_loss("fact", text[:SUMMARY_CHARS], entry.ref))
    losses.reverse()
    for bullet in lost_bullets:
        losses += [_loss(bullet.kind, bullet.text, ref) for ref in bullet.citations]
    return losses


def stands_in(value: str, haystack: str) -> bool:
    """Whether a normalized value occurs by itself, not as a part of a longer number or word.

    >>> stands_in("42", "wait 142 s"), stands_in("42", "wait 42 s")
    (False, True)
    """
    at = haystack.find(value)
    while at >= 0:
        stop = at + len(value)
        before, after = haystack[at - 1 : at], haystack[stop : stop + 1]
        if not (_joins(value[:1], before) or _joins(value[-1:], after)):
            return True
        at = haystack.find(value, at + 1)
    return False


def _joins(edge: str, neighbour: str) -> bool:
    return edge.isascii() and edge.isalnum() and neighbour.isascii() and neighbour.isalnum()


def shown_texts(steps: Sequence[Step]) -> Iterator[str]:
    """What a group shows: excerpts and placeholders instead of the results they stand for."""
    for step in steps:
        match step:
            case Aside(text=text):
                yield text
            case Say(entry=entry):
                yield said_by(entry.message)
            case Results(answers=answers, trailing=trailing):
                yield from (answer.text for answer in answers)
                yield from shown_texts(trailing)


def said_by(message: Message) -> str:
    """A message's text and calls, without its tool results."""
    calls = [f"{part.name} {part.arguments}" for part in message.parts if isinstance(part, ToolCallPart)]
    return "\n".join(part for part in (message.text, *calls) if part)


def text_of(message: Message) -> str:
    """All text of a message, as probes and spans see it: text, call names and arguments, tool results, by lines."""
    results = [result.text for result in message.tool_results]
    return "\n".join(part for part in (said_by(message), *results) if part)


def _loss(kind: LossKind, text: str, ref: str, span: tuple[int, int] | None = None) -> Loss:
    return Loss(kind=kind, text=text, ref=ref, span=span)
