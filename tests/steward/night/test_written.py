"""What people wrote into the meta slice: a night adds to it and takes nothing out of it."""

from __future__ import annotations

from pathlib import Path

from ctxsteward.envelope import open_store
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry

from .desk import SHARED, night, say, settings_of

WRITTEN = (
    MetaRecord(id="opening", text="The desk is open from 9 to 17.", sources=("handbook§1",), approved=True),
    MetaRecord(id="parking", text="Parking is free for guests.", sources=("handbook§2",)),
)


def test_a_night_keeps_what_people_wrote_and_adds_to_it(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    with open_store(settings.store) as store:
        profile = ProfileDocument(
            name="support", persona=(ProfileEntry(id="voice", text="You answer calmly."),), meta=WRITTEN
        )
        store.profiles("support", tenant="acme").commit(
            profile, who="ada", why="first version", when="2026-11-21T09:00:00Z"
        )
    for number in range(3):
        say(tmp_path / "in", f"s-{number}", SHARED[0], principal=f"p{number}")
    report = night(settings)
    assert (report.outcome, report.version) == ("promoted", 2)
    with open_store(settings.store) as store:
        meta = store.profiles("support", tenant="acme").newest().profile.meta
    assert meta[:2] == WRITTEN
    assert [record.text for record in meta[2:]] == [SHARED[0]]
    assert night(settings.model_copy(update={"night": "2026-11-23"})).outcome == "unchanged"
