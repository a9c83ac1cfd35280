"""Transcripts of a few lines, for tests of what is harvested from them."""

from __future__ import annotations

from collections.abc import Sequence

from ctxsteward.schemas.summary import Trust
from ctxsteward.steward.harvest.harvester import SENTENCE_HARVESTERS, TOOL_HARVESTERS
from ctxsteward.steward.harvest.people.utterances import listen
from ctxsteward.steward.observations.observation import Observation
from ctxsteward.steward.observations.transcript import ReplayedCall, ReplayedTranscript, ReplayedUtterance, Role

TRUSTS: dict[Role, Trust] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool_external",
    "system": "tool_external",
}


def said(text: str, role: Role = "user", ordinal: int = 1, **more: object) -> ReplayedUtterance:
    """One message."""
    fields: dict[str, object] = {"trust": TRUSTS[role], "principal": "user-1", **more}
    return ReplayedUtterance(ordinal=ordinal, ref=f"§{ordinal}", role=role, text=text, **fields)  # type: ignore[arg-type]


def talk(*messages: ReplayedUtterance | str, format: str = "openai", **more: object) -> ReplayedTranscript:
    """A transcript; a bare text is a user's message."""
    utterances = tuple(
        said(message, ordinal=number) if isinstance(message, str) else message
        for number, message in enumerate(messages, 1)
    )
    fields: dict[str, object] = {"principal": "user-1", **more}
    return ReplayedTranscript(
        source="talk.jsonl",
        session="talk",
        format=format,
        digest="",
        utterances=utterances,
        **fields,  # type: ignore[arg-type]
    )


def task(text: str) -> ReplayedTranscript:
    """The same said to an assistant that calls tools."""
    call = ReplayedCall(id="c1", name="search", arguments="{}")
    return talk(said(text), said("", "assistant", 2, calls=(call,)), said("{}", "tool", 3, call_id="c1", tool="search"))


def found(text: str | ReplayedTranscript, *names: str) -> Sequence[Observation]:
    """What harvesters, by name, make of it."""
    replayed = talk(text) if isinstance(text, str) else text
    return [seen for name in names for seen in alone(name, replayed)]


def alone(name: str, replayed: ReplayedTranscript) -> Sequence[Observation]:
    """What one harvester makes of a transcript."""
    if name in SENTENCE_HARVESTERS:
        return SENTENCE_HARVESTERS[name][1](listen(replayed))
    return TOOL_HARVESTERS[name][1](replayed)


def strengths(text: str | ReplayedTranscript, *names: str) -> set[str]:
    """The strengths of what they make of it."""
    return {seen.strength for seen in found(text, *names)}
