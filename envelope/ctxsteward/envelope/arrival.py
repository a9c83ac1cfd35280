"""The excerpt of a long tool result: what of it enters the window when it arrives.

Head, the lines that look decisive, tail, and the reference under which the whole stays resolvable. An excerpt is a pure
function of text, cap and tokenizer, so it needs no record. Cost is linear in the text; lines are cut, never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_SIGNAL = re.compile(
    r"error|exception|fail|fatal|panic|traceback|denied|refused|timed? ?out|not found|warning|assert"
    r"|错误|失败|异常|超时",
    re.IGNORECASE,
)
_HEAD_SHARE, _SIGNAL_SHARE = 0.35, 0.25
_MAX_SIGNAL_LINES = 12
_LINE_CHARS = 240
_LOOK_CHARS = 400_000
"""Signal lines are looked for in the first and last half of this many characters."""


def excerpt(text: str, *, cap_tokens: int, ref: str, tokens: int, count: Callable[[str], int]) -> str:
    """At most about `cap_tokens` of `text` (which has `tokens`), with a line that says where the whole is."""
    note = f"[… {tokens} tokens in all, excerpt; {ref} resolves to the whole …]"
    room = max(8, cap_tokens - count(note) - 4)
    chars_a_token = max(1.0, len(text) / max(1, tokens))
    while True:
        parts = _pick(text, room, chars_a_token)
        result = "\n".join([*parts[:1], note, *parts[1:]])
        used = count(result)
        if used <= cap_tokens or room <= 8:
            return result
        room = max(8, int(room * min(0.9, cap_tokens / used)))


def _pick(text: str, room: int, chars_a_token: float) -> list[str]:
    head_chars = int(room * _HEAD_SHARE * chars_a_token)
    signal_chars = int(room * _SIGNAL_SHARE * chars_a_token)
    head = _whole_lines(text[:head_chars], keep="head")
    middle = text[len(head) :]
    signal = _signal_lines(middle, signal_chars)
    tail_chars = max(0, int(room * chars_a_token) - len(head) - sum(len(line) + 1 for line in signal))
    tail = _whole_lines(text[len(text) - tail_chars :], keep="tail") if tail_chars else ""
    lines = [line for line in signal if line not in head and line not in tail]
    return [part for part in (head.rstrip("\n"), "\n".join(lines), tail.strip("\n")) if part]


def _whole_lines(text: str, *, keep: str) -> str:
    """Cut at a line end where that costs less than half of the text."""
    if keep == "head":
        cut = text.rfind("\n")
        return text[: cut + 1] if cut > len(text) // 2 else text
    cut = text.find("\n")
    return text[cut + 1 :] if 0 <= cut < len(text) // 2 else text


def _signal_lines(text: str, room_chars: int) -> list[str]:
    if len(text) > _LOOK_CHARS:
        text = text[: _LOOK_CHARS // 2] + "\n" + text[-_LOOK_CHARS // 2 :]
    found: list[str] = []
    used, last_stop = 0, -1
    for match in _SIGNAL.finditer(text):
        if match.start() < last_stop:
            continue
        start = text.rfind("\n", 0, match.start()) + 1
        stop = text.find("\n", match.end())
        last_stop = len(text) if stop < 0 else stop
        begin = max(start, match.start() - _LINE_CHARS // 2)
        line = text[begin : min(last_stop, begin + _LINE_CHARS)].strip()
        if used + len(line) > room_chars or len(found) >= _MAX_SIGNAL_LINES:
            break
        if line and line not in found:
            found.append(line)
            used += len(line) + 1
    return found
