"""The loop of use: what sessions were shown is counted the night after, by record, and decides the next slice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from ctxsteward.envelope import EnvelopeBuilder, Store, open_store
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.steward import Ledger
from ctxsteward.steward.harvest.usage import FATES, RecordUse
from ctxsteward.steward.release.slice import fit, slice_tokens
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.setup import ledger_path
from ctxsteward.store.erasure.forget import forget

from .desk import NOON, SHARED, night, say, settings_of

METRIC = "Please always answer in metric."
LATER_SECONDS = NOON + 40 * 86_400.0
TS = "2026-11-20T09:00:00+00:00"

Turn = tuple[str, str]


@pytest.fixture
def settings(tmp_path: Path) -> NightSettings:
    """After a night in which three people corrected the agent, and three told how they want their answers."""
    settings = settings_of(tmp_path, sources=(str(tmp_path / "in"), "store"))
    for n in range(3):
        say(tmp_path / "in", f"k{n}", SHARED[0], principal=f"p{n}")
        say(tmp_path / "in", f"wish{n}", METRIC, principal=f"q{n}")
    night(settings, now_seconds=LATER_SECONDS)
    return settings


def talk(store: Store, name: str, turns: Sequence[Turn], principal: str = "ann") -> frozenset[str]:
    """A session under the newest profile, with a build a turn; ids of the records it was shown."""
    session = store.session(name, tenant="acme", profile=store.profiles("support", tenant="acme").newest().profile)
    builder = EnvelopeBuilder(tokenizer="o200k_base")
    for user, assistant in turns:
        session.append({"role": "user", "content": user}, principal=principal, ts=TS)
        builder.build(session)
        session.append({"role": "assistant", "content": assistant}, ts=TS)
    return session.shown_records()


def uses(settings: NightSettings) -> dict[str, RecordUse]:
    with (
        open_store(settings.store) as store,
        Ledger.open(ledger_path(settings), store, settings.tenant, settings.profile) as ledger,
    ):
        texts = {record.id: record.text for record in ledger.records()}
        return {texts[id]: hit for id, hit in ledger.uses.of_records().items()}


def later(settings: NightSettings, day: int) -> NightSettings:
    return settings.model_copy(update={"night": f"2026-11-{day}"})


OBEYED = (("Which seat?", "Any."), ("How far is Lisbon in metric units?", "In metric units, 1,900 km."))
DISOBEYED = (("How far is Lisbon?", "1,200 miles."), ("As I said, please always answer in metric.", "Sorry."))


def test_records_of_the_head_are_counted_the_night_after(settings: NightSettings) -> None:
    with open_store(settings.store) as store:
        shown = talk(store, "a-1", OBEYED) | talk(store, "a-2", DISOBEYED)
        talk(store, "b-1", (("How heavy may my baggage be? The allowance?", "The allowance is 23 kg."),), "ben")
    assert len(shown) == 2, "the records of the slice"
    report = night(later(settings, 23), now_seconds=LATER_SECONDS)

    found = uses(settings)
    assert found[METRIC] == RecordUse(shown=3, judged=3, fired=2, complied=1, contradicted=1)
    assert found[SHARED[0]].shown == 3
    assert found[SHARED[0]].fired == 1
    assert report.hits["shown"] == 6
    assert report.rates["used"] == pytest.approx(3 / 6)
    assert report.rates["obeyed"] == pytest.approx(2 / 3)


def test_the_table_is_the_same_after_repeated_full_and_lost_nights(settings: NightSettings) -> None:
    with open_store(settings.store) as store:
        talk(store, "a-1", OBEYED)
    night(later(settings, 23), now_seconds=LATER_SECONDS)
    once = uses(settings)
    assert once[METRIC] == FATES["complied"]

    night(later(settings, 23), now_seconds=LATER_SECONDS)
    night(later(settings, 24).model_copy(update={"full": True}), now_seconds=LATER_SECONDS)
    assert uses(settings) == once
    for path in ledger_path(settings).parent.iterdir():
        path.unlink()
    night(later(settings, 25), now_seconds=LATER_SECONDS)
    assert uses(settings) == once


@pytest.mark.parametrize("is_lost", [False, True], ids=["as it was", "lost"])
def test_the_night_that_makes_a_lost_ledger_anew_counts_like_any_other(settings: NightSettings, is_lost: bool) -> None:
    """Of use made of records, and of events that an active record had foreseen."""
    with open_store(settings.store) as store:
        talk(store, "a-1", OBEYED)
        talk(store, "a-2", DISOBEYED)
    say(Path(settings.sources[0]), "k9", SHARED[0], principal="p9")
    if is_lost:
        for path in ledger_path(settings).parent.iterdir():
            path.unlink()
    report = night(later(settings, 23), now_seconds=LATER_SECONDS)
    found = uses(settings)
    assert found[METRIC] == RecordUse(shown=2, judged=2, fired=2, complied=1, contradicted=1)
    assert found[SHARED[0]].shown == 2
    assert (report.hits["shown"], report.hits["anticipated"]) == (4, 2)


@pytest.mark.parametrize(
    ("what", "left"), [({"session": "a-1"}, 1), ({"principal": "ann"}, 2)], ids=["session", "person"]
)
@pytest.mark.parametrize("is_open", [True, False], ids=["told", "made anew"])
def test_whoever_is_forgotten_is_counted_no_more(
    settings: NightSettings, what: dict[str, str], left: int, is_open: bool
) -> None:
    """While the ledger is open it is told; else its file goes, and batches are counted anew.

    What is left of a session without one of its people is read again, and counts as it is now.
    """
    with open_store(settings.store) as store:
        talk(store, "a-1", OBEYED)
        talk(store, "b-1", (("How heavy may my baggage be? The allowance?", "The allowance is 23 kg."),), "ben")
    night(later(settings, 23), now_seconds=LATER_SECONDS)
    assert uses(settings)[SHARED[0]].shown == 2
    with open_store(settings.store) as store, ExitStack() as stack:
        if is_open:
            opened = Ledger.open(ledger_path(settings), store, settings.tenant, settings.profile)
            stack.enter_context(opened)
        forget(store, tenant="acme", who="dpo", when="2026-11-23T00:00:00+00:00", why="asked", **what)
        if is_open:
            assert {hit.shown for hit in opened.uses.of_records().values()} == {1}, "at once"
        assert ledger_path(settings).exists() == is_open
    for day in (24, 25):
        night(later(settings, day).model_copy(update={"full": day == 25}), now_seconds=LATER_SECONDS)
        assert uses(settings)[METRIC].shown == left
    assert (uses(settings)[SHARED[0]].shown, uses(settings)[SHARED[0]].fired) == (left, 1)


def test_what_is_shown_and_never_comes_up_leaves_its_place(tmp_path: Path) -> None:
    """Two corrections of equal support: where there is room for one, it is the one that sessions had a use for."""
    settings = settings_of(tmp_path, sources=(str(tmp_path / "in"), "store"))
    for n in range(6):
        say(tmp_path / "in", f"k{n}", SHARED[n % 2], principal=f"p{n}")
    night(settings, now_seconds=LATER_SECONDS)
    with open_store(settings.store) as store:
        meta = store.profiles("support", tenant="acme").newest().profile.meta
        assert sorted(record.text for record in meta) == sorted(SHARED[:2])
        for n in range(9):
            talk(store, f"q-{n}", (("Which cancellation fee?", "The cancellation fee is 50 EUR."),), f"u{n}")
    night(later(settings, 23), now_seconds=LATER_SECONDS)
    idle, used = (uses(settings)[text] for text in SHARED[:2])
    assert (idle.shown, idle.fired, used.fired) == (9, 0, 9)
    with (
        open_store(settings.store) as store,
        Ledger.open(ledger_path(settings), store, settings.tenant, settings.profile) as ledger,
    ):
        active = list(ledger.records())
        counter = Counter(CharTokenizer())
        room = max(slice_tokens(fit([one], counter, 0, 999, 999), counter) for one in active)
        chosen = fit(active, counter, 0, room, room, incumbents=meta, use=ledger.uses.of_records())
    assert [record.text for record in chosen] == [SHARED[1]]
