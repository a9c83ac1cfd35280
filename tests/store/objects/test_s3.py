"""Objects in a bucket, over boto3 and a faulty network: what a put says when the network does not."""

from __future__ import annotations

import base64
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing

import pytest
from botocore.exceptions import ClientError

from ctxsteward.schemas import InputError, StoreUnavailable
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.objects.port import PutOutcome
from ctxsteward.store.objects.s3 import S3Objects
from ctxsteward.store.objects.s3_location import QUERY_KEYS, S3Location

from ...fault_proxy import Fault, FaultProxy
from ...s3_servers import S3Server, ministack_server
from .lookalike import Lookalike, Refusal, lookalike

KEY, BODY = "chain/000000000001.json", b"first"
SHORT = {"connect_timeout_seconds": 0.5, "read_timeout_seconds": 0.5, "read_attempts": 1}


@pytest.fixture
def objects(server: S3Server, proxy: FaultProxy) -> Iterator[S3Objects]:
    """Through the proxy."""
    with closing(S3Objects.open(server.uri("team", url=proxy.url), session=server.session)) as opened:
        yield opened


@pytest.fixture
def direct(server: S3Server) -> Iterator[S3Objects]:
    """Past the proxy: what is really there."""
    with closing(S3Objects.open(server.uri("team"), session=server.session)) as opened:
        yield opened


@pytest.fixture
def fake() -> Iterator[Lookalike]:
    with lookalike() as running:
        yield running


@pytest.fixture
def on_fake(fake: Lookalike, moto: S3Server) -> Iterator[S3Objects]:
    """A store on the look-alike, with moto's credentials."""
    with closing(S3Objects.open(moto.uri("team", url=fake.url), session=moto.session)) as opened:
        yield opened


# -- faults ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "outcome", "landed"),
    [
        ("pass", "committed", True),
        ("lost_reply", "unknown", True),
        ("error_after_apply", "unknown", True),
        ("conflict_409", "unknown", False),
        ("unavailable_503", "unknown", False),
        ("reset_before_apply", "unknown", False),
    ],
)
def test_a_put_is_one_attempt_and_says_what_it_knows(
    objects: S3Objects, direct: S3Objects, proxy: FaultProxy, fault: Fault, outcome: PutOutcome, landed: bool
) -> None:
    proxy.faults([fault])

    assert objects.put(KEY, BODY) == outcome

    assert {name: count for name, count in proxy.counts.items() if name != "forwarded"} == {fault: 1}
    assert [found.key for found in direct.list("")] == ([KEY] if landed else [])
    assert objects.put(KEY, b"second") == ("conflicted" if landed else "committed")
    assert objects.get(KEY) == (BODY if landed else b"second")


def test_the_sdks_own_retry_takes_our_write_for_somebody_elses(server: S3Server, proxy: FaultProxy) -> None:
    """Why a put is one attempt: boto3 as it comes answers 412 for a write that landed."""
    client = server.session.client("s3", endpoint_url=proxy.url)
    proxy.faults(["lost_reply"])

    with closing(client), pytest.raises(ClientError, match="PreconditionFailed"):
        client.put_object(Bucket=server.bucket, Key=KEY, Body=BODY, IfNoneMatch="*")

    with closing(S3Objects.open(server.uri(), session=server.session)) as there:
        assert there.get(KEY) == BODY


@pytest.mark.parametrize("fault", ["lost_reply", "unavailable_503", "reset_before_apply"])
def test_reads_lists_and_deletes_are_tried_again(server: S3Server, direct: S3Objects, fault: Fault) -> None:
    direct.put(KEY, BODY)
    with FaultProxy(server.url, every_request=True) as proxy:
        objects = S3Objects.open(server.uri("team", url=proxy.url), session=server.session)
        with closing(objects):
            proxy.faults([fault])
            assert objects.get(KEY) == BODY
            proxy.faults([fault])
            assert [found.key for found in objects.list("")] == [KEY]
            proxy.faults([fault])
            objects.delete(KEY)
        assert proxy.counts[fault] == 3
    assert list(direct.list("")) == []


