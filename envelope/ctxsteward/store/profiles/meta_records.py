"""The meta slice of a profile in the vault: each record, and each line it renders to, under a key of the record's own.

Records are derived from what users said, so a version or a snapshot holds references to them and no text:

    {"blob": address of the content, "key": address of the subject whose key opens it}

    record   canonical JSON of a `MetaRecord`
    line     the record as a version or a prompt shows it; whatever shows a slice is labels and lines, in order

Destroying one record's key (`Vault.bury`) takes the record and all its lines with it, from every version and snapshot
at once, and nothing else. A key belongs to one id, text and sources in one profile: approving a record keeps its key.

Raises `Damaged`, `Erased`, `ObjectMissing`, `OutcomeUnknown`, `StoreUnavailable`.
Source: the state design (text of several subjects lies under a key of its own); NIST SP 800-88 (cryptographic erase).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from ctxsteward.schemas import Damaged, Erased, Finding, MetaRecord, ObjectMissing

from ..crypto import AddressKey, Vault, address_of
from .text import META_LABELS, line_writer, record_line

M = TypeVar("M", bound=BaseModel)


class RecordRef(NamedTuple):
    """Content in the vault."""

    blob: str
    key: str


class MetaRecordVault:
    """Records and lines of one profile."""

    def __init__(self, vault: Vault, key: AddressKey, profile: str) -> None:
        self._vault, self._key, self._profile = vault, key, profile

    def keep_record(self, record: MetaRecord, known: frozenset[str]) -> RecordRef:
        """Put a record into the vault, unless its address is `known` to be there; raises `Erased`."""
        return self._keep(record, "record", canonical(record.model_dump(mode="json")), known)

    def keep_line(self, record: MetaRecord, line: str, known: frozenset[str]) -> RecordRef:
        """Put a line of this record into the vault."""
        return self._keep(record, "line", line.encode(), known)

    def record(self, kept: RecordRef) -> MetaRecord | None:
        """The record again; None where it was erased. Fields of later versions are left out."""
        data = self.content(kept)
        if data is None:
            return None
        try:
            return of_known_fields(MetaRecord, json.loads(data))
        except (ValueError, TypeError, AttributeError, ValidationError) as error:
            raise Damaged(f"record {kept.blob[:16]}… cannot be read by this program; upgrade ctxsteward") from error

    def content(self, kept: RecordRef) -> bytes | None:
        """What was kept; None where it was erased, by whichever process."""
        self._vault.forget_secret(kept.key)
        try:
            return self._vault.get(kept.blob)
        except Erased:
            return None
        except ObjectMissing as error:
            if self._vault.tombstone(kept.key) is not None:
                return None
            raise Damaged(f"{error.key}: it is missing though it was committed; restore it from a backup") from None

    def erase(self, record: MetaRecord, *, who: str, when: str, why: str) -> None:
        """Destroy this record's key."""
        self._vault.bury(record_subject(self._profile, record), who=who, when=when, why=why)

    def _keep(self, record: MetaRecord, kind: str, data: bytes, known: frozenset[str]) -> RecordRef:
        subject = record_subject(self._profile, record)
        kept = RecordRef(address_of(self._key, subject, kind, data), self._vault.subject_address(subject))
        if kept.blob not in known:
            self._vault.forget_secret(kept.key)
            self._vault.put(subject, kind, data)
        return kept


def record_subject(profile: str, record: MetaRecord) -> str:
    """The subject whose key a record has; no session is named so."""
    digest = hashlib.sha256(canonical([record.text, record.sources])).hexdigest()
    return f"\x00record\x00{profile}\x00{record.id}\x00{digest}"


def profile_in(subject: str) -> str:
    """The profile that a subject is of: a record's, or what else governs it; empty for a session's."""
    kind, _, rest = subject[1:].partition("\x00")
    return rest.partition("\x00")[0] if subject.startswith("\x00") and kind else ""


def lines_of(text: str, records: Sequence[MetaRecord]) -> Iterator[tuple[str, MetaRecord | None]]:
    """A slice line by line, each with the record it shows (None: a label); `records` are all of the profile."""
    shown = {line(record): record for line in (record_line, line_writer(records)) for record in records}
    for line in text.split("\n") if text else ():
        if line not in shown and line not in ("", *META_LABELS):
            raise ValueError("a line of the meta slice is neither a record's nor a label")  # never kept as plain text
        yield line, shown.get(line)


def references(body: object) -> Iterator[RecordRef]:
    """Every reference in a version's or a snapshot's body, for garbage collection and checks."""
    if isinstance(body, Mapping):
        blob, key = body.get("blob"), body.get("key")
        if isinstance(blob, str) and isinstance(key, str):
            yield RecordRef(blob, key)
        for value in body.values():
            yield from references(value)
    elif isinstance(body, list | tuple):
        for value in body:
            yield from references(value)


def of_known_fields(model: type[M], stored: Mapping[str, Any]) -> M:
    """The value without fields that only later programs know."""
    return model(**{name: value for name, value in stored.items() if name in model.model_fields})


def erased(kept: RecordRef, what: str) -> Finding:
    """Says that something was left out."""
    text = f"{what} {kept.blob[:16]}… was erased and is left out"
    return Finding(kind="meta_record_erased", field="meta", text=text)


def canonical(value: object) -> bytes:
    """One text for one JSON value."""
    return _CANONICAL.encode(value).encode()


_CANONICAL = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
"""Made once: a night writes some ten thousand small values."""
