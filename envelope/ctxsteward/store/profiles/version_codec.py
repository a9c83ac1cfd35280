"""Encode a version of a profile as the body of a link, decode it, and compute the changes between two versions.

    {"schema_version": 1, "address": …,
     "profile": {"name", "persona", "policies", "rails", "surface"},     inline: text of the operator
     "meta": [{"blob", "key"}], "slice": [{"text"} | {"blob", "key"}],   by reference: derived from users
     "changelog": {"who", "when", "why", "restores", "changes"},         keys and addresses only
     "promotion": {…}}                                                   optional; keys and addresses only

`address` is the profile's address in envelopes (`profile_version`). Optional fields of a later version of this program
are ignored when read, and kept when a version is committed anew. Another major version is refused.

Meta records are derived from users' words, so a version or a snapshot has references to them and no text:

    {"blob": address of the content, "key": address of the subject whose key decrypts it}

    record   canonical JSON of a `MetaRecord`
    line     the record in the form of a version or a prompt; a slice consists of labels and lines, in order

In the vault, each record and its lines are encrypted under a key of the record's own. Destroying that key
(`Vault.destroy_key`) makes the record and its lines unreadable in every version and snapshot at once, and nothing else.
A key belongs to one id, text and sources in one profile; approving a record keeps its key.

Between versions an entry is identified by block and key, and a meta record by its id, which changelogs do not contain.

Raises `InputError`, `Erased`, `Damaged`, `UnsupportedVersion`, `ObjectMissing`, `OutcomeUnknown`, `StoreUnavailable`.
Source: the state design (addresses, tenants, erasure; changelogs hold addresses only; text of several subjects lies
under a key of its own); NIST SP 800-88 (cryptographic erase).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from ctxsteward.schemas import Erased, Finding, InputError
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion, counted
from ctxsteward.schemas.profile import BLOCK_SPECS, BLOCKS, BlockName, MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.schemas.profile_changes import Change, ChangedBlock, ChangelogEntry

from ..crypto.hash_chain import Link
from ..crypto.keyring import AddressKey, address_of
from ..crypto.vault import Vault
from ..names import numbered
from .text import META_LABELS, Profile, line_writer, meta_text, record_line

M = TypeVar("M", bound=BaseModel)


class RecordRef(NamedTuple):
    """A reference to content in the vault."""

    blob: str
    key: str


class MetaRecordVault:
    """The records and lines of one profile in the vault."""

    def __init__(self, vault: Vault, key: AddressKey, profile: str) -> None:
        self._vault, self._key, self._profile = vault, key, profile

    def keep_record(self, record: MetaRecord, known: frozenset[str]) -> RecordRef:
        """Put a record into the vault, unless its address is among the `known` ones. Raises `Erased`."""
        return self._keep(record, "record", canonical(record.model_dump(mode="json")), known)

    def keep_line(self, record: MetaRecord, line: str, known: frozenset[str]) -> RecordRef:
        """Put a line of this record into the vault."""
        return self._keep(record, "line", line.encode(), known)

    def record(self, kept: RecordRef) -> MetaRecord | None:
        """Return the record, or None if it was erased. Fields of later versions are left out."""
        data = self.content(kept)
        if data is None:
            return None
        try:
            return of_known_fields(MetaRecord, json.loads(data))
        except (ValueError, TypeError, AttributeError, ValidationError) as error:
            raise Damaged(f"record {kept.blob[:16]}… cannot be read by this program; upgrade ctxsteward") from error

    def content(self, kept: RecordRef) -> bytes | None:
        """Return the content, or None if any process has erased it."""
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
        self._vault.destroy_key(record_subject(self._profile, record), who=who, when=when, why=why)

    def _keep(self, record: MetaRecord, kind: str, data: bytes, known: frozenset[str]) -> RecordRef:
        subject = record_subject(self._profile, record)
        kept = RecordRef(address_of(self._key, subject, kind, data), self._vault.subject_address(subject))
        if kept.blob not in known:
            self._vault.forget_secret(kept.key)
            self._vault.put(subject, kind, data)
        return kept


def record_subject(profile: str, record: MetaRecord) -> str:
    """Return the subject of a record's key; its first character is NUL, which no session id has."""
    digest = hashlib.sha256(canonical([record.text, record.sources])).hexdigest()
    return f"\x00record\x00{profile}\x00{record.id}\x00{digest}"


