from typing import Literal

MetaRecommendationPolarityType0 = Literal['negative', 'positive']

META_RECOMMENDATION_POLARITY_TYPE_0_VALUES: set[MetaRecommendationPolarityType0] = { 'negative', 'positive',  }

def check_meta_recommendation_polarity_type_0(value: str) -> MetaRecommendationPolarityType0:
    if value in META_RECOMMENDATION_POLARITY_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_POLARITY_TYPE_0_VALUES!r}")
