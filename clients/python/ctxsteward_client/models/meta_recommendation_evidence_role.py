from typing import Literal

MetaRecommendationEvidenceRole = Literal['assistant', 'system', 'tool', 'user']

META_RECOMMENDATION_EVIDENCE_ROLE_VALUES: set[MetaRecommendationEvidenceRole] = { 'assistant', 'system', 'tool', 'user',  }

def check_meta_recommendation_evidence_role(value: str) -> MetaRecommendationEvidenceRole:
    if value in META_RECOMMENDATION_EVIDENCE_ROLE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_EVIDENCE_ROLE_VALUES!r}")
