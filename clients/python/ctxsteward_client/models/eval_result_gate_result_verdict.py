from typing import Literal

EvalResultGateResultVerdict = Literal['failed', 'passed', 'undecided', 'unscored']

EVAL_RESULT_GATE_RESULT_VERDICT_VALUES: set[EvalResultGateResultVerdict] = { 'failed', 'passed', 'undecided', 'unscored',  }

def check_eval_result_gate_result_verdict(value: str) -> EvalResultGateResultVerdict:
    if value in EVAL_RESULT_GATE_RESULT_VERDICT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVAL_RESULT_GATE_RESULT_VERDICT_VALUES!r}")
