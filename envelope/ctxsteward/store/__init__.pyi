from . import process_forks as process_forks
from .backend import (
    JOURNAL_FOLDER as JOURNAL_FOLDER,
    QUEUE_BYTES as QUEUE_BYTES,
    Backend as Backend,
    local_folder as local_folder,
    open_bucket as open_bucket,
    open_location as open_location,
)
from .create_once import make_folders as make_folders
from .crypto import (
    AddressKey as AddressKey,
    Chain as Chain,
    KeyFileMissing as KeyFileMissing,
    Keys as Keys,
    Link as Link,
    MasterKeys as MasterKeys,
    SealKey as SealKey,
    Vault as Vault,
    address_of as address_of,
    file_keys as file_keys,
    memory_keys as memory_keys,
    subject_of as subject_of,
)
from .crypto.keyring import NONCE_BYTES as NONCE_BYTES, code as code, decrypt as decrypt, encrypt as encrypt
from .crypto.signatures import is_signed as is_signed, signed_data as signed_data
from .deadline import Deadline as Deadline, DeadlinePassed as DeadlinePassed
from .derived_files import DerivedFile as DerivedFile, DerivedPlace as DerivedPlace, DerivedRows as DerivedRows
from .erasure.forget import apply_tombstones as apply_tombstones, forget as forget
from .erasure.ledgers import tell_ledger as tell_ledger
from .erasure.steward_records import (
    RecordSupport as RecordSupport,
    SupportPlace as SupportPlace,
    keep_support as keep_support,
    support_of as support_of,
    withdraw_unsupported as withdraw_unsupported,
)
from .facts import (
    Audience as Audience,
    Fact as Fact,
    FactLookup as FactLookup,
    FactSource as FactSource,
    FactStore as FactStore,
)
from .facts.fact import (
    FACTS_LABEL as FACTS_LABEL,
    MAX_FACTS as MAX_FACTS,
    MAX_SOURCES as MAX_SOURCES,
    fact_line as fact_line,
    in_order as in_order,
)
from .facts.fact_store import (
    WAIT_SECONDS as WAIT_SECONDS,
    AudienceFacts as AudienceFacts,
    Each as Each,
    StoredFact as StoredFact,
    erased_fact as erased_fact,
    withdraw_facts as withdraw_facts,
    without_withdrawn_records as without_withdrawn_records,
)
from .journal import (
    Deletion as Deletion,
    Eraser as Eraser,
    Erasure as Erasure,
    ForgottenSubject as ForgottenSubject,
    Journal as Journal,
    JournalRecord as JournalRecord,
    Manifest as Manifest,
    SessionKey as SessionKey,
)
from .journal.draft import DraftJournal as DraftJournal
from .journal.erasures import ErasureRequest as ErasureRequest
from .journal.events import (
    NONCE_DIGITS as NONCE_DIGITS,
    PLAIN as PLAIN,
    BlankRecord as BlankRecord,
    CompactionRefused as CompactionRefused,
    Event as Event,
    FactRef as FactRef,
    ForkPoint as ForkPoint,
    MessageAppended as MessageAppended,
    NoteSet as NoteSet,
    ObservationsAppended as ObservationsAppended,
    OutcomeTold as OutcomeTold,
    PinSet as PinSet,
    PinStrength as PinStrength,
    Placement as Placement,
    RecallSelected as RecallSelected,
    SessionHead as SessionHead,
    SessionOpened as SessionOpened,
    WindowCompacted as WindowCompacted,
    bullets_of as bullets_of,
    facts_of as facts_of,
    fork_point as fork_point,
    from_record as from_record,
)
from .journal.log import (
    DamagedRecord as DamagedRecord,
    Listener as Listener,
    Log as Log,
    Repair as Repair,
    Row as Row,
    check as check,
    coded_manifest as coded_manifest,
    read_manifest as read_manifest,
)
from .journal.memory import MemoryJournal as MemoryJournal
from .journal.postgres import PostgresJournal as PostgresJournal
from .journal.sqlite import FileJournal as FileJournal
from .maintenance.damage import StoreShare as StoreShare
from .maintenance.fsck import Fsck as Fsck, fsck as fsck
from .maintenance.gc import GarbageReport as GarbageReport, gc as gc
from .maintenance.inventory import ListingRow as ListingRow, Stats as Stats, ls as ls, stats as stats
from .names import (
    MAX_META_CHARS as MAX_META_CHARS,
    checked_name as checked_name,
    numbered as numbered,
    part_of as part_of,
    session_folder as session_folder,
    skeleton as skeleton,
    snapshots_folder as snapshots_folder,
    steward_folder as steward_folder,
    unseen as unseen,
)
from .objects import (
    ObjectInfo as ObjectInfo,
    ObjectStore as ObjectStore,
    Patience as Patience,
    PutOutcome as PutOutcome,
)
from .objects.memory import MemoryObjects as MemoryObjects
from .objects.s3 import S3Objects as S3Objects
from .postgres_database import (
    PostgresConnection as PostgresConnection,
    PostgresDatabase as PostgresDatabase,
    PostgresUri as PostgresUri,
)
from .profiles import Profile as Profile, RecordRef as RecordRef, canonical as canonical
from .profiles.approval_check import (
    REVIEW_FIELDS as REVIEW_FIELDS,
    REVIEW_PURPOSE as REVIEW_PURPOSE,
    REVIEWS as REVIEWS,
    ApprovalCheck as ApprovalCheck,
    challenger_address as challenger_address,
)
from .profiles.people import (
    EnrolledPerson as EnrolledPerson,
    PeopleRegister as PeopleRegister,
    PeopleRoll as PeopleRoll,
    PersonStatement as PersonStatement,
    statement_data as statement_data,
)
from .profiles.proposal import (
    Proposal as Proposal,
    bootstrap as bootstrap,
    by_people as by_people,
    of_entry as of_entry,
    of_file as of_file,
    resolver as resolver,
    same_text as same_text,
)
from .profiles.text import (
    META_LABELS as META_LABELS,
    META_REF as META_REF,
    canonical_json as canonical_json,
    line_writer as line_writer,
    meta_text as meta_text,
    record_line as record_line,
    records_named as records_named,
    static_blocks as static_blocks,
    system_blocks as system_blocks,
)
from .profiles.version_codec import (
    MetaRecordVault as MetaRecordVault,
    erased as erased,
    lines_of as lines_of,
    record_subject as record_subject,
)
from .profiles.versions import (
    ChangeSummary as ChangeSummary,
    Lease as Lease,
    ProfileVersions as ProfileVersions,
    Version as Version,
    WriterLease as WriterLease,
    profile_names as profile_names,
)
from .replication.drain import Pace as Pace, Pauses as Pauses
from .replication.write_behind import WriteBehind as WriteBehind, WriteBehindStatus as WriteBehindStatus
from .sqlite_file import (
    IN_MEMORY as IN_MEMORY,
    SameFile as SameFile,
    SqliteFile as SqliteFile,
    close_to_others as close_to_others,
    connect as connect,
    one_transaction as one_transaction,
)
from .strict_yaml import (
    Lines as Lines,
    Refuse as Refuse,
    YamlSource as YamlSource,
    place as place,
    read_mapping as read_mapping,
    read_text as read_text,
    show as show,
)
