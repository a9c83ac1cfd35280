"""What every object store promises, asked of all of them: memory, files, S3 on two servers, a real bucket if named."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import ObjectMissing
from ctxsteward.store.names import MAX_KEY_CHARS, MAX_KEY_PART_CHARS, numbered, part_of
from ctxsteward.store.objects.port import ObjectStore

from ...examples import examples
from .conftest import Places

WRITERS = 16


def keys_of(objects: ObjectStore, prefix: str = "", after: str = "") -> list[str]:
    return [found.key for found in objects.list(prefix, after=after)]


# -- one object --------------------------------------------------------------------------------------------


def test_an_absent_object_is_missing_by_name(objects: ObjectStore) -> None:
    with pytest.raises(ObjectMissing, match=r"a/b\.json: no such object") as caught:
        objects.get("a/b.json")

    assert caught.value.key == "a/b.json"
    assert keys_of(objects) == []


def test_a_put_is_there_whole(objects: ObjectStore) -> None:
    before = time.time()

    assert objects.put("a/b.json", b"body") == "committed"

    assert objects.get("a/b.json") == b"body"
    [found] = objects.list("")
    assert found[:2] == ("a/b.json", 4)
    assert abs(found.modified_seconds - before) < 60


def test_a_second_put_changes_nothing(objects: ObjectStore) -> None:
    assert objects.put("a/b.json", b"first") == "committed"

    assert [objects.put("a/b.json", body) for body in (b"second", b"", b"first")] == ["conflicted"] * 3
    assert objects.get("a/b.json") == b"first"


def test_of_sixteen_writers_of_one_key_exactly_one_has_committed(places: Places) -> None:
    objects = places.fresh()
    start = threading.Barrier(WRITERS)

    def write(writer: int) -> str:
        start.wait(30)
        return objects.put("chain/000000000001.json", f"writer {writer}".encode())

    with ThreadPoolExecutor(WRITERS) as pool:
        outcomes = list(pool.map(write, range(WRITERS)))

    assert sorted(outcomes) == ["committed"] + ["conflicted"] * (WRITERS - 1)
    assert objects.get("chain/000000000001.json") == f"writer {outcomes.index('committed')}".encode()


def test_writers_of_different_keys_do_not_disturb_each_other(objects: ObjectStore) -> None:
    wanted = {numbered(f"folder-{n % 3}", n): f"{n}".encode() for n in range(WRITERS)}

    with ThreadPoolExecutor(WRITERS) as pool:
        outcomes = list(pool.map(objects.put, wanted, wanted.values()))

    assert set(outcomes) == {"committed"}
    assert {key: objects.get(key) for key in keys_of(objects)} == wanted


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(bytes(range(256)), id="every byte"),
        pytest.param(b"\r\n0\r\n\r\n", id="looks like the end of a chunked body"),
        pytest.param("§128 汉字\u0000".encode(), id="text with NUL"),
        pytest.param(random.Random(7).randbytes(5 << 20), id="5 MiB"),
    ],
)
def test_bodies_come_back_byte_for_byte(objects: ObjectStore, body: bytes) -> None:
    assert objects.put("body", body) == "committed"

    assert objects.get("body") == body
    assert [found.size_bytes for found in objects.list("body")] == [len(body)]


def test_a_deleted_object_is_gone_and_its_key_is_free(objects: ObjectStore) -> None:
    objects.put("a/1", b"one")
    objects.put("a/2", b"two")

    objects.delete("a/1")
    objects.delete("a/1")
    objects.delete("never/there")

    assert keys_of(objects) == ["a/2"]
    with pytest.raises(ObjectMissing):
        objects.get("a/1")
    assert objects.put("a/1", b"again") == "committed"
    assert objects.get("a/1") == b"again"


# -- listing -----------------------------------------------------------------------------------------------


def test_keys_are_listed_in_byte_order_of_the_whole_key(objects: ObjectStore) -> None:
    """``-`` and ``.`` sort before the slash, digits and letters after it; folders must not get in between."""
    keys = ["a/b", "a-b/c", "a.json", "a0/c", "a/B", "A", "a~", "a/b.json", "a%2Fb", "b", "a/c/d", "a/c-d"]
    for key in keys:
        objects.put(key, b"")

    assert keys_of(objects) == sorted(keys)
    for after in sorted(keys):
        assert keys_of(objects, after=after) == [key for key in sorted(keys) if key > after]


LISTINGS = [
    ("", "", ["p/x/1", "p/x/2", "p/y/1", "px", "q"]),
    ("p/x/", "", ["p/x/1", "p/x/2"]),
    ("p/x", "", ["p/x/1", "p/x/2"]),
    ("p", "", ["p/x/1", "p/x/2", "p/y/1", "px"]),
    ("p/", "p/x/1", ["p/x/2", "p/y/1"]),
    ("p/x/", "p/x/2", []),
    ("p/y/", "p/x/2", ["p/y/1"]),  # a start before the prefix
    ("p/x/", "q", []),  # a start behind it
    ("p/x/1", "", ["p/x/1"]),
    ("none/", "", []),
    ("q/", "", []),  # an object is no folder
]


def test_a_listing_has_the_prefix_and_starts_after(places: Places) -> None:
    objects = places.fresh()
    for key in ("p/x/1", "p/x/2", "p/y/1", "px", "q"):
        objects.put(key, b"")

    assert [(prefix, after, keys_of(objects, prefix, after)) for prefix, after, _ in LISTINGS] == LISTINGS


def test_a_listing_goes_on_past_a_servers_page(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")  # of a page, as moto's server in this process has them
    objects, count = places.fresh(), 23 if places.kind.startswith("s3-") else 1_003
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda n: objects.put(numbered("log", n), b""), range(count))) == {"committed"}

    assert keys_of(objects, "log/") == [numbered("log", n) for n in range(count)]
    assert keys_of(objects, "log/", numbered("log", count - 3)) == [numbered("log", n) for n in range(count - 2, count)]


# -- keys --------------------------------------------------------------------------------------------------


BAD_KEYS = {
    "empty": "",
    "absolute": "/a",
    "a folder": "a/",
    "an empty part": "a//b",
    "the folder above": "..",
    "a way out": "a/../../b",
    "a dot": "a/./b",
    "backslash": "a\\b",
    "space": "a b",
    "NUL": "a\x00b",
    "line end": "a\n",
    "not ASCII": "straße",
    "what a file store calls unfinished": "a/b.tmp",
    "a part too long": "a" * (MAX_KEY_PART_CHARS + 1),
    f"over {MAX_KEY_CHARS} characters": "/".join(["a" * 99] * 9),
}


def test_a_bad_key_is_refused_everywhere(objects: ObjectStore) -> None:
    for what, key in BAD_KEYS.items():
        calls = [partial(objects.put, key, b""), partial(objects.get, key), partial(objects.delete, key)]
        for call in calls:
            with pytest.raises(InputError, match="is not usable; encode its parts"):
                pytest.fail(f"{what}: {call()}")
    assert keys_of(objects) == []


def test_a_bad_prefix_is_refused_everywhere(objects: ObjectStore) -> None:
    for prefix in ("/", "../", "a/../", "a//", "a b", "a\\", "\x00"):
        with pytest.raises(InputError, match="is not usable; encode its parts"):
            pytest.fail(f"{prefix!r}: {keys_of(objects, prefix)}")


def test_every_name_of_a_tenant_has_a_usable_part(objects: ObjectStore) -> None:
    for name in ("acme", "a/b", "..", ".", "Straße", "客户", "x.tmp", "C:\\x", "a" * 500, "%", "~"):
        part = part_of(name)
        key = numbered(f"profiles/{part}/{part}/versions", 1)

        assert objects.put(key, name.encode()) == "committed", name
        assert keys_of(objects, f"profiles/{part}/") == [key]


# -- against a dictionary ----------------------------------------------------------------------------------

KEYS = st.sampled_from([f"{folder}/{n}.json" for folder in ("a", "a-b", "a0", "a/c") for n in range(3)])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.binary(max_size=20)),
        st.tuples(st.just("get"), KEYS, st.just(b"")),
        st.tuples(st.just("delete"), KEYS, st.just(b"")),
        st.tuples(st.just("list"), KEYS, st.sampled_from([b"", b"a", b"a/", b"a-b/", b"a/c/", b"z"])),
    ),
    max_size=12,
)


def test_any_history_is_that_of_a_dictionary(places: Places) -> None:
    @settings(max_examples=min(places.examples, examples(100)))
    @given(STEPS)
    def behaves(steps: list[tuple[str, str, bytes]]) -> None:
        objects, model = places.fresh(), dict[str, bytes]()
        for verb, key, data in steps:
            if verb == "put":
                assert objects.put(key, data) == ("conflicted" if key in model else "committed")
                model.setdefault(key, data)
            elif verb == "delete":
                objects.delete(key)
                model.pop(key, None)
            elif verb == "list":
                prefix = data.decode()
                assert keys_of(objects, prefix, key) == sorted(k for k in model if k.startswith(prefix) and k > key)
            elif key in model:
                assert objects.get(key) == model[key]
            else:
                with pytest.raises(ObjectMissing):
                    objects.get(key)
        assert [(found.key, found.size_bytes) for found in objects.list("")] == [
            (key, len(model[key])) for key in sorted(model)
        ]

    behaves()
