"""Changes that rollbacks took back, which stay out until a person wants them again.

`promotion` asks people if a challenger repeats such a change; the slice leaves such records out. A rollback from
version 9 to 6 takes back the changes of 7, 8 and 9: each added meta record, each added or dropped text, and each of
these versions as a whole. A change stays *taken back* until a version that a person approved holds it again:

    {"#" and the address of a record's id, or "+", "-", "=" and the address of a text: when it was taken back}

So a record does not return because more people say it in other words; but if the record was there before and only
reworded, a third wording is another change. Each version that a night commits has the changes taken back beside it
(`promotion`), so that one request reads them; later rollbacks and commits by hand are added. Addresses are HMACs, so
they reveal no word of a record. Changes of persona, policies, rails and surface need people anyway.

Raises what `ProfileVersions` raises. Source: the state design (committing governed state).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ctxsteward.envelope import Store
from ctxsteward.schemas import MetaRecommendation
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, instant
from ctxsteward.schemas.profile_changes import ChangelogEntry
from ctxsteward.store.crypto.keyring import AddressKey, address_of
from ctxsteward.store.profiles.text import canonical_json
from ctxsteward.store.profiles.version_codec import canonical
from ctxsteward.store.profiles.versions import ProfileVersions

STATED = "taken_back"
"""Key of the changes taken back, in the promotion beside a version."""


RollbackSubject = MetaRecord | MetaRecommendation
"""A meta record, or a recommendation that may become one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBackChanges:
    """The changes that are taken back at one version."""

    key: AddressKey
    folder: str
    when: Mapping[str, str] = field(default_factory=dict)
    """When each change was taken back, ISO 8601."""

    def brings(self, champion: ProfileDocument, challenger: ProfileDocument) -> bool:
        """Whether a challenger repeats a change that was taken back."""
        return bool(self.when) and any(change in self.when for change in self._changes(champion, challenger))

    def keeps_out(self, record: RollbackSubject, approved: str | None = None) -> bool:
        """Whether a record stays out because of its id or its words; `approved` is when a person approved it."""
        if not self.when:
            return False
        taken = [self.when[change] for change in self._brought(record) if change in self.when]
        return bool(taken) and (approved is None or instant(approved) < max(map(instant, taken)))

    def after(self, document: ProfileDocument) -> RolledBackChanges:
        """Return the changes taken back after a version with this text, without those that it holds again."""
        if not self.when:
            return self
        brought = {change for record in document.meta for change in self._brought(record)} | {self._whole(document)}
        undropped = {self._change("-", record.text) for record in document.meta}
        left = {
            change: when
            for change, when in self.when.items()
            if (change in undropped if change.startswith("-") else change not in brought)
        }
        return RolledBackChanges(key=self.key, folder=self.folder, when=left)

    def taking(self, restored: ProfileDocument, left: Iterable[ProfileDocument], when: str) -> RolledBackChanges:
        """Add the changes from the restored version to the versions that were rolled back."""
        more = {change: when for document in left for change in self._changes(restored, document)}
        return RolledBackChanges(key=self.key, folder=self.folder, when={**self.when, **more})

    def _changes(self, before: ProfileDocument, after: ProfileDocument) -> Iterator[str]:
        old, new = ({record.text for record in document.meta} for document in (before, after))
        known = {record.id for record in before.meta}
        yield from (self._change("#", record.id) for record in after.meta if record.id not in known)
        yield from (self._change("+", text) for text in sorted(new - old))
        yield from (self._change("-", text) for text in sorted(old - new))
        yield self._whole(after)

    def _brought(self, record: RollbackSubject) -> tuple[str, str]:
        return self._change("#", record.id), self._change("+", record.text)

    def _whole(self, document: ProfileDocument) -> str:
        return self._change("=", content(document))

    def _change(self, sign: str, text: str) -> str:
        return sign + address_of(self.key, self.folder, "change", canonical([sign, text]))


def taken_back(store: Store, versions: ProfileVersions, upto: int) -> RolledBackChanges:
    """Return the changes taken back at version `upto` (0: none); reads back to the newest version that has them."""
    taken = RolledBackChanges(key=store.keys.address_key(versions.tenant), folder=versions.folder)
    after: list[ChangelogEntry] = []
    for number in range(upto, 0, -1):
        entry = next(iter(versions.told(number)))
        if entry.promotion is not None and STATED in entry.promotion:
            taken = RolledBackChanges(key=taken.key, folder=taken.folder, when=entry.promotion[STATED])
            break
        after.append(entry)
    if not taken.when and not any(entry.restores for entry in after):
        return taken
    for entry in reversed(after):
        number, restores = entry.version, entry.restores
        if restores is not None:
            left = (versions.at(each).profile for each in range(restores + 1, number))
            taken = taken.taking(versions.at(restores).profile, left, entry.when)
        taken = taken.after(versions.at(number).profile)
    return taken


def content(document: ProfileDocument) -> str:
    """Return the canonical JSON of a document without its name and number."""
    plain = document.model_dump() | {"name": "default", "version": None}
    return canonical_json(ProfileDocument.model_validate(plain))
