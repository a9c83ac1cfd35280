from typing import Literal

CompressionReportSection = Literal['dynamic', 'meta', 'static', 'system']

COMPRESSION_REPORT_SECTION_VALUES: set[CompressionReportSection] = { 'dynamic', 'meta', 'static', 'system',  }

def check_compression_report_section(value: str) -> CompressionReportSection:
    if value in COMPRESSION_REPORT_SECTION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {COMPRESSION_REPORT_SECTION_VALUES!r}")
