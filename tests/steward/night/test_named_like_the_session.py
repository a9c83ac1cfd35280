"""A person whose name is also the session's, the project's and the tenant's is a known person like any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxsteward.envelope import Store, open_store
from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.storage import ArtifactStore
from ctxsteward.steward.harvest.batches import BatchRecords
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.night.batch_harvest import HarvestedTranscript, HarvestWorker
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.setup import ledger_path
from ctxsteward.store.crypto.keyring import subject_of
from ctxsteward.store.erasure.forget import forget

from ...store.erasure.scenes import hits
from ..scenes import AGENT, artifact, memory_store
from .desk import fill, night, settings_of

NAME = "acme"
"""Of the tenant too (`settings_of`)."""
WORD = "marzipan"
TOLD = {"tenant": NAME, "who": "dpo", "why": "request 7", "when": "2026-11-23T00:00:00Z"}


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def talked(root: Path) -> NightSettings:
    """A night over a session in which the person of that name corrects a price, and somebody unknown speaks."""
    settings = settings_of(root, sources=("store", str(root / "in")))
    fill(root / "in", 3)
    with open_store(settings.store) as store:
        for session, principal, text in (
            (NAME, NAME, f"No, the {WORD} table costs 7 EUR, not 9 EUR."),
            ("other", NAME, "No, the window seat costs 3 EUR, not 5 EUR."),
            (NAME, None, "Hello there."),
        ):
            opened = store.session(session, tenant=NAME)
            opened.append({"role": "user", "content": text}, principal=principal)
            opened.append({"role": "assistant", "content": "Noted."})
    night(settings)
    return settings


def claims(settings: NightSettings) -> set[str]:
    """What the ledger holds of what they said."""
    with open_store(settings.store) as store, Ledger.open(ledger_path(settings), store, NAME, "support") as ledger:
        return {row[0] for row in ledger._db.rows("SELECT text FROM seen WHERE principal = ?", NAME)}


def test_their_claims_are_those_of_a_known_person(tmp_path: Path) -> None:
    settings = talked(tmp_path)
    assert any(WORD in text for text in claims(settings))


@pytest.mark.parametrize("what", [{"principal": NAME}, {"session": NAME}], ids=["principal", "session"])
def test_forgetting_them_or_the_session_leaves_no_byte(tmp_path: Path, what: dict[str, str]) -> None:
    settings = talked(tmp_path)
    assert hits(contents(ledger_path(settings).parent), (WORD,)), "the ledger never had the word"
    with open_store(settings.store) as store:
        forget(store, **what, **TOLD)
    assert not hits(contents(tmp_path), (WORD,))
    night(settings.model_copy(update={"night": "2026-11-24"}))
    assert not hits(contents(tmp_path), (WORD,))


def test_a_canary_counts_them_as_one_person_over_all_their_sessions() -> None:
    with memory_store() as store:
        records = BatchRecords(store, NAME, "support", extractor="harvest/1")
        assert records.voice(NAME) == records.voice(NAME.upper()) != ""
        assert records.voice(None) == ""
    worker = HarvestWorker(key=store.keys.address_key(NAME))
    for known in (NAME, None):
        told = {} if known is None else {"ctxsteward": {"principal": known}}
        data = json.dumps({"messages": [{"role": "user", "content": "I like tea."}], **told}).encode()
        (harvested,) = worker(LoadedItem(source="in", name=f"{NAME}.json", data=data))
        assert isinstance(harvested, HarvestedTranscript)
        assert (harvested.session, harvested.principal) == (NAME, known)


def test_their_words_lie_under_a_key_of_their_own_beside_those_of_an_unknown_speaker() -> None:
    with memory_store() as store:
        artifacts = ArtifactStore(store, NAME)
        known = artifact(store, NAME, ["I like tea a lot."], principal=NAME)
        unknown = artifact(store, NAME, ["I like tea a lot."], principal=None)
        addresses = [artifacts.put(known), artifacts.put(unknown)]
        assert [artifacts.get(address) for address in addresses] == [known, unknown]
        subjects = [store.vault(NAME).entry(address).subject for address in addresses]
        assert subjects == [subject_of(NAME, NAME), NAME]
        with Ledger.open(":memory:", store, NAME, AGENT) as ledger:
            ledger.absorb(known, unknown)


def unknown_speaker(store: Store) -> tuple[Ledger, str]:
    """What every version wrote of an unknown speaker: bytes that name the session."""
    artifacts = ArtifactStore(store, NAME)
    address = artifacts.put(artifact(store, NAME, [f"I always prefer the {WORD} table."], principal=None))
    assert b'"principal":"acme"' in store.vault(NAME).get(address), "the stored form of earlier versions"
    ledger = Ledger.open(":memory:", store, NAME, AGENT)
    assert ledger.absorb_kept([address]) == (1, 0)
    return ledger, address


def test_an_unknown_speaker_may_be_the_person_of_the_session_s_name_and_is_forgotten_with_them() -> None:
    """Earlier versions wrote that person as they wrote an unknown speaker: under the session's own key."""
    with memory_store() as store:
        ledger, address = unknown_speaker(store)
        assert ledger.withdraw(session=NAME, principal=NAME) == 1
        ledger.close()
        assert ArtifactStore(store, NAME).find(address) is None


def test_forgetting_the_person_reaches_what_an_earlier_version_stored_of_them(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}/store") as store:
        store.session(NAME, tenant=NAME).append({"role": "user", "content": f"I like {WORD}."}, principal=NAME)
        artifacts = ArtifactStore(store, NAME)
        address = artifacts.put(artifact(store, NAME, [f"I like {WORD} a lot."], principal=None))
        with Ledger.open(tmp_path / "ledger.sqlite", store, NAME, AGENT) as ledger:
            ledger.absorb_kept([address])
            done = forget(store, principal=NAME, **TOLD)
            assert (done.complete, done.elsewhere) == (True, 1)
        assert not list(store.objects.list(f"blobs/{NAME}/{address[:2]}/{address}"))
    assert not hits(contents(tmp_path), (WORD,))
