from typing import Literal

BuildInputPolicyType0 = Literal['every_n', 'every_turn', 'never', 'ski_rental', 'threshold']

BUILD_INPUT_POLICY_TYPE_0_VALUES: set[BuildInputPolicyType0] = { 'every_n', 'every_turn', 'never', 'ski_rental', 'threshold',  }

def check_build_input_policy_type_0(value: str) -> BuildInputPolicyType0:
    if value in BUILD_INPUT_POLICY_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {BUILD_INPUT_POLICY_TYPE_0_VALUES!r}")
