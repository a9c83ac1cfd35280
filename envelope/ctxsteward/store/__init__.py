"""What lasts: the journal of sessions, the object store, keys, profiles and facts, erasure and maintenance.

    journal        records of sessions, in order and durable; `SqliteJournal` in a folder or in memory
    objects        everything else, for good: a folder, an S3 bucket, memory
    crypto         addresses, keys, encrypted content (`Vault`), chains of versions that cannot be altered (`Chain`)
    replication    drains a local journal into the object store and moves sessions between machines
    profiles       governed text of a session's head, versioned
    facts          what is known about one user, project or session
    erasure        forgets a session or a person everywhere
    maintenance    fsck, gc, listings and statistics

`Backend` holds journal, objects and keys together; the envelope's `Store` is one. The names below are the doors of the
package: ports, values that cross it, and what nearly every user needs. What costs more to import, or has few users, is
imported from its module, such as `journal.sqlite`, `objects.s3`, `profiles.versions` or `erasure.forget`. Imports
`ctxsteward.schemas` alone.
"""

from .backend import Backend
from .crypto.addresses import AddressKey, address_of, subject_of
from .crypto.hash_chain import Chain, Link
from .crypto.keyring import Keys, MasterKeys, SealKey, file_keys, memory_keys
from .crypto.vault import Vault
from .facts import Audience, Fact, FactSource, FactStore
from .facts.lookup import FactLookup
from .journal.erasures import Deletion, Eraser, Erasure
from .journal.port import ForgottenSubject, Journal, JournalRecord, Manifest, SessionKey
from .names import checked_name, numbered, part_of, steward_folder
from .objects.port import ObjectInfo, ObjectStore, Patience, PutOutcome
from .profiles.meta_records import RecordRef, canonical
from .profiles.text import Profile

__all__ = [
    "AddressKey",
    "Audience",
    "Backend",
    "Chain",
    "Deletion",
    "Eraser",
    "Erasure",
    "Fact",
    "FactLookup",
    "FactSource",
    "FactStore",
    "ForgottenSubject",
    "Journal",
    "JournalRecord",
    "Keys",
    "Link",
    "Manifest",
    "MasterKeys",
    "ObjectInfo",
    "ObjectStore",
    "Patience",
    "Profile",
    "PutOutcome",
    "RecordRef",
    "SealKey",
    "SessionKey",
    "Vault",
    "address_of",
    "canonical",
    "checked_name",
    "file_keys",
    "memory_keys",
    "numbered",
    "part_of",
    "steward_folder",
    "subject_of",
]
