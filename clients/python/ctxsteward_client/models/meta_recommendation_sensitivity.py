from typing import Literal

MetaRecommendationSensitivity = Literal['none', 'personal', 'sensitive']

META_RECOMMENDATION_SENSITIVITY_VALUES: set[MetaRecommendationSensitivity] = { 'none', 'personal', 'sensitive',  }

def check_meta_recommendation_sensitivity(value: str) -> MetaRecommendationSensitivity:
    if value in META_RECOMMENDATION_SENSITIVITY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_SENSITIVITY_VALUES!r}")
