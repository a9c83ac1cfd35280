"""What nights have kept is forgotten at once, by whichever process: words, support, transcripts from outside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxsteward.envelope import EnvelopeBuilder, open_store
from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas import InputError
from ctxsteward.steward import Ledger
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.night.chain import NightChain
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.setup import ledger_path
from ctxsteward.store.erasure.forget import Erasure, forget
from ctxsteward.store.profiles.version_codec import references

from ...store.erasure.scenes import hits
from .desk import NOON, SHARED, fill, night, say, settings_of

TOLD = {"tenant": "acme", "who": "dpo", "when": "2026-11-23T00:00:00Z", "why": "asked"}
HERS = "No, the corner table at Luigi's costs 7 EUR, not 9 EUR."
WORDS = (HERS, "corner table")
COMMAND = "from ctxsteward.console.cli import cli; cli()"


def command(settings: NightSettings, *what: str) -> subprocess.CompletedProcess[str]:
    """`ctxsteward store forget` in a process of its own, which knows nothing of this one."""
    words = ["store", "forget", *what, "--store", settings.store, "--tenant", "acme", "--who", "dpo", "--why", "asked"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", COMMAND, *words], env=env, capture_output=True, text=True, timeout=60)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def texts(settings: NightSettings) -> list[set[str]]:
    """What the slice of every version says."""
    with open_store(settings.store) as store:
        history = store.profiles("support", tenant="acme").history()
        return [{record.text for record in version.profile.meta} for version in history]


def forgotten(settings: NightSettings, session: str) -> Erasure:
    with open_store(settings.store) as store:
        return forget(store, session=session, **TOLD)


def later(settings: NightSettings, day: int) -> NightSettings:
    return settings.model_copy(update={"night": f"2026-11-{day}"})


@pytest.mark.parametrize("what", [("--session", "s-hers"), ("--principal", "zoe")], ids=["session", "principal"])
def test_a_command_leaves_no_word_in_the_store_not_even_in_the_ledger(tmp_path: Path, what: tuple[str, ...]) -> None:
    settings = settings_of(tmp_path, sources=("store", str(tmp_path / "in")))
    fill(tmp_path / "in", 15)
    with open_store(settings.store) as store:
        session = store.session("s-hers", tenant="acme")
        for role, text in (("user", HERS), ("assistant", "Noted."), ("user", HERS)):
            session.append({"role": role, "content": text}, principal="zoe" if role == "user" else None)
    night(settings)
    assert str(ledger_path(settings)) in hits(contents(tmp_path / "store"), (HERS,))[HERS]

    done = command(settings, *what)
    assert (done.returncode, done.stderr) == (0, "")
    assert hits(contents(tmp_path / "store"), WORDS) == {}
    night(later(settings, 23))
    assert hits(contents(tmp_path / "store"), WORDS) == {}
    with open_store(settings.store) as store, Ledger.open(ledger_path(settings), store, "acme", "support") as ledger:
        assert SHARED[0] in {record.text for record in ledger.records()}, "what others said was made anew"


@pytest.mark.parametrize("what", [{"session": "hers"}, {"principal": "zoe"}], ids=["session", "principal"])
def test_a_transcript_from_outside_is_forgotten_and_not_harvested_again(tmp_path: Path, what: dict[str, str]) -> None:
    settings = settings_of(tmp_path)
    fill(tmp_path / "in", 5)
    say(tmp_path / "in", "hers", HERS, principal="zoe", session="hers")
    night(settings)
    with open_store(settings.store) as store:
        forget(store, **what, **TOLD)
    assert hits(contents(tmp_path / "store"), WORDS) == {}
    with open_store(settings.store) as store:
        subject = "hers" if "session" in what else "hers\x00zoe"
        tombstone = store.vault("acme").tombstone(store.vault("acme").subject_address(subject))
        assert tombstone is not None
        assert (tombstone.who, tombstone.why) == ("dpo", "asked")

    say(tmp_path / "in", "hers", HERS, principal="zoe", session="hers", seconds=NOON + 60)
    assert night(later(settings, 23)).skipped == {"deleted": 1}
    assert hits(contents(tmp_path / "store"), WORDS) == {}
    with open_store(settings.store) as store:
        forget(store, **what, **TOLD)  # a repeat finishes what there is to finish


def test_what_nobody_has_harvested_is_refused(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(tmp_path / "in", 5)
    night(settings)
    with open_store(settings.store) as store:
        for what in ({"session": "nobody"}, {"principal": "nobody"}, {"session": "00000", "principal": "user-1"}):
            with pytest.raises(InputError, match="nothing was forgotten"):
                forget(store, **what, **TOLD)
    assert ledger_path(settings).is_file()


def supporting(tmp_path: Path, count: int) -> tuple[NightSettings, list[str]]:
    """A store in which so many people have said one thing, and the sessions that the record points to."""
    settings = settings_of(tmp_path)
    for number in range(count):
        say(tmp_path / "in", f"{number:03}", SHARED[0], principal=f"p{number}", seconds=NOON + number)
    assert night(settings).outcome == "promoted"
    with open_store(settings.store) as store:
        (record,) = store.profiles("support", tenant="acme").newest().profile.meta
    return settings, [pointer.rpartition("§")[0] for pointer in record.sources]


def _shown(sessions: list[str], shown: list[str]) -> str:
    return shown[0]


def _not_shown(sessions: list[str], shown: list[str]) -> str:
    return next(session for session in sessions if session not in shown)


@pytest.mark.parametrize("choose", [_shown, _not_shown], ids=["shown", "not_shown"])
def test_a_record_goes_at_once_when_its_gate_would_not_let_it_in(
    tmp_path: Path, choose: Callable[[list[str], list[str]], str]
) -> None:
    settings, shown = supporting(tmp_path, 3)
    builder = EnvelopeBuilder(tokenizer=CharTokenizer())
    with open_store(settings.store) as store:
        newest = store.profiles("support", tenant="acme").newest()
        Snapshots(store, "acme").take(newest, builder, who="ops", when="2026-11-22")

    done = forgotten(settings, choose(["000", "001", "002"], shown))
    assert done.recommendations == 1
    assert texts(settings) == [set()]
    with open_store(settings.store) as store:
        (snapshot,) = Snapshots(store, "acme").history("support")
        assert SHARED[0] not in str(snapshot.envelope)
        assert {finding.kind for finding in snapshot.findings} == {"meta_record_erased"}
    report = night(later(settings, 23))
    assert (report.outcome, texts(settings)) == ("unchanged", [set()]), "the next night agrees"

    say(tmp_path / "in", "zzz", SHARED[0], principal="p9", seconds=NOON + 99)
    report = night(later(settings, 24))
    assert report.outcome == "promoted", "a third voice brings it back"
    assert len(texts(settings)[-1]) == 1


def test_a_record_stays_while_its_gate_would_let_it_in(tmp_path: Path) -> None:
    settings, shown = supporting(tmp_path, 50)
    for session in shown:
        assert forgotten(settings, session).recommendations == 0
        assert len(texts(settings)[-1]) == 1
    report = night(later(settings, 23))
    assert len(texts(settings)[-1]) == 1, report
    assert forgotten(settings, "049" if "049" not in shown else "025").recommendations == 0


def test_support_that_grew_since_the_commit_counts(tmp_path: Path) -> None:
    settings, _ = supporting(tmp_path, 3)
    say(tmp_path / "in", "zzz", SHARED[0], principal="p9", seconds=NOON + 99)
    night(later(settings, 23))
    assert forgotten(settings, "001").recommendations == 0
    assert forgotten(settings, "002").recommendations == 1


def test_what_tells_support_names_nobody(tmp_path: Path) -> None:
    settings, _ = supporting(tmp_path, 3)
    with open_store(settings.store) as store:
        found = NightChain(store, "acme", "support").head()
        assert found is not None
        (kept,) = references(list(found.supports))
        data = store.vault("acme").get(kept.blob)
    assert re.fullmatch(rb'\{"least":3,"schema_version":1,"voices":[\[\]",0-9a-f]+\}', data)


def test_a_ledger_that_is_open_is_kept_and_cleaned(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(tmp_path / "in", 5)
    say(tmp_path / "in", "hers", HERS, principal="zoe", session="hers")
    night(settings)
    counter = Counter(CharTokenizer())
    with open_store(settings.store) as store, Ledger.open(ledger_path(settings), store, "acme", "support") as ledger:
        before = ledger.size().observations
        assert forget(store, session="hers", **TOLD).elsewhere == 2  # the claim, and her first words
        assert ledger.size().observations == before - 2
        assert HERS not in {record.text for record in ledger.records(JudgementContext(counter=counter))}
        assert ledger_path(settings).is_file()
    assert hits(contents(tmp_path / "store"), (HERS,)) == {}
