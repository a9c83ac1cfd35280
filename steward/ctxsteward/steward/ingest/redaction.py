"""Remove secrets and personal data from a text before it is harvested.

Each match is replaced by ``[redacted:KIND]``. The finders (`detectors`) lower the risk of a leak, and no other
safeguard relies on them. They search only around cheap hints. All texts of a transcript are searched for hints once
(`Redactor.over`), so that finders without hints are skipped. Redaction is idempotent.

JSON text (arguments of tool calls) is redacted value by value, so that it stays JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from .detectors import Finder, personal_finder, secret_finder

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Redactor:
    """The finders to use, as a value that is the same in every process.

    >>> Redactor()("mail ada@lovelace.org")
    'mail [redacted:email]'
    """

    secrets: bool = True
    personal: bool = True

    def __call__(self, text: str) -> str:
        return self.over((text,))(text)

    def over(self, texts: Iterable[str]) -> Redact:
        """Return a function that redacts these texts only, after one search for hints in all of them."""
        joined = "\n".join(texts)
        makers = [*([secret_finder()] if self.secrets else []), *([personal_finder()] if self.personal else [])]
        return partial(_redacted, [find for finder_for in makers if (find := finder_for(joined)) is not None])


def redacted_json(text: str, redact: Redact, over: Redact | None = None) -> str:
    """Redact the strings and keys of JSON text; other text is redacted as it is.

    `over` is a faster function for this text (`Redactor.over`). Strings with escapes need `redact`.
    """
    if "\\" not in text and (over or redact)(text) == text:
        return text
    try:
        value = json.loads(text)
        clean = _inside(value, redact)
        is_clean = clean == value
    except (ValueError, RecursionError):
        return redact(text)
    return text if is_clean else json.dumps(clean, ensure_ascii=False)


def _redacted(finders: Iterable[Finder], text: str) -> str:
    """Replace spans from left to right, the longest of equal starts, and overlapping ones together."""
    spans = [span for find in finders for span in find(text)]
    pieces: list[str] = []
    done = 0
    for start, stop, kind in sorted(spans, key=lambda span: (span.start, -span.stop, span.kind)):
        if start >= done:
            pieces += (text[done:start], f"[redacted:{kind}]")
        done = max(done, stop)
    return "".join((*pieces, text[done:]))


def _inside(value: object, redact: Redact) -> object:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_inside(item, redact) for item in value]
    if isinstance(value, dict):
        return {redact(key): _inside(item, redact) for key, item in value.items()}
    return value
