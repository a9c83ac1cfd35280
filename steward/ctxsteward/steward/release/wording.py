"""A model's words for lines of the meta slice, where code lets them stand; else the rule's own words do.

Admission, the choice of records and their order are decided before, by the rules' words: a wording changes how a line
reads, never whether it is there, whose it is, how far it is trusted. A line that a person worded or approved, and one
that is a template over what tools show, is left as it is.

Asked is for the records of a slice that changes tonight anyway, the most valuable first, up to `max_calls` and
`max_dollars`; so no wording by itself breaks a prefix that providers cache. A wording that is in force, or waits for
people, stays as long as it still holds (`wording_fault`), without a call.

A wording holds where it is grounded in the evidence (`fault_of`: coverage, values, speaker, sign, …), each of its
sentences is about what the rule's line says, in the order of its words, nothing of that is turned round or otherwise
(`drift`), and it costs no more tokens than the rule's line. Whoever is obeyed by the model, then: what is not in the
evidence is refused, and what is in it but not in the rule's line is so, too.

Nothing that a model does raises. Source: the state design (trust; gates); `summarizers.models.grounding`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ctxsteward.envelope import Counter as TokenCounter
from ctxsteward.language.operators import sentences_of, tokens
from ctxsteward.schemas import ChatModel, ChatRequest, InputError, Message, MetaRecommendation, ModelUnavailable
from ctxsteward.schemas.chat_model import whole_text
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.profile import MetaRecord, RecordText
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.store.profiles.text import line_writer
from ctxsteward.summarizers.models import GovernedModel, SpendingLedger
from ctxsteward.summarizers.models.grounding import DraftBullet, content_words, fault_of, grounding_texts
from ctxsteward.summarizers.models.prompts import PromptFolder, marked

from ..artifacts.artifact import EvidenceQuote
from ..drift.edits import otherwise
from ..drift.polarity import polarity_changes
from ..ledger.facade import Ledger
from ..night.report import WordingReport
from ..observations.observation import KINDS
from ..settings import WordingSettings

MIN_OF_LINE = 0.6
"""Of a sentence's content words, in the rule's line."""
MAX_QUOTE_CHARS = 1_000
"""Of one span, as a model reads it."""
MAX_TEXT_CHARS = 280
DEADLINE_SECONDS = 30.0
REPLY_TOKENS = 300
_TOLD = ("word", "figure", "operator")
_TEXT: TypeAdapter[str] = TypeAdapter(RecordText)
_SCHEMA: Wire = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 8, "maxLength": MAX_TEXT_CHARS}},
    "required": ["text"],
    "additionalProperties": False,
}


def wording_fault(text: str, record: MetaRecommendation, quotes: Sequence[EvidenceQuote]) -> str | None:
    """What is wrong with words for a record, resting on these spans; None: they may stand for its own."""
    try:
        _TEXT.validate_python(text)
    except ValidationError:
        return "line"
    spans = [(one.evidence.role, one.text) for one in quotes if one.text]
    sources = grounding_texts([_source(number, role, said) for number, (role, said) in enumerate(spans, 1)])
    speakers = [source.speaker for source in sources.values()]
    said_by = "user" if "user" in speakers else speakers[0] if speakers else "tool"
    fault, _ = fault_of(DraftBullet(text=text, cites=list(sources), said_by=said_by), sources)
    if fault is not None:
        return fault
    known = content_words(record.text)
    for sentence in sentences_of(text):
        words = content_words(sentence)
        if len(words & known) < MIN_OF_LINE * len(words):
            return "another_line"
    if not _keeps_order(record.text, text):
        return "order"
    turned = polarity_changes(list(sentences_of(record.text)), list(sentences_of(text)))
    return "otherwise" if turned or otherwise(record.text, text) is not None else None


def _keeps_order(line: str, text: str) -> bool:
    """Whether the words that both have once stand in one order: who exchanges two names or values changes it."""
    old, new = (
        [token.key for sentence in sentences_of(one) for token in tokens(sentence) if token.kind in _TOLD]
        for one in (line, text)
    )
    shared = {key for key in set(old) & set(new) if old.count(key) == 1 == new.count(key)}
    return [key for key in old if key in shared] == [key for key in new if key in shared]


def _source(number: int, role: str, text: str) -> SourceMessage:
    spoken = role if role in ("user", "assistant") else "tool"
    wire: Wire = {"role": spoken, "content": text} | ({"tool_call_id": f"c{number}"} if spoken == "tool" else {})
    return SourceMessage(ref=f"§{number}", message=Message.from_wire(wire))


class RecordWordings:
    """The wordings of one night."""

    def __init__(
        self, settings: WordingSettings, model: ChatModel, ledger: Ledger, counter: TokenCounter, night: str
    ) -> None:
        self._settings, self._ledger, self._counter = settings, ledger, counter
        prices = {model.name: settings.price} if settings.price is not None else {}
        limits = None if settings.max_dollars is None else {"night": settings.max_dollars}
        self._spending = SpendingLedger(prices, limits=limits)  # type: ignore[arg-type]
        self._model = GovernedModel(model, spending=self._spending).charged(night=night)
        self._prompt = PromptFolder(settings.prompts).get("record_wording")
        self._words: dict[str, str] = {}
        """Wordings that still hold, by record."""
        self._records: Mapping[str, MetaRecommendation] = {}
        self._asked = self._worded = self._kept = 0
        self._refused: Counter[str] = Counter()
        self._fell_back: list[str] = []

    def plain(
        self, before: Sequence[MetaRecord], asked: Iterable[MetaRecord], active: Sequence[MetaRecommendation]
    ) -> tuple[MetaRecord, ...]:
        """The slice in force in the rules' words, where its own still hold; notes those, and those of `asked`."""
        self._records = {record.id: record for record in active}
        self._words = {}
        found: list[MetaRecord] = []
        for record, is_in_force in (*((one, True) for one in before), *((one, False) for one in asked)):
            known = self._records.get(record.id)
            other = known is not None and record.text != known.text
            if known is not None and other and self._may(known) and not self._fault(record.text, known):
                self._words[record.id] = record.text
                record = record.model_copy(update={"text": known.text})
            found += [record] if is_in_force else []
        return tuple(found)

    def worded(
        self, fitted: Sequence[MetaRecord], plain: Sequence[MetaRecord], is_out: Callable[[MetaRecord], bool]
    ) -> tuple[MetaRecord, ...]:
        """The slice in the words that hold; a model is asked where the slice is another than `plain`."""
        changes, line = tuple(fitted) != tuple(plain), line_writer(fitted)
        found: list[MetaRecord] = []
        for record in fitted:
            known, words = self._records.get(record.id), self._words.get(record.id)
            self._kept += words is not None
            if words is None and changes and known is not None and record.text == known.text and self._may(known):
                words = self._asked_for(known)
            other = record if words is None else record.model_copy(update={"text": words})
            dearer = self._counter.text(line(other)) > self._counter.text(line(record))
            if other is not record and (dearer or is_out(other)):
                self._refused["longer" if dearer else "out"] += 1
                other = record
            found.append(other)
        return tuple(found)

    def report(self) -> WordingReport:
        """What came of it."""
        rows = [row for row in self._spending.rows() if row.account == "night"]
        return WordingReport(
            model=self._model.name,
            prompt=self._prompt.label,
            asked=self._asked,
            worded=self._worded,
            kept=self._kept,
            refused=dict(sorted(self._refused.items())),
            fell_back=tuple(dict.fromkeys(self._fell_back)),
            calls=sum(row.calls for row in rows),
            tokens=sum(row.usage.prompt_tokens + row.usage.output_tokens for row in rows),
            dollars=round(sum(row.dollars for row in rows), 6),
        )

    def _may(self, record: MetaRecommendation) -> bool:
        by_people = record.review is not None or record.locked
        return not (by_people or KINDS[record.kind].is_template or KINDS[record.kind].gate == "person")

    def _fault(self, text: str, record: MetaRecommendation) -> str | None:
        return wording_fault(text, record, self._ledger.why(record.id))

    def _asked_for(self, record: MetaRecommendation) -> str | None:
        """A model's words for a record; None: its own stay."""
        quotes = [one for one in self._ledger.why(record.id) if one.text]
        if not quotes or self._asked >= self._settings.max_calls:
            if quotes:
                self._fell_back.append(f"max_calls {self._settings.max_calls} is reached")
            return None
        self._asked += 1
        try:
            text = _text_of(whole_text(self._model.reply(self._question(record, quotes))))
        except (InputError, ModelUnavailable) as error:
            self._fell_back.append(str(error)[:200])
            return None
        except ImportError:
            raise  # a package is missing: no fault of the model
        except Exception as error:  # whatever a model, its SDK or a reply brings about: the rule's words are there
            self._fell_back.append(type(error).__name__)
            return None
        if text == record.text:
            return None
        fault = wording_fault(text, record, quotes)
        if fault is not None:
            self._refused[fault] += 1
            return None
        self._worded += 1
        return text

    def _question(self, record: MetaRecommendation, quotes: Sequence[EvidenceQuote]) -> ChatRequest:
        spans = [{"evidence": (one.text or "")[:MAX_QUOTE_CHARS]} for one in quotes]
        rows, mark = marked([{"line": record.text}, *spans])
        text = self._prompt.fill(messages=rows, mark=mark, most_chars=min(MAX_TEXT_CHARS, len(record.text)))
        return ChatRequest(
            purpose="wording",
            messages=({"role": "user", "content": text},),
            schema=_SCHEMA,
            max_output_tokens=REPLY_TOKENS,
            deadline_seconds=DEADLINE_SECONDS,
        )


def _text_of(reply: str) -> str:
    try:
        value: Any = json.loads(reply)
    except (ValueError, RecursionError):
        raise InputError("the answer is not one JSON object and nothing else") from None
    if not isinstance(value, dict) or set(value) != {"text"} or not isinstance(value["text"], str):
        raise InputError("the answer is not the object that was asked for")
    return value["text"].strip()
