"""Where a value of an argument came from: an earlier answer of another tool, the user, or nobody we can name.

An index of the words of answers and of the user's messages, made once and only where there was an error: linear in
the transcript. A value of several words is where all of them are. Short numbers and short words are everywhere, so
they come from nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from ..replayed import Replayed
from .tool_calls import Leaf, Step, is_tool

MIN_CHARS = 3
REDACTED = "[redacted:"
"""A value of which a part was taken out comes from nobody."""
MAX_PLACES = 64
_TOKEN = re.compile(r"[^\W_](?:[\w@.+-]*[^\W_])?")


class Origin(NamedTuple):
    """Who gave a value."""

    kind: Literal["tool", "user"]
    tool: str | None
    is_new: bool
    """After the failure."""


class Sources:
    """The words of a transcript and who said them; build it once for one transcript."""

    def __init__(self, replayed: Replayed, steps: Sequence[Step]) -> None:
        self._tools = {step.answered: step.tool for step in steps if step.works and is_tool(step.tool)}
        self._places: dict[str, list[int]] = {}
        for index, said in enumerate(replayed.utterances):
            if said.role == "user" or index in self._tools:
                for token in set(_tokens(said.text)):
                    places = self._places.setdefault(token, [])
                    if len(places) < MAX_PLACES:
                        places.append(index)

    def origin(self, value: Leaf, *, failed: int, worked: int, tool: str) -> Origin | None:
        """Who gave `value` before the call at utterance `worked`; rather after the answer `failed` than before."""
        places = [place for place in self._common(value) if place < worked]
        for is_new, wanted in ((True, range(failed + 1, worked)), (False, range(failed))):
            inside = [place for place in places if place in wanted]
            source = next((self._tools[place] for place in inside if self._tools.get(place, tool) != tool), None)
            if source is not None:
                return Origin("tool", source, is_new)
            if any(place not in self._tools for place in inside):
                return Origin("user", None, is_new)
        return None

    def _common(self, value: Leaf) -> Iterable[int]:
        text = value if isinstance(value, str) else "" if isinstance(value, bool) or value is None else f"{value:g}"
        tokens = _tokens(text[:400])
        if REDACTED in text or not tokens or max(map(len, tokens)) < MIN_CHARS:
            return ()
        lists = sorted((self._places.get(token, []) for token in set(tokens)), key=len)
        rest = [set(places) for places in lists[1:]]
        return [place for place in lists[0] if all(place in others for others in rest)]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())
