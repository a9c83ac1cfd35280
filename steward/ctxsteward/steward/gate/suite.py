"""The frozen suite: champion and challenger replay the same conversations, and no guard may fall.

    gate = FrozenGate(builder=lambda: EnvelopeBuilder(model="gpt-4o", budgets=…), reviewed=frozenset(drift.touched))
    gate(champion, challenger).passed

A case is a conversation with planted facts (canaries) and a question that asks for them. A held case is a request of a
user that an active record should have anticipated. The cases in `cases.json` ship with the package, in English and
Chinese; an application adds its own in a file, with ids that differ from the shipped ones:

    name: desk/1
    cases:
      - id: parcel
        language: en                    # default: en
        messages: [{role: user, content: My parcel AX-1 is lost.}, {role: assistant, content: Noted.}]
        canaries: [{text: AX-1, says: The lost parcel is AX-1.}]
        question: Which parcel was lost?
    held:
      - {id: short, event: Please answer in two sentences.}

Guards measure a profile over a replayed case, or alone. The real builder builds envelopes over a session in memory, one
for each user turn; a profile that exceeds its budgets gets 0 from each guard that needs envelopes. Values are in 0..1,
except counts. The champion's policies, locked entries and persona must still be there, except for entries that people
review anyway (`reviewed`), which count as the challenger has them. The four shipped cases of 44 messages take about 70
ms of CPU for each profile.

Raises `InputError` (file and line, key, what was found, what to do), `InputTooLarge`.
Source: written for this suite; the state design (input at every boundary).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr, model_validator

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Store
from ctxsteward.envelope.tokens.budgets import HEAD_SECTIONS
from ctxsteward.language.operators import sentences_of
from ctxsteward.language.words import terms
from ctxsteward.schemas import BudgetExceeded, InputError, WindowExceeded
from ctxsteward.schemas.profile import BLOCK_SPECS, BLOCKS, EntryId, MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.profiles.text import Profile
from ctxsteward.store.strict_yaml import DocumentKind, read_document

from ..drift.entries import opposed
from ..drift.report import report
from .port import GateReport, Guard, GuardScores, digest_of, judge_guards

SHIPPED = "cases.json"
MAX_BYTES = 1 << 20

Language = Annotated[StrictStr, Field(pattern=r"^[a-z]{2,3}$")]
Text = Annotated[StrictStr, Field(min_length=1, max_length=20_000)]


class SuiteValue(BaseModel):
    """Base of values that a person writes for the gate: frozen, and unknown keys are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class CaseMessage(SuiteValue):
    """One message of a case."""

    role: Literal["user", "assistant"]
    content: Text


class PlantedFact(SuiteValue):
    """A fact in a message of the case that must be recalled."""

    text: Text
    """Text that must be in the envelope."""
    says: Text
    """The fact as a sentence, which no record may contradict."""


class HeldOutRequest(SuiteValue):
    """A request of a user that a record of the slice should have anticipated."""

    id: EntryId
    language: Language = "en"
    event: Text


class FrozenCase(SuiteValue):
    """One conversation to replay."""

    id: EntryId
    language: Language = "en"
    messages: Annotated[tuple[CaseMessage, ...], Field(min_length=1, max_length=400)]
    canaries: Annotated[tuple[PlantedFact, ...], Field(max_length=50)] = ()
    question: Text

    @model_validator(mode="after")
    def _is_said(self) -> FrozenCase:
        unsaid = [one.text for one in self.canaries if not any(one.text in each.content for each in self.messages)]
        if unsaid:
            raise ValueError(f"no message says the canary {unsaid[0]!r:.60}")
        return self


class FrozenSuite(SuiteValue):
    """Cases of a file under a name; other cases need another name."""

    schema_version: Literal[1] = 1
    name: Annotated[StrictStr, Field(min_length=1, max_length=80)]
    cases: Annotated[tuple[FrozenCase, ...], Field(max_length=50)] = ()
    held: Annotated[tuple[HeldOutRequest, ...], Field(max_length=1_000)] = ()

    @model_validator(mode="after")
    def _is_one_each(self) -> FrozenSuite:
        twice = next((id for id, times in Counter(self._ids()).items() if times > 1), None)
        if twice is not None:
            raise ValueError(f"the id {twice!r} is there twice")
        return self

    def holding(self, held: Iterable[HeldOutRequest]) -> FrozenSuite:
        """Replace the held cases."""
        return self.model_copy(update={"held": tuple(held)})

    def with_(self, other: FrozenSuite) -> FrozenSuite:
        """Join two suites; raises `InputError` if they share an id."""
        shared = sorted({*self._ids()} & {*other._ids()})
        if shared:
            raise InputError(f"gate cases: {shared[0]!r} is in {self.name!r} already; give it another id")
        both = {"cases": (*self.cases, *other.cases), "held": (*self.held, *other.held)}
        return self.model_copy(update={"name": f"{self.name} + {other.name}", **both})

    def _ids(self) -> list[str]:
        return [case.id for case in self.cases] + [held.id for held in self.held]


