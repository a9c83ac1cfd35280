from typing import Literal

MetaRecommendationKind = Literal['correction', 'decision', 'environment', 'eval_failure', 'fact', 'persona', 'policy', 'practice', 'preference', 'tool_fix']

META_RECOMMENDATION_KIND_VALUES: set[MetaRecommendationKind] = { 'correction', 'decision', 'environment', 'eval_failure', 'fact', 'persona', 'policy', 'practice', 'preference', 'tool_fix',  }

def check_meta_recommendation_kind(value: str) -> MetaRecommendationKind:
    if value in META_RECOMMENDATION_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_KIND_VALUES!r}")
