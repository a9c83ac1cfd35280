from .artifact import (
    Artifact as Artifact,
    ArtifactRank as ArtifactRank,
    CitedText as CitedText,
    EvidenceQuote as EvidenceQuote,
    EvidenceSpan as EvidenceSpan,
    IdentifierUse as IdentifierUse,
    build_artifact as build_artifact,
    cut as cut,
    evidence_spans as evidence_spans,
    observation_fields as observation_fields,
    observation_of as observation_of,
    quotes as quotes,
    span_address as span_address,
    verified as verified,
)
from .storage import ArtifactStore as ArtifactStore, possible_speakers as possible_speakers
