"""Transcripts with tools, a line each: a call with its answer, or what somebody said."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ctxsteward.schemas.summary import Trust
from ctxsteward.steward.ingest.replayer import replay, said_in
from ctxsteward.steward.ingest.transcripts import FileTranscript, transcripts_of
from ctxsteward.steward.observations.transcript import ReplayedCall, ReplayedTranscript, ReplayedUtterance, Role

DATA = Path(__file__).parents[4] / "../shared/data"
AIRLINE = DATA / "tau_bench_airline/runs_even_tasks.jsonl"
SWE_AGENT = DATA / "swe_agent"

Line = str | tuple[str, Mapping[str, Any] | str, str] | ReplayedUtterance


def call(tool: str, answer: str, **arguments: Any) -> Line:
    """A call and its answer."""
    return tool, arguments, answer


def scene(*lines: Line, session: str = "s-1", principal: str | None = "task-1", **fields: Any) -> ReplayedTranscript:
    """A transcript of these lines: text is the user's."""
    said: list[ReplayedUtterance] = []
    for line in lines:
        ordinal = len(said) + 1
        if isinstance(line, ReplayedUtterance):
            said.append(line)
        elif isinstance(line, str):
            said.append(tells(ordinal, line, principal))
        else:
            tool, arguments, answer = line
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            said.append(asks(ordinal, (ReplayedCall(id=f"c{ordinal}", name=tool, arguments=text),), principal))
            said.append(answers(ordinal + 1, f"c{ordinal}", answer, tool, principal))
    fields = {"succeeded": True, **fields}
    return ReplayedTranscript(
        source="scene",
        session=session,
        principal=principal,
        format="openai",
        digest="0",
        utterances=tuple(said),
        **fields,
    )


def tells(ordinal: int, text: str, principal: str | None = "task-1", role: Role = "user") -> ReplayedUtterance:
    """What the user, or the assistant, says."""
    trust: Trust = "user" if role == "user" else "assistant"
    return ReplayedUtterance(ordinal=ordinal, ref=f"§{ordinal}", role=role, text=text, trust=trust, principal=principal)


def asks(ordinal: int, calls: Iterable[ReplayedCall], principal: str | None = "task-1") -> ReplayedUtterance:
    """An assistant's message with calls."""
    return ReplayedUtterance(
        ordinal=ordinal,
        ref=f"§{ordinal}",
        role="assistant",
        text="",
        trust="assistant",
        principal=principal,
        calls=tuple(calls),
    )


def answers(
    ordinal: int,
    call_id: str | None,
    text: str,
    tool: str | None = None,
    principal: str | None = "task-1",
    **fields: Any,
) -> ReplayedUtterance:
    """A tool's answer."""
    return ReplayedUtterance(
        ordinal=ordinal,
        ref=f"§{ordinal}",
        role="tool",
        text=text,
        trust="tool_external",
        principal=principal,
        call_id=call_id,
        tool=tool,
        **fields,
    )


def replayed(path: Path) -> list[ReplayedTranscript]:
    """The transcripts of a file."""
    found = [one for one in transcripts_of(path.read_bytes(), path.name) if isinstance(one, FileTranscript)]
    return [
        replay(
            said_in(one.transcript),
            source=path.name,
            session=one.transcript.session,
            format=one.transcript.format,
            digest=one.digest,
            task=one.task,
            reward=one.reward,
        )
        for one in found
    ]
