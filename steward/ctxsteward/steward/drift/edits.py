"""Whether a text that stands for a locked line still says the same rule.

`entries` asks it of an edit of a locked line, `stance` of statements that stand elsewhere. A list of dangerous phrases
would miss whatever is worded otherwise. So whatever differs has to be *explained*: function words, synonyms,
inflections, misspellings, another order of a list or of phrases, sentences about something else. What is left decides:
`marks` (strength, exceptions, scope, figures, order) and `contents` (a thing in another's place, a part that is gone, a
narrower case, two things exchanged). A verb or two that cannot be explained are left to reviewers, who see every edit
of a locked line anyway.

Linear in the text but for the alignment of two sentences.
"""

from __future__ import annotations

from collections.abc import Collection

from ctxsteward.language import is_kin_of, keys_of, read_statement, sentences_of

from .contents import exchanged, lost_part, narrowed, replaced_thing
from .marks import RuleChange, figured, loosened, marked, reordered, weakened, widened


def otherwise(line: str, text: str) -> RuleChange | None:
    """The first difference that makes another rule of a locked line; None: the text says the same."""
    old, new = list(sentences_of(line)), list(sentences_of(text))
    kept = {keys_of(sentence) for sentence in old} & {keys_of(sentence) for sentence in new}
    old, new = ([s for s in each if keys_of(s) not in kept] for each in (old, new))
    subject = read_statement(" ".join(sentences_of(line))).keys
    apart = [sentence for sentence in new if not _about(sentence, subject)]
    new = [sentence for sentence in new if sentence not in apart]
    loosening = next((each for sentence in apart if (each := loosened(sentence))), None)
    if loosening or not (old or new):
        return loosening
    before, after = (
        read_statement(" ".join(old)),
        read_statement(" ".join(new) if old else " ".join(sentences_of(text))),
    )
    if not old:  # said of the same matter, beside what stood
        return next((each for sentence in new if (each := loosened(sentence) or figured(line, sentence))), None)
    return (
        figured(" ".join(old), " ".join(new))
        or marked(before, after)
        or widened(old, new)
        or weakened(old, new)
        or reordered(old, new)
        or replaced_thing(before, after)
        or lost_part(old, before, after)
        or narrowed(before, after)
        or exchanged(before, after)
    )


def _about(sentence: str, subject: Collection[str]) -> bool:
    """Whether a sentence shares its content with a subject: one word will do."""
    return any(word.key in subject or is_kin_of(word.key, subject) for word in read_statement(sentence).words)
