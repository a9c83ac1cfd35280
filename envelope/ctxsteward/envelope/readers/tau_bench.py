"""tau-bench runs: ``{"task_id", "trial", "reward", "info", "traj": [OpenAI chat messages]}``.

The messages are verbatim, the reward is not part of the transcript. A run that crashed has an empty `traj`:
it is a transcript without entries, with the finding `empty_run`. Shape: sierra-research/tau-bench,
`EnvRunResult`.
"""

from __future__ import annotations

from dataclasses import replace

from ctxsteward.schemas import Finding, InvalidTranscript

from .chat import Item, chat_transcript, lift_system, message_places
from .places import at, show
from .transcript import Transcript


def read_run(item: Item) -> Transcript:
    """The transcript of one run; its session is ``<stem>-task<task_id>-trial<trial>``."""
    assert isinstance(item.value, dict)
    traj = item.value["traj"]
    crashed = traj == []
    places = [] if crashed else message_places(traj, item.source, at(item.place, "traj"))
    system, messages = lift_system(places)
    transcript = chat_transcript(
        source=item.source, format="tau-bench", session=_session(item), system=system, messages=messages
    )
    if crashed:
        finding = Finding(kind="empty_run", field="traj", text="the run has no messages; it ended before its first")
        return replace(transcript, findings=(finding,))
    return transcript


def _session(item: Item) -> str:
    assert isinstance(item.value, dict)
    names = [item.stem]
    for key, label in (("task_id", "task"), ("trial", "trial")):
        value = item.value.get(key)
        if value is None and key == "trial":
            continue
        if not isinstance(value, int | str) or isinstance(value, bool):
            raise InvalidTranscript(
                item.source, at(item.place, key), f"found {show(value)}", "expected a number or text"
            )
        names.append(f"{label}{value}")
    return "-".join(names)
