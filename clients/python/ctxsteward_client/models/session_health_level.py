from typing import Literal

SessionHealthLevel = Literal['critical', 'healthy', 'idle', 'warning']

SESSION_HEALTH_LEVEL_VALUES: set[SessionHealthLevel] = { 'critical', 'healthy', 'idle', 'warning',  }

def check_session_health_level(value: str) -> SessionHealthLevel:
    if value in SESSION_HEALTH_LEVEL_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SESSION_HEALTH_LEVEL_VALUES!r}")
