"""Our own diff of a call that failed and a later one that worked: which parameters, and what about them.

A diff names parameters, paths of leaves, kinds and other tools; never a value. `related` decides whether the later call
is the same attempt at all: they share an argument of some length, or the new value is like the old one, or is
the old one written differently, or was got after the failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher

from .tool_calls import Leaf, Step, is_identifier, is_name, leaves, name_words
from .tool_kinds import SWITCHES, family, kind
from .tool_sources import Sources
from .tool_templates import Fix, Verb

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
_ORDER: tuple[Verb, ...] = ("write", "take", "supply", "omit", "fewer", "total", "ask", "change", "check")


def changed(failed: Step, worked: Step) -> tuple[str, ...]:
    """Parameters that differ, in the order of the call that worked."""
    before, after = failed.arguments or {}, worked.arguments or {}
    names = [*after, *(name for name in before if name not in after)]
    return tuple(n for n in names if is_name(n) and before.get(n, _MISSING) != after.get(n, _MISSING))


def blamed(step: Step) -> tuple[str, ...]:
    """Parameters that the error's own words point at: by their names, or by a value of theirs; or the only one."""
    if step.failure is None or not step.arguments:
        return ()
    message = step.failure.message.casefold()
    said = name_words(message) - _STOP_WORDS
    scores = {name: _blame(name, value, message, said) for name, value in step.arguments.items() if is_name(name)}
    best = max(scores.values(), default=0)
    if best == 0 and len(step.arguments) == 1:
        return tuple(scores)
    return tuple(name for name, score in scores.items() if score == best > 0)


def blamed_leaves(step: Step, parameter: str) -> tuple[str, ...]:
    """Paths inside a parameter, those first that the error's own words name; at most `MAX_FIXES`."""
    value = (step.arguments or {}).get(parameter)
    paths = tuple(dict.fromkeys(path for path, _ in leaves(value, parameter))) or (parameter,)
    said = name_words(step.failure.message.casefold()) if step.failure else frozenset[str]()
    named = sorted(paths, key=lambda path: -len((name_words(path) - _STOP_WORDS) & said))
    return tuple(named[:MAX_FIXES])


def related(failed: Step, worked: Step, sources: Sources) -> bool:
    """Whether the later call is another attempt at the same thing."""
    if failed.arguments is None or worked.arguments is None:
        return True
    before, after = Counter(_pairs(failed.arguments)), Counter(_pairs(worked.arguments))
    if any(len(str(value)) > 2 for _, value in before & after):
        return True
    old = [value for _, value in before - after]
    for (_, new), past in zip((after - before), old, strict=False):
        if _like(past, new) or _rewritten(past, new):
            return True
    news = [value for _, value in (after - before)]
    origins = (
        sources.origin(value, failed=failed.answered, worked=worked.utterance, tool=failed.tool) for value in news[:8]
    )
    return len(before) == 0 or any(origin is not None and origin.is_new for origin in origins)


def fixes(parameter: str, failed: Step, worked: Step, sources: Sources) -> tuple[Fix, ...]:
    """What changed about one parameter, most telling first; at least one."""
    before = (failed.arguments or {}).get(parameter, _MISSING)
    after = (worked.arguments or {}).get(parameter, _MISSING)
    if after is _MISSING:
        return (Fix(verb="omit", what=parameter),)
    found = dict.fromkeys(_leaf_fixes(parameter, before, after, failed, worked, sources))
    if before is _MISSING:
        taken = [fix for fix in found if fix.verb == "take" and fix.what == parameter]
        if kind(after) in SWITCHES:
            return (Fix(verb="write", what=parameter, source=kind(after)),)
        return tuple(taken) or (Fix(verb="supply", what=parameter),)
    old, new = kind(before), kind(after)
    if old != new and (family(old) != family(new) or new not in _WEAK):
        return (Fix(verb="write", what=parameter, source=new),)
    if not found:
        found = {Fix(verb="change", what=parameter): None}
    if isinstance(after, str) and _is_free(after, worked.tool):
        return (Fix(verb="check", what=parameter),)
    telling = [fix for fix in found if fix.verb != "change"] or list(found)
    return tuple(sorted(telling, key=lambda fix: _ORDER.index(fix.verb)))[:MAX_FIXES]


def _leaf_fixes(
    parameter: str, before: object, after: object, failed: Step, worked: Step, sources: Sources
) -> Iterator[Fix]:
    old = Counter(leaves(before, parameter)) if before is not _MISSING else Counter[tuple[str, Leaf]]()
    new = Counter(leaves(after, parameter))
    for path in dict.fromkeys(path for path, _ in (old - new) if "[]" in path):
        if _count(path, new) < _count(path, old):
            yield Fix(verb="fewer", what=path[: path.rindex("[]")])
            break
    for path in dict.fromkeys(path for path, _ in (new - old)):
        values = [value for where, value in (new - old) if where == path]
        if _is_total(path, old, new, failed):
            yield Fix(verb="total", what=path)
            continue
        origins = [
            origin
            for value in values[:8]
            if (origin := sources.origin(value, failed=failed.answered, worked=worked.utterance, tool=failed.tool))
        ]
        tool = next((origin.tool for origin in origins if origin.kind == "tool"), None)
        if tool is not None and is_identifier(path):
            yield Fix(verb="take", what=path, source=tool)
        elif any(origin.is_new for origin in origins):
            yield Fix(verb="ask", what=path)
        else:
            yield Fix(verb="change", what=path)


def _is_total(
    path: str, old: Mapping[tuple[str, Leaf], int], new: Mapping[tuple[str, Leaf], int], failed: Step
) -> bool:
    """Whether the numbers of a path now come to one that the error named, and did not before."""
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


def _pairs(arguments: dict[str, object]) -> Iterator[tuple[str, Leaf]]:
    for name, value in arguments.items():
        yield from leaves(value, name if is_name(name) else "_")


def _like(before: Leaf, after: Leaf) -> bool:
    one, two = str(before)[:_LIKE_CHARS].casefold(), str(after)[:_LIKE_CHARS].casefold()
    return SequenceMatcher(None, one, two, autojunk=False).ratio() >= LIKE_FRACTION


def _rewritten(before: Leaf, after: Leaf) -> bool:
    """Whether two values are one in two formats: the same numbers, months by name among them, or the same characters.

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
    """A value in lower case, months as numbers."""
    if value is None or isinstance(value, bool):
        return ""
    text = f"{value}"[:_LIKE_CHARS].casefold()
    return _MONTH.sub(lambda month: f" {_MONTHS.index(month[1]) + 1} ", text)


def _letters(text: str) -> str:
    """What is left without digits, separators and the endings of ordinals."""
    return _SEPARATORS.sub("", _DIGITS.sub("", re.sub(r"(?<=\d)(?:st|nd|rd|th|[年月日号])", "", text)))


def _is_free(value: str, tool: str) -> bool:
    """Whether a value is prose, code or a command line: what it should be is not for a template to say."""
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
