"""`Backend`: a store as everything below sessions sees it, with its journal, its object store and its keys.

Profiles, facts, erasure and maintenance take a `Backend`; the envelope's `Store` is one, with sessions on top.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ctxsteward.schemas import Finding

from .crypto import Chain, Keys, Vault, check_keys
from .journal import Eraser, Journal, Listener, SessionKey, erasures
from .names import checked_name
from .objects import ObjectStore, Patience

if TYPE_CHECKING:
    from .replication import WriteBehind


class Backend:
    """Journal, object store and keys, and what is opened with them."""

    def __init__(
        self,
        journal: Journal,
        objects: ObjectStore,
        keys: Keys,
        *,
        patience: Patience | None = None,
        folder: Path | None = None,
    ) -> None:
        self.journal = journal
        self.objects = objects
        self.keys = keys
        self.patience: Patience = patience or Patience()
        self.folder = folder
        """Of the journal, and of what can be derived again (`derived_files`); None: nothing of it is on disk."""
        missing = getattr(journal, "missing", None)
        self.findings: tuple[Finding, ...] = ()
        """What was noticed of the store as a whole when it was opened; every session opened for writing has it, too."""
        if missing:
            self.findings = (Finding(kind="journal_missing", field="journal", text=missing),)
        self.erasers: list[Eraser] = []
        """Told what was forgotten here: whatever holds text derived from sessions beside the store adds itself."""
        self.appended: list[Listener] = []
        """Told of every append by a session that was opened here."""
        self.write_behind: WriteBehind | None = None
        """Where the journal lies outside the store; also what `erasure.forget` takes as `elsewhere`."""
        self._vaults: dict[str, Vault] = {}
        self._checked: set[str] = set()

    def vault(self, tenant: str = "default") -> Vault:
        """The tenant's encrypted content."""
        vault = self._vaults.get(tenant)
        if vault is None:
            vault = Vault(
                self.objects, self.keys, checked_name("tenant", tenant), patience=self.patience,
                erasures=partial(self.erasures, tenant),
            )  # fmt: skip
            vault = self._vaults.setdefault(tenant, vault)
        return vault

    def erasures(self, tenant: str) -> int:
        """How many erasures this tenant has had: what a process remembers is valid as long as the number stays."""
        return erasures(self.journal, tenant)

    def check_keys(self, tenant: str, *, write: bool) -> None:
        """Raise `StoreError` where the tenant was written with other keys; asked once."""
        if tenant not in self._checked:
            check_keys(self.objects, self.keys, tenant, write=write, patience=self.patience)
            if write:
                self._checked.add(tenant)

    def fresh_vault(self, tenant: str) -> Vault:
        """The same content through a vault that remembers no keys: what a check or a collection reads it with."""
        return Vault(self.objects, self.keys, tenant, patience=self.patience)

    def chain(self, folder: str, *, tenant: str) -> Chain:
        """A chain of this tenant's; see `names` for the folders."""
        key = self.keys.address_key(tenant)
        return Chain(self.objects, folder, key, witness=self.journal, patience=self.patience)

    def derived_text_erasers(self) -> tuple[Eraser, ...]:
        """All erasers to call at an erasure; the envelope's `Store` adds those of card indexes that nobody has open."""
        return tuple(self.erasers)

    def replay(self, key: SessionKey, length: int) -> None:
        """Read this much of a log as its readers do; raises what they raise. Without readers nothing is read."""
