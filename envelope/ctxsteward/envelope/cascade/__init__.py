"""Context injection: a cascade's configuration, and the context of each of its phases.

    cascade = load_cascade("cascade.yaml")
    opened = open_phase(store, cascade, "final_report", run="r-1", input={"topic": "tea"})
    envelope = builder.build(opened.session, policy=opened.policy)
    opened.session.append(reply, phase="final_report")

`phase_context` does the same without a store: configuration and past in, messages with their origins out.
"""

from .config import parse_cascade
from .continuity import handoff_of, resume
from .phase import phase_context
from .run import open_phase, read_run, record_state
from .runner import CascadeRunner
from .script import script_of

__all__ = [
    "CascadeRunner",
    "handoff_of",
    "open_phase",
    "parse_cascade",
    "phase_context",
    "read_run",
    "record_state",
    "resume",
    "script_of",
]
