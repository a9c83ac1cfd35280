"""Generate small talk of users and assistants around a scenario's own messages: seeded, in two languages.

    talk = SmallTalk.of(draw)
    talk.user()             a question or remark of the scenario's subject
    talk.assistant()        a reply
    talk.tools()            an assistant message with calls, and their results, as a list of messages
    head(rng, language)     a small governed profile; `revised(rng, document)` is its next version

A conversation has two or three subjects of its split's pool and drifts from one to the next; its messages are a word, a
sentence, several paragraphs, a list, a table, code, a log, JSON (`pasted_content`). No scenario asks for small talk
later, and no long message repeats word for word if another can be drawn. The split of a draw decides the pool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Self, TypeVar

from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry

from ...canaries import normalize
from ...phrasings import SmallTalkPool, SmallTalkSubject, small_talk, table, texts
from . import pasted_content as pasted
from .suite import Draw, Language, Split

STAYS = 12
"""Messages on one subject before another may come up."""
TRIES = 12
"""Attempts to draw a new phrase without a value to avoid."""
SHORT_CHARS = 20
"""Texts up to this length may repeat."""
_SLOT = re.compile(r"\{(\w+)\}")
_T = TypeVar("_T")


@dataclass(slots=True)
class SmallTalk:
    """A source of small talk that remembers its own phrases."""

    random: Random
    language: Language
    pool: SmallTalkPool
    subjects: tuple[str, ...]
    split: Split = "docs"
    turn: int = 0
    avoid: Collection[str] = ()
    """Values that only the scenario's own messages may show."""
    _said: set[str] = field(default_factory=set)
    _at: int = 0
    _left: int = STAYS

    @classmethod
    def of(cls, draw: Draw, avoid: Collection[str] = ()) -> Self:
        rng = draw.random("talk")
        pool = small_talk(draw.language).of(draw.split)
        subjects = rng.sample(sorted(pool.subjects), rng.randint(2, 3))
        return cls(rng, draw.language, pool, tuple(subjects), draw.split, avoid=frozenset(map(normalize, avoid)))

    @property
    def subject(self) -> SmallTalkSubject:
        """Return the current subject."""
        return self.pool.subjects[self.subjects[self._at]]

    def user(self) -> str:
        """Return a user's question or remark."""
        self._drift()
        return self._new(lambda: self._remark() if self.random.random() < 0.88 else self._pasted())

    def assistant(self) -> str:
        """Return an assistant's reply."""
        return self._new(lambda: self.random.choices((self._reply, self._answer, self._pasted), (12, 73, 15))[0]())

    def tools(self) -> list[Wire]:
        """Return a tool call and its result; the caller adds the assistant's text."""
        self.turn += 1
        name, arguments, result = self.fresh(
            lambda: pasted.tool_output(self.random, self.subject.things, split=self.split)
        )
        call_id = f"call_{self.turn}_{self.random.randrange(16**6):06x}"
        return [pasted.calls((call_id, name, arguments)), answer(call_id, result)]

    def join(self, *sentences: str) -> str:
        """Join sentences; pasted content gets lines of its own."""
        parts = [sentence for sentence in sentences if sentence]
        between = "\n\n" if any("\n" in sentence for sentence in parts) else " " if self.language == "en" else ""
        return between.join(parts)

    def is_idle(self, text: str) -> bool:
        """Return whether a text holds no value of the scenario's own messages."""
        return not self._shows_any(text)

    # -- forms ----------------------------------------------------------------------------------------------------

    def _remark(self) -> str:
        opening, closing = self.random.choice(self.pool.openings), self.random.choice(self.pool.closings)
        text = self._filled(self.random.choice(self.subject.asks))
        return opening + (text if opening.endswith((": ", ", ")) else text[0].upper() + text[1:]) + closing

    def _answer(self) -> str:
        count = self.random.choice((1, 1, 1, 2, 2, 3))
        parts = self.random.sample(self.subject.answers, min(count, len(self.subject.answers)))
        texts = [self._filled(part) for part in parts]
        return "\n\n".join(texts) if count > 2 else self.join(*texts)

    def _reply(self) -> str:
        return self.random.choice(self.pool.replies)

    def _pasted(self) -> str:
        body = pasted.paste(self.random, self.subject.things, self.language, self.split)
        return f"{self.random.choice(self.pool.captions)}\n{body}"

    # -- choosing -------------------------------------------------------------------------------------------------

    def _drift(self) -> None:
        self._left -= 1
        if self._left <= 0 and self.random.random() < 0.4:
            self._at, self._left = (self._at + 1) % len(self.subjects), STAYS

    def _new(self, make: Callable[[], str]) -> str:
        text = self.fresh(make)
        if len(text) > SHORT_CHARS:
            self._said.add(text)
        return text

    def fresh(self, make: Callable[[], _T]) -> _T:
        """Call `make` until its result is new and shows no value to avoid, at most `TRIES` times."""
        for _ in range(TRIES):
            made = make()
            if str(made) not in self._said and not self._shows_any(str(made)):
                break
        return made

    def _shows_any(self, text: str) -> bool:
        shown = normalize(text)
        return any(value in shown for value in self.avoid)

    def _filled(self, template: str) -> str:
        thing = self.random.choice(self.subject.things)
        return _SLOT.sub(lambda match: thing if match[1] == "thing" else self._number(match[1]), template)

    def _number(self, slot: str) -> str:
        low, high = {"n1": (3, 9), "n2": (11, 59), "n3": (120, 980)}[slot]
        return str(self.random.randint(low, high))


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


def assistant(text: str) -> Wire:
    return {"role": "assistant", "content": text}


def answer(call_id: str, text: str) -> Wire:
    """Return the message with a tool's result."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def deck(rng: Random, names: Sequence[str]) -> Iterator[str]:
    """Yield names without end, each once before any repeats."""
    while True:
        yield from rng.sample(names, len(names))


# -- profiles ------------------------------------------------------------------------------------------------------


def head(rng: Random, language: Language, split: Split = "docs", *, meta: bool = True) -> ProfileDocument:
    """Make a small profile."""
    phrasings = {kind: texts("profiles", kind, language, split) for kind in table("profiles")}
    policies = [text.split(" | ") for text in rng.sample(phrasings["policies"], rng.randint(1, 3))]
    records = rng.sample(phrasings["records"], rng.randint(1, 2)) if meta else []
    return ProfileDocument(
        name="support",
        persona=(ProfileEntry(id="voice", text=rng.choice(phrasings["personas"])),),
        policies=tuple(ProfileEntry(id=id, text=text.format(n=rng.randint(5, 90))) for id, text in policies),
        rails=(ProfileEntry(id="safe", text=rng.choice(phrasings["rails"]), locked=True),),
        surface=(ProfileEntry(id="form", text=rng.choice(phrasings["surfaces"])),),
        meta=tuple(
            MetaRecord(
                id=f"r{at}", text=text.format(n=rng.randint(2, 40)), sources=(f"s-{rng.randint(1, 99)}§{at + 3}",)
            )
            for at, text in enumerate(records)
        ),
    )


def revised(rng: Random, document: ProfileDocument) -> ProfileDocument:
    """Return another version of a profile, with other words in one policy and in all records."""
    first, *rest = document.policies
    other = first.model_copy(update={"text": f"{first.text} ({rng.randint(100, 999)})"})
    records = tuple(
        record.model_copy(update={"text": f"{record.text} ({rng.randint(100, 999)})"}) for record in document.meta
    )
    return document.model_copy(update={"policies": (other, *rest), "meta": records})
