"""Token budgets: one row of numbers, the only place for a threshold; and the model that a builder builds for.

Tokens are tokens of the builder's tokenizer, fractions are of 1. A head budget (`system`, `static`, `meta`) that the
caller sets is *fixed*: text over it is an error. Left at its default it grows for a longer profile and for the
application's own system message, with a finding; the limit is the model's window.

A caller states budgets in the provider's tokens; a builder counts with a tokenizer that may be another. `Scale` holds
the budgets in both, and the factor between them that reported usage corrects: a part of the way each time, within
bounds, so that one odd report changes little.

Raises `InvalidBudget`, `UnknownModel`, `InputError`. Source: the layered-envelope design (segmented envelope).

>>> Budgets().history_tokens
3200
>>> Budgets(dynamic_tokens=4000, recall_fraction=0).trigger_tokens
3600
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from ctxsteward.schemas import Finding, InputError, UnknownModel
from ctxsteward.schemas.arguments import check_argument, guess
from ctxsteward.schemas.errors import InvalidBudget

from .models import ImageRule, ModelInfo, model_info
from .tokenizer import REPLY_PRIMING_TOKENS, Counter, Tokenizer, load_tokenizer

HEAD_SECTIONS = ("system", "static", "meta")
SECTIONS = (*HEAD_SECTIONS, "dynamic")

MIN_PROGRESS_FRACTION = 0.1
"""A compaction that would save less of its section is not made."""

TASK_FRACTION = 0.25
"""The task stays verbatim up to this part of `dynamic_tokens`."""

REPLY_FRACTION = 0.75
"""The assistant's newest text stays whole up to this part of the history's share, and up to `REPLY_OF_DYNAMIC`."""

REPLY_OF_DYNAMIC = 0.3

OLD_REPLY_FRACTION = 0.02
"""An older text of the assistant stays whole up to this part of dynamic once anything was compacted."""

LEAST_REPLY_TOKENS = 48
"""A shortened text is not shorter: its reference and a sentence on each side."""

OWN_BULLETS_FRACTION = 0.9
"""Bullets may fill this part of the compaction target."""

BULLETS_FRACTION = 0.25
"""And borrow this part of recall's share, at most as much again as is their own: what a session keeps does not shrink
with the history's share."""

NEW_FLOOR_FRACTION = 1 / 3
"""Of `sure_bullets_tokens`, what new ones may fill where verbatim messages alone exceed the target."""

BULLETS_FLOOR_FRACTION = 0.8
"""The same for all bullets: a long reply does not push out what the user said."""

LEAST_CUT_FRACTION = 0.08
"""Of the history's share, what a compaction takes at least below its trigger."""

REGRET_FRACTION = 0.018
"""Of a session's bill so far, what its first compaction may cost at once: the session may end with that call."""

RULES_FRACTION = 0.1
"""Of the history, what rules may take beyond the room of bullets, if no other bullet says them."""
LIVE_FLOOR_FRACTION = 0.15
"""Of `bullets_tokens`, the same within a tool loop: results leave there, and their references lead back to them."""

LIKELY_FRACTION = 0.35
"""Bullets likely take this part of the messages they stand for; room beyond it stays with newer messages, verbatim."""

RECALLED_FRACTION = 0.25
"""Of what the window leaves out, a user turn recalls this part at most; what its question names by number besides."""

RECALLED_HALF_TOKENS = 4_000
"""Where so much is left out, half of that part: what a short session left out a moment ago is seldom asked for, and
showing it again costs more than the compaction saved."""

LEAST_RECALL_TOKENS = 200
"""So much of recall's room may be filled however little was left out: a few messages and their fence."""

GUARD_WARNS_FRACTION, GUARD_COMPACTS_FRACTION = 0.8, 0.9
"""Of what the window leaves a request beside the output's reserve: a finding says so; dynamic is compacted, whatever
its own budget."""

DEFAULT_DYNAMIC_TOKENS = 8_000
"""Dynamic tokens, unless the caller or a small window sets others. All lasting rules of long chats stay in sight (90 %
of them at 2,000 tokens), and 99 % of the values that later calls of tau-bench's runs use (96 % at 4,000)."""

CHAT_TOKENS = 4_000
"""Dynamic tokens of the preset for chats if no model is named."""