def shipped() -> FrozenSuite:
    """Return the suite that comes with the steward."""
    return FrozenSuite.model_validate_json((files(__package__) / SHIPPED).read_bytes())


def load_suite(path: str) -> FrozenSuite:
    """Read an application's own cases from a YAML or JSON file."""
    return read_document(path, FrozenSuite, _FORM)


_FORM = DocumentKind(
    what="gate cases", max_bytes=MAX_BYTES, max_depth=8, expected="write a mapping with: name, cases, held"
)


Values = dict[str, float]
"""Values by guard."""
Texts = Mapping[str, str]
"""Texts that an envelope's head must have, by ``block.id``."""

ANTICIPATED = 0.5
"""Share of a request's words that a record must have to anticipate it."""


def replay(case: FrozenCase, document: ProfileDocument, wanted: Texts, make: Callable[[], EnvelopeBuilder]) -> Values:
    """Measure the guards that need envelopes; only the final question uses recall, to look for canaries."""
    builder, quiet = make(), make()
    quiet.selector = None
    try:
        envelopes = list(_envelopes(case, document, quiet, builder))
    except (BudgetExceeded, WindowExceeded):
        return dict.fromkeys(
            ("policies_verbatim", "locked_present", "canary_facts", "prefix_stable", "section_budgets"), 0.0
        )
    last = envelopes[-1]
    head = {name: _flat(last.section(name).text) for name in HEAD_SECTIONS}
    policies = {key: text for key, text in wanted.items() if key.startswith("policies.")}
    locked = {key: text for key, text in wanted.items() if key not in policies or key.endswith(LOCKED)}
    return {
        "policies_verbatim": _share(_flat(text) in head["system"] for text in policies.values()),
        "locked_present": _share(_flat(text) in head["system"] + head["static"] for text in locked.values()),
        "canary_facts": _share(_recalled(canary, last, document.meta) for canary in case.canaries),
        "prefix_stable": _share(_head(one) == _head(envelopes[0]) for one in envelopes),
        "section_budgets": _share(_keeps(last, name, builder) for name in HEAD_SECTIONS),
    }


LOCKED = "\x00"
"""Suffix of the key of a locked entry."""


def wanted_texts(champion: ProfileDocument, challenger: ProfileDocument, reviewed: frozenset[str]) -> Texts:
    """Return policies and locked entries of the champion; reviewed ones as the challenger has them."""
    wanted: dict[str, str] = {}
    now = {f"{block}.{e.id}": e for block in BLOCKS for e in getattr(challenger, block)}
    for block in BLOCKS:
        for entry in getattr(champion, block):
            key = f"{block}.{entry.id}"
            shown: ProfileEntry | None = now.get(key) if key in reviewed else entry
            if shown is not None and (block == "policies" or entry.locked):
                wanted[key + (LOCKED if entry.locked else "")] = shown.text
    return wanted


def contradictions(document: ProfileDocument) -> float:
    """Count meta records that contradict a policy, a rail or a locked entry."""
    rules = [
        entry for block in BLOCKS for entry in getattr(document, block) if entry.locked or BLOCK_SPECS[block].has_rules
    ]
    return float(sum(any(opposed(rule, sentences_of(record.text)) for rule in rules) for record in document.meta))


def persona_consistency(champion: ProfileDocument, challenger: ProfileDocument, reviewed: frozenset[str]) -> float:
    """Return the share of the champion's persona that was kept: 0 if it was reversed, 1 if there was none.

    Reviewed changes count as kept.
    """
    if not champion.persona:
        return 1.0
    kept = tuple(
        next((new for new in challenger.persona if new.id == old.id), old) if f"persona.{old.id}" in reviewed else old
        for old in champion.persona
    )
    before, after = ProfileDocument(persona=kept), ProfileDocument(persona=challenger.persona)
    drift = report(before, after)
    return 0.0 if drift.level == "BLOCK" else 1.0 - drift.removed


def anticipates(document: ProfileDocument, held: HeldOutRequest) -> float:
    """Return 1 if a record of the slice has enough words of the request, else 0."""
    event = set(terms(held.event))
    return float(
        any(len(event & set(terms(record.text))) >= max(2, ANTICIPATED * len(event)) for record in document.meta)
    )


