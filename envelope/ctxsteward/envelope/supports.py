"""What stands behind a meta record beyond the pointers it shows, so that forgetting can tell whether enough is left.

    {"schema_version": 1, "least": 3, "voices": [[[address of a subject, …], …], …]}

A *voice* is whoever counts once at the record's gate: a principal, an event. It was heard at places, each of which is
gone as soon as one of its subjects is buried; a voice is lost with the last of its places. Below `least` voices the
record is withdrawn. Addresses only, in a blob under the record's own key, which whoever writes links of a chain
``steward/<tenant>/<profile>/nights`` refers to as ``"supports": [{"blob", "key"}]``; the newest link counts.

Raises what `Vault` and `Chain` raise.
Source: the state design (a recommendation is withdrawn when its support falls below its gate).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import Erased, ObjectMissing
from ctxsteward.schemas.profile import MetaRecord

from .slices import Kept, canonical, record_subject, references
from .vault import Vault

if TYPE_CHECKING:
    from .store import Store

VERSION = 1
KIND = "support"
Place = tuple[str, ...]
"""Addresses of subjects, sorted: gone with any of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Who stands behind a record, and how many of them it needs."""

    voices: tuple[tuple[Place, ...], ...]
    least: int

    def falls(self, buried: Collection[str]) -> bool:
        """Whether so many voices are lost that too few are left."""
        left = sum(any(not any(name in buried for name in place) for place in voice) for voice in self.voices)
        return left < min(self.least, len(self.voices))


def support_of(voices: Mapping[str, Iterable[Place]], least: int) -> Support:
    """Support in one form, whatever the order it was found in."""
    return Support(voices=tuple(sorted(tuple(sorted(set(places))) for places in voices.values())), least=least)


def keep_support(vault: Vault, profile: str, record: MetaRecord, support: Support) -> Kept:
    """Put it beside its record; raises `Erased` where that was withdrawn."""
    subject = record_subject(profile, record)
    data = canonical({"schema_version": VERSION, "least": support.least, "voices": support.voices})
    return Kept(vault.put(subject, KIND, data), vault.subject_address(subject))


def newest_supports(store: Store, tenant: str, folders: Iterable[str]) -> dict[str, Support]:
    """By record's key, what the newest link of these chains says of it."""
    newest: dict[str, Kept] = {}
    for folder in folders:
        for link in store.chain(folder, tenant=tenant).links():
            newest.update((kept.key, kept) for kept in references(link.body.get("supports", ())))
    vault = store.vault(tenant)
    found = {key: _read(vault, kept.blob) for key, kept in newest.items()}
    return {key: support for key, support in found.items() if support is not None}


def _read(vault: Vault, address: str) -> Support | None:
    """None for what is gone, or what only a later program can read."""
    try:
        fields: dict[str, Any] = json.loads(vault.get(address))
    except (Erased, ObjectMissing):
        return None
    if fields.get("schema_version") != VERSION:
        return None
    voices = tuple(tuple(tuple(place) for place in voice) for voice in fields["voices"])
    return Support(voices=voices, least=fields["least"])
