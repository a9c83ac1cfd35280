"""Make an observation of a sentence: judge whether it says anything lasting, find its topic, and cut it to one line.

The harvesters of this folder call `doubt`, `topic_of`, `in_one_line` and `claim`.

**Doubt.** `doubt` returns the first reason why a sentence with a cue says nothing lasting (it asks, supposes, reports,
denies, jokes or remembers), or None. Irony, indifference and the past are searched in the whole sentence; supposition,
report and denial only before the cue. A doubted sentence never makes a strict claim; a question or the past allows a
broad one. `is_local` and `is_of_project` tell whether a wish is about the task at hand or about the project. Most
wishes in task-oriented talk are about the task ("this one", a date, a booking's code).

**Topic.** A wish has a slot, and value, polarity and modality where they are stated. Two wordings of one wish share a
slot, and the opposite wish shares it with the other polarity. The slot comes from

1. a word of the list `topics`: "aisle" is about the seat, "emojis" about emojis, 简短 about the length of answers.
   An entry gives the attribute; the value, in one spelling for all wordings and both languages (None: the topic itself
   is wanted or not); and, for an ambiguous word, further words, one of which the sentence must have as well;
2. or else the head noun of the wish.

**Line.** The line is in the speaker's own words. A short sentence is quoted in a frame of ours, a long one is cut at
clauses around the claim. The bytes of the place are the line's words, except for white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ctxsteward.language.values import normalize, typed_values
from ctxsteward.language.words import STOP, clause_spans, lists, stem
from ctxsteward.schemas.profile import Modality, Polarity
from ctxsteward.schemas.recommendation import Cardinality, RecommendationKind, Slot

from ...observations.observation import Observation, Reach, Strength
from .utterances import AnchorWords, CueMatch, Sentence

_TOPIC_LISTS = lists("topics")
SINGLE_VALUED = frozenset(_TOPIC_LISTS.words("single"))
"""Attributes with one value at a time."""


def _entries(language: str) -> Iterator[tuple[str, str | None, str]]:
    for line in _TOPIC_LISTS.rows(language):
        head, _, words = line.partition(": ")
        attribute, _, value = head.partition("=")
        yield attribute, value or None, words


def _english() -> dict[str, tuple[str, str | None, frozenset[str]]]:
    topics: dict[str, tuple[str, str | None, frozenset[str]]] = {}
    for attribute, value, line in _entries("english"):
        words, _, needs = line.partition("|")
        topics |= dict.fromkeys(words.split(), (attribute, value, frozenset(needs.split())))
    return topics


ENGLISH_TOPICS = _english()
CHINESE_TOPICS = {
    phrase: (attribute, value) for attribute, value, line in _entries("chinese") for phrase in line.split()
}


MAX_VALUE_CHARS = 60
FORM = frozenset(_TOPIC_LISTS.words("form"))
"""Attributes of the form of answers that may suit every reader; the language of an answer is not among them."""
_BOUNDARY = _TOPIC_LISTS.pattern("boundary")
_PHRASE_WORD = re.compile(r"[a-z0-9][a-z0-9'+#-]*")
_SKIPPED = STOP | frozenset(_TOPIC_LISTS.words("skipped"))
_NEGATIVE = _TOPIC_LISTS.pattern("negative")
_MUST_NOT = _TOPIC_LISTS.pattern("must_not")
_MUST = _TOPIC_LISTS.pattern("must")
_CHINESE_HEAD = re.compile(r"[\u3400-\u9fffA-Za-z0-9]+")
_CHINESE_SKIP = _TOPIC_LISTS.pattern("chinese_skip")
_CHINESE = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTopic:
    """A slot, and what a claim says of it."""

    attribute: str
    cardinality: Cardinality = "many"
    subject: str | None = None
    """None for the speaker."""
    value: str | int | float | None = None
    unit: str | None = None
    polarity: Polarity | None = None
    modality: Modality | None = None


def topic_of(match: CueMatch, sentence: Sentence) -> ClaimTopic:
    """Return the topic of a wish."""
    about = match.start_of("o") if "o" in match.found.re.groupindex else match.found.start()
    cue = sentence.low[match.found.start() : min(match.found.end(), about + 12)]
    polarity: Polarity = "negative" if _NEGATIVE.search(cue) else "positive"
    modality: Modality = "must_not" if _MUST_NOT.search(cue) else "must" if _MUST.search(cue) else "should"
    region = sentence.low[about : match.found.end()]
    listed = _listed_topic(region, sentence) or (
        _listed_topic(sentence.low, sentence) if modality != "should" else None
    )
    attribute, words = listed or _head_noun(region, sentence)
    value: str | int | float | None = words
    unit = None
    if listed is None or words is None:
        amount = _amount(sentence.text[about : match.found.end()])
        if amount is not None:
            value, unit = amount
    return ClaimTopic(
        attribute=attribute,
        cardinality="one" if attribute in SINGLE_VALUED else "many",
        value=value,
        unit=unit,
        polarity=polarity,
        modality=modality,
    )


def _listed_topic(region: str, sentence: Sentence) -> tuple[str, str | None] | None:
    """Return attribute and value of the first topic word in a region; of Chinese phrases at one place, the longest."""
    for word in _PHRASE_WORD.findall(region):
        if word in ENGLISH_TOPICS:
            attribute, value, needs = ENGLISH_TOPICS[word]
            if not needs or needs & sentence.words:
                return attribute, value
    if not sentence.has_chinese:
        return None
    phrases = [phrase for phrase in CHINESE_TOPICS if phrase in region]
    return CHINESE_TOPICS[min(phrases, key=lambda phrase: (region.find(phrase), -len(phrase)))] if phrases else None


def _head_noun(region: str, sentence: Sentence) -> tuple[str, str | None]:
    """Return ``likes:HEAD``, and the words before the head."""
    boundary = _BOUNDARY.search(region, 1)
    phrase = region[: boundary.start()] if boundary else region
    words = [word for word in _PHRASE_WORD.findall(phrase) if word not in _SKIPPED]
    if words:
        return f"likes:{stem(words[-1])}"[:80], " ".join(words[:-1])[:MAX_VALUE_CHARS] or None
    if sentence.has_chinese and (run := _CHINESE_HEAD.search(_CHINESE_SKIP.sub("", phrase.strip()))):
        head = run.group()
        modifier, _, noun = head.rpartition("的")
        return f"likes:{(noun or head)[-8:]}", modifier[:MAX_VALUE_CHARS] or None
    return "likes", None


_ANSWER_WORDS = frozenset(word for _, _, needs in ENGLISH_TOPICS.values() for word in needs)
_MANNER = frozenset(lists("claims").words("manner"))
"""Words of wishing and asking."""


def speaks_of_answers(text: str) -> bool:
    """Whether a text is about how answers are written: it names them, or a topic of their form.

    >>> [speaks_of_answers(text) for text in ("Only metric units.", "Keep replies short.", "The lift is broken.")]
    [True, True, False]
    """
    words = frozenset(_PHRASE_WORD.findall(text.lower()))
    english = {ENGLISH_TOPICS[word][0] for word in words & ENGLISH_TOPICS.keys()}
    chinese = {attribute for phrase, (attribute, _) in CHINESE_TOPICS.items() if phrase in text}
    return not FORM.isdisjoint(english | chinese) or not _ANSWER_WORDS.isdisjoint(words)


def is_form_alone(attribute: str, text: str, *, has_amount: bool) -> bool:
    """Whether a wish is only about the form of answers, for every reader, and claims nothing of the world.

    Each English word must be about answers, about wishing, or a topic. A figure is allowed only as the wanted amount
    (`has_amount`). Chinese has no blanks between words: a Chinese wish must be one clause.
    """
    if attribute not in FORM or len(typed_values(text)) > has_amount:
        return False
    if _CHINESE.search(text):
        return len(list(clause_spans(text.rstrip("。！!.")))) == 1
    about = ENGLISH_TOPICS.keys() | _ANSWER_WORDS | _MANNER | _SKIPPED
    return all(word in about for word in _PHRASE_WORD.findall(text.lower()) if not word.isdigit())


def value_of(text: str) -> str:
    """Return a stated value for comparisons: no quotes, no end mark, one blank between words."""
    return " ".join(text.strip(" \t\"'“”‘’「」.,!?。，！？；;").split())[:MAX_VALUE_CHARS] or text[:MAX_VALUE_CHARS]


def _amount(text: str) -> tuple[int | float, str | None] | None:
    """Return number and unit of the only quantity in a text, or None if it has none or several."""
    amounts = [value for value in typed_values(text) if value.kind in ("quantity", "money", "percent")]
    if len(amounts) != 1:
        return None
    (amount,) = amounts
    try:
        number = float(normalize(amount.norm))
    except ValueError:
        return None
    if not abs(number) < 1e12:
        return None
    unit = amount.unit or ("%" if amount.kind == "percent" else None)
    return int(number) if number == int(number) else number, unit


MIN_TEXT_CHARS, MAX_TEXT_CHARS = 8, 280
MAX_NAME_CHARS = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LISTS = lists("talk")
_SENSITIVE = _LISTS.pattern("sensitive")
_HEAD_CHARS = 5
_HEADS = frozenset(word[:_HEAD_CHARS] for word in re.findall("[a-z]+", _SENSITIVE.pattern))
"""First letters of the English words in `_SENSITIVE`; some harmless words begin with them, too."""
_JOINT = re.compile("[-']")


class ClaimLine(NamedTuple):
    """A claim's text, and the characters of its sentence that it cites."""

    text: str
    start: int
    stop: int


