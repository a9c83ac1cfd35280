"""Conditional writes through boto3, a faulty network and a real S3 server: what an answer is worth.

Every write meets a fault at its first try: the reply is lost, 500 after it was applied, 409, 503, a reset. Ours settles
each; a client with boto3's own retries takes its own write for somebody else's. 60 writes with CTXSTEWARD_SOAK=1,
else 20.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from ctxsteward.schemas.errors import VersionTaken
from ctxsteward.store.crypto.hash_chain import Chain, Link
from ctxsteward.store.crypto.keyring import AddressKey
from ctxsteward.store.objects.port import Patience
from ctxsteward.store.objects.s3 import S3Objects

from ...examples import SOAK
from ...fault_proxy import Fault, FaultProxy, Request, Script
from ...s3_servers import S3Server

WRITES = 60 if SOAK else 20
KEY = AddressKey(b"k" * 32)
FOLDER = "profiles/acme/support/versions"
QUICK = Patience(first_pause_seconds=0.002, longest_pause_seconds=0.02)
FAULTS: tuple[Fault, ...] = (
    "lost_reply",
    "error_after_apply",
    "conflict_409",
    "unavailable_503",
    "reset_before_apply",
)


def chain_at(server: S3Server, url: str) -> tuple[S3Objects, Chain]:
    objects = S3Objects.open(server.uri("team", url=url), session=server.session)
    return objects, Chain(objects, FOLDER, KEY, patience=QUICK)


def first_tries(fault: Fault) -> Script:
    """The fault for the first try of every key, then none."""
    tried: set[str] = set()

    def script(request: Request) -> Fault:
        first = request.path not in tried
        tried.add(request.path)
        return fault if first else "pass"

    return script


@pytest.mark.parametrize("fault", FAULTS)
def test_every_faulty_write_lands_once_and_is_acknowledged(server: S3Server, proxy: FaultProxy, fault: Fault) -> None:
    proxy.faults(first_tries(fault))
    objects, chain = chain_at(server, proxy.url)
    acked: list[Link] = []
    for n in range(WRITES):
        acked.append(chain.append(acked[-1] if acked else None, {"n": n}))
    objects.close()

    direct, reader = chain_at(server, server.url)
    assert list(reader.links()) == acked
    assert len({link.commit_id for link in acked}) == WRITES
    assert proxy.counts[fault] == WRITES
    direct.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_no_faulty_write_is_acknowledged_where_somebody_was_first(
    server: S3Server, proxy: FaultProxy, fault: Fault
) -> None:
    proxy.faults(first_tries(fault))
    objects, ours = chain_at(server, proxy.url)
    direct, theirs = chain_at(server, server.url)
    head: Link | None = None
    for n in range(WRITES // 3):
        before, head = head, theirs.append(head, {"n": n})
        with pytest.raises(VersionTaken):
            ours.append(before, {"n": -n})
    assert [link.body["n"] for link in theirs.links()] == list(range(WRITES // 3))
    assert proxy.counts[fault] == WRITES // 3
    objects.close()
    direct.close()


def test_mixed_faults_on_every_try_are_settled_too(server: S3Server, proxy: FaultProxy) -> None:
    """Two of three tries fail, whatever the key."""
    proxy.faults(lambda request: "pass" if request.number % 3 == 0 else FAULTS[request.number % len(FAULTS)])
    objects, chain = chain_at(server, proxy.url)
    head: Link | None = None
    for n in range(WRITES):
        head = chain.append(head, {"n": n})
    objects.close()
    direct, reader = chain_at(server, server.url)
    assert [link.body["n"] for link in reader.links()] == list(range(WRITES))
    direct.close()


def test_a_client_with_the_sdk_s_retries_takes_its_own_write_for_somebody_else_s(
    server: S3Server, proxy: FaultProxy
) -> None:
    proxy.faults(first_tries("lost_reply"))
    # a client stops retrying after some 35 in a row
    clients: list[Any] = [server.session.client("s3", endpoint_url=proxy.url) for _ in range(6)]

    def write(n: int) -> str:
        client = clients[n % len(clients)]
        try:
            client.put_object(Bucket=server.bucket, Key=f"naive/{n}", Body=b"mine", IfNoneMatch="*")
        except ClientError as error:
            return str(error.response["ResponseMetadata"]["HTTPStatusCode"])
        except BotoCoreError as error:
            return type(error).__name__
        return "committed"

    with ThreadPoolExecutor(len(clients)) as pool:  # the SDK waits before it tries again
        answers = Counter(pool.map(write, range(WRITES)))
    landed = clients[0].list_objects_v2(Bucket=server.bucket, Prefix="naive/")["KeyCount"]
    for client in clients:
        client.close()
    print(f"boto3's own retries over {WRITES} lost replies: {dict(answers)}, of which {landed} landed")

    assert landed == WRITES
    assert answers["412"] >= WRITES * 0.95
