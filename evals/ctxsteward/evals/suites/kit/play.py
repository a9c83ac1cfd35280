"""Play a scenario through a subject; checks that several suites share.

    for moment in play(scenario, setup, counts):
        match moment:
            case CallMoment(): …     before each assistant message: the prompt of the call that produced it
            case AskMoment(): …      a question, with the prompt as if it were the next user message; writes nothing
            case EndMoment(): …      the last one: the dialogue as the conversation left it

`play` judges nothing and lets the subject's exceptions through. Every moment has the prompt that was sent, and judges
read its messages only; details of our own envelope stand in `Prompt.envelope`. Values are searched in normalized text,
never inside a longer number.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property

from ctxsteward.envelope import Counter, Store
from ctxsteward.language.words import terms
from ctxsteward.schemas import Message
from ctxsteward.schemas.message import Wire

from ...canaries import normalize, shows
from ...prompt_cost import Prices, PromptPiece, Sizer, call_faults
from ...replay import ModelCall, Prefix, check
from ...subjects import answers
from ...subjects.ours import EnvelopeDialogue
from ...subjects.port import Archive, Dialogue, Index, Prompt, Task
from .pasted_content import calls
from .said_texts import SaidTexts, stands_alone, texts_of
from .suite import DYNAMIC_TOKENS, Ask, PlayCounts, Scenario, Score, Scores, Setup, holds, unscored

NO_REPORT = "the subject gives no report of its compactions"
NO_LOOKUP = "the subject has no references that resolve and no search"
SEARCH_HITS = 10
"""Number of texts of one search that count; the default of our own search."""
LOOKUP_SLACK_CHARS = 300
"""Characters that a lookup may give besides the message itself: the length of a passage of our own search."""
SECTION_SLACK = 0.1
"""Fraction of the budget by which a call may exceed the tokens that must be there."""
TASK_FRACTION = 0.25
"""Fraction of the budget up to which the task must stay word for word."""


@dataclass(frozen=True, kw_only=True)
class PromptMoment:
    """The prompt of a subject at one moment, and the messages until then."""

    prompt: Prompt
    dialogue: Dialogue
    wires: Sequence[Wire]
    task: Task
    said_texts: SaidTexts = field(default_factory=SaidTexts)
    """Texts of the conversation, read once for all of its moments."""

    @property
    def at(self) -> str:
        """Describe the place of this moment."""
        return f"after message {len(self.wires)}"

    @cached_property
    def window(self) -> str:
        """Return the texts of all messages of the prompt as one text."""
        return "\n".join(text for wire in self.prompt.messages for text in texts_of(wire))

    @cached_property
    def normalized(self) -> str:
        """Return `window` in the form in which values are searched."""
        return normalize(self.window)

    @cached_property
    def added(self) -> str:
        """Return the words that the subject added: its messages without those of the conversation or quotes of them."""
        self.said_texts.read(self.wires)
        sent = ("\n".join(texts_of(wire)) for wire in self.prompt.messages)
        return self.said_texts.taken_out_of("\n".join(text for text in sent if text not in self.said_texts.texts))

    @cached_property
    def references(self) -> dict[int, str]:
        """Return the references that stand alone in added words, by 1-based place; the ends of a range do not count."""
        declared = self.prompt.references
        added = self.added if declared else ""
        return {place: ref for ref, place in declared.items() if ref and stands_alone(ref, added)}

    def own_lines(self) -> Iterator[str]:
        """Yield the lines of the subject's summary, and lines of added words without their references."""
        yield from (self.prompt.summary or "").splitlines()
        added = self.added
        for reference in sorted(self.prompt.references, key=len, reverse=True):
            added = added.replace(reference, "")
        yield from added.splitlines()

    def text_at(self, place: int) -> str:
        """Return the text of the message at this 1-based place; empty if there is no such message."""
        return "\n".join(texts_of(self.wires[place - 1])) if 0 < place <= len(self.wires) else ""

    def leads(self, place: int) -> bool:
        """Return whether a reference in the window resolves to the message at this place."""
        if place not in self.references or not self.tells(place):
            return False
        return gives(answers.resolved(self.dialogue, self.references[place]), self.text_at(place))

    def tells(self, place: int) -> bool:
        """Return whether the window shows the subject of the reference to this place, so that a model can choose it.

        Either a word of the message is near the reference, with no other reference between them, or the reference
        replaces the result of the same tool call.
        """
        words = set(terms(self.text_at(place)))
        call = self.wires[place - 1].get("tool_call_id") if place <= len(self.wires) else None
        return any(
            (call is not None and wire.get("tool_call_id") == call) or words & set(terms(beside))
            for wire, beside in self._beside.get(self.references[place], ())
        )

    @cached_property
    def _beside(self) -> dict[str, list[tuple[Wire, str]]]:
        """Map each reference to the messages that hold it and the words around it, up to the next other reference."""
        contexts: dict[str, list[tuple[Wire, str]]] = {}
        ordered = sorted(filter(None, self.prompt.references), key=len, reverse=True)
        mark = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, ordered))})(?![\w-])")
        for wire in self.prompt.messages:
            parts = mark.split("\n".join(texts_of(wire)))  # words, reference, words, …
            for at in range(1, len(parts), 2):
                contexts.setdefault(parts[at], []).append((wire, f"{parts[at - 1]} {parts[at + 1]}"))
        return contexts


