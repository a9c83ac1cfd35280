"""Originals by speaker, and the words by which a model's line is compared with their sentences.

A line that a model wrote is never shown. `held_lines` shows the sentences of its sources that share most words with it.
`says` reports whether a line already says the same as a bullet of the rules, so that the bullet is not shown as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, StrictStr

from ctxsteward.language.clauses import agree, clauses, likeness
from ctxsteward.language.figures import figures
from ctxsteward.language.values import typed_values
from ctxsteward.language.words import STOP, lists, sentences, term_stem, terms
from ctxsteward.schemas import Bullet
from ctxsteward.schemas.frozen import FrozenModel
from ctxsteward.schemas.summary import LossKind, SourceMessage

Speaker = Literal["user", "assistant", "tool"]
Fault = Literal["cited", "words"]
"""cited: a line cites none of the given references. words: it matches no sentence of the originals that it cites."""

SAYS_THE_SAME = 0.8
"""Share of an extractive bullet's content words that a text must contain to say the same."""
MIN_LIKENESS = 0.4
"""Least likeness of two clauses whose signs are compared."""
MAX_BULLET_CHARS = 600
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ZH_FUNCTION = frozenset("的了是在和与也都就而及或之被把将给对从到于为以让使这那其个所则")
_LISTS = lists("speech")
_TALK = frozenset(term_stem(word) for name in ("acts", "users", "agents") for word in _LISTS.words(name))
_ZH_TALK = (*_LISTS.words("zh_users"), *_LISTS.words("zh_agents"), *_LISTS.words("zh_acts"))
_STOP_STEMS = frozenset(map(term_stem, STOP)) | STOP


class DraftBullet(FrozenModel):
    """One bullet of a model's reply."""

    text: Annotated[StrictStr, Field(min_length=1, max_length=4 * MAX_BULLET_CHARS)]
    cites: Annotated[list[Annotated[StrictStr, Field(max_length=20)]], Field(max_length=50)]
    said_by: Speaker
    kind: LossKind = "fact"


class DraftBullets(FrozenModel):
    """A model's reply as a list of bullets."""

    bullets: Annotated[list[DraftBullet], Field(max_length=200)]


@dataclass(frozen=True, slots=True)
class GroundingText:
    """An original, prepared for comparison with a model's line."""

    speaker: Speaker
    role: str
    """Role of the message; "tool" for results."""
    text: str
    said: tuple[tuple[str, str], ...]
    """Parts of the original as written: (role that said it, text)."""


def grounding_texts(messages: Sequence[SourceMessage]) -> dict[str, GroundingText]:
    """Return originals by reference. The speaker of tool results is "tool", whatever the role of their message."""
    return {item.ref: _read(item) for item in messages}


def _read(item: SourceMessage) -> GroundingText:
    message = item.message
    results = [("tool", result.text) for result in message.tool_results]
    calls = [("assistant", f"{call.name} {call.arguments}") for call in message.tool_calls]
    said = [(str(message.role), message.text), *results, *calls]
    speaker: Speaker = "user" if message.role == "user" and not results else "tool"  # a system message is no wish
    return GroundingText(
        speaker="assistant" if message.role == "assistant" and not results else speaker,
        role="tool" if results else message.role,
        text=unicodedata.normalize("NFC", "\n".join(text for _, text in said).strip()),
        said=tuple((role, text) for role, text in said if text.strip()),
    )


def spoken_words(text: str) -> frozenset[str]:
    """Return the content words of a text, and the single characters of scripts without blanks."""
    content = frozenset(term for term in terms(text) if term not in _STOP_STEMS)
    return content | frozenset(_WIDE.findall(text)) - _ZH_FUNCTION


def plain_words(text: str) -> frozenset[str]:
    """Return the spoken words without those for speakers and for the acts of asking and saying."""
    for word in _ZH_TALK:
        text = text.replace(word, " ")
    return spoken_words(text) - _TALK


def says(text: str, bullet: Bullet) -> bool:
    """Return whether a text says the same as a bullet: its values and figures, nearly all its words, the same signs."""
    words, said = spoken_words(bullet.text), spoken_words(text)
    return (
        len(words & said) >= SAYS_THE_SAME * len(words)
        and {value.norm for value in typed_values(bullet.text)} <= {value.norm for value in typed_values(text)}
        and set(figures(bullet.text)) <= set(figures(text))
        and _signs_hold(text, bullet.text)
        and _signs_hold(bullet.text, text)
    )


def _signs_hold(text: str, other: str) -> bool:
    """Return whether each clause has the sign of the most similar clause in `other`; among equals, one must agree."""
    parts = [other[span.start : span.stop] for span in sentences(other)] or [other]
    known = [clause for part in parts for clause in clauses(part)]
    for clause in clauses(text):
        scored = [(likeness(clause, near), near) for near in known]
        best = max((score for score, _ in scored), default=0.0)
        nearest = [near for score, near in scored if score >= max(best - 0.05, MIN_LIKENESS)]
        if nearest and not any(agree(((clause, near),)) for near in nearest):
            return False
    return True
