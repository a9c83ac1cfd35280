"""Something that is not S3 answers in its place: nothing is committed, read, listed or gone on such a word."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

import pytest

from ctxsteward.schemas import StoreUnavailable
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.crypto.hash_chain import Chain
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.objects.port import Patience
from ctxsteward.store.objects.s3 import S3Objects

from ...fault_proxy import Altered, FaultProxy, Reply
from ...s3_servers import S3Server

KEY, BODY = "chain/000000000001.json", b"first"
HTML = b"<!DOCTYPE html><html><body>Sign in to the network</body></html>"
XHTML = b"<html><body>Sign in</body></html>"
LIST = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
Change = Callable[[Reply], Reply]


@pytest.fixture(scope="module")
def server(moto: S3Server) -> S3Server:
    return moto.another_bucket()


@pytest.fixture(scope="module")
def direct(server: S3Server) -> Iterator[S3Objects]:
    """Past the proxy: what is really there."""
    with closing(S3Objects.open(server.uri("team"), session=server.session)) as opened:
        yield opened


@pytest.fixture(scope="module")
def network(server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(server.url, every_request=True) as running:
        yield running


@pytest.fixture
def proxy(network: FaultProxy) -> FaultProxy:
    network.faults([])
    return network


@pytest.fixture(scope="module")
def through(server: S3Server, network: FaultProxy) -> Iterator[S3Objects]:
    more = {"connect_timeout_seconds": 1, "read_timeout_seconds": 2, "read_attempts": 1}
    with closing(S3Objects.open(server.uri("team", url=network.url), session=server.session, **more)) as opened:
        yield opened


@pytest.fixture
def objects(through: S3Objects, direct: S3Objects, proxy: FaultProxy) -> Iterator[S3Objects]:
    """Through the proxy; empty again afterwards."""
    yield through
    proxy.faults([])
    for found in list(direct.list("")):
        direct.delete(found.key)


def page(status: int, body: bytes = HTML, **headers: str) -> Change:
    """Somebody else's page, whatever was asked."""
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return lambda reply: Reply(status, "said", [("Content-Type", "text/html"), *named], body)


def without(*names: str) -> Change:
    def change(reply: Reply) -> Reply:
        return reply._replace(headers=[pair for pair in reply.headers if pair[0].lower() not in names])

    return change


def status(number: int) -> Change:
    return lambda reply: reply._replace(status=number)


def body(data: bytes) -> Change:
    return lambda reply: reply._replace(body=data)


class Case(NamedTuple):
    id: str
    change: Change


