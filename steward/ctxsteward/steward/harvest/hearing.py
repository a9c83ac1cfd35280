# ruff: noqa: E501  -- a pattern reads better in one line than wrapped
"""What people say in a transcript, sentence by sentence: whose it is, where it stands, which question it answers.

Only people are heard: user messages, and both speakers where two people talk (`PEOPLE_FORMATS`). Tool and system text
is never heard, an assistant's only as the question that a person answers. A transcript is read once for all
harvesters. Places are byte ranges of the UTF-8 text of a message.

Source: the state design (trust: no record rests on tool text).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from ctxsteward.summarizers.sentences import sentences

from ..observation import Place
from ..replayed import Replayed, Utterance
from .masking import heard as mask_foreign_text
from .wordlists import listed

PEOPLE_FORMATS = frozenset(("locomo",))
"""Formats in which the assistant's role is a person's too."""
TASK_FORMATS = frozenset(("tau-bench", "swe-agent"))
"""Formats in which an assistant works for the person, whether it called a tool or not."""
MAX_SPOKEN_CHARS = 1_500
MAX_SPOKEN_LINES = 20
"""A longer message is a document: nothing in it is a wish that needs no company."""
MAX_ASKED_CHARS = 200

_WORD = re.compile(r"[a-z][a-z'-]*[a-z]|[a-z]|\d[\d.,:/-]*")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_CAPTION = "[image: "
_NAME = re.compile(r"([A-Z][a-z]{1,20}(?: [A-Z][a-z]{1,20}){0,2}):\s")
_A_NAME = re.compile(r"[^\W_][\w .'’·-]{0,39}")
_ROLES = listed("system assistant user tool developer function operator human")
_QUESTION = re.compile(r"[?？][^\w?？]*$")
_ASKING = re.compile(
    r"(?:(?:so|and|but|or|ok|okay|well|hi|hey|please)[, ]+)*"
    r"(?:(?:do|does|did|is|are|was|were|can|could|would|will|should|shall|have|has|may|might) "
    r"(?:i|you|we|they|he|she|it|there|this|that|the|my|your|anyone|people)\b"
    r"|what (?:happens|is|are|do|does|did|would|if|about|was|will|should|can)\b|(?:why|how|who|whose|where|which) (?!about\b|i prefer|i like))"
)
_ASKING_CHINESE = re.compile(r"(?:吗|呢|么|没有|对不对|好不好|行不行|是不是)[\s。.!！~～]*$")
_DRAFTERS = listed("write draft compose make tell create pretend role-play roleplay role act imagine now let's")
_DRAFTING = re.compile(
    r"\b(?:write|draft|compose|make up|tell me|create) (?:me |us )?(?:an?|the) (?:[\w-]+ ){0,3}"
    r"(?:story|poem|song|letter|email|e-mail|mail|message|essay|script|dialogue|scene|post|review|speech|tweet|joke|persona|prompt|character)\b"
    r"|\b(?:pretend|role-?play|act as|imagine (?:you|that you)|you are now|let's play)\b"
    r"|(?:写|编|拟|起草|创作|来)(?:一)?[个篇封首段份条](?:[\u3400-\u9fff]{0,8})(?:故事|诗|歌|信|邮件|短信|文章|剧本|对话|演讲|帖子|评论|笑话|台词|提示词|人设)"
    r"|(?:假装|扮演|假扮|角色扮演|你现在是|想象你)",
    re.IGNORECASE,
)


class Sentence(NamedTuple):
    """One sentence that a person said."""

    said: Utterance
    text: str
    """As written."""
    heard: str
    """The same length, with what is quoted blanked."""
    low: str
    """`heard` in lower case, apostrophes straight; the same length."""
    words: frozenset[str]
    """Of `low`; Chinese has none."""
    first_byte: int
    is_question: bool
    has_chinese: bool
    is_plain: bool
    """Said in a message of talk, not inside a document, a draft or a role that somebody plays."""
    asked: str | None
    """The question that this message answers."""

    def place(self, start: int = 0, stop: int | None = None) -> Place:
        """Byte range of these characters of the sentence."""
        text = self.text
        if text.isascii():
            first = self.first_byte + start
            return Place(self.said.ref, first, self.first_byte + len(text if stop is None else text[:stop]))
        first = self.first_byte + len(text[:start].encode())
        return Place(self.said.ref, first, first + len(text[start:stop].encode()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A transcript as it is heard."""

    replayed: Replayed
    sentences: tuple[Sentence, ...]
    between_people: bool
    is_task: bool
    """An assistant works for the person here: most wishes are of this task alone."""