def _envelopes(
    case: FrozenCase, document: ProfileDocument, quiet: EnvelopeBuilder, builder: EnvelopeBuilder
) -> Iterator[Envelope]:
    keys = memory_keys(lambda size: b"g" * size)  # thrown away with the session
    with Store(MemoryJournal(), MemoryObjects(), keys, uri="memory:", draw_nonce=lambda: "0" * 9) as store:
        session = store.session(case.id, profile=Profile.from_document(document))
        for message in case.messages:
            session.append(message.model_dump())
            if message.role == "user":
                yield quiet.build(session)
        session.append({"role": "user", "content": case.question})
        yield builder.build(session)


def _head(envelope: Envelope) -> tuple[str, ...]:
    return tuple(envelope.section(name).digest for name in HEAD_SECTIONS)


def _keeps(envelope: Envelope, name: str, builder: EnvelopeBuilder) -> bool:
    """Whether a section is within its budget; meta must stay below the compaction trigger."""
    section = envelope.section(name)
    share = builder.budgets.compact_at_fraction if name == "meta" else 1.0
    return section.tokens <= share * section.budget_tokens


def _recalled(canary: PlantedFact, envelope: Envelope, meta: Sequence[MetaRecord]) -> bool:
    """Whether the fact is in the envelope, and no record contradicts it."""
    fact = ProfileEntry(id="canary", text=canary.says, locked=True)
    return canary.text in envelope.section("dynamic").text and not any(
        opposed(fact, sentences_of(record.text)) for record in meta
    )


def _flat(text: str) -> str:
    return " ".join(text.split())


def _share(found: Iterator[bool] | Sequence[bool]) -> float:
    each = list(found)
    return sum(each) / len(each) if each else 1.0


TOKENIZER = "o200k_base"

REPLAY_BUDGETS = {"dynamic_tokens": 530, "recall_fraction": 0.4, "compact_at_fraction": 0.8, "compact_to_fraction": 0.5}
"""Budgets of the replay, so small that every case is compacted more than four times, and too large a slice is cut.
Facts kept in bullets count for more than facts that the question recalls."""

GUARDS: tuple[Guard, ...] = (
    Guard("policies_verbatim", "higher", 0.0),
    Guard("locked_present", "higher", 0.0),
    Guard("canary_facts", "higher", 0.05),
    Guard("prefix_stable", "higher", 0.0),
    Guard("section_budgets", "higher", 0.0),
    Guard("contradictions", "lower", 0.0),
    Guard("persona_consistency", "higher", 0.2),
    Guard("hit_rate", "higher", 0.25),
)
"""Guards of the frozen suite, with their margins. The margin of `hit_rate` allows for one of the five shipped held
cases; an application with many held cases of its own should narrow it."""

PROFILE = "profile"
"""Case name of guards that measure a profile alone."""


def default_builder() -> EnvelopeBuilder:
    """Make a builder with the default head budgets and a small history budget."""
    return EnvelopeBuilder(tokenizer=TOKENIZER, budgets=Budgets().model_copy(update=REPLAY_BUDGETS).held())


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenGate:
    """Replays frozen cases with champion and challenger."""

    suite: FrozenSuite = field(default_factory=shipped)
    guards: tuple[Guard, ...] = GUARDS
    builder: Callable[[], EnvelopeBuilder] = default_builder
    """Makes a builder for one replay, with the head budgets of the application."""
    reviewed: frozenset[str] = frozenset()
    """Changed entries that people review, such as ``policies.refunds``."""

    def __call__(self, champion: ProfileDocument | None, challenger: ProfileDocument) -> GateReport:
        pairs = tuple(self._pairs(champion or ProfileDocument(), challenger))
        return judge_guards(self.suite.name, self.guards, pairs, champion, challenger)

    def _pairs(self, champion: ProfileDocument, challenger: ProfileDocument) -> Iterator[GuardScores]:
        now = wanted_texts(champion, challenger, self.reviewed)
        before = wanted_texts(champion, champion, frozenset())
        old = self._measured(champion, before)
        same = before == now and digest_of(champion) == digest_of(challenger)
        new = old if same else self._measured(challenger, now)
        for case in self.suite.cases:
            yield from (GuardScores(case.id, name, value, new[case.id][name]) for name, value in old[case.id].items())
        yield GuardScores(PROFILE, "contradictions", contradictions(champion), contradictions(challenger))
        yield GuardScores(PROFILE, "persona_consistency", 1.0, persona_consistency(champion, challenger, self.reviewed))
        for held in self.suite.held:
            yield GuardScores(held.id, "hit_rate", anticipates(champion, held), anticipates(challenger, held))

    def _measured(self, document: ProfileDocument, wanted: Texts) -> Mapping[str, Values]:
        return {case.id: replay(case, document, wanted, self.builder) for case in self.suite.cases}
