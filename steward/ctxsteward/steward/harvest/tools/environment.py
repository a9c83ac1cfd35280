"""What tools show to be missing where they run: a module, a command, a file, a version.

Found without an outcome: that a module is missing is a fact of the environment, whatever became of the run. A line of a
failed answer says so by the class of its error (`error_codes`) and names what it misses: in quotes, or as shells and
installers write it. The record is a template; the name fills it only where it looks like one of its kind
(`ENVIRONMENT_NAMES`), because the line may have been written by anybody. How sure it is:

    strict   the run itself had asked for it before: the name stands in its calls. Or an internal tool says it
    broad    only a tool says it

An observation is one thing missing in one run. Runs count by their tasks (`practices.task_of`).

Source: error classes and messages of Python, Node, POSIX shells and pip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import NamedTuple

from ctxsteward.schemas import Slot

from ...observations import MessageSpan, Observation, ReplayedTranscript
from .calls import ToolStep, is_tool, steps
from .error_codes import HEAD_CHARS, TAIL_CHARS, ErrorCode, error_code
from .practices import run_key, task_of

ENVIRONMENT_EXTRACTOR = "environment/1"
MAX_MISSING = 16
"""Of one run."""
MAX_LINE_CHARS = 300
MAX_NAME_WORDS = 8
_QUOTED = re.compile(
    r"'([^'\n]{1,120})'|\"([^\"\n]{1,120})\"|`([^`'\n]{1,120})['`]|‘([^’\n]{1,120})’|“([^”\n]{1,120})”"
)
_NAMED = re.compile(r"(?:named|module|requirement) (?!named )([^\s'\"`:]{1,120})")
_PARTS = re.compile(r"(?:^|[:：] )([^\s:：'\"`]{1,120})(?=[:：] |$)")
_PIN = re.compile(r"[A-Za-z][\w.-]{0,40}(?:\[[\w,]{1,40}\])?\s?(?:[<>=!~]=|[<>])\s?\d[\w.*]{0,20}")
_WORDS = re.compile(r"[A-Za-z]+")

ENVIRONMENT_NAMES = MappingProxyType(
    {
        "module": re.compile(r"[A-Za-z_]\w{0,40}(?:\.[A-Za-z_]\w{0,40}){0,4}|@[\w-]{1,30}/[\w-]{1,40}"),
        "command": re.compile(r"(?=.*[A-Za-z])[\w+-][\w.+-]{0,40}"),
        "file": re.compile(r"(?=.*[A-Za-z])(?:~|\.{1,2})?/?(?:[\w.+@-]{1,60}/){0,8}[\w.+@-]{1,60}"),
        "version": _PIN,
    }
)
"""What a name of each kind looks like."""
_TEXTS = MappingProxyType(
    {
        "module": "`{name}` is not installed here.",
        "command": "The command `{name}` is not installed here.",
        "file": "There is no `{name}` here.",
        "version": "`{name}` does not go together with what is installed here.",
    }
)
_KIND_OF: MappingProxyType[ErrorCode, str] = MappingProxyType(
    {"import": "module", "unknown_tool": "command", "not_found": "file"}
)
_VERSION_CODES: frozenset[ErrorCode] = frozenset(("conflict", "not_found", "import"))
_TELLING = _VERSION_CODES | _KIND_OF.keys()
"""Answers with another error name nothing that is missing."""


class MissingThing(NamedTuple):
    """One thing that a line says is missing."""

    kind: str
    name: str
    start: int
    """Where the line stands in the answer, in characters."""
    stop: int


def environment(replayed: ReplayedTranscript) -> tuple[Observation, ...]:
    """One observation of each thing that was missing in this run, in order."""
    found: dict[tuple[str, str], Observation] = {}
    asked: list[str] = []
    for step in steps(replayed):
        asked.append(step.raw)
        if step.failure is None or step.failure.code not in _TELLING or not is_tool(step.tool):
            continue
        for missing in missing_in(step):
            if (missing.kind, missing.name) not in found and len(found) < MAX_MISSING:
                found[missing.kind, missing.name] = _observation(replayed, step, missing, asked)
    return tuple(found.values())


def missing_in(step: ToolStep) -> Iterator[MissingThing]:
    """What the lines of a failed answer say is missing."""
    text = step.answer.text if step.answer else ""
    head = text if len(text) <= HEAD_CHARS + TAIL_CHARS else text[:HEAD_CHARS]
    base = len(text) - TAIL_CHARS
    for start, part in ((0, head), (base, text[base:])) if head is not text else ((0, head),):
        before = ""
        for line in part.split("\n"):
            if len(line) <= MAX_LINE_CHARS and (names := _names(line)):
                lead = start + len(line) - len(line.lstrip())
                kind, name = _missing(names, line, before)
                if name:
                    yield MissingThing(kind, name, lead, lead + len(line.strip()))
            before = line if line.strip() else before
            start += len(line) + 1


class _NamesInLine(NamedTuple):
    """What a line names, by how it is written."""

    pins: list[str]
    quoted: list[str]
    named: list[str]
    """After a word that introduces a name."""
    parts: list[str]
    """Between colons."""


def _names(line: str) -> _NamesInLine | None:
    """None: it names nothing."""
    found = _NamesInLine(
        _PIN.findall(line),
        [next(filter(None, groups)) for groups in _QUOTED.findall(line)],
        _NAMED.findall(line),
        _PARTS.findall(line.strip()),
    )
    return found if any(found) else None


def _missing(names: _NamesInLine, line: str, before: str) -> tuple[str, str]:
    """The kind and the name of what a line says is missing; no name: none; `before`: the line before."""
    if names.pins:
        is_one = any(error_code(each[:MAX_LINE_CHARS]) in _VERSION_CODES for each in (line, before))
        return ("version", re.sub(r"\s", "", names.pins[0])) if is_one else ("", "")
    kind = _KIND_OF.get(error_code(line), "")
    if not kind:
        return "", ""
    fits = [name for name in names.quoted or (names.named if kind == "module" else names.parts) if _fits(kind, name)]
    if kind == "file":
        fits = [name for name in fits if "/" in name or re.search(r"\w\.[A-Za-z]\w{0,5}$", name)]
    if kind == "command":
        fits = fits[-1:]  # shells put themselves, and the line, before it
    return (kind, fits[0]) if len(fits) == 1 else ("", "")


def _fits(kind: str, name: str) -> bool:
    return bool(ENVIRONMENT_NAMES[kind].fullmatch(name)) and len(_WORDS.findall(name)) <= MAX_NAME_WORDS


def _observation(replayed: ReplayedTranscript, step: ToolStep, missing: MissingThing, asked: list[str]) -> Observation:
    answer = step.answer
    assert answer is not None
    place = MessageSpan.within(answer.ref, answer.text, missing.start, missing.stop)
    assert place is not None
    parts = [part for part in re.split(r"[<>=!~]", missing.name)[0].split("/") if part]
    own = any(parts[-1].partition(".")[0] in raw if missing.kind == "module" else parts[-1] in raw for raw in asked)
    return Observation(
        kind="environment",
        text=_TEXTS[missing.kind].format(name=missing.name),
        slot=Slot(subject=missing.name.lower(), attribute=f"environment:{missing.kind}"),
        places=(place,),
        strength="strict" if (own and missing.kind != "file") or answer.trust == "tool_internal" else "broad",
        score=0.9 if own else 0.5,
        reach="shared",
        principal=replayed.principal,
        ts=answer.ts,
        run=run_key(task_of(replayed)),
        extractor=ENVIRONMENT_EXTRACTOR,
    )
