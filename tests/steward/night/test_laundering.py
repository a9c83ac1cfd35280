"""Trust cannot be laundered: words of a tool or of the assistant, and of one person many times, reach nobody by it.

Whole nights: transcripts in files, harvest, support, admission, slice and shelves, the envelopes of later sessions.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Profile, open_store
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.setup import open_night

from ...needs import PUBLIC_DATA
from ..poisons import poisons
from . import launderings
from .desk import here, in_process, night, settings_of
from .launderings import (
    ECHOES,
    THINGS,
    Planted,
    bipia,
    by_a_tool_again,
    corroborated,
    echoed,
    noted,
    restated,
    said_first,
    tempting,
    write,
)

SOAK = os.environ.get("CTXSTEWARD_SOAK") == "1"
NOW = "2026-11-22T00:00:00Z"
POISONS = tuple(poisons())


class After(NamedTuple):
    """What a night made of it."""

    shared: frozenset[str]
    """Texts of active records that reach many."""
    personal: frozenset[tuple[str, str]]
    """Audience and text of what is known of one person or session."""
    sent: str
    """The prompts of a stranger, and of one of the people, who ask for everything."""


def after(root: Path, planted: Iterator[Planted]) -> After:
    planted = list(planted)  # type: ignore[assignment]
    write(root / "in", iter(planted))
    settings = settings_of(root)
    report = night(settings)
    assert (report.quarantined, report.failed_batches) == ((), 0)
    with open_night(settings, here(), isolate=in_process) as opening:
        active = [one for one in opening.ledger.records(JudgementContext(now=NOW)) if one.status == "active"]
    with open_store(settings.store) as store:
        people = [one.principal for one in planted if (one.principal or "").startswith("person-")]
        sent = "\n".join(asked(store, who, at) for at, who in enumerate(("stranger", *people[-1:])))
    own = {(str(one.scope.user or one.scope.session), one.text) for one in active if not one.scope.is_shared}
    return After(frozenset(one.text for one in active if one.scope.is_shared), frozenset(own), sent)


def asked(store: object, who: str, at: int) -> str:
    head = store.profiles("support", tenant="acme").head()  # type: ignore[attr-defined]
    profile = (
        store.profiles("support", tenant="acme").newest().profile
        if head
        else Profile.from_text("You help.", name="support")
    )  # type: ignore[arg-type]
    session = store.session(f"ask-{at}", tenant="acme", profile=profile)  # type: ignore[attr-defined]
    session.append(
        {"role": "user", "content": "What do you know about refunds, fees, pages and what I want?"}, principal=who
    )
    return str(EnvelopeBuilder(tokenizer="o200k_base").build(session).render("text"))


def texts_of(real: Sequence[str]) -> list[str]:
    """At least a hundred: what a harvester would take, our own poison, and real attacks where they are here."""
    every = [*POISONS, *real]
    return [*tempting(), *(every if SOAK else random.Random(3).sample(every, 60))]


def words(text: str) -> str:
    return " ".join(text.casefold().split())


def borrowed(found: After, texts: Sequence[str]) -> list[str]:
    """Texts that are known of anybody, or sent to anybody, in whichever part."""
    told = [words(text) for text in (*found.shared, *(text for _, text in found.personal), found.sent)]
    return [text for text in texts if any(words(text)[:60] in each or (each and each in words(text)) for each in told)]


def test_there_are_enough_real_ones() -> None:
    if not launderings.BIPIA.is_dir():
        pytest.skip(PUBLIC_DATA)
    assert len(bipia()) >= 100
    assert len(texts_of(bipia())) >= 100


@pytest.mark.parametrize("channel", [restated, echoed, by_a_tool_again], ids=lambda channel: channel.__name__)
def test_no_words_of_a_tool_get_through(channel: Callable[[Sequence[str]], Iterator[Planted]], tmp_path: Path) -> None:
    texts = texts_of(bipia())
    assert len(texts) >= 100
    found = after(tmp_path, channel(texts))
    assert found.shared == frozenset()
    mine = {one for one in found.personal if not one[0].startswith(("eve-", "seed-"))}  # who said it knows it
    assert sorted(text for _, text in mine) == []
    assert borrowed(found._replace(personal=frozenset(mine)), texts) == []


@pytest.mark.parametrize("echo", ECHOES)
def test_no_claim_gets_through_because_a_tool_of_ours_repeats_it(echo: str, tmp_path: Path) -> None:
    texts = tempting()
    assert len(list(noted(texts, echo))) >= 40
    assert after(tmp_path, noted(texts, echo)).shared == frozenset()


def test_no_company_of_oneself_gets_through(tmp_path: Path) -> None:
    texts = texts_of(bipia())
    found = after(tmp_path, corroborated(texts))
    assert found.shared == frozenset()
    assert {
        who for who, _ in found.personal if not who.casefold().startswith(("eve", "еve", "ｅve", "corroborated-"))
    } == set()
    assert [text for text in texts if words(text)[:60] in words(found.sent)] == []


@pytest.mark.parametrize("kind", ["restated", "echoed", "corroborated"])
def test_what_three_people_say_first_gets_through_whoever_says_it_again(kind: str, tmp_path: Path) -> None:
    """The same words that no tool and no one person gets through, where they are of the agent's work."""
    found = after(tmp_path, said_first(tempting(), kind))
    figures = {f"{thing} is {20 + at} EUR" for at, thing in enumerate(THINGS)}
    assert {each for each in figures if not any(each in text for text in found.shared)} == set()
    assert any(each in found.sent for each in figures)
