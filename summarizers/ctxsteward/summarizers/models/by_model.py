"""`ModelSummarizer`: a model says what matters, code shows it in the words of who said it, and the rest is extractive.

    summarizer = ModelSummarizer(GovernedModel(OpenAIModel("gpt-4o-mini")))
    EnvelopeBuilder(model="gpt-4o", summarizer=summarizer)            # waits for the model: for batches and tests
    EnvelopeBuilder(model="gpt-4o", ahead=summarizer)                 # beside the session, never in its way
    EnvelopeBuilder(model="gpt-4o", summarizer="structured", ahead=ModelSummarizer(model, sections=True))

With `sections` (for agent runs) each bullet says, too, where it stands: in one of the seven sections of a handoff,
under which the window shows it. Of what is wanted, settled or open, code looks at who said it (`in_sections`). New
lines of where the work stands take the place of the model's earlier ones.

The extractive summary is always made first: it decides which standing bullets are superseded, and stands in wherever
the model fails. Sources are split between tool groups into parts of at most `max_input_tokens`; each part is asked for
once, and once more where the answer cannot be read. Parts are joined by code. Only originals go to a model, never
bullets of its own as text to be shortened again.

`Summary.origin` says what of it the model wrote, what was refused and why, and where it fell back. Nothing that a model
or its server does raises: whatever fails is told there.
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
"""A longer history keeps its extractive bullets for the oldest parts."""
BEGINNING_CHARS = 40
"""Of a message, where it is only pointed at."""
MODEL_WORTH = 45.0
"""At least, of what a model points at: less than rules and what replaces something, more than most facts."""


class UnusableReply(Exception):
    """Why a reply is no answer, in words of ours: nothing that a model wrote."""


Form = TypeVar("Form", bound=BaseModel)
_STATUS = re.compile(r"\bHTTP (\d{3})\b")


def fall_back(error: Exception) -> str:
    """Of what went wrong, its kind, and the HTTP status: what a model or its server wrote may be anybody's words."""
    if isinstance(error, UnusableReply):
        return "answer not usable"
    if not isinstance(error, ModelUnavailable):
        return "error in the model or its adapter"
    status = _STATUS.match(error.why)
    kind = "spending stopped" if isinstance(error, SpendingStopped) else "no answer of the model"
    return f"{kind} (HTTP {status[1]})" if status else kind


class SectionedBullet(DraftBullet):
    """As a model writes it where bullets stand in sections."""

    section: HandoffSection


class SectionedBullets(DraftBullets):
    """A model's reply, then."""

    bullets: Annotated[list[SectionedBullet], Field(max_length=200)]  # type: ignore[assignment]  # each is a draft


