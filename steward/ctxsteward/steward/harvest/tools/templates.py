"""The words of a tool-fix record: a template over tool name, error code and our own diff of arguments.

An `ArgumentFix` has one of the verbs below, and renders to an action such as ``take payment_id from get_user_details``.
`parse_action` reads it back, so that what was advised can be checked without a model:
``parse_action(action(fixes)) == fixes``. Names are identifiers (`calls`), kinds are of the closed set of
`calls.kind`; nothing else fills a hole.

    take      LEAF from TOOL               a value that an earlier answer of another tool held
    ask       the user for LEAF            a value that the user gave after the failure
    total     LEAF to the figure …         a number, or the sum of a list, that the error itself named
    write     PARAMETER as KIND            another type or format
    supply    PARAMETER                    it was not there (a switch: ``write`` it as true or false)
    omit      PARAMETER                    it was there
    fewer     of LEAF                      a list with fewer entries
    change    LEAF                         another value; where from is not known
    first     call TOOL first              the same arguments, after another tool's call
    repeat    call it again                the same arguments, at once
    stop      do not try it again          runs that succeed do without the call
    check     LEAF                         nothing was seen to work
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from .calls import FIGURES, SWITCHES
from .error_codes import ERROR_CODES, MALFORMED, ErrorCode

Verb = Literal["take", "ask", "total", "write", "supply", "omit", "fewer", "change", "first", "repeat", "stop", "check"]

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
    "check": "check {what}",
}
_HOLES = {"what": r"(?P<what>[A-Za-z_][\w.\[\]-]{0,159})", "source": r"(?P<source>[A-Za-z][^\n]{0,199})"}
_PATTERNS = {
    verb: re.compile(re.sub(r"\\\{(\w+)\\\}", lambda m: _HOLES[m[1]], re.escape(template)))
    for verb, template in _TEMPLATES.items()
}
_TRIGGER = re.compile(r"tool:(\S{1,64}) error:([a-z_]{1,40})(?: arg:(\S{1,160}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentFix:
    """What was different about the call that worked."""

    verb: Verb
    what: str | None = None
    """A leaf or parameter; None where the verb has none."""
    source: str | None = None
    """A tool, or the kind of value that worked."""


@dataclass(frozen=True, slots=True)
class FixTrigger:
    """When a record applies: a call of this tool, with this parameter where one is named."""

    tool: str
    code: ErrorCode
    parameter: str | None = None

    def __str__(self) -> str:
        tail = f" arg:{self.parameter}" if self.parameter else ""
        return f"tool:{self.tool} error:{self.code}{tail}"


def action(fixes: Sequence[ArgumentFix]) -> str:
    """What to do, in words.

    >>> action((ArgumentFix(verb="take", what="payment_id", source="get_user_details"),))
    'take payment_id from get_user_details'
    """
    return "; ".join(_TEMPLATES[fix.verb].format(what=fix.what, source=fix.source) for fix in fixes)


def parse_action(text: str) -> tuple[ArgumentFix, ...]:
    """The fixes that an action renders; none for other words."""
    fixes = tuple(_parsed(part) for part in text.split("; "))
    return tuple(fix for fix in fixes if fix) if all(fixes) else ()


def _parsed(text: str) -> ArgumentFix | None:
    for verb, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(text):
            return ArgumentFix(verb=verb, **match.groupdict())
    return None


def parse_trigger(text: str) -> FixTrigger | None:
    """The trigger in ``tool:NAME error:CODE [arg:NAME]``; None for other words."""
    match = _TRIGGER.fullmatch(text)
    if match is None:
        return None
    code = next((code for code in ERROR_CODES if code == match[2]), None)
    return None if code is None else FixTrigger(match[1], code, match[3])


def is_repair(trigger: str | None, advice: str | None, reading_tools: Collection[str] = ()) -> bool:
    """Whether advice mends how a call is written and not what it does: then nobody has to be asked.

    Its error says that the call was malformed (`MALFORMED`), not that it was refused: what gets past a refusal
    weakens a check. And it writes a value in another format, adds what was required, has the user asked, or looks.
    What removes something, takes another value, a figure, a switch or nothing, or calls another tool, is for a person
    to say; of a call that changes nothing (`reading_tools`) only the last is.

    >>> is_repair("tool:book error:invalid_argument arg:day", "write day as YYYY-MM-DD")
    True
    >>> is_repair("tool:pay error:unexpected_argument arg:require_approval", "leave out require_approval")
    False
    """
    at, fixes = parse_trigger(trigger or ""), parse_action(advice or "")
    return at is not None and bool(fixes) and all(_is_repair(at, fix, reading_tools) for fix in fixes)


def _is_repair(at: FixTrigger, fix: ArgumentFix, reading_tools: Collection[str]) -> bool:
    if fix.verb == "check":
        return True
    if at.tool in reading_tools:
        return fix.verb != "first" or fix.source in reading_tools
    if at.code not in MALFORMED:
        return False
    if fix.verb == "supply":
        return at.code == "missing_argument"
    return fix.verb == "ask" or (fix.verb == "write" and fix.source not in SWITCHES | FIGURES)


def attribute(trigger: FixTrigger) -> str:
    """The slot's attribute: records of one tool, code and parameter are about one thing."""
    return f"error:{trigger.code}" + (f":{trigger.parameter}" if trigger.parameter else "")


def text(trigger: FixTrigger, fixes: Sequence[ArgumentFix], *, seen_at: str | None = None) -> str:
    """The record's line; `seen_at`: the sibling tool at which it was learned.

    >>> fix = ArgumentFix(verb="take", what="payment_id", source="get_user")
    >>> text(FixTrigger("book", "payment", "payment_id"), [fix])
    'book may fail with payment at payment_id: take payment_id from get_user.'
    """
    place = f" at {trigger.parameter}" if trigger.parameter else ""
    learned = f" (as for {seen_at})" if seen_at else ""
    return f"{trigger.tool} may fail with {trigger.code}{place}: {action(fixes)}{learned}."
