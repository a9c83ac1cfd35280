"""The reply to a call, sentence by sentence, each with the piece of the prompt that carries its words.

Words are compared, as `envelope.audit.blame` does; no model is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ctxsteward.envelope import Session
from ctxsteward.envelope.audit.blame import PromptSource, SourceKind, TermIndex, sources_of
from ctxsteward.envelope.building.past_calls import PastCall
from ctxsteward.language.words import sentences
from ctxsteward.schemas import Ref
from ctxsteward.schemas.frozen import FrozenModel

if TYPE_CHECKING:
    from .inspector import PastEnvelope

MAX_SENTENCES = 40
"""Most sentences of a reply that a page shows."""
SOURCE_CHARS = 400
"""Most characters of a source that a page shows."""


class ReplySentence(FrozenModel):
    """A sentence of a reply with its source."""

    text: str
    kind: SourceKind | Literal[""] = ""
    """Kind of the source; empty if it cannot be told."""
    name: str = ""
    refs: tuple[str, ...] = ()
    source: str = ""
    """The beginning of the source's text."""
    share: float = 0.0
    """Share of the sentence's rare words that the source has."""
    said_by: str = ""
    """Roles, with the principal where the application names one."""


def reply_sources(past: PastEnvelope, session: Session) -> tuple[ReplySentence, ...]:
    """Return the sentences of the reply to a call, none without a reply in the log. `session` is as it is now."""
    texts = reply_sentences(session, past.call)[:MAX_SENTENCES]
    index = TermIndex(sources_of(past.envelope) if texts else ())
    shown = []
    for found in map(index.blame, texts):
        sentence = ReplySentence(text=found.phrase)
        if (source := found.source) is not None:
            whose = {"kind": source.kind, "name": source.name, "refs": source.refs, "said_by": said_by(session, source)}
            sentence = sentence.model_copy(update={**whose, "source": source.text[:SOURCE_CHARS], "share": found.share})
        shown.append(sentence)
    return tuple(shown)


def reply_sentences(session: Session, call: PastCall) -> list[str]:
    """Return the sentences of the first reply after a call; none if the log has no reply with text."""
    for entry in session.entries(call.messages + 1):
        text = entry.message.text
        if entry.message.role == "assistant" and text.strip():
            return [text[span.start : span.stop].strip() for span in sentences(text)]
    return []


def said_by(session: Session, source: PromptSource) -> str:
    """Return who said a source: roles, with the principal where the application names one."""
    speakers = [] if source.refs else [source.speaker]
    for ref in source.refs:
        entry = session.shown(Ref.parse(ref).ordinal)
        role = "tool" if entry.message.tool_results else entry.message.role
        speakers.append(role if entry.event.principal is None else f"{role} {entry.event.principal}")
    return ", ".join(dict.fromkeys(speakers))
