"""The frozen suite: champion and challenger replay the same conversations, and no guard may fall.

    gate = FrozenGate(builder=lambda: EnvelopeBuilder(model="gpt-4o", budgets=…), reviewed=frozenset(drift.touched))
    gate(champion, challenger).passed

A case is a conversation, facts said in it (canaries) and a question that asks for them. A held case is one thing that
somebody asks for, which an active record should have anticipated. Those in `cases.json` ship with the package, in
English and Chinese; an application adds its own in a file, with ids that are unique beside the shipped ones:

    name: desk/1
    cases:
      - id: parcel
        language: en                    # default: en
        messages: [{role: user, content: My parcel AX-1 is lost.}, {role: assistant, content: Noted.}]
        canaries: [{text: AX-1, says: The lost parcel is AX-1.}]
        question: Which parcel was lost?
    held:
      - {id: short, event: Please answer in two sentences.}

Guards measure one profile, over a replayed case or by itself. Envelopes are built by the real builder over a session in
memory, one build a user turn; a profile that does not fit its budgets gives 0 wherever an envelope was needed. Values
lie in 0..1, but for counts. What people are asked about anyway (`reviewed`) counts as the challenger has it; all else
of the champion's policies, locked entries and persona must still be there. A replay is a function of document, cases,
builder and program, so one that was made before (`KnownReplay`) is not repeated. The four shipped cases of 44 messages
take about 70 ms of CPU a profile.

Raises `InputError` (file and line, key, what was found, what to do), `InputTooLarge`.
Source: written for this suite; the state design (input at every boundary).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError, model_validator

from ctxsteward.envelope.building.builder import EnvelopeBuilder
from ctxsteward.envelope.envelope import Envelope
from ctxsteward.envelope.layout.rows import RENDERER_VERSION
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.tokens.budgets import HEAD_SECTIONS, Budgets
from ctxsteward.language.operators import sentences_of
from ctxsteward.language.terms import terms
from ctxsteward.schemas import BudgetExceeded, InputError, WindowExceeded, Wire
from ctxsteward.schemas.profile import BLOCKS, EntryId, MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.profiles.text import Profile

from ..config_file import ConfigFileKind, message_clause, read
from ..drift import report
from ..drift.entries import opposed
from .port import GateReport, Guard, GuardScores, digest_of, judge_guards

SHIPPED = "cases.json"
MAX_BYTES = 1 << 20

Language = Annotated[StrictStr, Field(pattern=r"^[a-z]{2,3}$")]
Text = Annotated[StrictStr, Field(min_length=1, max_length=20_000)]


class PlantedFact(NamedTuple):
    """A fact that was said."""

    text: str
    """What must stand in the envelope."""
    says: str
    """The fact as a sentence: what no record may gainsay."""


class HeldOutRequest(NamedTuple):
    """Something that somebody asks for."""

    id: str
    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenCase:
    """One conversation to replay."""

    id: str
    language: str
    messages: tuple[Wire, ...]
    canaries: tuple[PlantedFact, ...]
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSuite:
    """Cases under a name; other cases are another name."""

    name: str
    cases: tuple[FrozenCase, ...]
    held: tuple[HeldOutRequest, ...]

    def holding(self, held: Iterable[HeldOutRequest]) -> FrozenSuite:
        """The suite with these held cases instead."""
        return replace(self, held=tuple(held))

    def with_(self, other: FrozenSuite) -> FrozenSuite:
        """Both suites as one; raises `InputError` where they share an id."""
        shared = sorted(self.ids & other.ids)
        if shared:
            raise InputError(f"gate cases: {shared[0]!r} is in {self.name!r} already; give it another id")
        names = [name for name in (self.name, other.name) if name]
        return FrozenSuite(name=" + ".join(names), cases=(*self.cases, *other.cases), held=(*self.held, *other.held))

    @property
    def ids(self) -> frozenset[str]:
        """Of all cases."""
        return frozenset([case.id for case in self.cases] + [held.id for held in self.held])

    @property
    def digest(self) -> str:
        """SHA-256 of what is replayed; held cases are not."""
        plain = [[one.id, one.messages, one.canaries, one.question] for one in self.cases]
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def shipped() -> FrozenSuite:
    """The suite that comes with the steward."""
    return read_suite((files(__package__) / SHIPPED).read_text(encoding="utf-8"))


def read_suite(text: str) -> FrozenSuite:
    """A suite from JSON text; raises `InputError`."""
    try:
        return _suite(_SuiteFile.model_validate(json.loads(text)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"gate cases: {where}: {message_clause(first['msg'])}; see {SHIPPED} for a suite") from error
    except ValueError as error:
        raise InputError(f"gate cases: no JSON ({error}); see {SHIPPED} for a suite") from error


def load_suite(path: str) -> FrozenSuite:
    """An application's own cases, from a YAML or JSON file."""
    return _suite(read(path, _SuiteFile, _FORM))