def gives(resolved: str | None, text: str) -> bool:
    """Return whether a lookup gave a message's text and little else."""
    return resolved is not None and bool(text) and text in resolved and len(resolved) <= len(text) + LOOKUP_SLACK_CHARS


@dataclass(frozen=True, kw_only=True)
class CallMoment(PromptMoment):
    """One model call."""

    number: int
    before: Sequence[Wire] = ()
    """Messages of the call before."""

    @property
    def at(self) -> str:
        return f"call {self.number}, {len(self.wires)} messages said"

    @property
    def extends(self) -> bool:
        """Return whether the prompt begins with all messages of the call before."""
        return list(self.prompt.messages[: len(self.before)]) == list(self.before)

    @property
    def compacted(self) -> bool:
        """Return whether the subject reports a compaction and the messages show it."""
        return bool(self.prompt.compacted) and not self.extends

    @property
    def ours(self) -> ModelCall | None:
        """Return the call of our own builder, or None for another subject."""
        if not isinstance(self.dialogue, EnvelopeDialogue) or self.prompt.envelope is None:
            return None
        return ModelCall(
            number=self.number, session=self.dialogue.session, envelope=self.prompt.envelope, wires=self.wires
        )


@dataclass(frozen=True, kw_only=True)
class AskMoment(PromptMoment):
    """One question."""

    ask: Ask

    @property
    def at(self) -> str:
        return f"after message {self.ask.after}: {self.ask.question}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndMoment:
    """The end of the conversation; the dialogue is closed after this moment."""

    dialogue: Dialogue
    wires: Sequence[Wire]
    last: CallMoment | None
    """The last call, or None if there was no call."""
    references: dict[str, int]
    """All references of all windows, with their 1-based places."""

    def resolved(self, reference: str) -> str | None:
        """Resolve a reference; None if it leads nowhere."""
        return answers.resolved(self.dialogue, reference)

    def output(self, number: int) -> str | None:
        """Return the n-th tool output, 1-based, or None."""
        return answers.tool_output(self.dialogue, number)


Moment = CallMoment | AskMoment | EndMoment


