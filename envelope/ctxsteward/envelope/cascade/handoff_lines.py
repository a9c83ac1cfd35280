"""Lines of a handoff without a scratchpad and without a model, in the words of the session's messages.

The default summarizer picks sentences of the originals, as it does at a compaction. Where a line stands depends on who
said it: what users decided or demand, and what the assistant decided, *stands*; limits that the assistant named, and
tools that failed in the newest steps, *block*; all else is material, that of users under *intent*. Words of a tool are
material alone: a blocker names the tool and the message of its error. The next step follows from the newest message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from itertools import takewhile
from typing import NamedTuple

from ctxsteward.schemas import Bullet, Ref
from ctxsteward.schemas.documents import HandoffLine
from ctxsteward.schemas.summary import HandoffSection, SourceMessage, SummarizerInput

from ..compaction.compactor import load_summarizer
from ..history.session import Session
from ..history.tool_groups import LogEntry

MOST_TOKENS = 1_000
"""Of all picked lines, at four bytes a token."""
NEWEST_REQUESTS = 3
"""Newest messages of users, besides the task, that are told as they begin."""
NEWEST_STEPS = 6
"""Messages in which a tool's error still blocks."""
MAX_CHARS = 400
MOST_OPENING = 9
"""Messages behind the first of a task that may still belong to it."""


class SessionLines(NamedTuple):
    """Lines of a session's messages by their part in a handoff; each ends with its references."""

    decided: tuple[str, ...]
    blocking: tuple[str, ...]
    material: tuple[HandoffLine, ...]


def task_entries(session: Session) -> list[LogEntry]:
    """Return the messages from the task to the first reply: an example or a greeting may come before the request."""
    task = session.state.task
    entries = session.entries(task, min(task + MOST_OPENING, session.state.ordinal))
    return list(takewhile(lambda entry: entry.message.role == "user" and not entry.message.tool_results, entries))


def goal_of(texts: Sequence[str]) -> str:
    """Return the last of the task's texts whole, behind the beginnings of the others."""
    return "\n\n".join((*(_beginning(text, 600) for text in texts[:-1]), *texts[-1:]))


def lines_of(session: Session, entries: Sequence[LogEntry], opening: Sequence[LogEntry]) -> SessionLines:
    """Return lines of these messages; the task (`opening`) is not among them, because a handoff has it whole."""
    task = {session.state.task, *(entry.ordinal for entry in opening)}
    said = [entry for entry in entries if entry.ordinal not in task]
    by_ordinal = {entry.ordinal: entry for entry in said}
    source = SummarizerInput(
        messages=tuple(SourceMessage(ref=entry.ref, message=entry.message, ts=entry.event.ts) for entry in said),
        count_tokens=lambda text: len(text.encode()) // 4 + 1,
    )
    bullets = load_summarizer("extractive")(source, budget_tokens=MOST_TOKENS).bullets if said else ()
    decided = [f"{rule.text} §{rule.ordinal}" for rule in session.state.rules if rule.ordinal not in by_ordinal]
    blocking: list[str] = []
    material = [*_requests(said)]
    requests = [line.text for line in material]
    for bullet in bullets:
        cited = [by_ordinal[Ref.parse(ref).ordinal] for ref in bullet.citations]
        roles: set[str] = {"tool" if entry.message.tool_results else entry.message.role for entry in cited}
        if bullet.kind == "constraint" and roles == {"assistant"}:
            blocking.append(_told(bullet))
        elif "tool" not in roles and bullet.kind in ("decision", "constraint", "preference"):
            decided.append(_told(bullet))
        elif not any(bullet.text in request for request in requests):
            section = _section(bullet, roles)
            material.append(HandoffLine(section=section, text=bullet.text[:600], refs=bullet.citations))
    failed = {ref for line in material if line.section == "errors" for ref in line.refs}
    blocking += _tool_errors(failed, said, session.state.ordinal)
    return SessionLines(tuple(decided), tuple(blocking), (*material, *_newest_step(said)))


