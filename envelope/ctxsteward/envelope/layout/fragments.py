"""A fragment: a piece of an envelope that is laid out, counted and rendered as one.

The strip: the fragments of a window's groups in order, with running totals, kept from build to build.

Between compactions a window only grows at its end, so the strip of the last build is extended, never redone: a build
costs its newest messages. A strip holds results of pure functions of the groups it was made from; a fresh one over the
same groups is equal (a property test), so it is a cache and not a second state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Literal

from ctxsteward.schemas import Wire
from ctxsteward.store import process_forks as forking

from ..history.tool_groups import ToolGroup
from ..tokens.tokenizer import Counter
from .group_steps import DerivedText, RenderOptions, Step, build_group

Kind = Literal["text", "tools", "bullets", "group", "context", "notes"]


class Fragment:
    """A piece of an envelope: what it says, what it costs, what identifies it."""

    __slots__ = ("digest", "kind", "name", "refs", "steps", "tokens")

    def __init__(
        self,
        kind: Kind,
        steps: tuple[Step, ...],
        tokens: int,
        digest: bytes,
        name: str = "",
        refs: tuple[int, ...] = (),
    ) -> None:
        self.kind = kind
        self.steps = steps
        self.tokens = tokens
        self.digest = digest
        """SHA-256, in process only."""
        self.name = name
        self.refs = refs

    @property
    def text(self) -> str:
        """The text of a derived fragment; empty for a group."""
        return "".join(step.text for step in self.steps if isinstance(step, DerivedText))

    def __repr__(self) -> str:
        return f"Fragment({self.kind}, {self.name or self.refs}, {self.tokens} tokens)"


def text_fragment(kind: Kind, name: str, text: str, counter: Counter) -> Fragment:
    """A fragment of our own or the operator's text."""
    return Fragment(kind, (DerivedText(text),), counter.framed(text), hashlib.sha256(text.encode()).digest(), name)


_START = hashlib.sha256(b"dynamic").digest()


def group_fragment(group: ToolGroup, shape: RenderOptions, nonce: str, counter: Counter) -> Fragment:
    """The fragment of a group under this shape, cached with the group."""
    cache = group.cache
    if cache is None:
        cache = group.cache = {}
    key = (shape.cap_tokens, shape.masked, counter.name)
    found = cache.get(key)
    if found is None:
        built = build_group(group, shape, nonce=nonce, counter=counter)
        found = cache[key] = Fragment("group", built.steps, built.tokens, built.digest, "", group.ordinals)
    assert isinstance(found, Fragment)
    return found


class FragmentCache:
    """Fragments of groups, and after each the tokens, the digest and the number of rendered messages so far."""

    __slots__ = (
        "_lock",
        "_masked",
        "_plain",
        "chain",
        "counter",
        "fragments",
        "groups",
        "hidden",
        "nonce",
        "tokens",
        "wires",
    )

    def __init__(
        self, groups: list[ToolGroup], hidden: frozenset[int], cap_tokens: int, nonce: str, counter: Counter
    ) -> None:
        self.groups = groups
        """The state's own list: a compaction replaces it, otherwise only its end changes."""
        self.hidden = hidden
        self.nonce = nonce
        self.counter = counter
        self._plain = RenderOptions(cap_tokens=cap_tokens)
        self._masked = RenderOptions(cap_tokens=cap_tokens, masked=True)
        self.fragments: list[Fragment] = []
        self.tokens: list[int] = [0]
        self.chain: list[bytes] = [_START]
        self._lock = forking.lock()
        """Envelopes that share a strip may be rendered by several threads."""
        self.wires: dict[str, tuple[list[Wire], list[int]]] = {}
        """By provider: rendered messages, and how many of them stand before each fragment."""

    def fits(self, groups: list[ToolGroup], hidden: frozenset[int], cap_tokens: int, counter: Counter) -> bool:
        """Whether this is a strip of these groups; not if its last group has grown, since envelopes hold on to it."""
        last = len(self.fragments) - 1
        return (
            self.groups is groups
            and self.hidden is hidden
            and self._plain.cap_tokens == cap_tokens
            and self.counter == counter
            and (last < 0 or self.fragments[last].refs == groups[last].ordinals)
        )

    def extend(self) -> None:
        """Take in the groups that were added since."""
        fragments = self.fragments
        for group in self.groups[len(fragments) :]:
            shape = self._masked if group.first in self.hidden else self._plain
            fragment = group_fragment(group, shape, self.nonce, self.counter)
            fragments.append(fragment)
            self.tokens.append(self.tokens[-1] + fragment.tokens)
            self.chain.append(hashlib.sha256(self.chain[-1] + fragment.digest).digest())

    def rendered(
        self, provider: str, start: int, stop: int, wires_of: Callable[[Fragment], Sequence[Wire]]
    ) -> list[Wire]:
        """Messages of fragments start … stop for a provider, as shallow copies."""
        with self._lock:
            known = self.wires.get(provider)
            if known is None:
                known = self.wires[provider] = ([], [0])
            messages, offsets = known
            for fragment in self.fragments[len(offsets) - 1 :]:
                messages += wires_of(fragment)
                offsets.append(len(messages))
        return [wire.copy() for wire in messages[offsets[start] : offsets[stop]]]
