from typing import Literal

MetaRecommendationTrust = Literal['assistant', 'operator', 'tool_external', 'tool_internal', 'user']

META_RECOMMENDATION_TRUST_VALUES: set[MetaRecommendationTrust] = { 'assistant', 'operator', 'tool_external', 'tool_internal', 'user',  }

def check_meta_recommendation_trust(value: str) -> MetaRecommendationTrust:
    if value in META_RECOMMENDATION_TRUST_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_TRUST_VALUES!r}")