def profile_in(subject: str) -> str:
    """Return the profile in the name of a subject of governed state, or "" for a subject of a session."""
    kind, _, rest = subject[1:].partition("\x00")
    return rest.partition("\x00")[0] if subject.startswith("\x00") and kind else ""


def lines_of(text: str, records: Sequence[MetaRecord]) -> Iterator[tuple[str, MetaRecord | None]]:
    """Yield the lines of a slice, each with its record (None for a label); `records` are all of the profile."""
    shown = {line(record): record for line in (record_line, line_writer(records)) for record in records}
    for line in text.split("\n") if text else ():
        if line not in shown and line not in ("", *META_LABELS):
            raise ValueError("a line of the meta slice is neither a record's nor a label")  # never stored as plain text
        yield line, shown.get(line)


def references(body: object) -> Iterator[RecordRef]:
    """Yield every reference in the body of a version or snapshot, for garbage collection and checks."""
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
    """Return the stored value as a model, without fields of later versions."""
    return model(**{name: value for name, value in stored.items() if name in model.model_fields})


def erased(kept: RecordRef, what: str) -> Finding:
    """Return a finding that erased content was left out."""
    text = f"{what} {kept.blob[:16]}… was erased and is left out"
    return Finding(kind="meta_record_erased", field="meta", text=text)


def canonical(value: object) -> bytes:
    """Return the canonical JSON of a value."""
    return _CANONICAL.encode(value).encode()


_CANONICAL = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
"""Encoder, made once because a night writes some ten thousand small values."""


def stored_blocks(body: Mapping[str, Any]) -> dict[BlockName, list[Any]]:
    """Return the entries in a version's link by block. Raises `KeyError` if a mandatory block is missing."""
    stored = body["profile"]
    return {block: stored.get(block, []) if BLOCK_SPECS[block].may_be_missing else stored[block] for block in BLOCKS}


class ProfilePart(NamedTuple):
    """An entry or a record of a version."""

    block: ChangedBlock
    identity: str
    """Text that identifies the part in all versions."""
    key: str | None
    """Name of the part in the changelog; None in meta."""
    address: str


def changes_between(before: Sequence[ProfilePart], after: Sequence[ProfilePart]) -> Iterator[Change]:
    """Yield the added, changed and moved parts in the order of `after`, then the removed ones."""
    old = {(part.block, part.identity): part for part in before}
    new = {(part.block, part.identity): part for part in after}
    standing = zip((name for name in new if name in old), (name for name in old if name in new), strict=True)
    moved = {name for name, other in standing if name != other}  # its place among the common parts differs
    for name, part in new.items():
        earlier = old.get(name)
        if earlier is None:
            yield Change(block=part.block, kind="added", key=part.key, before=None, after=part.address)
        elif earlier.address != part.address:
            yield Change(block=part.block, kind="changed", key=part.key, before=earlier.address, after=part.address)
        elif name in moved:
            yield Change(block=part.block, kind="moved", key=part.key, before=part.address, after=part.address)
    for name, part in old.items():
        if name not in new:
            yield Change(block=part.block, kind="removed", key=part.key, before=part.address, after=None)


VERSION = 1
"""Major version of a version's body; it may gain optional fields without a new number."""

