from .fact import (
    Audience as Audience,
    AudienceKind as AudienceKind,
    Fact as Fact,
    FactSource as FactSource,
    audiences_in as audiences_in,
)
from .fact_store import (
    AudienceFacts as AudienceFacts,
    FactCommit as FactCommit,
    FactLookup as FactLookup,
    FactReplacement as FactReplacement,
    FactStore as FactStore,
    forget_audience as forget_audience,
    has_shelf as has_shelf,
    withdraw_facts as withdraw_facts,
    withdrawn_heads as withdrawn_heads,
)
