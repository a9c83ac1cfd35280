"""The tool errors of a transcript, each with its parameters and the call that recovered from it, if any.

`errors` uses the recoveries, `harvest.usage` the failures, so both see the same codes and parameters. A recovery is the
first call of the same tool that works within `MAX_ATTEMPTS` calls and is related to the failed one: it shares an
argument of some length, or its new value resembles the old one or came up only after the failure. A call that works
recovers from all failures before it. The parameters are those that the error names and the recovery changed; else those
that the recovery changed, up to `MAX_PARAMETERS`; without a recovery, those that the error names.

The diff of the two calls names parameters, leaves, kinds and other tools, never a value. The origin of a value is
looked up in the words of earlier answers and of the user's messages, in time linear in the transcript. A text is the
origin if it has all words of the value. Short numbers and words occur everywhere, so they have no origin.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from ...observations.transcript import ReplayedTranscript
from .calls import (
    SWITCHES,
    Leaf,
    ToolStep,
    family,
    is_identifier,
    is_name,
    is_tool,
    kind,
    latest,
    leaves,
    name_words,
    steps,
)
from .error_codes import TRANSIENT, ErrorCode
from .patterns import RANGES, TextShape, form_of, is_same_value, reshaped, told_bound, told_pattern
from .templates import ArgumentFix, Verb

MIN_CHARS = 3
REDACTED = "[redacted:"
"""A value with this mark has no origin, because a part of it is missing."""
MAX_PLACES = 64
_TOKEN = re.compile(r"[^\W_](?:[\w@.+-]*[^\W_])?")


class ValueOrigin(NamedTuple):
    """The tool or user that gave a value."""

    kind: Literal["tool", "user"]
    tool: str | None
    is_new: bool
    """Whether it was given after the failure."""


class ValueOrigins:
    """Index of the words of users and working calls; build it once for one transcript."""

    def __init__(self, replayed: ReplayedTranscript, steps: Sequence[ToolStep]) -> None:
        self._tools = {step.answered: step.tool for step in steps if step.works and is_tool(step.tool)}
        self._places: dict[str, list[int]] = {}
        for index, said in enumerate(replayed.utterances):
            if said.role == "user" or index in self._tools:
                for token in set(_tokens(said.text)):
                    places = self._places.setdefault(token, [])
                    if len(places) < MAX_PLACES:
                        places.append(index)

    def origin(self, value: Leaf, *, failed: int, worked: int, tool: str) -> ValueOrigin | None:
        """Return the origin of a value before the call at utterance `worked`, preferably after the answer `failed`."""
        places = [place for place in self._places_of(value) if place < worked]
        for is_new, wanted in ((True, range(failed + 1, worked)), (False, range(failed))):
            inside = [place for place in places if place in wanted]
            source = next((self._tools[place] for place in inside if self._tools.get(place, tool) != tool), None)
            if source is not None:
                return ValueOrigin("tool", source, is_new)
            if any(place not in self._tools for place in inside):
                return ValueOrigin("user", None, is_new)
        return None

    def _places_of(self, value: Leaf) -> Iterable[int]:
        """Return the utterances that have all words of a value."""
        text = value if isinstance(value, str) else "" if isinstance(value, bool) or value is None else f"{value:g}"
        tokens = _tokens(text[:400])
        if REDACTED in text or not tokens or max(map(len, tokens)) < MIN_CHARS:
            return ()
        lists = sorted((self._places.get(token, []) for token in set(tokens)), key=len)
        rest = [set(places) for places in lists[1:]]
        return [place for place in lists[0] if all(place in others for others in rest)]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


MAX_FIXES = 2
FREE_TEXT_CHARS = 60
FREE_TEXT_WORDS = 3
LIKE_FRACTION = 0.6
_LIKE_CHARS = 200
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})[a-z]*\b")
_DIGITS = re.compile(r"\d+")
_SEPARATORS = re.compile(r"[\W_]+")
_MISSING = object()
_WEAK = ("text", "word", "identifier", "relative path", "whole number as text", "integer", "number", "empty text")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_STOP_WORDS = frozenset(["id", "name", "number", "type", "list", "data", "value", "first", "last", "the", "key", "a"])
_ORDER: tuple[Verb, ...] = ("write", "take", "supply", "omit", "fewer", "total", "ask", "change")


def changed_parameters(failed: ToolStep, worked: ToolStep) -> tuple[str, ...]:
    """Return the parameters that differ, in the order of the call that worked."""
    before, after = failed.arguments or {}, worked.arguments or {}
    names = [*after, *(name for name in before if name not in after)]
    return tuple(n for n in names if is_name(n) and before.get(n, _MISSING) != after.get(n, _MISSING))


def blamed_parameters(step: ToolStep) -> tuple[str, ...]:
    """Return the parameters with a name or a value that the error's words contain, or else the only parameter."""
    if step.failure is None or not step.arguments:
        return ()
    message = step.failure.message.casefold()
    said = name_words(message) - _STOP_WORDS
    scores = {name: _blame(name, value, message, said) for name, value in step.arguments.items() if is_name(name)}
    best = max(scores.values(), default=0)
    if best == 0 and len(step.arguments) == 1:
        return tuple(scores)
    return tuple(name for name, score in scores.items() if score == best > 0)


