from . import log as log
from .erasures import (
    Deletion as Deletion,
    Eraser as Eraser,
    Erasure as Erasure,
    ErasureRequest as ErasureRequest,
    Holder as Holder,
    ReachedSessions as ReachedSessions,
    RemoteSessions as RemoteSessions,
    erasures as erasures,
    note_erasure as note_erasure,
)
from .events import (
    BlankRecord as BlankRecord,
    Event as Event,
    ForkPoint as ForkPoint,
    MessageAppended as MessageAppended,
    SessionOpened as SessionOpened,
    WindowCompacted as WindowCompacted,
    encoded_body as encoded_body,
    fork_point as fork_point,
    from_record as from_record,
    to_record as to_record,
)
from .log import (
    Listener as Listener,
    Log as Log,
    body_of as body_of,
    check as check,
    code_of as code_of,
    coded as coded,
    coded_manifest as coded_manifest,
    principals_of as principals_of,
    read_manifest as read_manifest,
)
from .memory import MemoryJournal as MemoryJournal
from .port import (
    Adoption as Adoption,
    CheckedJournal as CheckedJournal,
    DrainMark as DrainMark,
    ForgottenSubject as ForgottenSubject,
    Journal as Journal,
    JournalRecord as JournalRecord,
    Manifest as Manifest,
    MovedTail as MovedTail,
    SessionKey as SessionKey,
    WaitingLog as WaitingLog,
)
from .postgres import PostgresJournal as PostgresJournal
from .sqlite import FileJournal as FileJournal
