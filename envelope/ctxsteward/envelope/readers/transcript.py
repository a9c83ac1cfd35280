"""A transcript as every reader returns it: what the operator said up front, then the messages in order.

`Transcript.entries()` opens a fresh iterator each time. A file that is one JSON document is checked as a
whole when it is read; a JSONL file of messages streams from disk, and each line is checked when it is
reached, so `entries()` may raise `InvalidTranscript` or `InputTooLarge` halfway.

Leading system and developer messages are in `Transcript.system` and take no ordinal: an operator passed the
file, so they are the operator's words. One that comes later is an ordinary entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ctxsteward.schemas import Finding, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEntry:
    """One message and what its file knows about it."""

    wire: Wire
    """The provider's dict, verbatim for chat formats. Treat it as read-only."""
    id: str | None = None
    """The file's own id of the message, unique within the transcript."""
    ts: str | None = None
    """ISO 8601; without an offset where the file has none."""
    principal: str | None = None
    phase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One conversation of a file."""

    source: str
    """The file's name as given."""
    format: str
    """openai, anthropic, tau-bench, swe-agent or locomo: what was decided, never `auto`."""
    session: str
    """A suggested session id, different for each transcript of a file."""
    system: tuple[str, ...] = ()
    """The operator's messages from the start of the transcript, in order; empty ones are left out."""
    tools: tuple[Wire, ...] = ()
    """Declared in the file, else open stubs of the names that were called (finding `tools_inferred`)."""
    findings: tuple[Finding, ...] = ()
    open_entries: Callable[[], Iterator[TranscriptEntry]] = field(repr=False, compare=False)
    """Opens a fresh iterator; `entries()` is the way to call it."""

    def entries(self) -> Iterator[TranscriptEntry]:
        """The messages from the first one on; each call starts anew."""
        return self.open_entries()