_ABOUT = ("schema_version", "address", "changelog", "promotion")
"""Fields about the commit; all others are its content."""
_UNNAMED = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One committed version."""

    profile: Profile
    """The profile without records that were erased since."""
    changelog: ChangelogEntry
    findings: tuple[Finding, ...]
    link: Link
    """The stored link."""
    records: tuple[tuple[MetaRecord, RecordRef], ...]
    """The readable meta records with their references."""

    @property
    def number(self) -> int:
        return self.link.number

    @property
    def commit_id(self) -> str:
        return self.link.commit_id

    @property
    def epoch(self) -> int:
        return self.link.epoch

    @property
    def address(self) -> str:
        """Address of the committed profile, and `Envelope.profile_version` of sessions that pin it."""
        return str(self.link.body["address"])


class Content(NamedTuple):
    """The content of a commit before it has a number."""

    fields: dict[str, Any]
    profile: Profile
    records: tuple[tuple[MetaRecord, RecordRef], ...]
    restores: int | None = None


class VersionForm:
    """Encoder and decoder of the versions of one profile."""

    def __init__(self, folder: str, name: str, tenant: str, key: AddressKey, shelf: MetaRecordVault) -> None:
        self.folder: str = folder
        self.name: str = name
        self.tenant: str = tenant
        self._key, self._shelf = key, shelf

    # -- from a profile to a body -------------------------------------------------------------------------------

    def named(self, profile: ProfileDocument) -> Profile:
        if profile.name not in (self.name, _UNNAMED):
            hint = f"commit it to store.profiles({profile.name!r}), or rename it"
            raise InputError(f"profile {profile.name!r} is not {self.name!r}; {hint}")
        return Profile.from_document(profile.model_copy(update={"name": self.name}))

    def noted(self, who: str, why: str, when: str) -> dict[str, str]:
        try:
            ChangelogEntry(
                profile=self.name,
                version=1,
                parent=None,
                commit_id="-",
                epoch=0,
                who=who,
                when=when,
                why=why,
                restores=None,
                changes=(),
            )
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InputError(f"commit: {first['loc'][0]}: {first['msg']}; found {first['input']!r:.60}") from error
        return {"who": who, "when": when, "why": why}

    def content(self, wanted: Profile, origin: Version | None) -> Content:
        """Put the records into the vault and return the content; fields of later versions are kept from `origin`."""
        stored = origin.link.body if origin else {}
        kept = dict(origin.records if origin else ())
        parts = (*stored.get("meta", ()), *stored.get("slice", ())) if origin and not origin.findings else ()
        known = frozenset(part["blob"] for part in parts if "blob" in part)
        records = tuple((record, kept.get(record) or self._shelf.keep_record(record, known)) for record in wanted.meta)
        fields = {name: value for name, value in stored.items() if name not in (*_ABOUT, "profile", "meta", "slice")}
        fields |= {
            "profile": _carried(wanted, stored.get("profile", {})),
            "meta": [reference._asdict() for _, reference in records],
            "slice": self._slice(wanted, known),
        }
        return Content(fields, wanted, records)

    def restored(self, version: Version) -> Content:
        fields = content_of(version.link.body)
        if version.findings:
            fields |= {
                "meta": [reference._asdict() for _, reference in version.records],
                "slice": self._slice(version.profile, frozenset()),
            }
        return Content(fields, version.profile, version.records, restores=version.number)

    def _slice(self, profile: Profile, known: frozenset[str]) -> list[dict[str, str]]:
        return [
            {"text": line} if record is None else self._shelf.keep_line(record, line, known)._asdict()
            for line, record in lines_of(meta_text(profile), profile.meta)
        ]

    def body(
        self, content: Content, head: Version | None, note: dict[str, str], promotion: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        number = head.number + 1 if head else 1
        profile = content.profile.model_copy(update={"version": number})
        before = [] if head is None else self._parts(head.link.body, head.records)
        changes = changes_between(before, self._parts(content.fields, content.records))
        log = note | {"restores": content.restores, "changes": [change.model_dump(mode="json") for change in changes]}
        from ctxsteward.schemas.publish import validate

        header = {"schema_version": VERSION, "profile": self.name, "version": number, "parent": number - 1 or None}
        validate("changelog_entry", header | {"commit_id": "-", "epoch": 0} | log, f"{self.folder}: version {number}")
        validate("profile", profile.model_dump(mode="json"), f"{self.folder}: version {number}")
        about = {"schema_version": VERSION, "address": profile_address(self._key, self.tenant, profile)}
        rested_on = {} if promotion is None else {"promotion": dict(promotion)}
        return content.fields | about | {"changelog": log} | rested_on

    def _parts(self, body: Mapping[str, Any], records: tuple[tuple[MetaRecord, RecordRef], ...]) -> list[ProfilePart]:
        parts = [
            ProfilePart(block, entry["id"], entry["id"], address_of(self._key, self.folder, "entry", canonical(entry)))
            for block, entries in stored_blocks(body).items()
            for entry in entries
        ]
        named = {reference.blob: record.id for record, reference in records}
        blobs = [reference["blob"] for reference in body["meta"]]
        return parts + [ProfilePart("meta", named.get(blob, blob), None, blob) for blob in blobs]

    # -- from a link to a version -------------------------------------------------------------------------------

    def version(self, link: Link) -> Version:
        changelog = self.entry(link)  # first, because it refuses a link of a later version
        references = [_kept(reference) for reference in link.body["meta"]]
        read = [(self._shelf.record(reference), reference) for reference in references]
        records = tuple((record, reference) for record, reference in read if record is not None)
        profile = self._read_profile(link, [record for record, _ in records])
        findings = tuple(erased(reference, "meta record") for record, reference in read if record is None)
        return Version(link=link, profile=profile, changelog=changelog, findings=findings, records=records)

    def committed(self, link: Link, content: Content) -> Version:
        """Return the version that was just committed, without reading the store again."""
        profile = content.profile.model_copy(update={"version": link.number})
        changelog = self.entry(link)
        return Version(link=link, profile=profile, changelog=changelog, findings=(), records=content.records)

    def _read_profile(self, link: Link, records: list[MetaRecord]) -> Profile:
        stored = link.body["profile"]
        try:
            blocks = {
                block: tuple(of_known_fields(ProfileEntry, entry) for entry in entries)
                for block, entries in stored_blocks(link.body).items()
            }
            with counted("profile"):
                return Profile.model_validate(
                    {"name": stored["name"], "version": link.number, "meta": records, **blocks}
                )
        except (ValidationError, KeyError, TypeError) as error:
            raise self._unreadable(link, error) from error

    def entry(self, link: Link) -> ChangelogEntry:
        major = link.body.get("schema_version")
        if major != VERSION:
            raise UnsupportedVersion(numbered(self.folder, link.number), major, VERSION)
        try:
            stored = link.body["changelog"]
            changes = tuple(of_known_fields(Change, change) for change in stored["changes"])
            about = {name: stored[name] for name in ("who", "when", "why", "restores")}
            return ChangelogEntry(
                profile=self.name,
                version=link.number,
                parent=link.number - 1 or None,
                commit_id=link.commit_id,
                epoch=link.epoch,
                changes=changes,
                **about,
            )
        except (ValidationError, KeyError, TypeError) as error:
            raise self._unreadable(link, error) from error

    def _unreadable(self, link: Link, error: Exception) -> Damaged:
        what = str(error).splitlines()[0]
        return Damaged(
            f"{numbered(self.folder, link.number)}: this program cannot read it ({what}); upgrade ctxsteward"
        )

    def slice_text(self, version: Version) -> str:
        """Return the meta slice as it was rendered at the commit, without erased lines."""
        lines = []
        for part in version.link.body["slice"]:
            data = part["text"].encode() if "text" in part else self._shelf.content(_kept(part))
            lines += [] if data is None else [data.decode()]
        return "\n".join(lines)


def profile_address(key: AddressKey, tenant: str, profile: ProfileDocument) -> str:
    """Return the address of a profile, which envelopes have as `profile_version`."""
    data = json.dumps(profile.model_dump(mode="json"), sort_keys=True, ensure_ascii=False).encode()
    return address_of(key, tenant, "profile", data)


def _kept(reference: Mapping[str, str]) -> RecordRef:
    return RecordRef(reference["blob"], reference["key"])


def content_of(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in _ABOUT}


def _carried(profile: Profile, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inline part to store: known fields from `profile`, unknown ones from `stored`."""
    fields = {name: value for name, value in stored.items() if name not in ProfileDocument.model_fields}
    fields["name"] = profile.name
    for block in BLOCKS:
        before = {entry["id"]: entry for entry in stored.get(block, ())}
        fields[block] = [
            {name: value for name, value in before.get(entry.id, {}).items() if name not in ProfileEntry.model_fields}
            | entry.model_dump(mode="json")
            for entry in getattr(profile, block)
        ]
    return fields