WHOLE_RESULT_FRACTION = 0.75
"""A tool result of so much of dynamic is whole on arrival where tool loops are what is built for."""

LEAST_DYNAMIC_TOKENS = 900
"""Dynamic tokens of a builder for a small window."""

_OF_WINDOW = {"system_tokens": 0.02, "static_tokens": 0.03, "meta_tokens": 0.01, "dynamic_tokens": 0.5}


def _share(tokens: int, fraction: float) -> int:
    """Whole tokens of a part; 0.7 of 700 is 490, whatever floating point says."""
    return int(tokens * fraction + 1e-9)


class Budgets(BaseModel):
    """Tokens each section may take, and when and how far the dynamic section is compacted."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    system_tokens: int = 240
    static_tokens: int = 360
    meta_tokens: int = 180
    dynamic_tokens: int = DEFAULT_DYNAMIC_TOKENS
    tools_tokens: int | None = None
    """Tool schemas; None: whatever they need."""
    compact_at_fraction: float = 0.9
    """Of the history's share: where it is due for compaction."""
    compact_to_fraction: float = 0.65
    """Where a compaction takes it, or to more if the next turns need less room (`leaving`).

    With (.8, .5) 44 % of what dense talk stated once outlives five passes of idle talk, with these 53 %; on agent runs
    they cost 0.01 more of the bill of sending everything.
    """
    recall_fraction: float = 0.6
    """Part of `dynamic_tokens` kept for originals recalled for the current request."""
    arrival_cap_tokens: int | None = None
    """A longer tool result is excerpted on first sight; None: min(1000, dynamic / 4)."""
    facts_fraction: float = 0.5
    """Part of recall's room that lines of earlier sessions may take; messages take the rest."""
    waiting_tokens: int | None = None
    """Dynamic may take so many tokens while a compaction would cost more than it has earned; None: `dynamic_tokens`."""

    def __init__(self, *given: object, **values: Any) -> None:
        if given:
            hint = "write Budgets(dynamic_tokens=4000)"
            raise InputError(f"Budgets takes its values by name, not {given[0]!r:.40}; {hint}")
        for name, value in values.items():
            if isinstance(value, bool):
                raise InvalidBudget(name, value, "an integer number of tokens, or a fraction")
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"]) or "budgets"
            said = first["msg"].removeprefix("Input should be ")
            if first["type"] == "extra_forbidden":
                said = f"the name of a budget; {guess(field, type(self).model_fields)}"
            raise InvalidBudget(field, first.get("input"), said) from None
        self._check()

    def _check(self) -> None:
        for name in (*SECTIONS, "tools"):
            value = getattr(self, f"{name}_tokens")
            if value is not None and value < 1:
                raise InvalidBudget(f"{name}_tokens", value, "at least 1 token")
        for name in ("compact_at_fraction", "compact_to_fraction"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise InvalidBudget(name, value, "more than 0 and at most 1")
        if not 0 <= self.recall_fraction < 1:
            raise InvalidBudget("recall_fraction", self.recall_fraction, "at least 0 and less than 1")
        if not 0 <= self.facts_fraction <= 1:
            raise InvalidBudget("facts_fraction", self.facts_fraction, "at least 0 and at most 1")
        if self.compact_to_fraction >= self.compact_at_fraction:
            raise InvalidBudget("compact_to_fraction", self.compact_to_fraction, "less than `compact_at_fraction`")
        if self.waiting_tokens is not None and self.waiting_tokens < self.dynamic_tokens:
            least = f"at least `dynamic_tokens` ({self.dynamic_tokens}), or None"
            raise InvalidBudget("waiting_tokens", self.waiting_tokens, least)
        if self.arrival_cap_tokens is not None and self.arrival_cap_tokens < 16:
            raise InvalidBudget("arrival_cap_tokens", self.arrival_cap_tokens, "at least 16 tokens, or None")

    @classmethod
    def for_model(cls, model: str, *, output_reserve_tokens: int | None = None) -> Budgets:
        """Scale to a model's window: 2 % system, 3 % static, 1 % meta, 50 % dynamic of what the output leaves.

        No head budget falls below its default, dynamic not below 900, and none is fixed. Raises `UnknownModel`.
        """
        check_argument("model", model, str, "pass a model's name, such as 'gpt-4o'")
        info = model_info(model)
        reserve = info.output_reserve_tokens if output_reserve_tokens is None else output_reserve_tokens
        usable = info.window_tokens - reserve
        if usable < 1:
            raise InvalidBudget("output_reserve_tokens", output_reserve_tokens, f"less than {info.window_tokens}")
        return cls._for_usable(usable)

    @classmethod
    def _for_usable(cls, usable_tokens: int) -> Budgets:
        """Return budgets for the tokens that a window leaves a prompt."""
        least = cls()._with({"dynamic_tokens": LEAST_DYNAMIC_TOKENS})
        shares = {field: int(usable_tokens * part) for field, part in _OF_WINDOW.items()}
        return least._with({field: max(getattr(least, field), tokens) for field, tokens in shares.items()})

    @classmethod
    def default(cls, usable_tokens: int | None) -> Budgets:
        """Return what a builder takes if the caller names no budgets: as `for_model`, with at most 8,000 of dynamic.

        Where a compaction would cost more than it has earned, dynamic may take what `for_model` has for it.
        `usable_tokens` is what the model's window leaves beside the reply; None: not known, and nothing waits.
        """
        if usable_tokens is None:
            return cls()
        budgets = cls._for_usable(usable_tokens)
        waiting_tokens = budgets.dynamic_tokens
        return budgets.limited(DEFAULT_DYNAMIC_TOKENS)._with({"waiting_tokens": waiting_tokens})

    @classmethod
    def chat(cls, model: str | None = None) -> Budgets:
        """For a chat service: 4,000 tokens of dynamic, or half of a model's window; the rest as the defaults.

        At 4,000 tokens 91 % of the evidence for questions about long chats between people is shown, and 76 % of what
        users of an assistant said (`evals recall`, development halves).
        """
        return cls.for_model(model) if model is not None else cls()._with({"dynamic_tokens": CHAT_TOKENS})

    @classmethod
    def agent(cls, model: str | None = None) -> Budgets:
        """For tool loops: as `chat`, and a tool result is whole on arrival up to three quarters of dynamic.

        On SWE-agent runs at 4,000 tokens all values that a later call took from a result stood in its prompt (92 % with
        the default's cap), for 0.91 of what sending everything costs (0.77).
        """
        budgets = cls.chat(model)
        return budgets._with({"arrival_cap_tokens": _share(budgets.dynamic_tokens, WHOLE_RESULT_FRACTION)})

    @classmethod
    def compact(cls) -> Budgets:
        """The layered-envelope design's own numbers: 900 tokens of dynamic, two fifths of them for recall.

        The history is compacted at 0.8 of its share, down to half.
        """
        values = {"dynamic_tokens": 900, "recall_fraction": 0.4, "compact_at_fraction": 0.8, "compact_to_fraction": 0.5}
        return cls()._with(values)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Budgets:
        """Read ``context.budget.<section>`` from parsed YAML or TOML, nested or with dotted keys.

        >>> Budgets.from_config({"context.budget.dynamic": 2000}).dynamic_tokens
        2000
        """
        check_argument("config", config, Mapping, "pass a table, as a YAML or TOML file is read")
        fields: dict[str, Any] = {}
        node = config.get("context", {})
        nested = config.get("context.budget", node.get("budget", {}) if isinstance(node, Mapping) else {})
        dotted = {key[15:]: value for key, value in config.items() if key.startswith("context.budget.")}
        if not isinstance(nested, Mapping):
            raise InvalidBudget("context.budget", nested, "a table of section: tokens")
        for key, value in {**nested, **dotted}.items():
            name = str(key)
            fields[f"{name}_tokens" if name in (*SECTIONS, "tools") else name] = value
        return cls(**fields)

    def fixed(self, section: str) -> bool:
        """Whether the caller set this head budget."""
        return f"{section}_tokens" in self.model_fields_set

    def scaled(self, factor: float) -> Budgets:
        """All section budgets times `factor`; what was fixed stays fixed, and the arrival cap stays what it is."""
        tokens = {f"{name}_tokens": getattr(self, f"{name}_tokens") for name in (*SECTIONS, "tools")}
        values = {field: max(1, round(value * factor)) for field, value in tokens.items() if value is not None}
        # Rounded up it would be a token over once it is counted as the provider counts.
        values["dynamic_tokens"] = max(1, int(self.dynamic_tokens * factor))
        if self.waiting_tokens is not None:
            values["waiting_tokens"] = max(1, int(self.waiting_tokens * factor))
        return self._with({**values, "arrival_cap_tokens": self.cap_tokens})

    def limited(self, dynamic_tokens: int) -> Budgets:
        """The same budgets with at most so much for dynamic."""
        if self.most_tokens <= dynamic_tokens:
            return self
        values = {"dynamic_tokens": min(self.dynamic_tokens, dynamic_tokens)}
        return self._with(values if self.waiting_tokens is None else {**values, "waiting_tokens": dynamic_tokens})

    def beside(self, observations_tokens: int) -> Budgets:
        """Budgets of the rest of dynamic beside an earlier version's observation log; the arrival cap stays."""
        rest_tokens = max(1, self.dynamic_tokens - observations_tokens)
        return self._with({"dynamic_tokens": rest_tokens, "arrival_cap_tokens": self.cap_tokens})

    def leaving(self, tokens: int) -> Budgets:
        """Return budgets whose target leaves so much room below the trigger, if these leave more.

        A target that the caller set stays.
        """
        rest = (self.trigger_tokens - tokens) / max(1, self.history_tokens)
        fraction = min(self.compact_at_fraction - LEAST_CUT_FRACTION, rest)
        if "compact_to_fraction" in self.model_fields_set or fraction <= self.compact_to_fraction:
            return self
        return self._with({"compact_to_fraction": fraction})

    def reaching(self, tokens: int) -> Budgets:
        """Return budgets with which a compaction leaves so many tokens, with bullets that borrow of recall's share."""
        alone = tokens / (1 + OWN_BULLETS_FRACTION)
        target = max(alone, tokens - _share(self.recall_tokens, BULLETS_FRACTION))
        fraction = min(self.compact_to_fraction, target / max(1, self.history_tokens))
        return self._with({"compact_to_fraction": fraction})

    def without_recall(self) -> Budgets:
        """The history gets recall's share, unless the caller set it."""
        return self if "recall_fraction" in self.model_fields_set else self._with({"recall_fraction": 0.0})

    def held(self) -> Budgets:
        """The same with `system` and `static` fixed: where versions of a profile are judged, none grows its budget."""
        fixed = {*self.model_fields_set, "system_tokens", "static_tokens"}
        return type(self).model_construct(_fields_set=fixed, **self.model_dump())

    def document(self) -> dict[str, Any]:
        """All values and which of them the caller set, as JSON."""
        return {"values": self.model_dump(), "fixed": sorted(self.model_fields_set)}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Budgets:
        """Read what `document` wrote; a budget that earlier versions had and this one has not is left out."""
        known = cls.model_fields.keys()
        values = {name: value for name, value in document["values"].items() if name in known}
        return cls.model_construct(_fields_set=known & set(document["fixed"]), **values)

    def _with(self, values: dict[str, Any]) -> Budgets:
        """Other values; what counts as set by the caller stays as it is."""
        return type(self).model_construct(_fields_set=set(self.model_fields_set), **{**self.model_dump(), **values})

    @property
    def most_tokens(self) -> int:
        """The most that dynamic may take while a compaction waits."""
        return max(self.dynamic_tokens, self.waiting_tokens or 0)

    def limit_of(self, tokens: int) -> int:
        """The budget that a dynamic section of so many tokens is held to: beyond its own it waits."""
        return self.dynamic_tokens if tokens <= self.dynamic_tokens else self.most_tokens

    @property
    def history_tokens(self) -> int:
        """Dynamic without turn context: the share a compaction judges."""
        return _share(self.dynamic_tokens, 1 - self.recall_fraction)

    @property
    def recall_tokens(self) -> int:
        """The rest of dynamic: recall's share."""
        return self.dynamic_tokens - self.history_tokens

    @property
    def trigger_tokens(self) -> int:
        return self.trigger_at(self.history_tokens)

    def trigger_at(self, share_tokens: int) -> int:
        """Where a history that may take so many tokens is compacted."""
        return _share(share_tokens, self.compact_at_fraction)

    @property
    def target_tokens(self) -> int:
        return _share(self.history_tokens, self.compact_to_fraction)

    @property
    def bullets_tokens(self) -> int:
        """The most that bullets may take: of the target, and of recall's share."""
        own = self.own_bullets_tokens
        return own + min(own, _share(self.recall_tokens, BULLETS_FRACTION))

    @property
    def own_bullets_tokens(self) -> int:
        """What bullets may take of the target."""
        return _share(self.target_tokens, OWN_BULLETS_FRACTION)

    @property
    def sure_bullets_tokens(self) -> int:
        """Their own, and half of what they may borrow: of a small budget recall needs the other half."""
        return (self.own_bullets_tokens + self.bullets_tokens) // 2

    def lent_tokens(self, bullets_tokens: int) -> int:
        """What so many bullets take of recall's share: what is over their part of the history's target."""
        return max(0, bullets_tokens - self.own_bullets_tokens)

    @property
    def task_tokens(self) -> int:
        """The longest task that stays verbatim once it is no longer the newest user message."""
        return int(self.dynamic_tokens * TASK_FRACTION)

    @property
    def reply_tokens(self) -> int:
        """The longest text of the assistant that stays whole where a compaction was due."""
        most = min(_share(self.dynamic_tokens, REPLY_OF_DYNAMIC), _share(self.history_tokens, REPLY_FRACTION))
        return max(LEAST_REPLY_TOKENS, most)

    @property
    def old_reply_tokens(self) -> int:
        """What the text of a reply before the newest may take."""
        return max(LEAST_REPLY_TOKENS, _share(self.dynamic_tokens, OLD_REPLY_FRACTION))

    @property
    def cap_tokens(self) -> int:
        """The arrival cap in force."""
        return self.arrival_cap_tokens or max(16, min(1000, self.dynamic_tokens // 4))


# -- what a builder builds for -------------------------------------------------------------------------------------


class BuildTarget(NamedTuple):
    """A model as a builder sees it."""

    counter: Counter
    window_tokens: int | None
    """None: no limit."""
    output_reserve_tokens: int

    @property
    def usable_tokens(self) -> int | None:
        """What the window leaves a prompt; None: no limit."""
        return None if self.window_tokens is None else self.window_tokens - self.output_reserve_tokens


def target_of(
    model: str | None,
    tokenizer: str | Tokenizer | None,
    window_tokens: int | None,
    output_reserve_tokens: int | None,
) -> BuildTarget:
    """The published figures of a model, with what the caller names in their place."""
    tokens = "pass a number of tokens, or None"
    check_argument("model", model, str, "pass a model's name, such as 'gpt-4o'", optional=True)
    check_argument("tokenizer", tokenizer, (str, Tokenizer), "pass 'o200k_base', or a Tokenizer", optional=True)
    check_argument("window_tokens", window_tokens, int, tokens, optional=True)
    check_argument("output_reserve_tokens", output_reserve_tokens, int, tokens, optional=True)
    info = _model(model, tokenizer)
    if window_tokens is not None and window_tokens < 1:
        raise InvalidBudget("window_tokens", window_tokens, "at least 1 token, or None for no limit")
    if output_reserve_tokens is not None and output_reserve_tokens < 0:
        raise InvalidBudget("output_reserve_tokens", output_reserve_tokens, "0 or more tokens")
    window = window_tokens or (info.window_tokens if info else None)
    if output_reserve_tokens and window is not None and output_reserve_tokens >= window:
        raise InvalidBudget("output_reserve_tokens", output_reserve_tokens, f"less than {window}")
    if output_reserve_tokens is not None:
        reserve = output_reserve_tokens
    else:
        published = info.output_reserve_tokens if info else 0
        reserve = published if window_tokens is None else min(published, window_tokens // 2)
    return BuildTarget(_counter(tokenizer, info), window, reserve)


def budgets_within(target: BuildTarget, budgets: Budgets) -> tuple[Budgets, tuple[Finding, ...]]:
    """The budgets, and dynamic no larger than the window leaves it, with a finding where that is less."""
    if target.window_tokens is None:
        return budgets, ()
    head = sum(getattr(budgets, f"{name}_tokens") for name in HEAD_SECTIONS) + (budgets.tools_tokens or 0)
    room = dynamic_room(target, head)
    if room is None or room <= 0:  # with no room at all, the build says so
        return budgets, ()
    within = budgets.limited(room)
    is_less = within.dynamic_tokens < budgets.dynamic_tokens
    return within, (limited_notice(target, within, budgets),) if is_less else ()


def dynamic_room(target: BuildTarget, head_tokens: int) -> int | None:
    """What the window leaves beside a head, tool schemas included; None: no limit."""
    usable = target.usable_tokens
    return None if usable is None else usable - head_tokens - REPLY_PRIMING_TOKENS


def guarded_room(target: BuildTarget, head_tokens: int) -> int | None:
    """What dynamic may take beside a head before the guard compacts; None: no limit."""
    if (usable := target.usable_tokens) is None:
        return None
    return int(usable * GUARD_COMPACTS_FRACTION) - head_tokens - REPLY_PRIMING_TOKENS


def guard_notice(prompt_tokens: int, target: BuildTarget) -> Finding | None:
    """Says that a request takes most of what the window leaves it; None where it does not."""
    usable = target.usable_tokens
    if usable is None or usable < 1 or prompt_tokens < usable * GUARD_WARNS_FRACTION:
        return None
    share = 100 * prompt_tokens // usable
    text = f"the request takes {share} % of the {usable} tokens that the window leaves it: {prompt_tokens}"
    return Finding(kind="window_nearly_full", field="dynamic", text=text)


def limited_notice(target: BuildTarget, within: Budgets, stated: Budgets) -> Finding:
    """Says that dynamic is smaller than stated."""
    room, wanted = within.dynamic_tokens, stated.dynamic_tokens
    text = f"the window of {target.window_tokens} tokens leaves {room} for dynamic, not {wanted}"
    return Finding(kind="budget_limited_by_window", field="budgets.dynamic_tokens", text=text)


def _model(model: str | None, tokenizer: str | Tokenizer | None) -> ModelInfo | None:
    """What is published of a model; None for one of the caller's own, which brings a tokenizer."""
    if model is None:
        if tokenizer is None:
            raise InputError("give the builder model='gpt-4o' (or another), or tokenizer= and window_tokens=")
        return None
    try:
        return model_info(model)
    except UnknownModel:
        if tokenizer is None:
            raise
        return None


def _counter(tokenizer: str | Tokenizer | None, info: ModelInfo | None) -> Counter:
    images: ImageRule = info.images if info else "openai-tiles"
    if tokenizer is None:
        assert info is not None
        tokenizer = info.encoding
    return Counter(load_tokenizer(tokenizer) if isinstance(tokenizer, str) else tokenizer, images)


CALIBRATION_WEIGHT = 0.3
"""How much one reported usage moves the estimate."""
CALIBRATION_RANGE = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Budgets and the calibration in force."""

    stated: Budgets
    """In the provider's tokens: the caller's, within the model's window."""
    calibration: float = 1.0
    """Provider-reported tokens per estimated token."""
    effective: Budgets = field(init=False)
    """In the builder's own estimated tokens: the stated ones, divided by the calibration."""

    def __post_init__(self) -> None:
        budgets = self.stated if self.calibration == 1.0 else self.stated.scaled(1 / self.calibration)
        object.__setattr__(self, "effective", budgets)

    def corrected(self, reported_tokens: int, estimated_tokens: int) -> Scale:
        """After one report of what a prompt really took; the same where it says nothing."""
        if estimated_tokens <= 0 or reported_tokens <= 0:
            return self
        low, high = CALIBRATION_RANGE
        ratio = min(high, max(low, reported_tokens / estimated_tokens))
        moved = self.calibration + CALIBRATION_WEIGHT * (ratio - self.calibration)
        return replace(self, calibration=round(moved, 4))

    def with_dynamic(self, dynamic_tokens: int) -> Scale:
        """With so much for dynamic, in the provider's tokens; the calibration stays."""
        return replace(self, stated=self.stated._with({"dynamic_tokens": dynamic_tokens}))

    def limited(self, dynamic_tokens: int | None) -> Scale:
        """With at most so much for dynamic; the same where that is no limit (None) or leaves nothing."""
        if dynamic_tokens is None or not 0 < dynamic_tokens < self.stated.most_tokens:
            return self
        return replace(self, stated=self.stated.limited(dynamic_tokens))

    def provider_tokens(self, tokens: int) -> int:
        """Estimated tokens as the provider would count them."""
        return tokens if self.calibration == 1.0 else round(tokens * self.calibration)
