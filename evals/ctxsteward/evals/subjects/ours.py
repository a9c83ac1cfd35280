"""Our builder as a subject: a session in a store, and an envelope per call.

Suites that check more than messages (seals, reports, forks) use the session and the builder of its dialogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ctxsteward.envelope import Envelope, EnvelopeBuilder, Session
from ctxsteward.envelope.history.tool_groups import text_of
from ctxsteward.envelope.recall.model_tools import search_context
from ctxsteward.envelope.render.text import fragment_spans
from ctxsteward.schemas import ContextError, Ref
from ctxsteward.schemas.message import Wire

from .port import Prompt


class EnvelopeDialogue:
    """A `Dialogue` with our builder that also resolves and searches.

    `lost` holds the ordinals that reports name as lost in part or whole.
    """

    def __init__(self, builder: EnvelopeBuilder, session: Session) -> None:
        self.builder, self.session = builder, session
        self._shown: frozenset[int] = frozenset()
        self._now: str | None = None
        self.lost: set[int] = set()

    def add(self, message: Wire) -> None:
        self.session.append(message, ts=self._now)

    def set_time(self, now: str) -> None:
        self._now = now

    def prompt(self, question: str | None = None) -> Prompt:
        if question is None:
            envelope = self.builder.build(self.session)
            self.lost |= {Ref.parse(loss.ref).ordinal for report in envelope.reports for loss in report.losses}
        else:
            envelope = self.builder.preview(self.session, question)
        self._shown = named(envelope)
        return prompt_from(envelope, frozenset(self.lost))

    def accounted(self) -> set[int]:
        """Return the ordinals that the window holds, a bullet cites, or a report names as lost."""
        state = self.session.state
        here = {ordinal for group in state.groups for ordinal in group.ordinals}
        return here | {Ref.parse(ref).ordinal for bullet in state.bullets for ref in bullet.citations} | self.lost

    def resolve(self, reference: str) -> str:
        try:
            return text_of(self.session.resolve(reference))
        except ContextError as error:
            raise LookupError(str(error)) from error

    def tool_output(self, number: int) -> str:
        try:
            return self.session.tool_output(number).tool_results[0].text
        except KeyError as error:
            raise LookupError(str(error)) from error

    def search(self, query: str) -> Sequence[str]:
        hits = search_context(self.session, query, shown=self._shown)
        return [text_of(self.session.resolve(hit.ordinal)) for hit in hits]


def prompt_from(envelope: Envelope, lost: frozenset[int] = frozenset()) -> Prompt:
    """Convert an envelope to a prompt: the messages after the head."""
    head = len(envelope.head.fragments)
    return Prompt(
        messages=envelope.render("openai-chat", cache=False)["messages"][head:],
        references={f"§{ordinal}": ordinal for ordinal in named(envelope)},
        summary="\n".join(
            span.text for f in envelope.dynamic.fragments if f.kind == "bullets" for span in fragment_spans(f)
        ),
        lost=lost,
        compacted=bool(envelope.reports),
        anthropic=partial(envelope.render, "anthropic"),
        envelope=envelope,
    )


def named(envelope: Envelope) -> frozenset[int]:
    """Return the ordinals that an envelope shows in full or cites singly; ranges do not count."""
    return frozenset(ordinal for fragment in envelope.dynamic.fragments for ordinal in fragment.refs)
