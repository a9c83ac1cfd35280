from typing import Literal

EvalResultMetricResultMethodType0 = Literal['bootstrap', 'student', 'wilson']

EVAL_RESULT_METRIC_RESULT_METHOD_TYPE_0_VALUES: set[EvalResultMetricResultMethodType0] = { 'bootstrap', 'student', 'wilson',  }

def check_eval_result_metric_result_method_type_0(value: str) -> EvalResultMetricResultMethodType0:
    if value in EVAL_RESULT_METRIC_RESULT_METHOD_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVAL_RESULT_METRIC_RESULT_METHOD_TYPE_0_VALUES!r}")
