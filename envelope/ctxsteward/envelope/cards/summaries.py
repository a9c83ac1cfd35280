"""Card summarizers: one message in, one or two sentences out.

`leading_sentences` needs nothing else and is the default; `Bulleted` puts any installed summarizer of sections (the
extractive one, a model) to work on a single message.
"""

from __future__ import annotations

import re

from ctxsteward.schemas import Source, SourceMessage, Summarizer
from ctxsteward.schemas.cards import MAX_SUMMARY_CHARS

from ..accounting import said_by
from .fast_path import one_line, shortened

READ_CHARS = 2_000
"""Of a message; what comes after is not looked at."""

_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|[。！？]|$)", re.DOTALL)


def leading_sentences(source: SourceMessage) -> str:
    """The sentences a message begins with, whole ones as far as they fit.

    >>> from ctxsteward.schemas import Message
    >>> said = {"role": "user", "content": "Move the job to 02:00. It clashes with the backup. " + "So " * 200}
    >>> leading_sentences(SourceMessage(ref="§1", message=Message.from_wire(said)))
    'Move the job to 02:00. It clashes with the backup.'
    """
    text = one_line(said_by(source.message)[:READ_CHARS])
    taken = ""
    for sentence in _SENTENCE.findall(text):
        if len(taken) + len(sentence) > MAX_SUMMARY_CHARS:
            break
        taken += sentence
    return taken.strip() or shortened(text)


class Bulleted:
    """A `CardSummarizer`: the bullets a summarizer of sections makes of one message, best first as it gives them."""

    def __init__(self, summarizer: Summarizer, name: str) -> None:
        self._summarizer = summarizer
        self.name = name

    def __call__(self, source: SourceMessage) -> str:
        summary = self._summarizer(Source(messages=(source,)), budget_tokens=MAX_SUMMARY_CHARS)  # a token: a character
        return " ".join(bullet.text for bullet in summary.bullets) or leading_sentences(source)
