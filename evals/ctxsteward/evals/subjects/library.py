"""Strategies of other libraries, through their own code, in the environment that `make adapters` installs.

One process a conversation: `peers.adapter`, which imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ctxsteward.envelope.transcripts import TranscriptEntry
from ctxsteward.schemas import InputError, Wire

from ..peers import AdapterProcess, canonical
from .port import Dialogue, Prompt, Task

PYTHON = Path(".venv-peers/bin/python")


@dataclass(frozen=True, slots=True)
class LibrarySubject:
    """A strategy of `peers.adapter`."""

    name: str
    python: Path = PYTHON

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        if not self.python.is_file():
            raise InputError(f"subject {self.name}: {self.python} is not there; run `make adapters` first")
        return LibraryDialogue(AdapterProcess(self.python, self.name), task)


class LibraryDialogue:
    """One conversation with a library."""

    def __init__(self, process: AdapterProcess, task: Task) -> None:
        self._process = process
        self._process.open(task.budget_tokens)
        self._new: list[TranscriptEntry] = []

    def add(self, message: Wire) -> None:
        self._new.append(TranscriptEntry(wire=canonical(message)))

    def prompt(self, question: str | None = None) -> Prompt:
        sent = self._process.send(self._new)
        self._new = []
        if question is not None:
            sent = self._process.preview(question)
        return Prompt(messages=sent.messages, cpu_seconds=sent.cpu_seconds)

    def close(self) -> None:
        self._process.close()
