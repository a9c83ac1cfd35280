"""Which sentences carry too little to be a fact: small talk, errands, generalities.

`is_small_talk` holds everywhere: greetings and catching up with nothing behind them. `is_errand` is what one says to an
assistant to get something done: a request, an acknowledgement, what one does not have or know. Of what is left inside a
task, `has_detail` tells what states something: a number, a name or a date is in it.

`is_vague` counts the things of a sentence ("That's awesome" scores like a fact and tells nobody anything later): words
that are neither everyday ones nor of feeling, praise and generality (`EMPTY`), names that call nobody, numbers, times
and events. `MIN_THINGS` of them make a fact; a sentence about "it", "that" or "they", or about the other speaker alone,
needs one more, because what it is about stands elsewhere. Chinese words are not told apart, so no Chinese sentence is
vague.

>>> [is_vague(text) for text in ("It went alright.", "That's awesome!", "I'm a huge fan.", "Since I was 17 or so.")]
[True, True, True, True]
>>> [is_vague(text) for text in ("I went to Woodhaven.", "I fractured my wrist.", "It was a reading of poems in Rome.")]
[False, False, False]
"""

from __future__ import annotations

import re

from ctxsteward.language import STOP, lists

from .utterances import Sentence, listed

MIN_LEFT_WORDS, MIN_LEFT_CHARS = 3, 6
"""What must stand beside small talk to be worth keeping: words, Chinese characters."""

_WORD = re.compile(r"[a-z][a-z'-]+|\d+")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_LISTS = lists("small_talk")
_FILLERS = frozenset(_LISTS.words("fillers"))
_SMALL_TALK = _LISTS.pattern("small_talk")
_SMALL_WORDS = tuple(words.replace("_", " ") for words in _LISTS.phrases("small_words"))
"""Small talk has one of these in it."""
_FIRST = listed("i i'm i've i'd i'll me my mine we we've we're our us")
_ABOUT_YOU = _LISTS.pattern("about_you")
"""About the other one, or a proposal: no fact of the speaker."""
_DEED = _LISTS.pattern("deed")
"""Something that the speaker did."""
_CHINESE_SMALL_TALK = _LISTS.pattern("chinese_small_talk")

_REQUEST = _LISTS.pattern("request")
_LACK = _LISTS.pattern("lack")
_REPLY = _LISTS.pattern("reply")
_CHINESE_REQUEST = _LISTS.pattern("chinese_request")
_CHINESE_LACK = _LISTS.pattern("chinese_lack")
_CHINESE_REPLY = _LISTS.pattern("chinese_reply")
_DETAIL = re.compile(r"\d|(?<=[a-z,;:] )(?!I\b|I'|OK\b)[A-Z][\w'-]+|\b[A-Z]{2,}\b")
_CHINESE_DETAIL = _LISTS.pattern("chinese_detail")


def is_small_talk(sentence: Sentence) -> bool:
    """Greeting and catching up, with nothing said beside it."""
    low = sentence.low
    if sentence.has_chinese:
        left, found = _CHINESE_SMALL_TALK.subn(" ", low)
        return found > 0 and len(_CHINESE.findall(left)) < MIN_LEFT_CHARS
    if _ABOUT_YOU.match(low) and sentence.words.isdisjoint(_FIRST):
        return True
    if not _may_be_small(low):
        return False
    left, found = _SMALL_TALK.subn(" ", low)
    if not found or _DEED.search(left):
        return False
    words = [word for word in _WORD.findall(left) if word not in STOP and word not in _FILLERS]
    return len(words) < MIN_LEFT_WORDS


def _may_be_small(low: str) -> bool:
    return any(words in low for words in _SMALL_WORDS)


def is_errand(sentence: Sentence) -> bool:
    """A request to an assistant, an acknowledgement, or a remark that the speaker lacks something."""
    if sentence.has_chinese:
        return any(one.search(sentence.low) for one in (_CHINESE_REQUEST, _CHINESE_LACK, _CHINESE_REPLY))
    return any(one.search(sentence.low) for one in (_REQUEST, _LACK, _REPLY))


def has_detail(sentence: Sentence) -> bool:
    """Whether it has a number, a name or a date in it."""
    detail = _CHINESE_DETAIL if sentence.has_chinese else _DETAIL
    return detail.search(sentence.heard) is not None


MIN_THINGS = 2
EMPTY = STOP | frozenset(_LISTS.words("empty"))
"""Words that stand for nothing of their own."""
_LATIN_WORD = re.compile(r"[a-z][a-z'-]+")
_TIME = _LISTS.pattern("time")
_EVENT = frozenset(_LISTS.words("event"))
_DIGIT = re.compile(r"\d")
_CALLED = _LISTS.pattern("called")
_NAME = re.compile(r"(?<=[a-z,;:\"] )\"?(?!I\b)[A-Z][\w'-]+|\"[^\"]{2,60}\"|“[^”]{2,60}”")
_POINTING = _LISTS.pattern("pointing")
_SECOND = listed("you your you're you've you'll you'd yourself")
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b")
_CHINESE_CHARACTER = re.compile(r"[\u3400-\u9fff]")


def addresses(sentence: Sentence) -> bool:
    """Whether it speaks to the other one: "you said so"."""
    return not sentence.words.isdisjoint(_SECOND)


def points_elsewhere(sentence: Sentence) -> bool:
    """Whether it begins with what it is about as "it", "that" or "they"."""
    return _POINTING.match(sentence.low) is not None


def is_vague(text: str) -> bool:
    """Whether a sentence, as written, carries too little to be a fact."""
    if not text.isascii() and _CHINESE_CHARACTER.search(text):
        return False
    text = _CALLED.sub(" ", text).strip()
    low = text.lower().replace("’", "'")
    words = set(_LATIN_WORD.findall(low))
    is_of_other = not words.isdisjoint(_SECOND) and _FIRST_PERSON.search(low) is None
    needed = MIN_THINGS + (_POINTING.match(low) is not None or is_of_other)
    things = len({word.removesuffix("'s") for word in words - EMPTY if "'" not in word or word.endswith("'s")} - EMPTY)
    if things >= needed:
        return False
    names = len(_NAME.findall(text))
    if things + names == 0:
        return True
    things += names + (_DIGIT.search(low) is not None) + (_TIME.search(low) is not None)
    return things + (not words.isdisjoint(_EVENT)) < needed
