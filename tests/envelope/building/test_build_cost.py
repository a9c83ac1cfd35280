"""What a build asks of a PostgreSQL store does not grow, neither with its session nor with the store.

Counted, not timed: statements, and rows that they give. Turns are compared from where each recalls all that it may.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Store, open_store
from ctxsteward.store import MasterKeys
from ctxsteward.store.postgres_database import PostgresDatabase

from ...load import ANSWER, SAID
from ...postgres import PostgresServer

MAX_GROWTH = 1.1


class Asked(NamedTuple):
    """What the builds of some turns have asked of the database, on average."""

    statements: float
    rows: float


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each statement that the database was asked."""
    rows: list[int] = []
    alone = PostgresDatabase._alone

    def counting(self: PostgresDatabase, *asked: Any) -> Any:
        found = alone(self, *asked)
        rows.append(len(found))
        return found

    monkeypatch.setattr(PostgresDatabase, "_alone", counting)
    return rows


@pytest.fixture
def store(shared_postgres: PostgresServer) -> Iterator[Store]:
    with open_store(shared_postgres.uri("build_cost"), keys=MasterKeys(b"k" * 32)) as opened:
        yield opened


def talk(store: Store, session: str, turns: int, counted: list[int]) -> list[Asked]:
    """A conversation as `tests.load` has it; what each build has asked."""
    opened, builder, asked = (
        store.session(session),
        EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=900)),
        [],
    )
    for turn in range(turns):
        words = {"n": 1000 + turn, "c": 1, "d": turn % 17, "m": 20 + turn % 300}
        opened.append({"role": "assistant", "content": ANSWER.format(**words)})
        opened.append({"role": "user", "content": SAID.format(**words)})
        counted.clear()
        builder.build(opened)
        asked.append(Asked(len(counted), sum(counted)))
    return asked


def mean(asked: list[Asked]) -> Asked:
    assert asked
    return Asked(sum(one.statements for one in asked) / len(asked), sum(one.rows for one in asked) / len(asked))


def test_a_late_build_asks_no_more_of_the_database_than_an_early_one(store: Store, counted: list[int]) -> None:
    asked = talk(store, "long", 120, counted)
    early, late = mean(asked[60:80]), mean(asked[100:120])
    assert early.statements > 1
    assert late.statements <= early.statements * MAX_GROWTH
    assert late.rows <= early.rows * MAX_GROWTH


def test_a_build_asks_no_more_where_the_store_holds_many_sessions(store: Store, counted: list[int]) -> None:
    before = mean(talk(store, "before", 40, counted)[20:])
    for number in range(100):
        store.session(f"other-{number}").append({"role": "user", "content": f"Order {number} is late."})
    after = mean(talk(store, "after", 40, counted)[20:])
    assert before.statements > 1
    assert after.statements <= before.statements * MAX_GROWTH
    assert after.rows <= before.rows * MAX_GROWTH
