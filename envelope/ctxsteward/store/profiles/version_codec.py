"""A version of a profile as the body of a link, and back again; and what differs between two versions.

    {"schema_version": 1, "address": …,
     "profile": {"name", "persona", "policies", "rails", "surface"},     inline: the operator's
     "meta": [{"blob", "key"}], "slice": [{"text"} | {"blob", "key"}],   by reference: derived from users
     "changelog": {"who", "when", "why", "restores", "changes"},         keys and addresses only
     "promotion": {…}}                                                   optional: what the commit rested on, likewise

`address` is that of the profile as an envelope names it (`profile_version`). Optional fields that a later program wrote
are ignored when read and kept when a version is committed anew; another major is refused.

Meta records are derived from what users said, so a version or a snapshot holds references to them and no text:

    {"blob": address of the content, "key": address of the subject whose key opens it}

    record   canonical JSON of a `MetaRecord`
    line     the record as a version or a prompt shows it; whatever shows a slice is labels and lines, in order

In the vault each record, and each line it renders to, lies under a key of the record's own. Destroying that key
(`Vault.destroy_key`) takes the record and all its lines with it, from every version and snapshot at once, and nothing
else. A key belongs to one id, text and sources in one profile: approving a record keeps its key.

Versions differ in their parts: an entry is known again by its block and key, a meta record by its id, which no
changelog shows.

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
        self._vault.destroy_key(record_subject(self._profile, record), who=who, when=when, why=why)

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


def stored_blocks(body: Mapping[str, Any]) -> dict[BlockName, list[Any]]:
    """Entries by block, as a version's link has them; raises `KeyError` for a block that every version has."""
    stored = body["profile"]
    return {block: stored.get(block, []) if BLOCK_SPECS[block].may_be_missing else stored[block] for block in BLOCKS}


class ProfilePart(NamedTuple):
    """An entry or a record of a version."""

    block: ChangedBlock
    identity: str
    """What it is known by across versions."""
    key: str | None
    """What the changelog calls it; None in meta."""
    address: str


def changes_between(before: Sequence[ProfilePart], after: Sequence[ProfilePart]) -> Iterator[Change]:
    """Yield all that was added, changed or moved, in the order of `after`; then what was removed."""
    old = {(part.block, part.identity): part for part in before}
    new = {(part.block, part.identity): part for part in after}
    standing = zip((name for name in new if name in old), (name for name in old if name in new), strict=True)
    moved = {name for name, other in standing if name != other}  # another place among those of both versions
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
"""Major version of a version's body; optional fields may be added within it."""

_ABOUT = ("schema_version", "address", "changelog", "promotion")
"""Fields that are about the commit; all others are its content."""
_UNNAMED = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One committed version."""

    profile: Profile
    """What can be read of it: without records that were erased since."""
    changelog: ChangelogEntry
    findings: tuple[Finding, ...]
    link: Link
    """As stored."""
    records: tuple[tuple[MetaRecord, RecordRef], ...]
    """Meta records with their references, as far as they can be read."""

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
        """Of the profile as it was committed; `Envelope.profile_version` of sessions that pin it."""
        return str(self.link.body["address"])


class Content(NamedTuple):
    """What a commit is about, before it has a number."""

    fields: dict[str, Any]
    profile: Profile
    records: tuple[tuple[MetaRecord, RecordRef], ...]
    restores: int | None = None


class VersionForm:
    """How versions of one profile are written and read."""

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
        """The profile as content: records into the vault; what only later programs know is taken from its origin."""
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
        changelog = self.entry(link)  # first: it refuses a link of a later program
        references = [_kept(reference) for reference in link.body["meta"]]
        read = [(self._shelf.record(reference), reference) for reference in references]
        records = tuple((record, reference) for record, reference in read if record is not None)
        profile = self._read_profile(link, [record for record, _ in records])
        findings = tuple(erased(reference, "meta record") for record, reference in read if record is None)
        return Version(link=link, profile=profile, changelog=changelog, findings=findings, records=records)

    def committed(self, link: Link, content: Content) -> Version:
        """The version just committed, without asking the store again."""
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
        """The meta slice as it was rendered at the commit; erased lines are left out."""
        lines = []
        for part in version.link.body["slice"]:
            data = part["text"].encode() if "text" in part else self._shelf.content(_kept(part))
            lines += [] if data is None else [data.decode()]
        return "\n".join(lines)


def profile_address(key: AddressKey, tenant: str, profile: ProfileDocument) -> str:
    """What envelopes call the profile they show: `profile_version`."""
    data = json.dumps(profile.model_dump(mode="json"), sort_keys=True, ensure_ascii=False).encode()
    return address_of(key, tenant, "profile", data)


def _kept(reference: Mapping[str, str]) -> RecordRef:
    return RecordRef(reference["blob"], reference["key"])


def content_of(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in _ABOUT}


def _carried(profile: Profile, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The inline part as it is stored: known fields as they are now, unknown ones as they were."""
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