# -- the file -----------------------------------------------------------------------------------------------------


class _SuiteValue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _MessageForm(_SuiteValue):
    role: Literal["user", "assistant"]
    content: Text


class _PlantedFactForm(_SuiteValue):
    text: Text
    says: Text


class _HeldOutRequestForm(_SuiteValue):
    id: EntryId
    language: Language = "en"
    event: Text


class _FrozenCaseForm(_SuiteValue):
    id: EntryId
    language: Language = "en"
    messages: Annotated[list[_MessageForm], Field(min_length=1, max_length=400)]
    canaries: Annotated[list[_PlantedFactForm], Field(max_length=50)] = []
    question: Text

    @model_validator(mode="after")
    def _is_said(self) -> _FrozenCaseForm:
        unsaid = [one.text for one in self.canaries if not any(one.text in each.content for each in self.messages)]
        if unsaid:
            raise ValueError(f"no message says the canary {unsaid[0]!r:.60}")
        return self


class _SuiteFile(_SuiteValue):
    schema_version: Literal[1] = 1
    name: Annotated[StrictStr, Field(min_length=1, max_length=80)]
    cases: Annotated[list[_FrozenCaseForm], Field(max_length=50)] = []
    held: Annotated[list[_HeldOutRequestForm], Field(max_length=1_000)] = []

    @model_validator(mode="after")
    def _is_one_each(self) -> _SuiteFile:
        ids = [case.id for case in self.cases] + [held.id for held in self.held]
        twice = next((id for id in ids if ids.count(id) > 1), None)
        if twice is not None:
            raise ValueError(f"the id {twice!r} is there twice")
        return self


def _suite(found: _SuiteFile) -> FrozenSuite:
    return FrozenSuite(
        name=found.name, cases=tuple(map(_case, found.cases)),
        held=tuple(HeldOutRequest(each.id, each.event) for each in found.held),
    )  # fmt: skip


def _case(found: _FrozenCaseForm) -> FrozenCase:
    return FrozenCase(
        id=found.id, language=found.language, question=found.question,
        messages=tuple(each.model_dump() for each in found.messages),
        canaries=tuple(PlantedFact(each.text, each.says) for each in found.canaries),
    )  # fmt: skip


_FORM = ConfigFileKind(
    what="gate cases", max_bytes=MAX_BYTES, max_depth=8, expected="write a mapping with: name, cases, held"
)


Values = dict[str, float]
"""By guard."""
Texts = Mapping[str, str]
"""Texts that must stand in an envelope's head, by ``block.id``."""

ANTICIPATED = 0.5
"""Share of an event's words that a record which anticipates it has."""


def replay(case: FrozenCase, document: ProfileDocument, wanted: Texts, make: Callable[[], EnvelopeBuilder]) -> Values:
    """Values of the guards that need envelopes; recall comes with the question alone, where canaries are sought."""
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
"""Ends the key of a policy that is locked as well."""


def wanted_texts(champion: ProfileDocument, challenger: ProfileDocument, reviewed: frozenset[str]) -> Texts:
    """Policies and locked entries of the champion; of those that people are asked about, as the challenger has them."""
    found: dict[str, str] = {}
    now = {f"{block}.{e.id}": e for block in BLOCKS for e in getattr(challenger, block)}
    for block in BLOCKS:
        for entry in getattr(champion, block):
            key = f"{block}.{entry.id}"
            shown: ProfileEntry | None = now.get(key) if key in reviewed else entry
            if shown is not None and (block == "policies" or entry.locked):
                found[key + (LOCKED if entry.locked else "")] = shown.text
    return found


def contradictions(document: ProfileDocument) -> float:
    """Meta records that gainsay a policy, a rail or a locked entry."""
    locked = [entry for entry in (*document.persona, *document.surface) if entry.locked]
    rules = (*document.policies, *document.rails, *locked)
    return float(sum(any(opposed(rule, sentences_of(record.text)) for rule in rules) for record in document.meta))


