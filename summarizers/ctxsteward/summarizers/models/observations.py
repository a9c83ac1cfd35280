"""`ObservationLog`: a conversation's past as dated, cited observations, appended and then left as they are.

    EnvelopeBuilder(model="gpt-4o", ahead=ObservationLog(model), budgets=Budgets(dynamic_tokens=8_000))

A `Summarizer` that keeps a log beside the bullets. Each observation begins with the day of what it cites, cites
originals, shows what they say like any bullet of a model (`held_lines`), has a value that says who leaves last, and is
frozen. Nothing supersedes one: a newer value comes behind it with its own date, so between reflections the log only
grows at its end, and the provider's cache keeps what stands before. The bullets are the fallback's, without what an
observation of the same originals says.

Once the log takes more than `reflect_at` of what it may, its older half is *reflected*: the model merges observations
into fewer. What stands for several is the newest of them, word for word (with `words="model"` the model's words, held
against theirs), where that tells of each of them; it takes their place, citing the originals of all, and they stay in
the event that merged them. What the model merges badly, or not, stays. Without a model, or
where it fails, observations are extractive, and the least valuable leave when there is no room.

Source: append-only logs of dated observations for long memory (published results on LongMemEval); the layered-envelope
design's rule that a bullet is made from originals holds for all but reflected ones, which are made from lines that are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from ctxsteward.schemas import (
    Bullet,
    ChatModel,
    ChatRequest,
    LossKind,
    Reflection,
    SourceMessage,
    Summarizer,
    SummarizerInput,
    Summary,
    SummaryOrigin,
    TokenUsage,
    Wire,
)

from ..extraction import extractive
from .by_model import ModelSummarizer, UnusableReply, output_tokens, role_of, row_text, unfit, whole_object
from .grounding import Fault, merges_well, says
from .held_lines import Words
from .prompts import PromptFolder, marked

FRESH_FRACTION = 1 / 5
"""Of what the log may take, what new observations may take at least; else half of what is free."""
MAX_CITATIONS = 12
"""Of a reflected observation; what would cite more originals is not merged."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATED = re.compile(r"(?:\d{4}-\d{2}-\d{2}(?: to \d{4}-\d{2}-\d{2})?: )?")
WORTH: dict[str, float] = {"constraint": 60.0, "decision": 45.0, "preference": 40.0, "open_item": 30.0}
"""Added to an observation's value by its kind: which leave last."""


class MergedObservation(BaseModel):
    """As a model writes it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    text: Annotated[StrictStr, Field(min_length=1, max_length=1_000)]
    merges: Annotated[list[StrictInt], Field(min_length=2, max_length=40)]
    kind: LossKind = "fact"


class MergedObservations(BaseModel):
    """A model's reply."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    observations: Annotated[list[MergedObservation], Field(max_length=100)]


