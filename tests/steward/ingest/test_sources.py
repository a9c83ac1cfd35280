"""Sources: what is listed, what is read, what is refused; the same for folders and for objects in S3."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxsteward.envelope.objects.memory import MemoryObjects
from ctxsteward.schemas import InputError, InputTooLarge, InvalidTranscript, ObjectMissing
from ctxsteward.steward.ingest import FolderSource, ObjectSource, Quarantined, Source, load, open_source
from ctxsteward.steward.ingest.items import Loaded

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


def folder(path: Path) -> Source:
    for name, data in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return open_source(str(path))


def objects(path: Path) -> Source:
    store = MemoryObjects()
    for name, data in FILES.items():
        store.put(f"transcripts/{name}", data)
    store.put("transcripts-of-others/x.json", b"{}")
    return ObjectSource(store, "transcripts")


both = pytest.mark.parametrize("make", [folder, objects], ids=["folder", "objects"])


@both
def test_transcripts_are_listed_by_name_and_read(make: Callable[[Path], Source], tmp_path: Path) -> None:
    source = make(tmp_path)
    items = list(source.items())
    assert [item.name for item in items] == LISTED
    assert [item.size_bytes for item in items] == [len(FILES[name]) for name in LISTED]
    assert items == list(source.items())
    read = [source.read(item.name, item.version, cap_bytes=1_000) for item in items]
    assert read[0] == Loaded(source="a.json", name="a.json", data=FILES["a.json"], sidecar=FILES["a.json.session.json"])
    assert [one.sidecar for one in read[1:]] == [None, None]


@both
def test_a_sidecar_that_appears_makes_another_version(make: Callable[[Path], Source], tmp_path: Path) -> None:
    source = make(tmp_path)
    before = {item.name: item.version for item in source.items()}
    if isinstance(source, ObjectSource):
        source.objects.put("transcripts/team/b.jsonl.session.json", b"{}")
    else:
        (tmp_path / "team/b.jsonl.session.json").write_bytes(b"{}")
    after = {item.name: item.version for item in source.items()}
    assert [name for name in LISTED if before[name] != after[name]] == ["team/b.jsonl"]


@both
def test_what_is_too_large_is_refused_by_its_size(make: Callable[[Path], Source], tmp_path: Path) -> None:
    source = make(tmp_path)
    item = next(iter(source.items()))
    with pytest.raises(InputTooLarge):
        source.read(item.name, item.version, cap_bytes=10)
    refused = load(source, item.name, item.version, cap_bytes=10)
    assert isinstance(refused, Quarantined)
    assert (refused.name, refused.reason) == ("a.json", "too_large")


@both
def test_what_is_gone_is_quarantined(make: Callable[[Path], Source], tmp_path: Path) -> None:
    source = make(tmp_path)
    refused = load(source, "gone.json", "5@0")
    assert isinstance(refused, Quarantined)
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
    assert isinstance(outcomes.pop("a.json"), Loaded)
    assert sorted(outcomes) == ["file.json", "folder"]
    for refused in outcomes.values():
        assert isinstance(refused, Quarantined)
        assert "a link" in refused.detail


def test_a_link_as_sidecar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[]")
    os.symlink("/etc/hostname", tmp_path / "a.json.session.json")
    source = FolderSource(tmp_path)
    (item,) = source.items()
    assert isinstance(load(source, item.name, item.version), Quarantined)


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
        assert isinstance(first, Loaded)
        assert json.loads(first.sidecar or b"") == {"principal": "ada"}
        assert isinstance(load(source, items[0].name, items[0].version, cap_bytes=5), Quarantined)
        with pytest.raises(ObjectMissing):
            source.objects.get("none.json")  # type: ignore[attr-defined]  # the bucket is the right one
    finally:
        source.close()
