"""Transcripts of a few lines, for tests of what is harvested from them."""

from __future__ import annotations

from collections.abc import Sequence

from ctxsteward.schemas.recommendation import Trust
from ctxsteward.steward.harvest import HARVESTERS
from ctxsteward.steward.observation import Observation
from ctxsteward.steward.replayed import Call, Replayed, Role, Utterance

TRUSTS: dict[Role, Trust] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool_external",
    "system": "tool_external",
}


def said(text: str, role: Role = "user", ordinal: int = 1, *, speaker: str | None = None, **more: object) -> Utterance:
    """One message."""
    fields: dict[str, object] = {"trust": TRUSTS[role], "principal": "user-1", "speaker": speaker, **more}
    return Utterance(ordinal=ordinal, ref=f"§{ordinal}", role=role, text=text, **fields)  # type: ignore[arg-type]


def talk(*messages: Utterance | str, format: str = "openai", **more: object) -> Replayed:
    """A transcript; a bare text is a user's message."""
    utterances = tuple(
        said(message, ordinal=number) if isinstance(message, str) else message
        for number, message in enumerate(messages, 1)
    )
    fields: dict[str, object] = {"principal": "user-1", **more}
    return Replayed(
        source="talk.jsonl",
        session="talk",
        format=format,
        digest="",
        utterances=utterances,
        **fields,  # type: ignore[arg-type]
    )


def task(text: str) -> Replayed:
    """The same said to an assistant that calls tools."""
    call = Call(id="c1", name="search", arguments="{}")
    return talk(said(text), said("", "assistant", 2, calls=(call,)), said("{}", "tool", 3, call_id="c1", tool="search"))


def found(text: str | Replayed, *names: str) -> Sequence[Observation]:
    """What harvesters, by name, make of it."""
    replayed = talk(text) if isinstance(text, str) else text
    return [seen for name in names for seen in HARVESTERS[name](replayed)]


def strengths(text: str | Replayed, *names: str) -> set[str]:
    """The strengths of what they make of it."""
    return {seen.strength for seen in found(text, *names)}
