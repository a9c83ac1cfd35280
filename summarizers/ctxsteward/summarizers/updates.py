"""Statements that replace others: explicit corrections, restatements with another value, revoked rules, tasks done.

The extractive summarizer calls `replaced` for all statements of a compaction; `Reader` feeds an `UpdateTracker` message
by message. Input is statements in ordinal order: from originals that leave the window, from standing bullets and from
messages that stay visible. The outcome gives for each stale statement the newer one that replaces it.

It prefers precision: a missed update leaves the old value next to the new one (readable, newer last), but a false one
loses a fact. So two statements that name different people, orders, opposites (staging / production) or places never
replace each other. Candidates come from bounded posting lists, so time is linear in the statements.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ctxsteward.language.values import DISTINCTIVE, Value
from ctxsteward.language.words import STOP, contrasts

from .cues import about_the_same, thing
from .salience import PlacedSentence, SentenceReading, Settling

POSTINGS = 16
"""Number of newest statements that are remembered for each content word and value."""

REMEMBERED = 4_096
"""Number of newest statements that may still be replaced; older ones are forgotten."""

_CAPITALIZED = re.compile(r"\b[A-Z][a-z]{2,}\b")
_OWNING = ("'s ", "’s ", "的")
_OWNED = re.compile(r"\b(\w[\w-]{0,30})['’]s (\w{1,30})|([\u3400-\u9fff]{2})的([\u3400-\u9fff]{2})")
RARE = 2
"""Most remembered statements that contain a rare word."""
BRIEF = 9
"""Most content words of a statement about the state of one thing; a longer one is a narrative."""
NEAR = 8
"""Most ordinals between "make that 45" and the statement it corrects, if it does not say what it is about."""

LEAST_SHARED_FRACTION = 0.5
"""Share of the shorter statement's words. With fewer in common, only a correction or a settled task replaces it."""

_NUMERIC = frozenset(("number", "quantity", "money", "percent", "time"))


class OpenStatement(Protocol):
    """A statement that later ones may replace."""

    @property
    def reading(self) -> SentenceReading:
        """The reading of the sentence."""

    @property
    def order(self) -> int:
        """Ordinal of the newest original that contains it."""

    @property
    def role(self) -> str: ...

    @property
    def words(self) -> int:
        """Number of its content words."""

    @property
    def settling(self) -> Settling:
        """Whether it wants something, or reports that something is over or was done."""


class UpdateMatch(NamedTuple):
    """The newer statement that replaces an older one, and the stale values (empty: the whole statement)."""

    newer: int
    stale: frozenset[str]


S = TypeVar("S", bound=OpenStatement)
Postings = int | tuple[int, ...]
"""The newest statements with a word. Most words are in one alone, so its position takes the place of a tuple."""


def _statements(postings: Mapping[str, Postings], key: str) -> tuple[int, ...]:
    held = postings.get(key, ())
    return (held,) if isinstance(held, int) else held


def columns(*tables: Mapping[Any, Any]) -> list[list[list[Any]]]:
    """Return each table as its keys and its values, because keys of JSON objects are always strings."""
    return [[[*table], [*table.values()]] for table in tables]


