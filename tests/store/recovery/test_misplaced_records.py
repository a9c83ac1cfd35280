"""A journal that answers with another record than was asked for, or with none: never believed, always said."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Store, rebuild
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.suites.log_faults import LyingJournal
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.objects.memory import MemoryObjects

from .spoiling import call, converse, faults, kinds, opened, positions, record_at, reply, result, user


def lying(store: Store) -> tuple[LyingJournal, Store]:
    journal = LyingJournal(store.journal, opened(store).key)
    return journal, Store(journal, MemoryObjects(), store.keys, uri="memory:")


def test_the_record_of_another_message_is_not_served_for_it() -> None:
    store = memory_store()
    session = converse(store)
    older, newer = positions(store, "message")[3], positions(store, "message")[-6]
    journal, cold = lying(store)
    journal.records[newer] = record_at(store, older)
    wanted = record_at(store, newer).ordinal
    with pytest.raises(Damaged, match="is damaged or missing and is not served"):
        opened(cold).resolve(wanted)
    assert session.resolve(wanted).wire != opened(cold).resolve(record_at(store, older).ordinal).wire


def test_a_compaction_that_is_missing_is_damage_and_no_crash() -> None:
    store = memory_store()
    session = opened(store)
    session.extend((user if n % 2 == 0 else reply)(f"message {n} " + "word " * 12) for n in range(31))
    envelope = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=300)).build(session)
    assert envelope.reports
    journal, cold = lying(store)
    journal.records[positions(store, "compaction")[-1]] = None
    with pytest.raises(Damaged, match="is missing from the journal"):
        cold.compaction(envelope.reports[0].id)
    assert "rebuilt_differs" in kinds(rebuild(cold, envelope.address))


def test_the_question_stays_where_a_record_behind_its_tool_results_is_missing() -> None:
    """What is missing at the end counts as a message: the assistant's, who is the one to speak after a tool."""
    store = memory_store()
    session = opened(store)
    session.extend((user if n % 2 == 0 else reply)(f"message {n} " + "word " * 12) for n in range(30))
    question = session.append(user("Where is the key, exactly?"))
    session.extend([call("c"), result("c", "behind the valve")])
    maker = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=300), selector=None)
    assert maker.build(session).reports
    journal, cold = lying(store)
    assert positions(store, "compaction")[-1] == store.journal.length(session.key) - 1
    journal.records[positions(store, "compaction")[-1]] = None
    envelope = maker.build(opened(cold))
    assert question.ordinal in {ordinal for fragment in envelope.dynamic.live for ordinal in fragment.refs}
    assert faults(envelope) == []