def listen(replayed: Replayed) -> Conversation:
    """Hear a transcript once."""
    people = replayed.format in PEOPLE_FORMATS
    found: list[Sentence] = []
    before: Utterance | None = None
    for said in replayed.utterances:
        said = _named(said) if people else said
        if _is_heard(said, people):
            found.extend(_sentences(said, _question_before(before, said)))
        before = said
    is_task = replayed.format in TASK_FORMATS or any(said.role == "tool" or said.calls for said in replayed.utterances)
    return Conversation(replayed=replayed, sentences=tuple(found), between_people=people, is_task=is_task)


def _named(said: Utterance) -> Utterance:
    """With the name that its text begins with, where its transcript gives none beside it."""
    if said.speaker or said.role not in ("user", "assistant") or not (name := _NAME.match(said.text)):
        return said
    return replace(said, speaker=name[1])


def speaker_of(said: Utterance) -> str | None:
    """The name that stands for "I"."""
    return _name_in(said.speaker) if said.speaker else None


@lru_cache(maxsize=256)
def _name_in(speaker: str) -> str | None:
    name = " ".join(speaker.split())
    return name if _A_NAME.fullmatch(name) and name.lower() not in _ROLES else None


def _is_heard(said: Utterance, people: bool) -> bool:
    if said.role == "user":
        return said.trust in ("operator", "user")
    return people and said.role == "assistant" and said.trust in ("user", "assistant") and said.speaker is not None


def _question_before(before: Utterance | None, said: Utterance) -> str | None:
    """The last question of the message before, if somebody else asked it at the same sitting."""
    if (
        before is None
        or before.role not in ("user", "assistant")
        or ("?" not in before.text and "？" not in before.text)
    ):
        return None
    if (before.role, before.speaker) == (said.role, said.speaker) or _days_apart(before, said):
        return None
    asked = " ".join(reversed(list(_questions(before.text))))
    return " ".join(asked.split())[-MAX_ASKED_CHARS:] or None


def _days_apart(before: Utterance, said: Utterance) -> bool:
    return before.ts is not None and said.ts is not None and before.ts[:10] != said.ts[:10]


def _questions(text: str) -> Iterator[str]:
    """The last two questions of a text, the last one first."""
    stop = len(text)
    for _ in range(2):
        stop = max(text.rfind("?", 0, stop), text.rfind("？", 0, stop))
        if stop < 0:
            return
        start = 1 + max(text.rfind(mark, max(0, stop - MAX_ASKED_CHARS), stop) for mark in ".!?\n。！？")
        start = max(start, stop - MAX_ASKED_CHARS)
        if stop - start > 2:
            yield text[start : stop + 1]
        stop = start


def _sentences(said: Utterance, asked: str | None) -> Iterator[Sentence]:
    text = said.text
    start, stop = _spoken(said)
    own = mask_foreign_text(text[start:stop])
    is_plain = stop - start <= MAX_SPOKEN_CHARS and own.count("\n") < MAX_SPOKEN_LINES
    at, byte, is_ascii = 0, 0, text.isascii()
    for first, last in sentences(own):
        begin, end = start + first, start + last
        byte += begin - at if is_ascii else len(text[at:begin].encode())
        at = begin
        mine = own[first:last]
        low = _lowered(mine)
        words = frozenset(_WORD.findall(low))
        has_chinese = not is_ascii and _CHINESE.search(low) is not None
        if not words and not has_chinese:
            continue
        if is_plain and (has_chinese or not words.isdisjoint(_DRAFTERS)) and _DRAFTING.search(mine):
            is_plain = False
        is_question = _is_question(low, has_chinese)
        yield Sentence(
            said, text[begin:end], mine, low, words, byte, is_question, has_chinese, is_plain, asked
        )  # fmt: skip


def _spoken(said: Utterance) -> tuple[int, int]:
    """Where the words are: not the name before them, nor an image's caption behind them."""
    text, start, stop = said.text, 0, len(said.text)
    if said.speaker and text.startswith(said.speaker + ":"):
        start = len(said.speaker) + 1
    if text.endswith("]") and (caption := text.rfind(_CAPTION, start)) >= 0:
        stop = caption
    return start, stop


def _lowered(text: str) -> str:
    low = text.lower().replace("’", "'")
    return low if len(low) == len(text) else text


def _is_question(low: str, has_chinese: bool) -> bool:
    if (("?" in low or "？" in low) and _QUESTION.search(low)) or _ASKING.match(low):
        return True
    return has_chinese and _ASKING_CHINESE.search(low) is not None
