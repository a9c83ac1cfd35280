from typing import Literal

CompactDryRun = Literal['false', 'true']

COMPACT_DRY_RUN_VALUES: set[CompactDryRun] = { 'false', 'true',  }

def check_compact_dry_run(value: str) -> CompactDryRun:
    if value in COMPACT_DRY_RUN_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {COMPACT_DRY_RUN_VALUES!r}")
