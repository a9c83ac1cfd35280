"""Prune by importance or from the middle outward, in plain message lists or as policies of a builder.

    pruner = ContextPruner("gpt-4o", archive=store.session("archive").extend)
    pruner.on("context:pruned", lambda told: log.info("%(removed)d messages left", told))
    history = pruner.prune(history).pruned                  # the same list while it fits

The worth of a message is 40 · how new it is + its role (system 30, user 20, others 10) + its words (an error 15, tools
and operations 10) + 5 · its length up to 2,000 characters: 100 at most. A tool call and its results move together, with
the highest worth among them, so that no pair is broken. System messages, the task (the first user message), the newest
message with its group, and calls that wait for their results always stay. The worthiest of the rest that fit stay too.
A tool result without a call leaves first.

`remove_progressively` masks 10, 20, 50, then all tool results, from the middle outward, and stops at the first level
that reaches its target. If none does, older messages become a summary. A summary counts the messages that it replaces,
includes the summary before it and, with a summarizer, has cited bullets. Above `SUMMARY_TOKENS` the oldest bullets
without a constraint are dropped first.

Removed messages go to `archive` first; if it fails, nothing is removed. It returns a reference for each message, or an
entry that has one, as `Session.extend` does. Messages are OpenAI's or Anthropic's dicts. A pruner never changes them,
and its caller must not while the pruner is in use. Tokens are counted once a message. Subscribers are called in order;
their exceptions reach the caller.

Raises `InvalidMessage`, `InputError`, `UnknownModel`. Sources: the context-manager design (weights, limits, events);
the continuity design (levels, middle first).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from ctxsteward.schemas import InputError, Message, Summarizer, SummarizerInput
from ctxsteward.schemas.cascade import PolicyName
from ctxsteward.schemas.message import Wire, with_results
from ctxsteward.schemas.summary import SourceMessage

from ..tokens.budgets import MIN_PROGRESS_FRACTION
from ..tokens.models import model_info
from ..tokens.tokenizer import Counter, load_tokenizer
from .losses import probes
from .policy import CompactionChoice, Policy, Window, with_default

DEFAULT_MODEL = "default"
DEFAULT_LIMIT_TOKENS = 100_000
"""Limit if no model is named."""
TARGET_FRACTION = 0.8
"""Fraction of the model's limit above which pruning begins, and to which it prunes."""
KEPT_MESSAGES = 10
SUMMARY_TOKENS = 600
"""Most tokens of a summary's bullets."""
REMOVAL_LEVELS = (0, 10, 20, 50, 100)
"""Percent of the tool results to mask, level by level."""
_ERROR = re.compile(r"error|exception|fail|traceback|错误|失败|异常", re.IGNORECASE)
_OPERATION = re.compile(r"tool|operation|function|command", re.IGNORECASE)
_SUMMARY = re.compile(
    r"\[Previous (\d+) messages: (\d+) user messages, (\d+) model responses, (\d+) tool calls(?:; (\S+) to (\S+))?\]"
)

Event = Literal["context:pruned", "context:summarized"]
Archive = Callable[[Sequence[Wire]], Sequence[Any]]
"""Port: keep removed messages and return a reference for each."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceWeights:
    """Weights of a message's worth; the defaults add up to at most 100."""

    recency: float = 40
    system: float = 30
    user: float = 20
    others: float = 10
    """Weight of assistant and tool messages."""
    error: float = 15
    operation: float = 10
    """Weight of tool calls, their results, and text about them."""
    length: float = 5
    full_length_chars: int = 2_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not 0 <= value <= 10_000 or (name == "full_length_chars" and value < 1):
                raise InputError(f"weights.{name}={value!r:.40}: expected a number from 0 to 10,000, characters from 1")

    def worth(self, message: Message, index: int, total: int) -> float:
        """Return the worth of the message at a 0-based index of `total` messages."""
        return self.score(_weighed({}, message, 0), index, total)

    def score(self, item: CountedMessage, index: int, total: int) -> float:
        """Return the worth of a counted message."""
        newness = index / (total - 1) if total > 1 else 1.0
        role = {"system": self.system, "user": self.user}.get(item.role, self.others)
        words = self.error * item.has_error + self.operation * item.is_operation
        return self.recency * newness + role + words + self.length * min(1.0, item.chars / self.full_length_chars)


