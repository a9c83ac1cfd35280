from typing import Literal

MetaRecommendationEvidenceRelation = Literal['answers', 'confirms', 'contradicts', 'corrects', 'recovers', 'supports']

META_RECOMMENDATION_EVIDENCE_RELATION_VALUES: set[MetaRecommendationEvidenceRelation] = { 'answers', 'confirms', 'contradicts', 'corrects', 'recovers', 'supports',  }

def check_meta_recommendation_evidence_relation(value: str) -> MetaRecommendationEvidenceRelation:
    if value in META_RECOMMENDATION_EVIDENCE_RELATION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_EVIDENCE_RELATION_VALUES!r}")
