from typing import Literal

BuiltProviderType0 = Literal['anthropic', 'gemini', 'openai-chat', 'openai-responses', 'text']

BUILT_PROVIDER_TYPE_0_VALUES: set[BuiltProviderType0] = { 'anthropic', 'gemini', 'openai-chat', 'openai-responses', 'text',  }

def check_built_provider_type_0(value: str) -> BuiltProviderType0:
    if value in BUILT_PROVIDER_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {BUILT_PROVIDER_TYPE_0_VALUES!r}")
