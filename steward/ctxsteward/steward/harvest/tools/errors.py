"""Tool errors, and the fixes that recovered them.

``book may fail with payment at payment_id: take payment_id from get_user.`` An observation is a template over tool
name, normalized error code and our own diff of arguments (`templates`), without words of a tool's answer or values of
arguments. The words of the error without values are a key (`cause_of`) that distinguishes causes. The evidence is the
failed answer and the later successful one. The end of the run decides the strength, so that a record can compare runs:

    recovered   a fix in a run that succeeded, one observation for each recovery. If there was no fix, the run succeeded
                without the call, and the advice is to stop
    accepted    the same in a run with an unknown end
    failed      the same in a run that failed, cited as `contradicts`, because an accepted call need not be right

An error without a later success gives no observation here (`statements` quotes it). Errors without a known code need a
parameter and a specific diff.

Observations of one slot (tool, error code and parameter) and of one cause are one claim, whatever they advise.

Source: the state design (error-and-fix records are admitted by how often the fix recovered).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ctxsteward.schemas.recommendation import Relation, Slot

from ...observations.observation import MessageSpan, Observation, Strength
from ...observations.transcript import ReplayedTranscript
from .calls import ToolStep, is_name, is_tool, steps
from .episodes import ErrorEpisode, episodes
from .error_codes import SPAN_CHARS, says
from .templates import ArgumentFix, FixTrigger, Verb, action, attribute, text

TOOL_ERRORS_EXTRACTOR = "tool_errors/6"
MAX_FAILURES = 3
MAX_TEXT_CHARS = 280
UNRECOVERED_SCORE = 0.3
MAX_CAUSE_WORDS = 16
_CAUSE_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff](?:[\w./:@#+-]*[^\W_])?")
_IN_QUOTES = re.compile(r"'[^'\n]{1,120}'|\"[^\"\n]{1,120}\"|`[^`\n]{1,120}`|“[^”\n]{1,120}”")
_ERROR_LEAD = re.compile(r"^\W*(?:error|exception|错误)\s*[:：]\s*", re.IGNORECASE)
_SCORES: dict[Verb, float] = {
    "take": 0.95,
    "write": 0.95,
    "total": 0.9,
    "supply": 0.9,
    "omit": 0.9,
    "fewer": 0.85,
    "first": 0.85,
    "ask": 0.8,
    "change": 0.7,
    "repeat": 0.7,
    "stop": 0.8,
    "give": 0.95,
    "drop": 0.95,
    "keep": 0.95,
    "begin": 0.95,
}


_STRENGTHS: dict[bool | None, Strength] = {True: "recovered", None: "accepted", False: "failed"}
"""Strength of a fix by whether the run succeeded."""


def tool_errors(replayed: ReplayedTranscript) -> tuple[Observation, ...]:
    """Return the observations of a transcript's tool errors, in order."""
    claims: dict[tuple[FixTrigger, int | None, bool], tuple[tuple[ArgumentFix, ...], list[ErrorEpisode]]] = {}
    last_good = {step.tool: step.position for step in steps(replayed) if step.failure is None}
    for episode in episodes(replayed):
        if not is_tool(episode.failed.tool):
            continue
        has_stopped = last_good.get(episode.failed.tool, -1) < episode.failed.position
        for trigger, advice in _claims(episode, replayed.succeeded if has_stopped else None):
            worked = episode.worked.position if episode.worked else None
            claims.setdefault((trigger, worked, advice[0].verb == "stop"), (advice, []))[1].append(episode)
    observations = (_observation(replayed, trigger, *claim) for (trigger, *_), claim in claims.items())
    return tuple(observation for observation in observations if observation is not None)


def _claims(episode: ErrorEpisode, stopped: bool | None) -> Iterator[tuple[FixTrigger, tuple[ArgumentFix, ...]]]:
    """Yield trigger and advice of an error; `stopped` is whether a run without further calls of the tool succeeded."""
    tool, code = episode.failed.tool, episode.code
    if episode.worked is None and code != "other" and stopped is not None:
        yield FixTrigger(tool, code, next(iter(episode.parameters), None)), (ArgumentFix(verb="stop"),)
    for parameter, advice in episode.fixes:
        if code != "other" or advice[0].verb not in ("change", "repeat"):
            yield FixTrigger(tool, code, parameter), advice


def _observation(
    replayed: ReplayedTranscript, trigger: FixTrigger, advice: tuple[ArgumentFix, ...], seen: list[ErrorEpisode]
) -> Observation | None:
    if len(text(trigger, advice)) > MAX_TEXT_CHARS:
        advice = advice[:1]
    line = text(trigger, advice)
    if len(line) > MAX_TEXT_CHARS:
        return None
    failed, worked = seen[0].failed, seen[0].worked
    relation: Relation = "contradicts" if replayed.succeeded is False else "recovers"
    places = tuple(_places(seen, worked, relation, has_stopped=advice[0].verb == "stop"))
    if not places:
        return None
    return Observation(
        kind="tool_fix",
        text=line,
        slot=Slot(subject=trigger.tool.lower(), attribute=attribute(trigger)),
        places=places,
        strength=_STRENGTHS[replayed.succeeded],
        score=_SCORES[advice[0].verb] if replayed.succeeded else UNRECOVERED_SCORE,
        reach="shared",
        principal=replayed.principal,
        tool=trigger.tool,
        trigger=str(trigger),
        action=action(advice),
        cause=cause_of(failed),
        ts=failed.answer.ts if failed.answer else None,
        extractor=TOOL_ERRORS_EXTRACTOR,
    )


def cause_of(step: ToolStep) -> str:
    """Return the words of an error without values: numbers, quotes, file names, codes and the call's own values.

    If the error has several lines, the last line with its code counts, because tools put general words first.
    """
    if step.failure is None:
        return ""
    lines = [line for line in step.failure.message.splitlines() if line.strip()]
    line = next((line for line in reversed(lines[1:]) if says(line, step.failure.code)), "") or next(iter(lines), "")
    own = {token for _, value in step.values() for token in _CAUSE_WORD.findall(str(value)[:MAX_TEXT_CHARS].casefold())}
    names = {name.casefold() for name in step.arguments or {} if is_name(name)}
    plain = _ERROR_LEAD.sub("", _IN_QUOTES.sub(" ", line))
    words = [
        word for word in _CAUSE_WORD.findall(plain.casefold()) if word not in own and (word.isalpha() or word in names)
    ]
    return " ".join(words[:MAX_CAUSE_WORDS])


def _places(
    seen: Iterable[ErrorEpisode], worked: ToolStep | None, relation: Relation, *, has_stopped: bool
) -> Iterator[MessageSpan]:
    """Yield the failures, then the successful answer.

    If that answer is empty, or the run stopped, the last failure has the relation instead.
    """
    failures: list[MessageSpan] = []
    for step in (episode.failed for episode in seen):
        if step.answer is not None and step.failure is not None:
            place = MessageSpan.within(step.answer.ref, step.answer.text, step.failure.start, step.failure.stop)
            failures += [place] if place else []
    failures = failures[:MAX_FAILURES]
    answer = worked.answer if worked else None
    good = MessageSpan.opening(answer.ref, answer.text, SPAN_CHARS) if answer else None
    if (worked is not None or has_stopped) and good is None and failures:
        yield from failures[:-1]
        yield failures[-1]._replace(relation=relation)
        return
    yield from failures
    if failures and good is not None:
        yield good._replace(relation=relation)
