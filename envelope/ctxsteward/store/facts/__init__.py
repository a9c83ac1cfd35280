"""Facts: what is known about one user, project or session, and shown in requests of that audience alone.

    store.facts("support", tenant="acme").commit(Audience("user", "ann"), facts, who=…, why=…, when=…)

`fact` holds the values and how they are stored, `fact_store` the chains that hold them, `lookup` how sessions ask.
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
