"""Nights over a store whose sessions are shown the slice: the steward never hears itself.

Every day there are sessions under the profile in force whose assistant repeats the slice, a session that the steward
itself has written, files of its own output, and a session that is forgotten before the night. What was shown lends no
support, its own output is skipped by a structured field, and deleted sessions give nothing.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from ctxsteward.envelope.store import Store, open_store
from ctxsteward.steward.artifacts.storage import ArtifactStore
from ctxsteward.steward.harvest.batches import BatchRecords
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.setup import open_night
from ctxsteward.store.erasure.forget import forget

from ...examples import SOAK
from .desk import DAY_SECONDS, NOON, SHARED, fill, here, in_process, night, say, settings_of

NIGHTS = 30 if SOAK else 8
"""Thirty with CTXSTEWARD_SOAK=1."""
OWN = "No, the steward fee is 99 EUR, not 1 EUR."
"""Said only in what the steward wrote: nothing may ever rest on it."""
GONE = "No, the forgotten fee is 77 EUR, not 7 EUR."
"""Said only in sessions that were forgotten before the night."""


def converse(store: Store, id: str, texts: list[str], *, day: int, origin: str | None = None) -> None:
    """A session of this day under the profile in force."""
    versions = store.profiles("support", tenant="acme")
    profile = store.profiles("support", tenant="acme").newest().profile if versions.head() else None
    session = store.session(id, tenant="acme", profile=profile)
    ts = f"{date(2026, 10, 1) + timedelta(days=day)}T12:00:00+00:00"
    for number, text in enumerate(texts):
        role = ("user", "assistant")[number % 2]
        who = f"p-{id}" if role == "user" else None
        session.append({"role": role, "content": text}, principal=who, ts=ts, origin=origin)


def test_in_thirty_nights_no_own_output_is_harvested_and_nothing_grows_by_itself(tmp_path: Path) -> None:
    fill(tmp_path / "in", 15)
    sources = (str(tmp_path / "in"), "store")
    settings = settings_of(tmp_path, sources=sources)
    statuses = []
    for day in range(NIGHTS):
        now_seconds = NOON + (day - 44.5) * DAY_SECONDS  # at night, half a day after that day's sessions
        with open_store(settings.store) as store:
            shown = [text for text in SHARED if day]
            echoed = ["Hello there.", "Hello. " + " ".join(shown), *(shown[:1]), "Yes, that is so."]
            converse(store, f"echo-{day}", echoed, day=day)
            converse(store, f"own-{day}", [OWN, "Noted."], day=day, origin="steward")
            converse(store, f"gone-{day}", [GONE, "Noted."], day=day)
            forget(store, session=f"gone-{day}", tenant="acme", who="dpo", when="2026-10-01T00:00:00Z", why="asked")
        seconds = now_seconds - DAY_SECONDS / 2
        say(tmp_path / "in", f"own-{day}", OWN, principal=f"w{day}", seconds=seconds, origin="steward")
        say(tmp_path / "in", f"gone-{day}", GONE, principal=f"g{day}", seconds=seconds, status="deleted")
        told = settings.model_copy(update={"night": str(date(2026, 10, 1) + timedelta(days=day))})
        report = night(told, now_seconds=now_seconds)
        assert (report.failed_batches, report.quarantined) == (0, ())
        assert report.skipped["own_output"] == 2
        assert report.skipped["deleted"] >= 1
        statuses.append(report.statuses)
    with open_night(settings, here(), isolate=in_process) as opening:
        records = BatchRecords(opening.store, "acme", "support", extractor="")
        artifacts = ArtifactStore(opening.store, "acme")
        kept = [artifacts.get(address) for batch in records.every() for address in batch.artifacts]
        supports = {
            record.text: record.support.principals
            for record in opening.ledger.records(JudgementContext(now="2026-10-31T00:00:00+00:00"))
            if record.scope.is_shared
        }
    assert not [one.session for one in kept if one.session.startswith(("own-", "gone-"))]
    assert not any(text in (OWN, GONE) for one in kept for text in (cited.text for cited in one.cited))
    assert {one.session for one in kept} >= {f"echo-{day}" for day in range(NIGHTS)}
    assert {text: supports.get(text) for text in SHARED} == dict.fromkeys(SHARED, 3), "echoes lend no support"
    assert statuses[-1]["active"] == statuses[1]["active"]
