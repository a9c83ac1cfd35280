"""The words of a tool-fix record: a template over tool name, error code and our own diff of arguments.

An `ArgumentFix` has one of the verbs below, and renders to an action such as ``take payment_id from get_user_details``.
`parse_action` reads it back, so that advice can be checked without a model: ``parse_action(action(fixes)) == fixes``.
Only identifiers (`calls.is_name`), kinds (`calls.kind`), rules and shapes (`patterns`) fill a hole of a template.

    take      LEAF from TOOL               a value from an earlier answer of another tool
    ask       the user for LEAF            a value that the user gave after the failure
    total     LEAF to the figure …         a number, or the sum of a list, that the error names
    write     PARAMETER as KIND            another type or format
    supply    PARAMETER                    it was missing (a switch: ``write`` it as true or false)
    omit      PARAMETER                    it was there
    fewer     of LEAF                      a list with fewer entries
    change    LEAF                         another value of unknown origin
    first     call TOOL first              the same arguments, after another tool's call
    repeat    call it again                the same arguments, at once
    stop      do not try it again          runs that succeed do without the call
    drop      SHAPE from LEAF              line numbers, indentation or quotes were too much
    keep      SHAPE of LEAF                indentation was missing
    begin     LEAF with MARK               one to three signs before a value (``#``)
    give      VALUES for PARAMETER         values that the error names, or a bound

An observation has the plain line of `text`. A record has the `sentence`, which says the error and the advice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from .calls import FIGURES, SWITCHES
from .error_codes import ERROR_CODES, MALFORMED, REFUSED, ErrorCode
from .patterns import MARK, SHAPES

NO_ARGUMENTS: Mapping[str, Collection[str]] = MappingProxyType({})


Verb = Literal[
    "take",
    "ask",
    "total",
    "write",
    "supply",
    "omit",
    "fewer",
    "change",
    "first",
    "repeat",
    "stop",
    "give",
    "drop",
    "keep",
    "begin",
]

_TEMPLATES: dict[Verb, str] = {
    "take": "take {what} from {source}",
    "ask": "ask the user for another {what}",
    "total": "make {what} come to the figure that the error names",
    "write": "write {what} as {source}",
    "supply": "supply {what}",
    "omit": "leave out {what}",
    "fewer": "give fewer of {what}",
    "change": "use another {what}",
    "first": "call {source} first",
    "repeat": "call it again",
    "stop": "do not try it again, and say why",
    "give": "give {source} for {what}",
    "drop": "drop the {source} from {what}",
    "keep": "keep the {source} of {what}",
    "begin": "begin {what} with `{source}`",
}
_SHAPE = rf"(?P<source>(?:{'|'.join(SHAPES)})(?: that [A-Za-z_][\w.:/-]{{0,63}} adds)?)"
_HOLES = {"what": r"(?P<what>[A-Za-z_][\w.\[\]-]{0,159})", "source": r"(?P<source>[^\s;][^\n;]{0,199})"}
_OWN_HOLES: dict[Verb, str] = {
    "drop": _SHAPE,
    "keep": _SHAPE,
    "begin": rf"(?P<source>{MARK})",
}


def _pattern(verb: Verb, template: str) -> re.Pattern[str]:
    holes = _HOLES | ({"source": _OWN_HOLES[verb]} if verb in _OWN_HOLES else {})
    return re.compile(re.sub(r"\\\{(\w+)\\\}", lambda m: holes[m[1]], re.escape(template)))


_PATTERNS = {verb: _pattern(verb, template) for verb, template in _TEMPLATES.items()}
_TRIGGER = re.compile(r"tool:(\S{1,64}) error:([a-z_]{1,40})(?: arg:(\S{1,160}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentFix:
    """One difference of the call that worked."""

    verb: Verb
    what: str | None = None
    """A leaf or parameter, if the verb has one."""
    source: str | None = None
    """A tool, or the kind, shape or rule of the value that worked."""

    @property
    def plain(self) -> ArgumentFix:
        """The same fix without the tool that added the dropped part."""
        if self.verb != "drop" or self.source is None:
            return self
        return ArgumentFix(verb="drop", what=self.what, source=self.source.partition(" that ")[0])


@dataclass(frozen=True, slots=True)
class FixTrigger:
    """When a record applies: at a call of a tool, and with a parameter if it names one."""

    tool: str
    code: ErrorCode
    parameter: str | None = None

    def __str__(self) -> str:
        tail = f" arg:{self.parameter}" if self.parameter else ""
        return f"tool:{self.tool} error:{self.code}{tail}"


def action(fixes: Sequence[ArgumentFix]) -> str:
    """Return the advice in words.

    >>> action((ArgumentFix(verb="take", what="payment_id", source="get_user_details"),))
    'take payment_id from get_user_details'
    """
    return "; ".join(_TEMPLATES[fix.verb].format(what=fix.what, source=fix.source) for fix in fixes)


def parse_action(text: str) -> tuple[ArgumentFix, ...]:
    """Return the fixes of an action, or nothing for other words."""
    fixes = tuple(_parsed(part) for part in text.split("; "))
    return tuple(fix for fix in fixes if fix) if all(fixes) else ()


def _parsed(text: str) -> ArgumentFix | None:
    for verb, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(text):
            return ArgumentFix(verb=verb, **match.groupdict())
    return None


def parse_trigger(text: str) -> FixTrigger | None:
    """Return the trigger in ``tool:NAME error:CODE [arg:NAME]``, or None for other words."""
    match = _TRIGGER.fullmatch(text)
    if match is None:
        return None
    code = next((code for code in ERROR_CODES if code == match[2]), None)
    return None if code is None else FixTrigger(match[1], code, match[3])


def is_repair(
    trigger: str | None,
    advice: str | None,
    reading_tools: Collection[str] = (),
    tool_arguments: Mapping[str, Collection[str]] = NO_ARGUMENTS,
) -> bool:
    """Whether advice only changes how a call is written and not what it does, so that no person must approve it.

    Its error must say that the call was malformed (`MALFORMED`), not that it was refused, because advice that gets past
    a refusal weakens a check. The advice must write a value in another format, add a required argument, or ask the
    user. A person decides about advice that removes something, gives another value, a figure or a switch, or calls
    another tool. For a tool that changes nothing (`reading_tools`), a person decides only about calls of tools that do.

    The error's text, which anybody may have written, is the only source of an added argument. So the operator must
    declare the argument (`tool_arguments`).

    >>> is_repair("tool:book error:invalid_argument arg:day", "write day as YYYY-MM-DD")
    True
    >>> is_repair("tool:pay error:unexpected_argument arg:require_approval", "leave out require_approval")
    False
    >>> [is_repair("tool:send error:missing_argument arg:bcc", "supply bcc", (), {"send": names})
    ...  for names in (["to"], ["to", "bcc"])]
    [False, True]
    """
    at, fixes = parse_trigger(trigger or ""), parse_action(advice or "")
    if at is None or not fixes:
        return False
    declared = tool_arguments.get(at.tool, ())
    return all(_is_repair(at, fix, reading_tools) and (not _may_add(fix) or fix.what in declared) for fix in fixes)


def _may_add(fix: ArgumentFix) -> bool:
    """Whether advice may add an argument."""
    return fix.verb in ("supply", "take") or (fix.verb == "write" and fix.source in SWITCHES)


def _is_repair(at: FixTrigger, fix: ArgumentFix, reading_tools: Collection[str]) -> bool:
    if at.tool in reading_tools:
        return fix.verb != "first" or fix.source in reading_tools
    if at.code not in MALFORMED:
        return False
    if fix.verb == "supply":
        return at.code == "missing_argument"
    if fix.verb in ("ask", "drop", "keep", "begin"):
        return True
    return fix.verb == "write" and fix.source not in SWITCHES | FIGURES


def is_hintable(
    trigger: str | None,
    advice: str | None,
    reading_tools: Collection[str] = (),
    tool_arguments: Mapping[str, Collection[str]] = NO_ARGUMENTS,
) -> bool:
    """Whether advice that was seen only once or twice may be shown right after the same error.

    It must be a repair (`is_repair`), or repeat a rule of the error that the call that passed obeyed. It may not follow
    a refusal, set a switch, or raise a figure.

    >>> at = "tool:save error:other arg:size"
    >>> [is_hintable(at, f"give {what} for size") for what in ("one of S, M", "at least 5")]
    [True, False]
    >>> is_hintable("tool:pay error:permission arg:role", "give one of admin, owner for role")
    False
    """
    if is_repair(trigger, advice, reading_tools, tool_arguments):
        return True
    at, fixes = parse_trigger(trigger or ""), parse_action(advice or "")
    return at is not None and bool(fixes) and at.code not in REFUSED and all(map(_says_again, fixes))


def is_figure(advice: str | None) -> bool:
    """Whether advice names a bound that may hold for one run only ("only 4 left"), so that one run is not enough.

    >>> is_figure("give at most 4 for seats"), is_figure("give at most 20 characters for title")
    (True, False)
    """
    return any(
        fix.verb == "give" and (fix.source or "").startswith("at most") and not (fix.source or "").endswith(_LENGTHS)
        for fix in parse_action(advice or "")
    )


_LENGTHS = ("characters", "entries")


def _says_again(fix: ArgumentFix) -> bool:
    source = fix.source or ""
    if fix.verb == "give":
        is_raised = source.startswith(("at least", "a multiple")) and not source.endswith(_LENGTHS)
        return not is_raised and not _SWITCHED.search(source)
    return fix.verb in ("drop", "keep", "begin") or (fix.verb == "write" and source not in SWITCHES | FIGURES)


_SWITCHED = re.compile(r"\b(?:true|false|null|none)\b", re.IGNORECASE)


def attribute(trigger: FixTrigger) -> str:
    """Return the slot's attribute, which records of one code and parameter share."""
    return f"error:{trigger.code}" + (f":{trigger.parameter}" if trigger.parameter else "")


