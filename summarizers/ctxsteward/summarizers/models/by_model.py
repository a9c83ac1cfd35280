"""`ModelSummarizer`: a model selects the sentences to keep, code quotes them, and the rest is extractive.

    summarizer = ModelSummarizer(GovernedModel(OpenAIModel("gpt-4o-mini")))
    EnvelopeBuilder(model="gpt-4o", summarizer=summarizer)            # waits for the model: for batches and tests
    EnvelopeBuilder(model="gpt-4o", ahead=summarizer)                 # in the background, delays no call
    EnvelopeBuilder(model="gpt-4o", summarizer="structured", ahead=ModelSummarizer(model, sections=True))

With `sections` (for agent runs) each bullet also has one of the seven sections of a handoff, under which the window
shows it. For wishes, decisions and open items, code checks the speaker (`in_sections`). New lines about the state of
the work replace the earlier ones.

The extractive summary is always made first: it decides which standing bullets are superseded, and it is the fallback
if the model fails. Sources are split between tool groups into parts of at most `max_input_tokens`. Each part is one
call, and a second one if the answer cannot be read. Code joins the parts. Only originals go to a model, never its own
bullets as text to shorten again.

`Summary.origin` reports how many lines the model selected, which were refused and why, and each fallback. No fault of a
model or its server raises; the origin reports it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError

from ctxsteward.schemas import (
    Bullet,
    ChatModel,
    ChatReply,
    ChatRequest,
    InputError,
    ModelUnavailable,
    Summarizer,
    SummarizerInput,
    Summary,
    TokenUsage,
)
from ctxsteward.schemas.chat_model import read_json, whole_text
from ctxsteward.schemas.message import Wire
from ctxsteward.schemas.summary import HandoffSection, LossKind, SourceMessage, SummaryOrigin

from ..extraction import extractive, in_sections, structured
from .calls import GovernedModel, SpendingStopped
from .grounding import (
    MAX_BULLET_CHARS,
    DraftBullet,
    DraftBullets,
    GroundingText,
    Speaker,
    grounding_texts,
    says,
)
from .held_lines import RULES, HeldLine, held, section_of
from .prompts import SLOTS, PromptFile, PromptFolder, marked

MAX_REPLY_CHARS = 200_000
MAX_PARTS = 12
"""For the oldest parts of a longer history, the extractive bullets remain."""
BEGINNING_CHARS = 40
"""Characters of a message that the prompt repeats if the model has already read it."""
MODEL_WORTH = 45.0
"""Least worth of a line that a model selects: less than rules and replacements, more than most facts."""


class UnusableReply(Exception):
    """Reason why a reply is not usable, without any text of the model."""


Form = TypeVar("Form", bound=BaseModel)
_STATUS = re.compile(r"\bHTTP (\d{3})\b")


def fall_back(error: Exception) -> str:
    """Return the kind of an error and its HTTP status, without its text, which anybody may have written."""
    if isinstance(error, UnusableReply):
        return "answer not usable"
    if not isinstance(error, ModelUnavailable):
        return "error in the model or its adapter"
    status = _STATUS.match(error.why)
    kind = "spending stopped" if isinstance(error, SpendingStopped) else "no answer of the model"
    return f"{kind} (HTTP {status[1]})" if status else kind


class SectionedBullet(DraftBullet):
    """One bullet of a model's reply, with its section."""

    section: HandoffSection


class SectionedBullets(DraftBullets):
    """A model's reply as a list of bullets with sections."""

    bullets: Annotated[list[SectionedBullet], Field(max_length=200)]  # type: ignore[assignment]  # each is a draft


@dataclass
class ReplyTally:
    """Counts of a model's replies, for the origin of a summary or handoff."""

    grounded: set[str] = field(default_factory=set)
    """Texts of the bullets that match an original."""
    refused: Counter[str] = field(default_factory=Counter)
    fell_back: list[str] = field(default_factory=list)
    calls: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)

    def add(self, usage: TokenUsage | None) -> None:
        if usage is not None:
            self.usage = self.usage.plus(usage)

    def held(self, draft: DraftBullet, given: Mapping[str, GroundingText]) -> tuple[HeldLine, ...]:
        """Return the lines to show for a model's line. A line that matches no original is counted as refused."""
        found = held(draft, given)
        if found.fault is not None:
            self.refused[found.fault] += 1
        if found.lines and not set(draft.cites) <= given.keys():
            self.refused["unknown_reference"] += 1
        return found.lines

    def origin(self, model: GovernedModel, prompt: PromptFile, grounded: int) -> SummaryOrigin:
        """Return the origin with all counts of this tally."""
        return SummaryOrigin(
            model=model.name,
            template=prompt.label,
            grounded=grounded,
            pointed=grounded,
            refused=dict(self.refused),
            fell_back=tuple(self.fell_back),
            calls=self.calls,
            usage=self.usage,
        )


