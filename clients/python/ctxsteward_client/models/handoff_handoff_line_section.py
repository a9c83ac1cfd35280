from typing import Literal

HandoffHandoffLineSection = Literal['decisions', 'errors', 'files', 'intent', 'pending', 'state', 'technical']

HANDOFF_HANDOFF_LINE_SECTION_VALUES: set[HandoffHandoffLineSection] = { 'decisions', 'errors', 'files', 'intent', 'pending', 'state', 'technical',  }

def check_handoff_handoff_line_section(value: str) -> HandoffHandoffLineSection:
    if value in HANDOFF_HANDOFF_LINE_SECTION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {HANDOFF_HANDOFF_LINE_SECTION_VALUES!r}")
