from typing import Literal

CompressionReportLossKind = Literal['constraint', 'decision', 'error', 'fact', 'identifier', 'number', 'open_item', 'path', 'preference', 'url']

COMPRESSION_REPORT_LOSS_KIND_VALUES: set[CompressionReportLossKind] = { 'constraint', 'decision', 'error', 'fact', 'identifier', 'number', 'open_item', 'path', 'preference', 'url',  }

def check_compression_report_loss_kind(value: str) -> CompressionReportLossKind:
    if value in COMPRESSION_REPORT_LOSS_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {COMPRESSION_REPORT_LOSS_KIND_VALUES!r}")
