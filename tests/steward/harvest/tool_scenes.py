"""Transcripts with tools, a line each: a call with its answer, or what somebody said."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ctxsteward.schemas.recommendation import Trust
from ctxsteward.steward.ingest.replaying import Origin, replay, said_in
from ctxsteward.steward.ingest.transcripts import Found, transcripts_of
from ctxsteward.steward.replayed import Call, Replayed, Role, Utterance

DATA = Path(__file__).parents[3] / "../shared/data"
AIRLINE = DATA / "tau_bench_airline/runs_even_tasks.jsonl"
SWE_AGENT = DATA / "swe_agent"

Line = str | tuple[str, Mapping[str, Any] | str, str] | Utterance


def call(tool: str, answer: str, **arguments: Any) -> Line:
    """A call and its answer."""
    return tool, arguments, answer


def scene(*lines: Line, session: str = "s-1", principal: str = "task-1", **fields: Any) -> Replayed:
    """A transcript of these lines: text is the user's."""
    said: list[Utterance] = []
    for line in lines:
        ordinal = len(said) + 1
        if isinstance(line, Utterance):
            said.append(line)
        elif isinstance(line, str):
            said.append(tells(ordinal, line, principal))
        else:
            tool, arguments, answer = line
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            said.append(asks(ordinal, (Call(id=f"c{ordinal}", name=tool, arguments=text),), principal))
            said.append(answers(ordinal + 1, f"c{ordinal}", answer, tool, principal))
    return Replayed(
        source="scene", session=session, principal=principal, format="openai", digest="0", utterances=tuple(said),
        **fields,
    )  # fmt: skip


def tells(ordinal: int, text: str, principal: str = "task-1", role: Role = "user") -> Utterance:
    """What the user, or the assistant, says."""
    trust: Trust = "user" if role == "user" else "assistant"
    return Utterance(ordinal=ordinal, ref=f"§{ordinal}", role=role, text=text, trust=trust, principal=principal)


def asks(ordinal: int, calls: Iterable[Call], principal: str = "task-1") -> Utterance:
    """An assistant's message with calls."""
    return Utterance(
        ordinal=ordinal, ref=f"§{ordinal}", role="assistant", text="", trust="assistant", principal=principal,
        calls=tuple(calls),
    )  # fmt: skip


def answers(
    ordinal: int, call_id: str | None, text: str, tool: str | None = None, principal: str = "task-1", **fields: Any
) -> Utterance:
    """A tool's answer."""
    return Utterance(
        ordinal=ordinal, ref=f"§{ordinal}", role="tool", text=text, trust="tool_external", principal=principal,
        call_id=call_id, tool=tool, **fields,
    )  # fmt: skip


def replayed(path: Path) -> list[Replayed]:
    """The transcripts of a file."""
    found = [one for one in transcripts_of(path.read_bytes(), path.name) if isinstance(one, Found)]
    return [
        replay(
            said_in(one.transcript),
            Origin(
                source=path.name, session=one.transcript.session, format=one.transcript.format, digest=one.digest,
                task=one.task, reward=one.reward,
            ),
        )
        for one in found
    ]  # fmt: skip
