"""Context injection: a cascade's configuration, and what each of its phases is shown.

    cascade = load_cascade("cascade.yaml")
    opened = open_phase(store, cascade, "final_report", run="r-1", input={"topic": "tea"})
    envelope = builder.build(opened.session)
    opened.session.append(reply, phase="final_report")

`phase_context` says the same without a store: configuration and past in, messages with their origins out.
"""

from .building import PhaseMessage
from .config import anchors, auto_enabled, intra_context, selection
from .injection import PhaseContext, phase_context
from .intra import Failure, intra_policy, retry_messages
from .opening import OpenedPhase, choose_attempt, close_phase, open_phase, read_run, record_state
from .past import Log, Past, PastMessage, read_past
from .reading import cascade_of, load_cascade, parse_cascade
from .strategies import Strategies
from .subcascades import sub_input, sub_state

__all__ = [
    "Failure",
    "Log",
    "OpenedPhase",
    "Past",
    "PastMessage",
    "PhaseContext",
    "PhaseMessage",
    "Strategies",
    "anchors",
    "auto_enabled",
    "cascade_of",
    "choose_attempt",
    "close_phase",
    "intra_context",
    "intra_policy",
    "load_cascade",
    "open_phase",
    "parse_cascade",
    "phase_context",
    "read_past",
    "read_run",
    "record_state",
    "retry_messages",
    "selection",
    "sub_input",
    "sub_state",
]
