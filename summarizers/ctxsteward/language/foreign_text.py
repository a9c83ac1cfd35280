"""Foreign text: the parts of a message that are not its speaker's own words, recognised by their structure.

Code, quotations and pasted text are blanked: each of their characters, line breaks apart, becomes a ``_``, so places in
the result are places in the original. Quotation marks around one or two words stay, because they name a thing. A
passage announced as material ("translate this:", a mail's header, ``请总结下面的内容：``) reaches to the end of the
message. All passes are linear: what they look back or ahead at is bounded.

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
"""Only the beginning and the end of a long message are heard: what lies between was pasted."""

_FENCED = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(r"<([A-Za-z]\w{1,19})(?:\s[^<>\n]{0,200})?>.{1,4000}?</\1>", re.DOTALL)
_LISTS = lists("talk")
_LINE = _LISTS.pattern("line", re.MULTILINE)
_QUOTED = _LISTS.pattern("quoted")
_MARKS = '"“「『‘`'
_NAMED = re.compile(r"\W*(?:[\w'.+#-]{1,30}(?:\s[\w'.+#-]{1,30})?|[\u3400-\u9fff·]{1,6})\W*")
"""Short enough to name a thing rather than to quote a sentence."""
_HEADER = _LISTS.pattern("header", re.MULTILINE)
_ANNOUNCED = _LISTS.pattern("announced", re.IGNORECASE)
_SPOKEN = re.compile(r"[^\n\r]")


def mask_foreign_text(text: str) -> str:
    """The text with what is not the speaker's own blanked; the same length."""
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
    """Whether anything can open a quotation; an apostrophe inside a word does not."""
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
