"""``ctxsteward steward``: nights over transcripts, and what becomes of what they find.

The verbs lie in `steward_run`, `steward_look` (reading only), `steward_people` (proposing, approving, promoting,
rolling back) and `steward_care` (quarantine, doctor, forget, actors).
"""

from __future__ import annotations

import click

from .steward_care import actors, doctor, forget, quarantine
from .steward_look import diff, drift, log, status, why
from .steward_people import promote, propose, review, rollback
from .steward_run import run


@click.group(short_help="Harvest insights from transcripts, through gates.")
def steward() -> None:
    """Read transcripts at night, and change what is governed only through gates.

    Exit codes: 0 fine; 1 the check found something; 2 bad usage or input; 3 blocked, a person must look (or another
    night is under way); 4 rolled back.
    """


for _verb in (
    run,
    status,
    log,
    diff,
    why,
    propose,
    review,
    promote,
    rollback,
    quarantine,
    drift,
    doctor,
    forget,
    actors,
):
    steward.add_command(_verb)
