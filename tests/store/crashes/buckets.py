"""Places in an S3 bucket, made cheap: two clients for all of an endpoint, and a reader that asks for nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import boto3

from ctxsteward.schemas.errors import ObjectMissing
from ctxsteward.store.objects.port import ObjectInfo, ObjectStore, PutOutcome
from ctxsteward.store.objects.s3 import S3Objects
from ctxsteward.store.objects.s3_location import S3Location

from ...s3_servers import CREDENTIALS

_CLIENTS: dict[str, S3Objects] = {}


def bucket(uri: str) -> S3Objects:
    """The store at an s3 URI. All of one endpoint share two clients, which cost more to make than all a place does;
    children of a fork find them made."""
    location = S3Location.parse(uri)
    endpoint = str(location.endpoint)
    if endpoint not in _CLIENTS:
        session = boto3.Session(
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            region_name=CREDENTIALS["AWS_DEFAULT_REGION"],
        )
        _CLIENTS[endpoint] = S3Objects(location, session=session)
    found = copy(_CLIENTS[endpoint])
    found.location = location
    return found


def close_buckets() -> None:
    while _CLIENTS:
        _CLIENTS.popitem()[1].close()


class Mirror(ObjectStore):
    """A bucket for checks that read it over and over while nobody else writes: each object is fetched once."""

    def __init__(self, objects: S3Objects) -> None:
        self._objects = objects
        self._there: dict[str, ObjectInfo] | None = None
        self._bodies: dict[str, bytes] = {}

    @property
    def uri(self) -> str:
        return self._objects.uri

    def put(self, key: str, body: bytes) -> PutOutcome:
        self._there = None
        return self._objects.put(key, body)

    def get(self, key: str) -> bytes:
        if key not in self._listed():
            raise ObjectMissing(key)
        if key not in self._bodies:
            self._bodies[key] = self._objects.get(key)
        return self._bodies[key]

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        yield from [info for key, info in self._listed().items() if key.startswith(prefix) and key > after]

    def delete(self, key: str) -> None:
        self._there = None
        self._bodies.pop(key, None)
        self._objects.delete(key)

    def close(self) -> None:
        """The clients are everybody's."""

    def _listed(self) -> dict[str, ObjectInfo]:
        if self._there is None:
            self._there = {info.key: info for info in self._objects.list("")}
        return self._there
