"""The golden files of governed state: whole small stores, object by object, and how they were made.

    tests/store/golden/v1/current/   what version 1 of the format writes; its snapshot is one of renderer 3
    tests/store/golden/v1/short/     the same with a snapshot of renderer 4, whose lines are others
    tests/store/golden/v1/newer/     the same as a later program of major 1 would write it: optional fields more
    tests/store/golden/v1/major/     the same under another major

    python -m tests.store.profiles.golden      writes what is missing; what is there is never changed

Tenant `acme`, profile `support`, the keys of `memory_store()`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxsteward.envelope import EnvelopeBuilder, Profile, Store
from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.envelope.layout.rows import FORMS, RENDERER_VERSION
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store
from ctxsteward.schemas.profile import MetaRecord, ProfileEntry
from ctxsteward.store.crypto.hash_chain import Chain, Link, _canonical
from ctxsteward.store.names import numbered, snapshots_folder, versions_folder
from ctxsteward.store.profiles.version_codec import canonical, record_subject
from ctxsteward.store.profiles.versions import WriterLease

from .agreed import EarlierVersions

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "v1"
TENANT, NAME = "acme", "support"
WHEN = "2026-11-22T04:00:00+00:00"
CALM = MetaRecord(id="calm", text="Prefers calm answers.", sources=("s-7§12",))
EURO = MetaRecord(id="euro", text="Money is shown in euro.", sources=("s-3§8", "s-4§9"), approved=True, ts="2026-11-03")
FIRST = Profile(
    name=NAME,
    persona=(ProfileEntry(id="voice", text="calm and exact"),),
    policies=(
        ProfileEntry(
            id="refunds", text="Refund within 14 days. 你好", modality="must", value=14, unit="days", locked=True
        ),
    ),
    rails=(ProfileEntry(id="secrets", text="Print no secret.", modality="must_not", polarity="negative", value=0.5),),
    surface=(ProfileEntry(id="length", text="Short answers.\nTables for figures."),),
    meta=(CALM,),
)
SECOND = FIRST.model_copy(update={"surface": (), "meta": (EURO, CALM)})


def builder(renderer: int = RENDERER_VERSION) -> EnvelopeBuilder:
    made = EnvelopeBuilder(tokenizer=CharTokenizer(), window_tokens=9_000, summarizer=FirstLine())
    made._decider = replace(made._decider, form=FORMS[renderer])
    return made


def current(renderer: int = 3) -> Store:
    """Two versions, one under a lease, and a snapshot."""
    store = memory_store()
    versions = EarlierVersions(store, NAME, TENANT)
    versions.commit(FIRST, who="ada", why="first version", when=WHEN, commit_id="c" * 32)
    lease = WriterLease(store, NAME, TENANT, owner="night", clock=lambda: 1_000.0, new_token=lambda: "t" * 32)
    taken = lease.take(60)
    assert taken is not None
    made = versions.commit(SECOND, who="night", why="harvest", when=WHEN, epoch=taken.epoch, commit_id="d" * 32)
    Snapshots(store, TENANT).take(made, builder(renderer), who="backfill", when=WHEN)
    return store


def short() -> Store:
    return current(renderer=4)


def newer() -> Store:
    """Optional fields in every object, and in a record inside the vault."""
    store = current()
    vault = store.vault(TENANT)
    data = json.loads(canonical(CALM.model_dump(mode="json"))) | {"cue": "said twice"}
    blob = vault.put(record_subject(NAME, CALM), "record", canonical(data))

    def version(body: dict[str, Any]) -> None:
        body["canary"] = {"share": 0.25}
        body["profile"]["language"] = "de"
        body["profile"]["policies"][0]["evidence"] = ["e-1"]
        body["changelog"]["ticket"] = "T-7"
        body["changelog"]["changes"][0]["size"] = 3
        body["meta"][-1] |= {"blob": blob, "weight": 2}

    _rewrite(store, versions_folder(TENANT, NAME), version)
    _rewrite(store, snapshots_folder(TENANT, NAME), lambda body: body.update(region="eu"))
    return store


def major() -> Store:
    """Bodies of schema version 2."""
    store = current()
    for folder in (versions_folder(TENANT, NAME), snapshots_folder(TENANT, NAME)):
        _rewrite(store, folder, lambda body: body.update(schema_version=2))
    return store


def _rewrite(store: Store, folder: str, change: Any) -> None:
    """Commit the chain anew with other bodies, and a field more in each link."""
    chain: Chain = store.chain(folder, tenant=TENANT)
    before: Link | None = None
    for link in list(chain.links()):
        change(link.body)
        document = {
            "schema_version": 1,
            "number": link.number,
            "commit_id": link.commit_id,
            "epoch": link.epoch,
            "parent": before.mac if before else "",
            "body": link.body,
            "region": "eu",
        }
        data = _canonical(document | {"mac": chain._code(document)})
        store.objects.delete(numbered(folder, link.number))
        store.objects.put(numbered(folder, link.number), data)
        before = chain.read(link.number)


def load(kind: str) -> Store:
    """A store that holds these golden files."""
    store, root = memory_store(), FOLDER / kind
    for path in sorted(root.rglob("*")):
        if path.is_file():
            store.objects.put(path.relative_to(root).as_posix(), path.read_bytes())
    return store


def write() -> None:
    for make in (current, short, newer, major):
        store = make()
        if (FOLDER / make.__name__).exists():
            continue
        for info in store.objects.list(""):
            path = FOLDER / make.__name__ / info.key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(store.objects.get(info.key))
    entry = FOLDER / "changelog_entry.json"
    if not entry.exists():
        found = current().profiles(NAME, tenant=TENANT).at(2).changelog.model_dump(mode="json")
        entry.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    write()
