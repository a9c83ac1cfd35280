from .candidates import SKETCH as SKETCH, DisjointSets as DisjointSets, bands as bands, components as components
from .claims import (
    OWN as OWN,
    Claim as Claim,
    ClaimAudience as ClaimAudience,
    ObservationOrigin as ObservationOrigin,
    Width as Width,
    claims_of as claims_of,
    relation as relation,
)
from .draft import (
    NO_ADVICE as NO_ADVICE,
    Draft as Draft,
    DraftSummary as DraftSummary,
    FixAdvice as FixAdvice,
    draw_draft as draw_draft,
    span_fields as span_fields,
    summarize_draft as summarize_draft,
)
from .features import ClaimFeatures as ClaimFeatures
from .indexed_observation import (
    IndexedObservation as IndexedObservation,
    ObservationBrief as ObservationBrief,
    ObservationTime as ObservationTime,
    seen_in as seen_in,
    voice_of as voice_of,
)
from .support import ClaimSupport as ClaimSupport, supporting as supporting, wilson_lower95 as wilson_lower95