def related(failed: ToolStep, worked: ToolStep, sources: ValueOrigins) -> bool:
    """Whether a later call is another attempt at the same thing."""
    if failed.arguments is None or worked.arguments is None:
        return True
    before, after = Counter(paired_values(failed.arguments)), Counter(paired_values(worked.arguments))
    if any(len(str(value)) > 2 for _, value in before & after):
        return True
    old = [value for _, value in before - after]
    new = [value for _, value in after - before]
    if any(_like(*pair) or _rewritten(*pair) for pair in zip(old, new, strict=False)):
        return True
    origins = (
        sources.origin(value, failed=failed.answered, worked=worked.utterance, tool=failed.tool) for value in new[:8]
    )
    return len(before) == 0 or any(origin is not None and origin.is_new for origin in origins)


def fixes(parameter: str, failed: ToolStep, worked: ToolStep, sources: ValueOrigins) -> tuple[ArgumentFix, ...]:
    """Return the fixes of one parameter, the most specific first; nothing for prose or code."""
    before = (failed.arguments or {}).get(parameter, _MISSING)
    after = (worked.arguments or {}).get(parameter, _MISSING)
    if after is _MISSING:
        return (ArgumentFix(verb="omit", what=parameter),)
    found = dict.fromkeys(_leaf_fixes(parameter, before, after, failed, worked, sources))
    if before is _MISSING:
        taken = [fix for fix in found if fix.verb == "take" and fix.what == parameter]
        if kind(after) in SWITCHES:
            return (ArgumentFix(verb="write", what=parameter, source=kind(after)),)
        return tuple(taken) or (ArgumentFix(verb="supply", what=parameter),)
    old, new = kind(before), kind(after)
    told = _told(parameter, before, after, failed)
    if told is not None:
        return (told,)
    if isinstance(before, str) and isinstance(after, str):
        shape = reshaped(before, after)
        if shape is not None:
            return (_shape_fix(parameter, shape, before, failed, sources),)
    if old != new and (family(old) != family(new) or type(before) is not type(after) or new not in _WEAK):
        return (ArgumentFix(verb="write", what=parameter, source=new),)
    is_free = isinstance(after, str) and _is_free(after, worked.tool)
    if all(fix.verb in ("change", "fewer") for fix in found):
        bound = told_bound(failed.answer.text if failed.answer else "", before, after)
        if bound is not None:
            return (ArgumentFix(verb="give", what=parameter, source=bound),)
    if not is_free and isinstance(before, str) and isinstance(after, str) and all(f.verb == "change" for f in found):
        form = form_of(before, after)
        if form is not None and is_same_value(before, after):
            return (ArgumentFix(verb="write", what=parameter, source=form),)
        if form is not None and failed.failure is not None and failed.failure.code == "invalid_argument":
            return (ArgumentFix(verb="give", what=parameter, source=form),)  # "give", because a person must decide
    if is_free:
        return ()
    if not found:
        found = {ArgumentFix(verb="change", what=parameter): None}
    specific = [fix for fix in found if fix.verb != "change"] or list(found)
    return tuple(sorted(specific, key=lambda fix: _ORDER.index(fix.verb)))[:MAX_FIXES]


def _told(parameter: str, before: object, after: object, failed: ToolStep) -> ArgumentFix | None:
    """Return the form or values that the error asks for, or the new type of an otherwise equal value."""
    if str(before).casefold() == str(after).casefold() and type(before) is not type(after):
        return ArgumentFix(verb="write", what=parameter, source=f"{kind(after)}, not {kind(before)}")
    pattern = told_pattern(failed.answer.text if failed.answer else "", before, after)
    if pattern is None:
        return None
    verb: Verb = "give" if pattern.startswith(RANGES) else "write"
    return ArgumentFix(verb=verb, what=parameter, source=pattern)