def test_a_late_write_lands_after_the_client_has_given_up(server: S3Server, direct: S3Objects) -> None:
    """The outcome was unknown and it was right: absent when looked at, there a moment later."""
    with FaultProxy(server.url, slow_seconds=30) as proxy:
        objects = S3Objects.open(server.uri("team", url=proxy.url), session=server.session, **SHORT)
        with closing(objects):
            proxy.faults(["slow"])
            assert objects.put(KEY, BODY) == "unknown"
            assert list(direct.list("")) == []
            proxy.mode = "healthy"  # lets the held request go
            until = time.monotonic() + 10
            while not list(direct.list("")) and time.monotonic() < until:
                threading.Event().wait(0.01)
    assert direct.get(KEY) == BODY


def test_a_black_hole_holds_nobody_longer_than_the_timeouts(server: S3Server, direct: S3Objects) -> None:
    with FaultProxy(server.url) as proxy:
        proxy.mode = "black_hole"
        objects = S3Objects.open(server.uri("team", url=proxy.url), session=server.session, **SHORT)
        with closing(objects):
            started = time.monotonic()
            assert objects.put(KEY, BODY) == "unknown"
            with pytest.raises(StoreUnavailable, match="Read timeout on endpoint URL"):
                objects.get(KEY)
            with pytest.raises(StoreUnavailable, match="Read timeout"):
                list(objects.list(""))
            assert time.monotonic() - started < 6  # three calls of 0.5 s, one of which waits 1 s for a go-ahead
    assert list(direct.list("")) == []


def test_a_dead_endpoint_is_unknown_for_puts_and_unavailable_for_reads(
    objects: S3Objects, proxy: FaultProxy, server: S3Server
) -> None:
    objects.put(KEY, BODY)
    proxy.mode = "dead"

    assert objects.put("chain/000000000002.json", BODY) == "unknown"
    for ask in (lambda: objects.get(KEY), lambda: list(objects.list("")), lambda: objects.delete(KEY), objects.probe):
        with pytest.raises(StoreUnavailable, match=f"^s3://{server.bucket}/team at {proxy.url}: .*Could not connect"):
            ask()

    proxy.mode = "healthy"
    assert objects.get(KEY) == BODY


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (412, "PreconditionFailed", "conflicted"),
        (409, "ConditionalRequestConflict", "unknown"),
        (409, "OperationAborted", "unknown"),
        (500, "InternalError", "unknown"),
        (502, "BadGateway", "unknown"),
        (503, "ServiceUnavailable", "unknown"),
        (429, "TooManyRequests", "unknown"),
        (400, "RequestTimeout", "unknown"),
        (400, "BadDigest", "unknown"),
        (400, "IncompleteBody", "unknown"),
    ],
)
def test_answers_that_settle_nothing_are_unknown(
    fake: Lookalike, on_fake: S3Objects, status: int, code: str, outcome: PutOutcome
) -> None:
    fake.refusals = [Refusal("PUT", status, code)]

    assert on_fake.put(KEY, BODY) == outcome


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (404, "NoSuchBucket", "make the bucket, or correct the URI"),
        (400, "InvalidBucketName", "correct the URI"),
        (403, "AccessDenied", "allow s3:GetObject, s3:PutObject"),
        (403, "InvalidAccessKeyId", "check the credentials that boto3 finds"),
        (403, "SignatureDoesNotMatch", "check the credentials that boto3 finds"),
        (400, "ExpiredToken", "check the credentials that boto3 finds"),
        (403, "RequestTimeTooSkewed", "set this machine's clock"),
        (501, "NotImplemented", "use an endpoint that has conditional writes"),
        (400, "KMS.NotFoundException", "try again when it answers"),
    ],
)
def test_a_certain_refusal_is_one_line_with_place_reason_and_what_to_do(
    fake: Lookalike, on_fake: S3Objects, status: int, code: str, hint: str
) -> None:
    fake.refusals = [Refusal("PUT", status, code), Refusal("GET", status, code)]

    with pytest.raises(StoreUnavailable) as caught:
        on_fake.put(KEY, BODY)

    assert str(caught.value).startswith(f"{on_fake.location}: {KEY} was not written: {code}: said so; {hint}")
    assert "\n" not in str(caught.value)
    if status != 501:  # which is retried for reads
        with pytest.raises(StoreUnavailable, match=code):
            on_fake.get(KEY)


def test_a_missing_bucket_is_said_by_a_real_server(moto: S3Server) -> None:
    nowhere = S3Server(moto.url)
    with closing(S3Objects.open(nowhere.uri(), session=nowhere.session)) as objects:
        for ask in (lambda: objects.put(KEY, BODY), lambda: objects.get(KEY), lambda: list(objects.list(""))):
            with pytest.raises(StoreUnavailable, match=r"NoSuchBucket: .*; make the bucket, or correct the URI"):
                ask()