class ModelSummarizer:
    """A `Summarizer` that lets a model select the sentences to keep."""

    __name__ = "model"

    def __init__(
        self,
        model: ChatModel,
        *,
        sections: bool = False,
        fallback: Summarizer | None = None,
        prompts: PromptFolder | None = None,
        max_input_tokens: int = 12_000,
        deadline_seconds: float = 60.0,
    ) -> None:
        self.model: GovernedModel = model if isinstance(model, GovernedModel) else GovernedModel(model)
        self._sections = sections
        self._fallback = fallback or (structured if sections else extractive)
        self._prompts = prompts or PromptFolder()
        self._prompts.check()
        self._max_input_tokens, self._deadline = max_input_tokens, deadline_seconds

    def charged(self, **accounts: str | None) -> ModelSummarizer:
        """Return the same summarizer with its calls charged to these accounts (`GovernedModel.charged`)."""
        other = object.__new__(ModelSummarizer)
        other.__dict__.update(self.__dict__, model=self.model.charged(**accounts))
        return other

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Wire | None = None) -> Summary:
        """Summarize. `prefix` is the last request to the model's own provider; the only call is then appended to it."""
        plain = self._fallback(source, budget_tokens=budget_tokens)
        own, riding = ("run_sections", "prefix_sections") if self._sections else ("history_bullets", "prefix_bullets")
        prompt = self._prompts.get(own if prefix is None else riding)
        tally, bullets = ReplyTally(), list[Bullet]()
        try:
            texts = grounding_texts(source.messages)
            for part in [source.messages] if prefix is not None else self._parts(source, tally):
                share = max(40, budget_tokens * _size(part, source) // max(1, _size(source.messages, source)))
                for draft in self._drafts(part, source, share, prompt, prefix, tally):
                    given = {item.ref: texts[item.ref] for item in part}
                    own_bullets = [_bullet(line, draft, plain.bullets) for line in tally.held(draft, given)]
                    tally.grounded |= {bullet.text for bullet in own_bullets}
                    bullets += own_bullets
        except ImportError:
            raise  # a package is missing: no fault of the model, and later calls would fail as well
        except Exception as error:  # for any fault of a model, its SDK or a reply there is a summary
            tally.fell_back.append(fall_back(error))
        rows = joined(bullets, plain.bullets, source, budget_tokens)
        if self._sections:
            rows = in_sections(rows, source.messages)
            plain = plain.model_copy(update={"superseded": _with_states(plain.superseded, rows, source.standing)})
        origin = tally.origin(self.model, prompt, len(tally.grounded & {bullet.text for bullet in rows}))
        return plain.model_copy(update={"bullets": rows, "origin": origin})

    # -- asking -------------------------------------------------------------------------------------------------

    def _parts(self, source: SummarizerInput, tally: ReplyTally) -> list[tuple[SourceMessage, ...]]:
        parts = list(split_at_groups(source.messages, source, self._max_input_tokens))
        if len(parts) > MAX_PARTS:
            tally.fell_back.append("parts left out")
        return parts[-MAX_PARTS:]

    def _drafts(
        self,
        part: Sequence[SourceMessage],
        source: SummarizerInput,
        budget_tokens: int,
        prompt: PromptFile,
        prefix: Wire | None,
        tally: ReplyTally,
    ) -> Sequence[DraftBullet]:
        """Return the model's bullets for a part, or none without a usable answer."""
        text = self._filled(prompt, part, source, budget_tokens)
        form = SectionedBullets if self._sections else DraftBullets
        request = ChatRequest(
            purpose="summary",
            messages=({"role": "user", "content": text},),
            prefix=prefix,
            max_output_tokens=output_tokens(budget_tokens),
            deadline_seconds=self._deadline,
            schema=asked_schema([item.ref for item in part], sections=self._sections),
        )
        try:
            return ask_twice(self.model.task(), request, self._prompts, tally, form).bullets
        except (ModelUnavailable, UnusableReply) as error:
            tally.fell_back.append(fall_back(error))
            return []

    def _filled(
        self, prompt: PromptFile, part: Sequence[SourceMessage], source: SummarizerInput, budget_tokens: int
    ) -> str:
        if "standing" not in SLOTS[prompt.name]:  # with a prefix the model has read the messages
            rows, mark = marked([i.ref, i.message.role, _beginning(i)] for i in part)
            return prompt.fill(budget_tokens=budget_tokens, messages=rows, mark=mark)
        room = self._max_input_tokens // 2
        if _size(part, source) > self._max_input_tokens:  # one tool group: its messages get equal shares
            room = min(room, self._max_input_tokens // len(part))
        standing = [{"told": bullet.text} for bullet in source.standing[-20:]]
        rows, mark = marked([*standing, *(_row(item, source, room) for item in part)])
        told = "Rows without a reference are told already: do not repeat them, cite none." if source.standing else ""
        return prompt.fill(budget_tokens=budget_tokens, standing=told, messages=rows, mark=mark)


def _bullet(line: HeldLine, draft: DraftBullet, plain: Sequence[Bullet]) -> Bullet:
    kind = draft.kind if draft.kind not in RULES or "user" in line.roles else "fact"  # only users set rules
    section = section_of(draft.section, line, kind) if isinstance(draft, SectionedBullet) else None
    bullet = Bullet(text=line.text, citations=line.refs, kind=kind, value=MODEL_WORTH, section=section)
    rules = [one for one in plain if one.kind in RULES] if "user" in line.roles else []
    rule = next((one for one in rules if _is_said_by(bullet, one)), None)
    if rule is not None:  # the rule's own quote stays
        return rule if section is None else rule.model_copy(update={"section": section_of(section, line, rule.kind)})
    said = [one.value for one in plain if _is_said_by(one, bullet)]
    return bullet.model_copy(update={"value": max(MODEL_WORTH, *said)}) if said else bullet


def _is_said_by(bullet: Bullet, other: Bullet) -> bool:
    """Return whether another bullet that cites the same originals says the same."""
    return not set(bullet.citations).isdisjoint(other.citations) and says(other.text, bullet)


def output_tokens(budget_tokens: int) -> int:
    """Return the tokens of the longest reply for this many tokens of bullets, with the JSON around them."""
    return budget_tokens * 3 // 2 + 150


def asked_schema(refs: Sequence[str], *, sections: bool = False) -> Wire:
    """Return the JSON Schema of an answer, with the given references only, for servers that enforce a schema."""
    placed: Wire = {"section": {"enum": list(get_args(HandoffSection))}} if sections else {}
    bullet: Wire = {
        "type": "object",
        "properties": {
            **placed,
            "text": {"type": "string", "maxLength": MAX_BULLET_CHARS},
            "cites": {"type": "array", "items": {"enum": list(refs)}, "minItems": 1, "maxItems": min(8, len(refs))},
            "said_by": {"enum": list(get_args(Speaker))},
            "kind": {"enum": list(get_args(LossKind))},
        },
        "required": [*placed, "text", "cites", "said_by", "kind"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"bullets": {"type": "array", "items": bullet, "maxItems": 40}},
        "required": ["bullets"],
        "additionalProperties": False,
    }


def ask_twice(
    model: ChatModel, request: ChatRequest, prompts: PromptFolder, tally: ReplyTally, form: type[Form]
) -> Form:
    """Call the model, and again with the fault if the answer is unreadable; raises like `reply` and `read_reply`."""
    tally.calls += 1
    reply = model.reply(request)
    tally.add(reply.usage)
    try:
        return read_reply(reply, form)
    except UnusableReply as error:
        again = prompts.get("repair").fill(fault=str(error))
        said = ({"role": "assistant", "content": reply.text},) if reply.text else ()
        more = (*request.messages, *said, {"role": "user", "content": again})
        tally.calls += 1
        reply = model.reply(replace(request, messages=more))
        tally.add(reply.usage)
        return read_reply(reply, form)


def read_reply(reply: ChatReply, form: type[Form]) -> Form:
    """Parse a reply that is one complete JSON object and nothing else; else raise `UnusableReply`.

    >>> read_reply(ChatReply(text='{"bullets": []} That is all.'), DraftBullets)
    Traceback (most recent call last):
    ctxsteward.summarizers.models.by_model.UnusableReply: it is not one JSON object and nothing else
    """
    value = whole_object(reply)
    try:
        return form.model_validate(value)
    except ValidationError as error:
        raise UnusableReply(unfit(error)) from error


def unfit(error: ValidationError) -> str:
    """Return the kind and place of an object's first error, with our field names and no key that a model made up."""
    first = error.errors(include_url=False, include_input=False)[0]
    ours = {*DraftBullets.model_fields, *SectionedBullet.model_fields, "lines"}
    where = ".".join(str(part) if isinstance(part, int) or part in ours else "…" for part in first["loc"])
    return f"{where or 'the object'}: {first['type'].replace('_', ' ')}"


def whole_object(reply: ChatReply) -> object:
    """Return the JSON value of a reply that is one complete object and nothing else; else raise `UnusableReply`."""
    try:
        text = whole_text(reply)
    except InputError as error:
        raise UnusableReply(str(error)) from error
    if len(text) > MAX_REPLY_CHARS:
        raise UnusableReply(f"it has {len(text)} characters")
    try:
        return read_json(text)
    except (ValueError, RecursionError) as error:
        raise UnusableReply("it is not one JSON object and nothing else") from error


# -- sources -----------------------------------------------------------------------------------------------------


def split_at_groups(
    messages: Sequence[SourceMessage], source: SummarizerInput, max_tokens: int
) -> Iterator[tuple[SourceMessage, ...]]:
    """Yield parts of at most `max_tokens`, or of one tool group. A call and its results stay together."""
    part: list[SourceMessage] = []
    size = 0
    for group in _groups(messages):
        tokens = min(max_tokens, _size(group, source))
        if part and size + tokens > max_tokens:
            yield tuple(part)
            part, size = [], 0
        part += group
        size += tokens
    if part:
        yield tuple(part)


def _groups(messages: Sequence[SourceMessage]) -> Iterator[list[SourceMessage]]:
    group: list[SourceMessage] = []
    for item in messages:
        if group and not item.message.tool_results:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _size(messages: Sequence[SourceMessage], source: SummarizerInput) -> int:
    return sum(source.count_tokens(_text(item)) for item in messages)


def _text(item: SourceMessage) -> str:
    message = item.message
    parts = [message.text, *(result.text for result in message.tool_results)]
    parts += [f"calls {call.name} {call.arguments}" for call in message.tool_calls]
    return "\n".join(part for part in parts if part)


def role_of(item: SourceMessage) -> str:
    """Return the role of a message; "tool" for tool results, whatever the role of their message."""
    return "tool" if item.message.tool_results else item.message.role


def _row(item: SourceMessage, source: SummarizerInput, room_tokens: int) -> dict[str, str]:
    """Return a message as the row that a model reads; a very long one loses its middle."""
    text = _text(item)
    tokens = source.count_tokens(text)
    if tokens > room_tokens:
        half = len(text) * room_tokens // tokens // 2
        text = f"{text[:half]} [… {tokens - room_tokens} tokens left out …] {text[len(text) - half :]}"
    return {"ref": item.ref, "role": role_of(item), "text": text}


def row_of(item: SourceMessage, max_chars: int) -> dict[str, str]:
    """Return a message as the row that a model reads, at most `max_chars` of it, without its middle."""
    text, half = _text(item), max_chars // 2
    if len(text) > max_chars:
        text = f"{text[:half]} [… {len(text) - max_chars} characters left out …] {text[-half:]}"
    return {"ref": item.ref, "role": role_of(item), "text": text}


def _beginning(item: SourceMessage) -> str:
    return " ".join(_text(item)[: 4 * BEGINNING_CHARS].split())[:BEGINNING_CHARS]


def row_text(bullet: Bullet) -> str:
    """Return a bullet as the text whose tokens are counted here."""
    return f"- {bullet.text} {' '.join(bullet.citations)}\n"


# -- joining -----------------------------------------------------------------------------------------------------


def joined(
    written: Sequence[Bullet], plain: Sequence[Bullet], source: SummarizerInput, budget_tokens: int
) -> tuple[Bullet, ...]:
    """Join the model's bullets with the extractive ones that they do not repeat; within the budget, by worth.

    A rule always stays in the extractive wording, whatever the model says about it.
    """
    written = list({bullet.text: bullet for bullet in reversed(written)}.values())[::-1]  # repeated text counts once
    there = {bullet.text for bullet in written}
    kept = [
        one
        for one in plain
        if one.text not in there and (one.kind in RULES or not any(_is_said_by(one, bullet) for bullet in written))
    ]
    rows = [*written, *kept]
    order = sorted(range(len(rows)), key=lambda at: (-rows[at].value, at))
    room, taken = budget_tokens, set[int]()
    for at in order:
        tokens = source.count_tokens(row_text(rows[at]))
        if tokens <= room:
            taken.add(at)
            room -= tokens
    return tuple(sorted((rows[at] for at in taken), key=lambda bullet: _first(bullet, source)))


def _with_states(superseded: Sequence[int], rows: Sequence[Bullet], standing: Sequence[Bullet]) -> tuple[int, ...]:
    """Add the standing bullets about the state of the work to `superseded` if one of the rows gives a new state."""
    if not any(bullet.section == "state" for bullet in rows):
        return tuple(superseded)
    earlier = {at for at, bullet in enumerate(standing) if bullet.section == "state" and bullet.kind not in RULES}
    return tuple(sorted({*superseded, *earlier}))


def _first(bullet: Bullet, source: SummarizerInput) -> int:
    order = {item.ref: at for at, item in enumerate(source.messages)}
    return min((order.get(ref, len(order)) for ref in bullet.citations), default=len(order))