def persona_consistency(champion: ProfileDocument, challenger: ProfileDocument, reviewed: frozenset[str]) -> float:
    """Share of the champion's persona that still stands; 0 where it was turned round. Reviewed changes count as kept.

    1 where there was none."""
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
    """1 where a record of the slice says what is asked for, else 0."""
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
            session.append(message)
            if message["role"] == "user":
                yield quiet.build(session)
        session.append({"role": "user", "content": case.question})
        yield builder.build(session)


def _head(envelope: Envelope) -> tuple[str, ...]:
    return tuple(envelope.section(name).digest for name in HEAD_SECTIONS)


def _keeps(envelope: Envelope, name: str, builder: EnvelopeBuilder) -> bool:
    """Whether a section keeps its budget; meta must stay under its trigger."""
    section = envelope.section(name)
    share = builder.budgets.compact_at_fraction if name == "meta" else 1.0
    return section.tokens <= share * section.budget_tokens


def _recalled(canary: PlantedFact, envelope: Envelope, meta: Sequence[MetaRecord]) -> bool:
    """Whether the fact stands in the envelope, and no record says otherwise."""
    fact = ProfileEntry(id="canary", text=canary.says, locked=True)
    return canary.text in envelope.section("dynamic").text and not any(
        opposed(fact, sentences_of(record.text)) for record in meta
    )


def _flat(text: str) -> str:
    return " ".join(text.split())


def _share(found: Iterator[bool] | Sequence[bool]) -> float:
    each = list(found)
    return sum(each) / len(each) if each else 1.0


REPLAY = "replay/1"
"""Version of what is measured of a replay."""
TOKENIZER = "o200k_base"

DYNAMIC_TOKENS = 560
"""Of the replay: so little that every case is compacted more than four times, when a slice too large is cut."""

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
"""What the frozen suite guards, and by how much the mean of each may be worse. Of the five shipped held cases one may
be lost; who has many of their own narrows the margin of `hit_rate`."""

PROFILE = "profile"
"""Name of the case of guards that are about a profile alone."""


Measured = Mapping[str, Values]
"""What a replay gave, by case."""
KnownReplay = Callable[[str], Measured | None]
"""Gives a replay by its key (`FrozenGate.key`), where it was made before; None: make it."""


def no_known_replay(key: str) -> None:
    """No replay was made before."""


def default_builder() -> EnvelopeBuilder:
    """A builder with the default head budgets and little room for the history."""
    return EnvelopeBuilder(
        tokenizer=TOKENIZER, budgets=Budgets().model_copy(update={"dynamic_tokens": DYNAMIC_TOKENS}).held()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenGate:
    """Replays frozen cases with champion and challenger."""

    suite: FrozenSuite = field(default_factory=shipped)
    guards: tuple[Guard, ...] = GUARDS
    builder: Callable[[], EnvelopeBuilder] = default_builder
    """With the head budgets of the application."""
    builds: str = ""
    """Tells builders apart; empty: replays of this one are not known again."""
    known: KnownReplay = no_known_replay
    reviewed: frozenset[str] = frozenset()
    """Entries whose change is put before people, as ``policies.refunds``."""

    def __call__(self, champion: ProfileDocument | None, challenger: ProfileDocument) -> GateReport:
        pairs = tuple(self._pairs(champion or ProfileDocument(), challenger))
        found = judge_guards(self.suite.name, self.guards, pairs, champion, challenger)
        wanted = wanted_texts(champion or ProfileDocument(), challenger, self.reviewed)
        return replace(found, replay=self.key(challenger, wanted))

    def key(self, document: ProfileDocument, wanted: Texts) -> str:
        """What decides a replay, as SHA-256: empty where builders cannot be told apart. In process only."""
        if not self.builds:
            return ""
        told = [REPLAY, RENDERER_VERSION, _package(), self.builds, self.suite.digest, digest_of(document)]
        return hashlib.sha256(json.dumps([*told, sorted(wanted.items())]).encode()).hexdigest()

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

    def _measured(self, document: ProfileDocument, wanted: Texts) -> Measured:
        key = self.key(document, wanted)
        known = self.known(key) if key else None
        if known is not None and all(case.id in known for case in self.suite.cases):
            return known
        return {case.id: replay(case, document, wanted, self.builder) for case in self.suite.cases}


@cache
def _package() -> str:
    return version("ctxsteward")
