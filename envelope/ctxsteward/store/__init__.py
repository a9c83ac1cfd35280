"""What lasts: the journal of sessions, the object store, keys, profiles, erasure and maintenance.

    journal        records of sessions, in order and durable; in a folder, in memory, in PostgreSQL
    objects        everything else, for good: a folder, an S3 bucket, PostgreSQL, memory
    crypto         addresses, keys, encrypted content (`Vault`), chains of versions that cannot be altered (`Chain`)
    replication    drains a local journal into the object store and moves sessions between machines
    profiles       governed text of a session's head, versioned
    facts          what earlier versions kept about one user, project or session
    erasure        forgets a session or a person everywhere
    maintenance    fsck, gc, listings and statistics

`Backend` holds journal, objects and keys together; the envelope's `Store` is one. This package imports
`ctxsteward.schemas` alone.
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
