"""Artifacts in the store: encrypted blobs under the subject of their session and principal.

An artifact with the words of several principals is encrypted again under the key of each further principal, so that
forgetting one of them erases it. Its address depends on its content, so harvesting a transcript again finds the stored
artifact. Blobs are compressed (blob version 2; version 1 is read, too), except under several keys. The records of
finished batches refer to artifacts, which protects them from garbage collection.

Raises `Erased` if one of its principals or its session was forgotten; `ObjectMissing`, `Damaged`, `OutcomeUnknown`,
`StoreUnavailable`.
Source: the state design (addresses, tenants, erasure); NIST SP 800-38D.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from ctxsteward.envelope import Store
from ctxsteward.schemas import Erased
from ctxsteward.schemas.errors import Damaged, ObjectMissing
from ctxsteward.store.crypto.keyring import NONCE_BYTES, address_of, decrypt, encrypt, subject_of
from ctxsteward.store.crypto.vault import Vault

from .artifact import Artifact, artifact_bytes, parse_artifact

KIND = "harvest"
_SEPARATOR = b"\n"


class ArtifactStore:
    """The artifacts of one tenant."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store, self._tenant = store, tenant
        self._vault: Vault = store.vault(tenant)
        self._key = store.keys.address_key(tenant)

    def put(self, artifact: Artifact) -> str:
        """Store an artifact and return its address; raises `Erased` if a person in it was forgotten."""
        subject, data = self._sealed(artifact)
        return self._vault.put(subject, KIND, data, compress=True)

    def address(self, artifact: Artifact) -> str | None:
        """Return the address of an artifact, stored or not; None if a person in it was forgotten."""
        try:
            subject, data = self._sealed(artifact)
        except Erased:
            return None
        return address_of(self._key, subject, KIND, data)

    def _sealed(self, artifact: Artifact) -> tuple[str, bytes]:
        """Return the subject and the content of an artifact's blob, encrypted for each further principal."""
        first, *others = (subject_of(artifact.session, who) for who in artifact.principals)
        data = artifact_bytes(artifact)
        layers = []
        for subject in others:
            key = self._vault.data_key(subject)
            nonce = hmac.digest(key.secret, data, "sha256")[:NONCE_BYTES]  # equal content must give equal bytes
            data = encrypt(key.secret, data, KIND.encode(), nonce)
            layers.append(key.subject)
        return first, ",".join(layers).encode() + _SEPARATOR + data

    def get(self, address: str) -> Artifact:
        """Return the artifact with this address."""
        head, separator, data = self._vault.get(address).partition(_SEPARATOR)
        if not separator:
            raise Damaged(f"artifact {address[:16]}…: it is not a harvest artifact; harvest its transcript again")
        for layer in reversed(head.decode().split(",") if head else []):
            data = decrypt(self._vault.known_key(layer).secret, data, KIND.encode())
        artifact = parse_artifact(data, f"artifact {address[:16]}…")
        self._refuse_forgotten(artifact)
        return artifact

    def find(self, address: str) -> Artifact | None:
        """Return the artifact with this address, or None if it was forgotten."""
        try:
            return self.get(address)
        except (Erased, ObjectMissing):
            return None

    def erase(self, session: str, principals: tuple[str | None, ...], *, who: str, when: str, why: str) -> None:
        """Destroy the keys of these principals in a session, or of the session itself if none are given."""
        subjects = [subject_of(session, principal) for principal in principals] or [session]
        for subject in subjects:
            self._vault.destroy_key(subject, who=who, when=when, why=why)

    def discard(self, address: str) -> None:
        """Delete an artifact that may hold words of a forgotten person under the key of the session."""
        self._vault.discard(address)

    def forgotten(self) -> frozenset[str]:
        """Return the addresses of all forgotten subjects; costs a listing."""
        return frozenset(self._vault.erased())

    def subject(self, session: str, principal: str | None) -> str:
        """Return the address of the subject of a principal in a session, or (None) of the session itself."""
        return self._vault.subject_address(subject_of(session, principal))

    def _refuse_forgotten(self, artifact: Artifact) -> None:
        """Check the tombstones, because another process may have forgotten the session or one of its people."""
        people = (subject_of(artifact.session, who) for who in artifact.principals)
        for subject in dict.fromkeys((artifact.session, *people)):
            self._vault.check_not_erased(self._vault.subject_address(subject), f"session {artifact.session!r}")


def possible_speakers(session: str, principals: Iterable[str | None]) -> frozenset[str | None]:
    """Return everybody whose words an artifact of this session may hold.

    The first stored form wrote an unknown speaker and a person with the session's name alike, so forgetting that person
    must forget the words of unknown speakers, too.
    """
    named = frozenset(principals)
    return named | {session} if None in named else named
