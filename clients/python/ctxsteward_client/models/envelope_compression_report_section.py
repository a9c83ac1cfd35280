from typing import Literal

EnvelopeCompressionReportSection = Literal['dynamic', 'meta', 'static', 'system']

ENVELOPE_COMPRESSION_REPORT_SECTION_VALUES: set[EnvelopeCompressionReportSection] = { 'dynamic', 'meta', 'static', 'system',  }

def check_envelope_compression_report_section(value: str) -> EnvelopeCompressionReportSection:
    if value in ENVELOPE_COMPRESSION_REPORT_SECTION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ENVELOPE_COMPRESSION_REPORT_SECTION_VALUES!r}")
