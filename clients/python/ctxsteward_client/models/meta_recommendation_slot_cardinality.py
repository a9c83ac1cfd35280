from typing import Literal

MetaRecommendationSlotCardinality = Literal['many', 'one']

META_RECOMMENDATION_SLOT_CARDINALITY_VALUES: set[MetaRecommendationSlotCardinality] = { 'many', 'one',  }

def check_meta_recommendation_slot_cardinality(value: str) -> MetaRecommendationSlotCardinality:
    if value in META_RECOMMENDATION_SLOT_CARDINALITY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_SLOT_CARDINALITY_VALUES!r}")