def test_missing_credentials_are_said(aws_environment: None, monkeypatch: pytest.MonkeyPatch, moto: S3Server) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with closing(S3Objects.open(moto.uri())) as objects, pytest.raises(StoreUnavailable, match="check the credentials"):
        objects.put(KEY, BODY)


def test_credentials_come_from_boto3s_own_chain(aws_environment: None, server: S3Server) -> None:
    with closing(S3Objects.open(server.uri())) as objects:
        assert objects.put(KEY, BODY) == "committed"


# -- bodies ------------------------------------------------------------------------------------------------


def test_a_body_that_breaks_off_is_not_taken_for_the_object(fake: Lookalike, on_fake: S3Objects) -> None:
    on_fake.put(KEY, BODY)
    fake.cut_off_bytes = 2

    with pytest.raises(StoreUnavailable, match=KEY):
        on_fake.get(KEY)


def test_a_body_that_is_not_its_checksum_is_damaged(fake: Lookalike, on_fake: S3Objects) -> None:
    on_fake.put(KEY, BODY)
    fake.headers = {"x-amz-checksum-crc32": "AAAAAA=="}

    with pytest.raises(Damaged, match=f"{KEY}: its checksum differs"):
        on_fake.get(KEY)


def test_the_checksum_is_kept_by_the_server(server: S3Server, direct: S3Objects) -> None:
    direct.put(KEY, BODY)

    with server.client() as client:
        head = client.head_object(Bucket=server.bucket, Key=f"team/{KEY}", ChecksumMode="ENABLED")

    assert base64.b64decode(head["ChecksumCRC32"]) == zlib.crc32(BODY).to_bytes(4, "big")


def test_encryption_is_asked_for(server: S3Server) -> None:
    with closing(S3Objects.open(server.uri(sse="AES256"), session=server.session)) as objects:
        objects.put(KEY, BODY)

    with server.client() as client:
        assert client.head_object(Bucket=server.bucket, Key=KEY)["ServerSideEncryption"] == "AES256"


def test_stores_with_different_prefixes_share_a_bucket_and_nothing_else(server: S3Server, direct: S3Objects) -> None:
    with closing(S3Objects.open(server.uri("team-b"), session=server.session)) as other:
        assert direct.put(KEY, BODY) == "committed"
        assert other.put(KEY, b"theirs") == "committed"

        assert [found.key for found in other.list("")] == [KEY]
        assert (direct.get(KEY), other.get(KEY)) == (BODY, b"theirs")


@pytest.mark.parametrize("name", ["moto", "ministack"])
def test_deleting_leaves_no_version_behind(request: pytest.FixtureRequest, name: str) -> None:
    server: S3Server = request.getfixturevalue(name).another_bucket(versioned=True)
    with closing(S3Objects.open(server.uri("team"), session=server.session)) as objects, server.client() as client:
        objects.put(KEY, BODY)
        objects.put(f"{KEY}.other", BODY)
        for body in (b"older", b"newer"):  # behind the store's back
            client.put_object(Bucket=server.bucket, Key=f"team/{KEY}", Body=body)
        client.delete_object(Bucket=server.bucket, Key=f"team/{KEY}")

        objects.delete(KEY)

        left = client.list_object_versions(Bucket=server.bucket)
        assert [version["Key"] for version in left["Versions"]] == [f"team/{KEY}.other"]
        assert "DeleteMarkers" not in left


def test_a_listing_out_of_order_is_refused(fake: Lookalike, on_fake: S3Objects) -> None:
    on_fake.put("a", BODY)
    on_fake.put("b", BODY)
    fake.backwards = True

    with pytest.raises(StoreUnavailable, match="lists a after b; use one in byte order"):
        list(on_fake.list(""))


def test_objects_outlive_their_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        ministack_server(tmp_path_factory.mktemp("durable")) as server,
        closing(S3Objects.open(server.uri("team"), session=server.session)) as objects,
    ):
        assert objects.put(KEY, BODY) == "committed"
        server.kill()
        assert objects.put("chain/000000000002.json", BODY) == "unknown"
        server.restart()
        assert objects.put(KEY, b"second") == "conflicted"
        assert objects.get(KEY) == BODY


