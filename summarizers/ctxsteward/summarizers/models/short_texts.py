"""Short texts by a model: the summary of a card, and the seven sections of a handoff.

    CardMaker(now=…, summarize=ModelCardSummarizer(model))
    handoff_of(session, sections=ModelHandoffWriter(model))

Both show sentences of the originals that match the model's lines (`held_lines`). A card whose line matches no sentence
raises, and its maker keeps the beginning of the message. A handoff is requested, parsed and counted like a summary
(`ask_twice`, `ReplyTally`): a line that matches no sentence is left out and counted. Without any line, the handoff by
rules remains.

Source: the continuity design (seven sections); the auto-context design (cards).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, get_args

from pydantic import Field

from ctxsteward.schemas import ChatModel, ChatRequest, InputError
from ctxsteward.schemas.cards import MAX_SUMMARY_CHARS
from ctxsteward.schemas.documents import HandoffLine
from ctxsteward.schemas.frozen import FrozenModel
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.summary import HandoffSection, SourceMessage, SummaryOrigin

from ..bullets import ELLIPSIS
from .by_model import ReplyTally, SectionedBullet, UnusableReply, ask_twice, fall_back, read_reply, row_of
from .calls import GovernedModel
from .grounding import DraftBullet, Speaker, grounding_texts
from .held_lines import held, section_of
from .prompts import PromptFolder, marked

MAX_LINES = 40
MAX_INPUT_CHARS = 60_000
"""Most characters of a session's messages that go to a model, the newest first."""
MAX_MESSAGE_CHARS = 4_000
"""Most characters of one message; a longer one loses its middle."""
_CARD_SCHEMA: Wire = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": MAX_SUMMARY_CHARS}},
    "required": ["text"],
    "additionalProperties": False,
}


class ModelCardSummarizer:
    """A summarizer of cards. Raises `UnusableReply` and `ModelUnavailable`; the card's maker then falls back."""

    def __init__(
        self, model: ChatModel, *, prompts: PromptFolder | None = None, deadline_seconds: float = 30.0
    ) -> None:
        self._model = model if isinstance(model, GovernedModel) else GovernedModel(model)
        self._prompt, self._deadline = (prompts or PromptFolder()).get("card_summary"), deadline_seconds

    @property
    def name(self) -> str:
        """Name of the model, as cards report it."""
        return self._model.name

    def __call__(self, source: SourceMessage) -> str:
        """Return one line about a message."""
        rows, mark = marked([row_of(source, MAX_MESSAGE_CHARS)])
        prompt = self._prompt.fill(messages=rows, mark=mark, most_chars=MAX_SUMMARY_CHARS)
        reply = self._model.reply(
            ChatRequest(
                purpose="card",
                messages=({"role": "user", "content": prompt},),
                schema=_CARD_SCHEMA,
                max_output_tokens=MAX_SUMMARY_CHARS,
                deadline_seconds=self._deadline,
            )
        )
        text = read_reply(reply, _CardText).text
        texts = grounding_texts([source])
        draft = DraftBullet(text=text, cites=[source.ref], said_by=texts[source.ref].speaker)
        found = held(draft, texts)
        shown = ELLIPSIS.join(line.text.removeprefix(f"{texts[source.ref].role}: ") for line in found.lines)
        if not shown or len(shown) > MAX_SUMMARY_CHARS:
            raise UnusableReply(f"its line does not hold: {found.fault or 'line'}")
        return shown


class ModelHandoffWriter:
    """Writes the sections of a handoff. Faults of a model or its server never raise."""

    def __init__(
        self, model: ChatModel, *, prompts: PromptFolder | None = None, deadline_seconds: float = 60.0
    ) -> None:
        self._model = model if isinstance(model, GovernedModel) else GovernedModel(model)
        self._prompts, self._deadline = prompts or PromptFolder(), deadline_seconds
        self._prompt = self._prompts.get("handoff_sections")

    def charged(self, **accounts: str | None) -> ModelHandoffWriter:
        """Return the same writer with its calls charged to these accounts."""
        other = object.__new__(ModelHandoffWriter)
        other.__dict__.update(self.__dict__, _model=self._model.charged(**accounts))
        return other

    def __call__(self, messages: Sequence[SourceMessage]) -> tuple[tuple[HandoffLine, ...], SummaryOrigin]:
        """Return the lines that match an original, in order of the sections, and the counts of all others."""
        tally, lines = ReplyTally(), list[HandoffLine]()
        try:
            rows = _newest(messages)
            shown, mark = marked(row for _, row in rows)
            given = [item for item, _ in rows]
            request = ChatRequest(
                purpose="handoff",
                messages=(
                    {"role": "user", "content": self._prompt.fill(messages=shown, mark=mark, most_lines=MAX_LINES)},
                ),
                schema=_lines_schema([item.ref for item in given]),
                max_output_tokens=100 * MAX_LINES,
                deadline_seconds=self._deadline,
            )
            texts = grounding_texts(given)
            for draft in ask_twice(self._model.task(), request, self._prompts, tally, _DraftLines).lines:
                lines += [
                    HandoffLine(section=section_of(draft.section, line, "fact"), text=line.text, refs=line.refs)
                    for line in tally.held(draft, texts)
                ]
        except ImportError:
            raise  # a package is missing, which is no fault of the model
        except Exception as error:  # for any fault of a model, its SDK or a reply the handoff by rules remains
            tally.fell_back.append("nothing to hand over" if isinstance(error, InputError) else fall_back(error))
        order = get_args(HandoffSection)
        kept = {(line.section, line.text): line for line in lines}
        origin = tally.origin(self._model, self._prompt, len(kept))
        return tuple(sorted(kept.values(), key=lambda line: order.index(line.section))), origin


class _CardText(FrozenModel):
    text: Annotated[str, Field(min_length=1, max_length=MAX_SUMMARY_CHARS)]


class _DraftLines(FrozenModel):
    lines: Annotated[list[SectionedBullet], Field(max_length=200)]


def _newest(messages: Sequence[SourceMessage]) -> list[tuple[SourceMessage, dict[str, str]]]:
    """Return the newest messages that fit, in order, with the rows that a model reads."""
    rows: list[tuple[SourceMessage, dict[str, str]]] = []
    room = MAX_INPUT_CHARS
    for item in reversed(messages):
        row = row_of(item, MAX_MESSAGE_CHARS)
        room -= len(row["text"]) + 40
        if room < 0:
            break
        if row["text"].strip():
            rows.append((item, row))
    if not rows:
        raise InputError("there is nothing to hand over")
    return rows[::-1]


def _lines_schema(refs: Sequence[str]) -> Wire:
    line: Wire = {
        "type": "object",
        "properties": {
            "section": {"enum": list(get_args(HandoffSection))},
            "text": {"type": "string", "maxLength": 600},
            "cites": {"type": "array", "items": {"enum": list(refs)}, "minItems": 1, "maxItems": min(8, len(refs))},
            "said_by": {"enum": list(get_args(Speaker))},
        },
        "required": ["section", "text", "cites", "said_by"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"lines": {"type": "array", "items": line, "maxItems": MAX_LINES}},
        "required": ["lines"],
        "additionalProperties": False,
    }
