"""Checks of encrypted content: data keys, tombstones, blobs.

A key is unwrapped, a tombstone's code is checked, and no key may be there beside the tombstone of its subject. Reading
everything, each blob is decrypted and its address computed anew; without, only its place is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ctxsteward.schemas import Damaged, Erased, ObjectMissing, UnsupportedVersion

from ..chain import Link
from ..objects.names import blob_name, data_key_name, tombstone_name
from ..slices import references
from ..vault import Vault
from .inventory import TenantObjects
from .tally import DeadKey, Tally


def check_subjects(vault: Vault, found: TenantObjects, tally: Tally) -> None:
    """Check keys and tombstones of this tenant; `vault` is a fresh one, that remembers no keys."""
    for name in found.tombstones:
        if tally.share.holds(tombstone_name(vault.tenant, name)):
            _check_tombstone(vault, name, name in found.keys, tally)
    for name in found.keys:
        if tally.share.holds(data_key_name(vault.tenant, name)):
            _check_key(vault, name, tally)


def check_blobs(
    vault: Vault, found: TenantObjects, owners: Mapping[str, str], tally: Tally, *, read_data: bool
) -> None:
    """Check blobs: their places, and with `read_data` their content; `owners` are subjects by blob, as links say."""
    for address, info in found.blobs.items():
        if tally.share.holds(info.key):
            tally.count("blobs")
            if read_data:
                _check_blob(vault, address, info.key, owners.get(address), tally)


def _check_tombstone(vault: Vault, name: str, has_key: bool, tally: Tally) -> None:
    tally.count("tombstones")
    key = tombstone_name(vault.tenant, name)
    try:
        vault.tombstone(name)
    except UnsupportedVersion as error:
        tally.found("later_version", key, str(error))
    except Damaged:
        tally.found("tombstone_altered", key, "it is not what was written")
    if has_key:
        where = data_key_name(vault.tenant, name)
        tally.found(
            "key_after_tombstone", where, "its subject was forgotten, and the key is there", DeadKey(vault.tenant, name)
        )


def _check_key(vault: Vault, name: str, tally: Tally) -> None:
    tally.count("keys")
    key = data_key_name(vault.tenant, name)
    try:
        vault.known_key(name)
    except (ObjectMissing, Erased):
        return  # destroyed meanwhile
    except UnsupportedVersion as error:
        tally.found("later_version", key, str(error))
    except Damaged:
        tally.found("key_damaged", key, "it cannot be unwrapped")


def _check_blob(vault: Vault, address: str, key: str, owner: str | None, tally: Tally) -> None:
    try:
        data = vault.get(address)
        tally.count("bytes", len(data))
        tally.tell(f"{tally.counts['blobs']:,} blobs")
    except Erased:
        if owner is not None and not _is_buried(vault, owner):
            tally.found("blob_altered", key, "it names a forgotten subject, and belongs to another one")
        else:
            tally.found("blob_erased", key, "content of a forgotten subject")
    except ObjectMissing as error:
        if error.key == key:
            return  # collected meanwhile
        tally.found("key_missing", error.key, f"blob {address[:16]}… was written under it")
    except UnsupportedVersion as error:
        tally.found("later_version", key, str(error))
    except Damaged:
        tally.found("blob_altered", key, "it is not what its address says")


def check_references(
    vault: Vault, found: TenantObjects, link: Link, key: str, tally: Tally
) -> Iterator[tuple[str, str]]:
    """Check that what a link of governed state refers to is there, or was forgotten; each blob with its subject."""
    for blob, name in references(link.body):
        tally.count("references")
        yield blob, name
        if name in found.tombstones:
            continue
        if blob not in found.blobs and not _there(vault, blob_name(vault.tenant, blob)):
            where = blob_name(vault.tenant, blob)
            tally.found("blob_missing", where, f"{key} refers to it")
        if name not in found.keys and not _there(vault, data_key_name(vault.tenant, name)):
            where = data_key_name(vault.tenant, name)
            tally.found("key_missing", where, f"{key} refers to a blob that was written under it")


def _there(vault: Vault, key: str) -> bool:
    """Whether an object is there that the listing has not shown: it may be younger."""
    try:
        vault.objects.get(key)
    except ObjectMissing:
        return False
    return True


def _is_buried(vault: Vault, name: str) -> bool:
    """Whether a tombstone is there; a damaged one is found where it lies."""
    try:
        return vault.tombstone(name) is not None
    except (Damaged, UnsupportedVersion):
        return True
