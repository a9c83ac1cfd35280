"""Remove secrets and personal data from a text before it is harvested.

Each find is replaced by ``[redacted:KIND]``. The finders (`detectors`) are advisory: they lower the risk of a leak, and
no other safeguard relies on them. They search only around cheap hints. All texts of a transcript are searched for hints
once (`Redactor.over`), so that finders without hints are skipped. Redaction is idempotent.

JSON text (arguments of tool calls) is redacted value by value, so that it stays JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from .detectors import Finder, FinderFor, SensitiveSpan, personal_finder, secret_finder


class RedactedText(NamedTuple):
    """A redacted text, and the number of replaced spans."""

    text: str
    found: int


Redact = Callable[[str], RedactedText]


@dataclass(frozen=True, slots=True)
class Redactor:
    """The finders to use, as a value that is the same in every process.

    >>> Redactor()("mail ada@lovelace.org").text
    'mail [redacted:email]'
    """

    secrets: bool = True
    personal: bool = True

    def __call__(self, text: str) -> RedactedText:
        return self.over((text,))(text)

    def over(self, texts: Iterable[str]) -> Redact:
        """Return a function that redacts these texts only, after one search for hints in all of them."""
        every = "\n".join(texts)
        hinted = (finder_for(every) for finder_for in _finders(self.secrets, self.personal))
        finders = [find for find in hinted if find is not None]
        return partial(_redacted, finders) if finders else partial(RedactedText, found=0)


def redacted_json(text: str, redact: Redact, over: Redact | None = None) -> RedactedText:
    """Redact the strings and keys of JSON text; other text is redacted as it is.

    `over` is a faster function for this text (`Redactor.over`); strings behind escapes need `redact`.
    """
    if "\\" not in text and not (over or redact)(text).found:
        return RedactedText(text, 0)
    try:
        value, count = _inside(json.loads(text), redact)
    except (ValueError, RecursionError):
        return redact(text)
    return RedactedText(json.dumps(value, ensure_ascii=False), count) if count else RedactedText(text, 0)


def _redacted(finders: Iterable[Finder], text: str) -> RedactedText:
    spans = [span for find in finders for span in find(text)]
    return _replaced(text, spans) if spans else RedactedText(text, 0)


@lru_cache(maxsize=4)
def _finders(secrets: bool, personal: bool) -> tuple[FinderFor, ...]:
    found: list[FinderFor] = []
    if secrets:
        found.append(secret_finder())
    if personal:
        found.append(personal_finder())
    return tuple(found)


def _replaced(text: str, spans: list[SensitiveSpan]) -> RedactedText:
    """Replace spans from left to right, the longest of equal starts; a span that begins inside another goes with it."""
    pieces: list[str] = []
    done = count = 0
    for start, stop, kind in sorted(spans, key=lambda span: (span.start, -span.stop, span.kind)):
        if start >= done:
            pieces += (text[done:start], f"[redacted:{kind}]")
            count += 1
        done = max(done, stop)
    return RedactedText("".join((*pieces, text[done:])), count)


def _inside(value: object, redact: Redact) -> tuple[object, int]:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        pairs = [_inside(item, redact) for item in value]
        return [item for item, _ in pairs], sum(count for _, count in pairs)
    if isinstance(value, dict):
        keyed = [(redact(key), _inside(item, redact)) for key, item in value.items()]
        counts = sum(key.found + count for key, (_, count) in keyed)
        return {key.text: item for key, (item, _) in keyed}, counts
    return value, 0
