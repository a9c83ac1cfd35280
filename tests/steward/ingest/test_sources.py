"""Sources: what is listed, what is read, what is refused; the same for folders and for objects in S3."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import InputTooLarge, InvalidTranscript, ObjectMissing
from ctxsteward.steward.ingest.items import LoadedItem, QuarantinedItem, sizes_of
from ctxsteward.steward.ingest.pipeline import load
from ctxsteward.steward.ingest.sources import FolderSource, ObjectSource, TranscriptSource, open_source
from ctxsteward.store.objects.memory import MemoryObjects

FILES = {
    "a.json": b'[{"role": "user", "content": "hi"}]',
    "a.json.session.json": b'{"principal": "ada"}',
    "team/b.jsonl": b'{"role": "user", "content": "hi"}\n',
    "team/2026/c.traj": b"{}",
    "README.md": b"no transcript",
    ".hidden/d.json": b"{}",
    ".e.json": b"{}",
}
LISTED = ["a.json", "team/2026/c.traj", "team/b.jsonl"]


def folder(path: Path) -> TranscriptSource:
    for name, data in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return open_source(str(path))


def objects(path: Path) -> TranscriptSource:
    store = MemoryObjects()
    for name, data in FILES.items():
        store.put(f"transcripts/{name}", data)
    store.put("transcripts-of-others/x.json", b"{}")
    return ObjectSource(store, "transcripts")


both = pytest.mark.parametrize("make", [folder, objects], ids=["folder", "objects"])


@both
def test_transcripts_are_listed_by_name_and_read(make: Callable[[Path], TranscriptSource], tmp_path: Path) -> None:
    source = make(tmp_path)
    items = list(source.items())
    assert [item.name for item in items] == LISTED
    assert [sizes_of(item.version)[0] for item in items] == [len(FILES[name]) for name in LISTED]
    assert {item.source for item in items} == {source.uri}
    assert items == list(source.items())
    read = [source.read(item.name, item.version, cap_bytes=1_000) for item in items]
    sidecar = "a.json.session.json"
    assert read[0] == LoadedItem(
        source="a.json",
        name="a.json",
        data=FILES["a.json"],
        sidecar=FILES[sidecar],
        sidecar_name=sidecar,
        written_seconds=int(items[0].version.partition("+")[0].partition("@")[2]) / 1e9,
    )
    assert [one.sidecar for one in read[1:]] == [None, None]


@both
def test_a_sidecar_that_appears_makes_another_version(make: Callable[[Path], TranscriptSource], tmp_path: Path) -> None:
    source = make(tmp_path)
    before = {item.name: item.version for item in source.items()}
    if isinstance(source, ObjectSource):
        source.objects.put("transcripts/team/b.jsonl.session.json", b"{}")
    else:
        (tmp_path / "team/b.jsonl.session.json").write_bytes(b"{}")
    after = {item.name: item.version for item in source.items()}
    assert [name for name in LISTED if before[name] != after[name]] == ["team/b.jsonl"]


CHAT = b'[{"role": "user", "content": "hi"}]'


class Beside(NamedTuple):
    id: str
    names: tuple[str, ...]
    told: dict[str, str | None]
    """The sidecar of each transcript."""
    orphans: tuple[str, ...] = ()


BESIDE = (
    Beside("whole name", ("t/a.jsonl", "t/a.jsonl.session.json"), {"t/a.jsonl": "t/a.jsonl.session.json"}),
    Beside("stem", ("t/a.jsonl", "t/a.session.json"), {"t/a.jsonl": "t/a.session.json"}),
    Beside(
        "both: the whole name wins",
        ("a.json", "a.json.session.json", "a.session.json"),
        {"a.json": "a.json.session.json"},
        ("a.session.json",),
    ),
    Beside(
        "one for two of a stem",
        ("a.json", "a.jsonl", "a.session.json"),
        {"a.json": None, "a.jsonl": None},
        ("a.session.json",),
    ),
    Beside("no transcript", ("b.json", "a.json.session.json"), {"b.json": None}, ("a.json.session.json",)),
    Beside("a folder off", ("t/a.json", "a.json.session.json"), {"t/a.json": None}, ("a.json.session.json",)),
    Beside("a slip in its case", ("a.json", "a.json.Session.JSON"), {"a.json": None}, ("a.json.Session.JSON",)),
    Beside("a slip in its name", ("a.json", "A.json.session.json"), {"a.json": None}, ("A.json.session.json",)),
    Beside("hidden", ("a.json", ".b.session.json"), {"a.json": None}),
)


@pytest.mark.parametrize("case", BESIDE, ids=[case.id for case in BESIDE])
@pytest.mark.parametrize("is_folder", [True, False], ids=["folder", "objects"])
def test_a_sidecar_has_either_name_and_one_of_no_transcript_is_named(
    case: Beside, is_folder: bool, tmp_path: Path
) -> None:
    store = MemoryObjects()
    for name in case.names:
        data = CHAT if name in case.told else b'{"status": "deleted"}'
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
        store.put(name, data)
    source: TranscriptSource = FolderSource(tmp_path) if is_folder else ObjectSource(store)
    outcomes = [load(source, item.name, item.version) for item in source.items()]
    told = {one.name: one.sidecar_name or None for one in outcomes if isinstance(one, LoadedItem)}
    refused = {one.name: one for one in outcomes if isinstance(one, QuarantinedItem)}
    assert (told, tuple(refused)) == (case.told, case.orphans)
    for one in refused.values():
        assert one.reason == "orphan_metadata"
        assert "beside no transcript" in one.detail
        assert "chat.jsonl.session.json" in one.detail
    for item in source.items():
        assert len(item.version.split("+")) == (2 if told.get(item.name) else 1)


@both
def test_what_is_too_large_is_refused_by_its_size(make: Callable[[Path], TranscriptSource], tmp_path: Path) -> None:
    source = make(tmp_path)
    item = next(iter(source.items()))
    with pytest.raises(InputTooLarge):
        source.read(item.name, item.version, cap_bytes=10)
    refused = load(source, item.name, item.version, cap_bytes=10)
    assert isinstance(refused, QuarantinedItem)
    assert (refused.name, refused.reason) == ("a.json", "too_large")


@both
def test_what_is_gone_is_quarantined(make: Callable[[Path], TranscriptSource], tmp_path: Path) -> None:
    source = make(tmp_path)
    refused = load(source, "gone.json", "5@0")
    assert isinstance(refused, QuarantinedItem)
    assert refused.reason == "unreadable"


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    (outside / "more").mkdir(parents=True)
    (outside / "secret.json").write_bytes(b"[]")
    (inside / "team").mkdir(parents=True)
    (inside / "a.json").write_bytes(b"[]")
    os.symlink(outside / "secret.json", inside / "file.json")
    os.symlink(outside, inside / "folder")
    os.symlink(inside / "a.json", inside / "again.json")
    os.symlink(inside, inside / "team" / "circle")
    os.symlink(inside / "self", inside / "self")
    source = FolderSource(inside)
    outcomes = {item.name: load(source, item.name, item.version) for item in source.items()}
    assert isinstance(outcomes.pop("a.json"), LoadedItem)
    assert sorted(outcomes) == ["file.json", "folder"]
    for refused in outcomes.values():
        assert isinstance(refused, QuarantinedItem)
        assert "a link" in refused.detail


def test_a_link_as_sidecar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[]")
    os.symlink("/etc/hostname", tmp_path / "a.json.session.json")
    source = FolderSource(tmp_path)
    (item,) = source.items()
    assert isinstance(load(source, item.name, item.version), QuarantinedItem)


@pytest.mark.parametrize("name", ["../x.json", "/etc/passwd", "a/../../x.json", "%2E%2E/x.json", "a//b.json", "%2Fetc"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidTranscript):
        FolderSource(tmp_path).read(name, "1@0", cap_bytes=100)


def test_every_file_name_has_a_printable_name_that_finds_it(tmp_path: Path) -> None:
    raw = [b"plain.json", b"100%.json", b"line\nbreak.json", b"\xff\xfe.json", "会议 记录.json".encode()]
    for name in raw:
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    source = FolderSource(tmp_path)
    items = list(source.items())
    assert all(item.name.isprintable() for item in items)
    assert "会议 记录.json" in [item.name for item in items]
    assert {source.read(item.name, item.version, cap_bytes=100).data for item in items} == set(raw)


def test_a_single_file_is_a_source(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_bytes(b"[]")
    source = open_source(f"file:{path}")
    (item,) = source.items()
    assert item.name == "one.txt"
    assert source.read(item.name, item.version, cap_bytes=10).data == b"[]"


def test_a_pipe_is_no_transcript(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    assert list(FolderSource(tmp_path).items()) == []
    with pytest.raises(InvalidTranscript):
        FolderSource(tmp_path).read("pipe.json", "0@0", cap_bytes=10)


@pytest.mark.parametrize("uri", ["store", "http://x/y", "gs://bucket/x", "s3://", "/no/such/folder"])
def test_a_uri_that_names_nothing_is_refused(uri: str) -> None:
    with pytest.raises(InputError):
        list(open_source(uri).items())


def test_a_prefix_of_a_bucket_is_a_source(moto: Any, aws_environment: None) -> None:
    server = moto.another_bucket()
    with server.client() as client:
        for name, data in FILES.items():
            client.put_object(Bucket=server.bucket, Key=f"runs/{name}", Body=data)
        client.put_object(Bucket=server.bucket, Key="runs-of-others/x.json", Body=b"{}")
    source = open_source(server.uri("runs"))
    try:
        items = list(source.items())
        assert [item.name for item in items] == LISTED
        assert source.uri == f"s3://{server.bucket}/runs"
        first = load(source, items[0].name, items[0].version)
        assert isinstance(first, LoadedItem)
        assert json.loads(first.sidecar or b"") == {"principal": "ada"}
        assert isinstance(load(source, items[0].name, items[0].version, cap_bytes=5), QuarantinedItem)
        with pytest.raises(ObjectMissing):
            source.objects.get("none.json")  # type: ignore[attr-defined]  # the bucket is the right one
    finally:
        source.close()
