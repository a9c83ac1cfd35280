"""What a wish is about: its slot, and value, polarity and modality where they are stated.

Two wordings of one wish share a slot, and the opposite wish shares it with the other polarity. What names the slot:

1. the row of the cue (``strength:attribute`` in `cue_table`), where it names an attribute;
2. else a word of the list `topics`: "aisle" is about the seat, "emojis" about emojis, 简短 about the length of answers.
   An entry gives the attribute; the value in one spelling for all wordings and both languages (None: the topic itself
   is wanted or not); and, for ambiguous words, others of which one must stand in the sentence as well;
3. else the head noun of the wish.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ctxsteward.language import STOP, clause_spans, lists, normalize, stem, typed_values
from ctxsteward.schemas import Cardinality, Modality, Polarity

from .cue_table import CueMatch
from .utterances import Sentence

_LISTS = lists("topics")
ONE = frozenset(_LISTS.words("single"))
"""Attributes of which two values cannot both hold."""


def _entries(language: str) -> Iterator[tuple[str, str | None, str]]:
    for line in _LISTS.rows(language):
        head, _, words = line.partition(": ")
        attribute, _, value = head.partition("=")
        yield attribute, value or None, words


def _english() -> dict[str, tuple[str, str | None, frozenset[str]]]:
    found: dict[str, tuple[str, str | None, frozenset[str]]] = {}
    for attribute, value, line in _entries("english"):
        words, _, needs = line.partition("|")
        found |= dict.fromkeys(words.split(), (attribute, value, frozenset(needs.split())))
    return found


ENGLISH_TOPICS = _english()
CHINESE_TOPICS = {
    phrase: (attribute, value) for attribute, value, line in _entries("chinese") for phrase in line.split()
}


MAX_VALUE_CHARS = 60
LASTING = frozenset(("name", "pronouns", "allergy", "diet", "favorite", "time_zone", "language", "accessibility"))
"""Attributes of a person: true in every session."""
FORM = frozenset(_LISTS.words("form"))
"""Attributes of how answers are written, whoever reads them: wishes that may hold for everybody. The language of an
answer is its reader's own."""
FACTS = frozenset(("name", "pronouns", "allergy", "time_zone", "language", "accessibility"))
_BOUNDARY = _LISTS.pattern("boundary")
_PHRASE_WORD = re.compile(r"[a-z0-9][a-z0-9'+#-]*")
_SKIPPED = STOP | frozenset(_LISTS.words("skipped"))
_NEGATIVE = _LISTS.pattern("negative")
_MUST_NOT = _LISTS.pattern("must_not")
_MUST = _LISTS.pattern("must")
_CHINESE_HEAD = re.compile(r"[\u3400-\u9fffA-Za-z0-9]+")
_CHINESE_SKIP = _LISTS.pattern("chinese_skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTopic:
    """A slot without its speaker, and what is said of it."""

    attribute: str
    cardinality: Cardinality = "many"
    subject: str | None = None
    """None: the speaker."""
    value: str | int | float | None = None
    unit: str | None = None
    polarity: Polarity | None = None
    modality: Modality | None = None
    is_fact: bool = False
    """Whether it is about the person rather than about how to serve them."""
    is_lasting: bool = False
    """Outlives every task."""
    is_personal: bool = False


def topic_of(match: CueMatch, sentence: Sentence) -> ClaimTopic:
    """The topic of a wish."""
    stated = match.text_of("v", sentence.text) or match.text_of("w", sentence.text)
    about = match.start_of("o") if "o" in match.found.re.groupindex else match.found.start()
    cue = sentence.low[match.found.start() : min(match.found.end(), about + 12)]
    polarity: Polarity = "negative" if _NEGATIVE.search(cue) else "positive"
    modality = _modality(match, cue)
    attribute = match.attribute
    if attribute in ("favorite", "preferred"):
        return _of_kind(match, sentence, attribute, stated)
    if attribute is not None:
        value = None if stated is None else value_for(attribute, stated)
        return ClaimTopic(
            attribute=attribute,
            cardinality="one" if attribute in ONE else "many",
            value=value,
            polarity="negative" if attribute == "name" and polarity == "negative" else "positive",
            modality=None if attribute in FACTS else modality,
            is_fact=attribute in FACTS,
            is_lasting=attribute in LASTING,
            is_personal=attribute in LASTING,
        )
    return _of_object(sentence, about, match.found.end(), polarity, modality)


def _modality(match: CueMatch, cue: str) -> Modality:
    if match.label in ("standing", "complaint"):
        if _MUST_NOT.search(cue):
            return "must_not"
        if _MUST.search(cue):
            return "must"
    return "should"


def _of_kind(match: CueMatch, sentence: Sentence, family: str, stated: str | None) -> ClaimTopic:
    """``my favourite EDITOR is Helix``: the kind names the slot, the value fills it."""
    kind = (match.text_of("t", sentence.low) or "").removeprefix("首选").removeprefix("默认").strip("的 ")
    head = stem(kind.split()[-1]) if kind.isascii() and kind else kind
    head = "color" if head in ("colour", "颜色") else head
    attribute = f"favorite:{head or 'thing'}" if family == "favorite" else head or "preference"
    return ClaimTopic(
        attribute=attribute,
        cardinality="one",
        value=None if stated is None else value_of(stated),
        polarity="positive",
        modality="should",
        is_lasting=family == "favorite",
    )


def _of_object(sentence: Sentence, start: int, stop: int, polarity: Polarity, modality: Modality) -> ClaimTopic:
    region = sentence.low[start:stop]
    known = _known(region, sentence) or (_known(sentence.low, sentence) if modality != "should" else None)
    value: str | int | float | None
    if known is not None:
        attribute, value = known
        unit = None
    else:
        attribute, value = _headed(region, sentence)
        unit = None
    amount = _amount(sentence.text[start:stop]) if known is None or value is None else None
    if amount is not None:
        value, unit = amount
    cardinality: Cardinality = "one" if attribute in ONE else "many"
    return ClaimTopic(
        attribute=attribute, cardinality=cardinality, value=value, unit=unit, polarity=polarity, modality=modality
    )


def _known(region: str, sentence: Sentence) -> tuple[str, str | None] | None:
    """The first topic word of the region; of several at one place the longest."""
    for word in _PHRASE_WORD.findall(region):
        if (found := ENGLISH_TOPICS.get(word)) is not None:
            attribute, value, needs = found
            if not needs or needs & sentence.words:
                return attribute, value
    if sentence.has_chinese:
        best: tuple[int, int, str, str | None] | None = None
        for phrase, (attribute, value) in CHINESE_TOPICS.items():
            at = region.find(phrase)
            if at >= 0 and (best is None or (at, -len(phrase)) < best[:2]):
                best = (at, -len(phrase), attribute, value)
        if best is not None:
            return best[2], best[3]
    return None


def _headed(region: str, sentence: Sentence) -> tuple[str, str | None]:
    """``likes:HEAD`` and the words before the head."""
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


_TALK = frozenset(word for _, _, needs in ENGLISH_TOPICS.values() for word in needs)
_MANNER = frozenset(lists("claims").words("manner"))
"""Words of wishing and asking."""


def is_form_alone(topic: ClaimTopic, sentence: Sentence) -> bool:
    """Whether a wish says how answers are to be written and nothing besides.

    Then each word is about answers, about wishing, or a topic's: what claims something of the world has other words. A
    figure is the one that it wants. Of Chinese, which is not cut into words, it is one clause without a figure.
    """
    amounts = topic.value is not None and topic.unit is not None
    if topic.attribute not in FORM or len(typed_values(sentence.text)) > amounts:
        return False
    if sentence.has_chinese:
        return len(list(clause_spans(sentence.text.rstrip("。！!.")))) == 1
    about = ENGLISH_TOPICS.keys() | _TALK | _MANNER | _SKIPPED
    return all(word in about for word in _PHRASE_WORD.findall(sentence.low) if not word.isdigit())


def value_of(text: str) -> str:
    """A stated value in the form in which two compare: no quotes, no end mark, one blank between words."""
    return " ".join(text.strip(" \t\"'“”‘’「」.,!?。，！？；;").split())[:MAX_VALUE_CHARS] or text[:MAX_VALUE_CHARS]


def value_for(attribute: str, text: str) -> str:
    """`value_of` in one spelling where several are known: ``peanuts``, ``peanut``; ``法语``, ``French``."""
    value = value_of(text)
    for known, spelled, _ in filter(None, map(ENGLISH_TOPICS.get, value.lower().split())):
        if known == attribute and spelled:
            return spelled
    chinese = CHINESE_TOPICS.get(value)
    if chinese is not None and chinese[0] == attribute and chinese[1]:
        return chinese[1]
    return stem(value.lower()) if attribute == "allergy" and value.isascii() else value


def _amount(text: str) -> tuple[int | float, str | None] | None:
    """The one quantity it names; None for none or several."""
    found = [value for value in typed_values(text) if value.kind in ("quantity", "money", "percent")]
    if len(found) != 1:
        return None
    try:
        number = float(normalize(found[0].norm))
    except ValueError:
        return None
    if not abs(number) < 1e12:
        return None
    return int(number) if number == int(number) else number, found[0].unit or (
        "%" if found[0].kind == "percent" else None
    )
