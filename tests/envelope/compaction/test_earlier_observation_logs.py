"""Sessions that hold an observation log, which earlier versions wrote: they build, rebuild and can be erased."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store, rebuild
from ctxsteward.schemas import Bullet
from ctxsteward.store import MasterKeys
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.events import ObservationsAppended, from_record, to_record

KEYS = MasterKeys(b"observation log".ljust(32, b"."))
LINES = (
    Bullet(text="2026-03-04: My budget is 900 euros now.", citations=("§1",), kind="decision", trust="user"),
    Bullet(text="2026-03-04: Trains only.", citations=("§3",), trust="assistant"),
)
BUDGETS = Budgets(dynamic_tokens=2_000)


def test_a_log_is_shown_and_counts_against_dynamic() -> None:
    store = open_store("memory:", keys=KEYS)
    session = store.session("s", system="You plan trips.")
    builder = EnvelopeBuilder("gpt-4o", budgets=BUDGETS)
    for number in range(40):
        session.append({"role": "user", "content": f"Order OPS-{number} costs {number} euros. " + "More talk. " * 40})
        if number == 3:
            session.commit(ObservationsAppended(appended=LINES, upto=4, standing=None, merged=()))
        envelope = builder.build(session)
        session.append({"role": "assistant", "content": "Noted, it is in the plan. " * 6})
        assert envelope.section("dynamic").tokens <= BUDGETS.dynamic_tokens

    text = envelope.section("dynamic").text
    assert "- ! 2026-03-04: My budget is 900 euros now. §1" in text
    assert "- (assistant) 2026-03-04: Trains only. §3" in text
    assert session.reports()
    assert rebuild(store, envelope.address).section("dynamic").text == text


def test_a_log_is_erased_with_what_it_cites() -> None:
    store = open_store("memory:", keys=KEYS)
    session = store.session("s", system="You plan trips.")
    session.append({"role": "user", "content": "My budget is 900 euros now."}, principal="ada")
    session.append({"role": "assistant", "content": "Understood."})
    session.append({"role": "user", "content": "Trains only."}, principal="bob")
    session.commit(ObservationsAppended(appended=LINES, upto=3, standing=None, merged=()))

    forget(store, principal="ada", who="dpo", why="asked", when="2026-03-05T00:00:00Z")

    assert [bullet.text for bullet in store.session("s").state.observations] == ["[erased]", LINES[1].text]


@pytest.mark.parametrize("standing", [None, (), (Bullet(text="b", citations=("§2",), trust="assistant"),)])
def test_a_record_holds_the_whole_event(standing: tuple[Bullet, ...] | None) -> None:
    merged = ((Bullet(text="c", citations=("§1",)), Bullet(text="d", citations=("§3",))),) if standing else ()
    event = ObservationsAppended(appended=LINES, upto=5, standing=standing, merged=merged)

    assert from_record(to_record(event)) == event
