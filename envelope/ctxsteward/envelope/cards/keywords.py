"""The words a message is found by: most frequent first, of equal counts the one that comes earlier.

Words of four characters and more, identifiers whole, numbers of three digits and more, character bigrams for scripts
without blanks; no stop words.

>>> keywords("The deploy failed: deploy_id 4711 is unknown, deploy again")
('deploy', 'failed', 'deploy_id', '4711', 'unknown')
>>> keywords("部署失败")
('部署', '署失', '失败')
"""

from __future__ import annotations

import re
from collections import Counter

from ctxsteward.schemas.cards import MAX_KEYWORD_CHARS, MAX_KEYWORDS

MAX_TEXT_CHARS = 20_000
"""Of one message; what comes after is not looked at."""

_STOP_TEXT = """
about after again also because been before being both cannot could does doing down during each from further have having
here hers herself himself into itself just more most myself once only other ours ourselves over same should some such
than that their theirs them themselves then there these they this those through under until very want were what when
where which while whom will with would your yours yourself
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())
"""English ones that are long enough to be looked at."""

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")


def keywords(text: str) -> tuple[str, ...]:
    """At most 20, lower case."""
    found: Counter[str] = Counter()
    for word in _WORD.findall(text[:MAX_TEXT_CHARS].lower()):
        if _IS_CJK.match(word):
            found.update([word[at : at + 2] for at in range(len(word) - 1)] or [word])
        elif len(word) >= 4 or (len(word) == 3 and word.isdigit()):
            name = word.strip("_")[:MAX_KEYWORD_CHARS]
            if name and name not in _STOP_WORDS:
                found[name] += 1
    return tuple(word for word, _ in found.most_common(MAX_KEYWORDS))