def _shape_fix(parameter: str, shape: TextShape, before: str, failed: ToolStep, sources: ValueOrigins) -> ArgumentFix:
    """Return the fix of a text's shape; for line numbers, name the tool that adds them, if known."""
    source = shape.what
    if source == "line numbers":
        origin = sources.origin(before, failed=failed.utterance, worked=failed.utterance, tool="")
        source = f"{source} that {origin.tool} adds" if origin and origin.tool else source
    return ArgumentFix(verb=shape.do, what=parameter, source=source)


def _leaf_fixes(
    parameter: str, before: object, after: object, failed: ToolStep, worked: ToolStep, sources: ValueOrigins
) -> Iterator[ArgumentFix]:
    old = Counter(leaves(before, parameter)) if before is not _MISSING else Counter[tuple[str, Leaf]]()
    new = Counter(leaves(after, parameter))
    for path in dict.fromkeys(path for path, _ in (old - new) if "[]" in path):
        if _count(path, new) < _count(path, old):
            yield ArgumentFix(verb="fewer", what=path[: path.rindex("[]")])
            break
    for path in dict.fromkeys(path for path, _ in (new - old)):
        values = [value for where, value in (new - old) if where == path]
        if _is_total(path, old, new, failed):
            yield ArgumentFix(verb="total", what=path)
            continue
        origins = [
            origin
            for value in values[:8]
            if (origin := sources.origin(value, failed=failed.answered, worked=worked.utterance, tool=failed.tool))
        ]
        tool = next((origin.tool for origin in origins if origin.kind == "tool"), None)
        if tool is not None and is_identifier(path):
            yield ArgumentFix(verb="take", what=path, source=tool)
        elif any(origin.is_new for origin in origins):
            yield ArgumentFix(verb="ask", what=path)
        else:
            yield ArgumentFix(verb="change", what=path)


def _is_total(
    path: str, old: Mapping[tuple[str, Leaf], int], new: Mapping[tuple[str, Leaf], int], failed: ToolStep
) -> bool:
    """Whether the sum of a path's numbers is now a number that the error names, and was not before."""
    assert failed.failure is not None
    named = {float(number) for number in _NUMBER.findall(failed.failure.message.replace(",", "")[:400])}
    sums = [_sum(path, counted) for counted in (old, new)]
    return sums[1] is not None and sums[1] != sums[0] and sums[1] in named and sums[1] > 1


def _sum(path: str, counted: Mapping[tuple[str, Leaf], int]) -> float | None:
    values = [(value, times) for (where, value), times in counted.items() if where == path]
    if not values or any(isinstance(value, bool) or not isinstance(value, int | float) for value, _ in values):
        return None
    try:
        return float(sum(value * times for value, times in values if isinstance(value, int | float)))
    except OverflowError:
        return None


def _count(path: str, counted: Mapping[tuple[str, Leaf], int]) -> int:
    return sum(times for (where, _), times in counted.items() if where == path)


def paired_values(arguments: dict[str, object]) -> Iterator[tuple[str, Leaf]]:
    """Yield the leaves of arguments, each with its path."""
    for name, value in arguments.items():
        yield from leaves(value, name if is_name(name) else "_")


def _like(before: Leaf, after: Leaf) -> bool:
    one, two = str(before)[:_LIKE_CHARS].casefold(), str(after)[:_LIKE_CHARS].casefold()
    return SequenceMatcher(None, one, two, autojunk=False).ratio() >= LIKE_FRACTION


def _rewritten(before: Leaf, after: Leaf) -> bool:
    """Whether two values are one in two formats: with the same numbers (also months by name), or the same characters.

    >>> _rewritten("1/2/2024", "2024-01-02"), _rewritten("May 5, 2024", "2024-05-05"), _rewritten("12", 12)
    (True, True, True)
    >>> _rewritten("1/2/2024", "2024-01-03"), _rewritten("A-17", "B-18")
    (False, False)
    """
    one, two = (_plain(value) for value in (before, after))
    if not one or not two:
        return False
    if _SEPARATORS.sub("", one) == _SEPARATORS.sub("", two):
        return True
    numbers = [sorted(int(number) for number in _DIGITS.findall(text)) for text in (one, two)]
    return len(numbers[0]) > 1 and numbers[0] == numbers[1] and _letters(one) == _letters(two)