class CountedMessage(NamedTuple):
    """A parsed message with its tokens and the properties that its worth depends on."""

    wire: Wire
    message: Message
    role: str
    """One of system, user, assistant and tool."""
    tokens: int
    chars: int
    has_error: bool
    is_operation: bool
    calls: frozenset[str]
    results: frozenset[str]


def _weighed(wire: Wire, message: Message, tokens: int) -> CountedMessage:
    results = message.tool_results
    text = "\n".join((message.text, *(result.text for result in results)))
    role = {"developer": "system", "function": "tool"}.get(message.role, message.role)
    return CountedMessage(
        wire=wire,
        message=message,
        role="tool" if results and not message.text else role,
        tokens=tokens,
        chars=len(text),
        has_error=any(result.is_error for result in results) or _ERROR.search(text) is not None,
        is_operation=bool(results or message.tool_calls) or _OPERATION.search(text) is not None,
        calls=frozenset(call.id for call in message.tool_calls),
        results=frozenset(result.call_id for result in results),
    )


class PruneStats(NamedTuple):
    """Tokens before and after pruning, and numbers of messages."""

    original: int
    final: int
    items_removed: int
    items_kept: int


class PrunedContext(NamedTuple):
    """A pruned history with its removed messages."""

    pruned: Sequence[Wire]
    """The remaining messages; the caller's own list if nothing changed."""
    removed: Sequence[Wire]
    stats: PruneStats
    references: tuple[str, ...] = ()
    """Reference of each removed message; empty without an archive."""
    fits: bool = True
    """False if the messages that always stay exceed the limit."""
    removed_percent: int = 0
    """Percent of tool results that `remove_progressively` masked."""


class SummarizedContext(NamedTuple):
    """A history with its older messages replaced by one summary."""

    summarized: Sequence[Wire]
    summary: Wire | None
    """The summary's message, or None if nothing changed."""
    summarized_items: int
    kept_items: int


class ContextStats(NamedTuple):
    """Utilization of a model's context."""

    items: int
    tokens: int
    limit: int
    utilization_percent: float
    needs_pruning: bool


