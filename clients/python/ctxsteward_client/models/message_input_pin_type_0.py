from typing import Literal

MessageInputPinType0 = Literal['keep', 'soft']

MESSAGE_INPUT_PIN_TYPE_0_VALUES: set[MessageInputPinType0] = { 'keep', 'soft',  }

def check_message_input_pin_type_0(value: str) -> MessageInputPinType0:
    if value in MESSAGE_INPUT_PIN_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MESSAGE_INPUT_PIN_TYPE_0_VALUES!r}")
