"""What a sentence is worth as a fact: whether somebody would be glad, weeks later, that it was kept.

`worth` adds up general signals of a sentence: what it names, whose it is, whether it points at what stands elsewhere,
whether it asks, what its message is like. Their weights were measured (logistic regression) on sentences of dated chats
that two readings judged by one rubric; `docs/steward.md` has the rubric, their agreement and how well the weights do on
talk that they had not seen. No signal is a phrase of that talk. The sum is the log-odds that a sentence is worth it:
`SURE` and above is a fact, `POSSIBLE` and above a candidate.

Of Chinese, which was not judged, the signals and their weights are set by hand:

    .35 first person + .9 event or time + .45 liking + .8 "my / our <relation, job, home>" + .25 · min(names, 4)
    + .4 number + .5 · ln(1 + words) + .075 · words + .4 answers a question − .4 acknowledgement

A sentence counts `CHARS_PER_WORD` characters as a word. All is linear in the sentence.

`stated` is the part of a sentence that states something: without the word of agreement before it, and without the
question or request behind it.

>>> text = "Sure, I moved to Oslo in May, but I'm not sure how to find a flat there, can you help me?"
>>> start, stop = stated(text)
>>> text[start:stop]
'I moved to Oslo in May'
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Set
from operator import mul
from typing import NamedTuple

from ctxsteward.language.words import STOP, clause_spans, lists

from .utterances import Sentence, listed, words_of

SURE, POSSIBLE = 0.9, -2.05
"""Log-odds from which a sentence is a fact, and from which it may be one, said to an assistant."""
MIN_THINGS = 2
"""Words and figures, no everyday ones, below which nothing is stated; a time is one."""
CHARS_PER_WORD = 1.7

_LISTS = lists("facts")
EMPTY = STOP | frozenset(_LISTS.words("empty"))
"""Words that stand for nothing of their own."""
_RELATION = frozenset(_LISTS.words("relation"))
_OWNED = re.compile(r"\b(?:my|our) (?:[\w'-]+ ){0,2}?([a-zé]+)")
_TIME = _LISTS.pattern("time")
_NAME = re.compile(r"(?<=[a-z,;:] )(?!I\b)[A-Z][\w'-]+")
_CALLED = re.compile(r"(?:^|, )(?:\w+,? )?[A-Z][a-z]+(?=[,.!?]+(?: |$))|, [A-Z][a-z]+ ?[-–—]")
"""A name that somebody is called by."""
_I = listed("i we i'm i've i'd i'll we're we've we'll")
_SECOND = listed("you your you're you've you'll you'd yourself")
_THIRD = listed("he she they it him her them his hers its their theirs")
_DEMONSTRATIVE = listed("this that these those here there")
_MODAL = listed("would could should might if maybe perhaps")
_FUTURE = re.compile(r"\b(?:i'll|we'll|will|going to|gonna|plan to|planning)\b")
_MARKUP = re.compile(r"\*\*|^\s*[-*\d]+[.)]\s|`|\\\(|\||=")
_DATED = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.? \d|\b20\d\d\b|\d:\d\d|\d ?(?:am|pm)\b"
)
_AMOUNT = re.compile(r"[$€£₦₩¥]|\b(?:yen|usd|ngn|dollars|euros|pounds|krw)\b|\d%")
_TOLD = _LISTS.pattern("told")
_POINTING = _LISTS.pattern("pointing")
_LEADING = re.compile(r"(?:but|and|so|or|then|also|specifically|especially|like|because)\b")


class SentenceSignals(NamedTuple):
    """What a sentence shows; each is 0 to 1, but for those that say otherwise."""

    always: float
    things: float
    """Content words that are no everyday ones, in fours; two at most."""
    new_things: float
    """Such words and figures that nobody else had said before, in fours; two at most."""
    time: float
    date: float
    amount: float
    names: float
    """Capitalized words inside the sentence, in twos; 1.5 at most."""
    first: float
    my: float
    relation: float
    second: float
    third: float
    pointing: float
    demonstratives: float
    future: float
    modal: float
    markup: float
    told: float
    """It tells somebody to do something."""
    leading: float
    """It goes on from the sentence before: "and", "but"."""
    sentences: float
    """Of its message, in eights."""
    last: float
    """It ends a message of several sentences."""
    not_of_self: float
    """Its message says "I" or "my" nowhere."""
    of_self: float
    """How often its message does, a tenth of its words being 1."""
    answer: float


ASSISTED = SentenceSignals(
    always=-2.6,
    things=0.9,
    new_things=0.45,
    time=-0.05,
    date=0.95,
    amount=1.2,
    names=0.7,
    first=0.35,
    my=0.8,
    relation=0.1,
    second=-0.95,
    third=-0.3,
    pointing=-0.55,
    demonstratives=-0.85,
    future=-1.3,
    modal=-0.65,
    markup=0.5,
    told=-1.45,
    leading=-0.4,
    sentences=-1.1,
    last=-0.35,
    not_of_self=-1.5,
    of_self=1.1,
    answer=0.2,
)
"""Where an assistant is spoken to: learned from what people noted down, too."""
BETWEEN_PEOPLE = SentenceSignals(
    always=-0.05,
    things=1.2,
    new_things=0.6,
    time=1.6,
    date=0.6,
    amount=0.0,
    names=1.4,
    first=0.7,
    my=0.5,
    relation=0.35,
    second=-1.4,
    third=-0.25,
    pointing=-0.5,
    demonstratives=-0.85,
    future=-0.3,
    modal=-1.15,
    markup=0.0,
    told=-1.0,
    leading=-0.45,
    sentences=-0.65,
    last=-0.05,
    not_of_self=-0.45,
    of_self=0.65,
    answer=0.1,
)
"""Where two people talk: learned from what was asked about it later, too. Nobody sets tasks there, so more of it lasts:
what is always added is such that facts take about a quarter of the talk."""


def worth(sentence: Sentence, *, between_people: bool) -> float:
    """Log-odds that a sentence is worth keeping; about -6 to 6."""
    if sentence.has_chinese:
        return _chinese(sentence)
    return math.fsum(map(mul, BETWEEN_PEOPLE if between_people else ASSISTED, signals(sentence)))


def states_nothing(sentence: Sentence) -> bool:
    """Whether it names too little to be a fact, whatever else it shows: most sentences do."""
    if sentence.has_chinese:
        return False
    things = len(_telling(sentence))
    return things < MIN_THINGS and things + (_TIME.search(sentence.low) is not None) < MIN_THINGS


def signals(sentence: Sentence) -> SentenceSignals:
    """The signals of an English sentence."""
    low, words, message = sentence.low, sentence.words, sentence.message
    telling = _telling(sentence)
    things = {word for word in telling if "'" not in word and not word[0].isdigit()}
    return SentenceSignals(
        always=1.0,
        things=min(8, len(things)) / 4,
        new_things=min(8, len(telling & sentence.unheard)) / 4,
        time=float(_TIME.search(low) is not None),
        date=float(_DATED.search(low) is not None),
        amount=float(_AMOUNT.search(low) is not None),
        names=min(3, len(_NAME.findall(_CALLED.sub(" ", sentence.heard)))) / 2,
        first=float(not words.isdisjoint(_I)),
        my=float("my" in words or "our" in words),
        relation=float(("my" in words or "our" in words) and not _RELATION.isdisjoint(_OWNED.findall(low))),
        second=float(not words.isdisjoint(_SECOND)),
        third=float(not words.isdisjoint(_THIRD)),
        pointing=float(_POINTING.match(low) is not None),
        demonstratives=min(2, len(words & _DEMONSTRATIVE)) / 2,
        future=float(_FUTURE.search(low) is not None),
        modal=float(not words.isdisjoint(_MODAL)),
        markup=float(_MARKUP.search(sentence.text) is not None),
        told=float(_TOLD.match(low) is not None),
        leading=float(_LEADING.match(low) is not None),
        sentences=min(8, message.sentences) / 8,
        last=float(message.sentences > 1 and sentence.at == message.sentences - 1),
        not_of_self=float(message.of_self == 0),
        of_self=min(1.0, 10 * message.of_self),
        answer=float(sentence.asked is not None),
    )


def _telling(sentence: Sentence) -> Set[str]:
    """Its words and figures that are no everyday ones, without the name of whom it is said to."""
    called = _CALLED.findall(sentence.heard) if "," in sentence.heard else ()
    return sentence.words - EMPTY - {word for name in called for word in name.lower().strip(", -–—").split()}


# -- what stands elsewhere -----------------------------------------------------------------------------------

_SOMEBODY = re.compile(r"\b(?:he|she|him|his|her|hers|they|them|their)\b")
_THING_FIRST = re.compile(
    r"(?:(?:and|but|so|also|plus|because|since|then|now)[,.!]* )*"
    r"(?:it|it's|it'd|it'll|they're|they've|they'll|those|these)\b"
)


def needs_another(sentence: Sentence) -> bool:
    """Whether it speaks of what it does not name: it begins with "it", or says "he" or "them" before any noun."""
    if _THING_FIRST.match(sentence.low):
        return True
    somebody = _SOMEBODY.search(sentence.low)
    return somebody is not None and not _nouns(words_of(sentence.low[: somebody.start()]))


def _nouns(words: Set[str]) -> bool:
    return not words <= EMPTY or not words.isdisjoint(_RELATION)


def names_something(sentence: Sentence) -> bool:
    """Whether a sentence has a noun in it, of which the next one may speak."""
    return _nouns(sentence.words)


# -- what a sentence states ----------------------------------------------------------------------------------

_LEAD = re.compile(
    r"(?:(?:yes|yeah|yep|no|nope|ok|okay|sure|certainly|alright|all right|right|well|so|and|but|oh|hey|hi|hello"
    r"|thanks|thank you)\b[,.!]+ +)+(?=\S)",
    re.IGNORECASE,
)
_JOINT = r"(?:(?:and|but|so|or|because|since|though|although)\b[, ]*)?"
_QUESTION = re.compile(
    _JOINT + r"(?:can|could|would|will|do|does|did|is|are|am|should|shall|may|what|what's|how|how's|why|any)\b"
    r"|(?:which|where|who) (?:can|could|do|did|should|would) (?:i|we|you)\b"
)
_UNSURE = re.compile(
    _JOINT + r"(?:i|we|i'm|i am|i was|we're|i'd|i've)\b[^,.;]{0,50}?\b(?:if|whether|how|what|which|where|why|who)\b"
)
_MAY_ASK = re.compile(
    r"\b(?:can|could|would|will|do|does|did|is|are|am|should|shall|may|any|if|whether|how|what|which|where|why|who|you"
    r"|help me)\b",
    re.IGNORECASE,
)
_ASKED = re.compile(r"\b(?:can|could|would|will|should|please)\b[^,.;]{0,20}\byou\b|\bhelp me\b")


def stated(text: str) -> tuple[int, int]:
    """Where the part of a sentence stands that states something: first and last character; all of it, if none asks."""
    lead = _LEAD.match(text)
    start = stop = lead.end() if lead else 0
    if _MAY_ASK.search(text, start) is None:
        return start, len(text)
    for clause in clause_spans(text[start:]):
        low = text[start + clause.start : start + clause.stop].lower().replace("’", "'").lstrip()
        if _QUESTION.match(low) or _UNSURE.match(low) or _ASKED.search(low):
            break
        stop = start + clause.stop
    return (start, stop) if stop > start else (0, len(text))


# -- chinese -------------------------------------------------------------------------------------------------

_CHINESE_ACKNOWLEDGED = _LISTS.pattern("chinese_acknowledged")
_CHINESE_EVENT = _LISTS.pattern("chinese_event")
_CHINESE_LIKING = re.compile(r"喜欢|热爱|爱好|讨厌|偏好|迷上|梦想|感兴趣|最爱|过敏|习惯")
_CHINESE_RELATION = _LISTS.pattern("chinese_relation")
_CHINESE_NUMBER = _LISTS.pattern("chinese_number")
_CHINESE_CHAR = re.compile(r"[\u3400-\u9fff]")
_CHINESE_NAME = re.compile(
    r"叫(?!什么|我|你|他|她)[^，,。；;！!？?\s]{1,8}|《[^》]{1,20}》|在[\u3400-\u9fff]{2,4}(?=[，,。；;]|$)|老家在|来自"
)
_CHINESE_SMALL_TALK = _LISTS.pattern("chinese_small_talk")
_CHINESE_ERRAND = _LISTS.pattern("chinese_errand")
CHINESE_EVEN, CHINESE_STEEPNESS = 1.96, 6.0
"""The sum of Chinese signals at which a sentence is as likely worth keeping as not, and log-odds for each one more."""
MIN_LEFT_CHARS = 6
"""What must stand beside small talk to be worth keeping."""


def _chinese(sentence: Sentence) -> float:
    low = sentence.low
    words = len(_CHINESE_CHAR.findall(low)) / CHARS_PER_WORD + len(sentence.words)
    score = 0.5 * math.log(1 + words) + 0.075 * words
    score += math.fsum(weight for weight, is_there in _chinese_signals(low) if is_there)
    score += 0.25 * min(4, len(_CHINESE_NAME.findall(low))) + 0.4 * (sentence.asked is not None)
    return CHINESE_STEEPNESS * (score - CHINESE_EVEN)


def _chinese_signals(low: str) -> Iterator[tuple[float, bool]]:
    yield 0.35, "我" in low or "咱" in low
    yield 0.9, _CHINESE_EVENT.search(low) is not None
    yield 0.45, _CHINESE_LIKING.search(low) is not None
    yield 0.8, _CHINESE_RELATION.search(low) is not None
    yield 0.4, _CHINESE_NUMBER.search(low) is not None
    yield -0.4, _CHINESE_ACKNOWLEDGED.match(low) is not None
    yield -9.0, _is_chinese_small_talk(low)


def _is_chinese_small_talk(low: str) -> bool:
    """Greeting and catching up, with nothing said beside it."""
    left, found = _CHINESE_SMALL_TALK.subn(" ", low)
    return found > 0 and len(_CHINESE_CHAR.findall(left)) < MIN_LEFT_CHARS


def is_chinese_errand(low: str) -> bool:
    """A request to an assistant, an acknowledgement, or a remark that the speaker lacks something."""
    return _CHINESE_ERRAND.search(low) is not None
