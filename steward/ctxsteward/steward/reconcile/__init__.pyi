from .claims import (
    Claim as Claim,
    ClaimAudience as ClaimAudience,
    DisjointSets as DisjointSets,
    IndexedObservation as IndexedObservation,
    ObservationBrief as ObservationBrief,
    ObservationOrigin as ObservationOrigin,
    ObservationTime as ObservationTime,
    Width as Width,
    claims_of as claims_of,
    components as components,
    is_named_slot as is_named_slot,
    is_paraphrase as is_paraphrase,
    relation as relation,
    seen_in as seen_in,
    voice_of as voice_of,
)
from .draft import (
    NO_ADVICE as NO_ADVICE,
    ClaimSupport as ClaimSupport,
    Draft as Draft,
    DraftSummary as DraftSummary,
    FixAdvice as FixAdvice,
    draw_draft as draw_draft,
    span_fields as span_fields,
    summarize_draft as summarize_draft,
    supporting as supporting,
    wilson_lower95 as wilson_lower95,
)
from .features import ClaimFeatures as ClaimFeatures
from .sketches import SKETCH as SKETCH, bands as bands
