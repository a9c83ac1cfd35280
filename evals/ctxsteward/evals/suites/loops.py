"""Turns of an agent: what it calls and what comes back, well-behaved and not.

    loops = Loops(rng, talk, phrasings)
    loops.play("parallel")       messages of one user turn, the user's first

Calls in a row and at once; answers late (behind the user's next words), never, wrong once and then right, the same as
before, far too large, with images beside. Ids are unique in a conversation but for the kind ``reused ids``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from random import Random

from ctxsteward.schemas import Wire

from . import pasted
from .talk import Talk, assistant, user
from .texts_agents import Phrasings

STEPS = (3, 12)
LONG_STEPS = (20, 60)
HUGE_ROWS = (300, 1_500)


class Loops:
    """Writes turns; remembers what tools gave back."""

    def __init__(self, rng: Random, talk: Talk, phrasings: Phrasings) -> None:
        self.rng, self.talk, self.phrasings = rng, talk, phrasings
        self.results: list[str] = []
        self._ids = 0
        self._kinds: dict[str, Callable[[], Iterator[Wire]]] = {
            "talk": self._talk, "single": lambda: self._loop(1), "parallel": self._parallel,
            "loop": lambda: self._loop(rng.randint(*STEPS)), "long loop": lambda: self._loop(rng.randint(*LONG_STEPS)),
            "retry": self._retry, "late": self._late, "never": self._never, "interrupted": self._interrupted,
            "huge": self._huge, "duplicate": self._duplicate, "images": self._images, "reused ids": self._reused,
        }  # fmt: skip

    @property
    def kinds(self) -> tuple[str, ...]:
        """What a turn may be."""
        return tuple(self._kinds)

    def play(self, kind: str) -> list[Wire]:
        """The messages of one turn."""
        return list(self._kinds[kind]())

    # -- turns ----------------------------------------------------------------------------------------------------

    def _talk(self) -> Iterator[Wire]:
        yield user(self.talk.user())
        yield assistant(self.talk.assistant())

    def _loop(self, steps: int) -> Iterator[Wire]:
        yield self._order()
        for _ in range(steps):
            yield from self._step(1 if self.rng.random() < 0.85 else self.rng.randint(2, 3))
        yield assistant(self.talk.assistant())

    def _parallel(self) -> Iterator[Wire]:
        yield self._order()
        yield from self._step(self.rng.randint(2, 5))
        yield assistant(self.talk.assistant())

    def _retry(self) -> Iterator[Wire]:
        """Errors, then the same call with success."""
        yield self._order()
        name, arguments, result = self._output()
        for _ in range(self.rng.randint(1, 3)):
            id = self._id()
            yield pasted.calls((id, name, arguments), text=self._says())
            yield self._answer(id, self.rng.choice(self.phrasings.errors).format(n=self.rng.randint(100, 9_999)))
        id = self._id()
        yield pasted.calls((id, name, arguments))
        yield self._answer(id, result)
        yield assistant(self.talk.assistant())

    def _late(self) -> Iterator[Wire]:
        """The user speaks before the answer is there."""
        yield self._order()
        ids, rows = self._calls(self.rng.randint(1, 3))
        yield pasted.calls(*((id, name, arguments) for id, (name, arguments, _) in zip(ids, rows, strict=True)))
        yield self._break()
        yield assistant(self.talk.assistant())
        yield from (self._answer(id, row.result) for id, row in zip(ids, rows, strict=True))
        yield assistant(self.talk.assistant())

    def _never(self) -> Iterator[Wire]:
        """Some of the calls are never answered; the next thing is the user's words, or the agent's."""
        yield self._order()
        ids, rows = self._calls(self.rng.randint(2, 4))
        yield pasted.calls(*((id, name, arguments) for id, (name, arguments, _) in zip(ids, rows, strict=True)))
        answered = self.rng.randint(0, len(ids) - 1)
        yield from (self._answer(id, row.result) for id, row in list(zip(ids, rows, strict=True))[:answered])
        if self.rng.random() < 0.5:
            yield self._break()
        yield assistant(self.talk.assistant())

    def _interrupted(self) -> Iterator[Wire]:
        """The user breaks into a loop, which goes on afterwards."""
        yield self._order()
        for _ in range(self.rng.randint(1, 4)):
            yield from self._step(1)
        yield self._break()
        for _ in range(self.rng.randint(1, 4)):
            yield from self._step(1)
        yield assistant(self.talk.assistant())

    def _huge(self) -> Iterator[Wire]:
        yield self._order()
        yield from self._step(1, rows=self.rng.randint(*HUGE_ROWS))
        yield from self._step(1)
        yield assistant(self.talk.assistant())

    def _duplicate(self) -> Iterator[Wire]:
        """What a tool gave before, again, word for word."""
        yield self._order()
        name, arguments, result = self._output()
        again = self.rng.choice(self.results[-20:]) if self.results and self.rng.random() < 0.5 else result
        for _ in range(self.rng.randint(2, 3)):
            id = self._id()
            yield pasted.calls((id, name, arguments), text=self._says())
            yield self._answer(id, again)
        yield assistant(self.talk.assistant())

    def _images(self) -> Iterator[Wire]:
        text = {"type": "text", "text": self.talk.user()}
        yield {"role": "user", "content": [text, *(self._image() for _ in range(self.rng.randint(1, 2)))]}
        if self.rng.random() < 0.5:
            yield from self._step(1)
        yield assistant(self.talk.assistant())

    def _reused(self) -> Iterator[Wire]:
        """An agent that numbers its calls anew each time."""
        yield self._order()
        for _ in range(2):
            name, arguments, result = self._output()
            yield pasted.calls(("call_1", name, arguments))
            yield self._answer("call_1", result)
        yield assistant(self.talk.assistant())

    # -- parts ----------------------------------------------------------------------------------------------------

    def _order(self) -> Wire:
        order = self.rng.choice(self.phrasings.orders).format(thing=self.rng.choice(self.talk.subject.things))
        where = self.rng.choice(self.phrasings.where).format(path=pasted.path_of(self.rng))
        form = self.rng.random()
        return user(self.talk.join(self.talk.user() if form < 0.4 else "", order, where if form > 0.3 else ""))

    def _break(self) -> Wire:
        said = self.rng.choice(self.phrasings.breaks)
        return user(self.talk.join(said, self.talk.user() if self.rng.random() < 0.7 else ""))

    def _step(self, calls: int, rows: int | None = None) -> Iterator[Wire]:
        ids, outputs = self._calls(calls, rows)
        named = ((id, name, arguments) for id, (name, arguments, _) in zip(ids, outputs, strict=True))
        yield pasted.calls(*named, text=self._says())
        yield from (self._answer(id, row.result) for id, row in zip(ids, outputs, strict=True))

    def _calls(self, count: int, rows: int | None = None) -> tuple[list[str], list[pasted.Output]]:
        return [self._id() for _ in range(count)], [self._output(rows) for _ in range(count)]

    def _output(self, rows: int | None = None) -> pasted.Output:
        return self.talk.fresh(lambda: pasted.tool_output(self.rng, self.talk.subject.things, rows))

    def _says(self) -> str | None:
        return self.rng.choice(self.phrasings.steps) or None

    def _answer(self, id: str, result: str) -> Wire:
        self.results.append(result)
        return {"role": "tool", "tool_call_id": id, "content": result}

    def _id(self) -> str:
        self._ids += 1
        return f"call_{self._ids}_{self.rng.randrange(16**5):05x}"

    def _image(self) -> Wire:
        """A picture of some size; what is in it does not matter here."""
        head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
        size = self.rng.choice((64, 200, 512, 900)).to_bytes(4, "big") + self.rng.choice((64, 300, 768)).to_bytes(
            4, "big"
        )
        data = base64.b64encode(head + size + b"\x08\x06\x00\x00\x00" + self.rng.randbytes(60)).decode()
        return {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{data}", "detail": self.rng.choice(("low", "high"))},
        }
