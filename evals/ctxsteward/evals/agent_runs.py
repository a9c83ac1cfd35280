"""Agent runs of any format that is read, as OpenAI chat messages, and what our builders send at each call.

The cost eval (`cost`) and the comparison with other libraries (`peers`) read their runs here. The messages are those of
an envelope with room for everything, so every way of sending a history starts from the same bytes under the same head.

What a reply needed from its prompt is read off its tool calls: an identifier, a path or a number among their arguments
that a tool result was the first to say is a *found value*. The run was recorded with everything in the prompt, so a
policy that hides such a value at that call has hidden what the model went on to use.

A `MaskedRun` is a run beside what masking would make of it: the baselines send one or the other of each message.

Raises `InvalidTranscript`, `InputError`, and what the builder raises, with the number of the call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder
from ctxsteward.envelope.testing import memory_store
from ctxsteward.envelope.transcripts import Transcript as Transcript, read_transcripts
from ctxsteward.schemas import InputError, Wire

from .prompt_cost import PricedPrompt, PromptPiece, Sizer, arguments_of
from .replay import named_in, open_session, replay, window_of

MASK = "[tool result left out]"
KEPT_STEPS = 5
SUFFIXES = (".json", ".jsonl", ".traj")
ALL_TOKENS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """One transcript, as a client that sends everything would send it."""

    name: str
    format: str
    system: tuple[PromptPiece, ...]
    """The leading system messages."""
    messages: tuple[PromptPiece, ...]
    """All others, in order."""
    seen: tuple[int, ...]
    """How many of the messages each model call is sent; ascending."""
    tools_tokens: int
    task: str
    """The first user message's text."""
    task_ordinal: int
    ours: Mapping[str, tuple[PricedPrompt, ...]]
    """What each of our builders sent at each call, by its name."""
    found_values: tuple[frozenset[str], ...] = ()
    """Of each call: values in its reply's tool calls that a tool result was the first to say. The reply to the last
    call is no part of any prompt and is not read, so its set is empty."""


class MaskableStep(NamedTuple):
    """A step with tool results that masking makes shorter."""

    step: int
    places: tuple[int, ...]
    """Of those results among the run's messages; ascending."""


@dataclass(frozen=True, slots=True)
class MaskedRun:
    """A run, its steps, and its messages as they look once masked."""

    run: AgentRun
    masked: tuple[PromptPiece, ...]
    """Each message masked; the message itself where that saves nothing."""
    steps: tuple[int, ...]
    """Of each message."""
    maskable: tuple[MaskableStep, ...]
    kept_steps: int = KEPT_STEPS

    def eligible(self, call: int) -> int:
        """How many of the maskable steps may be masked at this 0-based call."""
        newest = self.newest_step(call)
        return sum(found.step <= newest - self.kept_steps for found in self.maskable)

    def newest_step(self, call: int) -> int:
        """The step of the last message that this call is sent."""
        return self.steps[self.run.seen[call] - 1]

    def prompt(self, call: int, boundary: int) -> tuple[PromptPiece, ...]:
        """What a call is sent with so many steps masked."""
        hidden = {place for found in self.maskable[:boundary] for place in found.places}
        shown = self.run.messages[: self.run.seen[call]]
        return (*self.run.system, *(self.masked[i] if i in hidden else piece for i, piece in enumerate(shown)))

    def prompts(self, boundaries: Sequence[int]) -> list[PricedPrompt]:
        """What each call is sent under these boundaries."""
        moved = [now != before for before, now in zip((0, *boundaries), boundaries, strict=False)]
        return [PricedPrompt(self.prompt(call, b), moved[call]) for call, b in enumerate(boundaries)]


def masking_of(run: AgentRun, sizer: Sizer) -> MaskedRun:
    """Find a run's steps and what masking would make of them."""
    steps: list[int] = []
    masked: list[PromptPiece] = []
    places: dict[int, list[int]] = {}
    step = 0
    for place, piece in enumerate(run.messages):
        step += piece.wire.get("role") == "assistant"
        short = sizer.piece({**piece.wire, "content": MASK}) if piece.wire.get("role") == "tool" else piece
        if short.tokens < piece.tokens:
            places.setdefault(step, []).append(place)
        masked.append(short if short.tokens < piece.tokens else piece)
        steps.append(step)
    maskable = tuple(MaskableStep(step, tuple(found)) for step, found in places.items())
    return MaskedRun(run, tuple(masked), tuple(steps), maskable)


