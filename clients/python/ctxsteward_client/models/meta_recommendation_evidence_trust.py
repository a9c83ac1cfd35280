from typing import Literal

MetaRecommendationEvidenceTrust = Literal['assistant', 'operator', 'tool_external', 'tool_internal', 'user']

META_RECOMMENDATION_EVIDENCE_TRUST_VALUES: set[MetaRecommendationEvidenceTrust] = { 'assistant', 'operator', 'tool_external', 'tool_internal', 'user',  }

def check_meta_recommendation_evidence_trust(value: str) -> MetaRecommendationEvidenceTrust:
    if value in META_RECOMMENDATION_EVIDENCE_TRUST_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_EVIDENCE_TRUST_VALUES!r}")
