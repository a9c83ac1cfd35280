from typing import Literal

EnvelopeFragmentDocumentKind = Literal['bullets', 'context', 'group', 'notes', 'observations', 'text', 'tools']

ENVELOPE_FRAGMENT_DOCUMENT_KIND_VALUES: set[EnvelopeFragmentDocumentKind] = { 'bullets', 'context', 'group', 'notes', 'observations', 'text', 'tools',  }

def check_envelope_fragment_document_kind(value: str) -> EnvelopeFragmentDocumentKind:
    if value in ENVELOPE_FRAGMENT_DOCUMENT_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ENVELOPE_FRAGMENT_DOCUMENT_KIND_VALUES!r}")
