from .actors import (
    NOBODY as NOBODY,
    ActionRefused as ActionRefused,
    Actor as Actor,
    Actors as Actors,
    RemovedActor as RemovedActor,
    Role as Role,
    signed_person as signed_person,
    statements as statements,
    token_signer as token_signer,
)
from .approvals import ApprovalRequest as ApprovalRequest, Verdict as Verdict, people_needed as people_needed
from .assignment import (
    keeping as keeping,
    move as move,
    profile_for as profile_for,
    running as running,
    started as started,
    version_for as version_for,
)
from .changelog import (
    changelog_text as changelog_text,
    entry_lines as entry_lines,
    markdown_text as markdown_text,
    named_approvers as named_approvers,
)
from .decision import DecisionStage as DecisionStage, Records as Records, in_force as in_force
from .promotion import (
    Promotion as Promotion,
    assess as assess,
    judge as judge,
    promote as promote,
    rollback as rollback,
    stage as stage,
)
from .record_reviews import (
    WAITING as WAITING,
    Needed as Needed,
    RecordRejection as RecordRejection,
    RecordReviews as RecordReviews,
    people_for as people_for,
    reviews_of as reviews_of,
)
from .rollbacks import taken_back as taken_back
from .slice import (
    HIGH_TOKENS as HIGH_TOKENS,
    WEIGHTS as WEIGHTS,
    fits_slice as fits_slice,
    line_counter as line_counter,
    line_of as line_of,
)
