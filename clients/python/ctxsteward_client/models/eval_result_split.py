from typing import Literal

EvalResultSplit = Literal['ci', 'docs', 'sealed']

EVAL_RESULT_SPLIT_VALUES: set[EvalResultSplit] = { 'ci', 'docs', 'sealed',  }

def check_eval_result_split(value: str) -> EvalResultSplit:
    if value in EVAL_RESULT_SPLIT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVAL_RESULT_SPLIT_VALUES!r}")
