from typing import Literal

RecommendationsStatusType0 = Literal['active', 'candidate', 'expired', 'quarantined', 'rejected', 'superseded', 'vetted']

RECOMMENDATIONS_STATUS_TYPE_0_VALUES: set[RecommendationsStatusType0] = { 'active', 'candidate', 'expired', 'quarantined', 'rejected', 'superseded', 'vetted',  }

def check_recommendations_status_type_0(value: str) -> RecommendationsStatusType0:
    if value in RECOMMENDATIONS_STATUS_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RECOMMENDATIONS_STATUS_TYPE_0_VALUES!r}")
