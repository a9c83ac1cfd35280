"""Durable state: the journal of sessions, the object store, keys, profiles, erasure and maintenance.

    journal        ordered records of sessions, in a folder, in memory or in PostgreSQL
    objects        the object store for everything else: a folder, an S3 bucket, PostgreSQL, memory
    crypto         addresses, keys, encrypted content (`Vault`), chains of versions that cannot be altered (`Chain`)
    replication    drains a local journal into the object store and moves sessions between machines
    profiles       versions of the governed text in a session's head
    facts          facts about a user, project or session that earlier versions wrote
    erasure        forgets a session or a person everywhere
    maintenance    fsck, gc, listings and statistics

A `Backend` combines a journal, an object store and keys. The envelope's `Store` is a `Backend` with sessions. This
package imports no other room than `ctxsteward.schemas`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .crypto.keyring import MasterKeys as MasterKeys
    from .journal.port import Journal as Journal
    from .objects.port import ObjectStore as ObjectStore
else:  # A name is loaded at its first use, so that importing the package costs next to nothing.
    import lazy_loader

    __getattr__, __dir__, __all__ = lazy_loader.attach(
        __name__,
        submod_attrs={
            "crypto.keyring": ["MasterKeys"],
            "journal.port": ["Journal"],
            "objects.port": ["ObjectStore"],
        },
    )