def files_of(paths: Sequence[str | Path]) -> list[Path]:
    """Files as named, and of a folder its transcripts; raises `InputError` for a folder without any."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(p for p in path.iterdir() if p.suffix in SUFFIXES) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path}: no transcripts in this folder; expected files that end in {', '.join(SUFFIXES)}")
        found += inside
    return found


def read_runs(paths: Sequence[str | Path], builders: Mapping[str, EnvelopeBuilder], sizer: Sizer) -> Iterator[AgentRun]:
    """The runs of files and folders that have at least one model call."""
    for path in files_of(paths):
        for transcript in read_transcripts(path):
            run = read_run(transcript, builders, sizer)
            if run.seen:
                yield run


def read_run(transcript: Transcript, builders: Mapping[str, EnvelopeBuilder], sizer: Sizer) -> AgentRun:
    """Replay a transcript through these builders, and through one with room for everything."""
    whole: tuple[PromptPiece, ...] = ()
    seen: list[int] = []
    leading = tools_tokens = ordinal = 0
    task = ""
    with memory_store() as store:
        for call in replay(transcript, _roomy(sizer), open_session(store, transcript)):
            whole, state = _sent(call.envelope, sizer), call.session.state
            leading, tools_tokens = len(call.envelope.head.fragments), call.envelope.head.tools_tokens
            seen.append(len(whole) - leading)
            ordinal = state.task
            task = call.session.entry(ordinal).message.text if ordinal else ""
    messages = whole[leading:]
    return AgentRun(
        name=transcript.session, format=transcript.format, system=whole[:leading], messages=messages,
        seen=tuple(seen), tools_tokens=tools_tokens, task=task, task_ordinal=ordinal,
        found_values=tuple(_found_values(whole[:leading], transcript.tools, messages, seen)),
        ours={name: tuple(_prompts(transcript, builder, sizer)) for name, builder in builders.items()},
    )  # fmt: skip


def _prompts(transcript: Transcript, builder: EnvelopeBuilder, sizer: Sizer) -> Iterator[PricedPrompt]:
    with memory_store() as store:
        for call in replay(transcript, builder, open_session(store, transcript)):
            reachable = reachable_ordinals(call.envelope)
            yield PricedPrompt(_sent(call.envelope, sizer), bool(call.envelope.reports), reachable)


def _sent(envelope: Envelope, sizer: Sizer) -> tuple[PromptPiece, ...]:
    return sizer.pieces(envelope.render("openai-chat", cache=False)["messages"])


def _roomy(sizer: Sizer) -> EnvelopeBuilder:
    """A builder that counts alike and leaves nothing out."""
    budgets = Budgets(dynamic_tokens=ALL_TOKENS, arrival_cap_tokens=ALL_TOKENS, recall_fraction=0)
    return EnvelopeBuilder(tokenizer=sizer.counter.tokenizer, budgets=budgets, selector=None)


def reachable_ordinals(envelope: Envelope) -> frozenset[int]:
    """Messages that this envelope shows, or leads to by a reference or a range of references."""
    shown = {ordinal for fragment in envelope.dynamic.fragments for ordinal in fragment.refs}
    return named_in(window_of(envelope)) | shown


_WORD = re.compile(r"\w[\w./@-]{2,}\w")
_IDENTIFIER = re.compile(r"[\d_./@]|[a-z][A-Z]")
"""What a word of prose has not: a digit, an inner sign, or a capital after a small letter."""


def _found_values(
    system: Sequence[PromptPiece], tools: Sequence[Wire], messages: Sequence[PromptPiece], seen: Sequence[int]
) -> Iterator[frozenset[str]]:
    schemas = json.dumps(tools, ensure_ascii=False)

    @cache
    def is_found(value: str) -> bool:
        first = next(piece for piece in (*system, *messages) if piece.shows(value))
        return first.wire.get("role") == "tool" and value not in schemas

    for place in seen:
        values = values_of(messages[place].wire) if place < len(messages) else frozenset[str]()
        yield frozenset(filter(is_found, values))


def values_of(wire: Wire) -> frozenset[str]:
    """Identifiers, paths and numbers of at least four characters among the arguments of a message's tool calls.

    >>> function = {"name": "book", "arguments": '{"flight": "HAT136", "note": "window seat"}'}
    >>> call = {"id": "c1", "type": "function", "function": function}
    >>> values_of({"role": "assistant", "tool_calls": [call]})
    frozenset({'HAT136'})
    """
    calls = arguments_of(wire)
    return frozenset(word for text in calls for word in _WORD.findall(text) if _IDENTIFIER.search(word))