@dataclass
class ReplyTally:
    """Counts of a model's replies, for the origin of a summary or handoff."""

    grounded: set[str] = field(default_factory=set)
    """Texts of bullets."""
    refused: Counter[str] = field(default_factory=Counter)
    fell_back: list[str] = field(default_factory=list)
    calls: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)

    def add(self, usage: TokenUsage | None) -> None:
        if usage is not None:
            self.usage = self.usage.plus(usage)

    def held(self, draft: DraftBullet, given: Mapping[str, GroundingText]) -> tuple[HeldLine, ...]:
        """What is shown for a line that a model wrote; a line that does not hold is counted."""
        found = held(draft, given)
        if found.fault is not None:
            self.refused[found.fault] += 1
        if found.lines and not set(draft.cites) <= given.keys():
            self.refused["unknown_reference"] += 1
        return found.lines

    def origin(self, model: GovernedModel, prompt: PromptFile, grounded: int) -> SummaryOrigin:
        """Count lines that hold, refused lines, and lines that the rules replaced."""
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
    """A `Summarizer`."""

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
        """The same, its calls counted on these accounts (`GovernedModel.charged`)."""
        other = object.__new__(ModelSummarizer)
        other.__dict__.update(self.__dict__, model=self.model.charged(**accounts))
        return other

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Wire | None = None) -> Summary:
        """Summarize; with `prefix` (the request rendered last for the model's own provider), in one call behind it."""
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
            raise  # a package is missing: no fault of the model, and no call after this one would do better
        except Exception as error:  # whatever a model, its SDK or a reply brings about: there is a summary
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
        """The model's bullets for a part; none where it gave no usable answer."""
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
        if "standing" not in SLOTS[prompt.name]:  # it rides: the model has read the messages
            rows, mark = marked([i.ref, i.message.role, _beginning(i)] for i in part)
            return prompt.fill(budget_tokens=budget_tokens, messages=rows, mark=mark)
        room = self._max_input_tokens // 2
        if _size(part, source) > self._max_input_tokens:  # one tool group: each of its messages gets a like share
            room = min(room, self._max_input_tokens // len(part))
        standing = [{"told": bullet.text} for bullet in source.standing[-20:]]
        rows, mark = marked([*standing, *(_row(item, source, room) for item in part)])
        told = "Rows without a reference are told already: do not repeat them, cite none." if source.standing else ""
        return prompt.fill(budget_tokens=budget_tokens, standing=told, messages=rows, mark=mark)


def _bullet(line: HeldLine, draft: DraftBullet, plain: Sequence[Bullet]) -> Bullet:
    kind = draft.kind if draft.kind not in RULES or "user" in line.roles else "fact"  # nobody but a user sets rules
    section = section_of(draft.section, line, kind) if isinstance(draft, SectionedBullet) else None
    bullet = Bullet(text=line.text, citations=line.refs, kind=kind, value=MODEL_WORTH, section=section)
    rules = [one for one in plain if one.kind in RULES] if "user" in line.roles else []
    rule = next((one for one in rules if _is_said_by(bullet, one)), None)
    if rule is not None:  # it stays as the rules found it
        return rule if section is None else rule.model_copy(update={"section": section_of(section, line, rule.kind)})
    said = [one.value for one in plain if _is_said_by(one, bullet)]
    return bullet.model_copy(update={"value": max(MODEL_WORTH, *said)}) if said else bullet


def _is_said_by(bullet: Bullet, other: Bullet) -> bool:
    """Whether another bullet, of the same originals, says this one."""
    return not set(bullet.citations).isdisjoint(other.citations) and says(other.text, bullet)


def output_tokens(budget_tokens: int) -> int:
    """The longest reply for so many tokens of bullets: their text, and the JSON around it."""
    return budget_tokens * 3 // 2 + 150


def asked_schema(refs: Sequence[str], *, sections: bool = False) -> Wire:
    """The JSON Schema of an answer, for servers that hold a model to one: it can name no other reference."""
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
    """Ask; where the answer cannot be read ask once more, saying why. Raises `ModelUnavailable`, `UnusableReply`."""
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
    """The value of a reply that is whole and nothing else; raises `UnusableReply`.

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
    """What of an object is not as asked for: the kind of error and our own names; none that a model made up."""
    first = error.errors(include_url=False, include_input=False)[0]
    ours = {*DraftBullets.model_fields, *SectionedBullet.model_fields, "lines"}
    where = ".".join(str(part) if isinstance(part, int) or part in ours else "…" for part in first["loc"])
    return f"{where or 'the object'}: {first['type'].replace('_', ' ')}"


def whole_object(reply: ChatReply) -> object:
    """The JSON value of a reply that is whole and nothing else; raises `UnusableReply`."""
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
    """Parts of at most so many tokens, or of one tool group; a call and its results stay together."""
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
    """Of a message; of tool results "tool", whoever carries them."""
    return "tool" if item.message.tool_results else item.message.role


def _row(item: SourceMessage, source: SummarizerInput, room_tokens: int) -> dict[str, str]:
    """A message as the model reads it; a very long one loses its middle."""
    text = _text(item)
    tokens = source.count_tokens(text)
    if tokens > room_tokens:
        half = len(text) * room_tokens // tokens // 2
        text = f"{text[:half]} [… {tokens - room_tokens} tokens left out …] {text[len(text) - half :]}"
    return {"ref": item.ref, "role": role_of(item), "text": text}


def row_of(item: SourceMessage, max_chars: int) -> dict[str, str]:
    """A message as the model reads it, at most so many characters of it, without its middle."""
    text, half = _text(item), max_chars // 2
    if len(text) > max_chars:
        text = f"{text[:half]} [… {len(text) - max_chars} characters left out …] {text[-half:]}"
    return {"ref": item.ref, "role": role_of(item), "text": text}


def _beginning(item: SourceMessage) -> str:
    return " ".join(_text(item)[: 4 * BEGINNING_CHARS].split())[:BEGINNING_CHARS]


def row_text(bullet: Bullet) -> str:
    """A bullet as its tokens are counted here."""
    return f"- {bullet.text} {' '.join(bullet.citations)}\n"


# -- joining -----------------------------------------------------------------------------------------------------


def joined(
    written: Sequence[Bullet], plain: Sequence[Bullet], source: SummarizerInput, budget_tokens: int
) -> tuple[Bullet, ...]:
    """Bullets of the model, and extractive ones that none of those says; within the budget, by worth.

    What is a rule stays as the rules found it, whatever a model says of it.
    """
    written = list({bullet.text: bullet for bullet in reversed(written)}.values())[::-1]  # what it says twice is once
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
    """Where a line says how the work stands now, what was said of that before is over."""
    if not any(bullet.section == "state" for bullet in rows):
        return tuple(superseded)
    earlier = {at for at, bullet in enumerate(standing) if bullet.section == "state" and bullet.kind not in RULES}
    return tuple(sorted({*superseded, *earlier}))


def _first(bullet: Bullet, source: SummarizerInput) -> int:
    order = {item.ref: at for at, item in enumerate(source.messages)}
    return min((order.get(ref, len(order)) for ref in bullet.citations), default=len(order))
