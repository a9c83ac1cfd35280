from typing import Literal

EvalResultMetricResultBetter = Literal['higher', 'lower']

EVAL_RESULT_METRIC_RESULT_BETTER_VALUES: set[EvalResultMetricResultBetter] = { 'higher', 'lower',  }

def check_eval_result_metric_result_better(value: str) -> EvalResultMetricResultBetter:
    if value in EVAL_RESULT_METRIC_RESULT_BETTER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVAL_RESULT_METRIC_RESULT_BETTER_VALUES!r}")