def text(trigger: FixTrigger, fixes: Sequence[ArgumentFix]) -> str:
    """Return the line of an observation.

    >>> fix = ArgumentFix(verb="take", what="payment_id", source="get_user")
    >>> text(FixTrigger("book", "payment", "payment_id"), [fix])
    'book may fail with payment at payment_id: take payment_id from get_user.'
    """
    place = f" at {trigger.parameter}" if trigger.parameter else ""
    return f"{trigger.tool} may fail with {trigger.code}{place}: {action(fixes)}."


_WRONG: dict[ErrorCode, str] = {
    "syntax": "cannot read {what}",
    "import": "misses a module",
    "assertion": "fails its checks",
    "unknown_tool": "does not know the command",
    "rate_limited": "is called too often",
    "timeout": "takes too long",
    "connection": "gets no connection",
    "authentication": "wants a login",
    "missing_argument": "wants {what}",
    "unexpected_argument": "does not take {what}",
    "payment": "refuses the payment in {what}",
    "permission": "refuses {what}",
    "too_large": "finds {what} too large",
    "not_found": "does not find {what}",
    "conflict": "has another {what} already",
    "insufficient": "has too little for {what}",
    "state": "cannot do this with {what} now",
    "invalid_argument": "rejects {what}",
    "unavailable": "is not available for a while",
    "other": "fails at {what}",
}
_WITHOUT: dict[ErrorCode, str] = {
    "payment": "refuses the payment",
    "state": "cannot do this yet",
    "permission": "refuses this",
    "insufficient": "has too little left",
    "conflict": "is in conflict with what is there",
    "other": "fails",
    "syntax": "cannot read the call",
    "not_found": "does not find what it is asked for",
    "missing_argument": "wants something more",
    "invalid_argument": "fails",
    "unexpected_argument": "fails",
    "too_large": "finds it too large",
}
"""The same without a parameter."""
_IN_SHORT: dict[Verb, str] = {
    "write": "write it as {source}",
    "supply": "give it",
    "omit": "leave it out",
    "change": "use another",
    "ask": "ask the user for another",
    "give": "give {source}",
    "take": "take it from {source}",
    "drop": "drop the {source}",
    "keep": "keep its {source}",
    "begin": "begin it with `{source}`",
    "fewer": "give fewer",
}
"""Advice about the parameter that the sentence has named."""
_ADDED = re.compile(r"that (\S+) adds")


