"""What the steward writes is frozen: every object of a store and every row of a ledger, to the byte.

`stored.json` was written by this file run as a program (`python -m tests.steward.golden.test_stored`). A change of a
stored form that is meant is written anew and told in the changelog; stores written before must still be read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxsteward.envelope.store import Store
from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.artifact import IdentifierUse, artifact_bytes, parse_artifact
from ctxsteward.steward.artifacts.storage import ArtifactStore
from ctxsteward.steward.harvest.batches import (
    BatchRecords,
    BatchResult,
    RefusedTranscript,
    SessionUse,
    WithdrawnTranscript,
)
from ctxsteward.steward.ingest.items import SourceItem
from ctxsteward.steward.ingest.watermark import Watermark, advanced, marker
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.night.chain import Night, NightChain
from ctxsteward.steward.release.approvals import Approvals
from ctxsteward.steward.release.record_reviews import RecordReviews
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects

from ..release.people import FACT, FIRST, WHEN, WORDING, actors, signer
from ..release.test_promotion import agree, promoted
from ..scenes import AGENT, TENANT, artifact, recommendation

PATH = Path(__file__).with_name("stored.json")
SAID = ("No, the baggage allowance is 23 kg.", "Please always answer in German.", "I live in Bonn, naïvely.")


def store() -> Store:
    return Store(MemoryJournal(), MemoryObjects(), MasterKeys(b"k" * 32), uri="memory:")


def written() -> dict[str, Any]:
    """Everything, by where it lies; of what is encrypted the address, which is one of the content."""
    made = store()
    harvested(made)
    night(made)
    released(made)
    objects = {info.key: made.objects.get(info.key) for info in made.objects.list("")}
    chains = {key: json.loads(body) for key, body in objects.items() if key.startswith(("steward/", "profiles/"))}
    return {
        "encrypted": sorted(objects.keys() - chains.keys()),
        "chains": dict(sorted(chains.items())),
        "ledger": ledger(made),
        "decisions": decisions(),
    }


def decisions() -> list[Any]:
    """What people may say of records besides approving them: words, later, and a rejection that remembers."""
    made = store()
    reviews = RecordReviews(made, "support", TENANT, actors=actors())
    one = recommendation("r1", "Prices are in euro.", kind="correction", status="candidate")
    reviews.edit(one, "Prices are in euro, tax included.", signer("ada"), when=WHEN, note="clearer")
    later = {"kind": "later", "record": "r1", "night": "2026-11-21", "who": "ben", "when": WHEN}
    reviews.append(reviews.signed({"schema_version": 2, **later}, signer("ben")))  # of an earlier version
    reviews.answer(one, "reject", signer("cleo"), when=WHEN, names=("r1", "r0"), stood_on=("said",))
    return [body for _, body in reviews.links()]


def artifacts(made: Store) -> list[Any]:
    """Three people who say the same, one of them dated, with what tools took, and one record that was shown."""
    one = artifact(made, "s-1", SAID, principal="ann", ts=WHEN, reach="user")
    one = replace(one, takes=(IdentifierUse("book", ("payment_id", "x[].id")),))
    return [
        one,
        artifact(made, "s-2", SAID[:2], principal="ben", reach="shared", value=23, unit="kg", polarity="positive"),
        artifact(made, "s-3", SAID[:2], principal="cleo", reach="shared", value=23, unit="kg", shown=("0" * 16,)),
        artifact(made, "s-5", SAID[:1], principal="dan", reach="shared", value=23, unit="kg", revision=7),
        artifact(made, "s-4", SAID[:1], principal=None, reach="session", slot=("user", "allowance", "one"), value="x"),
    ]


def read(made: Store) -> list[Any]:
    """The same as they are read: without what earlier versions kept of one person."""
    return [parse_artifact(artifact_bytes(one)) for one in artifacts(made)]


def harvested(made: Store) -> None:
    kept = ArtifactStore(made, TENANT)
    for one in artifacts(made):
        kept.put(one)


def night(made: Store) -> None:
    records = BatchRecords(made, TENANT, "support", extractor="harvest/1")
    item = SourceItem("in", "a.json", "1@2", 3)
    batch = records.batch((item, SourceItem("in", "b.json", "2")), "full 1")
    records.write(BatchResult(address=records.batch(()).address, artifacts=()))
    records.write(
        BatchResult(
            address=batch.address,
            artifacts=("a" * 64, "b" * 64),
            transcripts=2,
            skipped={"open": 1, "empty": 2},
            quarantined=(RefusedTranscript("invalid", records.address(item)),),
            hits={"events": 2, "shown": 1},
            gone=(WithdrawnTranscript(records.address(item), records.session("s-1")), WithdrawnTranscript("x", None)),
            uses=(
                SessionUse(
                    records.reading(item, "s-1"),
                    3,
                    {"complied": ("r1",), "quiet": ["r2"]},
                    records.subjects("s-1", ["ann", None]),
                    2,
                    {"sessions": 1},
                ),
                SessionUse("y", 0, {}),
            ),
            dated={"messages": 2},
        )
    )
    items = [SourceItem("in", "a.json", "1@2", 3, 1_763_200_000.0), SourceItem("in", "b.json", "2", 0, 1_763_300_000.5)]
    mark = advanced(
        Watermark(source="in"), items, items[:1], mark=marker(made.keys.address_key(TENANT), "in"), now_seconds=1.8e9
    )
    assert Watermark.from_json(json.loads(json.dumps(mark.to_json()))) == mark
    nights = NightChain(made, TENANT, "support")
    first = nights.append(
        None, Night(night="2026-11-21", run="n1", ledger="0" * 64, outcome="unchanged", final="f"), epoch=1
    )
    full = Night(
        night="2026-11-22",
        run="n2",
        marks={"in": mark.to_json()},
        batches=(batch.address,),
        ledger="1" * 64,
        observations=7,
        records="2" * 64,
        statuses={"active": 1},
        version=2,
        outcome="promoted",
        final="g",
        counts={"due": 2},
        quarantined={"invalid": 1},
        drift="INFO",
        gate="passed",
        supports=({"blob": "b", "key": "k"},),
    )
    nights.append(first, full, epoch=2)
    assert list(nights.history(1)) == [full]


def released(made: Store) -> None:
    first = {"who": "ada", "why": "first", "when": "2026-11-01T04:00:00+00:00", "commit_id": "first"}
    made.profiles("support", tenant=TENANT).commit(FIRST, **first)
    approvals = Approvals(made, "support", TENANT, actors=actors())
    promoted(made, approvals, FACT, canary={"share": 0.1, "champion": 1})
    approvals.settle_canary(2, "keep", ("no signal is worse",), when=WHEN)
    asked = promoted(made, approvals, WORDING)
    agree(approvals, asked, "ben")
    assert promoted(made, approvals, WORDING).kind == "committed"
    with Ledger.open(":memory:", made, TENANT, AGENT) as opened:
        opened.absorb(*read(made))
        (record, *_) = opened.records()
    reviews = RecordReviews(made, "support", TENANT, actors=actors())
    reviews.answer(record, "approve", signer("ada"), when=WHEN, note="so it is")
    reviews.answer(record, "reject", signer("cleo"), when=WHEN)


def ledger(made: Store) -> dict[str, Any]:
    """Rows that hold text, and what the records are."""
    with Ledger.open(":memory:", made, TENANT, AGENT) as opened:
        opened.absorb(*read(made))
        records = [one.model_dump(mode="json") for one in opened.records(JudgementContext(now=WHEN, run="n2"))]
        seen = json.loads(json.dumps(opened._db.rows("SELECT * FROM seen ORDER BY 1"), default=bytes.hex))
        return {"records": records, "digest": opened.digest(), "seen": seen}


def test_whatever_is_stored_is_what_it_was() -> None:
    golden = json.loads(PATH.read_text(encoding="utf-8"))
    got = json.loads(json.dumps(written()))
    for part, wanted in golden.items():
        assert got[part] == wanted


def test_an_artifact_is_the_same_bytes_however_often_it_is_read() -> None:
    for one in read(store()):
        assert parse_artifact(artifact_bytes(one)) == one


def test_what_earlier_versions_kept_of_one_person_is_left_out() -> None:
    of_her, *_, of_a_session = read(store())
    assert (of_her.observations, of_a_session.observations) == ((), ())
    assert of_her.cited, "the words stay until she is forgotten"


if __name__ == "__main__":
    lines = (f"{json.dumps(part)}: {json.dumps(value, ensure_ascii=False)}" for part, value in written().items())
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