class ContextPruner:
    """Pruner of histories for one model; not safe with threads."""

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        weights: ImportanceWeights | None = None,
        counter: Counter | None = None,
        archive: Archive | None = None,
        summarizer: Summarizer | None = None,
    ) -> None:
        """Make a pruner; `counter` replaces the model's own, and `summarizer` writes the bullets of summaries."""
        info = None if model == DEFAULT_MODEL else model_info(model)
        self.limit_tokens: int = DEFAULT_LIMIT_TOKENS if info is None else info.window_tokens
        self.weights: ImportanceWeights = weights or ImportanceWeights()
        self._counter = counter or Counter(load_tokenizer("o200k_base" if info is None else info.encoding))
        self._archive, self._summarizer = archive, summarizer
        self._known: dict[int, CountedMessage] = {}
        self._references: dict[int, tuple[Wire, str]] = {}
        self._subscribers: dict[str, list[Callable[[Mapping[str, Any]], object]]] = {}

    def on(self, event: Event, subscriber: Callable[[Mapping[str, Any]], object]) -> Callable[[], None]:
        """Call `subscriber` with the payload of each such event, until the returned function is called.

        context:pruned      original, final, removed, token_reduction context:summarized  summarized, kept, summary
        """
        if event not in get_args(Event):
            raise InputError(f"no event {event!r:.60}; known: {', '.join(get_args(Event))}")
        subscribers = self._subscribers.setdefault(event, [])
        subscribers.append(subscriber)
        return lambda: subscribers.remove(subscriber)

    def stats(self, history: Sequence[Wire]) -> ContextStats:
        """Return how much of the model's context this history uses."""
        tokens = sum(item.tokens for item in self._counted(history))
        percent = round(100 * tokens / self.limit_tokens, 1)
        needs = tokens > self.limit_tokens * TARGET_FRACTION
        return ContextStats(len(history), tokens, self.limit_tokens, percent, needs)

    def prune(self, history: Sequence[Wire], max_tokens: int | None = None) -> PrunedContext:
        """Remove the least worthy messages that may leave until the rest fits; by default 80 % of the model's limit."""
        allowed = int(self.limit_tokens * TARGET_FRACTION) if max_tokens is None else max_tokens
        if type(allowed) is not int or allowed < 0:
            raise InputError(f"max_tokens={max_tokens!r:.40}: expected a whole number of tokens, at least 0")
        items = self._counted(history)
        original = sum(item.tokens for item in items)
        if original <= allowed:
            return PrunedContext(history, (), PruneStats(original, original, 0, len(history)))
        scores = [self.weights.score(item, at, len(items)) for at, item in enumerate(items)]
        units = list(_units(items))
        kept = {at for unit in units if unit.stays for at in unit.places}
        used = sum(items[at].tokens for at in kept)
        rest = [unit for unit in units if not unit.stays and not unit.is_broken]
        for unit in sorted(rest, key=lambda unit: (-max(scores[at] for at in unit.places), -unit.places[0])):
            tokens = sum(items[at].tokens for at in unit.places)
            if used + tokens <= allowed:
                kept.update(unit.places)
                used += tokens
        removed = [item.wire for at, item in enumerate(items) if at not in kept]
        references = self._archived(removed)
        stats = PruneStats(original, used, len(removed), len(kept))
        pruned = [item.wire for at, item in enumerate(items) if at in kept]
        self._tell_pruned(original, used, len(removed))
        return PrunedContext(pruned, removed, stats, references, used <= allowed)

    def summarize(self, history: Sequence[Wire], max_items: int = KEPT_MESSAGES) -> SummarizedContext:
        """Replace all messages but the newest `max_items`, system messages and the task by one summary."""
        if type(max_items) is not int or max_items < 1:
            raise InputError(f"max_items={max_items!r:.40}: expected a whole number of messages, at least 1")
        items = self._counted(history)
        units = list(_units(items))
        first_kept = len(items) - max_items
        leaving = [u for u in units if u.places[-1] < first_kept and (u.is_summary or not u.stays)]
        old = [at for unit in leaving for at in unit.places]
        if all(unit.is_summary for unit in leaving):
            return SummarizedContext(history, None, 0, len(history))
        references = dict(zip(old, self._archived([items[at].wire for at in old]), strict=False))
        gone = set(old)
        text = self._summary_text(items, old, references)
        summary: Wire = {"role": "user", "content": text}
        kept = [item.wire for at, item in enumerate(items) if at not in gone]
        place = sum(at < old[0] for at in range(len(items)) if at not in gone)
        summarized = [*kept[:place], summary, *kept[place:]]
        self._tell("context:summarized", {"summarized": len(old), "kept": len(kept), "summary": summary})
        return SummarizedContext(summarized, summary, len(old), len(kept))

    def remove_progressively(self, history: Sequence[Wire], target_tokens: int) -> PrunedContext:
        """Mask tool results level by level until `target_tokens` is reached, else summarize."""
        items = self._counted(history)
        original = sum(item.tokens for item in items)
        if original <= target_tokens:
            return PrunedContext(history, (), PruneStats(original, original, 0, len(history)))
        stays = {at for unit in _units(items) if unit.stays for at in unit.places}
        places = [at for at, item in enumerate(items) if item.results and at not in stays]
        masked = {at: self._read(with_results(history[at], _line)) for at in places}
        taken: set[int] = set()
        percent = 0
        for percent in REMOVAL_LEVELS:
            taken = set(middle_out(places, percent))
            if original - sum(items[at].tokens - masked[at].tokens for at in taken) <= target_tokens:
                break
        shown = list(history)
        final = original - sum(items[at].tokens - masked[at].tokens for at in taken)
        if final > target_tokens:
            shown = list(self.summarize(history).summarized)
        left = {id(wire) for wire in shown}
        gone = [wire for at, wire in enumerate(history) if at in taken or id(wire) not in left]
        references = self._archived(gone)
        lines = {id(history[at]): masked[at].wire for at in taken}
        shown = [lines.get(id(wire), wire) for wire in shown]
        final = sum(item.tokens for item in self._counted(shown))
        self._tell_pruned(original, final, len(gone))
        stats = PruneStats(original, final, len(gone), len(shown))
        return PrunedContext(shown, gone, stats, references, final <= target_tokens, percent)

    def _tell_pruned(self, original: int, final: int, removed: int) -> None:
        counts = {"original": original, "final": final, "removed": removed}
        self._tell("context:pruned", {**counts, "token_reduction": original - final})

    # -- parts of the pruner --------------------------------------------------------------------------------------

    def _counted(self, history: Sequence[Wire]) -> list[CountedMessage]:
        """Parse and count each message once."""
        known = self._known
        items = []
        for wire in history:
            item = known.get(id(wire))
            if item is None or item.wire is not wire:
                item = known[id(wire)] = self._read(wire)
            items.append(item)
        if len(known) > 4 * len(items) + 10_000:  # else messages of past histories would stay in memory
            self._known = {id(item.wire): item for item in items}
            self._references = {key: kept for key, kept in self._references.items() if key in self._known}
        return items

    def _read(self, wire: Wire) -> CountedMessage:
        message = Message.from_wire(wire)
        return _weighed(wire, message, self._counter.message(message))

    def _archived(self, wires: Sequence[Wire]) -> tuple[str, ...]:
        """Archive removed messages, each once, and return the reference of each."""
        if self._archive is None:
            return ()
        known = self._references
        new = [wire for wire in wires if id(wire) not in known or known[id(wire)][0] is not wire]
        if new:
            kept = self._archive(new)
            if len(kept) != len(new):
                raise InputError(f"the archive kept {len(kept)} of {len(new)} messages; nothing was removed")
            for wire, one in zip(new, kept, strict=True):
                known[id(wire)] = (wire, str(getattr(one, "ref", one)))
        return tuple(known[id(wire)][1] for wire in wires)

    def _summary_text(self, items: Sequence[CountedMessage], old: Sequence[int], refs: Mapping[int, str]) -> str:
        before, standing = [0, 0, 0, 0], list[str]()
        span: list[str] = []
        fresh: list[int] = []
        for at in old:
            found = _SUMMARY.match(items[at].message.text)
            if found is None:
                fresh.append(at)
                continue
            before = [count + int(more) for count, more in zip(before, found.groups()[:4], strict=True)]
            span += [ref for ref in found.groups()[4:] if ref]
            standing += [line for line in items[at].message.text.splitlines() if line.startswith("- ")]
        counts = (
            before[0] + len(fresh),
            before[1] + sum(items[at].role == "user" for at in fresh),
            before[2] + sum(items[at].role == "assistant" for at in fresh),
            before[3] + sum(len(items[at].calls) for at in fresh),
        )
        span += [refs[at] for at in (fresh[0], fresh[-1]) if at in refs]
        where = f"; {span[0]} to {span[-1]}" if span else ""
        head = (
            "[Previous {} messages: {} user messages, {} model responses, {} tool calls".format(*counts) + f"{where}]"
        )
        lines = [*standing, *self._bullets(items, fresh, refs)]
        return "\n".join([head, *self._fitting(lines)])

    def _bullets(self, items: Sequence[CountedMessage], fresh: Sequence[int], refs: Mapping[int, str]) -> list[str]:
        if self._summarizer is None or not refs:
            return []
        sources = tuple(SourceMessage(ref=f"§{at + 1}", message=items[at].message) for at in fresh)
        source = SummarizerInput(messages=sources, count_tokens=self._counter.text)
        summary = self._summarizer(source, budget_tokens=SUMMARY_TOKENS)
        names = {f"§{at + 1}": refs[at] for at in fresh}
        lines = []
        for bullet in summary.bullets:
            cited = " ".join(dict.fromkeys(names.get(ref.partition(".")[0], ref) for ref in bullet.citations))
            lines.append(f"- {' '.join(bullet.text.split())} {cited}")
        return lines

    def _fitting(self, lines: list[str]) -> list[str]:
        """Return the lines that fit, without the oldest lines that have no constraint, then without the oldest."""
        costs = [self._counter.text(line) for line in lines]
        left = sum(costs) - SUMMARY_TOKENS
        out: set[int] = set()
        if left > 0:
            binding = [any(probe.kind == "constraint" for probe in probes(line)) for line in lines]
            for at in sorted(range(len(lines)), key=lambda at: (binding[at], at)):
                if left <= 0:
                    break
                out.add(at)
                left -= costs[at]
        return [line for at, line in enumerate(lines) if at not in out]

    def _tell(self, event: Event, told: Mapping[str, Any]) -> None:
        for subscriber in tuple(self._subscribers.get(event, ())):
            subscriber(told)


