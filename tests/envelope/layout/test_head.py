"""The head is laid out as the operator gave it, or refused by name and number."""

from __future__ import annotations

import pytest

from ctxsteward.envelope import Budgets
from ctxsteward.envelope.layout.composition import lay_head
from ctxsteward.envelope.tokens.budgets import Scale
from ctxsteward.schemas import BudgetExceeded
from ctxsteward.store.journal.events import SessionHead

from ..messages import CHARS, tool

HEAD = SessionHead(tools=(tool("look_up"), tool("send")))
TOKENS = CHARS.tools(HEAD.tools)


@pytest.mark.parametrize("budget", [None, TOKENS + 1, TOKENS])
def test_tools_within_their_budget_stay_whole(budget: int | None) -> None:
    laid = lay_head(HEAD, Scale(Budgets(tools_tokens=budget)), CHARS, 0)
    assert (laid.tools, laid.tools_tokens) == (HEAD.tools, TOKENS)


def test_tools_over_their_budget_are_refused_with_what_each_costs() -> None:
    with pytest.raises(BudgetExceeded) as refused:
        lay_head(HEAD, Scale(Budgets(tools_tokens=TOKENS - 1)), CHARS, 0)
    error = refused.value
    assert (error.section, error.tokens, error.budget_tokens) == ("tools", TOKENS, TOKENS - 1)
    assert [name for name, _ in error.blocks] == ["look_up", "send"]