def play(
    scenario: Scenario,
    setup: Setup,
    counts: PlayCounts,
    *,
    dynamic_tokens: int = DYNAMIC_TOKENS,
    store: Store | None = None,
) -> Iterator[Moment]:
    """Add a scenario's messages one by one and yield the moments in order. A given store stays open."""
    if setup.subject is not None:
        scenario = openai_form(scenario)
    asks = sorted(scenario.asks, key=lambda ask: ask.after)
    task = setup.task(scenario, dynamic_tokens=dynamic_tokens)
    with ExitStack() as stack:
        dialogue = stack.enter_context(setup.dialogue(scenario, task, store=store))
        wires: list[Wire] = []
        said_texts = SaidTexts()
        last: CallMoment | None = None
        seen: dict[str, int] = {}
        for wire in scenario.messages:
            if wire["role"] == "assistant" and wires:
                counts.builds += 1
                prompt = _timed(setup, dialogue, counts)
                before = last.prompt.messages if last else ()
                last = CallMoment(
                    prompt=prompt,
                    dialogue=dialogue,
                    wires=wires,
                    task=task,
                    said_texts=said_texts,
                    number=counts.builds,
                    before=before,
                )
                yield last
                seen.update((ref, place) for place, ref in last.references.items())
            setup.say(dialogue, wire)
            wires.append(wire)
            while asks and asks[0].after == len(wires):
                ask = asks.pop(0)
                prompt = setup.prompt(dialogue, ask.question)
                yield AskMoment(
                    prompt=prompt, dialogue=dialogue, wires=wires, task=task, said_texts=said_texts, ask=ask
                )
        yield EndMoment(dialogue=dialogue, wires=wires, last=last, references=seen)


def _timed(setup: Setup, dialogue: Dialogue, counts: PlayCounts) -> Prompt:
    """Build a call's prompt and record its CPU seconds: those measured here, or those that the subject reports.

    A subject in another process reports its own; the time that has passed bounds them.
    """
    started, cpu_started = time.perf_counter(), counts.cpu_seconds()
    prompt = setup.prompt(dialogue)
    measured, passed = counts.cpu_seconds() - cpu_started, time.perf_counter() - started
    counts.build_cpu_seconds.append(max(measured, min(prompt.cpu_seconds or 0.0, passed)))
    return prompt


def openai_form(scenario: Scenario) -> Scenario:
    """Convert Anthropic's messages to OpenAI chat; asks stay behind the same messages."""
    messages, ends = as_openai(scenario.messages)
    asks = tuple(replace(ask, after=ends[ask.after - 1]) for ask in scenario.asks)
    return replace(scenario, messages=tuple(messages), asks=asks)


def as_openai(messages: Sequence[Wire]) -> tuple[list[Wire], list[int]]:
    """Convert to OpenAI chat messages; also return, for each message, the 1-based place of its last converted one."""
    made: list[Wire] = []
    ends: list[int] = []
    for message in messages:
        made += _openai(message)
        ends.append(len(made))
    return made, ends


def _openai(message: Wire) -> Iterator[Wire]:
    content = message.get("content")
    kinds = {block.get("type") for block in content} if isinstance(content, list) else set()
    if "tool_use" in kinds:
        assert isinstance(content, list)
        text = "\n".join(block["text"] for block in content if block["type"] == "text")
        uses = [block for block in content if block["type"] == "tool_use"]
        yield calls(*((use["id"], use["name"], use["input"]) for use in uses), text=text or None)
    elif "tool_result" in kinds:
        assert isinstance(content, list)
        for block in content:
            if block["type"] == "tool_result":
                result = "\n".join(texts_of({"content": block.get("content")}))
                yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": result}
        if rest := [block for block in content if block["type"] != "tool_result"]:
            yield {**message, "content": rest}
    else:
        yield message


# -- reachable messages ------------------------------------------------------------------------------------------


