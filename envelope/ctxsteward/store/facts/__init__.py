"""Facts: what is known about one user, project or session, and shown in requests of that audience alone.

    store.facts("support", tenant="acme").commit(Audience("user", "ann"), facts, who=…, why=…, when=…)

`fact` holds the values, `form` how they are stored, `shelf` the chains that hold them, `lookup` and `known` what a
session sees of them, `choosing` which of them a request is shown, `withdrawing` what is forgotten.
"""

from .fact import Audience, AudienceKind, Fact, FactSource
from .fact_store import AudienceFacts, FactCommit, FactReplacement, FactStore

__all__ = [
    "Audience",
    "AudienceFacts",
    "AudienceKind",
    "Fact",
    "FactCommit",
    "FactReplacement",
    "FactSource",
    "FactStore",
]
