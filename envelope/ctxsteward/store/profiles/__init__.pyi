from .text import Profile as Profile
from .version_codec import (
    MetaRecordVault as MetaRecordVault,
    RecordRef as RecordRef,
    canonical as canonical,
    of_known_fields as of_known_fields,
    profile_in as profile_in,
    record_subject as record_subject,
    references as references,
)