def reaches(moment: PromptMoment, place: int, query: str, value: str) -> bool | None:
    """Return whether the window shows a message, a reference in it resolves to it, or one search finds it or its value.

    None if the subject has neither references nor a search.
    """
    if not isinstance(moment.dialogue, (Archive, Index)):
        return None
    text = moment.text_at(place)
    if (text and normalize(text) in moment.normalized) or moment.leads(place):
        return True
    if not isinstance(moment.dialogue, Index):
        return False
    hits = answers.searched(moment.dialogue, query)[:SEARCH_HITS]
    short = [hit for hit in hits if len(hit) <= len(text) + LOOKUP_SLACK_CHARS]
    return bool(text) and any(text in hit or shows(normalize(hit), value) for hit in short)


def reachable(metric: str, moment: AskMoment, place: int, query: str, value: str, what: str, of: str = "") -> Score:
    """Score `reaches`."""
    reached = reaches(moment, place, query, value)
    if reached is None:
        return unscored(metric, NO_LOOKUP, moment.at)
    return holds(metric, reached, moment.at, f"{what}: nothing leads to message {place}", of)


def compacted(compactions: int, ended: EndMoment) -> Score:
    """Score the number of compactions, if the subject reports them."""
    if ended.last is None or ended.last.prompt.compacted is None:
        return unscored("compactions", NO_REPORT)
    return Score("compactions", compactions)


def accounted(metric: str, ended: EndMoment) -> Iterator[Score]:
    """Score whether each message is in the last window, cited there, or reported as lost."""
    if isinstance(ended.dialogue, EnvelopeDialogue) and ended.last is not None and ended.last.ours is not None:
        here = ended.dialogue.accounted()
    elif ended.last is None or ended.last.prompt.lost is None:
        yield unscored(metric, NO_REPORT)
        return
    else:
        places = range(1, len(ended.wires) + 1)
        shown = {place for place in places if ended.last.text_at(place) in ended.last.window}
        here = shown.symmetric_difference(ended.last.prompt.lost) | {*ended.last.references}
    for place in range(1, len(ended.wires) + 1):
        yield holds(metric, place in here, f"§{place}", "neither shown, nor cited, nor a true record of loss")


# -- promises of every call --------------------------------------------------------------------------------------


def request_of(moment: PromptMoment) -> Wire:
    """Return the request to OpenAI: the system prompt and the subject's messages."""
    system = [] if moment.task.system is None else [{"role": "system", "content": moment.task.system}]
    return {"messages": [*system, *moment.prompt.messages]}


@dataclass(slots=True)
class BudgetJudge:
    """Compare the tokens sent with the tokens that must be sent, counted alike for every subject."""

    sizer: Sizer

    def tokens(self, moment: PromptMoment) -> int:
        return sum(piece.tokens for piece in self.sizer.pieces(moment.prompt.messages))

    def is_over(self, moment: PromptMoment) -> bool:
        return self.tokens(moment) > moment.task.budget_tokens * (1 + COUNT_SLACK)

    def faults(self, moment: PromptMoment, *more: Wire) -> list[str]:
        """Return a fault if a prompt exceeds its budget without need.

        The open turn, the last reply, the task and the messages `more` must be there word for word.
        """
        if not self.is_over(moment):
            return []
        tokens, budget = self.tokens(moment), moment.task.budget_tokens
        must = sum(piece.tokens for piece in self.sizer.pieces([*_must(moment.wires, budget, self.sizer), *more]))
        if must <= budget:
            return [f"{tokens} tokens over {budget}, but only {must} must be there"]
        if tokens > must + SECTION_SLACK * budget:
            return [f"{tokens} tokens over {must} that must be there by more than a tenth of the budget"]
        return []


COUNT_SLACK = 0.05
"""Fraction by which two counters of the same messages may differ."""


def _must(wires: Sequence[Wire], budget_tokens: int, sizer: Sizer) -> Iterator[Wire]:
    turn = max((n for n, wire in enumerate(wires) if wire["role"] == "user"), default=0)
    task = next((n for n, wire in enumerate(wires) if wire["role"] == "user"), turn)
    reply = max((n for n in range(turn) if wires[n]["role"] == "assistant" and wires[n].get("content")), default=turn)
    if task < turn and sizer.piece(wires[task]).tokens <= TASK_FRACTION * budget_tokens:
        yield wires[task]
    if reply < turn:
        yield wires[reply]
    yield from wires[turn:]


