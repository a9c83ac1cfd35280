"""Any damage to any records: the session opens or says why not, what is left is served whole, what is gone is not."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import Phase, given, settings, strategies as st

from ctxsteward.envelope import Session
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.message import Wire
from ctxsteward.store.journal.log import Log
from ctxsteward.store.journal.port import JournalRecord

from ...envelope.histories import histories
from ...examples import examples
from .spoiling import PLANTED, builder, faults, opened


class Blow(NamedTuple):
    """One act of damage."""

    where: int
    how: str


PHASES = (Phase.explicit, Phase.generate)
"""Without shrinking: a failing case is short already, and a build of each is not free."""

WAYS = ("code", "words", "body", "kind", "shape", "copy", "swap")


def struck(records: list[JournalRecord], blows: list[Blow]) -> dict[int, JournalRecord]:
    """What stands in the journal afterwards, where it differs."""
    now = list(records)
    for where, how in blows:
        at = 2 + where % (len(now) - 2)
        record = now[at]
        if how == "code":
            record = record._replace(mac=record.mac[::-1])
        elif how == "words" and record.wire is not None:
            record = record._replace(wire=f'{{"role": "user", "content": "{PLANTED}"}}')
        elif how == "shape" and record.wire is not None:
            planted = (
                f'{{"id": "{PLANTED[:6]}", "type": "function", "function": {{"name": "{PLANTED}", "arguments": ""}}}}'
            )
            record = record._replace(wire=f'{{"role": "assistant", "content": "{PLANTED}", "tool_calls": [{planted}]}}')
        elif how == "body":
            record = record._replace(body=record.body[:-1] + ', "x": 1}')
        elif how == "kind" and record.kind != "compaction":
            record = record._replace(kind="refused")
        elif how == "copy":
            other = now[2 + (where * 7) % (len(now) - 2)]
            record = other._replace(ordinal=record.ordinal, id=record.id) if other.kind != "compaction" else record
        elif how == "swap" and at + 1 < len(now):
            now[at + 1], record = record, now[at + 1]
        now[at] = record
    return {at: record for at, record in enumerate(now) if record != records[at]}


@settings(max_examples=examples(250), derandomize=True, database=None, phases=PHASES)
@given(
    messages=st.one_of(
        histories("openai", broken=False, min_size=4, max_size=24),
        histories("anthropic", broken=False, min_size=4, max_size=24),
    ),
    blows=st.lists(st.builds(Blow, st.integers(0, 60), st.sampled_from(WAYS)), min_size=1, max_size=5),
    builds=st.sets(st.integers(0, 23), max_size=8),
)
def test_what_is_left_is_served_and_what_is_gone_is_not(
    messages: tuple[Wire, ...], blows: list[Blow], builds: set[int]
) -> None:
    store, maker = memory_store(), builder(700)
    session = opened(store, system="Be brief.")
    for n, message in enumerate(messages):
        session.append(message)
        if n in builds:
            maker.build(session)
    records = store.journal.read(session.key, 0)
    store.journal.rewrite(session.key, struck(records, blows))
    for reader in (session, opened(store)):
        envelope = maker.build(reader)
        found = faults(envelope)
        assert found == []
        for n, message in enumerate(messages, 1):
            if readable(session, n):
                assert reader.resolve(n).wire == message
            else:
                try:
                    served = reader.resolve(n)
                    raise AssertionError(f"§{n} was served: {served}")
                except Damaged:
                    assert f"§{n}" not in {f.ref for f in envelope.findings} or envelope.metrics["degraded"]
    assert maker.build(opened(store)).render("anthropic") == maker.build(opened(store)).render("anthropic")
    assert opened(store).append({"role": "user", "content": "and now?"}).ordinal > len(messages), "given twice"


def readable(session: Session, ordinal: int) -> bool:
    """Whether the record that is found by this ordinal is what was written."""
    record = session.journal.message(session.key, ordinal)
    if record is None:
        return False
    try:
        Log(session.journal, session.key, session.address_key).event(record)
    except Damaged:
        return False
    return True
