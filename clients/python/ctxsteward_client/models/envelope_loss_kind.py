from typing import Literal

EnvelopeLossKind = Literal['constraint', 'decision', 'error', 'fact', 'identifier', 'number', 'open_item', 'path', 'preference', 'url']

ENVELOPE_LOSS_KIND_VALUES: set[EnvelopeLossKind] = { 'constraint', 'decision', 'error', 'fact', 'identifier', 'number', 'open_item', 'path', 'preference', 'url',  }

def check_envelope_loss_kind(value: str) -> EnvelopeLossKind:
    if value in ENVELOPE_LOSS_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ENVELOPE_LOSS_KIND_VALUES!r}")
