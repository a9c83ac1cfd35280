"""Context injection: a cascade's configuration, and what each of its phases is shown.

    cascade = load_cascade("cascade.yaml")
    opened = open_phase(store, cascade, "final_report", run="r-1", input={"topic": "tea"})
    envelope = builder.build(opened.session)
    opened.session.append(reply, phase="final_report")

`phase_context` says the same without a store: configuration and past in, messages with their origins out.
"""

from .auto_selection import Strategies
from .config import anchors, auto_enabled, cascade_of, intra_context, load_cascade, parse_cascade, selection
from .context import PhaseMessage
from .past import Past, PastMessage, PhaseLog, read_past
from .phase import PhaseContext, RefusedAttempt, intra_policy, phase_context, retry_messages, sub_input, sub_state
from .run import OpenedPhase, choose_attempt, close_phase, open_phase, read_run, record_state

__all__ = [
    "OpenedPhase",
    "Past",
    "PastMessage",
    "PhaseContext",
    "PhaseLog",
    "PhaseMessage",
    "RefusedAttempt",
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
