from typing import Literal

BuildInputProviderType0 = Literal['anthropic', 'gemini', 'openai-chat', 'openai-responses', 'text']

BUILD_INPUT_PROVIDER_TYPE_0_VALUES: set[BuildInputProviderType0] = { 'anthropic', 'gemini', 'openai-chat', 'openai-responses', 'text',  }

def check_build_input_provider_type_0(value: str) -> BuildInputProviderType0:
    if value in BUILD_INPUT_PROVIDER_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {BUILD_INPUT_PROVIDER_TYPE_0_VALUES!r}")