def sentence(trigger: FixTrigger, fixes: Sequence[ArgumentFix], *, words: str = "") -> str:
    """Return error and advice in one sentence; `words` are the error's own, if they may be quoted.

    >>> fix = ArgumentFix(verb="write", what="day", source="YYYY-MM-DD")
    >>> sentence(FixTrigger("book", "invalid_argument", "day"), [fix])
    '`book` rejects `day`: write it as YYYY-MM-DD.'
    >>> sentence(FixTrigger("edit", "state"), [ArgumentFix(verb="first", source="open")], words="no file is open")
    '`edit` says "no file is open": call `open` first.'
    """
    if words:
        wrong = f'says "{words}"'
        trigger = FixTrigger(trigger.tool, trigger.code)  # so that the advice names the parameter
    elif trigger.parameter or trigger.code not in _WITHOUT:
        wrong = _WRONG[trigger.code].format(what=_ticked(trigger.parameter))
    else:
        wrong = _WITHOUT[trigger.code]
    return f"{_ticked(trigger.tool)} {wrong}: {_advice(trigger, fixes)}."


def _advice(trigger: FixTrigger, fixes: Sequence[ArgumentFix]) -> str:
    """Return the advice with names in backquotes, and with "it" for the trigger's parameter."""
    parts = []
    for fix in fixes:
        is_named = fix.what is not None and fix.what == trigger.parameter and fix.verb in _IN_SHORT
        template = _IN_SHORT[fix.verb] if is_named else _TEMPLATES[fix.verb]
        is_tool = fix.verb in ("take", "first")
        source = _ticked(fix.source) if is_tool else _ADDED.sub(r"that `\1` adds", fix.source or "")
        parts.append(template.format(what=_ticked(fix.what), source=source))
    return ", and ".join(parts)


def _ticked(name: str | None) -> str:
    return f"`{name}`"
