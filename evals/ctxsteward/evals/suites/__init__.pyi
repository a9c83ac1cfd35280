from . import catalogue as catalogue, gates as gates
from .catalogue import NAMES as NAMES, suite_named as suite_named
from .gates import (
    End as End,
    Gate as Gate,
    Gates as Gates,
    Rule as Rule,
    for_all as for_all,
    shipped_gates as shipped_gates,
)
from .results import (
    Job as Job,
    in_order as in_order,
    play_made as play_made,
    play_one as play_one,
    played as played,
    result as result,
    run_all as run_all,
)
from .verbatim import make as make, play_verbatim as play_verbatim