def in_one_line(sentence: Sentence, start: int = 0, stop: int | None = None) -> ClaimLine | None:
    """Return a sentence as a line, or, of a long one, the clauses around characters `start` to `stop`.

    Return None if the clauses are too long or have control characters.
    """
    text = sentence.text
    stop = len(text) if stop is None else stop
    first, last = (0, len(text)) if len(text) <= MAX_TEXT_CHARS else _clauses(text, start, stop)
    words = " ".join(text[first:last].split())
    if not words or len(words) > MAX_TEXT_CHARS or (not words.isprintable() and _CONTROL.search(words)):
        return None
    if len(words) < MIN_TEXT_CHARS:
        words = f"用户说：「{words}」" if sentence.has_chinese else f'The user said: "{words}"'
    return ClaimLine(words, first, last)


def _clauses(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return the clauses from the one at `start` to the one at `stop`, or up to `MAX_TEXT_CHARS`."""
    first, last = -1, -1
    for clause in clause_spans(text):
        if first < 0 and clause.stop > start:
            first = clause.start
        if first >= 0 and clause.stop - first <= MAX_TEXT_CHARS and (last < 0 or clause.start < stop):
            last = clause.stop
    return (first, last) if 0 <= first < last else (0, len(text))


def claim(
    sentence: Sentence,
    *,
    kind: RecommendationKind,
    text: ClaimLine,
    topic: ClaimTopic,
    strength: Strength,
    score: float,
    reach: Reach,
    extractor: str,
) -> Observation:
    """Return the observation that the speaker of a sentence made a claim."""
    said = sentence.said
    return Observation(
        kind=kind,
        text=text.text,
        slot=Slot(
            subject=topic.subject or "user",
            attribute=topic.attribute[:MAX_NAME_CHARS],
            cardinality=topic.cardinality,
        ),
        places=(sentence.place(text.start, text.stop),),
        strength=strength,
        score=score,
        reach=reach,
        principal=said.principal,
        value=topic.value,
        unit=topic.unit,
        polarity=topic.polarity,
        modality=topic.modality,
        ts=said.ts,
        sensitivity="sensitive" if _may_be_sensitive(sentence) and _SENSITIVE.search(sentence.low) else "none",
        extractor=extractor,
    )


def _may_be_sensitive(sentence: Sentence) -> bool:
    """Whether a word begins like one of `_SENSITIVE`. A look-up for each word costs less than a search for the list."""
    if sentence.has_chinese:
        return True
    for word in sentence.words:
        if word[:_HEAD_CHARS] in _HEADS:
            return True
        if not word.isalpha() and any(part[:_HEAD_CHARS] in _HEADS for part in _JOINT.split(word)):
            return True
    return False


Doubt = Literal["question", "document", "irony", "indifference", "supposition", "report", "denial", "past"]

WEAKENS: frozenset[Doubt] = frozenset(("question", "past"))
"""Doubts that leave a wish broad: it counts if others say the same. With other doubts there is no wish."""


@dataclass(frozen=True, slots=True)
class _DoubtSign:
    """Wordings of a reason in both languages; each English one holds one of `anchors`."""

    anchors: AnchorWords
    english: re.Pattern[str]
    chinese: re.Pattern[str]

    def marks(self, sentence: Sentence, text: str) -> bool:
        """Whether a part of a sentence has one of the wordings."""
        if self.anchors.are_in(sentence.words) and self.english.search(text):
            return True
        return sentence.has_chinese and self.chinese.search(text) is not None


_DOUBTS = lists("doubts")


def _sign(name: str) -> _DoubtSign:
    anchors = AnchorWords(" ".join(_DOUBTS.words(name)))
    return _DoubtSign(anchors, _DOUBTS.pattern(name), _DOUBTS.pattern(f"zh_{name}"))


_FACES = re.compile("🙄|😒|😏|🙃")
_IRONY = _sign("irony")
_INDIFFERENCE = _sign("indifference")
_PAST = _sign("past")
_SUPPOSED_WHOLE = _DOUBTS.pattern("supposed_whole")
_SUPPOSED_WHOLE_CHINESE = _DOUBTS.pattern("supposed_whole_chinese")
_SUPPOSITION = _sign("supposition")
_REPORT = _sign("report")
_REPORTED_FIRST = re.compile(
    r"\b(?:i|we|i'd|you) (?:would |have |had |'ve )?(?:say|said|told you|mentioned|asked you|wrote)\b[^.;!]{0,60}$"
)
_DENIAL = _sign("denial")


def doubt(sentence: Sentence, start: int) -> Doubt | None:
    """Return why the cue at character `start` may mean nothing lasting, or None."""
    low, before = sentence.low, sentence.low[:start]
    if _IRONY.marks(sentence, low) or (not low.isascii() and _FACES.search(low)):
        return "irony"
    if _INDIFFERENCE.marks(sentence, low):
        return "indifference"
    if _SUPPOSED_WHOLE.match(low) or (sentence.has_chinese and _SUPPOSED_WHOLE_CHINESE.search(low)):
        return "supposition"
    if _SUPPOSITION.marks(sentence, before):
        return "supposition"
    if _REPORT.marks(sentence, before) and not _REPORTED_FIRST.search(before):
        return "report"
    if _DENIAL.marks(sentence, before):
        return "denial"
    if sentence.is_question:
        return "question"
    if not sentence.is_plain:
        return "document"
    return "past" if _PAST.marks(sentence, low) else None


_EXPLICIT = _DOUBTS.pattern("explicit")
_DEICTIC = _DOUBTS.pattern("deictic")
_PROJECT = _DOUBTS.pattern("project")


def is_local(sentence: Sentence, *, strictly: bool) -> bool:
    """Whether a sentence is about the task at hand; with `strictly`, only if its words say so outright."""
    if _EXPLICIT.search(sentence.low):
        return True
    return not strictly and _DEICTIC.search(sentence.low) is not None


def is_of_project(sentence: Sentence) -> bool:
    """Whether a sentence is about the project rather than its speaker."""
    return _PROJECT.search(sentence.low) is not None