def asked_within_budget(metric: str, asked: AskMoment, budget: BudgetJudge) -> Score:
    """Score whether the prompt for a question stays within the budget, or exceeds it only by what must be there."""
    faults = budget.faults(asked, {"role": "user", "content": asked.ask.question})
    return holds(metric, not faults, asked.at, "; ".join(faults))


def last_turn_missing(moment: CallMoment) -> list[str]:
    """Return the newest user text and the newest assistant text that the window does not hold word for word."""
    missing = []
    for role in ("user", "assistant"):
        # read from the end, so that a late call costs no more
        texts = (Message.from_wire(wire).text for wire in reversed(moment.wires) if wire["role"] == role)
        newest = next(filter(None, texts), "")
        if newest not in moment.window:
            missing.append(newest)
    return missing


def owed(metric: str, call: ModelCall) -> Score:
    """Score one of our calls: valid for both providers, in budget, cited, newest and last raw turn verbatim."""
    faults = check(call)
    return holds(metric, not faults, f"call {call.number}", "; ".join(faults[:3]))


def sound(metric: str, moment: CallMoment, budget: BudgetJudge) -> Score:
    """Score a call of any subject: valid request, in budget, last turn word for word."""
    faults = [*call_faults(request_of(moment)), *budget.faults(moment)]
    faults += [f"not word for word: {text!r:.80}" for text in last_turn_missing(moment)]
    if not faults and moment.ours is not None:
        return owed(metric, moment.ours)
    return holds(metric, not faults, moment.at, "; ".join(faults[:3]))


@dataclass(slots=True)
class PrefixJudge:
    """Check that a call's messages extend those of the call before, unless the subject reports a compaction.

    Of our builder, it checks the bytes before the turn.
    """

    ours: Prefix = field(default_factory=Prefix)

    def read(self, metric: str, moment: CallMoment) -> Scores:
        if moment.ours is not None:
            compared = self.ours.compared
            extends = self.ours.check(moment.ours)
            if self.ours.compared > compared:
                why = "bytes before the turn changed without a compaction"
                yield holds(metric, extends, f"call {moment.number}", why)
        elif moment.prompt.compacted is None:
            yield unscored(metric, NO_REPORT, moment.at)
        elif moment.before and not moment.prompt.compacted:
            why = "messages that were sent before changed without a compaction"
            yield holds(metric, moment.extends, moment.at, why)


@dataclass(slots=True)
class ConversationCost:
    """Add up the price of a conversation's calls and of sending everything; a cached prefix costs a tenth."""

    counter: Counter
    prices: Prices = field(default_factory=Prices)
    sent: float = 0.0
    everything: float = 0.0
    sizer: Sizer = field(init=False)
    _before: Sequence[PromptPiece] = ()
    _said: int = 0
    _said_tokens: int = 0

    def __post_init__(self) -> None:
        self.sizer = Sizer(self.counter)

    def read(self, moment: CallMoment) -> None:
        """Count one call."""
        pieces = self.sizer.pieces(moment.prompt.messages)
        shared = self.sizer.shared_tokens(self._before, pieces)
        self.sent += self.prices.of(sum(piece.tokens for piece in pieces), shared)
        self._before, before = pieces, self._said_tokens
        self._said_tokens += sum(self.sizer.piece(wire).tokens for wire in moment.wires[self._said :])
        self._said = len(moment.wires)
        self.everything += self.prices.of(self._said_tokens, before)

    @property
    def said_tokens(self) -> int:
        """Return the tokens of the conversation up to the last call."""
        return self._said_tokens

    @property
    def ratio(self) -> float:
        """Return the price sent over the price of sending everything; below 1 is cheaper."""
        return self.sent / max(1.0, self.everything)
