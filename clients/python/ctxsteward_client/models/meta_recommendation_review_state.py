from typing import Literal

MetaRecommendationReviewState = Literal['approved', 'awaiting', 'rejected']

META_RECOMMENDATION_REVIEW_STATE_VALUES: set[MetaRecommendationReviewState] = { 'approved', 'awaiting', 'rejected',  }

def check_meta_recommendation_review_state(value: str) -> MetaRecommendationReviewState:
    if value in META_RECOMMENDATION_REVIEW_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {META_RECOMMENDATION_REVIEW_STATE_VALUES!r}")