class ObservationLog:
    """A `Summarizer`; give it to a builder as `ahead`, or as `summarizer` where waiting is no harm."""

    __name__ = "observations"
    observes = True

    def __init__(
        self,
        model: ChatModel | None = None,
        *,
        words: Words = "source",
        reflect_at: float = 0.9,
        fallback: Summarizer = extractive,
        prompts: PromptFolder | None = None,
        deadline_seconds: float = 60.0,
    ) -> None:
        """`reflect_at`: the part of `Budgets.observations_tokens` from which on the log is reflected."""
        self._prompts, self._fallback, self._deadline = prompts or PromptFolder(), fallback, deadline_seconds
        self._reflect_at, self._words = reflect_at, words
        self._written = (
            None if model is None
            else ModelSummarizer(
                model, words=words, fallback=fallback, prompts=prompts, deadline_seconds=deadline_seconds
            )
        )  # fmt: skip

    def charged(self, **accounts: str | None) -> ObservationLog:
        """The same, its calls counted on these accounts."""
        other = object.__new__(ObservationLog)
        written = None if self._written is None else self._written.charged(**accounts)
        other.__dict__.update(self.__dict__, _written=written)
        return other

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Wire | None = None) -> Summary:
        """The fallback's bullets, new observations and, where the log is deep, merged ones for its older half."""
        plain = self._fallback(source, budget_tokens=budget_tokens)
        if not source.unobserved:
            return plain
        standing = sum(source.count_tokens(row_text(bullet)) for bullet in source.observations)
        least = int(source.observations_tokens * FRESH_FRACTION)
        room = max((source.observations_tokens - standing) // 2, least)
        to_observe = replace(source, messages=source.unobserved, standing=source.observations, visible=())
        if self._written is None:
            made = self._fallback(to_observe, budget_tokens=room)
        else:
            is_there = {item.ref for item in source.unobserved} <= {item.ref for item in source.messages}
            made = self._written(to_observe, budget_tokens=room, prefix=prefix if is_there else None)
        days = {item.ref: _day(item) for item in source.unobserved}
        roles = {item.ref: role_of(item) for item in source.unobserved}
        fresh = tuple(_dated(bullet, days, roles) for bullet in made.bullets)
        reflected, origin = self._reflected(source, standing, fresh, made.origin)
        told = (*source.observations, *fresh)
        bullets = tuple(bullet for bullet in plain.bullets if not _is_told(bullet, told))
        return plain.model_copy(
            update={"bullets": bullets, "observed": fresh, "reflected": reflected, "origin": origin}
        )

    # -- reflecting ---------------------------------------------------------------------------------------------

    def _reflected(
        self, source: SummarizerInput, standing_tokens: int, fresh: Sequence[Bullet], origin: SummaryOrigin | None
    ) -> tuple[tuple[Reflection, ...], SummaryOrigin | None]:
        """Observations that stand for others from now on."""
        total = standing_tokens + sum(source.count_tokens(row_text(bullet)) for bullet in fresh)
        if self._written is None or origin is None or total <= self._reflect_at * source.observations_tokens:
            return (), origin
        half, older, sizes = standing_tokens / 2, list[int](), list[int]()
        for position, bullet in enumerate(source.observations):
            if half <= 0:
                break
            sizes.append(source.count_tokens(row_text(bullet)))
            older.append(position)
            half -= sizes[-1]
        if len(older) < 2:
            return (), origin
        try:
            drafts, usage = self._asked(source, older, sum(sizes) // 2)
        except ImportError:
            raise  # a package is missing: no fault of the model
        except Exception:  # whatever a model brings about: the log stands as it is
            return (), _told(origin, "not reflected")
        return self._held(source, older, drafts, origin, usage)

    def _asked(
        self, source: SummarizerInput, older: Sequence[int], budget_tokens: int
    ) -> tuple[list[MergedObservation], TokenUsage | None]:
        assert self._written is not None
        rows, mark = marked({"n": str(position), "text": source.observations[position].text} for position in older)
        text = self._prompts.get("reflect_observations").fill(budget_tokens=budget_tokens, messages=rows, mark=mark)
        request = ChatRequest(
            purpose="reflection", messages=({"role": "user", "content": text},), deadline_seconds=self._deadline,
            max_output_tokens=output_tokens(budget_tokens),
        )  # fmt: skip
        reply = self._written.model.task().reply(request)
        try:
            return MergedObservations.model_validate(whole_object(reply)).observations, reply.usage
        except ValidationError as error:
            raise UnusableReply(unfit(error)) from error

    def _held(
        self, source: SummarizerInput, older: Sequence[int], drafts: Sequence[MergedObservation],
        origin: SummaryOrigin, usage: TokenUsage | None,
    ) -> tuple[tuple[Reflection, ...], SummaryOrigin]:  # fmt: skip
        """What of the answer is taken: merges given lines, each once, says what they say, and is shorter."""
        taken, gone, refused = list[Reflection](), set[int](), dict(origin.refused)
        for draft in drafts:
            merges = set(draft.merges)
            standing = [source.observations[position] for position in sorted(merges & set(older))]
            refs = dict.fromkeys(ref for bullet in standing for ref in bullet.citations)
            text, fault = self._merged(draft, standing)
            if fault is None and (not merges <= set(older) - gone or len(standing) < 2 or len(refs) > MAX_CITATIONS):
                fault = "cited"
            worth = max((bullet.value for bullet in standing), default=0.0)
            text = _between(text, [_days_in(bullet.text) for bullet in standing])
            new = Bullet(text=text, citations=tuple(refs) or ("§1",), kind=draft.kind, value=worth)
            old_tokens = sum(source.count_tokens(row_text(bullet)) for bullet in standing)
            if fault is None and source.count_tokens(row_text(new)) >= old_tokens:
                fault = "line"
            if fault is not None:
                refused[f"reflected_{fault}"] = refused.get(f"reflected_{fault}", 0) + 1
                continue
            taken.append(Reflection(observation=new, merges=tuple(sorted(merges))))
            gone |= merges
        spent = usage or TokenUsage()
        told = origin.model_copy(
            update={
                "template": f"{origin.template}, {self._prompts.get('reflect_observations').label}",
                "refused": refused, "calls": origin.calls + 1, "grounded": origin.grounded + len(taken),
                "usage": origin.usage.plus(spent),
            }
        )  # fmt: skip
        return tuple(taken), told

    def _merged(self, draft: MergedObservation, standing: Sequence[Bullet]) -> tuple[str, Fault | None]:
        """What stands for several observations, and what is wrong with it; each of them it has to tell of."""
        told = [_undated(bullet.text) for bullet in standing]
        text = told[-1] if self._words == "source" and told else draft.text
        return text, merges_well(text, told) if told else "cited"


def _told(origin: SummaryOrigin, why: str) -> SummaryOrigin:
    return origin.model_copy(update={"fell_back": (*origin.fell_back, why), "calls": origin.calls + 1})


def _is_told(bullet: Bullet, observations: Sequence[Bullet]) -> bool:
    """Whether an observation of the same originals says this bullet."""
    cited = set(bullet.citations)
    return any(says(one.text, bullet) for one in observations if cited.intersection(one.citations))


def _day(item: SourceMessage) -> str:
    found = _DAY.match(item.ts or "")
    return found[0] if found else ""


def _days_in(text: str) -> list[str]:
    """Of an observation: the days it begins with."""
    match = _DATED.match(text)
    return _DAY.findall(match[0]) if match else []


def _dated(bullet: Bullet, days: Mapping[str, str], roles: Mapping[str, str]) -> Bullet:
    """A bullet as an observation; whose words it has, its row says."""
    known = sorted(day for ref in bullet.citations if (day := days.get(ref)))
    who = {roles.get(ref, "") for ref in bullet.citations}
    said = bullet.text.removeprefix(f"{next(iter(who))}: ") if len(who) == 1 else bullet.text
    text = f"{known[-1]}: {said}" if known else said
    return bullet.model_copy(update={"text": text, "value": bullet.value + WORTH.get(bullet.kind, 0.0)})


def _undated(text: str) -> str:
    return text[len(_DATED.match(text)[0]) :]  # type: ignore[index]  # it matches nothing at least


def _between(text: str, days: Sequence[Sequence[str]]) -> str:
    """A merged observation, from the first day of what it stands for to the last."""
    text = _undated(text.strip())
    known = sorted(day for some in days for day in some)
    if not known:
        return text
    return f"{known[0]}: {text}" if known[0] == known[-1] else f"{known[0]} to {known[-1]}: {text}"
