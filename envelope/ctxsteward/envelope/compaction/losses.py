"""Find the losses of a compaction, with code that is independent of the summarizer.

A probe is a typed statement in a text, with a kind of the closed enum `LossKind`. Each probe of an original that leaves
the window is searched in the text that the window still shows: bullets, and visible parts of the messages that stay. A
missing probe is a `Loss` with its reference and span. So is every message without a citing bullet, and every dropped
bullet. A value counts as shown only if it is not part of a longer one.

Patterns are deliberately plain and independent of any summarizer's measure of salience. They cover English and Chinese.
The cost is linear; of a text longer than `LOOK_CHARS` only head and tail are probed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxsteward.schemas import Bullet, Loss
from ctxsteward.schemas.summary import LossKind

from ..history.tool_groups import LogEntry, said_by as said_by, text_of as text_of
from ..layout.fragments import DerivedText, MessageStep, Step, ToolResults

LOOK_CHARS = 20_000
MAX_PROBES = 64
"""Most probes of one message; its reference accounts for the rest."""
QUOTE_CHARS = 160


class Probe(NamedTuple):
    """A typed statement, its span in the original, and the value to search for."""

    kind: LossKind
    text: str
    start: int
    stop: int
    value: str
    """Normalized value."""


# a value that may begin anywhere has a bounded length, so that a long run of such characters costs linear time
_VALUES = re.compile(
    r"""
      (?P<url>https?://[^\s<>"'`\])}，。；]*[^\s<>"'`\])}，。；.,;:!?])
    | (?P<path>(?<![A-Za-z0-9_/.])(?:(?:~|\.{1,2})?(?:/[A-Za-z0-9_.@+-]+){2,}/?
        |[A-Za-z0-9_.-]{1,64}+/[A-Za-z0-9_./-]{0,255}\.[A-Za-z][A-Za-z0-9_]{0,5})(?![A-Za-z0-9_]))
    | (?P<email>[A-Za-z0-9_.+-]{1,64}+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]*[A-Za-z0-9])
    | (?P<identifier>(?<![A-Za-z0-9_])(?=[A-Za-z0-9])(?=[A-Za-z_-]{0,128}+[0-9])(?=[0-9_-]{0,128}+[A-Za-z])
        [A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?![A-Za-z0-9_]))
    | (?P<number>(?<![A-Za-z0-9_.])[-+]?[$€£¥]?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?!\.[0-9])(?:\s?(?:%|ms|s|sec
        |seconds?|minutes?|min|hours?|h|days?|weeks?|months?|years?|kb|mb|gb|tb|kib|mib|gib|tokens?|usd|eur|dollars?
        |rps|qps|m|km|kg|x|元|天|小时|分钟|秒|个|次|万|亿))?(?![A-Za-z0-9_]))
    """,
    re.VERBOSE | re.IGNORECASE,
)

_CANDIDATES = re.compile(r"(?<!\S)(?=\S*[0-9/@])\S+")
"""Tokens between white space that may have a value; a plain word costs almost nothing."""
_UNIT_CHARS = 10
_MAX_SENTENCES = 8


def _cue(kind: LossKind, words: str, chinese: str) -> tuple[LossKind, tuple[str, ...], re.Pattern[str]]:
    """Return a kind, substrings (at least one must occur), and the pattern that decides."""
    stems = tuple(re.sub(r"[\\?()].*", "", word) for word in words.split("|"))
    return kind, (*stems, *chinese.split("|")), re.compile(rf"\b(?:{words})\b|{chinese}", re.IGNORECASE)


_SENTENCES = (
    _cue(
        "constraint",
        "must|must not|mustn't|never|do not|don't|under no circumstances|only ever|required to|not allowed|forbidden"
        "|make sure|at all costs",
        "必须|禁止|不得|不要|不能|切勿|千万|一律",
    ),
    _cue(
        "decision",
        "decided|we'll use|we'll go|we will use|we will go|let's go|let's use|let's keep|going with|settled on"
        "|agreed to|agreed on|chose|choosing",
        "决定|定了|采用|改用|选定",
    ),
    _cue("error", "error|errors|exception|failed|failure|traceback|panic|fatal", "错误|失败|异常"),
    _cue(
        "open_item",
        "todo|to do|remaining|still need|next step|follow-up|follow up|pending",
        "待办|尚未|还需要",
    ),
    _cue(
        "preference",
        "i prefer|i'd prefer|i like|i'd like|i love|i hate|i want|my favorite|my favourite|rather not|rather have",
        "我喜欢|我更|我想要|偏好",
    ),
)

_BREAK = re.compile(r"[.!?。！？；\n](?=\s|$|[^\x00-\x7f])|\n")


def normalize(text: str) -> str:
    """Remove differences of case, width, thousands separators and white space.

    >>> normalize("１,２00  Ms")
    '1200 ms'
    """
    folded = unicodedata.normalize("NFKC", text) if not text.isascii() else text
    return re.sub(r"\s+", " ", re.sub(r"(?<=\d),(?=\d{3})", "", folded.lower())).strip()


def probes(text: str) -> list[Probe]:
    """Return the probes of a text in order, at most `MAX_PROBES`."""
    if len(text) <= LOOK_CHARS:
        found = list(_find(text, 0))
    else:
        half = LOOK_CHARS // 2
        found = [*_find(text[:half], 0), *_find(text[-half:], len(text) - half)]
    return sorted(found, key=lambda probe: probe.start)[:MAX_PROBES]


def _find(text: str, offset: int) -> Iterator[Probe]:
    count = 0
    for token in _CANDIDATES.finditer(text):
        # a candidate is read with the text behind it, because a unit may be a word of its own: "30 days"
        for match in _VALUES.finditer(text, token.start(), min(len(text), token.end() + _UNIT_CHARS)):
            if match.start() >= token.end():
                break
            kind, value = match.lastgroup or "number", match[0]
            if kind == "number" and len(value) < 2:
                continue
            yield Probe(_KINDS[kind], value, offset + match.start(), offset + match.end(), normalize(value))
            count += 1
        if count >= MAX_PROBES:
            break
    lowered = text.lower()
    for kind_, cues, pattern in _SENTENCES:
        if not any(cue in lowered for cue in cues):
            continue
        for index, match in enumerate(pattern.finditer(text)):
            if index >= _MAX_SENTENCES:
                break
            start, stop = _sentence(text, match)
            quote = text[start:stop]
            yield Probe(kind_, quote, offset + start, offset + stop, normalize(quote))


_KINDS: dict[str, LossKind] = {
    "url": "url",
    "path": "path",
    "email": "identifier",
    "identifier": "identifier",
    "number": "number",
}


def _sentence(text: str, cue: re.Match[str]) -> tuple[int, int]:
    """Return the span of the sentence around a cue: `QUOTE_CHARS` at most, with the cue, without outer white space."""
    start = max(0, cue.start() - QUOTE_CHARS)
    for match in _BREAK.finditer(text, start, cue.start()):
        start = match.end()
    following = _BREAK.search(text, cue.end())
    stop = following.end() if following else len(text)
    if stop - start > QUOTE_CHARS:
        start = max(start, cue.end() - QUOTE_CHARS, cue.start() - QUOTE_CHARS // 3)
        stop = min(stop, start + QUOTE_CHARS)
    while text[start].isspace():
        start += 1
    while text[stop - 1].isspace():
        stop -= 1
    return start, stop


PROBED_CHARS = 80_000
"""Characters of a compaction's originals that are probed, newest first; each older message is one loss as a whole."""
SUMMARY_CHARS = 80