class UpdateTracker(Generic[S]):
    """Finds replacements, statement by statement."""

    def __init__(self, keep: Callable[[PlacedSentence], S]) -> None:
        """`keep` converts a statement to the form in which it waits."""
        self.count: int = 0
        """Number of statements added; the position of the next one."""
        self.stale: dict[int, UpdateMatch] = {}
        """Position of a stale statement → its replacement."""
        self._keep = keep
        self._open: dict[int, S] = {}
        """Statements that a later one may replace: not stale, and among the newest `REMEMBERED`."""
        self._by_word: dict[str, Postings] = {}
        self._by_value: dict[str, Postings] = {}
        self._recent: deque[int] = deque(maxlen=4 * POSTINGS)

    def add(self, statement: PlacedSentence) -> dict[int, S]:
        """Add the next statement, oldest first, and return those that it makes stale, by position."""
        index, new = self.count, statement.reading
        self.count += 1
        found: list[tuple[int, UpdateMatch]] = []
        if new.values or new.revokes or new.stands or new.deeds or new.updates >= 3:
            found = self._replaced_by(index, statement)
            self.stale.update(found)
        if new.values or new.names or new.stands or found or new.worth >= 60:
            self._open[index] = self._keep(statement)
            self._post(index, new)
        replaced = {old: self._open.pop(old) for old in dict.fromkeys(old for old, _ in found)}
        if len(self._open) > REMEMBERED:
            del self._open[next(iter(self._open))]
        return replaced

    def state(self) -> list[Any]:
        """Return the state for `resume`, without stale values; open statements are tuples."""
        newer = {old: match.newer for old, match in self.stale.items()}
        return [self.count, [*self._recent], *columns(newer, self._open, self._by_word, self._by_value)]

    def resume(self, state: list[Any], kept: Callable[[list[Any]], S]) -> None:
        """Restore a state; `kept` converts each tuple to an open statement."""
        self.count, recent, stale, open_, words, values = state
        self._recent.extend(recent)
        self.stale.update((old, UpdateMatch(newer, frozenset())) for old, newer in zip(*stale, strict=True))
        self._open = dict(zip(open_[0], map(kept, open_[1]), strict=True))
        self._by_word, self._by_value = (
            {key: held if isinstance(held, int) else tuple(held) for key, held in zip(*table, strict=True)}
            for table in (words, values)
        )

    def _post(self, index: int, reading: SentenceReading) -> None:
        for keys, postings in ((reading.subject, self._by_word), (reading.norms, self._by_value)):
            for key in keys:
                held = _statements(postings, key)
                postings[key] = (*held[1 - POSTINGS :], index) if held else index
        self._recent.append(index)

    def _candidates(self, reading: SentenceReading) -> Iterator[tuple[int, S, int]]:
        """Return open statements that may be about the same thing: position, statement, number of shared words."""
        shared: Counter[int] = Counter()
        for word in reading.subject:
            shared.update(_statements(self._by_word, word))
        if reading.updates >= 3:
            for norm in reading.norms:
                for index in _statements(self._by_value, norm):
                    shared[index] += 0
        found = map(self._open.get, shared)
        return (
            (old, before, both) for (old, both), before in zip(shared.items(), found, strict=True) if before is not None
        )

    def _share_rare(self, new: SentenceReading) -> set[int]:
        """Return the statements that share a word, or two characters in a row, which hardly any other statement has."""
        held = (_statements(self._by_word, word) for word in new.subject)
        return {old for found in held if len(found) <= RARE for old in found}

    def _newest(self, statement: PlacedSentence, reach: int) -> Iterator[tuple[int, S]]:
        """Yield open statements of the last `reach` ordinals, newest first."""
        for old in reversed(self._recent):
            if old in self._open:
                if statement.order - self._open[old].order > reach:
                    return
                yield old, self._open[old]

    def _replaced_by(self, index: int, statement: PlacedSentence) -> list[tuple[int, UpdateMatch]]:
        new = statement.reading
        found: list[tuple[int, UpdateMatch]] = []
        all_rare, settled, plain = self._share_rare(new), _may_settle(statement), new.updates < 3
        size = len(new.subject)
        for old, placed, shared in self._candidates(new):
            rare = old in all_rare
            if placed.settling in settled and settles(placed, statement, rare=rare):
                found.append((old, UpdateMatch(index, frozenset())))
                continue
            if plain:
                fewer = size if size < placed.words else placed.words
                if shared < LEAST_SHARED_FRACTION * fewer or (shared < 2 < fewer and not rare):
                    continue
            if not _may_correct(statement, placed):
                continue
            before = placed.reading
            values = stale_values(before, new, shared, rare=rare)
            if values or _corrects(before, new) or (rare and _chooses_again(placed, statement)):
                found.append((old, UpdateMatch(index, values)))
        found = _about_one(found, all_rare, new.norms)
        if not found and new.updates >= 3 and len(new.subject) <= 1 and new.values:
            found += self._nearest(index, statement)
        if new.revokes and (old_rule := self._revoked(statement)) is not None:
            found.append((old_rule, UpdateMatch(index, frozenset())))
        return found

    def _nearest(self, index: int, statement: PlacedSentence) -> list[tuple[int, UpdateMatch]]:
        """Find for "Make that 45" the newest statement close by with a value of the same type."""
        new = statement.reading
        for old, placed in self._newest(statement, NEAR):
            pairs = _competing(placed.reading, new)
            if pairs and placed.reading.rule < 3 and not _different_things(placed.reading, new):
                return [(old, UpdateMatch(index, pairs))]
        return []

    def _revoked(self, statement: PlacedSentence) -> int | None:
        """Find for "Drop the rule about Fridays" the rule or decision that shares most of its words."""
        new = statement.reading
        best, best_share = None, 0.0
        for old, placed, shared in self._candidates(new):
            before = placed.reading
            if before.kind not in ("constraint", "decision") or placed.order >= statement.order:
                continue
            shared += len(new.norms & before.norms)
            share = shared / max(1, min(len(new.subject), len(before.subject)))
            enough = shared >= 2 or (shared == 1 and new.subject <= before.subject)
            if enough and share >= 0.4 and share > best_share and not _different_things(before, new):
                best, best_share = old, share
        if best is None and statement.role == "user" and new.subject <= {"rule", "requirement", "restriction"}:
            near = self._newest(statement, NEAR // 2)
            rules = (old for old, placed in near if placed.reading.kind == "constraint" and placed.role == "user")
            best = next(rules, None)
        return best


def _about_one(
    found: list[tuple[int, UpdateMatch]], rare: set[int], quoted: frozenset[str]
) -> list[tuple[int, UpdateMatch]]:
    """Limit a new value to one thing: to matches with a shared rare word, or whose old value the statement quotes."""
    valued = [(old, match) for old, match in found if match.stale]
    if len({match.stale for _, match in valued}) < 2:
        return found
    named = {old for old, match in valued if old in rare or match.stale <= quoted}
    return [(old, match) for old, match in found if not match.stale or old in named]


def _size(reading: SentenceReading) -> int:
    """Return the number of content words; halved for Chinese, because each character is in two bigrams."""
    return len(reading.subject) if reading.text.isascii() else len(reading.subject) // 2


def _brief(statement: PlacedSentence) -> bool:
    """Return whether it is a user's short statement, or an assistant's short report of an end."""
    new = statement.reading
    if _size(new) > BRIEF or new.text.rstrip("\"'”’ ").endswith(("?", "？")):
        return False
    return statement.role == "user" or (statement.role == "assistant" and new.stands == "over")


def replaced(statements: Iterable[PlacedSentence]) -> dict[int, UpdateMatch]:
    """Return the positions of stale statements with their replacements. The oldest statements come first."""
    updates: UpdateTracker[PlacedSentence] = UpdateTracker(lambda statement: statement)
    for statement in statements:
        updates.add(statement)
    return updates.stale


def _corrects(old: SentenceReading, new: SentenceReading) -> bool:
    """Detect "Scratch slate, the floor will be parquet": a correction with nearly all words of an older decision."""
    if new.updates < 3 or old.kind != "decision" or _different_things(old, new):
        return False
    before, after = thing(old.text), thing(new.text)
    return len(before) >= 2 and len(before & after) >= 0.75 * len(before) and not after <= before


def _chooses_again(old: OpenStatement, new: PlacedSentence) -> bool:
    """Detect "Back end in Go, I've come round": a short correction with another option for the decision."""
    before, after = old.reading, new.reading
    if (
        after.updates < 3
        or before.kind != "decision"
        or before.values
        or after.values
        or not _brief(new)
        or new.role != old.role
    ):
        return False
    about = before.subject - before.names
    option, other = before.subject - after.subject, after.subject - before.subject
    named = bool(before.names & after.subject)
    few = 3 if before.text.isascii() else 6
    if not 0 < len(option - before.names) + len(before.names) <= few or not other:
        return False
    return (named or len(about & after.subject) > 0.5 * len(about)) and not _different_things(before, after)


def _may_settle(new: PlacedSentence) -> tuple[Settling, ...]:
    """Return the `settling` of older statements that this one may settle."""
    after = new.reading
    if after.stands == "over":
        return ("open",)  # a second report of the end replaces nothing
    if after.stands == "open":
        if new.role == "assistant":
            return ()  # it repeats the user
        return ("open", "over", "done") if after.values or after.updates else ("over", "done")  # else the same wish
    return ("open", "over") if after.deeds else ()


def settles(old: OpenStatement, new: PlacedSentence, *, rare: bool = False) -> bool:
    """Return whether a statement gives the present state of the thing of an older one that it `_may_settle`."""
    before, after = old.reading, new.reading
    if new.order < old.order:
        return False
    wanted, told = thing(before.text), thing(after.text)
    if after.stands == "over":
        rare = rare and len(wanted & told) >= 0.3 * len(told)  # and is about hardly anything else
        same = about_the_same(wanted, told, 0.5 if rare else 0.6, rare=rare)
    else:
        same = len(wanted & told) >= 0.75 * len(wanted) and about_the_same(wanted, told)
    if not same or _opposites(before, after):
        return False
    return bool(after.stands) or not after.deeds.isdisjoint(wanted)


def _opposites(old: SentenceReading, new: SentenceReading) -> bool:
    """Return whether the two name different members of a group of opposites: staging and production server."""
    first, second = contrasts(old.subject, old.text), contrasts(new.subject, new.text)
    return any(first[group].isdisjoint(second[group]) for group in first.keys() & second.keys())


def _may_correct(new: PlacedSentence, old: OpenStatement) -> bool:
    if new.role == "assistant" and old.role == "user" and new.reading.updates < 3:
        return False
    return new.order > old.order or new.reading.updates >= 3


def stale_values(old: SentenceReading, new: SentenceReading, shared: int, *, rare: bool = False) -> frozenset[str]:
    """Return the values of `old` that `new` replaces, or none. `shared` is the number of common content words.

    `rare`: one of these occurs hardly anywhere else.
    """
    if new.updates >= 3 and new.names and (swapped := _swapped_names(old, new, shared)):
        return swapped
    size = min(len(old.subject), len(new.subject))
    share = shared / size if size else 0.0
    union = len(old.subject) + len(new.subject) - shared
    if new.updates >= 3:
        enough = (shared >= 2 and share >= 0.5) or (shared >= 1 and shared / union >= (0.2 if rare else 0.34))
    elif new.updates >= 1:
        enough = shared >= 2 and share >= 0.66
    else:
        enough = shared >= 2 and (shared / union >= 0.74 or (rare and old.subject <= new.subject))
    if not enough and new.updates < 3:  # the common case, in which values need no comparison
        return frozenset()
    pairs = _competing(old, new)
    if not pairs or (new.updates < 1 and len(pairs) > 1) or _different_things(old, new) or _other_one(old, new):
        return frozenset()
    quoted = new.updates >= 3 and bool(shared or size == 0) and not pairs.isdisjoint(new.norms)
    return pairs if (enough or quoted) and _rule_survives(old, new, shared) else frozenset()


def _rule_survives(old: SentenceReading, new: SentenceReading, shared: int) -> bool:
    """Return whether a rule gives way to this sentence: to a rule, or to a sentence that repeats most of it."""
    return old.rule < 3 or new.rule >= 2 or shared >= 0.6 * len(old.subject)


def _key(value: Value) -> tuple[str, str]:
    return ("quantity", value.unit) if value.kind == "quantity" else (value.kind, "")


def _competing(old: SentenceReading, new: SentenceReading) -> frozenset[str]:
    """Return the values of `old` for which `new` has another value of the same type."""
    fresh: dict[tuple[str, str], set[str]] = {}
    for value in new.values:
        fresh.setdefault(_key(value), set()).add(value.norm)
    if not fresh or not old.values:
        return frozenset()
    known = old.norms
    stale: set[str] = set()
    for value in old.values:
        norms_of_type = fresh.get(_key(value))
        if norms_of_type is None or (value.kind == "name" and new.updates < 3) or norms_of_type <= known:
            continue
        if value.norm not in norms_of_type or new.updates >= 3:
            stale.add(value.norm)  # a correction contains both: "from 30 to 45 days"
    if not stale and new.updates >= 3:  # "not 30 but 45 days": the first has no unit
        bare = {norm for key, norms_ in fresh.items() if key[0] in _NUMERIC for norm in norms_}
        stale.update(
            value.norm
            for value in old.values
            if value.kind in _NUMERIC and value.norm in bare and bare - known and len(new.values) > 1
        )
    return frozenset(stale)


def _different_things(old: SentenceReading, new: SentenceReading) -> bool:
    """Return whether the two statements name different people, orders, places or opposites."""
    if (
        old.names
        and new.names
        and not old.names & new.names
        and not (new.updates >= 3 and old.subject & new.subject - old.names)
    ):
        return True
    for mine, others in ((old, new), (new, old)):
        ours = {value.norm for value in mine.values if value.kind in DISTINCTIVE}
        theirs = {value.norm for value in others.values if value.kind in DISTINCTIVE}
        if ours and theirs and not ours & theirs and any(value.kind not in DISTINCTIVE for value in mine.values):
            return True
    first, second = contrasts(old.subject, old.text), contrasts(new.subject, new.text)
    return first.keys() != second.keys() or any(first[group].isdisjoint(second[group]) for group in first)


def _other_one(old: SentenceReading, new: SentenceReading) -> bool:
    """Return whether each contains a capitalized name that the other lacks.

    A word all in capitals is a label or shouted, and no name; a date is a value. The same thing of two owners
    ("billing's timeout", "settlement's timeout") is two things.
    """
    first, second = old.text.casefold(), new.text.casefold()
    if any(name not in second for name in _named(old)) and any(name not in first for name in _named(new)):
        return True
    before = _owners(first)
    after = _owners(second) if before else {}
    return any(before[thing] not in second and after[thing] not in first for thing in before.keys() & after.keys())


def _owners(text: str) -> dict[str, str]:
    """Return things with an owner, and the owner of each; in Chinese the two characters on each side of 的."""
    if not any(mark in text for mark in _OWNING):
        return {}
    return {match[2] or match[4]: match[1] or match[3] for match in _OWNED.finditer(text)}


def _named(reading: SentenceReading) -> Iterator[str]:
    spans = [(value.start, value.stop) for value in reading.values if value.kind != "name"]
    for match in _CAPITALIZED.finditer(reading.text):
        if match[0].casefold() not in STOP and not any(a < match.end() and match.start() < b for a, b in spans):
            yield match[0].casefold()


def _swapped_names(old: SentenceReading, new: SentenceReading, shared: int) -> frozenset[str]:
    """Detect "Switch from Redis to Valkey": the new statement names the old choice and another one."""
    if not new.values and not old.values and old.names and old.names.isdisjoint(new.subject):
        about = min(len(old.subject - old.names), len(new.subject - new.names))
        return old.names if shared >= 2 and shared >= 0.6 * about else frozenset()
    gone = frozenset(name for name in new.names if name in old.names or name in old.subject)
    if not gone or not new.names - old.names - old.subject or old.kind not in ("decision", "fact", "preference"):
        return frozenset()
    return gone if old.kind == "decision" or shared >= 2 else frozenset()
