from .observation import (
    KINDS as KINDS,
    Harvester as Harvester,
    MessageSpan as MessageSpan,
    Observation as Observation,
    Reach as Reach,
    Strength as Strength,
)
from .transcript import (
    Dated as Dated,
    ReplayedCall as ReplayedCall,
    ReplayedTranscript as ReplayedTranscript,
    ReplayedUtterance as ReplayedUtterance,
    Role as Role,
    ShownRecord as ShownRecord,
    in_order as in_order,
    speaker_order as speaker_order,
)
