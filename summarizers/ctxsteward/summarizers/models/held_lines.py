"""`held`: what is shown for a line that a model wrote: what its originals say about it, in their own words.

A model reads well and writes what nobody can check: of false lines made of a source's own words the rules of
`grounding` find little more than half. So by default a model *points*. Its line says which sentences matter; shown are
those sentences, each behind the name of who said it where that is no user. Nothing that a model writes is then shown at
all: what it invents, turns round, dates wrongly or puts in another's mouth points at the sentence that says it right,
or at nothing.

Taken are one or two sentences of the originals that a line cites: the one that shares most with it, rare words counting
more, and another that says much of the rest. Both are one line where they stand in one message, and else a line each.
Before one that says little by itself ("45 days."), or stands in a quotation that began before it, stands its neighbour,
or the question that it answers. A long one
keeps the clauses that share words with the line, and those that deny, bound or make conditions; a mark says where
something is left out. Which sentence matters is the model's judgement, and that may be bad.

With `words="model"` a line that passes the checks of `grounding` is shown as the model wrote it: shorter, and not safe.

Source: extractive rationales in place of abstractive ones, as in Lehman et al. 2019 and DeYoung et al. 2020 (ERASER).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from ctxsteward.language import SentenceSpan, term_stem, tokens
from ctxsteward.schemas import HandoffSection

from ..bullets import ELLIPSIS, condensed, quote, without_opening
from .grounding import MIN_IN_SENTENCE, DraftBullet, Fault, GroundingText, Speaker, fault_of, plain_words, spoken_words

Words = Literal["source", "model"]
"""Whose words a line is shown in."""
SHOWN_CHARS = 240
"""Of a sentence; of a longer one clauses are left out. Scripts without blanks: five ninths."""
MIN_SHARED = 0.25
"""Of a line's words by their weight, in the sentence it points at; of its other words, in a second one."""
FEW_WORDS = 2
"""Of a sentence that says little by itself."""
_NAMED = re.compile(r"([A-Z][\w.-]{1,19}(?: [A-Z][\w.-]{0,19})?|[\u3400-\u9fff]{2,4})[:：]\s?")
_OPENS, _CLOSES = (
    re.compile(r"[“「『]|(?:^|[\s(:：])['‘](?=\w)"),
    re.compile(r"[”」』]|(?<=[\w.,!?])['’](?=[\s.,;)]|$)"),
)
_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:['’._/:@-]+[^\W_]+)*")


class HeldLine(NamedTuple):
    """What is shown for a model's line."""

    text: str
    refs: tuple[str, ...]
    roles: frozenset[str]
    """Of those who said it."""


class HeldLines(NamedTuple):
    """Lines, in the order of the conversation, and what is wrong with the model's."""

    lines: tuple[HeldLine, ...]
    words: Words
    fault: Fault | None = None


class _Sentence(NamedTuple):
    ref: str
    role: str
    order: int
    """In all that is cited."""
    text: str
    words: frozenset[str]


def held(draft: DraftBullet, sources: Mapping[str, GroundingText], words: Words = "source") -> HeldLines:
    """What is shown for a draft; `sources` by reference, in the order of the conversation.

    Without lines where it cites nothing that it was given, or points at nothing.
    """
    if words == "source":
        return _pointed(draft, sources)
    fault, refs = fault_of(draft, sources)
    if fault is not None:
        return _pointed(draft, sources)._replace(fault=fault)
    refs = _supporting(draft, refs, sources)
    text = unicodedata.normalize("NFC", draft.text).strip()
    return HeldLines((HeldLine(text, refs, frozenset(sources[ref].role for ref in refs)),), "model")


def section_of(section: HandoffSection, line: HeldLine) -> HandoffSection:
    """What the user wants is the user's to say, and what a tool says is nothing that was settled or is open."""
    if section == "intent" and "user" not in line.roles:
        return "state"
    is_told = line.roles.isdisjoint(("user", "assistant")) and section in ("decisions", "pending")
    return "technical" if is_told else section


def _supporting(draft: DraftBullet, refs: Sequence[str], sources: Mapping[str, GroundingText]) -> tuple[str, ...]:
    """Of a bullet's references, those whose originals share a good part of its words; all, if it needs all to hold."""
    words = spoken_words(draft.text)
    shares = {ref: len(words & spoken_words(sources[ref].text)) for ref in refs}
    kept = tuple(ref for ref in refs if shares[ref] >= MIN_IN_SENTENCE * len(words))
    holds = bool(kept) and fault_of(draft, {ref: sources[ref] for ref in kept})[0] is None
    return kept if holds else tuple(refs)


def _pointed(draft: DraftBullet, sources: Mapping[str, GroundingText]) -> HeldLines:
    cites = set(draft.cites)
    cited = list(_numbered({ref: source for ref, source in sources.items() if ref in cites}))
    if not cited:
        return HeldLines((), "source", "cited")
    names = _names(sources)
    spread = Counter(word for sentence in cited for word in sentence.words)
    said = plain_words(draft.text) or spoken_words(draft.text)
    weights = {word: 1 / max(1, spread[word]) ** 0.5 for word in said}
    first = _nearest(cited, weights, draft.said_by)
    if first is None:
        return HeldLines((), "source", "words")
    rest = {word: weight for word, weight in weights.items() if word not in first.words}
    second = _nearest([one for one in cited if one != first], rest, draft.said_by) if rest else None
    chosen = [first]
    if second is not None and len(rest.keys() & second.words) >= FEW_WORDS:
        chosen.append(second)
    elif len(first.words - spoken_words(names.get(first.ref, ""))) <= FEW_WORDS or _is_quoted(first, sources):
        chosen += _before(first, cited, sources)
    chosen.sort(key=lambda one: one.order)
    together = len({one.ref for one in chosen}) == 1 or chosen[0].order < 0
    parts = [chosen] if together else [[one] for one in chosen]
    shown = [_shown(part, frozenset(weights), names) for part in parts]
    lines = tuple(line for line in shown if line is not None)
    return HeldLines(lines, "source", None if lines else "words")


def _nearest(cited: Sequence[_Sentence], weights: Mapping[str, float], said_by: Speaker) -> _Sentence | None:
    """The sentence that has most of the words; of equals one of the speaker it names, then the shortest."""
    best: _Sentence | None = None
    most = (0.0, False, 0)
    for sentence in cited:
        shared = round(sum(weights[word] for word in sentence.words & weights.keys()), 6)
        rank = (shared, sentence.role == said_by, -len(sentence.text))
        if rank > most and shared >= max(MIN_SHARED * sum(weights.values()), 1e-6):
            best, most = sentence, rank
    return best


def _before(first: _Sentence, cited: Sequence[_Sentence], sources: Mapping[str, GroundingText]) -> list[_Sentence]:
    """What a sentence that says little stands behind: its neighbour, or what it answers."""
    here = [one for one in cited if one.ref == first.ref and one.order < first.order]
    if here:
        return here[-1:]
    refs = list(sources)
    at = refs.index(first.ref)
    if not at:
        return []
    asked = list(_numbered({refs[at - 1]: sources[refs[at - 1]]}))[-1:]
    return [one._replace(order=-1) for one in asked if one.text.endswith(("?", "？"))]


def _is_quoted(sentence: _Sentence, sources: Mapping[str, GroundingText]) -> bool:
    """Whether a quotation that began before a sentence has not ended where it begins."""
    text = sources[sentence.ref].text
    before = text[: max(0, text.find(sentence.text))]
    opened = len(_OPENS.findall(before)) - len(_CLOSES.findall(before))
    return opened > 0 or before.count('"') % 2 == 1


def _shown(chosen: Sequence[_Sentence], wanted: frozenset[str], names: Mapping[str, str]) -> HeldLine | None:
    parts: list[str] = []
    speaker = "user"
    for sentence in chosen:
        text = _cut(sentence.text, wanted)
        if not any(char.isalnum() for char in text):
            continue
        named = names.get(sentence.ref, sentence.role)
        parts.append(text if named == speaker or text.startswith(named) else f"{named}: {text}")
        speaker = named
    if not parts:
        return None
    refs = tuple(dict.fromkeys(sentence.ref for sentence in chosen))
    return HeldLine(ELLIPSIS.join(parts), refs, frozenset(sentence.role for sentence in chosen))


def _names(sources: Mapping[str, GroundingText]) -> dict[str, str]:
    """Of messages that begin with one, the name of who said it, where several have names ("Ana: …", "Bo: …")."""
    found = {ref: match[1] for ref, one in sources.items() if (match := _NAMED.match(one.text))}
    return found if len(set(found.values())) > 1 else {}


def _cut(text: str, wanted: frozenset[str]) -> str:
    """A sentence on one line; a long one without clauses that share nothing with what is wanted and bind nothing."""
    limit = SHOWN_CHARS if text.isascii() else SHOWN_CHARS * 5 // 9
    if len(text) > limit:
        shown = condensed(text, [*_telling(text, wanted)], limit)
        text = shown if shown.endswith(text[-8:]) else shown + ELLIPSIS
    return quote(without_opening(text))


def _telling(text: str, wanted: frozenset[str]) -> Iterator[SentenceSpan]:
    for match in _RUN.finditer(text):
        if term_stem(match[0].casefold()) in wanted or match[0] in wanted:
            yield SentenceSpan(match.start(), match.end())
    for token in tokens(text):  # where characters change their width these are off by some: more is kept, or less
        operator = token.operator
        if operator is not None and (operator.sign < 0 or operator.opens or operator.modality):
            yield SentenceSpan(token.start, token.stop)


def _numbered(cited: Mapping[str, GroundingText]) -> Iterator[_Sentence]:
    order = 0
    for ref, one in cited.items():
        before: _Sentence | None = None
        for text, words in one.sentences:
            both = "" if before is None else before.text + ("" if before.text.endswith("；") else " ") + text
            if before is not None and before.text[-1] in ";；" and len(both) <= SHOWN_CHARS and both in one.text:
                before = before._replace(text=both, words=before.words | words)
                continue
            if before is not None:
                yield before
            before = _Sentence(ref, one.role, order, text, words)
            order += 1
        if before is not None:
            yield before
