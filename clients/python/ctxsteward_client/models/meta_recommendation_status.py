from typing import Literal

MetaRecommendationStatus = Literal['active', 'candidate', 'expired', 'quarantined', 'rejected', 'superseded', 'vetted']

META_RECOMMENDATION_STATUS_VALUES: set[MetaRecommendationStatus] = { 'active', 'candidate', 'expired', 'quarantined', 'rejected', 'superseded', 'vetted',  }

def check_meta_recommendation_status(value: str) -> MetaRecommendationStatus:
    if value in META_RECOMMENDATION_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_STATUS_VALUES!r}")
