"""What the guards measure of one profile: over one replayed case, or over the profile alone.

Envelopes are built by the real builder over a session in memory, one build a user turn. A profile that does not fit its
budgets gives 0 wherever an envelope was needed. All values lie in 0..1, but for counts. Nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ctxsteward.envelope.budgets import HEAD_SECTIONS
from ctxsteward.envelope.builder import EnvelopeBuilder
from ctxsteward.envelope.envelope import Envelope
from ctxsteward.envelope.keyring import memory_keys
from ctxsteward.envelope.objects.memory import MemoryObjects
from ctxsteward.envelope.profile import Profile
from ctxsteward.envelope.ranking.words import terms
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.stores.memory import MemoryJournal
from ctxsteward.schemas import BudgetExceeded, WindowExceeded
from ctxsteward.schemas.profile import BLOCKS, MetaRecord, ProfileDocument, ProfileEntry

from ..drift import report
from ..drift.entries import opposed
from ..drift.wording import sentences_of
from .cases import Canary, Case, Held

Values = dict[str, float]
"""By guard."""
Texts = Mapping[str, str]
"""Texts that must stand in an envelope's head, by ``block.id``."""

ANTICIPATED = 0.5
"""Share of an event's words that a record which anticipates it has."""


def replay(case: Case, document: ProfileDocument, wanted: Texts, make: Callable[[], EnvelopeBuilder]) -> Values:
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


def anticipates(document: ProfileDocument, held: Held) -> float:
    """1 where a record of the slice says what is asked for, else 0."""
    event = set(terms(held.event))
    return float(
        any(len(event & set(terms(record.text))) >= max(2, ANTICIPATED * len(event)) for record in document.meta)
    )


def _envelopes(
    case: Case, document: ProfileDocument, quiet: EnvelopeBuilder, builder: EnvelopeBuilder
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


def _recalled(canary: Canary, envelope: Envelope, meta: Sequence[MetaRecord]) -> bool:
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
