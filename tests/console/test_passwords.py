"""No password of a URI comes back out: in errors, reports, checks and representations."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from ctxsteward.console.cli import cli
from ctxsteward.envelope import open_store
from ctxsteward.envelope.telemetry.sdk import Destination
from ctxsteward.schemas import ContextError, StoreError
from ctxsteward.schemas.errors import shown_uri, without_secrets
from ctxsteward.steward.ingest.sources import open_source
from ctxsteward.store.backend import open_location

from ..examples import examples

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(f"postgresql://ann:{SECRET}@db/x", "postgresql://ann:***@db/x", id="a password"),
        pytest.param(f"'postgresql://ann:{SECRET}@db'", "'postgresql://ann:***@db'", id="quoted"),
        pytest.param(f"'postgresql://ann:{SECRET}", "'postgresql://ann:***", id="cut short"),
        pytest.param(f"postgresql://ann:a/{SECRET}@db/x", "postgresql://ann:***@db/x", id="a slash in it"),
        pytest.param(f"postgresql://ann:1/{SECRET}@db/x", "postgresql://ann:***@db/x", id="it begins like a port"),
        pytest.param(f"postgresql://ann:a@{SECRET}@db/x", "postgresql://ann:***@db/x", id="an at in it"),
        pytest.param(f"postgresql://:{SECRET}@db", "postgresql://:***@db", id="no name"),
        pytest.param(f"postgresql://db/x?password={SECRET}", "postgresql://db/x?password=***", id="in the query"),
        pytest.param(f"s3://b?x=1&aws_secret={SECRET}&y=2", "s3://b?x=1&aws_secret=***&y=2", id="among other keys"),
        pytest.param(f"s3://AKIA:{SECRET}@b/p", "s3://AKIA:***@b/p", id="credentials of a bucket"),
        pytest.param(f"https://{SECRET}@host/x", "https://***@host/x", id="a token alone"),
        pytest.param(f"http://u:{SECRET}@proxy:3128: refused", "http://***@proxy:3128: refused", id="a proxy"),
        pytest.param(f"s3://b?endpoint=http://u:{SECRET}@h", "s3://b?endpoint=http://***@h", id="one in another"),
        pytest.param("http://127.0.0.1:9000: no", "http://127.0.0.1:9000: no", id="a port"),
        pytest.param("http://[::1]:9000/x", "http://[::1]:9000/x", id="an IPv6 address"),
        pytest.param("write postgresql://USER@HOST/DATABASE", "write postgresql://USER@HOST/DATABASE", id="a form"),
        pytest.param("write http://HOST:PORT/api", "write http://HOST:PORT/api", id="another form"),
        pytest.param("s3://team/a@b?region=eu", "s3://team/a@b?region=eu", id="an at in a path"),
        pytest.param("ann:pw@host is no URI", "ann:pw@host is no URI", id="no URI"),
    ],
)
def test_what_is_secret_in_a_uri_is_hidden_and_nothing_else(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


SCHEMES = ("postgresql", "postgres", "postgre", "Postgresql", "s3", "S3", "s3a", "http", "ftp", "redis", "x", "")
SEPARATORS = ("://", ":/", ":", "//", "/", ":///", ";//", "\\\\", ":/ /", " ://", "")
MISTYPED = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(SCHEMES),
        st.sampled_from(SEPARATORS),
        st.sampled_from(("ann", "AKIA1234", "ann bell", "a/b", "")),
        st.sampled_from((":", "::", ": ", ":/")),
        st.text(":/?#@&=; %", max_size=3),
        st.just(SECRET),
        st.text(":/?#&=; %", max_size=3),
        st.sampled_from(("@host/db", "@[host/db", "@", "@host:5432/db?sslmode=require", "@bucket/prefix", "@/db")),
    ),
)
"""URIs with a password before an at, mistyped in their scheme, their separators, their host."""
QUERIES = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(("postgresql", "postgres", "s3", "s3a", "x")),
        st.sampled_from(("://b/p", ":b", ":/b/p", "//b", ":")),
        st.sampled_from(("?", "&", ";", " ", "?x=1&", "??")),
        st.sampled_from(("password=", "aws_secret_access_key=", "secret=", "pasword=", "token = ", "")),
        st.just(SECRET),
        st.sampled_from(("", "&region=eu", " user=ann", "/x")),
    ),
)


@given(uri=MISTYPED | QUERIES)
@settings(max_examples=examples(300))
def test_a_mistyped_uri_is_shown_without_what_may_be_its_password(uri: str) -> None:
    assert SECRET not in shown_uri(uri)
    for door in (open_location, open_items, Destination.parse):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            said = ""
            try:
                with pretended():
                    door(uri)
            except ContextError as error:
                said = f"{error} {error!r} {vars(error)} {error.__cause__!r}"
            assert SECRET not in said


def open_items(uri: str) -> object:
    return list(open_source(uri).items())


@contextlib.contextmanager
def pretended() -> Iterator[None]:
    """No server is asked, and no name looked up, for the few URIs that are whole."""
    with pytest.MonkeyPatch.context() as patch:

        def refuse_all(*_: object, **__: object) -> object:
            raise StoreError("no server in this test")

        patch.setattr("ctxsteward.store.postgres_database.PostgresDatabase.__init__", refuse_all)
        patch.setattr("ctxsteward.store.objects.s3.S3Objects.open", refuse_all)
        yield


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        (f"postgresql:ann:{SECRET}@db/x", "postgresql:***@db/x"),
        (f"postgresql://ann:{SECRET}@db/x?a=1", "postgresql://ann:***@db/x"),
        (f"s3://AKIA:{SECRET}@bucket", "s3://AKIA:***@bucket"),
        (f"ann:{SECRET}@db", "ann:***@db"),
        ("s3://team/a@b?region=eu", "s3://team/a@b"),
        ("http://127.0.0.1:9000/x", "http://127.0.0.1:9000/x"),
        ("file:stores/a@b", "file:stores/a@b"),
        ("stores/a", "stores/a"),
        ("memory:", "memory:"),
    ],
)
def test_what_is_no_secret_in_a_uri_is_shown(uri: str, shown: str) -> None:
    assert shown_uri(uri) == shown


@pytest.mark.parametrize("pump", ["://", "a://b:", "://a@", "?a=", "&token=", "@", ":", "x", "[", "/"])
def test_hiding_is_linear(pump: str) -> None:
    assert len(without_secrets("s3://" + pump * 60_000)) < 2_000_000


URIS = (
    f"postgresql://ann:{SECRET}@db.internal/cards",
    f"postgres://ann:{SECRET}@[db/cards",
    f"s3://AKIA:{SECRET}@bucket/prefix",
    f"s3://bucket/p?endpoint=http://u:{SECRET}@proxy:1",
    f"s3://bucket/p?aws_secret_access_key={SECRET}",
    f"s3://[AKIA:{SECRET}@bucket",
    f"http://u:{SECRET}@host/x",
    f"ftp://{'u' * 60}:{SECRET}@host/x",
    f"prometheus=http://u:{SECRET}@h:x",
    f"otlp=ftp://u:{SECRET}@h",
)
DOORS: dict[str, Callable[[str, Path], object]] = {
    "open_store": lambda uri, root: open_store(uri, journal=root / "journal"),
    "open_source": lambda uri, root: list(open_source(uri).items()),
    "telemetry": lambda uri, root: Destination.parse(uri),
    "an error": lambda uri, root: refuse(StoreError(f"{uri}: no")),
}


def refuse(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("uri", URIS)
def test_no_error_shows_it(tmp_path: Path, door: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if (door, uri) == ("open_store", URIS[3]):
        uri = uri.replace("postgres", "postgrex")  # no server is asked; `test_no_lost_server_shows_it` does
    said = ""
    try:
        DOORS[door](uri, tmp_path)
    except (ContextError, ValueError) as error:
        said = f"{error} {error!r}"
    assert SECRET not in said


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://ann:{SECRET}@127.0.0.1:1/store?keys=k",
        f"postgres://127.0.0.1:1/store?keys=k&user=ann&password={SECRET}",
        f"postgresql://ann:{SECRET}@127.0.0.1:1/store?keys=k&none={SECRET}",
        f"postgresql://ann:{SECRET}@127.0.0.1:1/store",
        f"postgresql://ann@127.0.0.1:1/store?keys=k&objects=s3://AKIA:{SECRET}@bucket",
        f"postgresql://ann:{SECRET}@127.0.0.1:1/store?keys=k&schema={SECRET.upper()}",
    ],
)
def test_no_lost_server_shows_it(tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens there; the client library's own words are among what is said."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ContextError) as refused:
        open_store(uri)
    said = f"{refused.value} {refused.value!r} {refused.value.__cause__!r}"
    assert SECRET not in said
    result = CliRunner().invoke(cli, ["store", "ls", "--store", uri])
    assert (result.exit_code, SECRET in result.output + result.stderr) == (2, False)


COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "sessions": lambda uri: ["store", "ls", "--store", uri],
    "fsck": lambda uri: ["store", "fsck", "--store", uri],
    "cards": lambda uri: ["cards", "rebuild", "--store", uri],
    "steward": lambda uri: ["steward", "run", "--store", "file:s", "--transcripts", uri],
    "an option": lambda uri: ["store", "fsck", f"--{uri}"],
    "doctor": lambda uri: ["steward", "doctor", "--store", uri],
    "sessions, JSON": lambda uri: ["store", "ls", "--json", "--store", uri],
    "steward, JSON": lambda uri: ["steward", "status", "--json", "--store", uri],
    "doctor, JSON": lambda uri: ["steward", "doctor", "--json", "--store", uri],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_it(tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("file:s").close()
    monkeypatch.setenv("PREFECT_API_URL", f"ftp://u:{SECRET}@prefect/api")
    for uri in (
        URIS[2],
        URIS[4],
        URIS[6],
        f"postgresql:ann:{SECRET}@db",
        f"postgres//ann:{SECRET}@db",
        f"s3:/A:{SECRET}@b",
    ):
        result = CliRunner().invoke(cli, COMMANDS[command](uri))
        assert result.exit_code != 0
        assert result.output
        assert SECRET not in result.output + result.stderr + str(result.exception)


def test_no_representation_shows_it() -> None:
    destination: Any = Destination.parse(f"otlp=http://u:{SECRET}@collector:4318")
    assert SECRET in destination.url
    assert SECRET not in repr(destination) + str(destination)
    assert SECRET not in json.dumps(repr([destination]))