def account(
    gone: Sequence[LogEntry], bullets: Sequence[Bullet], shown: Sequence[str], lost_bullets: Sequence[Bullet]
) -> list[Loss]:
    """Return a compaction's losses in ordinal order; `shown` are the visible texts besides the bullets."""
    haystack = normalize("\n".join([*(bullet.text for bullet in bullets), *shown]))
    cited = {ref for bullet in bullets for ref in bullet.citations}
    losses: list[Loss] = []
    seen: set[str] = set()
    left = PROBED_CHARS
    for entry in reversed(gone):
        text = text_of(entry.message)
        left -= len(text)
        has_loss = False
        for probe in probes(text) if left > 0 else ():
            if probe.value in seen or stands_in(probe.value, haystack):
                continue
            seen.add(probe.value)
            has_loss = True
            losses.append(_loss(probe.kind, probe.text, entry.ref, (probe.start, probe.stop)))
        if not has_loss and (left <= 0 or entry.ref not in cited):
            losses.append(_loss("fact", text[:SUMMARY_CHARS], entry.ref))
    losses.reverse()
    for bullet in lost_bullets:
        losses += [_loss(bullet.kind, bullet.text, ref) for ref in bullet.citations]
    return losses


def stands_in(value: str, haystack: str) -> bool:
    """Return whether a normalized value occurs by itself, not as a part of a longer number or word.

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
    """Yield the texts that a group shows, with excerpts and placeholders in place of results."""
    for step in steps:
        match step:
            case DerivedText(text=text):
                yield text
            case MessageStep(entry=entry):
                yield said_by(entry.message)
            case ToolResults(answers=answers, trailing=trailing):
                yield from (answer.text for answer in answers)
                yield from shown_texts(trailing)


def _loss(kind: LossKind, text: str, ref: str, span: tuple[int, int] | None = None) -> Loss:
    return Loss(kind=kind, text=text, ref=ref, span=span)