PORTAL = [
    Case("a captive portal's page", page(200)),
    Case("its page, well-formed", page(200, XHTML)),
    Case("its page from a file server", page(200, XHTML, ETag='"abc"', Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT")),
    Case("an empty 200", page(200, b"")),
    Case("201", page(201, b"")),
    Case("202", page(202, b"")),
    Case("203 a proxy's own", page(203, b"")),
    Case("206", page(206, b"part")),
    Case("JSON", page(200, b'{"ok": true}')),
    Case("302 to a login page", page(302, HTML, Location="http://127.0.0.1:9/login")),
    Case("307 to a login page", page(307, HTML, Location="http://127.0.0.1:9/login")),
    Case("401 of a proxy", page(401)),
    Case("403 of a firewall", page(403)),
    Case("403, well-formed", page(403, XHTML)),
    Case("404 of a web server", page(404)),
    Case("404 without a word", page(404, b"")),
    Case("407 of a proxy", page(407)),
    Case("413 of a proxy", page(413)),
    Case("502 of a balancer", page(502)),
    Case("504 of a balancer", page(504, b"")),
]
PUTS = [
    *PORTAL,
    Case("204", page(204, b"")),
    Case("S3's own without an ETag", without("etag")),
    Case("S3's own as 204", lambda reply: status(204)(reply)._replace(body=b"")),
    Case("S3's own as 202", status(202)),
    Case("S3's own as 206", status(206)),
    Case("S3's own with a page behind it", body(HTML)),
    Case(
        "another checksum", lambda reply: reply._replace(headers=[("x-amz-checksum-crc32", "AAAAAA=="), ("ETag", "x")])
    ),
]
GETS = [
    *PORTAL,
    Case("204", page(204, b"")),
    Case("S3's own without an ETag", without("etag")),
    Case("without the day it is of", without("last-modified")),
    Case("as a part", status(206)),
    Case("as accepted", status(202)),
    Case("cut off", lambda reply: reply._replace(body=reply.body[:2], lies=True)),
]
LISTS = [
    *PORTAL,
    Case("204", page(204, b"")),
    Case("an empty body", body(b"")),
    Case("half a body", lambda reply: reply._replace(body=reply.body[: len(reply.body) // 2])),
    Case("of another place", body(LIST.replace(b"<Is", b"<Prefix>elsewhere/</Prefix><Is"))),
    Case("of another bucket", body(LIST.replace(b"<Is", b"<Name>elsewhere</Name><Is"))),
    Case("not saying whether there is more", body(b"<ListBucketResult></ListBucketResult>")),
    Case("more and no way there", body(LIST.replace(b"false", b"true"))),
    Case("no more and a way there", body(LIST.replace(b"</L", b"<NextContinuationToken>x</NextContinuationToken></L"))),
    Case(
        "fewer than it counts", lambda reply: reply._replace(body=re.sub(b"<Contents>.*</Contents>", b"", reply.body))
    ),
    Case(
        "a key of somewhere else", lambda reply: reply._replace(body=reply.body.replace(b"team/chain", b"them/chain"))
    ),
    Case("a key twice", lambda reply: reply._replace(body=re.sub(b"(<Contents>.*</Contents>)", rb"\1\1", reply.body))),
    Case(
        "another operation's", lambda reply: reply._replace(body=reply.body.replace(b"ListBucketResult", b"Versions"))
    ),
]
DELETES = [*PORTAL, Case("gone, it says", page(204, b""))]


def named(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.id for case in cases])


@named(PUTS)
def test_a_put_that_something_else_answers_is_unknown_and_lands_once(
    objects: S3Objects, direct: S3Objects, proxy: FaultProxy, case: Case
) -> None:
    for number, forward in enumerate((True, False)):
        proxy.faults([Altered("said", case.change, forward)])
        assert objects.put(f"other/{number}", BODY) == "unknown"

        proxy.faults([Altered("said", case.change, forward)])
        chain = Chain(objects, f"chain{number}", AddressKey(b"k" * 32), patience=Patience(first_pause_seconds=0.001))
        link = chain.append(None, {"text": "acknowledged"})

        there = Chain(direct, f"chain{number}", AddressKey(b"k" * 32))
        assert [found.commit_id for found in there.links()] == [link.commit_id]


@named(GETS)
def test_what_something_else_answers_is_no_object_and_no_proof_that_there_is_none(
    objects: S3Objects, direct: S3Objects, proxy: FaultProxy, case: Case
) -> None:
    direct.put(KEY, BODY)
    proxy.faults([Altered("said", case.change)])

    with pytest.raises(StoreUnavailable, match=KEY):
        objects.get(KEY)

    assert objects.get(KEY) == BODY


def test_a_shortened_body_with_a_fitting_length_is_told_by_its_checksum(
    objects: S3Objects, direct: S3Objects, proxy: FaultProxy
) -> None:
    direct.put(KEY, BODY)
    proxy.faults([Altered("said", body(BODY[:3]))] * 2)

    with pytest.raises(Damaged, match=f"{KEY}: its checksum differs"):
        objects.get(KEY)


@named(LISTS)
def test_what_something_else_answers_is_no_listing(
    objects: S3Objects, direct: S3Objects, proxy: FaultProxy, case: Case
) -> None:
    direct.put(KEY, BODY)
    proxy.faults([Altered("said", case.change)])

    with pytest.raises(StoreUnavailable):
        list(objects.list("chain/"))

    assert [found.key for found in objects.list("chain/")] == [KEY]


@named(DELETES)
def test_an_object_is_gone_when_it_is_seen_to_be_gone(
    objects: S3Objects, direct: S3Objects, proxy: FaultProxy, case: Case
) -> None:
    direct.put(KEY, BODY)
    proxy.faults(lambda request: Altered("said", case.change, False) if request.method == "DELETE" else "pass")

    with pytest.raises(StoreUnavailable):
        objects.delete(KEY)
    assert direct.get(KEY) == BODY

    proxy.faults([])
    objects.delete(KEY)
    assert list(direct.list("")) == []


def test_pages_without_an_end_end(objects: S3Objects, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxsteward.store.objects.s3.MAX_EMPTY_PAGES", 5)
    turns = iter(range(1000))
    proxy.faults(
        lambda request: Altered(
            "said",
            lambda reply: body(
                LIST.replace(b"false", b"true").replace(
                    b"</L", b"<NextContinuationToken>%d</NextContinuationToken></L" % next(turns)
                )
            )(reply),
        )
    )

    with pytest.raises(StoreUnavailable, match="6 empty pages"):
        list(objects.list("chain/"))


def test_names_of_headers_are_read_in_any_case(objects: S3Objects, proxy: FaultProxy) -> None:
    proxy.faults(lambda request: Altered("said", _lower))

    assert (objects.put(KEY, BODY), objects.get(KEY)) == ("committed", BODY)


def _lower(reply: Reply) -> Reply:
    return reply._replace(headers=[(name.lower(), value) for name, value in reply.headers])