def _section(bullet: Bullet, roles: Set[str]) -> HandoffSection:
    """Return the section of material: users' words, then files and errors of tools, then the rest."""
    if roles == {"user"}:
        return "intent"
    if bullet.kind in ("path", "url"):
        return "files"
    return "errors" if bullet.kind == "error" and "tool" in roles else "technical"


def _tool_errors(failed: Collection[str], entries: Sequence[LogEntry], newest: int) -> Iterator[str]:
    """Yield which tools reported an error in the newest steps, and nothing else since, without a word of theirs."""
    names = _tool_names(entries)
    last = {names.get(result.call_id, "a tool"): entry for entry in entries for result in entry.message.tool_results}
    for tool, entry in last.items():
        if entry.ref in failed and entry.ordinal > newest - NEWEST_STEPS:
            yield f"{tool} reported an error {entry.ref}"


def _tool_names(entries: Sequence[LogEntry]) -> dict[str, str]:
    """Return the tools' names by the ids of their calls."""
    return {call.id: call.name for entry in entries for call in entry.message.tool_calls}


def _told(bullet: Bullet) -> str:
    return f"{' '.join(bullet.text.split())[:MAX_CHARS]} {' '.join(bullet.citations)}"


def _requests(entries: Sequence[LogEntry]) -> Iterator[HandoffLine]:
    asked = [entry for entry in entries if entry.message.role == "user" and entry.message.text.strip()]
    for entry in asked[-NEWEST_REQUESTS:]:
        yield HandoffLine(section="intent", text=_beginning(entry.message.text, 600), refs=(entry.ref,))


def _newest_step(entries: Sequence[LogEntry]) -> Iterator[HandoffLine]:
    """Yield what the assistant did last, and what tools returned if nobody has said anything since."""
    last = _newest_of_assistant(entries)
    if last is not None and (told := last_action_of(entries)):
        yield HandoffLine(section="state", text=_excerpt(told, 600), refs=(last.ref,))
    for result in entries[-1].message.tool_results if entries else ():
        if result.text.strip():
            yield HandoffLine(section="state", text=_excerpt(result.text, 600), refs=(entries[-1].ref,))


def _newest_of_assistant(entries: Sequence[LogEntry]) -> LogEntry | None:
    return next((entry for entry in reversed(entries) if entry.message.role == "assistant"), None)


def last_action_of(entries: Sequence[LogEntry]) -> str:
    """Return what the assistant said and called last; empty if it did nothing yet."""
    last = _newest_of_assistant(entries)
    if last is None:
        return ""
    calls = (f"{call.name} {_beginning(call.arguments, 200)}" for call in last.message.tool_calls)
    parts = (_excerpt(last.message.text, MAX_CHARS), *calls)
    return "; ".join(part for part in parts if part)


def next_step_of(session: Session, entries: Sequence[LogEntry], opening: Sequence[LogEntry]) -> str:
    """Return what the newest message waits for; `opening` is the task."""
    if not entries:
        return "Complete the task"
    last, waiting = entries[-1], session.state.open_calls
    if waiting:
        return f"Give the results of {', '.join(call.name for call in waiting)} {last.ref}"
    if last.message.tool_results:
        names = _tool_names(entries)
        tools = dict.fromkeys(names.get(result.call_id, "a tool") for result in last.message.tool_results)
        task = {entry.ordinal for entry in opening}
        newest = session.state.last_user
        asked = next((entry for entry in reversed(entries) if entry.ordinal == newest and newest not in task), None)
        aim = f" to answer {asked.ref}: {_beginning(asked.message.text, MAX_CHARS)}" if asked else ""
        return f"Go on from the result of {', '.join(tools)} {last.ref}{aim}"
    if last.message.role == "user":
        return f"Answer {last.ref}: {_beginning(last.message.text, MAX_CHARS)}"
    return f"Wait for the answer to {last.ref}: {_end(last.message.text, MAX_CHARS)}"


def _beginning(text: str, chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1].rstrip()}…"


def _end(text: str, chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else f"…{line[1 - chars :].lstrip()}"


def _excerpt(text: str, chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{_beginning(line, chars // 2)} {_end(line, chars - chars // 2 - 1)}"
