"""`held` shows a model's line as sentences of the originals it cites, in their own words.

A model reads well, but its text cannot be checked: of false lines composed of a source's own words, rules detect little
more than half. So the model only *points*. Its line selects sentences of the originals, and these are shown, each after
the name of its speaker unless that is a user. No text of a model is shown. An invention, a reversed statement, a wrong
date or a wrong speaker therefore selects the sentence that says it right, or none.

A line selects one or two sentences of the originals that it cites: the one that shares most with it, weighted towards
rare words, and one that covers much of the rest. Adjacent sentences are one line, others a line each. A sentence that
says little by itself ("45 days.", "It was approved."), or is inside a quotation that began earlier, is shown after its
neighbour or after the question that it answers. A long sentence keeps its first clause, clauses that share words with
the line, and clauses with a negation, a bound or a condition. An ellipsis ("…") marks each omission. The choice of
sentences is the model's judgement, and may be bad.

Source: extractive rationales in place of abstractive ones, as in Lehman et al. 2019 and DeYoung et al. 2020 (ERASER).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ctxsteward.language.operators import tokens
from ctxsteward.language.words import SentenceSpan, sentences, term_stem
from ctxsteward.schemas.summary import HandoffSection, LossKind

from ..bullets import ELLIPSIS, condensed, quote
from .grounding import DraftBullet, Fault, GroundingText, Speaker, plain_words, spoken_words

SHOWN_CHARS = 240
"""Most characters of a sentence; a longer one loses clauses. Five ninths of it for scripts without blanks."""
MIN_SHARED = 0.25
"""Least share of a line's words, by weight, in the sentence it selects; of the words left over, in a second one."""
FEW_WORDS = 2
"""Most content words of a sentence that says little by itself."""
RULES: frozenset[LossKind] = frozenset(("constraint", "decision", "preference"))
"""Kinds that only a user can set."""
_ENDS = ".!?。！？;；…\"'”’」』)"
_LABELLED = re.compile(r"\s*(?:system|developer|user|assistant|tool|model|human|ai)\s?[:：]", re.IGNORECASE)
_LEANS = re.compile(
    r"\W*(?:(?:it|this|that|these|those|they|he|she|him|her|them|yes|no|not|so|then|there|otherwise|but|and|or)\b"
    r"|[它这那他她是不否好])",
    re.IGNORECASE,
)
"""Beginning of a sentence that continues another one."""
_UNSEEN = re.compile(
    r"[§\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]+"
)
_MARKS = re.compile(f"{ELLIPSIS}(?:\\s?{ELLIPSIS})+")
_NAMED = re.compile(r"([A-Z][\w.-]{1,19}(?: [A-Z][\w.-]{0,19})?|[\u3400-\u9fff]{2,4})[:：]\s?")
_OPENS, _CLOSES = (
    re.compile(r"[“「『]|(?:^|[\s(:：])['‘](?=\w)"),
    re.compile(r"[”」』]|(?<=[\w.,!?])['’](?=[\s.,;)]|$)"),
)
_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:['’._/:@-]+[^\W_]+)*")


class HeldLine(NamedTuple):
    """One line shown for a model's line."""

    text: str
    refs: tuple[str, ...]
    roles: frozenset[str]
    """Roles of its speakers."""


class HeldLines(NamedTuple):
    """Lines in the order of the conversation, and the fault of the model's line."""

    lines: tuple[HeldLine, ...]
    fault: Fault | None = None


class _ToldSentence(NamedTuple):
    """A sentence as written."""

    role: str
    """Role of its speaker."""
    text: str
    words: frozenset[str]
    leans: bool
    """Whether it says little without the sentence before it."""


class _Sentence(NamedTuple):
    ref: str
    order: int
    """Index among the sentences of all cited originals."""
    told: _ToldSentence


def held(draft: DraftBullet, sources: Mapping[str, GroundingText]) -> HeldLines:
    """Return the lines to show for a draft; `sources` by reference, in the order of the conversation.

    There are no lines if the draft cites no given reference, or matches no sentence.
    """
    cites = set(draft.cites)
    cited = list(_numbered({ref: source for ref, source in sources.items() if ref in cites}))
    if not cited:
        return HeldLines((), "cited")
    spread = Counter(word for sentence in cited for word in sentence.told.words)
    said = plain_words(draft.text) or spoken_words(draft.text)
    weights = {word: 1 / max(1, spread[word]) ** 0.5 for word in said}
    first = _nearest(cited, weights, draft.said_by)
    if first is None:
        return HeldLines((), "words")
    rest = {word: weight for word, weight in weights.items() if word not in first.told.words}
    second = _nearest([one for one in cited if one != first], rest, draft.said_by) if rest else None
    if second is not None and len(rest.keys() & second.told.words) < FEW_WORDS:
        second = None
    parts = [[*_before(one, cited, sources), one] for one in (first, second) if one is not None]
    parts.sort(key=lambda part: part[-1].order)
    if len(parts) == 2 and parts[0][-1].ref == parts[1][-1].ref and parts[1][-1].order == parts[0][-1].order + 1:
        parts = [[*parts[0], parts[1][-1]]]  # adjacent
    names = _names(sources)
    shown = [_shown(part, frozenset(weights), names) for part in parts]
    lines = tuple(line for line in shown if line is not None)
    return HeldLines(lines, None if lines else "words")


def section_of(section: HandoffSection, line: HeldLine, kind: LossKind) -> HandoffSection:
    """Correct a section by its speakers: intent is the user's and is no state; tools alone decide and await nothing."""
    if section == "intent" and "user" not in line.roles:
        return "state"
    if section == "state" and kind in RULES and "user" in line.roles:
        return "intent"
    is_told = line.roles.isdisjoint(("user", "assistant")) and section in ("decisions", "pending")
    return "technical" if is_told else section


def _nearest(cited: Sequence[_Sentence], weights: Mapping[str, float], said_by: Speaker) -> _Sentence | None:
    """Return the sentence with most of the words; among equals one of the named speaker, then the shortest."""
    best: _Sentence | None = None
    most = (0.0, False, 0)
    least = max(MIN_SHARED * sum(weights.values()), 1e-6)
    for sentence in cited:
        told = sentence.told
        shared = round(sum(weights[word] for word in told.words & weights.keys()), 6)
        rank = (shared, told.role == said_by, -len(told.text))
        if rank > most and shared >= least:
            best, most = sentence, rank
    return best


def _before(one: _Sentence, cited: Sequence[_Sentence], sources: Mapping[str, GroundingText]) -> list[_Sentence]:
    """Return the sentence that one with little content needs before it: its neighbour, or the question it answers."""
    if not one.told.leans:
        return []
    here = [other for other in cited if other.ref == one.ref and other.order == one.order - 1]
    if here:
        return here
    refs = list(sources)
    at = refs.index(one.ref)
    asked = list(_numbered({refs[at - 1]: sources[refs[at - 1]]}))[-1:] if at else []
    return [other._replace(order=-1) for other in asked if other.told.text.endswith(("?", "？"))]


def _shown(chosen: Sequence[_Sentence], wanted: frozenset[str], names: Mapping[str, str]) -> HeldLine | None:
    parts: list[str] = []
    before = ""
    for sentence in chosen:
        told = sentence.told
        text = _cut(told.text, wanted)
        if not any(char.isalnum() for char in text):
            continue
        name = names.get(sentence.ref, "") if told.role == "user" else told.role
        if told.role == "user" and (_LABELLED.match(text) or (before and not name)):
            name = "user"  # it begins like another's label, or follows another's words
        is_said = name == before or (told.role == "user" and bool(name) and text.startswith((f"{name}:", f"{name}：")))
        parts.append(text if is_said or not name else f"{name}: {text}")
        before = name
    if not parts:
        return None
    refs = tuple(dict.fromkeys(sentence.ref for sentence in chosen))
    return HeldLine(ELLIPSIS.join(parts), refs, frozenset(sentence.told.role for sentence in chosen))


def _names(sources: Mapping[str, GroundingText]) -> dict[str, str]:
    """Return the names that begin users' messages ("Ana: …") by reference, if most messages begin with a name."""
    users = {ref: one.text for ref, one in sources.items() if one.role == "user"}
    found = {ref: match[1] for ref, text in users.items() if (match := _NAMED.match(text))}
    return found if len(set(found.values())) > 1 and 2 * len(found) >= len(users) else {}


def _cut(text: str, wanted: frozenset[str]) -> str:
    """Return a sentence on one line. A long one loses clauses without a wanted word, negation, bound or condition."""
    limit = SHOWN_CHARS if text.isascii() else SHOWN_CHARS * 5 // 9
    if len(text) > limit:
        shown = condensed(text, [SentenceSpan(0, 1), *_telling(text, wanted)], limit)
        text = shown if shown.endswith(text[-8:]) else shown + ELLIPSIS
    return _MARKS.sub(ELLIPSIS, _UNSEEN.sub(ELLIPSIS, quote(text)))


def _telling(text: str, wanted: frozenset[str]) -> Iterator[SentenceSpan]:
    for match in _RUN.finditer(text):
        if term_stem(match[0].casefold()) in wanted or match[0] in wanted:
            yield SentenceSpan(match.start(), match.end())
    widened = len(unicodedata.normalize("NFKC", text)) - len(text)
    for token in tokens(text):
        operator = token.operator
        if operator is not None and (operator.sign < 0 or operator.opens or operator.modality):
            yield SentenceSpan(token.start - max(0, widened), token.stop - min(0, widened))


def _numbered(cited: Mapping[str, GroundingText]) -> Iterator[_Sentence]:
    order = 0
    for ref, one in cited.items():
        for told in _told(one.said):
            yield _Sentence(ref, order, told)
            order += 1


@lru_cache(maxsize=512)
def _told(said: tuple[tuple[str, str], ...]) -> tuple[_ToldSentence, ...]:
    return tuple(sentence for role, text in said for sentence in _sentences(role, text))


def _sentences(role: str, text: str) -> Iterator[_ToldSentence]:
    spans = [*_spans(text)]
    quoted = straight = stop_before = 0
    for number, (start, stop) in enumerate(spans):
        quoted += len(_OPENS.findall(text, stop_before, start)) - len(_CLOSES.findall(text, stop_before, start))
        straight += text.count('"', stop_before, start)
        part, begins, ends = text[start:stop], _is_broken(text, spans, number), _is_broken(text, spans, number + 1)
        words, named = spoken_words(part), _NAMED.match(part)
        few = len(words - spoken_words(named[1] if named else "")) <= FEW_WORDS
        leans = few or quoted > 0 or straight % 2 == 1 or _LEANS.match(part) is not None
        quoted = max(0, quoted + len(_OPENS.findall(text, start, stop)) - len(_CLOSES.findall(text, start, stop)))
        yield _ToldSentence(role, ELLIPSIS * begins + part + ELLIPSIS * ends, words, leans)
        straight, stop_before = straight + text.count('"', start, stop), stop


def _spans(text: str) -> Iterator[SentenceSpan]:
    """Yield sentences, each with a mark before it that makes it a quote, a task or negative. Sentences separated by a
    semicolon stay one while they are short."""
    before: SentenceSpan | None = None
    for span in sentences(text):
        start, since = span.start, before.stop if before is not None else 0
        lead = text[max(since, text.rfind("\n", 0, start) + 1) : start].lstrip()
        if lead and (">" in lead or "[" in lead or lead[-1] in "-+"):
            start -= len(lead)
        is_half = before is not None and text[before.stop - 1] in ";；" and "\n" not in text[before.stop : start]
        if is_half and before is not None and span.stop - before.start <= SHOWN_CHARS:
            before = SentenceSpan(before.start, span.stop)
            continue
        if before is not None:
            yield before
        before = SentenceSpan(start, span.stop)
    if before is not None:
        yield before


def _is_broken(text: str, spans: Sequence[SentenceSpan], number: int) -> bool:
    """Return whether a span continues the sentence of the span before it, which was too long."""
    if not 0 < number < len(spans):
        return False
    between = text[spans[number - 1].stop : spans[number].start]
    return not between.strip() and "\n" not in between and text[spans[number - 1].stop - 1] not in _ENDS
