from typing import Literal

MessageRole = Literal['assistant', 'developer', 'function', 'model', 'system', 'tool', 'user']

MESSAGE_ROLE_VALUES: set[MessageRole] = { 'assistant', 'developer', 'function', 'model', 'system', 'tool', 'user',  }

def check_message_role(value: str) -> MessageRole:
    if value in MESSAGE_ROLE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MESSAGE_ROLE_VALUES!r}")
