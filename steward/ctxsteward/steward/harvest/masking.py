# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""What in a message is not the speaker's own word: code, quotations, pasted text. It is blanked, never cut.

`heard` gives a text of the same length in which every character of such a passage, line breaks apart, is a ``_``, so that places in
it are places in the original. Quotation marks around one or two words stay: they name a thing. A passage announced as
material ("translate this:", a mail's header, ``请总结下面的内容：``) reaches to the end of the message. All passes are
linear: what they look back or ahead at is bounded.

>>> heard('He said "never do that again" and left.')
'He said "___________________" and left.'
>>> heard("Summarize this: I never fly.")
'Summarize this: ____________'
"""

from __future__ import annotations

import re

MAX_HEAD_CHARS = 6_000
MAX_TAIL_CHARS = 2_000
"""Of one message its beginning and its end are heard; what is longer was pasted."""

_FENCED = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(r"<([A-Za-z]\w{1,19})(?:\s[^<>\n]{0,200})?>.{1,4000}?</\1>", re.DOTALL)
_LINE = re.compile(
    r"^[ \t]*(?:>|\||\[?\d{4}-\d\d-\d\d[T ]\d\d:|\[(?:INFO|WARN|WARNING|ERROR|DEBUG)\]|Traceback |File \"|\$ |#!|\w{3,40}Error: |at \w[\w.$]*\().*$",
    re.MULTILINE,
)
_QUOTED = re.compile(
    r"\"([^\"\n]{1,400})\"|“([^”\n]{1,400})”|「([^」\n]{1,400})」|『([^』\n]{1,400})』|(?<!\w)‘([^’\n]{3,400})’(?!\w)"
    r"|(?<!\w)'([^'\n]{3,400})'(?!\w)|`([^`\n]{1,400})`"
)
_MARKS = '"“「『‘`'
_NAMED = re.compile(r"\W*(?:[\w'.+#-]{1,30}(?:\s[\w'.+#-]{1,30})?|[\u3400-\u9fff·]{1,6})\W*")
"""Short enough to name a thing rather than to quote a sentence."""
_HEADER = re.compile(
    r"^(?:From|To|Subject|Sent|Date|Cc|发件人|收件人|主题)[:：][^\n]+\n(?:From|To|Subject|Sent|Date|Cc|发件人|收件人|主题)[:：]",
    re.MULTILINE,
)
_ANNOUNCED = re.compile(
    r"\b(?:translate|summari[sz]e|proofread|rewrite|rephrase|paraphrase|edit|review|explain|analy[sz]e|improve|polish|classify"
    r"|extract|check the|fix the)\b(?![^.!?\n:]{0,80}\b(?:rules?|preferences?|instructions?)\b)[^.!?\n:]{0,80}:(?=\s)"
    r"|\b(?:here(?:'s| is)|this is|below is) (?:the|my|an?|his|her|their|our) (?:\w+ ){0,2}"
    r"(?:email|mail|letter|article|document|log|text|review|transcript|draft|essay|post|message)\b[^.!?\n:]{0,40}:(?=\s)"
    r"|(?:翻译|总结|概括|润色|改写|修改|校对|解释|分析|提取|分类|点评)(?![^。！？\n：:]{0,20}(?:偏好|要求|规则|习惯))[^。！？\n：:]{0,20}[：:]"
    r"|(?:以下|下面|如下)(?:是|为)?(?![^。！？\n：:]{0,20}(?:偏好|要求|规则|习惯))[^。！？\n：:]{0,20}[：:]",
    re.IGNORECASE,
)
_SPOKEN = re.compile(r"[^\n\r]")


def heard(text: str) -> str:
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
    if ":" in text or "：" in text:
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
