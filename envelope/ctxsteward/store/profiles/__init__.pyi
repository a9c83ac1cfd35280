from .approval_check import (
    REVIEW_FIELDS as REVIEW_FIELDS,
    REVIEW_PURPOSE as REVIEW_PURPOSE,
    REVIEWS as REVIEWS,
    ApprovalCheck as ApprovalCheck,
    challenger_address as challenger_address,
)
from .people import (
    EnrolledPerson as EnrolledPerson,
    PeopleRegister as PeopleRegister,
    PeopleRoll as PeopleRoll,
    PersonStatement as PersonStatement,
    statement_data as statement_data,
)
from .proposal import Sessions as Sessions
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
from .versions import ProfileVersions as ProfileVersions
