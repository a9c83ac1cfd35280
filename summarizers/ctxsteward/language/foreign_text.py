"""Foreign text: the parts of a message that are not its speaker's own words, recognised by their structure.

Code, quotations and pasted text are blanked: each character except a line break becomes a ``_``, so offsets into the
result are offsets into the original. Quotation marks around one or two words stay, because they name a thing. A
passage announced as material ("translate this:", a mail's header, ``请总结下面的内容：``) extends to the end of the
message. All passes take linear time, because their lookbehind and lookahead are bounded.

>>> mask_foreign_text('He said "never do that again" and left.')
'He said "___________________" and left.'
>>> mask_foreign_text("Summarize this: I never fly.")
'Summarize this: ____________'
"""

from __future__ import annotations

import re

from .words import lists

MAX_HEAD_CHARS = 6_000
MAX_TAIL_CHARS = 2_000
"""Only this much of the beginning and the end of a long message is read. The middle is treated as pasted."""

_FENCED = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(r"<([A-Za-z]\w{1,19})(?:\s[^<>\n]{0,200})?>.{1,4000}?</\1>", re.DOTALL)
_LISTS = lists("talk")
_LINE = _LISTS.pattern("line", re.MULTILINE)
_QUOTED = _LISTS.pattern("quoted")
_MARKS = '"“「『‘`'
_NAMED = re.compile(r"\W*(?:[\w'.+#-]{1,30}(?:\s[\w'.+#-]{1,30})?|[\u3400-\u9fff·]{1,6})\W*")
"""A quotation short enough to be the name of a thing."""
_HEADER = _LISTS.pattern("header", re.MULTILINE)
_ANNOUNCED = _LISTS.pattern("announced", re.IGNORECASE)
_SPOKEN = re.compile(r"[^\n\r]")


def mask_foreign_text(text: str) -> str:
    """Return the text, at the same length, with everything blanked that is not the speaker's own."""
    if len(text) > MAX_HEAD_CHARS + MAX_TAIL_CHARS:
        middle = text[MAX_HEAD_CHARS:-MAX_TAIL_CHARS]
        text = text[:MAX_HEAD_CHARS] + _blank(middle) + text[-MAX_TAIL_CHARS:]
    if "```" in text or "~~~" in text:
        text = _FENCED.sub(lambda match: _blank(match.group()), text)
    if "</" in text:
        text = _TAGGED.sub(lambda match: _blank(match.group()), text)
    if "\n" in text or text[:1] in ">|[$":
        text = _LINE.sub(lambda match: _blank(match.group()), text)
    if ":" in text or "：" in text or "--" in text:
        text = _without_material(text)
    if _has_quotation(text):
        text = _QUOTED.sub(_without_words, text)
    return text


def _has_quotation(text: str) -> bool:
    """Return whether any character can open a quotation. An apostrophe inside a word cannot."""
    for mark in _MARKS:
        if mark in text:
            return True
    at = text.find("'")
    while at >= 0:
        if at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_"):
            return True
        at = text.find("'", at + 1)
    return False


def _without_material(text: str) -> str:
    header, announced = _HEADER.search(text), _ANNOUNCED.search(text)
    start = min(header.start() if header else len(text), announced.end() if announced else len(text))
    start += len(text[start:]) - len(text[start:].lstrip())
    return text[:start] + _blank(text[start:]) if start < len(text) else text


def _without_words(match: re.Match[str]) -> str:
    content = match[match.lastindex or 0]
    if _NAMED.fullmatch(content):
        return match.group()
    return match.group()[0] + _blank(match.group()[1:-1]) + match.group()[-1]


def _blank(text: str) -> str:
    return _SPOKEN.sub("_", text)