class _Unit(NamedTuple):
    """Messages that stay or leave together."""

    places: tuple[int, ...]
    stays: bool
    is_broken: bool
    """Whether it is a result without a call, or has calls without results."""
    is_summary: bool


def _units(items: Sequence[CountedMessage]) -> Iterator[_Unit]:
    """Yield tool calls with their results, and every other message by itself, in order."""
    summaries = {at for at, item in enumerate(items) if item.role == "user" and _SUMMARY.match(item.message.text)}
    spoken = (at for at, item in enumerate(items) if item.role == "user" and not item.results)
    task = next((at for at in spoken if at not in summaries), -1)
    at = 0
    while at < len(items):
        places, waiting = [at], set(items[at].calls)
        while waiting and places[-1] + 1 < len(items) and items[places[-1] + 1].results & waiting:
            places.append(places[-1] + 1)
            waiting -= items[places[-1]].results
        at = places[-1] + 1
        is_last = at == len(items)
        is_summary = places[0] in summaries
        stays = is_last or is_summary or task in places or items[places[0]].role == "system"
        broken = not is_last and (bool(waiting) or bool(items[places[0]].results))
        yield _Unit(tuple(places), stays, broken and not stays, is_summary and not is_last)


def middle_out(items: Sequence[T], percent: int) -> list[T]:
    """Return this percentage of the items, alternating around the middle; at least one unless the percentage is 0.

    >>> middle_out("abcdefgh", 50), middle_out("abcdefgh", 1), middle_out("abc", 0)
    (['d', 'e', 'c', 'f'], ['d'], [])
    """
    count = len(items) * percent // 100 or (1 if percent and items else 0)
    middle = len(items) // 2
    order = [middle - 1 - n // 2 if n % 2 == 0 else middle + n // 2 for n in range(2 * len(items) + 2)]
    return [items[at] for at in order if 0 <= at < len(items)][:count]


def _line(content: object) -> str:
    text = (
        content
        if isinstance(content, str)
        else "".join(str(block.get("text", "")) for block in content or () if isinstance(block, dict))
        if isinstance(content, list)
        else str(content)
    )
    kind = "structured" if text.lstrip()[:1] in ("{", "[") else "text"
    line = f"[{kind} result left out, {len(text)} characters]"
    return line if len(line) < len(text) else text


# -- as policies of a builder -----------------------------------------------------------------------------------------


def policy_named(name: PolicyName) -> Policy:
    """Return the policy with this name; raise `InputError` for an unknown name."""
    if name not in get_args(PolicyName):
        raise InputError(f"no policy named {name!r:.60}; known: {', '.join(get_args(PolicyName))}")
    if name == "threshold":
        return Policy()
    return middle_out_policy() if name == "middle_out" else importance_policy()


def middle_out_policy() -> Policy:
    """Return the policy ``middle_out``: mask 10, 20, 50, then all tool results, from the middle of the window outward.

    It stops at the first level that reaches the target. If all masks are not enough, whole groups leave and are
    summarized. The report names the level.
    """
    return Policy(name="middle-out/1 threshold", choose=_choose_middle_out, shortens_old_replies=False)


def _choose_middle_out(window: Window, need_tokens: int) -> CompactionChoice:
    window.price_masks(closed=True)
    rows = [row for row in window.candidates if not row.must and not row.soft and row.masked_tokens < row.tokens]
    taken, percent = rows[:0], 0
    for percent in REMOVAL_LEVELS:
        taken = middle_out(rows, percent)
        if sum(row.tokens - row.masked_tokens for row in taken) >= max(_least(window), window.excess_tokens):
            need_tokens = 0
            break
    mask = tuple(row.group for row in sorted(taken, key=lambda row: row.group.first))
    chosen = CompactionChoice(mask=mask, is_summarized=False, detail=f"{percent} %")
    return with_default(window, chosen, need_tokens, kept=lambda first: False)


def importance_policy(weights: ImportanceWeights | None = None) -> Policy:
    """Return the policy ``importance``: whole groups leave, those of least worth first."""
    choose = partial(_choose_by_worth, weights or ImportanceWeights())
    return Policy(name="importance/1 threshold", choose=choose, shortens_old_replies=False)


def _choose_by_worth(weights: ImportanceWeights, window: Window, need_tokens: int) -> CompactionChoice:
    rows = window.candidates
    worth = {
        row.group.first: max(weights.worth(entry.message, at, len(rows)) for entry in row.group.entries)
        for at, row in enumerate(rows)
    }
    leaving = []
    left = need_tokens = max(need_tokens, _least(window))
    for row in sorted(rows, key=lambda row: (row.soft, worth[row.group.first], row.group.first)):
        if left <= 0:
            break
        if not row.must and not row.task:
            leaving.append(row)
            left -= row.tokens
    drop = tuple(row.group for row in sorted(leaving, key=lambda row: row.group.first))
    return with_default(window, CompactionChoice(drop=drop), need_tokens, kept=lambda first: False)


def _least(window: Window) -> int:
    """Return the least number of tokens that a compaction must save."""
    return int(window.section_tokens * MIN_PROGRESS_FRACTION) + 1


# -- pruning in one call ---------------------------------------------------------------------------------------------


def prune_context(
    history: Sequence[Wire], max_tokens: int | None = None, model: str = DEFAULT_MODEL, **settings: Any
) -> PrunedContext:
    """Call `ContextPruner.prune` once; `settings` are the pruner's arguments.

    >>> words = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    >>> prune_context(words).pruned is words
    True
    """
    return ContextPruner(model, **settings).prune(history, max_tokens)


def summarize_context(
    history: Sequence[Wire], max_items: int = KEPT_MESSAGES, model: str = DEFAULT_MODEL, **settings: Any
) -> SummarizedContext:
    """Call `ContextPruner.summarize` once."""
    return ContextPruner(model, **settings).summarize(history, max_items)


def context_stats(history: Sequence[Wire], model: str = DEFAULT_MODEL, **settings: Any) -> ContextStats:
    """Call `ContextPruner.stats` once."""
    return ContextPruner(model, **settings).stats(history)


def auto_manage_context(history: Sequence[Wire], model: str = DEFAULT_MODEL, **settings: Any) -> PrunedContext:
    """Prune a history that exceeds 80 % of the model's limit; return the same list if it does not."""
    return ContextPruner(model, **settings).prune(history)