def _plain(value: Leaf) -> str:
    """Return a value in lower case, with months as numbers."""
    if value is None or isinstance(value, bool):
        return ""
    text = f"{value}"[:_LIKE_CHARS].casefold()
    return _MONTH.sub(lambda month: f" {_MONTHS.index(month[1]) + 1} ", text)


def _letters(text: str) -> str:
    """Return a text without digits, separators and the endings of ordinals."""
    return _SEPARATORS.sub("", _DIGITS.sub("", re.sub(r"(?<=\d)(?:st|nd|rd|th|[年月日号])", "", text)))


def _is_free(value: str, tool: str) -> bool:
    """Whether a value is prose, code or a command line, about which no template can advise."""
    words = value.split(maxsplit=FREE_TEXT_WORDS)
    return len(value) > FREE_TEXT_CHARS or len(words) > FREE_TEXT_WORDS or "\n" in value or words[:1] == [tool]


def _blame(name: str, value: object, message: str, said: frozenset[str]) -> int:
    words = set(name_words(name))
    score = 0
    for path, leaf in leaves(value, name):
        words |= name_words(path)
        if isinstance(leaf, str) and 3 < len(leaf) <= 80 and leaf.casefold() in message:
            score = 3
    return score + len((words - _STOP_WORDS) & said)


MAX_ATTEMPTS = 8
_FORMS: tuple[Verb, ...] = ("write", "give", "drop", "keep", "begin", "take", "total", "fewer", "ask")
"""Verbs that show that an argument was wrong, rather than that it happened to change."""
MAX_PARAMETERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEpisode:
    """One error."""

    failed: ToolStep
    code: ErrorCode
    parameters: tuple[str, ...]
    """Parameters that caused it; empty if unknown, or if the same arguments worked later."""
    worked: ToolStep | None
    fixes: tuple[tuple[str | None, tuple[ArgumentFix, ...]], ...]
    """Fixes by parameter; None stands for the whole call."""


@latest
def episodes(replayed: ReplayedTranscript) -> tuple[ErrorEpisode, ...]:
    """Return the errors of a transcript in order; linear in it."""
    calls = steps(replayed)
    if all(step.failure is None for step in calls):
        return ()
    sources = ValueOrigins(replayed, calls)
    by_tool: dict[str, list[ToolStep]] = {}
    for step in calls:
        by_tool.setdefault(step.tool, []).append(step)
    found: dict[int, ErrorEpisode] = {}
    for same in by_tool.values():
        for place, step in enumerate(same):
            if step.failure is not None:
                found[step.position] = _episode(step, same[place + 1 : place + 1 + MAX_ATTEMPTS], calls, sources)
    return tuple(found[position] for position in sorted(found))


def _episode(
    failed: ToolStep, later: Sequence[ToolStep], calls: Sequence[ToolStep], sources: ValueOrigins
) -> ErrorEpisode:
    assert failed.failure is not None
    worked = next(
        (s for s in later if s.works and s.utterance > failed.utterance and related(failed, s, sources)), None
    )
    helped = tuple(_fixes_by_parameter(failed, worked, calls, sources)) if worked else ()
    parameters = tuple(name for name, _ in helped if name) if worked else blamed_parameters(failed)
    return ErrorEpisode(failed=failed, code=failed.failure.code, parameters=parameters, worked=worked, fixes=helped)


def _fixes_by_parameter(
    failed: ToolStep, worked: ToolStep, calls: Sequence[ToolStep], sources: ValueOrigins
) -> Iterator[tuple[str | None, tuple[ArgumentFix, ...]]]:
    if failed.arguments is None and worked.arguments is not None:
        yield None, (ArgumentFix(verb="write", what="arguments", source="JSON object"),)
        return
    names = changed_parameters(failed, worked)
    if names:
        named = tuple(name for name in names if name in blamed_parameters(failed))
        told = [(name, found) for name in named or names if (found := fixes(name, failed, worked, sources))]
        forms = [one for one in told if one[1][0].verb in _FORMS]
        yield from (told if named or len(names) == 1 else forms)[:MAX_PARAMETERS]
    elif failed.raw == worked.raw or failed.arguments == worked.arguments:
        between = calls[failed.position + 1 : worked.position]
        before = [step.tool for step in between if step.works and step.tool != failed.tool and is_tool(step.tool)]
        if before:
            yield None, (ArgumentFix(verb="first", source=before[-1]),)
        elif failed.failure is not None and failed.failure.code in TRANSIENT:
            yield None, (ArgumentFix(verb="repeat"),)
