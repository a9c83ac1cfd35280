from typing import Literal

MetaRecommendationModalityType0 = Literal['may', 'must', 'must_not', 'should']

META_RECOMMENDATION_MODALITY_TYPE_0_VALUES: set[MetaRecommendationModalityType0] = { 'may', 'must', 'must_not', 'should',  }

def check_meta_recommendation_modality_type_0(value: str) -> MetaRecommendationModalityType0:
    if value in META_RECOMMENDATION_MODALITY_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_MODALITY_TYPE_0_VALUES!r}")
