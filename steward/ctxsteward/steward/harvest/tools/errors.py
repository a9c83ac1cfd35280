"""Tool errors and what recovered them: ``book may fail with payment at payment_id: take payment_id from get_user.``

An observation is a template over tool name, normalized error code and our own diff of arguments (`templates`): no
word of a tool's answer and no value of an argument is in it. Its evidence points at the answer that failed and at the
one that worked after it. Runs that succeeded and runs that failed are told apart, so that a record can contrast them:

    recovered   what was done after the error in a run that succeeded; one observation a recovery, so that they can be
                counted. Where nothing was: the run did without the call, and the advice is to stop
    accepted    the same in a run of which nobody says how it ended
    failed      the same in a run that failed, cited as `contradicts`: that a call was accepted does not say that it
                was right
    broad       nothing was seen to work after the error, or what did is not for a template to say (prose, code); it
                says which parameter to check first

Errors without a known code need a parameter and a telling diff.

Observations of one slot (tool, error code and parameter) are one claim, whatever the wording of their advice.

Source: the state design (error-and-fix records are admitted by how often the fix recovered).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxsteward.schemas import Relation, Slot

from ...observations import MessageSpan, Observation, ReplayedTranscript, ReplayedUtterance, Strength
from .calls import ToolStep, is_tool, steps
from .episodes import ErrorEpisode, blamed_leaves, episodes
from .error_codes import SPAN_CHARS
from .templates import ArgumentFix, FixTrigger, Verb, action, attribute, text

TOOL_ERRORS_EXTRACTOR = "tool_errors/4"
MAX_FAILURES = 3
MAX_TEXT_CHARS = 280
UNRECOVERED_SCORE = 0.3
_SCORES: dict[Verb, float] = {
    "take": 0.95, "write": 0.95, "total": 0.9, "supply": 0.9, "omit": 0.9, "fewer": 0.85, "first": 0.85, "ask": 0.8,
    "change": 0.7, "repeat": 0.7, "stop": 0.8, "check": 0.6,
}  # fmt: skip


_STRENGTHS: dict[bool | None, Strength] = {True: "recovered", None: "accepted", False: "failed"}
"""Of what was done after an error, by whether its run succeeded."""


def tool_errors(replayed: ReplayedTranscript) -> tuple[Observation, ...]:
    """Observations of a transcript's tool errors, in order."""
    found: dict[tuple[FixTrigger, int | None], tuple[tuple[ArgumentFix, ...], list[ErrorEpisode]]] = {}
    standing = {step.tool: step.position for step in steps(replayed) if step.failure is None}  # its last call
    for episode in episodes(replayed):
        if not is_tool(episode.failed.tool):
            continue
        has_stopped = standing.get(episode.failed.tool, -1) < episode.failed.position
        for trigger, advice in _claims(episode, stopped=replayed.succeeded is True and has_stopped):
            worked = episode.worked.position if episode.worked else None
            found.setdefault((trigger, worked), (advice, []))[1].append(episode)
    made = (_observation(replayed, trigger, advice, seen) for (trigger, _), (advice, seen) in found.items())
    return tuple(observation for observation in made if observation is not None)


def _claims(episode: ErrorEpisode, *, stopped: bool) -> Iterator[tuple[FixTrigger, tuple[ArgumentFix, ...]]]:
    """What an error says; `stopped`: its run succeeded, so where the call never worked it did well to stop."""
    tool, code = episode.failed.tool, episode.code
    if episode.worked is None:
        if code != "other" and stopped:
            yield FixTrigger(tool, code, next(iter(episode.parameters), None)), (ArgumentFix(verb="stop"),)
        elif code != "other":
            for name in episode.parameters[:1]:
                leaves = blamed_leaves(episode.failed, name)
                yield FixTrigger(tool, code, name), tuple(ArgumentFix(verb="check", what=path) for path in leaves)
        return
    for parameter, advice in episode.fixes:
        if code != "other" or advice[0].verb not in ("check", "change", "repeat"):
            yield FixTrigger(tool, code, parameter), advice


def _observation(
    replayed: ReplayedTranscript, trigger: FixTrigger, advice: tuple[ArgumentFix, ...], seen: list[ErrorEpisode]
) -> Observation | None:
    fitting = next((a for a in (advice, advice[:1]) if len(text(trigger, a)) <= MAX_TEXT_CHARS), None)
    if fitting is None:
        return None
    worked = seen[0].worked if any(fix.verb != "check" for fix in fitting) else None
    has_stopped = fitting[0].verb == "stop"
    places = tuple(_places(seen, worked, "contradicts" if replayed.succeeded is False else "recovers", has_stopped))
    if not places:
        return None
    done = worked is not None or has_stopped
    return Observation(
        kind="tool_fix",
        text=text(trigger, fitting),
        slot=Slot(subject=trigger.tool.lower(), attribute=attribute(trigger)),
        places=places,
        strength=_STRENGTHS[replayed.succeeded] if done else "broad",
        score=_SCORES[fitting[0].verb] if done and replayed.succeeded else UNRECOVERED_SCORE,
        reach="shared",
        principal=replayed.principal,
        tool=trigger.tool,
        trigger=str(trigger),
        action=action(fitting),
        ts=_ts(seen),
        extractor=TOOL_ERRORS_EXTRACTOR,
    )


def _places(
    seen: Iterable[ErrorEpisode], worked: ToolStep | None, relation: Relation, has_stopped: bool
) -> Iterator[MessageSpan]:
    """The failures, then the answer that worked; of an empty answer, or a stop, the last failure."""
    failures = [place for e in seen if (place := _failure(e.failed))][:MAX_FAILURES]
    good = _opening(worked.answer) if worked and worked.answer else None
    if (worked is not None or has_stopped) and good is None and failures:
        yield from failures[:-1]
        yield failures[-1]._replace(relation=relation)
        return
    yield from failures
    if failures and good is not None:
        yield good._replace(relation=relation)


def _failure(step: ToolStep) -> MessageSpan | None:
    if step.answer is None or step.failure is None:
        return None
    return _place(step.answer, step.failure.start, step.failure.stop)


def _opening(answer: ReplayedUtterance) -> MessageSpan | None:
    start = len(answer.text) - len(answer.text.lstrip())
    stop = start + len(answer.text[start : start + SPAN_CHARS].split("\n", 1)[0].rstrip())
    return _place(answer, start, stop)


def _place(answer: ReplayedUtterance, start: int, stop: int) -> MessageSpan | None:
    """A range of characters as one of bytes; None for an empty one."""
    if stop <= start:
        return None
    first = len(answer.text[:start].encode())
    return MessageSpan(answer.ref, first, first + len(answer.text[start:stop].encode()))


def _ts(seen: list[ErrorEpisode]) -> str | None:
    answer = seen[0].failed.answer
    return answer.ts if answer else None