# -- the probe ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["moto", "ministack"])
def test_the_probe_passes_a_server_that_keeps_the_first_and_leaves_nothing(
    request: pytest.FixtureRequest, name: str
) -> None:
    server: S3Server = request.getfixturevalue(name).another_bucket()
    with closing(S3Objects.open(server.uri("team"), session=server.session)) as objects:
        objects.probe()

        assert list(objects.list("")) == []


def test_the_probe_refuses_an_endpoint_that_overwrites(fake: Lookalike, on_fake: S3Objects) -> None:
    with pytest.raises(InputError) as caught:
        on_fake.probe()

    assert str(caught.value) == (
        f"{on_fake.location} accepts If-None-Match and overwrites; commits would be lost: use Amazon S3 or another "
        "endpoint with conditional writes"
    )
    assert fake.url in str(caught.value)
    assert fake.objects == {}


def test_the_probe_refuses_an_endpoint_that_creates_nothing(fake: Lookalike, on_fake: S3Objects) -> None:
    fake.refusals = [Refusal("PUT", 412, "PreconditionFailed")]

    with pytest.raises(InputError, match="refuses to create a free key"):
        on_fake.probe()


@pytest.mark.parametrize("faults", [["lost_reply"], ["pass", "lost_reply"], ["conflict_409", "conflict_409"]])
def test_a_probe_that_could_not_be_judged_is_no_verdict(
    objects: S3Objects, direct: S3Objects, proxy: FaultProxy, faults: list[Fault]
) -> None:
    proxy.faults(faults)

    with pytest.raises(StoreUnavailable, match="try again later"):
        objects.probe()

    assert list(direct.list("")) == []


# -- places ------------------------------------------------------------------------------------------------


def test_everything_in_a_uri_is_read() -> None:
    uri = (
        "s3://team.state-1/a/b/?endpoint=https%3A%2F%2Fs3.example%3A9000&region=eu-west-1&path_style=true"
        "&sse=aws:kms&sse_kms_key_id=alias/x"
    )

    assert S3Location.parse(uri) == S3Location(
        uri=uri,
        bucket="team.state-1",
        folder="a/b/",
        endpoint="https://s3.example:9000",
        region="eu-west-1",
        path_style=True,
        sse="aws:kms",
        sse_kms_key_id="alias/x",
    )


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("s3://", "it is not s3://BUCKET"),
        ("s3:///prefix", "it is not s3://BUCKET"),
        ("s3://user:secret@bucket/x", "it is not s3://BUCKET"),
        ("s3://bucket/x#y", "it is not s3://BUCKET"),
        ("s3://bucket/a/../b", "key prefix"),
        ("s3://bucket/a//b", "key prefix"),
        ("s3://bucket/" + "a/" * 101, "its prefix has 201 characters; use at most 200"),
        ("s3://bucket?enpoint=http://x", "unknown query key 'enpoint'; the allowed ones are " + ", ".join(QUERY_KEYS)),
        ("s3://bucket?region=", "`region` is empty; give it a value or leave it out"),
        ("s3://bucket?region=a&region=b", "a query key stands twice"),
        ("s3://bucket?endpoint=127.0.0.1:9000", "`endpoint` is not http"),
        ("s3://bucket?endpoint=http://me:secret@host", "`endpoint` is not http"),
        ("s3://bucket?path_style=yes", "`path_style` is 'yes'; write 1 or 0"),
        ("s3://bucket?sse=rot13", "`sse` is 'rot13'; choose one of AES256, aws:kms, aws:kms:dsse"),
        ("s3://bucket?sse=AES256&sse_kms_key_id=k", "a key id needs kms"),
    ],
)
def test_a_bad_uri_is_refused_without_its_secrets(uri: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        S3Location.parse(uri)

    assert message in str(caught.value)
    assert "secret" not in str(caught.value).replace("user:secret@bucket", "")


def test_a_configuration_that_boto3_refuses_is_an_input_error(moto: S3Server) -> None:
    with pytest.raises(InputError, match="correct the URI or boto3's configuration"):
        S3Objects.open("s3://bucket?region=no%20region", session=moto.session)


def test_without_boto3_the_extra_is_named() -> None:
    program = "import sys; sys.modules['boto3'] = None\nfrom ctxsteward.store.backend import open_bucket\nopen_bucket('s3://b/p')"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (
        done.stderr.strip().splitlines()[-1].endswith("InputError: s3://b/p needs boto3: pip install 'ctxsteward[s3]'")
    )
