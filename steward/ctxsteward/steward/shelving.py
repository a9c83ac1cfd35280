"""Writing shelves: what is active for one user, project or session alone is told to that audience.

A night writes the shelves of those about whom something else is known than the night before, and all of them where the
last night wrote them from another ledger. A set that is there already writes nothing (`envelope.facts`), so a killed
night is repeated.
Source: the state design (scopes: a record scoped to a user is shown to that user alone).
"""

from __future__ import annotations

from ctxsteward.envelope.facts import FactShelves

from .ledger import Ledger
from .stages import Writing


def shelve(ledger: Ledger, shelves: FactShelves, writing: Writing, after: str | None) -> int:
    """Bring the shelves to what `ledger` knows; how many were looked at. `after`: the run of the last night."""
    note = {"who": writing.who, "why": f"night {writing.run}", "when": writing.when}
    audiences, is_whole = ledger.unshelved(after)
    for audience in audiences:
        shelves.commit(audience, ledger.facts(audience), **note)
    if is_whole:
        shelves.keep_only(audiences, **note)
    ledger.shelved(writing.run)
    return len(audiences)
