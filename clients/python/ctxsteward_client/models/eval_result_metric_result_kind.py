from typing import Literal

EvalResultMetricResultKind = Literal['count', 'mean', 'rate', 'ratio']

EVAL_RESULT_METRIC_RESULT_KIND_VALUES: set[EvalResultMetricResultKind] = { 'count', 'mean', 'rate', 'ratio',  }

def check_eval_result_metric_result_kind(value: str) -> EvalResultMetricResultKind:
    if value in EVAL_RESULT_METRIC_RESULT_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVAL_RESULT_METRIC_RESULT_KIND_VALUES!r}")
