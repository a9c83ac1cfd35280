from typing import Literal

BuildResultProviderType0 = Literal['anthropic', 'gemini', 'openai-chat', 'openai-responses', 'text']

BUILD_RESULT_PROVIDER_TYPE_0_VALUES: set[BuildResultProviderType0] = { 'anthropic', 'gemini', 'openai-chat', 'openai-responses', 'text',  }

def check_build_result_provider_type_0(value: str) -> BuildResultProviderType0:
    if value in BUILD_RESULT_PROVIDER_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {BUILD_RESULT_PROVIDER_TYPE_0_VALUES!r}")
