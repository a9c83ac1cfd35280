"""A set of words, written as a paragraph.

>>> sorted(listed("to be or not to be"))
['be', 'not', 'or', 'to']
"""

from __future__ import annotations


def listed(text: str) -> frozenset[str]:
    """The words between the blanks."""
    return frozenset(text.split())
