from .openai_chat import image_url as image_url, wires_of as wires_of
from .openai_responses import (
    item_groups as item_groups,
    items_of as items_of,
    items_of_message as items_of_message,
    messages_of_items as messages_of_items,
    own_items as own_items,
)
from .request import FORMATS as FORMATS, dropped_fields as dropped_fields, read_units as read_units, render as render
from .text import (
    fragment_document as fragment_document,
    fragment_spans as fragment_spans,
    parse as parse,
    section_text as section_text,
    spans as spans,
)
from .units import (
    ATTACHED as ATTACHED,
    CALL_ARGUMENTS as CALL_ARGUMENTS,
    CONTEXT_ARGUMENTS as CONTEXT_ARGUMENTS,
    CUT as CUT,
    JOINT as JOINT,
    Unit as Unit,
    canonical as canonical,
    context_of as context_of,
    translated as translated,
    ungoverned as ungoverned,
    wires_of_steps as wires_of_steps,
)
